import { type HttpRequest, type HttpResponse, TransportError } from '../context.ts'
import { CliError } from '../errors.ts'
import { userAgent } from '../service/client.ts'
import { secretsOf } from '../service/log.ts'
import {
  isRedirect,
  parseObject,
  parseProblem,
  redirectError,
  transportFailure,
  transportHint,
} from '../service/problems.ts'
import { parseRetryAfter } from '../service/retry.ts'
import { isLoopback, issuerOf, operationUrl } from '../settings/addresses.ts'
import { isBearerToken } from '../settings/parse-value.ts'
import type { Settings } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { redact, redactTokens } from '../terminal/redact.ts'
import { oauthError } from './errors.ts'

interface TokenRequest {
  /** The base URL of the service; its path is kept. */
  readonly base: URL
  readonly clientId: string
}

/** A code of the redirect, and what it was requested with (RFC 6749 section 4.1.3, RFC 7636 section 4.5). */
export interface CodeExchange extends TokenRequest {
  readonly code: string
  readonly redirectUri: string
  readonly codeVerifier: string
  /** The scope of the authorization request, in case the answer names none (RFC 6749 section 5.1). */
  readonly requestedScope: string | undefined
}

/** `beforeSend` is the last moment before any byte of the token leaves this machine. */
interface RefreshRequest extends TokenRequest, Pick<HttpRequest, 'beforeSend'> {
  readonly refreshToken: string
  /** Narrows the new access token; undefined asks for the whole scope of the grant. */
  readonly scope: string | undefined
  /** The scope of the grant, in case the answer names none. */
  readonly grantedScope: string | undefined
}

/** An access token from an answer (RFC 6749 section 5.1), with defaults for what the service left out. */
export interface AccessToken {
  readonly value: string
  /** Separated by spaces; null if neither the service nor the request named any. */
  readonly scope: string | null
  /** Wall-clock milliseconds. A wrong clock costs one 401 and one renewal. */
  readonly expiresAt: number
  readonly lifetimeSeconds: number
}

/** A whole token response: what a session is made of. */
export interface Tokens {
  readonly access: AccessToken
  readonly refreshToken: string
}

/** What became of a refresh token that was sent. */
export type RefreshOutcome =
  /**
   * The service rotated the token: `refreshToken` is its successor, to be stored whatever else the answer contains.
   * `access` is undefined if the access token can't be used; `why` then says what is wrong with it.
   */
  | {
      readonly kind: 'success'
      readonly refreshToken: string
      readonly access: AccessToken | undefined
      readonly why: string | undefined
    }
  /** `invalid_grant`: the token is worthless, and the session is over. */
  | { readonly kind: 'over'; readonly description: string | undefined }
  /**
   * Nothing was sent, or the service refused: the token can be sent again once the cause is gone. If that `passes`, waiting is
   * enough, as long as the error says if it does.
   */
  | { readonly kind: 'unused'; readonly error: CliError; readonly passes: boolean }
  /** The service may have rotated the token: it must not be sent again. `why` quotes the service. */
  | { readonly kind: 'unknown'; readonly why: string }

/** If the service doesn't say how long a token is valid: far less than any service of this kind grants. */
const DEFAULT_LIFETIME_SECONDS = 300
/** More than any access token gets, and far below the limit of a timer. */
const MAX_LIFETIME_SECONDS = 366 * 24 * 3600
/** Codes and refresh tokens work once, so a shorter time limit, meant for lists, doesn't apply to them. */
const MIN_TIMEOUT_MS = 30_000

/** Milliseconds that the token endpoint may take to answer. */
export function tokenTimeoutMs(settings: Pick<Settings, 'httpTimeoutMs'>): number {
  return Math.max(settings.httpTimeoutMs, MIN_TIMEOUT_MS)
}

/**
 * Exchanges an authorization code for tokens (RFC 6749 section 4.1.3 with RFC 7636 section 4.5).
 *
 * @throws CliError for every error of the interface's section 7.1 with the cause in its message, exit 3, 4 or 6;
 *   `no_refresh_token`, exit 6; exit 7 without a usable answer.
 */
export async function exchangeCode(io: Io, request: CodeExchange): Promise<Tokens> {
  const { code, codeVerifier, redirectUri, requestedScope } = request
  const fields = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    code_verifier: codeVerifier,
  }
  let answer: TokenAnswer
  try {
    answer = await send(io, request, fields, requestedScope)
  } catch (error) {
    if (!(error instanceof TransportError)) throw error
    const { hint } = error.sent === 'no' ? transportFailure(error, request.base, 'POST') : {}
    throw exchangeFailed(error.message, { cause: error, ...(hint && { hint }) })
  }
  const { status, refreshToken, access, error, details, summary } = answer
  if (access !== undefined && refreshToken !== undefined) return { access, refreshToken }
  if (access !== undefined) throw oauthError('no_refresh_token', '')
  if (error !== undefined && status !== 429) throw oauthError(error, details, status)
  throw exchangeFailed(summary, { status })
}

/** The error for a code exchange that brought neither tokens nor an OAuth error. */
function exchangeFailed(why: string, options: { status?: number; cause?: Error; hint?: string }): CliError {
  const message = `the sign-in was approved, but the code could not be exchanged for tokens: ${why}`
  const hint = 'sign in again, because a code works once'
  return new CliError('service_unavailable', message, { hint, ...options })
}

/**
 * Sends a refresh token (RFC 6749 section 6) once and says what became of it. No redirect is followed and nothing is sent
 * again. Doesn't throw, whatever the network or the service does.
 */
export async function refresh(io: Io, request: RefreshRequest): Promise<RefreshOutcome> {
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
 * Sends one request to the token endpoint (section 4.1), form-encoded.
 *
 * @param scope that of the access token if the answer names none
 * @throws TransportError if not even the head of an answer arrived; CliError `redirected`, exit 7
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
    url: operationUrl(base, '/oauth/token'),
    headers: {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded;charset=UTF-8',
      'user-agent': userAgent(io),
    },
    body: new URLSearchParams({ client_id: clientId, ...fields }).toString(),
    timeoutMs: tokenTimeoutMs(io.settings),
    freshConnection: true,
    ...options,
  }
  const response = await io.http.send(request)
  if (isRedirect(response)) throw redirectError(response, 'POST /oauth/token', secretsOf(request))
  return readAnswer(response, secretsOf(request), scope, io.clock.now())
}

/** As much of the token endpoint's answer as arrived. */
interface TokenAnswer {
  readonly status: number
  /** The tokens of a success, independent of each other. */
  readonly refreshToken?: string | undefined
  readonly access?: AccessToken | undefined
  /** What is wrong with a success, if anything is. */
  readonly lack?: string | undefined
  /** The `error` of an OAuth error response (RFC 6749 section 5.2). */
  readonly error: string | undefined
  /** What the service says, the error included: one short line without secrets; empty if it says nothing. */
  readonly details: string
  /** The status with all of that, for a message. */
  readonly summary: string
  /** How long the service asks to wait, where that proves that it refused the request. */
  readonly retryAfterMs: number | undefined
}

/**
 * Reads an answer as far as it goes: whatever ends the body too early, what arrived is used.
 *
 * Only a complete 429 or 503 with `Retry-After` proves that the service itself refused. A bare one proves nothing, because
 * proxies send it after the service has processed the request. Nor does a 503 with anything but JSON in it: a cache that
 * loses its connection to the service at that moment sends a page, with a `Retry-After` of its own
 * (https://varnish-cache.org/docs/trunk/users-guide/vcl-built-in-subs.html, vcl_backend_error).
 *
 * @param secrets what no message may contain, even if the service quotes it
 */
function readAnswer(
  { status, headers, text, brokenBy }: HttpResponse,
  secrets: readonly string[],
  scope: string | undefined,
  now: number,
): TokenAnswer {
  const isSuccess = status >= 200 && status <= 299
  const body = parseObject(text) ?? (isSuccess ? completePairs(text) : undefined)
  const { details } = parseProblem(body, { headers, text }, (said) => redactTokens(redact(said, secrets)))
  const tokens = isSuccess ? readTokens(body, scope, now) : {}
  const code = oauthErrorOf(status, body?.['error'])
  const isEmpty = text === '' && !/html|xml/i.test(headers['content-type'] ?? '')
  const isOwn = status === 429 || (status === 503 && (body !== undefined || isEmpty))
  const said = details === '' ? `HTTP ${status}` : `HTTP ${status}: ${details}`
  return {
    status,
    ...tokens,
    error: code && redact(code, secrets).slice(0, 100),
    details,
    summary: [said, brokenBy?.message, tokens.lack].filter(Boolean).join('; '),
    retryAfterMs: isOwn && brokenBy === undefined ? parseRetryAfter(headers['retry-after'], now) : undefined,
  }
}

/** A pair whose value is a text or a number; else a text of its own, or a bracket, so that a pair's depth can be counted. */
const JSON_PARTS = /"\w+"\s*:\s*(?:"(?:[^"\\]|\\.)*"|\d+(?=\s*[,}]))|"(?:[^"\\]|\\.)*"(?=\s*[:,\]}])|[[\]{}]/g

/**
 * Returns the complete pairs at the top level of a JSON object that breaks off or has an invalid pair: a refresh token that was just
 * rotated may be among them. Undefined if there are none.
 */
function completePairs(text: string): Record<string, unknown> | undefined {
  if (!/^\s*\{/.test(text)) return undefined
  let depth = 0
  const pairs = [...text.matchAll(JSON_PARTS)].flatMap(([part]) => {
    depth += /^[[{]/.test(part) ? 1 : /^[\]}]/.test(part) ? -1 : 0
    return depth === 1 ? Object.entries(parseObject(`{${part}}`) ?? {}) : []
  })
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs)
}

/**
 * The `error` of an OAuth error response. By RFC 6749 section 5.2 its status is 400 or 401. Other 4xx statuses count if
 * `error` looks like a code, except those that servers and proxies use for connection problems, when the request may
 * have been processed.
 */
function oauthErrorOf(status: number, error: unknown): string | undefined {
  if (typeof error !== 'string' || error === '' || status < 400 || status > 499) return undefined
  if (status === 400 || status === 401) return error
  return [408, 421, 425, 499].includes(status) || !/^[a-z][a-z0-9_.-]*$/.test(error) ? undefined : error
}

/**
 * Reads the tokens in a success (RFC 6749 section 5.1), independently of each other, because a refresh token that was just
 * rotated must not be lost over anything else that is wrong. Lenient for the same reason: any 2xx status, any content
 * type, null for a missing field, a body that breaks off after the tokens.
 *
 * @param scope that of the access token if the answer names none
 */
function readTokens(
  body: Readonly<Record<string, unknown>> | undefined,
  scope: string | undefined,
  now: number,
): Pick<TokenAnswer, 'refreshToken' | 'access' | 'lack'> {
  if (body === undefined) return { lack: 'it is not a JSON object' }
  const refreshToken = textOf(body['refresh_token'])
  const accessToken = textOf(body['access_token'])
  const type = body['token_type'] ?? 'Bearer'
  const seconds = body['expires_in']
  // Some services send it as text.
  const lifetime = typeof seconds === 'number' ? seconds : Number(textOf(seconds))
  if (accessToken === undefined) return { refreshToken, lack: 'it has no access_token' }
  if (!isBearerToken(accessToken)) return { refreshToken, lack: 'its access_token is not a token' }
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    return { refreshToken, lack: 'its token_type is not Bearer' }
  // An invalid lifetime is not worth losing the token over.
  const lifetimeSeconds = lifetime > 0 ? Math.min(lifetime, MAX_LIFETIME_SECONDS) : DEFAULT_LIFETIME_SECONDS
  const access = {
    value: accessToken,
    scope: textOf(body['scope']) ?? scope ?? null,
    expiresAt: now + lifetimeSeconds * 1000,
    lifetimeSeconds,
  }
  return { refreshToken, access, lack: refreshToken === undefined ? 'it has no refresh_token' : undefined }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Classifies the answer to a refresh. The token counts as unused only if the answer proves that the service refused. */
function classifyAnswer(answer: TokenAnswer): RefreshOutcome {
  const { status, refreshToken, access, lack, error, details, summary, retryAfterMs } = answer
  if (refreshToken !== undefined) return { kind: 'success', refreshToken, access, why: lack }
  if (error === 'invalid_grant') return { kind: 'over', description: details }
  if (retryAfterMs !== undefined) {
    const message = `the service did not renew the session in time (${summary})`
    const hint = 'the session is untouched; run the command again later'
    const options = { hint, status, retryAfterMs }
    const later = new CliError('service_unavailable', message, options)
    return { kind: 'unused', error: later, passes: true }
  }
  // A 429 without `Retry-After` proves nothing, whatever is in it.
  if (error !== undefined && status !== 429)
    return { kind: 'unused', error: oauthError(error, details, status), passes: false }
  return { kind: 'unknown', why: summary }
}

/** Classifies a request that got no answer: the token is unused only if nothing can have left this machine. */
function classifyNoAnswer(error: unknown, base: URL): RefreshOutcome {
  if (!(error instanceof TransportError) || error.sent === 'maybe')
    return { kind: 'unknown', why: error instanceof Error ? error.message : String(error) }
  // `beforeSend` threw it, or it is the reason of the signal.
  if (error.cause instanceof CliError) return { kind: 'unused', error: error.cause, passes: false }
  const message = `the service at ${issuerOf(base)} cannot be reached: ${error.message}`
  const hint = transportHint(error, 'the session is untouched; check the network: mailclaim doctor')
  const failure = new CliError('unreachable', message, { hint, cause: error })
  return { kind: 'unused', error: failure, passes: error.kind === 'lookup' || error.kind === 'connect' }
}
