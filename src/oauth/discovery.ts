import * as oauth from 'oauth4webapi'
import { type Context, TransportError } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { userAgent } from '../service/client.ts'
import { isLoopback, issuerOf, operationUrl, parseIssuer } from '../settings/addresses.ts'
import { type LoginCommandOptions, loginCommand } from '../settings/login-command.ts'
import { clip } from '../terminal/sanitize.ts'
import { endpointUnusable, isSameIssuer } from './authorization.ts'
import { transportFetch } from './fetch.ts'
import { parseObject } from './token-answer.ts'

/** How long the service may take to publish its metadata, which are helpful but not required. */
const METADATA_TIMEOUT_MS = 5_000

/** The addresses that a login uses. */
export interface ServerAddresses {
  /** The base URL of the service. The code is exchanged below it, whoever issued it. */
  readonly base: URL
  /** `--issuer`: the authorization server, if it is not the service itself. */
  readonly issuer: string | undefined
  /** `--authorization-endpoint`: the page to open instead of the published or usual one. */
  readonly authorizationEndpoint: string | undefined
}

/**
 * The authorization server: its own metadata if it publishes them (RFC 8414), else the interface's endpoints below the
 * base URL. Only the person decides who the issuer is: metadata that name another one are not used (RFC 8414 section
 * 3.3). The token endpoint is always the interface's, because whoever could change it would receive refresh tokens.
 *
 * @param login how to run this login again, for hints.
 * @throws CliError `service_unreachable`, exit 7, if nothing answers: better now than on a blank browser page.
 *   `issuer_mismatch`, exit 3, if the metadata show that no answer will come from the expected issuer.
 *   `authorization_endpoint_unusable`, exit 3.
 */
export async function discoverServer(
  addresses: ServerAddresses,
  login: LoginCommandOptions,
  context: Pick<Context, 'http' | 'interrupts' | 'program' | 'platform'>,
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
 * The metadata of the issuer, or of the base URL if no other issuer is named (RFC 8414 section 3; for a named one also
 * at the address of OpenID Connect); undefined if none are published.
 */
async function fetchMetadata(
  { base, issuer, authorizationEndpoint }: ServerAddresses,
  context: Pick<Context, 'http' | 'interrupts' | 'program' | 'platform'>,
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
      // A person who names the page doesn't need the metadata.
      if (!(error instanceof TransportError) || error.sent === 'maybe' || authorizationEndpoint !== undefined)
        return undefined
      throw new CliError(
        'service_unreachable',
        Exit.unavailable,
        `the ${issuer === undefined ? 'service' : 'authorization server'} at ${issuerOf(server)} cannot be reached: ${error.message}`,
        {
          hint:
            issuer === undefined
              ? 'check the base URL and the network: mailclaim doctor'
              : 'check --issuer and the network; with --authorization-endpoint, this machine need not reach it',
          cause: error,
        },
      )
    }
  }
  return undefined
}

/** Metadata may come from a stranger on the network. They can't name a page on this machine unless the service is here too. */
function requirePublishedEndpoint(endpoint: string, issuer: string): string {
  const onThisMachine = URL.canParse(endpoint) && isLoopback(new URL(endpoint).hostname)
  if (onThisMachine && !isLoopback(new URL(issuer).hostname)) throw endpointUnusable(endpoint)
  return endpoint
}

/**
 * The error for metadata or an answer of another issuer: exit 3.
 *
 * @param actual what the other one calls itself. Not trusted, but shown to the person, who may know better.
 */
export function issuerMismatch(
  what: string,
  expected: string,
  actual: string,
  login: LoginCommandOptions,
): CliError {
  return new CliError(
    'issuer_mismatch',
    Exit.notConfigured,
    `${what} another issuer: expected ${expected}, got ${clip(actual, 200)}`,
    { hint: issuerHint(actual, login) },
  )
}

/** What a person can do who knows that the other issuer is the right one. */
export function issuerHint(actual: string, login: LoginCommandOptions): string {
  try {
    const issuer = parseIssuer(actual)
    return `if you know that ${issuer} is where this service signs people in: ${loginCommand({ ...login, issuer })}. If it is the service itself, use it as --base-url`
  } catch {
    return 'check --base-url and --issuer'
  }
}
