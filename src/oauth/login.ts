import type { Context } from '../context.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import { logExchanges } from '../service/exchange-log.ts'
import { type LoginCommandOptions, loginCommand } from '../settings/login-command.ts'
import { requireBaseUrl, requireClientId, type Settings } from '../settings/settings.ts'
import {
  type AuthorizationResponse,
  authorizationUrl,
  classifyRedirect,
  newAuthorizationSecrets,
  type UnusableRedirect,
} from './authorization.ts'
import { type CallbackPage, notSignedInPage, SIGNED_IN, unusableRedirectPage } from './callback-page.ts'
import { type CallbackServer, startCallbackServer } from './callback-server.ts'
import { discoverServer, issuerHint, issuerMismatch } from './discovery.ts'
import { parsePastedRedirect, readPastedLines } from './pasted-url.ts'
import type { RedirectTarget } from './redirect-uri.ts'

/** More lines than this that aren't the address don't come from a person who pastes. */
const MAX_UNUSABLE_LINES = 20

export interface LoginOptions {
  readonly scopes: readonly string[]
  readonly resource: string | undefined
  readonly target: RedirectTarget
  readonly openBrowser: boolean
  /** Whether lines on stdin are read as pasted redirects. */
  readonly readInput: boolean
  readonly timeoutMs: number
  /** The authorization server, if it is not the service under its base URL. */
  readonly issuer: string | undefined
  /** Instead of the published or usual endpoint. */
  readonly authorizationEndpoint: string | undefined
  /** How to run this login again, for hints. */
  readonly again: LoginCommandOptions
}

/** What to exchange for tokens; see RFC 6749 section 4.1.3 and RFC 7636 section 4.5. */
export interface ReceivedCode {
  readonly parameters: URLSearchParams
  readonly redirectUri: string
  readonly codeVerifier: string
  readonly clientId: string
  readonly base: URL
}

/** Keeps the person informed while the login waits. */
export interface LoginReporter {
  /** The address is known, and the listener is bound. */
  ready(url: string, browser: 'opening' | 'not_opened', canPaste: boolean): Promise<void>
  browserFailed(): Promise<void>
  /** Something arrived that is not the answer. A hint says what to do if it should have been. */
  ignored(why: string, hint?: string): Promise<void>
}

/** The answer of the service, and how to show the browser a page. */
interface Received {
  readonly response: AuthorizationResponse
  readonly respond: (page: CallbackPage) => Promise<void>
}

/**
 * Signs a person in: authorization code with PKCE in the browser (RFC 6749 section 4.1, RFC 7636, RFC 8252). The
 * browser's page says "signed in" only after `exchange` has settled, that is, after the tokens are stored.
 *
 * @param exchange turns the code into a stored session.
 * @throws CliError for every other end; `login_timeout` (exit 4) if nobody approved in time.
 */
export async function login<T>(
  options: LoginOptions,
  exchange: (code: ReceivedCode) => Promise<T>,
  reporter: LoginReporter,
  context: Pick<
    Context,
    'program' | 'platform' | 'stdin' | 'stderr' | 'clock' | 'random' | 'http' | 'browser' | 'interrupts'
  >,
  settings: Pick<Settings, 'baseUrl' | 'clientId' | 'verbose'>,
): Promise<T> {
  const base = requireBaseUrl(settings)
  const clientId = requireClientId(settings)
  const { issuer, authorizationEndpoint, again, target } = options
  const http = settings.verbose ? logExchanges(context) : context.http
  const server = await discoverServer({ base, issuer, authorizationEndpoint }, again, { ...context, http })
  const { state, codeVerifier } = newAuthorizationSecrets()
  if (target.listen === undefined && !options.readInput) throw noWayToAnswer()

  const received = withResolvers<Received>()
  let lastUnusable: UnusableRedirect | undefined
  let foreignIssuer: string | undefined
  const ignore = (redirect: UnusableRedirect) => {
    lastUnusable = redirect
    foreignIssuer = redirect.issuer ?? foreignIssuer
    const hint = redirect.issuer === undefined ? undefined : issuerHint(redirect.issuer, again)
    return reporter.ignored(redirect.why, hint)
  }
  const classify = (parameters: URLSearchParams) =>
    classifyRedirect(server, clientId, parameters, state, loginCommand(again))

  let listener: CallbackServer | undefined
  let stopReading = () => {}
  const over = new AbortController()
  try {
    if (target.listen !== undefined) {
      listener = await startCallbackServer<AuthorizationResponse>({
        target: { ...target, listen: target.listen },
        state,
        random: context.random,
        async validate(parameters) {
          const redirect = classify(parameters)
          if (redirect.kind !== 'unusable') return { valid: redirect }
          await ignore(redirect)
          return { page: unusableRedirectPage(redirect.why) }
        },
        received: (response, respond) => received.resolve({ response, respond }),
      })
    }
    const redirectUri = listener?.redirectUri ?? target.uri(0)
    const url = await authorizationUrl(server.authorization_endpoint ?? '', {
      clientId,
      redirectUri,
      state,
      codeVerifier,
      scopes: options.scopes,
      resource: options.resource,
    })
    if (options.readInput) {
      let unusableLines = 0
      const onLine = (line: string) => {
        const parameters = parsePastedRedirect(line)
        const redirect: AuthorizationResponse | UnusableRedirect =
          typeof parameters === 'string' ? { kind: 'unusable', why: parameters } : classify(parameters)
        if (redirect.kind !== 'unusable') {
          received.resolve({ response: redirect, respond: async () => {} })
        } else if (++unusableLines < MAX_UNUSABLE_LINES) {
          ignoreFailure(ignore(redirect))
        } else if (unusableLines === MAX_UNUSABLE_LINES) {
          stopReading()
          ignoreFailure(reporter.ignored('too many lines that are not the address; no more are read'))
        }
      }
      const onEnd = () => {
        if (listener === undefined) received.reject(noWayToAnswer())
      }
      stopReading = readPastedLines(context.stdin.stream, onLine, onEnd)
    }
    await reporter.ready(url.href, options.openBrowser ? 'opening' : 'not_opened', options.readInput)
    if (options.openBrowser)
      ignoreFailure(
        context.browser
          .open(url.href, over.signal)
          .catch(() => (over.signal.aborted ? undefined : reporter.browserFailed())),
      )

    const timeout = context.clock
      .sleep(options.timeoutMs, AbortSignal.any([context.interrupts.signal, over.signal]))
      .then((): never => {
        throw foreignIssuer === undefined
          ? timedOut(options.timeoutMs, lastUnusable?.why, loginCommand(again))
          : issuerMismatch('the browser brought an answer of', server.issuer, foreignIssuer, again)
      })
    const { response, respond } = await Promise.race([received.promise, timeout])
    try {
      if (response.kind === 'refused') throw response.error
      const { parameters } = response
      const result = await exchange({ parameters, redirectUri, codeVerifier, clientId, base })
      await respond(SIGNED_IN)
      return result
    } catch (error) {
      await respond(notSignedInPage(error))
      throw error
    }
  } finally {
    over.abort()
    stopReading()
    await listener?.close()
  }
}

/** The login continues even if stderr is closed and nobody reads its messages. */
function ignoreFailure(work: Promise<void>): void {
  work.catch(() => {})
}

function noWayToAnswer(): CliError {
  return usageError(
    'the redirect URI is not on this machine and nothing can be pasted, so the browser has no way to answer',
    'run it on a terminal, or with --no-browser pipe in the address that the browser ends up at',
  )
}

function timedOut(ms: number, unusable: string | undefined, login: string): CliError {
  const [count, unit] = ms >= 60_000 ? [Number((ms / 60_000).toFixed(1)), 'minute'] : [ms / 1000, 'second']
  const span = `${count} ${unit}${count === 1 ? '' : 's'}`
  const why = unusable === undefined ? '' : `; the answer that came could not be used: ${unusable}`
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
  // It may fail before it is awaited.
  promise.catch(() => {})
  return { promise, resolve, reject }
}
