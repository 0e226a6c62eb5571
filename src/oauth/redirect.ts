import { usageError } from '../errors.ts'
import { isLoopback } from '../settings/addresses.ts'

/**
 * The client's redirection endpoint (RFC 6749 section 3.1.2), with the addresses, port (0: any free port) and path of its server.
 */
export interface RedirectionEndpoint {
  /** Value of `--redirect-uri`, unchanged; undefined for `http://127.0.0.1:{port}/callback` with any free port. */
  readonly uri: string | undefined
  readonly hosts: readonly string[]
  readonly port: number
  readonly path: string
}

/**
 * Parses a loopback redirect URI (RFC 8252 section 7.3). The default is 127.0.0.1 rather than `localhost` (RFC 8252 section 8.3).
 *
 * @param uri `--redirect-uri`, for clients that are registered with a fixed port and path; undefined for the default
 * @throws CliError `usage`, exit 2, if `uri` isn't an http URL on loopback with a port other than 0, or has user info or a
 *   fragment
 */
export function parseRedirectUri(uri: string | undefined): RedirectionEndpoint {
  if (uri === undefined) return { uri, hosts: ['127.0.0.1'], port: 0, path: '/callback' }
  // Read the port from the text, because the URL class drops an explicit port 80.
  const { host = '', port = '' } =
    /^http:\/\/(?<host>[^/?#@]+):(?<port>\d+)(?:[/?][^#\s\\\p{C}]*)?$/u.exec(uri)?.groups ?? {}
  if (!URL.canParse(uri) || !isLoopback(host) || Number(port) === 0)
    throw usageError(
      `--redirect-uri: ${JSON.stringify(uri)} is not an address on this machine with a port`,
      'give it as registered, such as http://127.0.0.1:8765/callback',
    )
  const { hostname, pathname } = new URL(uri)
  // Listen on both addresses, because a browser may resolve `localhost` to 127.0.0.1 or ::1.
  const hosts = hostname === 'localhost' ? ['127.0.0.1', '::1'] : [hostname.replace(/^\[|\]$/g, '')]
  return { uri, hosts, port: Number(port), path: pathname }
}
