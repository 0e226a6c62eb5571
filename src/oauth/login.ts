import { CliError, Exit, usageError } from '../errors.ts'
import { loginCommand } from '../settings/profiles.ts'
import { requireBaseUrl, requireClientId } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { formatDuration } from '../terminal/time.ts'
import {
  type AuthorizationResponse,
  authorizationUrl,
  classifyRedirect,
  newAuthorizationSecrets,
  type UnusableRedirect,
} from './authorization.ts'
import {
  type CallbackPage,
  type CallbackServer,
  notSignedInPage,
  SIGNED_IN,
  startCallbackServer,
} from './callback-server.ts'
import { discoverServer, issuerHint, issuerMismatch } from './discovery.ts'
import { parsePastedRedirect, type RedirectTarget, readPastedLines } from './redirect.ts'

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
  io: Io,
): Promise<T> {
  const { settings } = io
  const base = requireBaseUrl(settings)
  const clientId = requireClientId(settings)
  const profile = settings.profile.value
  const { issuer, authorizationEndpoint, target } = options
  if (target.listen === undefined && !options.readInput) throw noWayToAnswer()
  const server = await discoverServer({ base, issuer, authorizationEndpoint }, io)
  const { state, codeVerifier } = newAuthorizationSecrets()

  const received = withResolvers<Received>()
  let lastUnusable: UnusableRedirect | undefined
  let foreignIssuer: string | undefined
  const ignore = (redirect: UnusableRedirect) => {
    lastUnusable = redirect
    foreignIssuer = redirect.issuer ?? foreignIssuer
    const hint = redirect.issuer === undefined ? undefined : issuerHint(redirect.issuer, profile)
    return reporter.ignored(redirect.why, hint)
  }
  const classify = (parameters: URLSearchParams) =>
    classifyRedirect(server, clientId, parameters, state, loginCommand({ profile }))

  let unusableLines = 0
  const readLine = (line: string) => {
    const parameters = parsePastedRedirect(line)
    const redirect: AuthorizationResponse | UnusableRedirect =
      typeof parameters === 'string' ? { kind: 'unusable', why: parameters } : classify(parameters)
    if (redirect.kind !== 'unusable') received.resolve({ response: redirect, respond: async () => {} })
    else if (++unusableLines < MAX_UNUSABLE_LINES) ignoreFailure(ignore(redirect))
    else stopReading()
  }

  let listener: CallbackServer | undefined
  let stopReading = () => {}
  const over = new AbortController()
  try {
    if (target.listen !== undefined) {
      listener = await startCallbackServer<AuthorizationResponse>({
        uri: target.uri,
        listen: target.listen,
        state,
        async validate(parameters) {
          const redirect = classify(parameters)
          if (redirect.kind !== 'unusable') return redirect
          await ignore(redirect)
          return redirect.why
        },
        received: (response, respond) => received.resolve({ response, respond }),
      })
    }
    const redirectUri = listener?.redirectUri ?? target.uri ?? ''
    const { scopes, resource } = options
    const parameters = { clientId, redirectUri, state, codeVerifier, scopes, resource }
    const url = await authorizationUrl(server.authorization_endpoint ?? '', parameters)
    if (options.readInput) {
      const onEnd = () => (listener === undefined ? received.reject(noWayToAnswer()) : undefined)
      stopReading = readPastedLines(io.stdin.stream, readLine, onEnd)
    }
    await reporter.ready(url.href, options.openBrowser ? 'opening' : 'not_opened', options.readInput)
    if (options.openBrowser)
      ignoreFailure(
        io.browser.open(url.href).catch(() => (over.signal.aborted ? undefined : reporter.browserFailed())),
      )

    const timeout = io.clock
      .sleep(options.timeoutMs, AbortSignal.any([io.interrupts.signal, over.signal]))
      .then((): never => {
        if (foreignIssuer !== undefined) throw issuerMismatch(server.issuer, foreignIssuer, io)
        throw timedOut(options.timeoutMs, lastUnusable?.why)
      })
    const { response, respond } = await Promise.race([received.promise, timeout])
    try {
      if (response.kind === 'refused') throw response.error
      const code = { parameters: response.parameters, redirectUri, codeVerifier, clientId, base }
      const result = await exchange(code)
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
    'the redirect URI is not on this machine and nothing can be pasted, so no answer can arrive',
    'run it on a terminal, or with --no-browser pipe in the address that the browser ends up at',
  )
}

function timedOut(ms: number, unusable: string | undefined): CliError {
  const why = unusable === undefined ? '' : `; the answer that came could not be used: ${unusable}`
  return new CliError(
    'login_timeout',
    Exit.notSignedIn,
    `timed out after ${formatDuration(ms / 1000)} waiting for approval in the browser${why}`,
    { hint: 'sign in again; --timeout SECONDS waits longer' },
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
