import { setMaxListeners } from 'node:events'
import type { Dispatcher } from 'undici'
import Agent from 'undici/lib/dispatcher/agent.js'
import { type HttpRequest, type HttpResponse, type HttpTransport, TransportError } from '../context.ts'
import { formatDuration } from '../terminal/time.ts'
import { unexpectedAnswer } from './problems.ts'
import { type ProxySettings, proxyUrlFor, tunnelThroughProxy } from './proxy.ts'
import { classifyError } from './transport-errors.ts'

/** How long a kept-alive connection may idle: less than servers allow, so that none is reused while it is closing. */
const KEEP_ALIVE_MS = 4000
/** How long connecting may take, TLS included. */
const CONNECT_TIMEOUT_MS = 10_000
/** How long, after the time limit, to go on reading what has already arrived. */
const LATE_READ_MS = 1000
/** Far more than a page of 100 items. */
const MAX_BODY_MIB = 8

/**
 * HTTP/1.1 with undici: kept-alive connections, no redirects, no retries, no compression, proxies from the environment. What is
 * binary may go over HTTP/2.
 * `timeoutMs` of a request limits the whole exchange, from resolving the host to the last byte of the body.
 */
export function createTransport(proxies: ProxySettings): HttpTransport {
  const dispatchers = new Map<string, Dispatcher>()
  const closing = new AbortController()
  // Any number of connections can be in progress.
  setMaxListeners(0, closing.signal)

  function dispatcherFor({ url, freshConnection, tls, isBinary = false }: HttpRequest): Dispatcher {
    const proxy = proxyUrlFor(url, proxies)
    const name = JSON.stringify([freshConnection, proxy, tls, isBinary])
    const existing = dispatchers.get(name)
    if (existing !== undefined) return existing
    const connect = { signal: closing.signal, timeout: CONNECT_TIMEOUT_MS, ...tls, allowH2: isBinary }
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
      return exchange(dispatcherFor(request), request)
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

/** Sends one request and collects its response. */
function exchange(dispatcher: Dispatcher, request: HttpRequest): Promise<HttpResponse> {
  const { url, method, headers, body, timeoutMs, signal, beforeSend, isBinary } = request
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    let connection: Dispatcher.DispatchController | undefined
    /** Whether a byte of the request can have left this machine. */
    let sent: TransportError['sent'] = 'no'
    let head: Pick<HttpResponse, 'status' | 'headers'> | undefined
    const pieces: Buffer[] = []
    let size = 0
    /** How many parts of the response have arrived. */
    let arrivals = 0
    let isOver = false

    /** Ends the exchange, with as much of the response as has arrived. */
    function end(failure?: Error): void {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', cancel)
      if (failure !== undefined) connection?.abort(failure)
      const bytes = Buffer.concat(pieces)
      const text = isBinary ? bytes.toString('latin1') : new TextDecoder().decode(bytes)
      if (head === undefined) reject(failure)
      else resolve({ ...head, text, ...(failure && { brokenBy: failure }) })
    }
    const fail = (kind: TransportError['kind'], message: string, cause?: unknown) =>
      end(new TransportError(kind, sent, message, cause))
    const cancel = () => fail('aborted', 'the request was canceled', signal?.reason)

    function startTimer(): void {
      clearTimeout(timer)
      timer = setTimeout(expire, timeoutMs)
    }
    /** Timers run before sockets are read, so after a suspension the response may be waiting in the socket: reads on while more comes. */
    async function expire(): Promise<void> {
      const until = performance.now() + LATE_READ_MS
      let before: number
      do {
        before = arrivals
        await readPendingInput()
      } while (!isOver && arrivals > before && performance.now() < until)
      fail('timeout', `no complete response within ${formatDuration(timeoutMs / 1000)}`)
    }

    startTimer()
    if (signal?.aborted) return cancel()
    signal?.addEventListener('abort', cancel)
    const options = {
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      // A compressed answer that is damaged or mislabeled could lose the only copy of a refresh token.
      headers: { 'accept-encoding': 'identity', ...headers },
      ...(body === undefined ? {} : { body: isBinary ? Buffer.from(body, 'latin1') : body }),
    }
    const handler: Dispatcher.DispatchHandler = {
      // The connection (through a proxy: the tunnel) is established; nothing is written before this returns.
      onRequestStart(controller) {
        try {
          if (!isOver) beforeSend?.()
        } catch (error) {
          fail('aborted', 'the request was not sent', error)
        }
        if (isOver) {
          // Left open, it could serve a request that asked for a fresh connection.
          controller.abort(new Error('the request was not sent'))
          return
        }
        if (beforeSend !== undefined) startTimer()
        connection = controller
        sent = 'maybe'
      },
      onResponseStart(_controller, status, fields) {
        arrivals++
        // Informational responses are ignored, except 101: this client doesn't upgrade.
        if (status >= 100 && status < 200 && status !== 101) return
        if (status < 200) fail('protocol', `invalid HTTP response: ${status} is not a final status`)
        // Entries, because assigning to a header called `__proto__` would be lost.
        const joined = Object.entries(fields).map(([name, value]) => [name, [value].flat().join(', ')])
        head = { status, headers: Object.fromEntries(joined) }
      },
      onResponseData(_controller, piece) {
        arrivals++
        size += piece.length
        if (size > MAX_BODY_MIB * 1024 * 1024)
          end(unexpectedAnswer(`it is larger than ${MAX_BODY_MIB} MiB`, head?.status))
        else pieces.push(piece)
      },
      onResponseEnd: () => end(),
      onResponseError: (_controller, error) => end(classifyError(error, sent)),
    }
    try {
      dispatcher.dispatch(options, handler)
    } catch (error) {
      end(classifyError(error, sent))
    }
  })
}
