import { CliError, Exit } from '../errors.ts'

const CHECK_CLIENT = 'check the client id: mailclaim config list'
const LATER = [Exit.unavailable, 'the service cannot do this now', 'try again later'] as const

/** The errors of RFC 6749 sections 4.1.2.1 and 5.2, and RFC 8707 section 2, each with what a person can do about it. */
const ERRORS: Readonly<Record<string, readonly [exit: CliError['exit'], message: string, hint: string]>> = {
  access_denied: [Exit.notSignedIn, 'access was denied in the browser', 'sign in again and approve it'],
  invalid_request: [Exit.refused, 'a field of the request is missing or malformed', CHECK_CLIENT],
  invalid_grant: [
    Exit.notSignedIn,
    'the authorization code was used already, is too old, or belongs to another sign-in',
    'sign in again, because a code works once',
  ],
  invalid_client: [
    Exit.notConfigured,
    'the service does not know the client id, or has disabled it',
    CHECK_CLIENT,
  ],
  unauthorized_client: [
    Exit.notConfigured,
    'the client is not registered for this',
    'have it registered for authorization codes and refresh tokens, or use another client id',
  ],
  invalid_scope: [
    Exit.refused,
    'the service does not know a scope, or will not grant it',
    'ask for fewer scopes, with spaces between them',
  ],
  invalid_target: [Exit.refused, 'the service does not know the resource', 'check --resource'],
  no_refresh_token: [
    Exit.refused,
    'the service issued no refresh token, so there is no session to store',
    'have the client registered for the refresh token grant, or add --scope offline_access',
  ],
  server_error: LATER,
  temporarily_unavailable: LATER,
  slow_down: LATER,
}

/**
 * The error for an OAuth error of either endpoint.
 *
 * @param said what the service says, the error included
 */
export function oauthError(error: string, said: string, status?: number): CliError {
  const known = Object.hasOwn(ERRORS, error) ? ERRORS[error] : undefined
  const [exit, message, hint] = known ?? [Exit.refused, 'the service refused it', CHECK_CLIENT]
  // Scripts compare codes: anything that doesn't look like one stays in the message.
  const code = /^[a-z][a-z0-9_]{1,63}$/.test(error) ? error : 'refused'
  return new CliError(code, exit, said === '' ? message : `${message}: ${said}`, { hint, status })
}
