import { CliError, Exit } from '../errors.ts'

/** An answer of the token endpoint, read to its end and not judged yet. */
export interface TokenAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** The object that a text holds as JSON; undefined where it holds none. */
export function jsonObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

/** The `error` of a 4xx answer (RFC 6749 §5.2); undefined for every other answer. */
export function errorCode(answer: TokenAnswer): string | undefined {
  if (answer.status < 400 || answer.status > 499) return undefined
  const code = jsonObject(answer.text)?.['error']
  return typeof code === 'string' && code !== '' ? code.slice(0, 100) : undefined
}

/** What the service says about an error, shortened. */
export function errorDescription(answer: TokenAnswer): string | undefined {
  const text = jsonObject(answer.text)?.['error_description']
  return typeof text === 'string' && text.trim() !== '' ? text.trim().slice(0, 300) : undefined
}

type DefinedError =
  | 'invalid_request'
  | 'invalid_scope'
  | 'invalid_grant'
  | 'invalid_client'
  | 'unauthorized_client'

/** The rows of the interface's section 7.1, in words, with what a person can do about each. */
const DEFINED: Readonly<
  Record<DefinedError, { exit: CliError['exit']; exchange: string; refresh: string; hint: string }>
> = {
  invalid_request: {
    exit: Exit.refused,
    exchange: 'the service found a field of the code exchange missing or malformed',
    refresh: 'the service found a field of the refresh missing or malformed',
    hint: 'check the base URL and the client id; with --verbose the exchange is shown',
  },
  invalid_scope: {
    exit: Exit.refused,
    exchange: 'the service does not grant the scope that was asked for',
    refresh: 'the scope that was asked for is not part of what this session was granted',
    hint: 'ask for fewer scopes; mailclaim auth status shows what was granted',
  },
  invalid_grant: {
    exit: Exit.notSignedIn,
    exchange:
      'the service refused the authorization code: it was used already, is older than 10 minutes, or does not belong to this sign-in (redirect URI or PKCE verifier)',
    refresh: 'the service refused the refresh token: it is invalid, expired, revoked or was used before',
    hint: 'run mailclaim login again',
  },
  invalid_client: {
    exit: Exit.notConfigured,
    exchange: 'the service does not know the client id, or has disabled it',
    refresh: 'the service does not know the client id any more, or has disabled it',
    hint: 'check --client-id, MAILCLAIM_CLIENT_ID or the profile (mailclaim config list)',
  },
  unauthorized_client: {
    exit: Exit.notConfigured,
    exchange: 'the client is not registered for the authorization code grant',
    refresh: 'the client is not registered for the refresh token grant',
    hint: 'have the registration of the client changed, or use another client id',
  },
}

/** Whether the interface defines this error code. */
export function isDefined(code: string): code is DefinedError {
  return Object.hasOwn(DEFINED, code)
}

/** An error of the token endpoint as a person can understand it; the service's own words are kept. */
export function tokenEndpointError(
  step: 'exchange' | 'refresh',
  code: string,
  answer: TokenAnswer,
): CliError {
  const said = errorDescription(answer)
  const own = said === undefined ? '' : `; it says: ${said}`
  if (!isDefined(code)) {
    return new CliError(code, Exit.refused, `the service refused the token request (${code})${own}`, {
      hint: 'run mailclaim login again; with --verbose the exchange is shown',
      status: answer.status,
    })
  }
  const { exit, hint, [step]: words } = DEFINED[code]
  const kept = step === 'refresh' ? `the session is untouched; ${hint}` : hint
  return new CliError(code, exit, `${words} (${code})${own}`, { hint: kept, status: answer.status })
}

/** The error for an answer to a code exchange that is neither tokens nor a refusal: exit 7. */
export function answerUnusable(answer: TokenAnswer, why: string): CliError {
  const unavailable = answer.status === 429 || answer.status >= 500
  return new CliError(
    unavailable ? 'service_unavailable' : 'answer_unusable',
    Exit.unavailable,
    unavailable
      ? `the sign-in was approved, but the service could not exchange the code (HTTP ${answer.status})`
      : `the sign-in was approved, but the answer to the code exchange is not the interface's: ${why}`,
    {
      hint: 'a code works once, so run mailclaim login again; check that the base URL is the API’s',
      status: answer.status,
    },
  )
}
