import * as oauth from 'oauth4webapi'
import { TransportError } from '../context.ts'
import { CliError } from '../errors.ts'
import { userAgent } from '../service/client.ts'
import { isRedirect, redirectError, transportFailure } from '../service/problems.ts'
import { isLoopback, issuerOf, operationUrl } from '../settings/addresses.ts'
import type { Io } from '../terminal/io.ts'

/** How long the service may take to publish its metadata, which are helpful but not required. */
const METADATA_TIMEOUT_MS = 5000

/**
 * The authorization server: its own metadata if it publishes them (RFC 8414), else the interface's endpoints below the
 * base URL. Only the person decides who the issuer is: metadata that name another one are not used (RFC 8414 section 3.3).
 * The token endpoint isn't taken from them: whoever could change it would receive refresh tokens.
 *
 * @param issuer `--issuer`: the authorization server, if it is not the service itself
 * @throws CliError `unreachable`, exit 7, if nothing answers, and `redirected`, exit 7, if the token endpoint is elsewhere: better now
 *   than on a blank browser page
 */
export async function discoverServer(
  base: URL,
  issuer: string | undefined,
  io: Io,
): Promise<oauth.AuthorizationServer> {
  const server = issuer === undefined ? base : new URL(issuer)
  const usual = {
    issuer: issuerOf(server),
    authorization_endpoint: operationUrl(base, '/oauth/authorize').href,
  }
  try {
    const response = await oauth.discoveryRequest(server, {
      algorithm: 'oauth2',
      [oauth.allowInsecureRequests]: isLoopback(server.hostname),
      // The program's own transport: one exchange, no redirects.
      [oauth.customFetch]: async (url, { headers }) => {
        const get = (address: URL) =>
          io.http.send({
            method: 'GET',
            url: address,
            headers: { ...headers, 'user-agent': userAgent(io) },
            timeoutMs: METADATA_TIMEOUT_MS,
            signal: io.interrupts.signal,
          })
        const answer = await get(new URL(url))
        // Metadata may live elsewhere. If the token endpoint does too, the base URL is wrong, and the code could not be exchanged.
        if (isRedirect(answer)) {
          const token = await get(operationUrl(base, '/oauth/token'))
          if (isRedirect(token)) throw redirectError(token, 'GET /oauth/token', [])
        }
        const type = answer.headers['content-type'] ?? ''
        return new Response(answer.text, { status: answer.status, headers: { 'content-type': type } })
      },
    })
    const { authorization_endpoint: found, ...others } = await oauth.processDiscoveryResponse(
      server,
      response,
    )
    return { ...usual, ...others, ...(typeof found === 'string' && { authorization_endpoint: found }) }
  } catch (error) {
    io.interrupts.signal.throwIfAborted()
    if (error instanceof CliError) throw error
    if (!(error instanceof TransportError) || error.sent !== 'no') return usual
    throw transportFailure(error, server, 'GET')
  }
}
