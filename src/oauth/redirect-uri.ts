import { usageError } from '../errors.ts'
import { isLoopback } from '../settings/addresses.ts'

/** Where the service redirects the browser, and where this program listens for it. */
export interface RedirectTarget {
  /** Undefined for an address that isn't on this machine: then only a pasted URL can finish the login. */
  readonly listen:
    | { readonly hosts: readonly string[]; readonly port: number; readonly path: string }
    | undefined
  /** The exact redirect URI, with the port that the listener got. */
  uri(port: number): string
}

/**
 * Chooses the redirect URI: `http://127.0.0.1:{port}/callback` with any free port, unless options say otherwise (RFC 8252
 * section 7.3; section 8.3 prefers the address to `localhost`).
 *
 * @param uri `--redirect-uri`, for registrations that fix host, path or port. Without a port in it, `port` or a free
 *   one is used, as RFC 8252 section 7.3 lets native clients do.
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
      'use the registered one, such as http://127.0.0.1:8765/callback',
    )
  }
  if (url.hash !== '')
    throw usageError('--redirect-uri: a redirect URI cannot have a fragment (RFC 6749 section 3.1.2)')
  if (url.username !== '' || url.password !== '')
    throw usageError('--redirect-uri: a redirect URI cannot have a user name or password')
  if (url.protocol !== 'http:' || !isLoopback(url.hostname)) {
    if (port !== undefined)
      throw usageError('--port cannot be used with a redirect URI that is not on this machine')
    return { listen: undefined, uri: () => uri }
  }
  // The URL class drops the default port, so the text has to be examined.
  const written = /^http:\/\/[^/?#]*?:(\d+)(?:[/?#]|$)/i.exec(uri)?.[1]
  const fixed = written === undefined ? undefined : Number(written)
  if (fixed === 0)
    throw usageError('--redirect-uri: port 0 is not a valid port', 'leave out the port to use a free one')
  if (fixed !== undefined && port !== undefined && port !== fixed) {
    throw usageError(`--port ${port} differs from the port in --redirect-uri (${fixed})`)
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return {
    // A browser may resolve "localhost" to either loopback address.
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
