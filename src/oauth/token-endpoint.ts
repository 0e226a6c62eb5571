import { type HttpRequest, type HttpResponse, HttpTransportError } from '../context.ts'
import { CliError } from '../errors.ts'
import { formatUserAgent } from '../service/client.ts'
import { secretsToRedact } from '../service/log.ts'
import {
  isRedirect,
  noResponseError,
  parseErrorBody,
  parseJsonObject,
  redirectError,
  TRANSPORT_HINTS,
} from '../service/problems.ts'
import { parseRetryAfterMs } from '../service/retry.ts'
import { appendPath, isLoopback, normalizeUrl } from '../settings/addresses.ts'
import { canBeBearerToken } from '../settings/parse-value.ts'
import type { Settings } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { redact, redactTokens } from '../terminal/redact.ts'
import { OAUTH_ERROR_HINTS, oauthError } from './errors.ts'

interface TokenRequest {
  /** Base URL of the service; its token endpoint is `{base}/oauth/token`. */
  readonly base: URL
  readonly clientId: string
}

export interface CodeExchangeRequest extends TokenRequest {
  readonly code: string
  readonly redirectUri: string
  readonly codeVerifier: string
  /**
   * Scope of the authorization request; undefined if it had none. A token response without `scope` grants this scope (RFC 6749
   * section 5.1).
   */
  readonly requestedScope: string | undefined
}

/**
 * Refresh request (RFC 6749 section 6). `beforeSend` runs just before its first byte is written; if `beforeSend` throws, nothing is
 * sent.
 */
interface RefreshRequest extends TokenRequest, Pick<HttpRequest, 'beforeSend'> {
  readonly refreshToken: string
  /** Scopes, separated by spaces, to which the new access token is narrowed; undefined requests the complete scope of the grant. */
  readonly scope: string | undefined
  /** Scope of the grant, assumed for the new access token if neither `scope` nor the response names one. */
  readonly grantedScope: string | undefined
}

/** Usable access token from a token response (RFC 6749 section 5.1). */
export interface AccessToken {
  readonly value: string
  /** Scopes that the token grants, separated by spaces; null if unknown. */
  readonly scope: string | null
  /** Expiry in milliseconds since 1970 by this machine's clock. The service may refuse the token (401) earlier. */
  readonly expiresAt: number
  readonly lifetimeSeconds: number
}

export interface TokenPair {
  readonly access: AccessToken
  readonly refreshToken: string
}

/** Outcome of a refresh request, by what it means for the refresh token that was sent. */
export type RefreshTokenOutcome =
  /**
   * The response has a refresh token, which the caller has to store in place of the one that was sent. `access` is undefined if the
   * response has no usable access token; `defect` then says why.
   */
  | {
      readonly kind: 'success'
      readonly refreshToken: string
      readonly access: AccessToken | undefined
      readonly defect: string | undefined
    }
  /** `invalid_grant`: the service no longer accepts the refresh token, so the user has to sign in again. */
  | { readonly kind: 'over'; readonly description: string | undefined }
  /**
   * Nothing was sent, or the service refused the request, so the same refresh token may be sent again. If `isTransient`, a
   * later attempt may succeed.
   */
  | { readonly kind: 'unused'; readonly error: CliError; readonly isTransient: boolean }
  /**
   * The service may have rotated the refresh token. So the old one must not be sent again unless the user asks for it
   * (`--retry-interrupted`): reuse could revoke the grant. `why` describes the response or the error.
   */
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * Lifetime in seconds of an access token without a valid `expires_in`; shorter than services usually grant, so that the token is
 * renewed in time.
 */
const DEFAULT_LIFETIME_SECONDS = 300
/** Maximum lifetime of an access token in seconds, even if `expires_in` is larger: the expiry could exceed the range of `Date`. */
const MAX_LIFETIME_SECONDS = 366 * 24 * 3600
/**
 * Minimum time limit of a token request in milliseconds. A code or refresh token may work only once, so a short `--http-timeout`
 * must not abort the request that sends it.
 */
const MIN_TIMEOUT_MS = 30_000

export function tokenRequestTimeoutMs(settings: Pick<Settings, 'httpTimeoutMs'>): number {
  return Math.max(settings.httpTimeoutMs, MIN_TIMEOUT_MS)
}

/**
 * Exchanges an authorization code for tokens (RFC 6749 section 4.1.3 with RFC 7636 section 4.5).
 *
 * @throws CliError without a response, or for a response that lacks one of the tokens
 */
export async function exchangeCode(io: Io, request: CodeExchangeRequest): Promise<TokenPair> {
  const { code, codeVerifier: code_verifier, redirectUri: redirect_uri, requestedScope } = request
  const fields = { grant_type: 'authorization_code', code, redirect_uri, code_verifier }
  const response = await postForm(io, request, fields, requestedScope).catch((error: unknown) => {
    if (!(error instanceof HttpTransportError)) throw error
    const { hint } = error.sent === 'no' ? noResponseError(error, request.base, 'POST') : {}
    throw exchangeError(error.message, { cause: error, hint })
  })
  const { status, refreshToken, access, isComplete, error, details, summary } = response
  if (access !== undefined && refreshToken !== undefined) return { access, refreshToken }
  if (access !== undefined && isComplete) throw oauthError('no_refresh_token', '')
  if (error !== undefined && status !== 429) throw oauthError(error, details, status)
  throw exchangeError(summary, { status })
}

/**
 * Creates the error `service_unavailable` for a code exchange without a usable response. The default hint is to sign in again,
 * because a code works only once.
 */
function exchangeError(why: string, options: { status?: number; cause?: Error; hint?: string | undefined }) {
  const message = `the sign-in was approved, but the code could not be exchanged for tokens: ${why}`
  const { hint = OAUTH_ERROR_HINTS.invalid_grant } = options
  return new CliError('service_unavailable', message, { ...options, hint })
}

/** Sends a refresh request and classifies its outcome. Never throws: a failure, even an interrupt, becomes an outcome. */
export async function sendRefreshToken(io: Io, request: RefreshRequest): Promise<RefreshTokenOutcome> {
  const { refreshToken, scope, grantedScope, base, beforeSend } = request
  const fields = { grant_type: 'refresh_token', refresh_token: refreshToken, ...(scope && { scope }) }
  const options = { signal: io.interrupts.signal, ...(beforeSend && { beforeSend }) }
  try {
    return classifyResponse(await postForm(io, request, fields, scope ?? grantedScope, options))
  } catch (error) {
    return classifyFailure(error, base)
  }
}

/**
 * Sends one form-encoded request to the token endpoint, on a new connection.
 *
 * @param scope scope of the access token if the response names none
 * @throws HttpTransportError if no response headers arrived, or `base` is plain http to another machine; CliError `redirected`
 */
async function postForm(
  io: Io,
  { base, clientId }: TokenRequest,
  fields: Readonly<Record<string, string>>,
  scope: string | undefined,
  options: Pick<HttpRequest, 'beforeSend' | 'signal'> = {},
): Promise<TokenResponse> {
  if (base.protocol !== 'https:' && !isLoopback(base.hostname))
    throw new HttpTransportError('aborted', 'no', 'tokens are only sent encrypted')
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
  if (isRedirect(response)) throw redirectError(response, 'POST /oauth/token', secretsToRedact(request))
  return parseTokenResponse(response, secretsToRedact(request), scope, io.clock.now())
}

type TokenResponse = ReturnType<typeof parseTokenResponse>

/** Tokens of a token response, each undefined if missing or unusable. An unusable access token doesn't affect the refresh token. */
interface FoundTokens {
  readonly refreshToken?: string | undefined
  readonly access?: AccessToken | undefined
  /** Why a 2xx response lacks a usable token (missing or malformed field); otherwise undefined. */
  readonly defect?: string | undefined
}

/**
 * Parses a token response; if the connection broke, the part of the body that arrived.
 *
 * `retryAfterMs` is set only if the response proves that the refresh token wasn't used: a complete response with `Retry-After`
 * and the status 429, or the status 503 and a body that is empty or a JSON object. A 503 with other text, or with an empty body
 * of an HTML or XML type, is no proof: a cache that loses its connection to the service sends an HTML page with its own
 * `Retry-After` (https://varnish-cache.org/docs/trunk/users-guide/vcl-built-in-subs.html, vcl_backend_error).
 *
 * @param secrets texts to redact in messages, even if the service quotes them
 * @param scope scope of the access token if the response names none
 * @param now milliseconds since 1970
 */
function parseTokenResponse(
  { status, headers, text, brokenBy }: HttpResponse,
  secrets: readonly string[],
  scope: string | undefined,
  now: number,
) {
  const isSuccess = status >= 200 && status <= 299
  const whole = parseJsonObject(text)
  const body = whole ?? (isSuccess ? readCompletePairs(text) : undefined)
  const { details } = parseErrorBody(body, { headers, text }, (part) => redactTokens(redact(part, secrets)))
  const tokens: FoundTokens = isSuccess ? readTokens(body, scope, now) : {}
  const code = oauthErrorOf(status, body?.['error'])
  const isEmpty = text === '' && !/html|xml/i.test(headers['content-type'] ?? '')
  const isRefusal = status === 429 || (status === 503 && (body !== undefined || isEmpty))
  const answer = details === '' ? `HTTP ${status}` : `HTTP ${status}: ${details}`
  return {
    status,
    ...tokens,
    /** Whether the body is a complete JSON object; otherwise a missing token may be in the part that is cut off or malformed. */
    isComplete: whole !== undefined,
    /** The `error` of an OAuth error response (see `oauthErrorOf`) without secrets, shortened; otherwise undefined. */
    error: code && redact(code, secrets).slice(0, 100),
    /** Text about the response body for the user, from `parseErrorBody`, without secrets; may be empty. */
    details,
    /** One line for messages: the HTTP status and, as far as present, `details`, the transport failure and `defect`. */
    summary: [answer, brokenBy?.message, tokens.defect].filter(Boolean).join('; '),
    /** Milliseconds of `Retry-After` if a complete response refuses the request temporarily; otherwise undefined. */
    retryAfterMs:
      isRefusal && brokenBy === undefined ? parseRetryAfterMs(headers['retry-after'], now) : undefined,
  }
}

/**
 * Matches a part of JSON text that `readCompletePairs` needs: a name with its complete string or integer value, another complete
 * string (so that brackets inside it don't count), or a bracket.
 */
const JSON_PARTS = /"\w+"\s*:\s*(?:"(?:[^"\\]|\\.)*"|\d+(?=\s*[,}]))|"(?:[^"\\]|\\.)*"(?=\s*[:,\]}])|[[\]{}]/g

/**
 * Recovers complete name/value pairs (strings and integers) from the top level of a JSON object that is cut off or invalid;
 * undefined if there are none. One of them may be the new refresh token, and losing it would end the session.
 */
function readCompletePairs(text: string): Record<string, unknown> | undefined {
  if (!/^\s*\{/.test(text)) return undefined
  let depth = 0
  const pairs = [...text.matchAll(JSON_PARTS)].flatMap(([part]) => {
    depth += /^[[{]/.test(part) ? 1 : /^[\]}]/.test(part) ? -1 : 0
    return depth === 1 ? Object.entries(parseJsonObject(`{${part}}`) ?? {}) : []
  })
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs)
}

/**
 * Returns the `error` of an OAuth error response: status 400 or 401 (RFC 6749 section 5.2), or another 4xx if `error` looks like a
 * code; otherwise undefined. 408, 421, 425 and 499 don't count: servers and proxies use them for connection problems, after which
 * the service may have processed the request.
 */
function oauthErrorOf(status: number, error: unknown): string | undefined {
  if (typeof error !== 'string' || error === '' || status < 400 || status > 499) return undefined
  if (status === 400 || status === 401) return error
  return [408, 421, 425, 499].includes(status) || !/^[a-z][a-z0-9_.-]*$/.test(error) ? undefined : error
}

/**
 * Reads both tokens of a 2xx response (RFC 6749 section 5.1), each independently of the other, so that a defect elsewhere in the
 * response can't lose the new refresh token.
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
  if (!canBeBearerToken(accessToken)) return { refreshToken, defect: 'its access_token is not a token' }
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    return { refreshToken, defect: 'its token_type is not Bearer' }
  // Without a valid `expires_in`, assume the default lifetime: the access token itself is usable.
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

/**
 * Classifies the response to a refresh request. `unused`, after which the refresh token may be sent again, requires proof that the
 * service refused the request: reuse of a rotated refresh token could revoke the grant.
 */
function classifyResponse(response: TokenResponse): RefreshTokenOutcome {
  const { status, refreshToken, access, defect, error, details, summary, retryAfterMs } = response
  if (refreshToken !== undefined) return { kind: 'success', refreshToken, access, defect }
  if (error === 'invalid_grant') return { kind: 'over', description: details }
  if (retryAfterMs !== undefined) {
    const message = `the service did not renew the session in time (${summary})`
    const hint = 'the session is untouched; run the command again later'
    const later = new CliError('service_unavailable', message, { hint, status, retryAfterMs })
    return { kind: 'unused', error: later, isTransient: true }
  }
  // A 429 that reaches this line has no valid `Retry-After`, or its body broke off. It is no proof of a refusal, even with an OAuth
  // error: a proxy may have sent it after the service rotated the token.
  if (error !== undefined && status !== 429)
    return { kind: 'unused', error: oauthError(error, details, status), isTransient: false }
  return { kind: 'unknown', why: summary }
}

/**
 * Classifies a refresh request by the error that it failed with. The refresh token counts as unused only if no byte of the request
 * can have left this machine.
 */
function classifyFailure(error: unknown, base: URL): RefreshTokenOutcome {
  if (!(error instanceof HttpTransportError) || error.sent === 'maybe')
    return { kind: 'unknown', why: error instanceof Error ? error.message : String(error) }
  // The cause is a `CliError` if `beforeSend` threw one or an interrupt canceled the request. Return it, because it explains more
  // than a network error.
  if (error.cause instanceof CliError) return { kind: 'unused', error: error.cause, isTransient: false }
  const message = `the service at ${normalizeUrl(base)} cannot be reached: ${error.message}`
  const hint = TRANSPORT_HINTS[error.kind] ?? 'the session is untouched; check the network: mailclaim doctor'
  const failure = new CliError('unreachable', message, { hint, cause: error })
  return { kind: 'unused', error: failure, isTransient: error.kind === 'lookup' || error.kind === 'connect' }
}
