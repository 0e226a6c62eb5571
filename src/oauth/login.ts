import type { Context } from '../context.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import { logExchanges } from '../service/exchange-log.ts'
import { type LoginCommandOptions, loginCommand } from '../settings/login-command.ts'
import { requireBaseUrl, requireClientId, type Settings } from '../settings/settings.ts'
import {
  type AuthorizationAnswer,
  authorizationUrl,
  discoverServer,
  issuerHint,
  issuerMismatch,
  judgeAuthorizationAnswer,
  newAuthorizationSecrets,
  wrongAnswerPage,
} from './authorization.ts'
import type { CallbackPage } from './callback-page.ts'
import { type CallbackServer, startCallbackServer } from './callback-server.ts'
import { parsePastedRedirect, readPastedLines } from './pasted-url.ts'
import type { RedirectTarget } from './redirect-uri.ts'

/** Pasted lines that are not the address of an answer, before nothing more is read. */
const MOST_WRONG_LINES = 20

export interface LoginOptions {
  readonly scopes: readonly string[]
  readonly resource: string | undefined
  readonly target: RedirectTarget
  readonly openBrowser: boolean
  /** Whether lines on stdin are read as pasted redirects. */
  readonly readInput: boolean
  readonly timeoutMs: number
  /** The authorization server, where it is not the service under its base URL. */
  readonly issuer: string | undefined
  /** Instead of the published or usual endpoint. */
  readonly authorizationEndpoint: string | undefined
  /** How to run this login again, for hints. */
  readonly again: LoginCommandOptions
}

/** What the browser's answer is exchanged with; see RFC 6749 §4.1.3 and RFC 7636 §4.5. */
export interface ReceivedCode {
  readonly parameters: URLSearchParams
  readonly redirectUri: string
  readonly codeVerifier: string
  readonly clientId: string
  readonly base: URL
}

/** What the person is told while the login waits. */
export interface LoginReporter {
  /** The address is known, the listener is bound. */
  ready(url: string, browser: 'opening' | 'not_opened', canPaste: boolean): Promise<void>
  browserFailed(): Promise<void>
  /** Something arrived that is not the awaited answer; a hint says what to do if it should have been. */
  ignored(why: string, hint?: string): Promise<void>
}

/**
 * Signs a person in: authorization code with PKCE in the browser (RFC 6749 §4.1, RFC 7636, RFC 8252). The browser's
 * page says "signed in" only after `exchange` has settled, that is, after the tokens are stored.
 *
 * @param exchange turns the code into a stored session.
 * @throws CliError for every way in which it can end otherwise; `login_timeout` (exit 4) when nobody came in time.
 */
export async function login<T>(
  options: LoginOptions,
  exchange: (code: ReceivedCode) => Promise<T>,
  reporter: LoginReporter,
  context: Context,
  settings: Settings,
): Promise<T> {
  const base = requireBaseUrl(settings)
  const clientId = requireClientId(settings)
  const { issuer, authorizationEndpoint, again } = options
  const http = settings.verbose ? logExchanges(context) : context.http
  const server = await discoverServer({ base, issuer, authorizationEndpoint }, again, { ...context, http })
  const { state, codeVerifier } = newAuthorizationSecrets()
  // Asked before anything is sent: nobody is to wait for what cannot come.
  if (options.target.listen === undefined && !options.readInput) throw nowhereToAnswer()
  const wait = withResolvers<Answer>()
  let listener: CallbackServer | undefined
  let stopReading = () => {}
  const over = new AbortController()
  const cleanups = [() => over.abort(), () => stopReading(), () => listener?.close()]

  const judge = (parameters: URLSearchParams) =>
    judgeAuthorizationAnswer(server, clientId, parameters, state, loginCommand(again))
  let foreignIssuer: string | undefined
  let ignored: string | undefined
  let wrongLines = 0
  const ignore = (answer: Extract<AuthorizationAnswer, { kind: 'wrong' }>) => {
    foreignIssuer = answer.issuer ?? foreignIssuer
    ignored = answer.why
    return reporter.ignored(
      answer.why,
      answer.issuer === undefined ? undefined : issuerHint(answer.issuer, again),
    )
  }
  try {
    const { listen } = options.target
    if (listen !== undefined) {
      listener = await startCallbackServer({
        target: { ...options.target, listen },
        state,
        random: context.random,
        judge: async (parameters) => {
          const answer = judge(parameters)
          if (answer.kind !== 'wrong') return undefined
          await ignore(answer)
          return wrongAnswerPage(answer.why)
        },
        received: (callback) => wait.resolve({ answer: judge(callback.parameters), page: callback.answer }),
      })
    }
    const redirectUri = listener?.redirectUri ?? options.target.uri(0)
    const url = await authorizationUrl(server.authorization_endpoint ?? '', {
      clientId,
      redirectUri,
      state,
      codeVerifier,
      scopes: options.scopes,
      resource: options.resource,
    })
    if (options.readInput) {
      stopReading = readPastedLines(
        context.stdin.stream,
        (line) => {
          const pasted = parsePastedRedirect(line)
          const answer: AuthorizationAnswer =
            'wrong' in pasted ? { kind: 'wrong', why: pasted.wrong } : judge(pasted.parameters)
          if (answer.kind !== 'wrong') wait.resolve({ answer, page: async () => {} })
          else if (++wrongLines < MOST_WRONG_LINES) told(ignore(answer))
          else if (wrongLines === MOST_WRONG_LINES) {
            // What pours in does not come from a person who pastes.
            stopReading()
            told(reporter.ignored('too many lines that are not the address; nothing more is read', undefined))
          }
        },
        () => {
          if (listener === undefined) wait.reject(nowhereToAnswer())
        },
      )
    }
    await reporter.ready(url.href, options.openBrowser ? 'opening' : 'not_opened', options.readInput)
    if (options.openBrowser)
      told(context.browser.open(url.href, over.signal).catch(() => reporter.browserFailed()))

    const { answer, page } = await Promise.race([
      wait.promise,
      context.clock
        .sleep(options.timeoutMs, AbortSignal.any([context.interrupts.signal, over.signal]))
        .then((): never => {
          throw foreignIssuer === undefined
            ? timedOut(options.timeoutMs, ignored, loginCommand(again))
            : issuerMismatch('the browser brought an answer of', server.issuer, foreignIssuer, again)
        }),
    ])
    return await finish(answer, page)
  } finally {
    for (const clean of cleanups) await clean()
  }

  async function finish(answer: AuthorizationAnswer, page: Answer['page']): Promise<T> {
    try {
      if (answer.kind === 'refused') throw answer.error
      if (answer.kind === 'wrong') throw new Error(answer.why) // Judged before: cannot come here.
      const result = await exchange({
        parameters: answer.parameters,
        redirectUri: listener?.redirectUri ?? options.target.uri(0),
        codeVerifier,
        clientId,
        base,
      })
      await page(SIGNED_IN)
      return result
    } catch (error) {
      await page(notSignedIn(error))
      throw error
    }
  }
}

/** Lets the wait go on where nobody reads any more what is said meanwhile: stderr may have been closed. */
function told(saying: Promise<void>): void {
  saying.catch(() => {})
}

interface Answer {
  readonly answer: AuthorizationAnswer
  readonly page: (page: CallbackPage) => Promise<void>
}

const SIGNED_IN: CallbackPage = {
  status: 200,
  title: 'You are signed in',
  text: 'The session is stored. You can close this window and go back to your terminal.',
}

function notSignedIn(error: unknown): CallbackPage {
  return {
    status: error instanceof CliError && error.exit !== Exit.bug ? 400 : 500,
    title: 'You are not signed in',
    text: `${error instanceof CliError ? error.message : 'Something unexpected happened'}. Your terminal says more.`,
  }
}

function nowhereToAnswer(): CliError {
  return usageError(
    'the redirect URI is not on this machine and nothing can be pasted, so the answer of the browser cannot come in',
    'run it on a terminal, or pipe the address in that the browser ends at, with --no-browser',
  )
}

function timedOut(ms: number, ignored: string | undefined, login: string): CliError {
  const [count, unit] = ms >= 60_000 ? [Number((ms / 60_000).toFixed(1)), 'minute'] : [ms / 1000, 'second']
  const span = `${count} ${unit}${count === 1 ? '' : 's'}`
  const why = ignored === undefined ? '' : `; the answer that came could not be used: ${ignored}`
  return new CliError(
    'login_timeout',
    Exit.notSignedIn,
    `timed out after ${span} waiting for approval in the browser${why}`,
    { hint: `sign in again: ${login}; --timeout SECONDS waits longer` },
  )
}

/** `Promise.withResolvers`, which Node 20 does not have. */
function withResolvers<T>() {
  let resolve: (value: T) => void = () => {}
  let reject: (reason: CliError) => void = () => {}
  const promise = new Promise<T>((settle, fail) => {
    resolve = settle
    reject = fail
  })
  // It may fail before it is waited for.
  promise.catch(() => {})
  return { promise, resolve, reject }
}
