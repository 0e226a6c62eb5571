import { CliError, ERRORS, type ErrorCode } from '../errors.ts'

/**
 * Hints by error code, a code of OAuth (RFC 6749, RFC 8707) or of this program. Undefined where only the service's message can
 * help.
 */
export const OAUTH_ERROR_HINTS = {
  access_denied: 'sign in to the service in that browser, then sign in again here and approve it',
  invalid_request: undefined,
  invalid_grant: 'sign in again, because a code works once',
  invalid_client: 'check the client id: mailclaim config list',
  unauthorized_client:
    'have it registered for authorization codes and refresh tokens, or use another client id',
  invalid_scope: 'ask for fewer scopes, with spaces between them',
  invalid_target: 'check --resource',
  no_refresh_token: 'have the client registered for the refresh token grant, or add --scope offline_access',
  service_unavailable: 'try again later',
  refused: undefined,
} satisfies Partial<Record<ErrorCode, string | undefined>>

/**
 * Creates the error for an OAuth error of the authorization or token endpoint, or for a missing refresh token.
 *
 * @param error the `error` parameter, such as `invalid_grant`; `no_refresh_token` for a token response without a refresh token
 * @param serviceMessage text of the service for the end of the message; empty if there is none
 * @param status HTTP status of the token endpoint's error response; otherwise undefined
 */
export function oauthError(error: string, serviceMessage: string, status?: number): CliError {
  const isLater = ['server_error', 'temporarily_unavailable', 'slow_down'].includes(error)
  // Four errors of OpenID Connect Core 1.0 section 3.1.2.6 get the code and hint of `access_denied`: the user has to act in the
  // browser.
  const needsPrompt = /^(interaction|login|consent|account_selection)_required$/.test(error)
  // `access_denied` belongs to the authorization endpoint (RFC 6749 section 4.1.2.1), so its hint is about the browser. From the
  // token endpoint (with a `status`), treat it as a plain refusal.
  const isKnown = Object.hasOwn(OAUTH_ERROR_HINTS, error) && !(error === 'access_denied' && status)
  const known = isKnown ? (error as keyof typeof OAUTH_ERROR_HINTS) : 'refused'
  const code = isLater ? 'service_unavailable' : needsPrompt ? 'access_denied' : known
  const message = needsPrompt ? 'the service needs you to sign in or approve there first' : ERRORS[code][2]
  // Scripts compare the code in JSON errors, so an `error` that doesn't look like a code goes into the message alone.
  const shownCode = /^[a-z][a-z0-9_]{1,63}$/.test(error) ? error : undefined
  const whole = serviceMessage === '' ? message : `${message}: ${serviceMessage}`
  return new CliError(code, whole, { shownCode, hint: OAUTH_ERROR_HINTS[code], status })
}
