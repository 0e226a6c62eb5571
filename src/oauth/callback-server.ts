import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Random } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { type CallbackPage, callbackPageHeaders, renderCallbackPage } from './callback-page.ts'
import type { RedirectTarget } from './redirect-uri.ts'

/** A redirect that carries the right state. The browser waits for `answer` while the code is being exchanged. */
export interface Callback {
  readonly parameters: URLSearchParams
  answer(page: CallbackPage): Promise<void>
}

export interface CallbackServer {
  readonly redirectUri: string
  close(): Promise<void>
}

export interface CallbackServerOptions {
  readonly target: RedirectTarget & { readonly listen: NonNullable<RedirectTarget['listen']> }
  readonly state: string
  readonly random: Random
  /**
   * Judges a redirect that carries the right state: a page says what is wrong with it (the wait goes on), nothing says
   * that it is the one. Called for each; only the first that passes is handed on.
   */
  judge(parameters: URLSearchParams): Promise<CallbackPage | undefined>
  received(callback: Callback): void
}

/** How long a client may take to send its request, in milliseconds: a browser on this machine needs no time at all. */
const REQUEST_TIMEOUT_MS = 10_000

/**
 * Listens for the redirect (RFC 8252 §7.3). Anything may knock: other programs, web pages in the browser, other users
 * of the machine. So method, target, Host and state are checked, in this order, before anything else is looked at; what
 * is wrong gets an error page and the wait goes on.
 *
 * @throws CliError `port_in_use` or `listen_failed`, exit 1.
 */
export async function startCallbackServer(options: CallbackServerOptions): Promise<CallbackServer> {
  const { listen } = options.target
  const servers: Server[] = []
  let taken = false
  let authority = ''

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const send = (page: CallbackPage) => sendPage(response, page, options.random)
    if (request.method !== 'GET') return send(METHOD_NOT_ALLOWED)
    const [path, query] = splitTarget(request.url ?? '')
    if (path !== listen.path) return send(NOT_FOUND)
    // Two Hosts are none (RFC 9112 §3.2); Node alone would take the first.
    const [host, ...hosts] = request.headersDistinct['host'] ?? []
    if (host?.toLowerCase() !== authority || hosts.length > 0) return send(WRONG_HOST)
    const parameters = new URLSearchParams(query)
    const [state, ...more] = parameters.getAll('state')
    if (state === undefined || more.length > 0 || !sameText(state, options.state)) return send(WRONG_STATE)
    if (taken) return send(ALREADY_USED)
    const complaint = await options.judge(parameters)
    if (complaint !== undefined) return send(complaint)
    if (taken) return send(ALREADY_USED)
    taken = true
    options.received({ parameters, answer: send })
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
    // Where there is no IPv6, the browser cannot come that way either; where the port is taken there, another
    // program would get the code.
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

/** What a browser sends as Host for this address: the port left out where it is http's own. */
function authorityOf(uri: string): string {
  return new URL(uri).host
}

/** Path and query of an origin-form target (RFC 9112 §3.2.1); any other form has no path here. */
function splitTarget(target: string): [path: string | undefined, query: string] {
  if (!target.startsWith('/') || target.startsWith('//')) return [undefined, '']
  const at = target.indexOf('?')
  return at < 0 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)]
}

/** Compares without telling by its time how much was right. */
function sameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** @returns the port, which the system chooses where 0 is given. */
function startListening(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      // A server that stays open would keep the program from ending.
      server.close()
      reject(
        error.code === 'EADDRINUSE'
          ? new CliError('port_in_use', Exit.bug, `port ${port} on ${host} is in use by another program`, {
              hint: 'end that program, or leave --port out for a free one',
              cause: error,
            })
          : new CliError(
              'listen_failed',
              Exit.bug,
              `cannot listen on ${host}:${port} (${error.code ?? error.message})`,
              {
                hint: 'use --no-browser and paste the address that the browser ends at',
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
          // A client that never finishes its request must not keep the program from ending.
          server.closeAllConnections()
        }),
    ),
  )
}

const WAIT_GOES_ON = 'The sign-in in your terminal still waits for the right answer.'
const METHOD_NOT_ALLOWED: CallbackPage = { status: 405, title: 'Not allowed', text: WAIT_GOES_ON }
const NOT_FOUND: CallbackPage = { status: 404, title: 'Nothing here', text: WAIT_GOES_ON }
const WRONG_HOST: CallbackPage = { status: 421, title: 'Wrong address', text: WAIT_GOES_ON }
const WRONG_STATE: CallbackPage = {
  status: 400,
  title: 'This is not the answer to the sign-in that is waiting',
  text: `Its state does not match. If you started more than one sign-in, finish the newest. ${WAIT_GOES_ON}`,
}
const ALREADY_USED: CallbackPage = {
  status: 400,
  title: 'Already answered',
  text: 'This sign-in has had its answer. See your terminal.',
}
