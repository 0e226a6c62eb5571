import * as oauth from 'oauth4webapi'
import { TransportError } from '../context.ts'
import { CliError } from '../errors.ts'
import { formatUserAgent } from '../service/client.ts'
import { isRedirect, noResponseError, redirectError } from '../service/problems.ts'
import { appendPath, formatUrl, isLoopback } from '../settings/addresses.ts'
import type { Io } from '../terminal/io.ts'

/** Time limit in milliseconds for the metadata request; short, because a sign-in works without metadata. */
const METADATA_TIMEOUT_MS = 5000

/**
 * Requests the authorization server's metadata (RFC 8414). Without usable metadata, returns the default endpoints below the base
 * URL. Metadata with another issuer are ignored (RFC 8414 section 3.3), because only the user decides which issuer is trusted.
 * The token endpoint is never taken from metadata, because anyone who could change the metadata would receive refresh tokens.
 *
 * @param issuer `--issuer`: the authorization server, unless the service is its own
 * @throws CliError before the browser opens: `unreachable`, exit 7, if there is no connection; `redirected`, exit 7, if the token
 *   endpoint redirects
 */
export async function discoverAuthorizationServer(
  base: URL,
  issuer: string | undefined,
  io: Io,
): Promise<oauth.AuthorizationServer> {
  const server = issuer === undefined ? base : new URL(issuer)
  const usual = {
    issuer: formatUrl(server),
    authorization_endpoint: appendPath(base, '/oauth/authorize').href,
  }
  try {
    const response = await oauth.discoveryRequest(server, {
      algorithm: 'oauth2',
      [oauth.allowInsecureRequests]: isLoopback(server.hostname),
      // The library's `fetch` is replaced by the program's HTTP transport, which has time limits and proxies and follows no
      // redirect.
      [oauth.customFetch]: async (url, { headers }) => {
        const get = (address: URL) =>
          io.http.send({
            method: 'GET',
            url: address,
            headers: { ...headers, 'user-agent': formatUserAgent(io) },
            timeoutMs: METADATA_TIMEOUT_MS,
            signal: io.interrupts.signal,
          })
        const answer = await get(new URL(url))
        // A redirect of the metadata request alone is harmless. If the token endpoint redirects as well, the base URL is wrong and
        // the code exchange would fail, so fail before the user signs in.
        if (isRedirect(answer)) {
          const token = await get(appendPath(base, '/oauth/token'))
          if (isRedirect(token)) throw redirectError(token, 'GET /oauth/token', [])
        }
        const type = answer.headers['content-type'] ?? ''
        return new Response(answer.text, { status: answer.status, headers: { 'content-type': type } })
      },
    })
    const metadata = await oauth.processDiscoveryResponse(server, response)
    const { authorization_endpoint: found, ...others } = metadata
    return { ...usual, ...others, ...(typeof found === 'string' && { authorization_endpoint: found }) }
  } catch (error) {
    io.interrupts.signal.throwIfAborted()
    if (error instanceof CliError) throw error
    if (!(error instanceof TransportError) || error.sent !== 'no') return usual
    throw noResponseError(error, server, 'GET')
  }
}
