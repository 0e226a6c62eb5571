import * as oauth from 'oauth4webapi'
import { CliError, Exit } from '../errors.ts'
import { isLoopback } from '../settings/addresses.ts'
import { clip } from '../terminal/sanitize.ts'

/** The parameters of an authorization request. */
export interface AuthorizationParameters {
  readonly clientId: string
  readonly redirectUri: string
  readonly state: string
  /** RFC 7636 section 4.1. Only its hash is in the URL, so a stolen code is worthless. */
  readonly codeVerifier: string
  readonly scopes: readonly string[]
  readonly resource: string | undefined
}

/** New secrets for one login: state (RFC 6749 section 10.12) and code verifier (RFC 7636 section 4.1). */
export function newAuthorizationSecrets(): { state: string; codeVerifier: string } {
  return { state: oauth.generateRandomState(), codeVerifier: oauth.generateRandomCodeVerifier() }
}

/**
 * The address that the browser opens (RFC 6749 section 4.1.1, RFC 7636 section 4.3 with S256, RFC 8707 section 2).
 *
 * @throws CliError `authorization_endpoint_unusable`, exit 3.
 */
export async function authorizationUrl(endpoint: string, parameters: AuthorizationParameters): Promise<URL> {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  const isEncrypted = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (url === undefined || !isEncrypted || url.username !== '' || url.password !== '') {
    // Never shows a password.
    const shown = JSON.stringify(clip(endpoint.replace(/\/\/[^/?#]*@/, '//…@'), 200))
    throw new CliError(
      'authorization_endpoint_unusable',
      Exit.notConfigured,
      `the authorization endpoint ${shown} is not an https address without a user name`,
      { hint: 'use another one with --authorization-endpoint' },
    )
  }
  url.hash = ''
  const query = url.searchParams
  query.set('response_type', 'code')
  query.set('client_id', parameters.clientId)
  query.set('redirect_uri', parameters.redirectUri)
  query.set('state', parameters.state)
  query.set('code_challenge', await oauth.calculatePKCECodeChallenge(parameters.codeVerifier))
  query.set('code_challenge_method', 'S256')
  if (parameters.scopes.length > 0) query.set('scope', parameters.scopes.join(' '))
  if (parameters.resource !== undefined) query.set('resource', parameters.resource)
  return url
}

/** A redirect that ends the login: with a code, or with an error (RFC 6749 section 4.1.2.1). */
export type AuthorizationResponse =
  | { readonly kind: 'code'; readonly parameters: URLSearchParams }
  | { readonly kind: 'refused'; readonly error: CliError }

/** A redirect that isn't the service's answer to this login. */
export interface UnusableRedirect {
  readonly kind: 'unusable'
  readonly why: string
  /** Another issuer, if the redirect claims to come from one. */
  readonly issuer?: string
}

/**
 * Classifies the parameters of a redirect: state, one value for each, issuer (RFC 9207 section 2.4), code or error.
 *
 * @param login the command that signs in again, for hints.
 */
export function classifyRedirect(
  server: oauth.AuthorizationServer,
  clientId: string,
  parameters: URLSearchParams,
  state: string,
  login: string,
): AuthorizationResponse | UnusableRedirect {
  const unusable = (why: string): UnusableRedirect => ({ kind: 'unusable', why })
  for (const name of ['state', 'code', 'error', 'iss']) {
    if (parameters.getAll(name).length > 1) return unusable(`it has more than one "${name}"`)
  }
  if (parameters.has('code') && parameters.has('error')) return unusable('it has both a code and an error')
  if (parameters.get('state') !== state) return unusable('its state does not match this login')
  if (parameters.has('response_type') && !parameters.has('code') && !parameters.has('error'))
    return unusable('it is the page before the approval: paste the address that the browser ends up at')
  const iss = parameters.get('iss')
  if (iss === null && server.authorization_response_iss_parameter_supported)
    return unusable('its issuer ("iss") is missing, as if the address was cut off: copy the whole address')
  if (iss !== null && !isSameIssuer(iss, server.issuer)) {
    const why = `it comes from another issuer (expected ${server.issuer}, got ${clip(iss, 200)})`
    return { ...unusable(why), issuer: iss }
  }
  try {
    const validated = oauth.validateAuthResponse(
      { ...server, issuer: iss ?? server.issuer },
      { client_id: clientId },
      parameters,
      state,
    )
    return validated.get('code') ? { kind: 'code', parameters: validated } : unusable('it has no code')
  } catch (error) {
    if (error instanceof oauth.AuthorizationResponseError)
      return { kind: 'refused', error: refused(error, login) }
    return unusable((error as Error).message)
  }
}

/** A trailing slash doesn't make another issuer. */
export function isSameIssuer(one: string, other: string): boolean {
  const withoutSlash = (text: string) => text.replace(/\/+$/, '')
  return withoutSlash(one) === withoutSlash(other)
}

const RETRY = {
  exit: Exit.unavailable,
  message: 'the service could not sign you in now',
  hint: 'try again later',
}

/** The errors of RFC 6749 section 4.1.2.1 and RFC 8707 section 2, each with what a person can do about it. */
const AUTHORIZATION_ERRORS: Readonly<
  Record<string, { readonly exit: CliError['exit']; readonly message: string; readonly hint?: string }>
> = {
  access_denied: { exit: Exit.notSignedIn, message: 'access was denied in the browser' },
  unauthorized_client: {
    exit: Exit.notConfigured,
    message: 'the client is not registered for this kind of sign-in',
    hint: 'check the client id',
  },
  invalid_scope: {
    exit: Exit.refused,
    message: 'the service does not know a scope, or will not grant it',
    hint: 'check --scope; spaces separate scopes, commas do not',
  },
  invalid_target: {
    exit: Exit.refused,
    message: 'the service does not know the resource',
    hint: 'check --resource',
  },
  server_error: RETRY,
  temporarily_unavailable: RETRY,
}

function refused(
  { error, error_description: said }: oauth.AuthorizationResponseError,
  login: string,
): CliError {
  const known = Object.hasOwn(AUTHORIZATION_ERRORS, error) ? AUTHORIZATION_ERRORS[error] : undefined
  const { exit, message, hint } = known ?? {
    exit: Exit.refused,
    message: `the service refused the sign-in (${error})`,
    hint: 'check the client id, the scopes and the redirect URI',
  }
  return new CliError(error, exit, `${message}${said === undefined ? '' : `: ${said}`}`, {
    hint: hint ?? `sign in again and approve it: ${login}`,
  })
}
