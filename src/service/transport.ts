import { setMaxListeners } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http'
import { request as requestSecure, Agent as SecureAgent } from 'node:https'
import type { Socket } from 'node:net'
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
/** How long a connection may take to be made, TLS included. */
const CONNECT_MS = 10_000
/** How long a proxy may take of that: less, so that it is named where it is the one that stays silent. */
const TUNNEL_MS = 9000
const ACCEPTED_ENCODINGS = 'gzip, deflate, br'

/** The proxies to go through, from the environment. */
export type ProxySettings = Pick<Environment, 'httpProxy' | 'httpsProxy' | 'noProxy'>

/**
 * HTTP over Node's own client, which is there at once where a library would first have to be read and compiled: one
 * exchange a call, kept-alive connections, no redirects, no retries, proxies as the environment says. `timeoutMs` of a
 * request bounds the whole exchange, from the look-up of the host to the last byte of the body, so that neither silence
 * nor a slow drip holds anybody up.
 */
export function createTransport(proxies: ProxySettings): HttpTransport {
  // Promises, so that two requests at once share what the first of them creates.
  const agents = new Map<string, Promise<Agent>>()
  const closing = new AbortController()
  // As many requests as there are may be on their way.
  setMaxListeners(0, closing.signal)

  function agentFor({ url, freshConnection }: HttpRequest): Promise<Agent> {
    const keepAlive = freshConnection !== true
    const name = `${url.origin} ${keepAlive}`
    const agent = agents.get(name) ?? createAgent(url, keepAlive, proxies, closing.signal)
    agents.set(name, agent)
    return agent
  }

  return {
    async send(request) {
      const agent = await agentFor(request)
      const mayReuse = Object.keys(agent.freeSockets).length > 0
      if (mayReuse && request.method === 'POST') await hearWhatWasClosed()
      return new Exchange(request, agent, closing.signal).response
    },
    async close() {
      // Not gracefully: what is still open has been given up.
      closing.abort()
      for (const agent of await Promise.allSettled(agents.values()))
        if (agent.status === 'fulfilled') agent.value.destroy()
    },
  }
}

/**
 * A whole turn of the event loop, in which a kept-alive connection that the service has closed is found out. Many close
 * one right behind an answer without a word about it, and a POST that meets that cannot be sent again.
 */
async function hearWhatWasClosed(): Promise<void> {
  // The first may come before the system is asked what has arrived.
  for (let turns = 0; turns < 2; turns++) await new Promise((resolve) => setImmediate(resolve))
}

function proxyFor(url: URL, { httpProxy, httpsProxy }: ProxySettings): string | undefined {
  if (url.protocol === 'https:') return httpsProxy
  // Plain HTTP is spoken with this machine only, so that no credential crosses a network in the clear. A proxy on
  // another machine would carry it there: it is passed by.
  if (httpProxy === undefined || !URL.canParse(httpProxy)) return httpProxy
  return isLoopback(new URL(httpProxy).hostname) ? httpProxy : undefined
}

async function createAgent(
  url: URL,
  keepAlive: boolean,
  proxies: ProxySettings,
  closing: AbortSignal,
): Promise<Agent> {
  const agent = new (url.protocol === 'https:' ? SecureAgent : Agent)({ keepAlive, timeout: KEEP_ALIVE_MS })
  const proxy = proxyFor(url, proxies)
  if (proxy !== undefined) {
    const { goThrough, isException } = await import('./proxy.ts')
    if (!isException(url, proxies.noProxy ?? '')) goThrough(proxy, agent, url, TUNNEL_MS, closing)
  }
  return agent
}

/** What each connection does when it hears something: see `closeOnUnasked`. */
const hearing = new WeakMap<Socket, () => void>()

/**
 * What a server says after its answer, where nothing was asked, must not be read as the answer to the next request: the
 * connection is not used again.
 *
 * @param isAnswered whether the answer to the request that the connection is used for has come to its end
 */
function closeOnUnasked(socket: Socket, isAnswered: () => boolean): void {
  const before = hearing.get(socket)
  if (before !== undefined) socket.off('data', before)
  const hear = (): void => {
    if (isAnswered()) socket.destroy()
  }
  hearing.set(socket, hear)
  // In front of Node's own listener: what ends the answer is not yet heard as its end.
  socket.prependListener('data', hear)
}

/** One request and its answer. */
class Exchange {
  #answered: (response: HttpResponse) => void = () => {}
  #rejected: (error: TransportError) => void = () => {}
  readonly response = new Promise<HttpResponse>((resolve, reject) => {
    this.#answered = resolve
    this.#rejected = reject
  })
  readonly #request: HttpRequest
  readonly #closing: AbortSignal
  readonly #timers: NodeJS.Timeout[] = []
  readonly #interrupt = () =>
    this.#giveUp('aborted', 'the request was abandoned', this.#request.signal?.reason)
  /** A byte of the request can have left this machine. */
  #started = false
  #failure: TransportError | undefined
  #sending: ClientRequest | undefined
  #answer: IncomingMessage | undefined

  constructor(request: HttpRequest, agent: Agent, closing: AbortSignal) {
    this.#request = request
    this.#closing = closing
    if (request.signal?.aborted || closing.aborted) this.#interrupt()
    else this.#begin(agent)
  }

  #begin(agent: Agent): void {
    const { signal, timeoutMs } = this.#request
    signal?.addEventListener('abort', this.#interrupt, { once: true })
    this.#closing.addEventListener('abort', this.#interrupt, { once: true })
    this.#limit(timeoutMs, 'timeout', `no complete answer within ${timeoutMs / 1000} s`)
    try {
      this.#sending = this.#send(agent)
    } catch (error) {
      this.#fail(classify(error, false))
    }
  }

  #send(agent: Agent): ClientRequest {
    const { url, method, headers, body } = this.#request
    const secure = url.protocol === 'https:'
    const sending = (secure ? requestSecure : requestPlain)(url, {
      agent,
      method,
      headers: { 'accept-encoding': ACCEPTED_ENCODINGS, ...headers },
    })
    const connecting = this.#limit(CONNECT_MS, 'connect', 'the host did not answer (connect time-out)')
    const start = (): void => {
      clearTimeout(connecting)
      this.#started = true
    }
    sending.once('socket', (socket) => {
      closeOnUnasked(socket, () => this.#answer?.complete === true)
      // Node writes the request after it has told these listeners; until then nothing can have left.
      if (secure && !sending.reusedSocket) socket.once('secureConnect', start)
      else if (socket.connecting) socket.once('connect', start)
      else start()
    })
    sending.once('response', (answer) => this.#receive(answer))
    sending.once('upgrade', (_answer, socket) => {
      socket.destroy()
      this.#giveUp(
        'protocol',
        'the answer is not valid HTTP: it changes to a protocol that was not asked for',
      )
    })
    sending.on('error', (error) => this.#fail(classify(error, this.#started)))
    sending.once('close', () => {
      this.#settle()
      if (this.#answer === undefined)
        this.#giveUp('reset', 'the connection was closed before the answer was complete')
    })
    sending.end(body)
    return sending
  }

  #receive(answer: IncomingMessage): void {
    this.#answer = answer
    // Thrown where the body is read.
    answer.on('error', () => {})
    const status = answer.statusCode ?? 0
    // What Node hands on of these is no information on the way: 101 without an upgrade, and numbers that are no status.
    if (status < 200) {
      this.#giveUp('protocol', `the answer is not valid HTTP: ${status} is no status to end with`)
      return
    }
    const headers = joined(answer.rawHeaders)
    const body = decoded(this.#read(answer), headers['content-encoding'])
    this.#answered({ status, headers, body })
  }

  async *#read(answer: IncomingMessage): AsyncGenerator<Uint8Array> {
    try {
      yield* answer as AsyncIterable<Uint8Array>
    } catch (error) {
      throw this.#failure ?? classify(error, true)
    }
  }

  #limit(ms: number, kind: TransportError['kind'], message: string): NodeJS.Timeout {
    const timer = setTimeout(() => this.#giveUp(kind, message), ms)
    this.#timers.push(timer)
    return timer
  }

  #giveUp(kind: TransportError['kind'], message: string, cause?: unknown): void {
    const error = new TransportError(kind, this.#started ? 'maybe' : 'no', message, cause)
    this.#fail(error)
    // The answer, where there is one: what has arrived of it would otherwise look complete.
    ;(this.#answer ?? this.#sending)?.destroy(error)
  }

  #fail(error: TransportError): void {
    this.#settle()
    this.#failure ??= error
    this.#rejected(this.#failure)
  }

  #settle(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    for (const signal of [this.#request.signal, this.#closing])
      signal?.removeEventListener('abort', this.#interrupt)
  }
}

/**
 * Headers by their lower-case names. Of the raw ones: where a header is called like something that every object has,
 * some releases of Node throw, and nobody could catch it.
 *
 * @param raw name and value in turns
 */
function joined(raw: readonly string[]): Record<string, string> {
  const headers = new Map<string, string>()
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name, value] = [raw[at] as string, raw[at + 1] as string]
    const known = headers.get(name.toLowerCase())
    headers.set(name.toLowerCase(), known === undefined ? value : `${known}, ${value}`)
  }
  return Object.fromEntries(headers)
}
