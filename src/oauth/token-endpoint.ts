import { type HttpRequest, type HttpResponse, TransportError } from '../context.ts'
import { CliError } from '../errors.ts'
import { formatUserAgent } from '../service/client.ts'
import { secretsOf } from '../service/log.ts'
import {
  isRedirect,
  noResponseError,
  parseErrorBody,
  parseJsonObject,
  redirectError,
  TRANSPORT_HINTS,
} from '../service/problems.ts'
import { parseRetryAfterMs } from '../service/retry.ts'
import { appendPath, formatUrl, isLoopback } from '../settings/addresses.ts'
import { isBearerToken } from '../settings/parse-value.ts'
import type { Settings } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { redact, redactTokens } from '../terminal/redact.ts'
import { OAUTH_ERROR_HINTS, oauthError } from './errors.ts'

/** The fields that every request to the token endpoint has. */
interface TokenRequest {
  /** Base URL of the service; the token endpoint is `{base}/oauth/token`, with the base URL's path kept. */
  readonly base: URL
  readonly clientId: string
}

/** A request that exchanges an authorization code (RFC 6749 section 4.1.3, RFC 7636 section 4.5). */
export interface CodeExchangeRequest extends TokenRequest {
  readonly code: string
  readonly redirectUri: string
  readonly codeVerifier: string
  /** Scope of the authorization request, which is granted if the token response has no `scope` (RFC 6749 section 5.1). */
  readonly requestedScope: string | undefined
}

/** A request that sends a refresh token (RFC 6749 section 6). `beforeSend` runs just before the first byte leaves this machine. */
interface RefreshRequest extends TokenRequest, Pick<HttpRequest, 'beforeSend'> {
  readonly refreshToken: string
  /** Narrower scope for the new access token, separated by spaces; undefined requests the grant's complete scope. */
  readonly scope: string | undefined
  /** Scope of the grant, which the access token has if neither the response nor `scope` names one. */
  readonly grantedScope: string | undefined
}

/** An access token from a token response (RFC 6749 section 5.1), with defaults for fields that the service left out. */
export interface AccessToken {
  readonly value: string
  /** Scopes separated by spaces; null if neither the response nor the request named any. */
  readonly scope: string | null
  /** Expiry in milliseconds since 1970 by the wall clock. A wrong clock costs one 401 response and one renewal. */
  readonly expiresAt: number
  readonly lifetimeSeconds: number
}

/** The two tokens of a complete token response, from which a session is created. */
export interface TokenPair {
  readonly access: AccessToken
  readonly refreshToken: string
}

/** Outcome of a refresh request: whether the refresh token is rotated, invalid, still usable, or in an unknown state. */
export type RefreshOutcome =
  /**
   * The service rotated the refresh token: `refreshToken` is the new one, which must be stored even if the rest of the response is
   * unusable. `access` is undefined if the access token is unusable; `why` then names the defect.
   */
  | {
      readonly kind: 'success'
      readonly refreshToken: string
      readonly access: AccessToken | undefined
      readonly why: string | undefined
    }
  /** `invalid_grant`: the service no longer accepts the refresh token, so the session is over. */
  | { readonly kind: 'over'; readonly description: string | undefined }
  /**
   * Nothing was sent, or the service refused: the refresh token may be sent again once the cause is gone. `isTransient`: waiting is
   * enough, for `retryAfterMs` of the error if present.
   */
  | { readonly kind: 'unused'; readonly error: CliError; readonly isTransient: boolean }
  /** The service may have rotated the refresh token: the old one must not be sent again. `why` quotes the response or failure. */
  | { readonly kind: 'unknown'; readonly why: string }

/** Lifetime in seconds of an access token without a usable `expires_in`; shorter than services grant, so renewal is never late. */
const DEFAULT_LIFETIME_SECONDS = 300
/** Maximum lifetime in seconds: longer than any access token's; a larger number could overflow a date. */
const MAX_LIFETIME_SECONDS = 366 * 24 * 3600
/**
 * Minimum time limit in milliseconds: a code or refresh token works once, so a short `--http-timeout` must not cut the exchange
 * off.
 */
const MIN_TIMEOUT_MS = 30_000

/** Returns the time limit of a token request in milliseconds: `--http-timeout`, but at least 30 seconds. */
export function tokenRequestTimeoutMs(settings: Pick<Settings, 'httpTimeoutMs'>): number {
  return Math.max(settings.httpTimeoutMs, MIN_TIMEOUT_MS)
}

/**
 * Exchanges an authorization code for tokens (RFC 6749 section 4.1.3 with RFC 7636 section 4.5).
 *
 * @throws CliError the OAuth error of the response, exit 3, 4 or 6; `no_refresh_token`, exit 6; `service_unavailable`, exit 7,
 *   without a usable response; `redirected`, exit 7
 */
export async function exchangeCode(io: Io, request: CodeExchangeRequest): Promise<TokenPair> {
  const { code, codeVerifier: code_verifier, redirectUri: redirect_uri, requestedScope } = request
  const fields = { grant_type: 'authorization_code', code, redirect_uri, code_verifier }
  const answer = await send(io, request, fields, requestedScope).catch((error: unknown) => {
    if (!(error instanceof TransportError)) throw error
    const { hint } = error.sent === 'no' ? noResponseError(error, request.base, 'POST') : {}
    throw exchangeFailed(error.message, { cause: error, hint })
  })
  const { status, refreshToken, access, isComplete, error, details, summary } = answer
  if (access !== undefined && refreshToken !== undefined) return { access, refreshToken }
  if (access !== undefined && isComplete) throw oauthError('no_refresh_token', '')
  if (error !== undefined && status !== 429) throw oauthError(error, details, status)
  throw exchangeFailed(summary, { status })
}

/** Creates the exception for a code exchange without tokens and without an OAuth error. */
function exchangeFailed(why: string, options: { status?: number; cause?: Error; hint?: string | undefined }) {
  const message = `the sign-in was approved, but the code could not be exchanged for tokens: ${why}`
  const { hint = OAUTH_ERROR_HINTS.invalid_grant } = options
  return new CliError('service_unavailable', message, { ...options, hint })
}

/**
 * Sends a refresh token (RFC 6749 section 6) once, without following redirects, and classifies the outcome. Never throws: each
 * failure of the network or the service is an outcome.
 */
export async function sendRefreshToken(io: Io, request: RefreshRequest): Promise<RefreshOutcome> {
  const { refreshToken, scope, grantedScope, base, beforeSend } = request
  const fields = { grant_type: 'refresh_token', refresh_token: refreshToken, ...(scope && { scope }) }
  const options = { signal: io.interrupts.signal, ...(beforeSend && { beforeSend }) }
  try {
    return classifyAnswer(await send(io, request, fields, scope ?? grantedScope, options))
  } catch (error) {
    return classifyNoAnswer(error, base)
  }
}

/**
 * Sends one form-encoded request to the token endpoint.
 *
 * @param scope scope of the access token if the response names none
 * @throws TransportError if no response headers arrived; CliError `redirected`, exit 7
 */
async function send(
  io: Io,
  { base, clientId }: TokenRequest,
  fields: Readonly<Record<string, string>>,
  scope: string | undefined,
  options: Pick<HttpRequest, 'beforeSend' | 'signal'> = {},
): Promise<TokenAnswer> {
  if (base.protocol !== 'https:' && !isLoopback(base.hostname))
    throw new TransportError('aborted', 'no', 'tokens are only sent encrypted')
  const request: HttpRequest = {
    method: 'POST',
    url: appendPath(base, '/oauth/token'),
    headers: {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded;charset=UTF-8',
      'user-agent': formatUserAgent(io),
    },
    body: new URLSearchParams({ client_id: clientId, ...fields }).toString(),
    timeoutMs: tokenRequestTimeoutMs(io.settings),
    freshConnection: true,
    ...options,
  }
  const response = await io.http.send(request)
  if (isRedirect(response)) throw redirectError(response, 'POST /oauth/token', secretsOf(request))
  return readAnswer(response, secretsOf(request), scope, io.clock.now())
}

/** The parsed response of the token endpoint; if the body broke off, the part that arrived. */
type TokenAnswer = ReturnType<typeof readAnswer>

/** The tokens of a 2xx response. */
interface FoundTokens {
  /** New refresh token; present even if the access token is unusable, and the other way around. */
  readonly refreshToken?: string | undefined
  readonly access?: AccessToken | undefined
  /** Why the response is unusable (missing or malformed field); undefined if it is complete. */
  readonly defect?: string | undefined
}

/**
 * Parses a token response; of a body that broke off, the part that arrived.
 *
 * Only a complete 429 or 503 with `Retry-After` proves that the service itself refused. A 429 or 503 without the header proves
 * nothing, because proxies send one after the service has processed the request. A 503 whose body is neither JSON nor empty proves
 * nothing either: a cache that loses its connection to the service sends an HTML page with its own `Retry-After`
 * (https://varnish-cache.org/docs/trunk/users-guide/vcl-built-in-subs.html, vcl_backend_error).
 *
 * @param secrets texts that messages leave out, even if the service quotes them
 * @param now milliseconds since 1970
 */
function readAnswer(
  { status, headers, text, brokenBy }: HttpResponse,
  secrets: readonly string[],
  scope: string | undefined,
  now: number,
) {
  const isSuccess = status >= 200 && status <= 299
  const whole = parseJsonObject(text)
  const body = whole ?? (isSuccess ? completePairs(text) : undefined)
  const { details } = parseErrorBody(body, { headers, text }, (said) => redactTokens(redact(said, secrets)))
  const tokens: FoundTokens = isSuccess ? readTokens(body, scope, now) : {}
  const code = oauthErrorOf(status, body?.['error'])
  const isEmpty = text === '' && !/html|xml/i.test(headers['content-type'] ?? '')
  const isOwn = status === 429 || (status === 503 && (body !== undefined || isEmpty))
  const said = details === '' ? `HTTP ${status}` : `HTTP ${status}: ${details}`
  return {
    status,
    ...tokens,
    /** Whether the body arrived as a complete JSON object; otherwise a missing token may be in the part that was cut off. */
    isComplete: whole !== undefined,
    /** The `error` of an OAuth error response (RFC 6749 section 5.2). */
    error: code && redact(code, secrets).slice(0, 100),
    /** The service's message with its `error`, as one short line without secrets; empty if there is none. */
    details,
    /** HTTP status, service message, transport failure and defect as one line, for messages. */
    summary: [said, brokenBy?.message, tokens.defect].filter(Boolean).join('; '),
    /** Milliseconds of `Retry-After`, only where the header proves that the service itself refused the request. */
    retryAfterMs:
      isOwn && brokenBy === undefined ? parseRetryAfterMs(headers['retry-after'], now) : undefined,
  }
}

/**
 * Matches lexical tokens of JSON: a name with its complete string or integer value, a string alone, or a bracket, by which nesting
 * is counted.
 */
const JSON_PARTS = /"\w+"\s*:\s*(?:"(?:[^"\\]|\\.)*"|\d+(?=\s*[,}]))|"(?:[^"\\]|\\.)*"(?=\s*[:,\]}])|[[\]{}]/g

/**
 * Returns the complete name/value pairs at the top level of a JSON object that is cut off or has an invalid pair; undefined if
 * there are none. The refresh token that the service has just issued may be among the pairs, and losing it would end the session.
 */
function completePairs(text: string): Record<string, unknown> | undefined {
  if (!/^\s*\{/.test(text)) return undefined
  let depth = 0
  const pairs = [...text.matchAll(JSON_PARTS)].flatMap(([part]) => {
    depth += /^[[{]/.test(part) ? 1 : /^[\]}]/.test(part) ? -1 : 0
    return depth === 1 ? Object.entries(parseJsonObject(`{${part}}`) ?? {}) : []
  })
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs)
}

/**
 * Returns the `error` of an OAuth error response; undefined for any other response. By RFC 6749 section 5.2 the status is 400 or
 * 401. Another 4xx status is accepted if `error` looks like a code, except statuses that servers and proxies use for connection
 * problems: after such a status, the service may have processed the request.
 */
function oauthErrorOf(status: number, error: unknown): string | undefined {
  if (typeof error !== 'string' || error === '' || status < 400 || status > 499) return undefined
  if (status === 400 || status === 401) return error
  return [408, 421, 425, 499].includes(status) || !/^[a-z][a-z0-9_.-]*$/.test(error) ? undefined : error
}

/**
 * Reads both tokens of a 2xx response (RFC 6749 section 5.1), each independently of the other, because a defect elsewhere in the
 * response must not lose the new refresh token. For the same reason any 2xx status and content type, null fields and a cut body are
 * accepted.
 *
 * @param scope scope of the access token if the response names none
 */
function readTokens(
  body: Readonly<Record<string, unknown>> | undefined,
  scope: string | undefined,
  now: number,
): FoundTokens {
  if (body === undefined) return { defect: 'it is not a JSON object' }
  const refreshToken = nonEmptyText(body['refresh_token'])
  const accessToken = nonEmptyText(body['access_token'])
  const type = body['token_type'] ?? 'Bearer'
  const seconds = body['expires_in']
  // Some services send `expires_in` as a string, so accept a string as well.
  const lifetime = typeof seconds === 'number' ? seconds : Number(nonEmptyText(seconds))
  if (accessToken === undefined) return { refreshToken, defect: 'it has no access_token' }
  if (!isBearerToken(accessToken)) return { refreshToken, defect: 'its access_token is not a token' }
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    return { refreshToken, defect: 'its token_type is not Bearer' }
  // An invalid `expires_in` gets the default lifetime, because the access token itself is usable.
  const lifetimeSeconds = lifetime > 0 ? Math.min(lifetime, MAX_LIFETIME_SECONDS) : DEFAULT_LIFETIME_SECONDS
  const access = {
    value: accessToken,
    scope: nonEmptyText(body['scope']) ?? scope ?? null,
    expiresAt: now + lifetimeSeconds * 1000,
    lifetimeSeconds,
  }
  return { refreshToken, access, defect: refreshToken === undefined ? 'it has no refresh_token' : undefined }
}

function nonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Classifies the response to a refresh request. The refresh token is treated as unused only if the response proves a refusal. */
function classifyAnswer(answer: TokenAnswer): RefreshOutcome {
  const { status, refreshToken, access, defect, error, details, summary, retryAfterMs } = answer
  if (refreshToken !== undefined) return { kind: 'success', refreshToken, access, why: defect }
  if (error === 'invalid_grant') return { kind: 'over', description: details }
  if (retryAfterMs !== undefined) {
    const message = `the service did not renew the session in time (${summary})`
    const hint = 'the session is untouched; run the command again later'
    const later = new CliError('service_unavailable', message, { hint, status, retryAfterMs })
    return { kind: 'unused', error: later, isTransient: true }
  }
  // A 429 without `Retry-After` proves nothing, even with an OAuth error in its body: a proxy may have sent it after the service
  // rotated the token. So the outcome is `unknown` then.
  if (error !== undefined && status !== 429)
    return { kind: 'unused', error: oauthError(error, details, status), isTransient: false }
  return { kind: 'unknown', why: summary }
}

/** Classifies a refresh request without a response: the refresh token is unused only if no byte can have left this machine. */
function classifyNoAnswer(error: unknown, base: URL): RefreshOutcome {
  if (!(error instanceof TransportError) || error.sent === 'maybe')
    return { kind: 'unknown', why: error instanceof Error ? error.message : String(error) }
  // The cause is a `CliError` if `beforeSend` threw one or an interrupt canceled the request. Pass it on, because it explains more
  // than a network error.
  if (error.cause instanceof CliError) return { kind: 'unused', error: error.cause, isTransient: false }
  const message = `the service at ${formatUrl(base)} cannot be reached: ${error.message}`
  const hint = TRANSPORT_HINTS[error.kind] ?? 'the session is untouched; check the network: mailclaim doctor'
  const failure = new CliError('unreachable', message, { hint, cause: error })
  return { kind: 'unused', error: failure, isTransient: error.kind === 'lookup' || error.kind === 'connect' }
}
