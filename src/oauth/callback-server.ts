import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { finished } from 'node:stream/promises'
import { CliError } from '../errors.ts'
import { html } from '../terminal/html.ts'
import type { RedirectionEndpoint } from './redirect.ts'

/** Page that the callback server sends to a browser. Title and text may quote untrusted input; rendering escapes both. */
export interface CallbackPage {
  readonly status: number
  readonly title: string
  readonly text: string
}

interface CallbackServerOptions {
  readonly endpoint: RedirectionEndpoint
  readonly state: string
  /**
   * Called with the parameters of each redirect that passes the server's checks, until one is accepted. The browser that brought
   * the accepted redirect then waits until `respond` is called with a page.
   *
   * @returns why the redirect is refused; undefined if it is accepted
   */
  receive(parameters: URLSearchParams, respond: (page: CallbackPage) => Promise<void>): string | undefined
}

export const SIGNED_IN_PAGE: CallbackPage = {
  status: 200,
  title: 'You are signed in',
  text: 'The session is stored. You can close this window and return to your terminal.',
}

export function toFailurePage(error: unknown): CallbackPage {
  const reason = error instanceof CliError ? error.message : 'Something unexpected happened'
  return { status: 400, title: 'You are not signed in', text: `${reason}. See your terminal for more.` }
}

/**
 * Starts the HTTP server that receives the redirect (RFC 8252 section 7.3). Other programs, web pages and users of the machine can
 * send requests too, so a request with another method, path, Host or state gets an error page and doesn't affect the sign-in.
 *
 * @returns the redirect URI with the actual port, and a function that stops the server
 * @throws CliError `cannot_listen`, exit 1, for example if the port is in use
 */
export async function startCallbackServer({ endpoint, state, receive }: CallbackServerOptions) {
  const servers: Server[] = []
  /** Query of the accepted redirect; undefined until a redirect is accepted. */
  let taken: string | undefined
  /** Responses to requests with the accepted redirect, held until `respond` is called. */
  const waiting: ServerResponse[] = []
  let final: CallbackPage | undefined
  let authority = ''

  /** Returns the page for a request; undefined if the browser has to wait until `respond` is called. */
  function examine(request: IncomingMessage, response: ServerResponse): CallbackPage | undefined {
    const refuse = (status: number, title: string, why = '') => {
      const text = `${why} The sign-in in your terminal is still waiting for the right answer.`
      return { status, title, text }
    }
    if (request.method !== 'GET') return refuse(405, 'Not allowed')
    const [path, ...query] = (request.url ?? '').split('?')
    // Only a request target in origin form begins with the path (RFC 9112 section 3.2.1), so this check also refuses the absolute
    // form.
    if (path !== endpoint.path) return refuse(404, 'Nothing here')
    const [host, ...hosts] = request.headersDistinct['host'] ?? []
    // Refuse a Host header that isn't the address of this server (DNS rebinding), and a second Host header, which RFC 9112 section
    // 3.2 forbids: Node would silently use the first.
    if (host?.toLowerCase() !== authority || hosts.length > 0)
      return refuse(421, 'Wrong address', 'Copy the address of this page, and paste it into your terminal.')
    const { purpose, 'sec-purpose': secPurpose, 'x-moz': moz } = request.headers
    // Refuse a prefetch: it would use up the code, although the browser may never show the page.
    if (/prefetch|prerender/i.test(`${purpose} ${secPurpose} ${moz}`)) return refuse(503, 'Not loaded ahead')
    const search = query.join('?')
    const parameters = new URLSearchParams(search)
    const [found, ...more] = parameters.getAll('state')
    if (more.length > 0 || found !== state) return refuse(400, 'This answer belongs to another sign-in')
    if (taken !== undefined && search !== taken)
      return refuse(400, 'Already answered', 'Only the first answer counts.')
    const wrong = taken === undefined ? receive(parameters, show) : undefined
    if (wrong !== undefined) return refuse(400, 'This answer cannot be used', `Reason: ${wrong}.`)
    taken = search
    if (final === undefined) waiting.push(response)
    return final
  }

  async function show(page: CallbackPage): Promise<void> {
    final = page
    await Promise.all(waiting.map((response) => sendPage(response, page)))
  }

  async function open(host: string, port: number): Promise<number> {
    const server = createServer((request, response) => {
      request.resume()
      const page = examine(request, response)
      if (page !== undefined) void sendPage(response, page)
    })
    servers.push(server)
    server.listen({ host, port, exclusive: true })
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  async function close(): Promise<void> {
    const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)))
    // Close all connections: a client that never finishes its request would keep the server, and so the process, alive.
    for (const server of servers) server.closeAllConnections()
    await Promise.all(closed)
  }

  const [first = '127.0.0.1', ...others] = endpoint.hosts
  try {
    const port = await open(first, endpoint.port)
    for (const host of others) {
      // Fail if another program listens on this port of the host, because that program could receive the code. Ignore other errors:
      // a machine without IPv6 can't listen on ::1.
      await open(host, port).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE') throw error
      })
    }
    const redirectUri = endpoint.uri ?? `http://${first}:${port}${endpoint.path}`
    // Take the host from the parsed URL, which omits port 80, as browsers do in the Host header that `examine` compares.
    authority = new URL(redirectUri).host
    return { redirectUri, close }
  } catch (error) {
    await close()
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'it is in use' : code
    const message = `cannot listen on port ${endpoint.port} of this machine: ${why}`
    const hint = 'stop what uses it, or use another --redirect-uri'
    throw new CliError('cannot_listen', message, { hint, cause: error })
  }
}

/** Sends a page; resolves when the page is written to the connection, or the connection is closed. */
async function sendPage(response: ServerResponse, page: CallbackPage): Promise<void> {
  // Skip a closed connection (as of a closed tab): writing to it would emit an error.
  if (response.destroyed) return
  const nonce = randomBytes(16).toString('base64')
  // The headers keep the page from running scripts, loading resources, being framed, sending a Referer, or being cached.
  response.writeHead(page.status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    connection: 'close',
  })
  response.end(renderPage(page, nonce))
  await finished(response).catch(() => {})
}

function renderPage({ title, text }: CallbackPage, nonce: string): string {
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · mailclaim</title>
<style nonce="${nonce}">
:root { color-scheme: light dark }
body { max-width: 32rem; margin: 4rem auto; padding: 0 1rem; background: Canvas; color: CanvasText; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
</style>
<main>
<p>mailclaim</p>
<h1>${title}</h1>
<p>${text}</p>
</main>
</html>
`.toString()
}
