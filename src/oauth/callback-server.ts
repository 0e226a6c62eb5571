import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CliError, Exit } from '../errors.ts'
import { html } from '../terminal/html.ts'
import type { RedirectTarget } from './redirect.ts'

/** The page at the end of the redirect. Its texts may come from anyone: they are escaped when it is rendered. */
export interface CallbackPage {
  readonly status: 200 | 400 | 404 | 405 | 421 | 500
  readonly title: string
  readonly text: string
}

export interface CallbackServer {
  readonly redirectUri: string
  close(): Promise<void>
}

export interface CallbackServerOptions<T> {
  readonly uri: RedirectTarget['uri']
  readonly listen: NonNullable<RedirectTarget['listen']>
  readonly state: string
  /** Validates a redirect with the right state. A text says what is wrong with it, and the wait continues. */
  validate(parameters: URLSearchParams): Promise<T | string>
  /** Called once, for the first valid redirect. The browser waits for the page while the code is exchanged. */
  received(valid: T, respond: (page: CallbackPage) => Promise<void>): void
}

/** How long a client may take to send its request: a browser on this machine needs almost no time. */
const REQUEST_TIMEOUT_MS = 10_000

const STILL_WAITING = 'The sign-in in your terminal is still waiting for the right answer.'
const page = (status: CallbackPage['status'], title: string, text = STILL_WAITING): CallbackPage => ({
  status,
  title,
  text,
})

/**
 * Listens for the redirect (RFC 8252 section 7.3). Anything can connect: other programs, web pages in the browser, other
 * users of the machine. So method, path, Host and state are checked before anything else; any other request gets an error
 * page, and the wait continues.
 *
 * @throws CliError `port_in_use` or `listen_failed`, exit 1.
 */
export async function startCallbackServer<T>(options: CallbackServerOptions<T>): Promise<CallbackServer> {
  const { listen, state: expected } = options
  const servers: Server[] = []
  let isTaken = false
  let authority = ''

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const send = (answer: CallbackPage) => sendPage(response, answer)
    const alreadyUsed = page(
      400,
      'Already answered',
      'This sign-in already has its answer. See your terminal.',
    )
    if (request.method !== 'GET') return send(page(405, 'Not allowed'))
    // Only the origin form of a target has the path first (RFC 9112 section 3.2.1).
    const [path, ...query] = (request.url ?? '').split('?')
    if (path !== listen.path) return send(page(404, 'Nothing here'))
    // Two Host headers are invalid (RFC 9112 section 3.2); Node would use the first.
    const [host, ...hosts] = request.headersDistinct['host'] ?? []
    if (host?.toLowerCase() !== authority || hosts.length > 0) return send(page(421, 'Wrong address'))
    const parameters = new URLSearchParams(query.join('?'))
    const [state = '', ...others] = parameters.getAll('state')
    if (others.length > 0 || !isSameText(state, expected))
      return send(
        page(400, 'This answer belongs to another sign-in', `Finish the newest one. ${STILL_WAITING}`),
      )
    if (isTaken) return send(alreadyUsed)
    const result = await options.validate(parameters)
    if (typeof result === 'string')
      return send(page(400, 'This answer cannot be used', `Reason: ${result}. ${STILL_WAITING}`))
    if (isTaken) return send(alreadyUsed)
    isTaken = true
    options.received(result, send)
  }

  async function open(host: string, port: number): Promise<number> {
    const server = createServer((request, response) => {
      request.resume()
      handle(request, response).catch(() => response.destroy())
    })
    server.requestTimeout = server.headersTimeout = REQUEST_TIMEOUT_MS
    server.keepAliveTimeout = 1
    const bound = await startListening(server, host, port)
    servers.push(server)
    return bound
  }

  const [first = '127.0.0.1', ...others] = listen.hosts
  const port = await open(first, listen.port)
  for (const host of others) {
    // Without IPv6, the browser can't use that address either. But if another program has the port there, it would get
    // the code.
    await open(host, port).catch(async (error: unknown) => {
      if (!(error instanceof CliError && error.code === 'port_in_use')) return
      await closeAll(servers)
      throw error
    })
  }
  const redirectUri = options.uri ?? `http://${first}:${port}${listen.path}`
  // Without the default port, as in a Host header.
  authority = new URL(redirectUri).host
  return { redirectUri, close: () => closeAll(servers) }
}

/** Compares in constant time. */
function isSameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** @returns the port, which the system chooses if 0 is given. */
function startListening(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      // An open server would keep the process alive.
      server.close()
      const isInUse = error.code === 'EADDRINUSE'
      const why = isInUse ? 'it is in use' : (error.code ?? error.message)
      reject(
        new CliError(
          isInUse ? 'port_in_use' : 'listen_failed',
          Exit.bug,
          `cannot listen on ${host}:${port}: ${why}`,
          {
            hint: 'stop what uses it, or use --no-browser and paste the address that the browser ends up at',
            cause: error,
          },
        ),
      )
    })
    server.listen({ host, port, exclusive: true }, () => resolve((server.address() as AddressInfo).port))
  })
}

async function closeAll(servers: readonly Server[]): Promise<void> {
  const close = (server: Server) =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      // A client that never finishes its request must not keep the process alive.
      server.closeAllConnections()
    })
  await Promise.all(servers.map(close))
}

export const SIGNED_IN = page(
  200,
  'You are signed in',
  'The session is stored. You can close this window and return to your terminal.',
)

export function notSignedInPage(error: unknown): CallbackPage {
  const isExpected = error instanceof CliError && error.exit !== Exit.bug
  const why = error instanceof CliError ? error.message : 'Something unexpected happened'
  return page(isExpected ? 400 : 500, 'You are not signed in', `${why}. See your terminal for more.`)
}

/** Settles when the page has been handed to the browser, or the browser has gone. */
function sendPage(response: ServerResponse, shown: CallbackPage): Promise<void> {
  const nonce = randomBytes(16).toString('base64')
  return new Promise((resolve) => {
    if (response.destroyed) return resolve() // The tab was closed meanwhile.
    response.once('finish', resolve)
    response.once('close', resolve)
    // They prevent the page from running, loading, framing, leaking or storing anything.
    response.writeHead(shown.status, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `default-src 'none'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      connection: 'close',
    })
    response.end(renderPage(shown, nonce))
  })
}

function renderPage({ title, text }: CallbackPage, nonce: string): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · mailclaim</title>
<style nonce="${nonce}">
:root { color-scheme: light dark }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: Canvas; color: CanvasText; font: 1rem/1.5 system-ui, sans-serif }
main { width: min(32rem, calc(100% - 2rem)); overflow-wrap: anywhere }
</style>
</head>
<body>
<main>
<p>mailclaim</p>
<h1>${title}</h1>
<p>${text}</p>
</main>
</body>
</html>
`.toString()
}
