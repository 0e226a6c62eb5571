import { setMaxListeners } from 'node:events'
import type { Dispatcher } from 'undici'
import Agent from 'undici/lib/dispatcher/agent.js'
import { type HttpRequest, type HttpResponse, type HttpTransport, HttpTransportError } from '../context.ts'
import { formatDuration } from '../terminal/time.ts'
import { invalidResponseError } from './problems.ts'
import { createProxyAgent, type ProxySettings, proxyUrlFor } from './proxy.ts'
import { toHttpTransportError } from './transport-errors.ts'

/**
 * Milliseconds for which an idle connection is kept open; shorter than usual limits of servers, to avoid sending a request on a
 * connection that the server is closing.
 */
const KEEP_ALIVE_MS = 4000
/** Maximum milliseconds for connecting, TLS handshake included. */
const CONNECT_TIMEOUT_MS = 10_000
/** Maximum milliseconds after a request's timeout for which `expire` still reads arrived data. */
const LATE_READ_MS = 1000
/** Maximum size of a response body in MiB; far more than a page of 100 items. */
const MAX_BODY_MIB = 8

/**
 * Creates the HTTP transport with undici, without redirects, retries or compression. HTTP/2 is allowed for binary requests (DNS
 * over HTTPS) only, because with HTTP/2, a request may be sent twice.
 */
export function createTransport(proxies: ProxySettings): HttpTransport {
  const dispatchers = new Map<string, Dispatcher>()
  const closing = new AbortController()
  // Each connection listens to this signal. Node would warn of a memory leak at more than ten listeners, so turn that warning off.
  setMaxListeners(0, closing.signal)

  function dispatcherFor({ url, freshConnection, tls, isBinary = false }: HttpRequest): Dispatcher {
    const proxy = proxyUrlFor(url, proxies)
    const name = JSON.stringify([freshConnection, proxy, tls, isBinary])
    const existing = dispatchers.get(name)
    if (existing !== undefined) return existing
    const connect = { signal: closing.signal, timeout: CONNECT_TIMEOUT_MS, ...tls, allowH2: isBinary }
    const options = {
      // Turn undici's time limits for headers and body off (0), because `exchange` limits the time of the complete request.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      pipelining: freshConnection ? 0 : 1,
    }
    const created =
      proxy === undefined ? new Agent({ ...options, connect }) : createProxyAgent(proxy, connect, options)
    dispatchers.set(name, created)
    return created
  }

  return {
    async send(request) {
      await readPendingInput()
      return exchange(dispatcherFor(request), request)
    },
    async close() {
      closing.abort()
      // Unlike undici's `close`, `destroy` doesn't wait for requests in progress but cancels them.
      await Promise.all([...dispatchers.values()].map((dispatcher) => dispatcher.destroy()))
    },
  }
}

/**
 * Lets the event loop read data that has already arrived. Called before a request, so that undici drops kept-alive connections that
 * the service has closed: a POST that is sent on such a connection fails and can't be retried.
 */
async function readPendingInput(): Promise<void> {
  // Wait three turns of the event loop, to notice closed connections: the first callback may run before the loop polls for input,
  // and a closed connection is reported a turn later.
  for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve))
}

/** Sends one request and collects the response. Rejects with an `HttpTransportError` if no final response headers arrived. */
function exchange(dispatcher: Dispatcher, request: HttpRequest): Promise<HttpResponse> {
  const { url, method, headers, body, timeoutMs, signal, beforeSend, isBinary } = request
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    let connection: Dispatcher.DispatchController | undefined
    /** `maybe` once a byte of the request can have left this machine. */
    let sent: HttpTransportError['sent'] = 'no'
    let head: Pick<HttpResponse, 'status' | 'headers'> | undefined
    const pieces: Buffer[] = []
    let size = 0
    /** Number of header blocks and body chunks received so far; while it increases, `expire` reads on after the time limit. */
    let arrivals = 0
    let isOver = false

    /**
     * Ends the exchange: resolves with the part of the response that arrived (with `brokenBy` after a failure), or rejects if no
     * final response headers arrived.
     */
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
    const fail = (kind: HttpTransportError['kind'], message: string, cause?: unknown) =>
      end(new HttpTransportError(kind, sent, message, cause))
    const cancel = () => fail('aborted', 'the request was canceled', signal?.reason)

    function startTimer(): void {
      clearTimeout(timer)
      timer = setTimeout(expire, timeoutMs)
    }
    /**
     * Ends the exchange at the time limit, but first reads while more data comes, for `LATE_READ_MS` at most: after a suspension of
     * the process (SIGSTOP, sleep), timers run before sockets are read, so the response may already be there.
     */
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
      // Request no compression: a damaged or mislabeled compressed response could lose the only copy of a refresh token.
      headers: { 'accept-encoding': 'identity', ...headers },
      ...(body === undefined ? {} : { body: isBinary ? Buffer.from(body, 'latin1') : body }),
    }
    const handler: Dispatcher.DispatchHandler = {
      // undici calls this method when the connection (with a proxy: the tunnel) is established, and writes nothing before it
      // returns, so an error of `beforeSend` prevents the request.
      onRequestStart(controller) {
        try {
          if (!isOver) beforeSend?.()
        } catch (error) {
          fail('aborted', 'the request was not sent', error)
        }
        if (isOver) {
          // Close the unused connection: undici could otherwise keep it for a later request with `freshConnection`, and the
          // service may close it while that request is being sent.
          controller.abort(new Error('the request was not sent'))
          return
        }
        if (beforeSend !== undefined) startTimer()
        connection = controller
        sent = 'maybe'
      },
      onResponseStart(_controller, status, fields) {
        arrivals++
        // Ignore 1xx responses, which precede the final one, except 101 (Switching Protocols), which this client never requests.
        if (status >= 100 && status < 200 && status !== 101) return
        if (status < 200) fail('protocol', `invalid HTTP response: ${status} is not a final status`)
        const joined = Object.entries(fields).map(([name, value]) => [name, [value].flat().join(', ')])
        // Use `fromEntries`, which keeps a header called `__proto__`; an assignment would lose it.
        head = { status, headers: Object.fromEntries(joined) }
      },
      onResponseData(_controller, piece) {
        arrivals++
        size += piece.length
        if (size > MAX_BODY_MIB * 1024 * 1024)
          end(invalidResponseError(`it is larger than ${MAX_BODY_MIB} MiB`, head?.status))
        else pieces.push(piece)
      },
      onResponseEnd: () => end(),
      onResponseError: (_controller, error) => end(toHttpTransportError(error, sent)),
    }
    try {
      dispatcher.dispatch(options, handler)
    } catch (error) {
      end(toHttpTransportError(error, sent))
    }
  })
}
