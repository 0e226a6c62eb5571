import { setFlagsFromString } from 'node:v8'
import type { Dispatcher } from 'undici'
import Agent from 'undici/lib/dispatcher/agent.js'
import {
  type Environment,
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  TransportError,
} from '../context.ts'
import { isLoopback } from '../settings/addresses.ts'
import { decoded } from './decompression.ts'
import { classify } from './transport-errors.ts'

/** How long a kept-alive connection may idle: shorter than servers allow, so that none is used while it is closed. */
const KEEP_ALIVE_MS = 4000
/** So much of a body may wait to be read before the connection is paused, in bytes. */
const MOST_WAITING = 256 * 1024
const ACCEPTED_ENCODINGS = 'gzip, deflate, br'

/** The proxies to go through, from the environment. */
export type ProxySettings = Pick<Environment, 'httpProxy' | 'httpsProxy' | 'noProxy'>

/**
 * HTTP over undici's dispatcher: one exchange a call, kept-alive connections, no redirects, no retries, proxies as the
 * environment says. `timeoutMs` of a request bounds the whole exchange, from the look-up of the host to the last byte of
 * the body, so that neither silence nor a slow drip holds anybody up.
 */
export function createTransport(proxies: ProxySettings): HttpTransport {
  // The HTTP parser is WebAssembly. Compiled to the quick code alone, it is ready at once, and the program does not wait
  // at its end for optimized code that a handful of requests never uses: a third of the time of one request.
  setFlagsFromString('--liftoff-only')
  const dispatchers = new Map<string, Promise<Dispatcher>>()
  return {
    async send(request) {
      const proxy = request.url.protocol === 'https:' ? proxies.httpsProxy : plainProxy(proxies.httpProxy)
      // Connections of this pool are closed after each exchange (see `reset` below), so that each begins with a new one.
      const pool = request.freshConnection ? `fresh ${proxy ?? ''}` : (proxy ?? '')
      let dispatcher = dispatchers.get(pool)
      if (dispatcher === undefined) {
        dispatcher = createDispatcher(proxy, proxies.noProxy)
        dispatchers.set(pool, dispatcher)
      }
      return new Exchange(request, await dispatcher).response
    },
    async close() {
      // Not gracefully: what is still open has been given up.
      const open = await Promise.allSettled(dispatchers.values())
      dispatchers.clear()
      await Promise.all(
        open.map((result) => (result.status === 'fulfilled' ? result.value.destroy() : undefined)),
      )
    },
  }
}

/**
 * Plain HTTP is spoken with this machine only, so that no credential crosses a network in the clear. A proxy on another
 * machine would carry it there: it is passed by.
 */
function plainProxy(proxy: string | undefined): string | undefined {
  if (proxy === undefined || !URL.canParse(proxy)) return proxy
  return isLoopback(new URL(proxy).hostname) ? proxy : undefined
}

async function createDispatcher(proxy: string | undefined, noProxy: string | undefined): Promise<Dispatcher> {
  if (proxy === undefined) return new Agent({ keepAliveTimeout: KEEP_ALIVE_MS })
  const { createProxyDispatcher } = await import('./proxy.ts')
  try {
    return createProxyDispatcher(proxy, noProxy ?? '', KEEP_ALIVE_MS)
  } catch (error) {
    throw new TransportError(
      'proxy',
      'no',
      'the proxy in HTTPS_PROXY or HTTP_PROXY is not a usable address',
      error,
    )
  }
}

/** One request and its answer, as the dispatcher's events make it. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly response: Promise<HttpResponse>
  readonly #answered: (response: HttpResponse) => void
  readonly #rejected: (error: TransportError) => void
  readonly #request: HttpRequest
  readonly #timer: NodeJS.Timeout
  readonly #interrupt: () => void
  #controller: Dispatcher.DispatchController | undefined
  #failure: TransportError | undefined
  #ended = false
  /** Pieces of the body that nobody has taken yet, and their length in bytes. */
  readonly #pieces: Uint8Array[] = []
  #waiting = 0
  #wake: (() => void) | undefined

  constructor(request: HttpRequest, dispatcher: Dispatcher) {
    this.#request = request
    const { promise, resolve, reject } = withResolvers<HttpResponse>()
    this.response = promise
    this.#answered = resolve
    this.#rejected = reject
    this.#interrupt = () => this.#giveUp('aborted', 'the request was abandoned', request.signal?.reason)
    this.#timer = setTimeout(
      () => this.#giveUp('timeout', `no complete answer within ${request.timeoutMs / 1000} s`),
      request.timeoutMs,
    )
    request.signal?.addEventListener('abort', this.#interrupt, { once: true })
    if (request.signal?.aborted) this.#interrupt()
    else this.#dispatch(dispatcher)
  }

  #dispatch(dispatcher: Dispatcher): void {
    const request = this.#request
    try {
      dispatcher.dispatch(
        {
          origin: request.url.origin,
          path: `${request.url.pathname}${request.url.search}`,
          method: request.method,
          headers: { 'accept-encoding': ACCEPTED_ENCODINGS, ...request.headers },
          body: request.body ?? null,
          reset: request.freshConnection === true,
          // The one timer above bounds everything.
          headersTimeout: 0,
          bodyTimeout: 0,
        },
        this,
      )
    } catch (error) {
      this.#fail(classify(error, false))
    }
  }

  /** Called right before the first byte of the request is written; until then nothing can have left. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#failure !== undefined) controller.abort(this.#failure)
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return
    const flat = flatten(headers)
    this.#answered({ status, headers: flat, body: decoded(this.#body(), flat['content-encoding']) })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // A resumed parser may report an empty piece first; to pause on it would mean to pause for ever.
    if (chunk.length === 0) return
    this.#pieces.push(chunk)
    this.#waiting += chunk.length
    if (this.#waiting > MOST_WAITING) controller.pause()
    this.#wake?.()
  }

  onResponseEnd(): void {
    this.#settle()
    // Told two turns later, when the connection counts as free again: the next request would open another one.
    setImmediate(() =>
      setImmediate(() => {
        this.#ended = true
        this.#wake?.()
      }),
    )
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(classify(error, this.#controller !== undefined))
  }

  async *#body(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const piece = this.#pieces.shift()
        if (piece !== undefined) {
          this.#waiting -= piece.length
          yield piece
          continue
        }
        if (this.#failure !== undefined) throw this.#failure
        if (this.#ended) return
        const { promise, resolve } = withResolvers<void>()
        this.#wake = resolve
        this.#controller?.resume()
        await promise
        this.#wake = undefined
      }
    } finally {
      if (!this.#ended && this.#failure === undefined)
        this.#giveUp('aborted', 'the answer was not read to its end')
    }
  }

  #giveUp(kind: TransportError['kind'], message: string, cause?: unknown): void {
    const error = new TransportError(kind, this.#controller === undefined ? 'no' : 'maybe', message, cause)
    this.#fail(error)
    this.#controller?.abort(error)
  }

  #fail(error: TransportError): void {
    this.#settle()
    if (this.#ended) return
    this.#failure ??= error
    this.#rejected(this.#failure)
    this.#wake?.()
  }

  #settle(): void {
    clearTimeout(this.#timer)
    this.#request.signal?.removeEventListener('abort', this.#interrupt)
  }
}

function withResolvers<T>(): {
  promise: Promise<T>
  resolve: (value: T) => void
  reject: (reason: unknown) => void
} {
  let resolve: (value: T) => void = () => {}
  let reject: (reason: unknown) => void = () => {}
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const flat: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value
  }
  return flat
}
