import * as oauth from 'oauth4webapi'
import { HttpTransportError } from '../context.ts'
import { CliError } from '../errors.ts'
import { formatUserAgent } from '../service/client.ts'
import { isRedirect, noResponseError, redirectError } from '../service/problems.ts'
import { appendPath, isLoopback, normalizeUrl } from '../settings/addresses.ts'
import type { Io } from '../terminal/io.ts'

/** Time limit in milliseconds of each request during discovery; short, because a sign-in also works without metadata. */
const METADATA_TIMEOUT_MS = 5000

/**
 * Requests the authorization server's metadata (RFC 8414). Without usable metadata, returns the default authorization endpoint,
 * `{base}/oauth/authorize`. Nothing may use the `token_endpoint` of metadata: whoever can change the metadata would receive refresh
 * tokens, so tokens go to the base URL alone.
 *
 * @param issuer `--issuer`; undefined if the service is its own authorization server
 * @throws CliError exit 7 if no connection can be made, or if both the metadata request and `{base}/oauth/token` are redirected
 *   (then the base URL is probably wrong); the interrupt's reason
 */
export async function discoverAuthorizationServer(
  base: URL,
  issuer: string | undefined,
  io: Io,
): Promise<oauth.AuthorizationServer> {
  const server = issuer === undefined ? base : new URL(issuer)
  const usual = {
    issuer: normalizeUrl(server),
    authorization_endpoint: appendPath(base, '/oauth/authorize').href,
  }
  try {
    const response = await oauth.discoveryRequest(server, {
      algorithm: 'oauth2',
      [oauth.allowInsecureRequests]: isLoopback(server.hostname),
      // Use the program's HTTP transport instead of `fetch`: it has time limits and supports proxies.
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
        // A redirect of the metadata request alone is harmless. But if `{base}/oauth/token` redirects too, the base URL is probably
        // wrong. So fail before the user signs in, instead of at the code exchange.
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
    if (!(error instanceof HttpTransportError) || error.sent !== 'no') return usual
    throw noResponseError(error, server, 'GET')
  }
}
