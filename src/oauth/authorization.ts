import * as oauth from 'oauth4webapi'
import { type Context, TransportError } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { userAgent } from '../service/client.ts'
import { isLoopback, issuerOf, operationUrl, parseIssuer } from '../settings/addresses.ts'
import { type LoginCommandOptions, loginCommand } from '../settings/login-command.ts'
import { clip } from '../terminal/sanitize.ts'
import type { CallbackPage } from './callback-page.ts'
import { transportFetch } from './fetch.ts'
import { parseObject } from './token-answer.ts'

/** How long the service may take to publish its metadata: it is a help, not a need. */
const METADATA_TIMEOUT_MS = 5_000

/** Whom a login talks to. */
export interface ServerAddresses {
  /** The base URL of the service: the code is exchanged below it, whoever issued it. */
  readonly base: URL
  /** The authorization server, where it is not the service under its base URL; the person said so. */
  readonly issuer: string | undefined
  /** The page to open instead of the published or usual one; the person said so. */
  readonly authorizationEndpoint: string | undefined
}

/**
 * What is known of the authorization server: its own metadata where it publishes them (RFC 8414), else the interface's
 * endpoints below the base URL. Only the person decides who the issuer is: metadata that name another one are not used
 * (RFC 8414 section 3.3), and the token endpoint is the interface's, because whoever could change it would receive
 * refresh tokens.
 *
 * @param login how to run this login again, for hints.
 * @throws CliError `service_unreachable`, exit 7, when nothing answers: better now than on a blank browser page.
 *   `issuer_mismatch`, exit 3, when metadata show that no answer will be from the expected issuer.
 *   `authorization_endpoint_unusable`, exit 3.
 */
export async function discoverServer(
  addresses: ServerAddresses,
  login: LoginCommandOptions,
  context: Context,
): Promise<oauth.AuthorizationServer> {
  const { base, authorizationEndpoint } = addresses
  const expected = addresses.issuer ?? issuerOf(base)
  const usual = {
    issuer: expected,
    authorization_endpoint: authorizationEndpoint ?? operationUrl(base, '/oauth/authorize').href,
    token_endpoint: operationUrl(base, '/oauth/token').href,
  }
  const published = await fetchMetadata(addresses, context)
  if (published === undefined) return usual
  const { issuer, authorization_endpoint: endpoint } = published
  const promisesIss = published['authorization_response_iss_parameter_supported'] === true
  if (typeof issuer !== 'string' || !isSameIssuer(issuer, expected)) {
    if (typeof issuer === 'string' && (addresses.issuer !== undefined || promisesIss)) {
      throw issuerMismatch('the authorization server publishes metadata of', expected, issuer, login)
    }
    return usual
  }
  return {
    ...usual,
    issuer,
    ...(authorizationEndpoint === undefined && typeof endpoint === 'string'
      ? { authorization_endpoint: requirePublishedEndpoint(endpoint, issuer) }
      : {}),
    authorization_response_iss_parameter_supported: promisesIss,
  }
}

/**
 * The metadata of the issuer, or of the base URL where no other issuer was named (RFC 8414 section 3; for a named one
 * also where OpenID Connect has them); undefined where none are published.
 */
async function fetchMetadata(
  { base, issuer, authorizationEndpoint }: ServerAddresses,
  context: Context,
): Promise<Record<string, unknown> | undefined> {
  const server = issuer === undefined ? base : new URL(issuer)
  for (const algorithm of issuer === undefined ? (['oauth2'] as const) : (['oauth2', 'oidc'] as const)) {
    try {
      const response = await oauth.discoveryRequest(server, {
        algorithm,
        [oauth.allowInsecureRequests]: isLoopback(server.hostname),
        [oauth.customFetch]: transportFetch(context.http, {
          timeoutMs: METADATA_TIMEOUT_MS,
          userAgent: userAgent(context),
          signal: context.interrupts.signal,
        }),
      })
      const text = await response.text()
      const metadata = response.status === 200 ? parseObject(text) : undefined
      if (metadata !== undefined) return metadata
    } catch (error) {
      context.interrupts.signal.throwIfAborted()
      // With a page to open, the person can do without metadata that cannot be had from here.
      if (!(error instanceof TransportError) || error.sent === 'maybe' || authorizationEndpoint !== undefined)
        return undefined
      throw new CliError(
        'service_unreachable',
        Exit.unavailable,
        `the ${issuer === undefined ? 'service' : 'authorization server'} at ${issuerOf(server)} cannot be reached: ${error.message}`,
        {
          hint:
            issuer === undefined
              ? 'check the base URL and the network; mailclaim doctor looks at both'
              : 'check --issuer and the network; with --authorization-endpoint nothing is asked of it from here',
          cause: error,
        },
      )
    }
  }
  return undefined
}

/** A trailing slash is the one difference that says nothing about who it is. */
function isSameIssuer(one: string, other: string): boolean {
  return withoutSlash(one) === withoutSlash(other)
}

/** A page that a stranger on the network may name: never one on this machine, unless the service is on it as well. */
function requirePublishedEndpoint(endpoint: string, issuer: string): string {
  const onThisMachine = URL.canParse(endpoint) && isLoopback(new URL(endpoint).hostname)
  if (onThisMachine && !isLoopback(new URL(issuer).hostname)) throw endpointUnusable(endpoint)
  return endpoint
}

/**
 * The error where somebody else than the expected issuer speaks: exit 3.
 *
 * @param got what the other calls itself; believed by nobody, shown to the person, who may know better.
 */
export function issuerMismatch(
  what: string,
  expected: string,
  got: string,
  login: LoginCommandOptions,
): CliError {
  return new CliError(
    'issuer_mismatch',
    Exit.notConfigured,
    `${what} another issuer: expected ${expected}, got ${clip(got, 200)}`,
    { hint: issuerHint(got, login) },
  )
}

/** What a person can do who knows that the other issuer is the right one. */
export function issuerHint(got: string, login: LoginCommandOptions): string {
  try {
    const issuer = parseIssuer(got)
    return `if you know that ${issuer} is where this service signs people in: ${loginCommand({ ...login, issuer })}. If it is the service itself, use it as --base-url`
  } catch {
    return 'check --base-url and --issuer'
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
export async function authorizationUrl(endpoint: string, parameters: AuthorizationParameters): Promise<URL> {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  const encrypted = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (url === undefined || !encrypted || url.username !== '' || url.password !== '')
    throw endpointUnusable(endpoint)
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

function endpointUnusable(endpoint: string): CliError {
  return new CliError(
    'authorization_endpoint_unusable',
    Exit.notConfigured,
    // A password in it is nobody's business.
    `the authorization endpoint ${JSON.stringify(clip(endpoint.replace(/\/\/[^/?#]*@/, '//…@'), 200))} cannot be used: it has to be an https address, without a user name, or one on this machine if the service is on it`,
    { hint: 'give another with --authorization-endpoint' },
  )
}

/** How the service answered an authorization request. */
export type AuthorizationAnswer =
  /** As oauth4webapi wants it back for the exchange. */
  | { readonly kind: 'code'; readonly parameters: URLSearchParams }
  /** The person or the service said no (RFC 6749 §4.1.2.1): the login is over. */
  | { readonly kind: 'refused'; readonly error: CliError }
  /** Not an answer of this service to this request: the wait goes on. `issuer` is whoever else it says it is from. */
  | { readonly kind: 'wrong'; readonly why: string; readonly issuer?: string }

/**
 * Judges the parameters of a redirect: state, one value each, issuer (RFC 9207 §2.4), code or error.
 *
 * @param login the command that signs in again, for hints.
 */
export function judgeAuthorizationAnswer(
  server: oauth.AuthorizationServer,
  clientId: string,
  parameters: URLSearchParams,
  state: string,
  login: string,
): AuthorizationAnswer {
  for (const name of ['state', 'code', 'error', 'iss']) {
    if (parameters.getAll(name).length > 1) return { kind: 'wrong', why: `it has more than one "${name}"` }
  }
  if (parameters.has('code') && parameters.has('error'))
    return { kind: 'wrong', why: 'it has both a code and an error' }
  if (parameters.get('state') !== state) return { kind: 'wrong', why: 'its state does not match this login' }
  const iss = parameters.get('iss')
  if (iss !== null && !isSameIssuer(iss, server.issuer)) {
    const why = `it comes from another issuer (expected ${server.issuer}, got ${clip(iss, 200)})`
    return { kind: 'wrong', why, issuer: iss }
  }
  try {
    const validated = oauth.validateAuthResponse(
      { ...server, issuer: iss ?? server.issuer },
      { client_id: clientId },
      parameters,
      state,
    )
    if (!validated.get('code')) return { kind: 'wrong', why: 'it has no code' }
    return { kind: 'code', parameters: validated }
  } catch (error) {
    if (error instanceof oauth.AuthorizationResponseError)
      return { kind: 'refused', error: refused(error, login) }
    return { kind: 'wrong', why: (error as Error).message }
  }
}

function withoutSlash(text: string): string {
  return text.replace(/\/+$/, '')
}

function refused(answer: oauth.AuthorizationResponseError, login: string): CliError {
  const said = answer.error_description === undefined ? '' : `: ${answer.error_description}`
  const [message, exit, hint] = ((): [string, CliError['exit'], string] => {
    switch (answer.error) {
      case 'access_denied':
        return [
          'access was denied in the browser',
          Exit.notSignedIn,
          `sign in again and approve it: ${login}`,
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
