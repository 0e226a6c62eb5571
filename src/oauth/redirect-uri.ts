import { usageError } from '../errors.ts'
import { isLoopback } from '../settings/addresses.ts'

/** Where the service sends the browser back to, and where this program listens for it. */
export interface RedirectTarget {
  /** Undefined for an address that is not on this machine: then only a pasted URL can finish the login. */
  readonly listen:
    | { readonly hosts: readonly string[]; readonly port: number; readonly path: string }
    | undefined
  /** The exact redirect URI, once the port is known (0 has become a real one). */
  uri(port: number): string
}

/**
 * Decides on the redirect URI: `http://127.0.0.1:{port}/callback` with any free port unless options say otherwise
 * (RFC 8252 §7.3; §8.3 prefers the address over `localhost`).
 *
 * @param uri `--redirect-uri`, for registrations that fix host, path or port. Without a port in it, `port` or a free
 *   one is used, as RFC 8252 §7.3 lets native clients do.
 * @param port `--port`; 0 or undefined for a free one.
 * @throws CliError exit 2.
 */
export function redirectTarget(uri: string | undefined, port: number | undefined): RedirectTarget {
  if (uri === undefined) {
    return {
      listen: { hosts: ['127.0.0.1'], port: port ?? 0, path: '/callback' },
      uri: (bound) => `http://127.0.0.1:${bound}/callback`,
    }
  }
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw usageError(
      `--redirect-uri: ${JSON.stringify(uri)} is not an http(s) address`,
      'give it as it is registered, such as http://127.0.0.1:8765/callback',
    )
  }
  if (url.hash !== '') throw usageError('--redirect-uri: a redirect URI has no fragment (RFC 6749 §3.1.2)')
  if (url.username !== '' || url.password !== '')
    throw usageError('--redirect-uri: a redirect URI has no user name or password')
  if (url.protocol !== 'http:' || !isLoopback(url.hostname)) {
    if (port !== undefined)
      throw usageError('--port has no meaning for a redirect URI that is not on this machine')
    return { listen: undefined, uri: () => uri }
  }
  // The URL class drops ":80", which is http's own port, so the text is asked.
  const written = /^http:\/\/[^/?#]*?:(\d+)(?:[/?#]|$)/i.exec(uri)?.[1]
  const fixed = written === undefined ? undefined : Number(written)
  if (fixed === 0)
    throw usageError('--redirect-uri: port 0 cannot be redirected to', 'leave the port out for a free one')
  if (fixed !== undefined && port !== undefined && port !== fixed) {
    throw usageError(`--port ${port} and the port of --redirect-uri (${fixed}) differ`)
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return {
    // A browser may turn "localhost" into either loopback address.
    listen: {
      hosts: host === 'localhost' ? ['127.0.0.1', '::1'] : [host],
      port: fixed ?? port ?? 0,
      path: url.pathname,
    },
    uri: (bound) => {
      if (fixed !== undefined) return uri
      const [, before, rest] = /^(http:\/\/[^/?#]+)(.*)$/is.exec(uri) ?? []
      return `${before}:${bound}${rest}`
    },
  }
}
