import * as oauth from 'oauth4webapi'
import { CliError } from '../errors.ts'
import { getBaseUrl, getClientId } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { formatDuration } from '../terminal/time.ts'
import { type AuthorizationResponse, buildAuthorizationUrl, validateRedirectQuery } from './authorization.ts'
import { type CallbackPage, SIGNED_IN_PAGE, startCallbackServer, toFailurePage } from './callback-server.ts'
import { discoverAuthorizationServer } from './discovery.ts'
import { listenForPastes, parsePastedRedirect } from './paste.ts'
import type { RedirectionEndpoint } from './redirect.ts'
import type { CodeExchangeRequest } from './token-endpoint.ts'

export interface LoginOptions {
  readonly scopes: readonly string[]
  readonly resource: string | undefined
  readonly target: RedirectionEndpoint
  readonly openBrowser: boolean
  /** Whether to read pasted redirects from standard input. */
  readonly readInput: boolean
  readonly timeoutMs: number
  /** `--issuer`: identifier of the authorization server (RFC 8414 section 2); if undefined, the base URL. */
  readonly issuer: string | undefined
  /** `--authorization-endpoint`; undefined to use the endpoint that `discoverAuthorizationServer` returns. */
  readonly authorizationEndpoint: string | undefined
}

export interface LoginReporter {
  /** Called once the callback server listens, with the URL of the authorization request. */
  ready(url: string): Promise<void>
  browserFailed(): Promise<void>
  /** Called with the reason if a paste, or a redirect with the right state, can't be used; the sign-in keeps waiting. */
  ignored(why: string): Promise<void>
}

/** Answer that ends the wait for a redirect: a valid redirect (code or error), or an `InterruptedError` for Ctrl-C on stdin. */
interface Received {
  readonly response: AuthorizationResponse
  /** Shows a page in the browser that brought the redirect; undefined for a paste. */
  readonly respond?: ((page: CallbackPage) => Promise<void>) | undefined
}

/** Milliseconds for which the callback server keeps running after it has sent the "signed in" page, which a browser may reload. */
const RELOAD_MS = 2000

/**
 * Signs a user in: authorization code with PKCE in the browser (RFC 6749 section 4.1, RFC 7636, RFC 8252). The browser shows
 * "signed in" only after `exchange` has resolved.
 *
 * @param exchange exchanges the code and stores the session
 * @returns the result of `exchange`, and `closed`, which resolves when the callback server has stopped
 * @throws CliError `login_timeout`, exit 4, without a valid redirect in time; the redirect's OAuth error; errors of `exchange` and
 *   of the steps before it; the interrupt's reason
 */
export async function loginInBrowser<T>(
  options: LoginOptions,
  exchange: (code: CodeExchangeRequest) => Promise<T>,
  reporter: LoginReporter,
  io: Io,
): Promise<{ readonly result: T; readonly closed: Promise<void> }> {
  const base = getBaseUrl(io.settings)
  const clientId = getClientId(io.settings)
  const server = await discoverAuthorizationServer(base, options.issuer, io)
  const state = oauth.generateRandomState()
  const codeVerifier = oauth.generateRandomCodeVerifier()

  let finish: (received: Received) => void = () => {}
  const received = new Promise<Received>((resolve) => {
    finish = resolve
  })
  let unusable: string | undefined
  /**
   * Ends the wait if the answer is a valid redirect, or a `CliError` from reading a paste. Otherwise reports and returns why the
   * answer is refused; a string is already that reason.
   */
  const receive = (answer: URLSearchParams | CliError | string, respond?: Received['respond']) => {
    const response =
      answer instanceof URLSearchParams ? validateRedirectQuery(server, clientId, answer, state) : answer
    if (typeof response !== 'string') {
      finish({ response, respond })
      return undefined
    }
    unusable = response
    // Ignore a failure to tell the user why the redirect or paste is refused: the failure must not end the sign-in.
    reporter.ignored(response).catch(() => {})
    return response
  }

  const { redirectUri, close } = await startCallbackServer({ endpoint: options.target, state, receive })
  let stopReading = () => {}
  const over = new AbortController()
  try {
    const requestedScope = options.scopes.join(' ') || undefined
    const endpoint = options.authorizationEndpoint ?? server.authorization_endpoint ?? ''
    const url = buildAuthorizationUrl(endpoint, {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      state,
      // The URL contains only a hash of the code verifier, so a thief who sees the URL and the code can't exchange the code (RFC
      // 7636 section 4.2).
      code_challenge: await oauth.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
      scope: requestedScope,
      resource: options.resource,
    })
    const expected = { state, issuer: server.issuer.replace(/\/+$/, ''), host: new URL(redirectUri).host }
    if (options.readInput)
      stopReading = listenForPastes(io, (text, fresh) => {
        const answer = parsePastedRedirect(text, fresh, expected)
        if (answer !== undefined) receive(answer)
      })
    await reporter.ready(url.href)
    if (options.openBrowser)
      io.openBrowser(url.href)
        .catch(() => (over.signal.aborted ? undefined : reporter.browserFailed()))
        .catch(() => {})

    const timeout = io.clock
      .sleep(options.timeoutMs, AbortSignal.any([io.interrupts.signal, over.signal]))
      .then((): never => {
        const why = unusable === undefined ? '' : `; the answer that came could not be used: ${unusable}`
        const time = formatDuration(options.timeoutMs / 1000)
        const message = `timed out after ${time} waiting for approval in the browser${why}`
        const hint = 'sign in again; --timeout SECONDS waits longer'
        throw new CliError('login_timeout', message, { hint })
      })
    const { response, respond } = await Promise.race([received, timeout])
    try {
      if (response instanceof CliError) throw response
      const code = response.get('code') ?? ''
      const result = await exchange({ base, clientId, code, redirectUri, codeVerifier, requestedScope })
      await respond?.(SIGNED_IN_PAGE)
      const shown = respond && io.clock.sleep(RELOAD_MS, io.interrupts.signal).catch(() => {})
      return { result, closed: Promise.resolve(shown).then(close) }
    } catch (error) {
      await respond?.(toFailurePage(error))
      throw error
    }
  } catch (error) {
    await close()
    throw error
  } finally {
    over.abort()
    stopReading()
  }
}
