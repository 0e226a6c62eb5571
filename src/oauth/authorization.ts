import * as oauth from 'oauth4webapi'
import { CliError } from '../errors.ts'
import { isLoopback } from '../settings/addresses.ts'
import { clip } from '../terminal/sanitize.ts'
import { oauthError } from './errors.ts'

/**
 * Builds the URL of the authorization request (RFC 6749 section 4.1.1).
 *
 * @param endpoint the authorization endpoint; its own query is kept, but `parameters` replace parameters of the same name
 * @param parameters query parameters by name; undefined values are left out
 * @throws CliError `authorization_endpoint_unusable`, exit 3, unless `endpoint` is https (or http on loopback) without user info
 */
export function buildAuthorizationUrl(
  endpoint: string,
  parameters: Readonly<Record<string, string | undefined>>,
): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  const isEncrypted = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (url === undefined || !isEncrypted || url.username !== '' || url.password !== '') {
    throw new CliError(
      'authorization_endpoint_unusable',
      'the authorization endpoint that the service publishes is not an https address without a user name',
      { hint: 'use another one with --authorization-endpoint' },
    )
  }
  url.hash = ''
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) url.searchParams.set(name, value)
  return url
}

/**
 * A valid authorization response (RFC 6749 section 4.1.2): its parameters with a code, or the service's OAuth error as a
 * `CliError`.
 */
export type AuthorizationResponse = URLSearchParams | CliError

/**
 * Validates the parameters of a redirect: state, issuer (RFC 9207 section 2.4), and exactly one code or error.
 *
 * @param state the state of this sign-in's authorization request
 * @returns the authorization response, or, as a string, the reason why the redirect is refused
 */
export function validateRedirectQuery(
  server: oauth.AuthorizationServer,
  clientId: string,
  parameters: URLSearchParams,
  state: string,
): AuthorizationResponse | string {
  if (parameters.get('state') !== state) return 'its state does not match this login'
  const answers = ['code', 'error'].flatMap((name) => parameters.getAll(name))
  if (answers.length !== 1) return `it has ${answers.length === 0 ? 'no code' : 'more than one answer'}`
  const iss = parameters.get('iss')
  // Treat issuers that differ only in trailing slashes as equal, because some services add or drop a slash.
  const isSameIssuer = iss?.replace(/\/+$/, '') === server.issuer.replace(/\/+$/, '')
  if (iss !== null && !isSameIssuer)
    return `it comes from the issuer ${clip(iss, 200)} instead of ${server.issuer} (--issuer)`
  try {
    const expected = { ...server, issuer: iss ?? server.issuer }
    const validated = oauth.validateAuthResponse(expected, { client_id: clientId }, parameters, state)
    return validated.get('code') ? validated : 'it has no code'
  } catch (error) {
    if (!(error instanceof oauth.AuthorizationResponseError)) return (error as Error).message
    const { error: code, error_description: description } = error
    return oauthError(code, description === undefined ? code : `${description} (${code})`)
  }
}
