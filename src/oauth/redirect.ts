import { usageError } from '../errors.ts'
import { isLoopback } from '../settings/addresses.ts'

/** Where this program listens for the redirect. */
export interface RedirectTarget {
  /** The exact redirect URI; undefined for `http://127.0.0.1:{port}/callback` with any free port. */
  readonly uri: string | undefined
  readonly hosts: readonly string[]
  readonly port: number
  readonly path: string
}

/**
 * Chooses the redirect URI (RFC 8252 section 7.3; section 8.3 prefers the address to `localhost`).
 *
 * @param uri `--redirect-uri`, for registrations that fix host, path and port
 * @throws CliError exit 2.
 */
export function parseRedirectUri(uri: string | undefined): RedirectTarget {
  if (uri === undefined) return { uri, hosts: ['127.0.0.1'], port: 0, path: '/callback' }
  // The URL class drops the default port, so the text has to be examined.
  const { host = '', port = '' } =
    /^http:\/\/(?<host>[^/?#@]+):(?<port>\d+)(?:[/?][^#\s\\\p{C}]*)?$/u.exec(uri)?.groups ?? {}
  if (!URL.canParse(uri) || !isLoopback(host) || Number(port) === 0)
    throw usageError(
      `--redirect-uri: ${JSON.stringify(uri)} is not an address on this machine with a port`,
      'give it as registered, such as http://127.0.0.1:8765/callback',
    )
  const { hostname, pathname } = new URL(uri)
  // A browser may resolve "localhost" to either loopback address.
  const hosts = hostname === 'localhost' ? ['127.0.0.1', '::1'] : [hostname.replace(/^\[|\]$/g, '')]
  return { uri, hosts, port: Number(port), path: pathname }
}
