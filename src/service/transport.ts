import { setMaxListeners } from 'node:events'
import type { Dispatcher } from 'undici'
import Agent from 'undici/lib/dispatcher/agent.js'
import {
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  type TlsIdentity,
  TransportError,
} from '../context.ts'
import { formatDuration } from '../terminal/time.ts'
import { type ProxySettings, proxyFor, tunnelThroughProxy } from './proxy.ts'
import { classify } from './transport-errors.ts'

/** How long a kept-alive connection may idle: less than servers allow, so that none is reused while it is closing. */
const KEEP_ALIVE_MS = 4000
/** How long connecting may take, TLS included. */
const CONNECT_TIMEOUT_MS = 10_000
/** How long a proxy may take to open a tunnel: less, so that a silent proxy is named as the cause. */
const TUNNEL_TIMEOUT_MS = 9000
/** How long, after the time limit, to go on reading what has already arrived. */
const LATE_READ_MS = 1000
/** How much of a body may wait to be read before the connection is paused. */
const MAX_UNREAD_BYTES = 64 * 1024

/**
 * HTTP/1.1 with undici: kept-alive connections, no redirects, no retries, no compression, proxies from the environment.
 * `timeoutMs` of a request limits the whole exchange, from resolving the host to the last byte of the body.
 */
export function createTransport(proxies: ProxySettings, tunnelTimeoutMs = TUNNEL_TIMEOUT_MS): HttpTransport {
  const dispatchers = new Map<string, Dispatcher>()
  const closing = new AbortController()
  // Any number of requests can be in progress.
  setMaxListeners(0, closing.signal)

  function createDispatcher(proxy: string | undefined, keepAlive: boolean, tls: TlsIdentity | undefined) {
    const connect = { signal: closing.signal, timeout: CONNECT_TIMEOUT_MS, ...tls }
    const options = {
      // `timeoutMs` of the request is the limit.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      pipelining: keepAlive ? 1 : 0,
    }
    return proxy === undefined
      ? new Agent({ ...options, connect })
      : tunnelThroughProxy(proxy, connect, tunnelTimeoutMs, options)
  }

  return {
    async send(request) {
      await readPendingInput()
      const proxy = proxyFor(request.url, proxies)
      const keepAlive = request.freshConnection !== true
      const name = JSON.stringify([keepAlive, proxy, request.tls])
      const dispatcher = dispatchers.get(name) ?? createDispatcher(proxy, keepAlive, request.tls)
      dispatchers.set(name, dispatcher)
      return new Exchange(request, closing.signal).start(dispatcher)
    },
    async close() {
      // Not gracefully: nobody waits for what is still open.
      closing.abort()
      await Promise.all([...dispatchers.values()].map((dispatcher) => dispatcher.destroy()))
    },
  }
}

/**
 * Runs the event loop until it has read what has arrived. Before a request, this drops kept-alive connections that the
 * service has closed (many servers close one right after a response without announcing it, and a POST on it could not be
 * retried), and lets undici release the connection of the previous response.
 */
async function readPendingInput(): Promise<void> {
  // The first callback can run before the event loop polls for input, and a closed connection is reported a turn later.
  for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve))
}

/** One request and its response. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: HttpRequest
  readonly #signals: readonly AbortSignal[]
  readonly #interrupt = () =>
    this.#failWith('aborted', 'the request was canceled', this.#request.signal?.reason)
  readonly #body = new ResponseBody((why) => this.#fail(why))
  #resolve: (response: HttpResponse) => void = () => {}
  #reject: (error: TransportError) => void = () => {}
  #connection: Dispatcher.DispatchController | undefined
  #timer: NodeJS.Timeout | undefined
  /** Whether a byte of the request can have left this machine. */
  #isSending = false
  /** How many parts of the response have arrived. */
  #arrivals = 0
  #failure: TransportError | undefined
  #isOver = false

  constructor(request: HttpRequest, closing: AbortSignal) {
    this.#request = request
    this.#signals = request.signal === undefined ? [closing] : [closing, request.signal]
  }

  start(dispatcher: Dispatcher): Promise<HttpResponse> {
    const { url, method, headers, body } = this.#request
    const response = new Promise<HttpResponse>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#startTimer()
    for (const signal of this.#signals) {
      if (signal.aborted) this.#interrupt()
      else signal.addEventListener('abort', this.#interrupt, { once: true })
    }
    if (this.#isOver) return response
    const options = {
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      // A compressed answer that is damaged or mislabeled could lose the only copy of a refresh token.
      headers: { 'accept-encoding': 'identity', ...headers },
      ...(body === undefined ? {} : { body }),
    }
    try {
      dispatcher.dispatch(options, this)
    } catch (error) {
      this.#fail(classify(error, false))
    }
    return response
  }

  #startTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#expire(), this.#request.timeoutMs)
  }

  /** The connection (through a proxy: the tunnel) is established; nothing is written before this returns. */
  onRequestStart(connection: Dispatcher.DispatchController): void {
    const { beforeSend } = this.#request
    try {
      if (!this.#isOver) beforeSend?.()
    } catch (error) {
      this.#fail(new TransportError('aborted', 'no', 'the request was not sent', error))
    }
    if (this.#failure !== undefined) {
      // Close it: left open, it could serve a request that asked for a fresh connection.
      connection.abort(this.#failure)
      return
    }
    if (beforeSend !== undefined) this.#startTimer()
    this.#connection = connection
    this.#isSending = true
  }

  onResponseStart(
    connection: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#arrivals++
    if (this.#isOver) return
    // Informational responses are ignored, except 101: this client doesn't upgrade.
    if (status >= 100 && status < 200 && status !== 101) return
    if (status < 200) {
      this.#failWith('protocol', `invalid HTTP response: ${status} is not a final status`)
      return
    }
    this.#body.source = connection
    this.#resolve({ status, headers: joinHeaders(headers), body: this.#body })
  }

  onResponseData(connection: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#arrivals++
    if (!this.#isOver && this.#body.push(chunk) >= MAX_UNREAD_BYTES) connection.pause()
  }

  onResponseEnd(): void {
    if (this.#isOver) return
    this.#settle()
    this.#body.end()
  }

  onResponseError(_connection: unknown, error: Error): void {
    this.#fail(classify(error, this.#isSending))
  }

  /**
   * The time is up. Timers run before sockets are read, so after a suspension the response may be waiting in the socket:
   * reads what has arrived, as long as there is more, before failing.
   */
  async #expire(): Promise<void> {
    const until = performance.now() + LATE_READ_MS
    let before: number
    do {
      before = this.#arrivals
      await readPendingInput()
    } while (!this.#isOver && this.#arrivals > before && performance.now() < until)
    this.#failWith('timeout', `no complete response within ${formatDuration(this.#request.timeoutMs / 1000)}`)
  }

  #failWith(kind: TransportError['kind'], message: string, cause?: unknown): void {
    this.#fail(new TransportError(kind, this.#isSending ? 'maybe' : 'no', message, cause))
  }

  #fail(failure: TransportError): void {
    if (this.#isOver) return
    this.#settle()
    this.#failure = failure
    this.#reject(failure)
    this.#connection?.abort(failure)
    this.#body.end(failure)
  }

  #settle(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#interrupt)
  }
}

/** A body as it arrives. If it is cut short, what has arrived can be read before the failure is thrown. */
class ResponseBody implements AsyncIterableIterator<Uint8Array, undefined> {
  source: Dispatcher.DispatchController | undefined
  readonly #abandon: (why: TransportError) => void
  readonly #chunks: Uint8Array[] = []
  #unreadBytes = 0
  #isEnded = false
  #failure: TransportError | undefined
  #wake = () => {}

  /** @param abandon ends the exchange if the reader stops early */
  constructor(abandon: (why: TransportError) => void) {
    this.#abandon = abandon
  }

  /** @returns how many bytes wait to be read */
  push(chunk: Uint8Array): number {
    this.#chunks.push(chunk)
    this.#unreadBytes += chunk.length
    this.#wake()
    return this.#unreadBytes
  }

  end(failure?: TransportError): void {
    this.#isEnded = true
    this.#failure = failure
    this.#wake()
  }

  [Symbol.asyncIterator]() {
    return this
  }

  // Not a generator: V8 keeps what one held alive until its next full collection, some 8 kB for every response.
  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    while (this.#chunks.length === 0 && !this.#isEnded) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const value = this.#chunks.shift()
    if (value !== undefined) {
      this.#unreadBytes -= value.length
      if (this.#unreadBytes < MAX_UNREAD_BYTES && !this.#isEnded) this.source?.resume()
      return { done: false, value }
    }
    if (this.#failure !== undefined) throw this.#failure
    return { done: true, value }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#abandon(new TransportError('aborted', 'maybe', 'the response was not read to its end'))
    return { done: true, value: undefined }
  }
}

/** Joins repeated headers. Built from entries, because a header can be called `__proto__`. */
function joinHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]))
}
