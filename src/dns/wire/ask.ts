import { setMaxListeners } from 'node:events'
import { type Context, type DnsNetwork, type DnsRequest, DnsTransportError } from '../../context.ts'
import type { Deadline } from '../../timeout.ts'
import type { DnsServer } from './address.ts'
import { exchangeDnsOverHttps } from './https.ts'
import { type DnsQuery, type DnsReply, decodeResponse, encodeQuery } from './message.ts'

/** Transports of DNS queries (UDP, TCP and HTTPS), and the addresses of the system's resolvers. */
export interface DnsNetworkWithHttps extends DnsNetwork {
  https(exchange: DnsRequest<URL>): Promise<Uint8Array>
}

/** Effects that DNS queries need: clock, random numbers and network. `signal` aborts the queries. */
export interface DnsEffects extends Pick<Context, 'clock' | 'random'> {
  readonly dns: DnsNetworkWithHttps
  readonly signal: AbortSignal
}

/**
 * Picks clock, random numbers and network for DNS queries from a context, and adds DNS over HTTPS. An interrupt such as Ctrl-C
 * aborts the queries.
 */
export function createDnsEffects(
  context: Pick<Context, 'clock' | 'random' | 'dns' | 'http' | 'interrupts'>,
): DnsEffects {
  const { clock, random, dns, http, interrupts } = context
  const network = { ...dns, https: (exchange: DnsRequest<URL>) => exchangeDnsOverHttps(exchange, http) }
  return { clock, random, dns: network, signal: interrupts.signal }
}

/**
 * Creates an abort controller that aborts when `parent` does. With `AbortSignal.any` instead, a parent that outlives thousands of
 * DNS queries would collect an entry for each.
 */
export function createChildController(parent: AbortSignal): AbortController {
  const child = new AbortController()
  // Disable Node's warning about more than 10 listeners: any number of queries and waits listen to this signal.
  setMaxListeners(0, child.signal)
  const follow = () => child.abort(parent.reason)
  // Remove the listener explicitly. The option `signal` of `addEventListener` doesn't suffice: if several listeners have the same
  // signal, Node may, after garbage collection, remove only the newest.
  child.signal.addEventListener('abort', () => parent.removeEventListener('abort', follow))
  parent.addEventListener('abort', follow)
  if (parent.aborted) follow()
  return child
}

/** Result of one question to one server; `ms`: milliseconds from the first attempt to the result. */
export type QueryResult =
  /** A response with any rcode; incomplete if it has the TC bit. */
  | { readonly kind: 'answer'; readonly message: DnsReply; readonly ms: number }
  /** No usable response. `reason`: error message for users; set only for a server given as URL. */
  | { readonly kind: DnsTransportError['kind']; readonly ms: number; readonly reason?: string }

/** EDNS buffer size in bytes that avoids fragmentation on practically every path (DNS flag day 2020). */
const UDP_SIZE = 1232
/**
 * EDNS buffer size in bytes of a second UDP query, sent if a response is truncated and TCP fails or is slow. A response of this
 * size arrives in IP fragments, which networks often let through (RFC 6891 section 6.2.5).
 */
const FRAGMENTED_SIZE = 4096
/**
 * Maximum milliseconds to wait for a UDP response before HTTPS (`https`) or TCP (`tcp`) is tried as well. After truncation, `tcp`
 * is the wait for TCP before UDP is tried again.
 */
const RETRY_AFTER_MS = { https: 500, tcp: 2000 }
/** Rcodes that are taken as a rejection of EDNS (RFC 6891 sections 6.1.3 and 7). */
const REJECTS_EDNS: readonly string[] = ['FORMERR', 'NOTIMP', 'BADVERS']

/**
 * Sends one question to one server: to a URL over HTTPS only, to an address over UDP, with HTTPS (if the server has a URL) and TCP
 * as fallbacks. Failures are results, not errors; an aborted `effects.signal` rejects with its reason.
 */
export async function trySendQuery(
  server: DnsServer,
  question: DnsQuery,
  deadline: Deadline,
  effects: DnsEffects,
): Promise<QueryResult> {
  effects.signal.throwIfAborted()
  const { clock } = effects
  const start = clock.monotonic()
  const elapsed = () => Math.round(clock.monotonic() - start)
  // The controller is aborted when this function ends, to cancel the transports that are still waiting for a response.
  const controller = createChildController(effects.signal)
  const sending = { ...effects, signal: controller.signal }
  const overHttps = (url: URL) => send(effects.dns.https, url, question, deadline, UDP_SIZE, sending)
  try {
    if (server instanceof URL) return { kind: 'answer', message: await overHttps(server), ms: elapsed() }
    const via = (transport: 'udp' | 'tcp', udpSize: number | undefined) =>
      send(effects.dns[transport], server, question, deadline, udpSize, sending)
    const fallBack = (first: Promise<DnsReply>, waitMs: number, next: () => Promise<DnsReply>) => {
      const pause = clock.sleep(Math.min(waitMs, Math.max(0, deadline.remainingMs()) / 2), sending.signal)
      return Promise.race([first.catch(() => undefined), pause]).then((early) => early ?? next())
    }
    const { https } = server
    const exchange = (udpSize: number | undefined) => {
      const udp = via('udp', udpSize)
      const tcp = fallBack(udp, RETRY_AFTER_MS.tcp, () => via('tcp', udpSize))
      const last = https === undefined ? tcp : fallBack(udp, RETRY_AFTER_MS.https, () => overHttps(https))
      return Promise.any([udp, tcp, last])
    }
    let message = await exchange(UDP_SIZE)
    const hasEdns = !REJECTS_EDNS.includes(message.rcode)
    // A rejection of EDNS doesn't answer the question, so the result is that of the query without EDNS, even if it fails.
    if (!hasEdns) message = await exchange(undefined)
    if (message.tc) {
      const whole = via('tcp', hasEdns ? UDP_SIZE : undefined)
      const larger = () => via('udp', hasEdns ? FRAGMENTED_SIZE : undefined)
      const either = fallBack(whole, RETRY_AFTER_MS.tcp, larger).then((one) => (one.tc ? whole : one))
      message = await Promise.any([whole, either]).catch(() => message)
    }
    effects.signal.throwIfAborted()
    return { kind: 'answer', message, ms: elapsed() }
  } catch (error) {
    effects.signal.throwIfAborted()
    const reason = error instanceof DnsTransportError ? { reason: error.message } : {}
    return { kind: kindOf(error), ms: elapsed(), ...reason }
  } finally {
    controller.abort()
  }
}

/** Default time limit of `queryDns` in milliseconds. */
const QUERY_MS = 2000

/**
 * Returns one server's response to a question, with any rcode; undefined without a usable response within `limitMs` milliseconds
 * and before the deadline.
 */
export async function queryDns(
  server: DnsServer,
  question: DnsQuery,
  { deadline, effects }: { readonly deadline: Deadline; readonly effects: DnsEffects },
  limitMs = QUERY_MS,
): Promise<DnsReply | undefined> {
  const reply = await trySendQuery(server, question, deadline.limitedTo(limitMs), effects)
  return reply.kind === 'answer' ? reply.message : undefined
}

/** Sends one query over one transport, and returns the response. Rejects with a `DnsTransportError`. */
async function send<Server extends DnsServer>(
  exchange: (exchange: DnsRequest<Server>) => Promise<Uint8Array>,
  server: Server,
  question: DnsQuery,
  deadline: Deadline,
  udpSize: number | undefined,
  effects: DnsEffects,
): Promise<DnsReply> {
  const [high = 0, low = 0] = effects.random.bytes(2)
  // Over HTTPS, the id of a query is 0, as RFC 8484 section 4.1 recommends.
  const id = server instanceof URL ? 0 : (high << 8) | low
  const timeoutMs = deadline.remainingMs()
  if (timeoutMs <= 0) throw new DnsTransportError('not_checked', 'no time left')
  let answer: DnsReply | undefined
  await exchange({
    server,
    message: encodeQuery(id, question, udpSize),
    timeoutMs,
    signal: effects.signal,
    accept: (wire) => {
      answer = decodeResponse(wire, id, question)
      return answer !== undefined
    },
  })
  if (answer === undefined) throw new DnsTransportError('unreachable', 'no usable answer')
  return answer
}

/**
 * Sums up the failures of all transports: `not_checked` if all are, `timeout` if any is, otherwise `unreachable`. Throws any error
 * that isn't a `DnsTransportError`.
 */
function kindOf(error: unknown): DnsTransportError['kind'] {
  const errors: unknown[] = error instanceof AggregateError ? error.errors : [error]
  const kinds = errors.map((one) => {
    if (one instanceof DnsTransportError) return one.kind
    throw one
  })
  if (kinds.every((kind) => kind === 'not_checked')) return 'not_checked'
  return kinds.includes('timeout') ? 'timeout' : 'unreachable'
}

/**
 * Limits DNS transports to `max` sent queries in total; more are rejected as `not_checked`. A zone can name any servers and CNAME
 * targets, so without a limit a hostile zone could make one check query thousands of strangers' servers.
 */
export function limitTotalQueries(dns: DnsNetworkWithHttps, max: number) {
  let left = max
  let isReached = false
  const limited =
    <Server>(send: (exchange: DnsRequest<Server>) => Promise<Uint8Array>) =>
    async (exchange: DnsRequest<Server>) => {
      if (left <= 0) {
        isReached = true
        throw new DnsTransportError('not_checked', `the limit of ${max} queries is reached`)
      }
      left -= 1
      try {
        return await send(exchange)
      } catch (error) {
        // Don't count a query that never left this machine toward the limit `max`, which protects the queried servers.
        if (error instanceof DnsTransportError && error.kind === 'not_checked') left += 1
        throw error
      }
    }
  return {
    udp: limited(dns.udp),
    tcp: limited(dns.tcp),
    https: limited(dns.https),
    systemResolvers: () => dns.systemResolvers(),
    isReached: () => isReached,
  }
}

/**
 * Returns the first result to arrive that `isPreferred` accepts. If none does, returns the first defined result in the order of the
 * list, once all tasks have ended.
 */
export async function awaitPreferredOrAny<T>(
  tasks: readonly Promise<T | undefined>[],
  isPreferred: (result: T) => boolean,
): Promise<T | undefined> {
  const good = tasks.map((task) =>
    task.then((result) => (result !== undefined && isPreferred(result) ? result : Promise.reject(result))),
  )
  const others = Promise.all(tasks)
  others.catch(() => undefined)
  return await Promise.any(good).catch(async () => (await others).find((result) => result !== undefined))
}
