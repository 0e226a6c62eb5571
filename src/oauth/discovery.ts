import * as oauth from 'oauth4webapi'
import { TransportError } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { userAgent } from '../service/client.ts'
import { logExchanges } from '../service/log.ts'
import { isLoopback, issuerOf, operationUrl } from '../settings/addresses.ts'
import { loginCommand } from '../settings/profiles.ts'
import type { Io } from '../terminal/io.ts'
import { clip } from '../terminal/sanitize.ts'
import { isSameIssuer } from './authorization.ts'

/** How long the service may take to publish its metadata, which are helpful but not required. */
const METADATA_TIMEOUT_MS = 5000
const MAX_METADATA_BYTES = 1024 * 1024

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
 * base URL. Only the person decides who the issuer is: metadata that name another one are not used (RFC 8414 section 3.3).
 * The token endpoint isn't taken from them: whoever could change it would receive refresh tokens.
 *
 * @throws CliError `service_unreachable`, exit 7, if nothing answers: better now than on a blank browser page.
 *   `issuer_mismatch`, exit 3, if no answer will come from the expected issuer.
 */
export async function discoverServer(
  { base, issuer, authorizationEndpoint }: ServerAddresses,
  io: Io,
): Promise<oauth.AuthorizationServer> {
  const server = issuer === undefined ? base : new URL(issuer)
  const usual = {
    issuer: issuerOf(server),
    authorization_endpoint: authorizationEndpoint ?? operationUrl(base, '/oauth/authorize').href,
  }
  try {
    const response = await oauth.discoveryRequest(server, {
      algorithm: 'oauth2',
      [oauth.allowInsecureRequests]: isLoopback(server.hostname),
      [oauth.customFetch]: (url, { headers }) => fetchMetadata(url, headers, io),
    })
    const published = await processMetadata(server, response)
    return {
      issuer: usual.issuer,
      authorization_endpoint:
        authorizationEndpoint ?? published.authorization_endpoint ?? usual.authorization_endpoint,
      authorization_response_iss_parameter_supported: sendsIss(published),
    }
  } catch (error) {
    io.interrupts.signal.throwIfAborted()
    const foreign = metadataOfAnother(error)
    if (foreign !== undefined && (issuer !== undefined || sendsIss(foreign)))
      throw issuerMismatch(usual.issuer, foreign.issuer, io)
    // A person who names the page doesn't need the metadata.
    const isUnreachable = error instanceof TransportError && error.sent === 'no'
    if (isUnreachable && authorizationEndpoint === undefined)
      throw new CliError(
        'service_unreachable',
        Exit.unavailable,
        `${usual.issuer} cannot be reached: ${error.message}`,
        { hint: 'check the base URL, the issuer and the network: mailclaim doctor', cause: error },
      )
    return usual
  }
}

/** The program's HTTP transport as the `customFetch` of oauth4webapi: one exchange, no redirects. */
async function fetchMetadata(url: string, headers: Record<string, string>, io: Io): Promise<Response> {
  const http = io.settings.verbose ? logExchanges(io) : io.http
  const answer = await http.send({
    method: 'GET',
    url: new URL(url),
    headers: { ...headers, 'user-agent': userAgent(io) },
    timeoutMs: METADATA_TIMEOUT_MS,
    signal: io.interrupts.signal,
  })
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of answer.body) {
    size += piece.length
    if (size > MAX_METADATA_BYTES) break
    pieces.push(piece)
  }
  const isEmpty = [204, 205, 304].includes(answer.status)
  return new Response(isEmpty ? null : Buffer.concat(pieces), {
    status: answer.status,
    headers: { 'content-type': answer.headers['content-type'] ?? '' },
  })
}

/** RFC 8414 section 3.3, but a slash at the end doesn't make another issuer. */
async function processMetadata(server: URL, response: Response): Promise<oauth.AuthorizationServer> {
  try {
    return await oauth.processDiscoveryResponse(server, response)
  } catch (error) {
    const found = metadataOfAnother(error)
    if (found === undefined || !isSameIssuer(found.issuer, issuerOf(server))) throw error
    return found
  }
}

/** The metadata that were published, if they are not the expected issuer's. */
function metadataOfAnother(error: unknown): oauth.AuthorizationServer | undefined {
  const isMismatch =
    error instanceof oauth.OperationProcessingError && error.code === oauth.JSON_ATTRIBUTE_COMPARISON
  return isMismatch ? (error.cause as { readonly body: oauth.AuthorizationServer }).body : undefined
}

/** Whether it names itself in its answers (RFC 9207 section 3). */
function sendsIss(server: oauth.AuthorizationServer): boolean {
  return server.authorization_response_iss_parameter_supported === true
}

/**
 * The error for metadata or an answer of another issuer: exit 3.
 *
 * @param actual what the other one calls itself. Not trusted, but shown to the person, who may know better.
 */
export function issuerMismatch(expected: string, actual: string, { settings }: Io): CliError {
  const shown = clip(actual, 200)
  return new CliError(
    'issuer_mismatch',
    Exit.notConfigured,
    `the service signs people in as another issuer: expected ${expected}, got ${shown}`,
    { hint: issuerHint(shown, settings.profile.value) },
  )
}

/** What a person can do who knows that the other issuer is the right one. */
export function issuerHint(issuer: string, profile: string): string {
  return `if you know it and trust it: ${loginCommand({ profile, issuer: clip(issuer, 200) })}`
}
