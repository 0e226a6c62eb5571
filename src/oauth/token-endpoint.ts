import * as oauth from 'oauth4webapi'
import { type Context, TransportError } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { userAgent } from '../service/client.ts'
import { logExchanges } from '../service/exchange-log.ts'
import { parseRetryAfter } from '../service/retry.ts'
import { below, isLoopback, issuerOf } from '../settings/addresses.ts'
import type { Settings } from '../settings/settings.ts'
import { transportFetch } from './fetch.ts'
import {
  answerUnusable,
  errorCode,
  errorDescription,
  isDefined,
  jsonObject,
  type TokenAnswer,
  tokenEndpointError,
} from './token-errors.ts'

/** What the token endpoint is asked with, whatever the grant. */
export interface TokenRequest {
  /** The base URL of the service; its own path is kept. */
  readonly base: URL
  readonly clientId: string
  /** How long the whole answer may take, and whether the exchange is shown. */
  readonly settings: Pick<Settings, 'httpTimeoutMs' | 'verbose'>
}

/** Tokens as they were received (RFC 6749 §5.1), with what the service left out filled in. */
export interface Tokens {
  readonly accessToken: string
  readonly refreshToken: string
  /** Seconds from when the answer arrived. */
  readonly expiresInSeconds: number
  /** Separated by spaces; undefined where neither the service nor the request named any. */
  readonly scope: string | undefined
}

/** Where the service does not say how long a token is valid: far less than any service of this kind grants. */
const UNSTATED_LIFETIME_SECONDS = 300
/** More than a token of 15 minutes ever gets, and far from what a timer cannot hold. */
const MAX_LIFETIME_SECONDS = 366 * 24 * 3600

/**
 * Sends an authorization code (RFC 6749 §4.1.3 with RFC 7636 §4.5).
 *
 * @param callback what `validateAuthResponse` of oauth4webapi made of the redirect.
 * @throws TransportError where no whole answer came.
 */
export async function sendCode(
  context: Context,
  request: TokenRequest & {
    readonly callback: URLSearchParams
    readonly redirectUri: string
    readonly codeVerifier: string
  },
): Promise<TokenAnswer> {
  return whole(
    await oauth.authorizationCodeGrantRequest(
      serverOf(request),
      { client_id: request.clientId },
      oauth.None(),
      request.callback,
      request.redirectUri,
      request.codeVerifier,
      sending(context, request),
    ),
    [request.callback.get('code'), request.codeVerifier],
  )
}

/**
 * Sends a refresh token (RFC 6749 §6), once: no redirect is followed and nothing is sent again.
 *
 * @param request.scope narrows the new access token; undefined asks for the whole scope of the grant.
 * @throws TransportError where no whole answer came.
 */
export async function sendRefresh(
  context: Context,
  request: TokenRequest & { readonly refreshToken: string; readonly scope: string | undefined },
): Promise<TokenAnswer> {
  return whole(
    await oauth.refreshTokenGrantRequest(
      serverOf(request),
      { client_id: request.clientId },
      oauth.None(),
      request.refreshToken,
      {
        ...sending(context, request),
        ...(request.scope === undefined ? {} : { additionalParameters: { scope: request.scope } }),
      },
    ),
    [request.refreshToken],
  )
}

function serverOf({ base }: TokenRequest): oauth.AuthorizationServer {
  return { issuer: issuerOf(base), token_endpoint: below(base, '/oauth/token').href }
}

function sending(context: Context, { base, settings }: TokenRequest) {
  return {
    [oauth.allowInsecureRequests]: isLoopback(base.hostname),
    [oauth.customFetch]: transportFetch(
      settings.verbose ? logExchanges(withCalmStderr(context)) : context.http,
      {
        timeoutMs: settings.httpTimeoutMs,
        userAgent: userAgent(context),
        freshConnection: true,
      },
    ),
  }
}

/** A stderr whose reader went away must not turn an answer that came into one that did not. */
function withCalmStderr(context: Context): Context {
  const { stderr } = context
  const write = (text: string) => stderr.write(text).catch(() => undefined)
  return { ...context, stderr: { isTTY: stderr.isTTY, columns: stderr.columns, write } }
}

/** Reads an answer to its end. A refusal that quotes what was sent must not carry it into a message. */
async function whole(response: Response, secrets: readonly (string | null)[]): Promise<TokenAnswer> {
  let text = await response.text()
  if (!response.ok) {
    for (const secret of secrets) if (secret) text = text.replaceAll(secret, '[left out]')
  }
  return { status: response.status, headers: response.headers, text }
}

/**
 * Exchanges an authorization code for tokens.
 *
 * @param request.requestedScope what the authorization request asked for; stands where the answer names no scope
 *   (RFC 6749 §5.1).
 * @throws CliError for every error of the interface's section 7.1 with the cause in its message, exit 3, 4 or 6; exit 7
 *   where no answer came or it makes no sense.
 */
export async function exchangeCode(
  context: Context,
  request: Parameters<typeof sendCode>[1] & { readonly requestedScope: string | undefined },
): Promise<Tokens> {
  let answer: TokenAnswer
  try {
    answer = await sendCode(context, request)
  } catch (error) {
    if (!(error instanceof TransportError)) throw error
    throw new CliError(
      'token_endpoint_unreachable',
      Exit.unavailable,
      `the sign-in was approved, but the service did not answer the exchange of the code: ${error.message}`,
      { hint: 'a code works once, so run mailclaim login again', cause: error },
    )
  }
  const judged = await judgeTokens(request, answer, request.requestedScope)
  if (judged.kind === 'tokens') return judged.tokens
  const code = errorCode(answer)
  throw code === undefined ? answerUnusable(answer, judged.why) : tokenEndpointError('exchange', code, answer)
}

/** What became of a refresh token that was sent. */
export type RefreshOutcome =
  | { readonly kind: 'success'; readonly tokens: Tokens }
  /** `invalid_grant`: the token, and with it the session, is worth nothing any more. */
  | { readonly kind: 'over'; readonly description: string | undefined }
  /** The service refused before it worked on the token: it can be sent again once the cause is gone. */
  | { readonly kind: 'not_consumed'; readonly error: CliError }
  /** The same, and waiting is all it takes. `afterMs` is undefined where the service does not say how long. */
  | { readonly kind: 'retry_after'; readonly afterMs: number | undefined; readonly error: CliError }
  /** The service may have rotated the token: it must not be sent again. */
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * Refreshes once and says what became of the token that was sent. Never throws for anything the network or the service
 * can do.
 *
 * @param request.grantedScope the scope of the grant; stands where the answer names none.
 */
export async function refresh(
  context: Context,
  request: Parameters<typeof sendRefresh>[1] & { readonly grantedScope: string | undefined },
): Promise<RefreshOutcome> {
  let answer: TokenAnswer
  try {
    answer = await sendRefresh(context, request)
  } catch (error) {
    return judgeSilence(error, request.base)
  }
  return judgeRefresh(request, answer, request.scope ?? request.grantedScope, context.clock.now())
}

/** Judges a request that got no whole answer: only where nothing can have left this machine is the token unused. */
function judgeSilence(error: unknown, base: URL): RefreshOutcome {
  if (!(error instanceof TransportError)) {
    return { kind: 'unknown', why: error instanceof Error ? error.message : String(error) }
  }
  if (error.sent === 'maybe') return { kind: 'unknown', why: error.message }
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
 * Judges the answer to a refresh by the interface's section 7.1. What it does not define counts as unknown.
 *
 * @param now wall-clock milliseconds, for a Retry-After that is a date.
 */
export async function judgeRefresh(
  request: TokenRequest,
  answer: TokenAnswer,
  scope: string | undefined,
  now: number,
): Promise<RefreshOutcome> {
  if (answer.status === 429 || answer.status === 503) {
    const error = new CliError(
      answer.status === 429 ? 'rate_limited' : 'service_unavailable',
      Exit.unavailable,
      answer.status === 429
        ? 'the service asks to slow down (HTTP 429) and did not renew the session in the time allowed'
        : 'the service is not available (HTTP 503) and did not renew the session in the time allowed',
      { hint: 'the session is untouched; run the command again later', status: answer.status },
    )
    return {
      kind: 'retry_after',
      afterMs: parseRetryAfter(answer.headers.get('retry-after') ?? undefined, now),
      error,
    }
  }
  const code = errorCode(answer)
  if (code === 'invalid_grant') return { kind: 'over', description: errorDescription(answer) }
  if (code !== undefined && isDefined(code)) {
    return { kind: 'not_consumed', error: tokenEndpointError('refresh', code, answer) }
  }
  const judged = await judgeTokens(request, answer, scope)
  return judged.kind === 'tokens'
    ? { kind: 'success', tokens: judged.tokens }
    : { kind: 'unknown', why: judged.why }
}

/**
 * Reads tokens out of an answer. Lenient where strictness would lose a token that was just rotated: any 2xx status, any
 * content type, null for a field that was left out. A success without a new refresh token is none (interface 2.1).
 */
async function judgeTokens(
  request: TokenRequest,
  answer: TokenAnswer,
  scope: string | undefined,
): Promise<{ kind: 'tokens'; tokens: Tokens } | { kind: 'unusable'; why: string }> {
  if (answer.status < 200 || answer.status > 299) return { kind: 'unusable', why: `HTTP ${answer.status}` }
  const body = jsonObject(answer.text)
  if (body === undefined) return { kind: 'unusable', why: `HTTP ${answer.status} without a JSON object` }
  const { id_token: _unused, ...rest } = body
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))
  // A lifetime that cannot be read is no reason to lose the tokens that came with it.
  const lifetime = Number(given['expires_in'])
  if (!(lifetime > 0)) delete given['expires_in']
  if (typeof given['scope'] !== 'string') delete given['scope']
  try {
    const tokens = await oauth.processRefreshTokenResponse(
      serverOf(request),
      { client_id: request.clientId },
      Response.json({ token_type: 'Bearer', ...given }),
    )
    if (tokens.token_type !== 'bearer') return { kind: 'unusable', why: 'its token_type is not Bearer' }
    if (!isHeaderSafe(tokens.access_token))
      return { kind: 'unusable', why: 'its access_token is not a token' }
    if (tokens.refresh_token === undefined) return { kind: 'unusable', why: 'it has no refresh_token' }
    return {
      kind: 'tokens',
      tokens: {
        accessToken: tokens.access_token,
        refreshToken: tokens.refresh_token,
        expiresInSeconds: Math.min(tokens.expires_in ?? UNSTATED_LIFETIME_SECONDS, MAX_LIFETIME_SECONDS),
        scope: tokens.scope === undefined || tokens.scope === '' ? scope : tokens.scope,
      },
    }
  } catch (error) {
    // The library's messages name fields, never values.
    return { kind: 'unusable', why: error instanceof Error ? error.message : 'it is not a token response' }
  }
}

/** RFC 6750 §2.1: only these may stand in an Authorization header. */
function isHeaderSafe(token: string): boolean {
  return /^[\x21-\x7e]+$/.test(token)
}
