import * as oauth from 'oauth4webapi'
import { type Context, TransportError } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { below, isLoopback, issuerOf } from '../settings/addresses.ts'
import type { CallbackPage } from './callback-page.ts'
import { transportFetch } from './fetch.ts'

/** How long the service may take to publish its metadata: it is a help, not a need. */
const METADATA_TIMEOUT_MS = 5_000

/**
 * What is known of the authorization server: its own metadata where it publishes them (RFC 8414), else the interface's
 * endpoints below the base URL.
 *
 * @throws CliError `service_unreachable`, exit 7, when nothing answers: better now than on a blank browser page.
 */
export async function discoverServer(
  base: URL,
  context: Context,
  userAgent: string,
): Promise<oauth.AuthorizationServer> {
  const fallback: oauth.AuthorizationServer = {
    issuer: issuerOf(base),
    authorization_endpoint: below(base, '/oauth/authorize').href,
    token_endpoint: below(base, '/oauth/token').href,
  }
  let response: Response
  try {
    response = await oauth.discoveryRequest(base, {
      algorithm: 'oauth2',
      [oauth.allowInsecureRequests]: isLoopback(base.hostname),
      [oauth.customFetch]: transportFetch(context.http, {
        timeoutMs: METADATA_TIMEOUT_MS,
        userAgent,
        signal: context.interrupts.signal,
      }),
    })
  } catch (error) {
    context.interrupts.signal.throwIfAborted()
    if (!(error instanceof TransportError) || error.sent === 'maybe') return fallback
    throw new CliError(
      'service_unreachable',
      Exit.unavailable,
      `the service at ${issuerOf(base)} cannot be reached: ${error.message}`,
      {
        hint: 'check the base URL and the network; mailclaim doctor looks at both',
        cause: error,
      },
    )
  }
  try {
    const published = await oauth.processDiscoveryResponse(base, response)
    return {
      ...published,
      authorization_endpoint: published.authorization_endpoint ?? fallback.authorization_endpoint ?? '',
      // The interface fixes the token endpoint; whoever could change this one would receive refresh tokens.
      token_endpoint: fallback.token_endpoint ?? '',
    }
  } catch {
    return fallback // Nothing published, or not for this issuer (RFC 8414 §3.3: then it must not be used).
  }
}

/** What one login sends along and must find again. */
export interface AuthorizationRequest {
  readonly url: URL
  readonly state: string
  /** RFC 7636 §4.1; sent only with the code, so that a stolen code is worth nothing. */
  readonly codeVerifier: string
}

export interface AuthorizationParameters {
  readonly clientId: string
  readonly redirectUri: string
  readonly state: string
  readonly codeVerifier: string
  readonly scopes: readonly string[]
  readonly resource: string | undefined
}

/** Fresh secrets of one login: state (RFC 6749 §10.12) and code verifier (RFC 7636 §4.1). */
export function newAuthorizationSecrets(): { state: string; codeVerifier: string } {
  return { state: oauth.generateRandomState(), codeVerifier: oauth.generateRandomCodeVerifier() }
}

/**
 * The address that the browser opens (RFC 6749 §4.1.1, RFC 7636 §4.3 with S256, RFC 8707 §2).
 *
 * @param base where the service is.
 * @throws CliError `authorization_endpoint_unusable`, exit 3.
 */
export async function authorizationUrl(
  endpoint: string,
  base: URL,
  parameters: AuthorizationParameters,
): Promise<URL> {
  const url = usableEndpoint(endpoint, base)
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

/**
 * The authorization endpoint, which a browser may be sent to: encrypted, or on this machine where the service is there
 * as well. A service elsewhere must not make the browser ask what listens here.
 *
 * @throws CliError `authorization_endpoint_unusable`, exit 3.
 */
function usableEndpoint(endpoint: string, base: URL): URL {
  const unusable = (why: string) =>
    new CliError(
      'authorization_endpoint_unusable',
      Exit.notConfigured,
      // A password in it is nobody's business.
      `the authorization endpoint ${JSON.stringify(endpoint.replace(/\/\/[^/?#]*@/, '//…@'))} ${why}`,
      { hint: 'give another with --authorization-endpoint' },
    )
  if (!URL.canParse(endpoint)) throw unusable('is not an https address')
  const url = new URL(endpoint)
  const local = isLoopback(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && local)) {
    throw unusable('is not an https address')
  }
  if (local && !isLoopback(base.hostname)) throw unusable('is on this machine, but the service is not')
  if (url.username !== '' || url.password !== '') throw unusable('contains a user name or a password')
  return url
}

/** How the service answered an authorization request. */
export type AuthorizationAnswer =
  /** As oauth4webapi wants it back for the exchange. */
  | { readonly kind: 'code'; readonly parameters: URLSearchParams }
  /** The person or the service said no (RFC 6749 §4.1.2.1): the login is over. */
  | { readonly kind: 'refused'; readonly error: CliError }
  /** Not an answer of this service to this request: the wait goes on. */
  | { readonly kind: 'wrong'; readonly why: string }

/**
 * Judges the parameters of a redirect: state, one value each, issuer (RFC 9207 §2.4), code or error.
 */
export function judgeAuthorizationAnswer(
  server: oauth.AuthorizationServer,
  clientId: string,
  parameters: URLSearchParams,
  state: string,
): AuthorizationAnswer {
  for (const name of ['state', 'code', 'error', 'iss']) {
    if (parameters.getAll(name).length > 1) return { kind: 'wrong', why: `it has more than one "${name}"` }
  }
  if (parameters.has('code') && parameters.has('error'))
    return { kind: 'wrong', why: 'it has both a code and an error' }
  if (parameters.get('state') !== state) return { kind: 'wrong', why: 'its state does not match this login' }
  const iss = parameters.get('iss')
  // A trailing slash is the one difference that says nothing about who answered.
  const issuer = iss !== null && withoutSlash(iss) === withoutSlash(server.issuer) ? iss : server.issuer
  try {
    const validated = oauth.validateAuthResponse(
      { ...server, issuer },
      { client_id: clientId },
      parameters,
      state,
    )
    if (!validated.get('code')) return { kind: 'wrong', why: 'it has no code' }
    return { kind: 'code', parameters: validated }
  } catch (error) {
    if (error instanceof oauth.AuthorizationResponseError) return { kind: 'refused', error: refused(error) }
    return {
      kind: 'wrong',
      why:
        iss !== null && iss !== issuer ? `it comes from another issuer (${iss})` : (error as Error).message,
    }
  }
}

function withoutSlash(text: string): string {
  return text.replace(/\/+$/, '')
}

function refused(answer: oauth.AuthorizationResponseError): CliError {
  const said = answer.error_description === undefined ? '' : `: ${answer.error_description}`
  const [message, exit, hint] = ((): [string, CliError['exit'], string] => {
    switch (answer.error) {
      case 'access_denied':
        return [
          'access was denied in the browser',
          Exit.notSignedIn,
          'run mailclaim login again and approve it',
        ]
      case 'unauthorized_client':
        return [
          'the client is not registered for this kind of sign-in',
          Exit.notConfigured,
          'check the client id',
        ]
      case 'invalid_scope':
        return ['the service does not know a scope, or will not grant it', Exit.refused, 'check --scope']
      case 'invalid_target':
        return ['the service does not know the resource', Exit.refused, 'check --resource']
      case 'server_error':
      case 'temporarily_unavailable':
        return [
          `the service could not sign you in now (${answer.error})`,
          Exit.unavailable,
          'try again later',
        ]
      default:
        return [
          `the service refused the sign-in (${answer.error})`,
          Exit.refused,
          'check the client id, the scopes and the redirect URI',
        ]
    }
  })()
  return new CliError(answer.error, exit, `${message}${said}`, { hint })
}

/** The page that a browser sees for an answer that is not the awaited one. */
export function wrongAnswerPage(why: string): CallbackPage {
  return {
    status: 400,
    title: 'This answer cannot be used',
    text: `Reason: ${why}. The sign-in in your terminal still waits for the right one.`,
  }
}
