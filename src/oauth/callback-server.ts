import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Random } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { type CallbackPage, callbackPageHeaders, ERROR_PAGES, renderCallbackPage } from './callback-page.ts'
import type { RedirectTarget } from './redirect-uri.ts'

export interface CallbackServer {
  readonly redirectUri: string
  close(): Promise<void>
}

export interface CallbackServerOptions<T> {
  readonly target: RedirectTarget & { readonly listen: NonNullable<RedirectTarget['listen']> }
  readonly state: string
  readonly random: Random
  /** Validates a redirect with the right state. A page says what is wrong with it, and the wait continues. */
  validate(parameters: URLSearchParams): Promise<{ readonly valid: T } | { readonly page: CallbackPage }>
  /** Called once, for the first valid redirect. The browser waits for the page while the code is exchanged. */
  received(valid: T, respond: (page: CallbackPage) => Promise<void>): void
}

/** How long a client may take to send its request: a browser on this machine needs almost no time. */
const REQUEST_TIMEOUT_MS = 10_000

/**
 * Listens for the redirect (RFC 8252 section 7.3). Anything can connect: other programs, web pages in the browser, other
 * users of the machine. So method, target, Host and state are checked, in this order, before anything else; any other
 * request gets an error page, and the wait continues.
 *
 * @throws CliError `port_in_use` or `listen_failed`, exit 1.
 */
export async function startCallbackServer<T>(options: CallbackServerOptions<T>): Promise<CallbackServer> {
  const { listen } = options.target
  const servers: Server[] = []
  let taken = false
  let authority = ''

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const send = (page: CallbackPage) => sendPage(response, page, options.random)
    if (request.method !== 'GET') return send(ERROR_PAGES.methodNotAllowed)
    const [path, query] = splitTarget(request.url ?? '')
    if (path !== listen.path) return send(ERROR_PAGES.notFound)
    // Two Host headers are invalid (RFC 9112 section 3.2); Node would use the first.
    const [host, ...hosts] = request.headersDistinct['host'] ?? []
    if (host?.toLowerCase() !== authority || hosts.length > 0) return send(ERROR_PAGES.wrongHost)
    const parameters = new URLSearchParams(query)
    const [state, ...more] = parameters.getAll('state')
    if (state === undefined || more.length > 0 || !sameText(state, options.state))
      return send(ERROR_PAGES.wrongState)
    if (taken) return send(ERROR_PAGES.alreadyUsed)
    const result = await options.validate(parameters)
    if ('page' in result) return send(result.page)
    if (taken) return send(ERROR_PAGES.alreadyUsed)
    taken = true
    options.received(result.valid, send)
  }

  const open = async (host: string, port: number): Promise<number> => {
    const server = createServer((request, response) => {
      request.resume()
      handle(request, response).catch(() => response.destroy())
    })
    server.requestTimeout = REQUEST_TIMEOUT_MS
    server.headersTimeout = REQUEST_TIMEOUT_MS
    server.keepAliveTimeout = 1
    const actual = await startListening(server, host, port)
    servers.push(server)
    return actual
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
  const redirectUri = options.target.uri(port)
  authority = authorityOf(redirectUri)
  return { redirectUri, close: () => closeAll(servers) }
}

/** The Host header for this address, without the default port. */
function authorityOf(uri: string): string {
  return new URL(uri).host
}

/** Path and query of an origin-form target (RFC 9112 section 3.2.1); undefined for any other form. */
function splitTarget(target: string): [path: string | undefined, query: string] {
  if (!target.startsWith('/') || target.startsWith('//')) return [undefined, '']
  const at = target.indexOf('?')
  return at < 0 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)]
}

/** Compares in constant time. */
function sameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** @returns the port, which the system chooses if 0 is given. */
function startListening(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      // An open server would keep the process alive.
      server.close()
      reject(
        error.code === 'EADDRINUSE'
          ? new CliError('port_in_use', Exit.bug, `port ${port} on ${host} is in use by another program`, {
              hint: 'stop that program, or leave out --port to use a free one',
              cause: error,
            })
          : new CliError(
              'listen_failed',
              Exit.bug,
              `cannot listen on ${host}:${port} (${error.code ?? error.message})`,
              {
                hint: 'use --no-browser and paste the address that the browser ends up at',
                cause: error,
              },
            ),
      )
    }
    server.once('error', fail)
    server.listen({ host, port, exclusive: true }, () => {
      try {
        resolve((server.address() as AddressInfo).port)
      } catch (error) {
        fail(error as NodeJS.ErrnoException)
      }
    })
  })
}

/** Settles when the page has been handed to the browser, or the browser has gone. */
function sendPage(response: ServerResponse, page: CallbackPage, random: Random): Promise<void> {
  const nonce = Buffer.from(random.bytes(16)).toString('base64')
  return new Promise((resolve) => {
    if (response.destroyed) return resolve() // The tab was closed meanwhile.
    response.once('finish', resolve)
    response.once('close', resolve)
    response.writeHead(page.status, callbackPageHeaders(nonce))
    response.end(renderCallbackPage(page, nonce))
  })
}

async function closeAll(servers: readonly Server[]): Promise<void> {
  await Promise.all(
    servers.map(
      (server) =>
        new Promise<void>((resolve) => {
          server.close(() => resolve())
          // A client that never finishes its request must not keep the process alive.
          server.closeAllConnections()
        }),
    ),
  )
}
