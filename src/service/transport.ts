import { setMaxListeners } from 'node:events'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { Dispatcher } from 'undici'
import symbols from 'undici/lib/core/symbols.js'
import Agent from 'undici/lib/dispatcher/agent.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import {
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  type TlsIdentity,
  TransportError,
} from '../context.ts'
import { formatDuration } from '../terminal/duration.ts'
import { type ProxySettings, proxyFor, tunnelThroughProxy } from './proxy.ts'
import { decodingError, responseBody } from './response-body.ts'
import { classify } from './transport-errors.ts'

/** How long a kept-alive connection may idle: less than servers allow, so that none is reused while it is closing. */
const KEEP_ALIVE_MS = 4000
/** How long connecting may take, TLS included. */
const CONNECT_TIMEOUT_MS = 10_000
/** How long a proxy may take to open a tunnel: less, so that a silent proxy is named as the cause. */
const TUNNEL_TIMEOUT_MS = 9000
/** How long, after the time limit, to go on reading what has already arrived. */
const LATE_READ_MS = 1000
/** Without `deflate`: servers disagree on its format (RFC 9110 section 8.4.1.2). */
const ACCEPTED_ENCODINGS = 'gzip, br'

/**
 * HTTP/1.1 with undici: kept-alive connections, no redirects, no retries, proxies from the environment. `timeoutMs` of a
 * request limits the whole exchange, from resolving the host to the last byte of the body.
 */
export function createTransport(proxies: ProxySettings, tunnelTimeoutMs = TUNNEL_TIMEOUT_MS): HttpTransport {
  const dispatchers = new Map<string, Dispatcher>()
  const closing = new AbortController()
  // Any number of requests can be in progress.
  setMaxListeners(0, closing.signal)
  function createDispatcher(
    proxy: string | undefined,
    keepAlive: boolean,
    tls: TlsIdentity | undefined,
  ): Dispatcher {
    const connect = { signal: closing.signal, timeout: CONNECT_TIMEOUT_MS, ...tls }
    const options = {
      // `timeoutMs` of the request is the limit.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      pipelining: keepAlive ? 1 : 0,
      factory: (origin: string | URL, settings: object) =>
        new Pool(origin, settings).on('connect', (_origin, targets) => {
          const { [symbols.kSocket]: socket } = targets.at(-1) as { [symbols.kSocket]?: Connection }
          if (socket === undefined) return
          ignoreContinue(socket)
          // Without a certificate of its own, a connection that was closed is not to be used for a moment longer.
          if (tls !== undefined && socket instanceof TLSSocket) letAlertsPass(socket)
        }),
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
      const { tls } = request
      const name = JSON.stringify([keepAlive, proxy, tls])
      const dispatcher = dispatchers.get(name) ?? createDispatcher(proxy, keepAlive, tls)
      dispatchers.set(name, dispatcher)
      return new Exchange(request, dispatcher, closing.signal).response
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

interface Parser {
  onHeadersComplete(status: number, ...more: unknown[]): number
}

type Connection = Socket & { [symbols.kParser]?: Parser }

/**
 * A client must ignore an unexpected "100 Continue" (RFC 9110 section 15.2). undici rejects it, but ignores other 1xx
 * responses.
 */
function ignoreContinue({ [symbols.kParser]: parser }: Connection): void {
  if (parser === undefined) return
  const { onHeadersComplete } = parser
  parser.onHeadersComplete = (status, ...more) =>
    onHeadersComplete.call(parser, status === 100 ? 102 : status, ...more)
}

/**
 * With TLS 1.3, a server refuses the client certificate after the client has finished its handshake. Node reports the end of
 * the stream first and the alert right after it, and undici closes the connection at the end of the stream: it has to wait.
 */
function letAlertsPass(socket: TLSSocket): void {
  const atEnd = socket.listeners('end').at(-1) as () => void
  socket.off('end', atEnd)
  socket.once('end', () => setImmediate(() => socket.destroyed || atEnd.call(socket)))
}

/** One request and its response. */
class Exchange implements Dispatcher.DispatchHandler {
  #resolve: (response: HttpResponse) => void = () => {}
  #reject: (error: TransportError) => void = () => {}
  readonly response = new Promise<HttpResponse>((resolve, reject) => {
    this.#resolve = resolve
    this.#reject = reject
  })
  readonly #request: HttpRequest
  readonly #closing: AbortSignal
  #timer: NodeJS.Timeout | undefined
  readonly #interrupt = () =>
    this.#failWith('aborted', 'the request was canceled', this.#request.signal?.reason)
  #connection: Dispatcher.DispatchController | undefined
  /** Whether a byte of the request can have left this machine. */
  #isSending = false
  /** What the body waits for. */
  #gate: Promise<void> | undefined
  /** Receives the response. */
  #reader: Dispatcher.DispatchHandler | undefined
  /** How many parts of the response have arrived. */
  #arrivals = 0
  #isOver = false
  #failure: TransportError | undefined

  constructor(request: HttpRequest, dispatcher: Dispatcher, closing: AbortSignal) {
    this.#request = request
    this.#closing = closing
    if (request.signal?.aborted || closing.aborted) this.#interrupt()
    else this.#start(dispatcher)
  }

  #start(dispatcher: Dispatcher): void {
    const { url, method, headers, body, signal, beforeSend } = this.#request
    signal?.addEventListener('abort', this.#interrupt, { once: true })
    this.#closing.addEventListener('abort', this.#interrupt, { once: true })
    this.#startTimer()
    const isGated = body !== undefined && beforeSend !== undefined
    try {
      dispatcher.dispatch(
        {
          origin: url.origin,
          path: `${url.pathname}${url.search}`,
          method,
          headers: {
            'accept-encoding': ACCEPTED_ENCODINGS,
            ...headers,
            ...(isGated && { 'content-length': String(Buffer.byteLength(body)) }),
          },
          ...(isGated ? this.#afterGate(body) : body === undefined ? {} : { body }),
        },
        this,
      )
    } catch (error) {
      this.#fail(classify(error, false))
    }
  }

  /** undici writes nothing, not even the head, before an iterated body yields its first part. */
  #afterGate(body: string): Pick<Dispatcher.DispatchOptions, 'body'> {
    const passGate = () => this.#passGate()
    const parts = async function* () {
      await passGate()
      yield Buffer.from(body)
    }
    // undici takes any iterable, but its types don't say so.
    return { body: parts() as unknown as Readable }
  }

  async #passGate(): Promise<void> {
    if (this.#gate === undefined) return
    await this.#gate
    // The service may have closed the connection meanwhile: then nothing is sent, instead of nobody knows what.
    await readPendingInput()
    if (this.#failure !== undefined) throw this.#failure
    this.#isSending = true
    clearTimeout(this.#timer)
    this.#startTimer()
  }

  #startTimer(): void {
    this.#timer = setTimeout(() => this.#expire(), this.#request.timeoutMs)
  }

  /** The connection (through a proxy: the tunnel) is established; nothing is written before this returns. */
  onRequestStart(connection: Dispatcher.DispatchController): void {
    const refuse = (error: unknown) =>
      this.#fail(new TransportError('aborted', 'no', 'the request was not sent', error))
    try {
      const waiting = this.#isOver ? undefined : this.#request.beforeSend?.()
      if (waiting instanceof Promise) this.#gate = waiting.catch(refuse)
    } catch (error) {
      refuse(error)
    }
    // Close it: left open, it could serve a request that asked for a fresh connection.
    if (this.#failure !== undefined) {
      connection.abort(this.#failure)
      return
    }
    this.#connection = connection
    this.#isSending = this.#gate === undefined
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
    const pause = () => connection.pause()
    const resume = () => connection.resume()
    const abort = (reason: Error) => this.#abandon(connection, reason)
    const source = { aborted: false, paused: false, reason: null, pause, resume, abort }
    const joined = joinHeaders(headers)
    const { handler, body } = responseBody(source, joined['content-encoding'] ?? '', () => this.#failure)
    this.#reader = handler
    this.#resolve({ status, headers: joined, body })
  }

  onResponseData(connection: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#arrivals++
    if (!this.#isOver) this.#reader?.onResponseData?.(connection, chunk)
  }

  onResponseEnd(connection: Dispatcher.DispatchController): void {
    if (this.#isOver) return
    this.#settle()
    this.#reader?.onResponseEnd?.(connection, {})
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
    // End the body here: what has arrived can be decompressed and read before the failure is thrown.
    if (this.#connection !== undefined) this.#reader?.onResponseEnd?.(this.#connection, {})
  }

  /** The reader has stopped early, or couldn't decode the response. */
  #abandon(connection: Dispatcher.DispatchController, reason: Error): void {
    const reader = this.#reader
    this.#reader = undefined
    this.#fail(decodingError(reason))
    reader?.onResponseError?.(connection, reason)
  }

  #settle(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    for (const signal of [this.#request.signal, this.#closing])
      signal?.removeEventListener('abort', this.#interrupt)
  }
}

/** Joins repeated headers. Built from entries, because a header can be called `__proto__`. */
function joinHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]))
}
