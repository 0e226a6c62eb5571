import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { usageError } from '../errors.ts'
import { isLoopback } from '../settings/addresses.ts'

/** Where the service redirects the browser, and where this program listens for it. */
export interface RedirectTarget {
  /** The exact redirect URI; undefined for `http://127.0.0.1:{port}/callback` with any free port. */
  readonly uri: string | undefined
  /** Undefined for an address that isn't on this machine: then only a pasted address can finish the login. */
  readonly listen:
    | { readonly hosts: readonly string[]; readonly port: number; readonly path: string }
    | undefined
}

/**
 * Chooses the redirect URI (RFC 8252 section 7.3; section 8.3 prefers the address to `localhost`).
 *
 * @param uri `--redirect-uri`, for registrations that fix host, path and port
 * @throws CliError exit 2.
 */
export function redirectTarget(uri: string | undefined): RedirectTarget {
  if (uri === undefined) return { uri, listen: { hosts: ['127.0.0.1'], port: 0, path: '/callback' } }
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  const example = 'give it as registered, such as http://127.0.0.1:8765/callback'
  const unusable = (why: string) => usageError(`--redirect-uri: ${JSON.stringify(uri)} ${why}`, example)
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw unusable('is not an http(s) address')
  if (url.hash !== '' || url.username !== '' || url.password !== '')
    throw unusable('has a fragment, a user name or a password')
  if (url.protocol !== 'http:' || !isLoopback(url.hostname)) return { uri, listen: undefined }
  // The URL class drops the default port, so the text has to be examined.
  const port = Number(/^http:\/\/[^/?#]*?:(\d+)(?:[/?#]|$)/i.exec(uri)?.[1] ?? 0)
  if (port === 0) throw unusable('has no port')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // A browser may resolve "localhost" to either loopback address.
  const hosts = host === 'localhost' ? ['127.0.0.1', '::1'] : [host]
  return { uri, listen: { hosts, port, path: url.pathname } }
}

/**
 * Reads pasted lines while a login waits: over SSH, in WSL or in a container, the browser can't reach the listener, but
 * the address that it ends up at can be copied. Input that fails yields nothing.
 *
 * @param ended called at the end of the input, after the last line.
 * @returns a function that stops reading and lets the process end.
 */
export function readPastedLines(
  stream: Readable,
  received: (line: string) => void,
  ended: () => void,
): () => void {
  const ignore = () => {}
  stream.on('error', ignore)
  const lines = createInterface({ input: stream, terminal: false, crlfDelay: Number.POSITIVE_INFINITY })
  lines.on('line', (line) => line.trim() !== '' && received(line))
  stream.on('end', ended)
  return () => {
    stream.off('end', ended)
    lines.close()
    // A referenced terminal or pipe would keep the process alive.
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
  }
}

/**
 * The parameters in a pasted redirect: the whole address, or only its query. A bare code is not accepted, because nothing
 * shows that it belongs to this login.
 *
 * @returns the parameters, or what is wrong with the line.
 */
export function parsePastedRedirect(line: string): URLSearchParams | string {
  // What terminals and mail programs put around an address.
  const [text = ''] = line.match(/[^"'<>\s]+/) ?? []
  const isQuery = text.startsWith('?') || /(^|&)state=/.test(text)
  const query = URL.canParse(text) ? new URL(text).search : isQuery ? text : ''
  if (query === '')
    return 'paste the whole address that the browser ended up at: it contains "code=" and "state="'
  return new URLSearchParams(query)
}
