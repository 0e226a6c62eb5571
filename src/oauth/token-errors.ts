import { CliError, Exit } from '../errors.ts'
import { describeAnswer, type TokenAnswer } from './token-answer.ts'

type DefinedError =
  | 'invalid_request'
  | 'invalid_scope'
  | 'invalid_grant'
  | 'invalid_client'
  | 'unauthorized_client'

type Step = 'exchange' | 'refresh'

/** The errors of the interface's section 7.1, each with what a person can do about it. */
const DEFINED: Readonly<
  Record<DefinedError, { exit: CliError['exit']; hint: string } & Record<Step, string>>
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
    hint: 'sign in again',
  },
  invalid_client: {
    exit: Exit.notConfigured,
    exchange: 'the service does not know the client id, or has disabled it',
    refresh: 'the service no longer knows the client id, or has disabled it',
    hint: 'check --client-id, MAILCLAIM_CLIENT_ID or the profile (mailclaim config list)',
  },
  unauthorized_client: {
    exit: Exit.notConfigured,
    exchange: 'the client is not registered for the authorization code grant',
    refresh: 'the client is not registered for the refresh token grant',
    hint: 'have the client registered for it, or use another client id',
  },
}

/** Codes of other standards for temporary errors (RFC 6749 section 4.1.2.1, RFC 8628 section 3.5). */
const TEMPORARY: readonly string[] = ['temporarily_unavailable', 'server_error', 'slow_down']

/** The message, hint and exit code for any `error` that a service may send. */
function explain(step: Step, code: string, status: number) {
  if (Object.hasOwn(DEFINED, code)) {
    const { exit, hint, [step]: message } = DEFINED[code as DefinedError]
    return { exit, hint, message }
  }
  const message = `the service refused the ${step === 'refresh' ? 'refresh' : 'code exchange'}`
  return status === 429 || TEMPORARY.includes(code)
    ? { exit: Exit.unavailable, hint: 'try again later', message }
    : { exit: Exit.refused, hint: 'check the client id; with --verbose the exchange is shown', message }
}

function oauthError(
  step: Step,
  error: string,
  answer: TokenAnswer,
  hintFor: (hint: string) => string,
): CliError {
  const { exit, hint, message } = explain(step, error, answer.status)
  const said = answer.serviceMessage === '' ? '' : `; it says: ${answer.serviceMessage}`
  // Scripts compare codes: anything that doesn't look like one stays in the message.
  const code = /^[a-z][a-z0-9_]{1,63}$/.test(error) ? error : 'refused'
  return new CliError(code, exit, `${message} (${error})${said}`, {
    hint: hintFor(hint),
    status: answer.status,
  })
}

/** The error for an OAuth error response (RFC 6749 section 5.2) to a refresh: the token is unused. */
export function refreshRefused(error: string, answer: TokenAnswer): CliError {
  return oauthError('refresh', error, answer, (hint) => `the session is untouched; ${hint}`)
}

/**
 * The error for an OAuth error response to a code exchange.
 *
 * @param login the command that signs in again: a code works once.
 */
export function exchangeRefused(error: string, answer: TokenAnswer, login: string): CliError {
  return oauthError('exchange', error, answer, (hint) =>
    hint === DEFINED.invalid_grant.hint ? `${hint}: ${login}` : `${hint}; then sign in again: ${login}`,
  )
}

/** The service exchanged the code, but the session would end with the access token. */
/** @param login the command that signs in again. */
export function noRefreshToken(login: string): CliError {
  return new CliError(
    'no_refresh_token',
    Exit.refused,
    'the sign-in was approved, but the service issued no refresh token, so there is no session to store',
    {
      hint: `check that the client is registered for the refresh token grant; some services also want a scope for it, often --scope offline_access. An API key needs none: ${login} --with-api-key`,
    },
  )
}

/** The error for an answer to a code exchange that is neither tokens nor an OAuth error: exit 7. */
export function exchangeUnusable(answer: TokenAnswer, why: string | undefined, login: string): CliError {
  const unavailable = answer.status === 429 || answer.status >= 500
  const described = [describeAnswer(answer), why].filter(Boolean).join('; ')
  return new CliError(
    unavailable ? 'service_unavailable' : 'answer_unusable',
    Exit.unavailable,
    unavailable
      ? `the sign-in was approved, but the service could not exchange the code (${described})`
      : `the sign-in was approved, but the answer to the code exchange is not a token response (${described})`,
    {
      hint: `check that the base URL is the API's, then sign in again, because a code works once: ${login}`,
      status: answer.status,
    },
  )
}

/** The error for a code exchange without an answer: exit 7. */
export function exchangeUnanswered(cause: Error, login: string): CliError {
  return new CliError(
    'token_endpoint_unreachable',
    Exit.unavailable,
    `the sign-in was approved, but the service did not answer the exchange of the code: ${cause.message}`,
    { hint: `sign in again, because a code works once: ${login}`, cause },
  )
}
