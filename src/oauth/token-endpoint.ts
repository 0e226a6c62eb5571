import * as oauth from 'oauth4webapi'
import { type Context, TransportError } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { isBearerToken } from '../service/authorizer.ts'
import { userAgent } from '../service/client.ts'
import { logExchanges } from '../service/exchange-log.ts'
import { parseRetryAfter } from '../service/retry.ts'
import { isLoopback, issuerOf, operationUrl } from '../settings/addresses.ts'
import type { Settings } from '../settings/settings.ts'
import { transportFetch } from './fetch.ts'
import { describeAnswer, readTokenAnswer, type TokenAnswer } from './token-answer.ts'
import {
  exchangeRefused,
  exchangeUnanswered,
  exchangeUnusable,
  noRefreshToken,
  refreshRefused,
} from './token-errors.ts'

/** What a request for tokens of any grant type needs. */
interface TokenRequest {
  /** The base URL of the service; its path is kept. */
  readonly base: URL
  readonly clientId: string
  /** The time limit for the whole answer, and whether the exchange is shown. */
  readonly settings: Pick<Settings, 'httpTimeoutMs' | 'verbose'>
}

/** What a request for tokens takes from the context. */
type TokenContext = Pick<Context, 'http' | 'clock' | 'stderr' | 'program' | 'platform'>

export interface CodeExchange extends TokenRequest {
  /** The result of `validateAuthResponse` of oauth4webapi. */
  readonly callback: URLSearchParams
  readonly redirectUri: string
  readonly codeVerifier: string
  /** The scope of the authorization request, in case the answer names none (RFC 6749 section 5.1). */
  readonly requestedScope: string | undefined
  /** The command that signs in again, for hints. */
  readonly login: string
}

export interface RefreshRequest extends TokenRequest {
  readonly refreshToken: string
  /** Narrows the new access token; undefined asks for the whole scope of the grant. */
  readonly scope: string | undefined
  /** The scope of the grant, in case the answer names none. */
  readonly grantedScope: string | undefined
  /** See `HttpRequest`: the last moment before any byte of the token leaves this machine. */
  readonly beforeSend?: () => void | Promise<void>
  readonly signal?: AbortSignal
}

/** An access token from an answer (RFC 6749 section 5.1), with defaults for what the service left out. */
export interface AccessTokenGrant {
  readonly accessToken: string
  /** From when the answer arrived. */
  readonly expiresInSeconds: number
  /** Separated by spaces; undefined if neither the service nor the request named any. */
  readonly scope: string | undefined
}

/** A whole token response: what a session is made of. */
export interface Tokens extends AccessTokenGrant {
  readonly refreshToken: string
}

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
 * Sends an authorization code (RFC 6749 section 4.1.3 with RFC 7636 section 4.5).
 *
 * @throws TransportError if not even the head of an answer arrived.
 */
async function sendCode(context: TokenContext, request: CodeExchange): Promise<TokenAnswer> {
  const response = await oauth.authorizationCodeGrantRequest(
    serverOf(request),
    { client_id: request.clientId },
    oauth.None(),
    request.callback,
    request.redirectUri,
    request.codeVerifier,
    requestOptions(context, request),
  )
  return readTokenAnswer(response, [request.callback.get('code') ?? '', request.codeVerifier])
}

/**
 * Sends a refresh token (RFC 6749 section 6), once: no redirect is followed and nothing is sent again.
 *
 * @throws TransportError if not even the head of an answer arrived.
 */
async function sendRefresh(context: TokenContext, request: RefreshRequest): Promise<TokenAnswer> {
  const response = await oauth.refreshTokenGrantRequest(
    serverOf(request),
    { client_id: request.clientId },
    oauth.None(),
    request.refreshToken,
    {
      ...requestOptions(context, request),
      ...(request.scope === undefined ? {} : { additionalParameters: { scope: request.scope } }),
    },
  )
  return readTokenAnswer(response, [request.refreshToken])
}

function serverOf({ base }: TokenRequest): oauth.AuthorizationServer {
  return { issuer: issuerOf(base), token_endpoint: operationUrl(base, '/oauth/token').href }
}

function requestOptions(
  context: TokenContext,
  { base, settings, beforeSend, signal }: TokenRequest & Pick<RefreshRequest, 'beforeSend' | 'signal'>,
) {
  return {
    [oauth.allowInsecureRequests]: isLoopback(base.hostname),
    [oauth.customFetch]: transportFetch(
      settings.verbose ? logExchanges(withForgivingStderr(context), { issuesTokens: true }) : context.http,
      {
        timeoutMs: tokenTimeoutMs(settings),
        userAgent: userAgent(context),
        freshConnection: true,
        ...(beforeSend === undefined ? {} : { beforeSend }),
        ...(signal === undefined ? {} : { signal }),
      },
    ),
  }
}

/** If the reader of stderr has gone away, an answer must still count as an answer. */
function withForgivingStderr(context: TokenContext): TokenContext {
  const { stderr } = context
  const write = (text: string) => stderr.write(text).catch(() => undefined)
  return { ...context, stderr: { isTTY: stderr.isTTY, columns: stderr.columns, write } }
}

/**
 * Exchanges an authorization code for tokens.
 *
 * @throws CliError for every error of the interface's section 7.1 with the cause in its message, exit 3, 4 or 6;
 *   `no_refresh_token`, exit 6; exit 7 without a usable answer.
 */
export async function exchangeCode(context: TokenContext, request: CodeExchange): Promise<Tokens> {
  let answer: TokenAnswer
  try {
    answer = await sendCode(context, request)
  } catch (error) {
    if (!(error instanceof TransportError)) throw error
    throw exchangeUnanswered(error, request.login)
  }
  const { refreshToken, access, why } = readTokens(answer, request.requestedScope)
  if (access !== undefined && refreshToken !== undefined) return { ...access, refreshToken }
  if (access !== undefined) throw noRefreshToken(request.login)
  if (answer.error !== undefined) throw exchangeRefused(answer.error, answer, request.login)
  if (answer.truncatedBy !== undefined) throw exchangeUnanswered(answer.truncatedBy, request.login)
  throw exchangeUnusable(answer, why, request.login)
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
      readonly access: AccessTokenGrant | undefined
      readonly why: string | undefined
    }
  /** `invalid_grant`: the token is worthless, and the session is over. */
  | { readonly kind: 'over'; readonly description: string | undefined }
  /** Nothing was sent, or the service refused: the token can be sent again once the cause is gone. */
  | { readonly kind: 'not_consumed'; readonly error: CliError }
  /** The same, and waiting is enough. `afterMs` is undefined if nobody says how long. */
  | { readonly kind: 'retry_after'; readonly afterMs: number | undefined; readonly error: CliError }
  /**
   * The service may have rotated the token: it must not be sent again. `why` quotes the service. `access` is an access
   * token that came without a new refresh token: good for its lifetime.
   */
  | { readonly kind: 'unknown'; readonly why: string; readonly access: AccessTokenGrant | undefined }

/**
 * Refreshes once and says what became of the token that was sent. Doesn't throw, whatever the network or the service
 * does.
 */
export async function refresh(context: TokenContext, request: RefreshRequest): Promise<RefreshOutcome> {
  let answer: TokenAnswer
  try {
    answer = await sendRefresh(context, request)
  } catch (error) {
    return classifyNoAnswer(error, request.base)
  }
  return classifyRefreshAnswer(answer, request.scope ?? request.grantedScope, context.clock.now())
}

/** Classifies a request that got no answer: the token is unused only if nothing can have left this machine. */
function classifyNoAnswer(error: unknown, base: URL): RefreshOutcome {
  if (!(error instanceof TransportError) || error.sent === 'maybe') {
    const why = error instanceof Error ? error.message : String(error)
    return { kind: 'unknown', why, access: undefined }
  }
  // `beforeSend` threw it, or it is the reason of the signal.
  if (error.cause instanceof CliError) return { kind: 'not_consumed', error: error.cause }
  const failure = new CliError(
    'service_unreachable',
    Exit.unavailable,
    `the service at ${issuerOf(base)} cannot be reached: ${error.message}`,
    {
      hint: 'the session is untouched; check the network and run the command again (mailclaim doctor helps)',
      cause: error,
    },
  )
  const passing = error.kind === 'lookup' || error.kind === 'connect'
  return passing
    ? { kind: 'retry_after', afterMs: undefined, error: failure }
    : { kind: 'not_consumed', error: failure }
}

/**
 * Classifies the answer to a refresh. The token counts as unused only if the answer proves that the service itself refused:
 * an OAuth error response, or a complete 429 or 503 with `Retry-After`. A bare 429 or 503 proves nothing, because proxies
 * send them after the service has processed the request. Nor does a 503 with anything but JSON in it: a cache that loses
 * its connection to the service at that moment sends a page, with a `Retry-After` of its own
 * (https://varnish-cache.org/docs/trunk/users-guide/vcl-built-in-subs.html, vcl_backend_error).
 *
 * @param scope the scope of the access token, in case the answer names none.
 * @param now wall-clock milliseconds, for a Retry-After that is a date.
 */
function classifyRefreshAnswer(answer: TokenAnswer, scope: string | undefined, now: number): RefreshOutcome {
  const { refreshToken, access, why } = readTokens(answer, scope)
  if (refreshToken !== undefined) return { kind: 'success', refreshToken, access, why }
  if (answer.error === 'invalid_grant')
    return { kind: 'over', description: answer.serviceMessage || undefined }
  const isComplete = answer.truncatedBy === undefined
  const isOwnAnswer = answer.body !== undefined || answer.isEmpty
  if (isComplete && (answer.status === 429 || (answer.status === 503 && isOwnAnswer))) {
    const afterMs = parseRetryAfter(answer.retryAfter, now)
    if (afterMs !== undefined) return { kind: 'retry_after', afterMs, error: askedToWait(answer, afterMs) }
  }
  if (answer.error !== undefined) return { kind: 'not_consumed', error: refreshRefused(answer.error, answer) }
  return { kind: 'unknown', why: [describeAnswer(answer), why].filter(Boolean).join('; '), access }
}

function askedToWait(answer: TokenAnswer, retryAfterMs: number): CliError {
  const [code, state] =
    answer.status === 429
      ? ['rate_limited', 'the service asks clients to slow down']
      : ['service_unavailable', 'the service is not available']
  return new CliError(
    code,
    Exit.unavailable,
    `${state} and did not renew the session in the time allowed (${describeAnswer(answer)})`,
    { hint: 'the session is untouched; run the command again later', status: answer.status, retryAfterMs },
  )
}

/**
 * Reads the tokens in a success (RFC 6749 section 5.1), independently of each other, because a refresh token that was just
 * rotated must not be lost over anything else that is wrong. Lenient for the same reason: any 2xx status, any content
 * type, null for a missing field, a body that breaks off after the tokens.
 *
 * @returns the tokens that are there, and `why` one is missing; nothing for an answer that isn't a success.
 */
function readTokens(
  { status, body }: TokenAnswer,
  scope: string | undefined,
): { refreshToken?: string | undefined; access?: AccessTokenGrant | undefined; why?: string | undefined } {
  if (status < 200 || status > 299) return {}
  if (body === undefined) return { why: 'it is not a JSON object' }
  const refreshToken = textOf(body['refresh_token'])
  const access = readAccessToken(body, scope)
  if (typeof access === 'string') return { refreshToken, why: access }
  return { refreshToken, access, why: refreshToken === undefined ? 'it has no refresh_token' : undefined }
}

/** The access token, or what is wrong with it. */
function readAccessToken(
  body: Readonly<Record<string, unknown>>,
  requestedScope: string | undefined,
): AccessTokenGrant | string {
  const accessToken = textOf(body['access_token'])
  if (accessToken === undefined) return 'it has no access_token'
  if (!isBearerToken(accessToken)) return 'its access_token is not a token'
  if (String(body['token_type'] ?? 'Bearer').toLowerCase() !== 'bearer') return 'its token_type is not Bearer'
  const lifetime = Number(body['expires_in'])
  return {
    accessToken,
    // An invalid lifetime is not worth losing the token over.
    expiresInSeconds: lifetime > 0 ? Math.min(lifetime, MAX_LIFETIME_SECONDS) : DEFAULT_LIFETIME_SECONDS,
    scope: scopeOf(body) ?? requestedScope,
  }
}

/** The scope is shown; it is left out if it quotes a token. Some services send a list. */
function scopeOf(body: Readonly<Record<string, unknown>>): string | undefined {
  const { scope, access_token: access, refresh_token: refreshToken } = body
  const text = textOf(Array.isArray(scope) ? scope.join(' ') : scope)
  return [access, refreshToken].some((token) => token && text?.includes(String(token))) ? undefined : text
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
