import { setMaxListeners } from 'node:events'
import type { Dispatcher } from 'undici'
import symbols from 'undici/lib/core/symbols.js'
import Agent from 'undici/lib/dispatcher/agent.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import { type HttpRequest, type HttpResponse, type HttpTransport, TransportError } from '../context.ts'
import { type ProxySettings, proxyFor, tunnelThrough } from './proxy.ts'
import { responseBody, undecodable } from './response-body.ts'
import { classify } from './transport-errors.ts'

/** How long a kept-alive connection may idle: shorter than servers allow, so that none is used while it is closed. */
const KEEP_ALIVE_MS = 4000
/** How long a connection may take to be made, TLS included. */
const CONNECT_MS = 10_000
/** How long a proxy may take to open a tunnel: less, so that it is named where it is the one that stays silent. */
const TUNNEL_MS = 9000
/** For how long at most, after the time limit, what has already arrived is still read. */
const LATE_READ_MS = 1000
const ACCEPTED_ENCODINGS = 'gzip, deflate, br'

/**
 * HTTP/1.1 by undici: one exchange a call, kept-alive connections, no redirects, no retries, proxies as the environment
 * says. `timeoutMs` of a request bounds the whole exchange, from the look-up of the host to the last byte of the body, so
 * that neither silence nor a slow drip holds anybody up.
 */
export function createTransport(proxies: ProxySettings, tunnelMs = TUNNEL_MS): HttpTransport {
  const dispatchers = new Map<string, Dispatcher>()
  const closing = new AbortController()
  // As many requests as there are may be on their way.
  setMaxListeners(0, closing.signal)
  const connect = { signal: closing.signal, timeout: CONNECT_MS }

  function createDispatcher(proxy: string | undefined, keepAlive: boolean): Dispatcher {
    const options = {
      // `timeoutMs` of each request is the limit.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      pipelining: keepAlive ? 1 : 0,
      factory: (origin: string | URL, settings: object) =>
        new Pool(origin, settings).on('connect', (_origin, targets) => ignoreContinue(targets.at(-1))),
    }
    return proxy === undefined
      ? new Agent({ ...options, connect })
      : tunnelThrough(proxy, connect, tunnelMs, options)
  }

  return {
    async send(request) {
      await readWhatArrived()
      const proxy = proxyFor(request.url, proxies)
      const keepAlive = request.freshConnection !== true
      const name = `${keepAlive} ${proxy}`
      const dispatcher = dispatchers.get(name) ?? createDispatcher(proxy, keepAlive)
      dispatchers.set(name, dispatcher)
      return new Exchange(request, dispatcher, closing.signal).response
    },
    async close() {
      // Not gracefully: what is still open has been given up.
      closing.abort()
      await Promise.all([...dispatchers.values()].map((dispatcher) => dispatcher.destroy()))
    },
  }
}

/**
 * A whole turn of the event loop, in which it reads what has arrived. Before a request, that shows which kept-alive
 * connections the service has closed (many servers close one right behind an answer without a word about it, and a POST
 * that meets that cannot be sent again), and undici frees the connection of the answer before.
 */
async function readWhatArrived(): Promise<void> {
  // The first may come before the system is asked what has arrived.
  for (let turns = 0; turns < 2; turns++) await new Promise((resolve) => setImmediate(resolve))
}

interface Parser {
  onHeadersComplete(status: number, ...more: unknown[]): number
}

/**
 * A client must pass over a "100 Continue" that it has not asked for (RFC 9110 section 15.2). undici takes it for a broken
 * answer, and passes over the others of its class.
 */
function ignoreContinue(client: object | undefined): void {
  const socket = (client as { [symbols.kSocket]?: { [symbols.kParser]?: Parser } })[symbols.kSocket]
  const parser = socket?.[symbols.kParser]
  if (parser === undefined) return
  const { onHeadersComplete } = parser
  parser.onHeadersComplete = (status, ...more) =>
    onHeadersComplete.call(parser, status === 100 ? 102 : status, ...more)
}

/** One request and its answer. */
class Exchange implements Dispatcher.DispatchHandler {
  #answered: (response: HttpResponse) => void = () => {}
  #rejected: (error: TransportError) => void = () => {}
  readonly response = new Promise<HttpResponse>((resolve, reject) => {
    this.#answered = resolve
    this.#rejected = reject
  })
  readonly #request: HttpRequest
  readonly #closing: AbortSignal
  #timer: NodeJS.Timeout | undefined
  readonly #interrupt = () =>
    this.#giveUp('aborted', 'the request was abandoned', this.#request.signal?.reason)
  /** Of the connection, from the moment at which a byte of the request can leave this machine. */
  #connection: Dispatcher.DispatchController | undefined
  /** Where the answer goes. */
  #reader: Dispatcher.DispatchHandler | undefined
  /** Counts what has arrived. */
  #arrivals = 0
  #over = false
  #failure: TransportError | undefined

  constructor(request: HttpRequest, dispatcher: Dispatcher, closing: AbortSignal) {
    this.#request = request
    this.#closing = closing
    if (request.signal?.aborted || closing.aborted) this.#interrupt()
    else this.#begin(dispatcher)
  }

  #begin(dispatcher: Dispatcher): void {
    const { url, method, headers, body, signal, timeoutMs } = this.#request
    signal?.addEventListener('abort', this.#interrupt, { once: true })
    this.#closing.addEventListener('abort', this.#interrupt, { once: true })
    this.#timer = setTimeout(() => this.#expire(), timeoutMs)
    try {
      dispatcher.dispatch(
        {
          origin: url.origin,
          path: `${url.pathname}${url.search}`,
          method,
          headers: { 'accept-encoding': ACCEPTED_ENCODINGS, ...headers },
          ...(body === undefined ? {} : { body }),
        },
        this,
      )
    } catch (error) {
      this.#fail(classify(error, false))
    }
  }

  /** The connection is there, through a proxy the tunnel, and nothing is written before this has returned. */
  onRequestStart(connection: Dispatcher.DispatchController): void {
    try {
      if (!this.#over) this.#request.beforeSend?.()
    } catch (error) {
      this.#fail(new TransportError('aborted', 'no', 'the request was not sent', error))
    }
    // Closed, not left for another request: one that wants a fresh connection would get it when it is no longer fresh.
    if (this.#failure !== undefined) connection.abort(this.#failure)
    else this.#connection = connection
  }

  onResponseStart(
    connection: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#arrivals++
    if (this.#over) return
    // Information on the way. 101 is none: it changes the protocol, which was not asked for.
    if (status >= 100 && status < 200 && status !== 101) return
    if (status < 200) {
      this.#giveUp('protocol', `the answer is not valid HTTP: ${status} is no status to end with`)
      return
    }
    const { handler, body } = responseBody(() => this.#failure)
    this.#reader = handler
    const pause = () => connection.pause()
    const resume = () => connection.resume()
    const abort = (reason: Error) => this.#abandon(connection, reason)
    const upstream = { aborted: false, paused: false, reason: null, pause, resume, abort }
    handler.onRequestStart?.(upstream, null)
    handler.onResponseStart?.(upstream, status, headers)
    this.#answered({ status, headers: joined(headers), body })
  }

  onResponseData(connection: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#arrivals++
    if (!this.#over) this.#reader?.onResponseData?.(connection, chunk)
  }

  onResponseEnd(connection: Dispatcher.DispatchController): void {
    if (this.#over) return
    this.#settle()
    this.#reader?.onResponseEnd?.(connection, {})
  }

  onResponseError(_connection: unknown, error: Error): void {
    this.#fail(classify(error, this.#connection !== undefined))
  }

  /**
   * The time is up. A process that was stopped finds its answer in the socket, and timers run before sockets are read: so
   * what has arrived is read first, as long as there is more of it.
   */
  async #expire(): Promise<void> {
    const until = performance.now() + LATE_READ_MS
    let before: number
    do {
      before = this.#arrivals
      await readWhatArrived()
    } while (!this.#over && this.#arrivals > before && performance.now() < until)
    this.#giveUp('timeout', `no complete answer within ${this.#request.timeoutMs / 1000} s`)
  }

  #giveUp(kind: TransportError['kind'], message: string, cause?: unknown): void {
    this.#fail(new TransportError(kind, this.#connection === undefined ? 'no' : 'maybe', message, cause))
  }

  #fail(failure: TransportError): void {
    if (this.#over) return
    this.#settle()
    this.#failure = failure
    this.#rejected(failure)
    this.#connection?.abort(failure)
    // As if that were all: what has arrived is decompressed and can be read, and the failure stands at its end.
    if (this.#connection !== undefined) this.#reader?.onResponseEnd?.(this.#connection, {})
  }

  /** The reader wants no more of the answer, or cannot make sense of it. */
  #abandon(connection: Dispatcher.DispatchController, reason: Error): void {
    const reader = this.#reader
    this.#reader = undefined
    this.#fail(undecodable(reason))
    reader?.onResponseError?.(connection, reason)
  }

  #settle(): void {
    this.#over = true
    clearTimeout(this.#timer)
    for (const signal of [this.#request.signal, this.#closing])
      signal?.removeEventListener('abort', this.#interrupt)
  }
}

/** Repeated headers joined. Built of entries, because a header may be called like something that every object has. */
function joined(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]))
}
