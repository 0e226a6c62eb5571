import { setMaxListeners } from 'node:events'
import type { Dispatcher } from 'undici'
import Agent from 'undici/lib/dispatcher/agent.js'
import { type HttpRequest, type HttpResponse, type HttpTransport, TransportError } from '../context.ts'
import { formatDuration } from '../terminal/time.ts'
import { unexpectedAnswer } from './problems.ts'
import { type ProxySettings, proxyFor, tunnelThroughProxy } from './proxy.ts'
import { classify } from './transport-errors.ts'

/** How long a kept-alive connection may idle: less than servers allow, so that none is reused while it is closing. */
const KEEP_ALIVE_MS = 4000
/** How long connecting may take, TLS included. */
const CONNECT_TIMEOUT_MS = 10_000
/** How long, after the time limit, to go on reading what has already arrived. */
const LATE_READ_MS = 1000
/** Far more than a page of 100 items. */
const MAX_BODY_MIB = 8

/**
 * HTTP/1.1 with undici: kept-alive connections, no redirects, no retries, no compression, proxies from the environment.
 * `timeoutMs` of a request limits the whole exchange, from resolving the host to the last byte of the body.
 */
export function createTransport(proxies: ProxySettings): HttpTransport {
  const dispatchers = new Map<string, Dispatcher>()
  const closing = new AbortController()
  // Any number of connections can be in progress.
  setMaxListeners(0, closing.signal)

  function dispatcherFor({ url, freshConnection, tls }: HttpRequest): Dispatcher {
    const proxy = proxyFor(url, proxies)
    const name = JSON.stringify([freshConnection, proxy, tls])
    const existing = dispatchers.get(name)
    if (existing !== undefined) return existing
    const connect = { signal: closing.signal, timeout: CONNECT_TIMEOUT_MS, ...tls }
    const options = {
      // `timeoutMs` of the request is the limit.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      pipelining: freshConnection ? 0 : 1,
    }
    const created =
      proxy === undefined ? new Agent({ ...options, connect }) : tunnelThroughProxy(proxy, connect, options)
    dispatchers.set(name, created)
    return created
  }

  return {
    async send(request) {
      await readPendingInput()
      const dispatcher = dispatcherFor(request)
      return new Promise((resolve, reject) => new Exchange(request, resolve, reject).start(dispatcher))
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
  readonly #resolve: (response: HttpResponse) => void
  readonly #reject: (error: TransportError) => void
  readonly #cancel = () => this.#failWith('aborted', 'the request was canceled', this.#request.signal?.reason)
  #connection: Dispatcher.DispatchController | undefined
  #timer: NodeJS.Timeout | undefined
  /** Whether a byte of the request can have left this machine. */
  #sent: TransportError['sent'] = 'no'
  #head: Omit<HttpResponse, 'text'> | undefined
  readonly #pieces: Buffer[] = []
  #size = 0
  /** How many parts of the response have arrived. */
  #arrivals = 0
  /** What ended it before the response was complete. */
  #failure: Error | undefined
  #isOver = false

  constructor(
    request: HttpRequest,
    resolve: (response: HttpResponse) => void,
    reject: (error: TransportError) => void,
  ) {
    this.#request = request
    this.#resolve = resolve
    this.#reject = reject
  }

  start(dispatcher: Dispatcher): void {
    const { url, method, headers, body, signal } = this.#request
    if (signal?.aborted) {
      this.#cancel()
      return
    }
    signal?.addEventListener('abort', this.#cancel, { once: true })
    this.#startTimer()
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
      this.#end(classify(error, 'no'))
    }
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
      this.#failWith('aborted', 'the request was not sent', error)
    }
    if (this.#failure !== undefined) {
      // Close it: left open, it could serve a request that asked for a fresh connection.
      connection.abort(this.#failure)
      return
    }
    if (beforeSend !== undefined) this.#startTimer()
    this.#connection = connection
    this.#sent = 'maybe'
  }

  onResponseStart(
    _connection: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#arrivals++
    // Informational responses are ignored, except 101: this client doesn't upgrade.
    if (status >= 100 && status < 200 && status !== 101) return
    if (status < 200) this.#failWith('protocol', `invalid HTTP response: ${status} is not a final status`)
    this.#head = { status, headers: joinHeaders(headers) }
  }

  onResponseData(_connection: Dispatcher.DispatchController, piece: Buffer): void {
    this.#arrivals++
    this.#size += piece.length
    if (this.#size > MAX_BODY_MIB * 1024 * 1024)
      this.#end(unexpectedAnswer(`it is larger than ${MAX_BODY_MIB} MiB`, this.#head?.status))
    else this.#pieces.push(piece)
  }

  onResponseEnd(): void {
    this.#end()
  }

  onResponseError(_connection: unknown, error: Error): void {
    this.#end(classify(error, this.#sent))
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
    this.#end(new TransportError(kind, this.#sent, message, cause))
  }

  /** Ends the exchange, with as much of the response as has arrived. */
  #end(failure?: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#failure = failure
    clearTimeout(this.#timer)
    this.#request.signal?.removeEventListener('abort', this.#cancel)
    if (failure !== undefined) this.#connection?.abort(failure)
    if (this.#head === undefined) {
      this.#reject(failure as TransportError)
      return
    }
    const text = new TextDecoder().decode(Buffer.concat(this.#pieces))
    this.#resolve({ ...this.#head, text, ...(failure && { brokenBy: failure }) })
  }
}

/** Joins repeated headers. Built from entries, because a header can be called `__proto__`. */
function joinHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]))
}
