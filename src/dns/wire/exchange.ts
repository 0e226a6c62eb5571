import { isIPv6 } from 'node:net'
import { type DnsAddress, DnsTransportError } from '../../context.ts'
import type { DnsEffects } from './effects.ts'
import { linkedAbort } from './linked-abort.ts'
import { decodeAnswer, encodeQuery, type Message, type Question } from './message.ts'
import { isUnsent } from './query-limit.ts'

export interface AskOptions {
  readonly recursionDesired?: boolean
  readonly checkingDisabled?: boolean
  /** Asks for signatures as well (the DO bit, RFC 3225). */
  readonly dnssecOk?: boolean
  /** On `clock.monotonic()`. */
  readonly deadline: number
  /** How long to wait for an answer before the second try, in milliseconds; two seconds by default. */
  readonly retryAfterMs?: number
}

/** The result of one question to one server. `ms` counts from the first datagram to the answer. */
export type Reply =
  | {
      readonly kind: 'answer'
      readonly message: Message
      readonly ms: number
      /** Set if the answer didn't fit UDP and TCP failed: the message then lacks records, unless TC is clear. */
      readonly tcpFailure: DnsTransportError['kind'] | undefined
      /** Set if the first query got no answer: what answered the second try, UDP without EDNS or TCP. */
      readonly secondTry: 'udp' | 'tcp' | undefined
      /** The rcode of the answer to the same query with EDNS, if the server answers it only without. */
      readonly ednsRejection?: string
    }
  /**
   * `no-route`: nothing could be sent, as on a machine with only one of IPv4 and IPv6, which says nothing about the server;
   * nor does `blocked`: a firewall on this machine doesn't allow it.
   * `not-asked`: the check has used all its queries.
   */
  | { readonly kind: 'silent' | 'unreachable' | 'no-route' | 'blocked' | 'not-asked'; readonly ms: number }

/** The EDNS size that avoids fragmentation on practically every path (DNS flag day 2020). */
const UDP_SIZE = 1232
/** Tried if TCP is closed: fragments may still come through. */
const LARGE_UDP_SIZE = 4096
/** What kept a query from being sent, such as full buffers or a firewall that is being changed, may be over by then. */
const SEND_AGAIN_MS = 100
/** After this long without an answer, a second try starts; the first one keeps listening. */
export const RETRY_AFTER_MS = 2000

/**
 * Asks one server one question over UDP with EDNS. Without an answer after `retryAfterMs`, asks again without EDNS and at
 * the same time over TCP; asks over TCP if the answer is truncated, and without EDNS if the server rejects it. Rejects only
 * if the caller's signal aborts: silence, refusals and junk are results.
 */
export async function ask(
  server: DnsAddress,
  question: Question,
  options: AskOptions,
  effects: DnsEffects,
): Promise<Reply> {
  const start = effects.clock.monotonic()
  const withEdns = await askOnce(server, question, options, effects, UDP_SIZE)
  if (withEdns.kind !== 'answer' || !rejectedEdns(withEdns.message, options)) return withEdns
  const plain = await askOnce(server, question, options, effects, undefined)
  if (plain.kind !== 'answer') return withEdns
  const { rcode } = withEdns.message
  const ednsRejection = rcode === plain.message.rcode ? {} : { ednsRejection: rcode }
  return { ...plain, ...ednsRejection, ms: Math.round(effects.clock.monotonic() - start) }
}

/** RFC 6891 section 7, and how older servers fail. */
function rejectedEdns(message: Message, options: AskOptions): boolean {
  if (message.rcode === 'FORMERR' || message.rcode === 'NOTIMP' || message.rcode === 'BADVERS') return true
  const isFailure = message.rcode === 'SERVFAIL' || message.rcode === 'REFUSED'
  return isFailure && options.recursionDesired !== true
}

async function askOnce(
  server: DnsAddress,
  question: Question,
  options: AskOptions,
  effects: DnsEffects,
  udpSize: number | undefined,
): Promise<Reply> {
  const { clock } = effects
  const start = clock.monotonic()
  const elapsed = () => Math.round(clock.monotonic() - start)
  // Cancels whatever is still waiting once the answer is there.
  const round = linkedAbort(effects.signal)
  const via = (transport: 'udp' | 'tcp', size: number | undefined) =>
    send(transport, server, question, options, { ...effects, signal: round.signal }, size)

  try {
    effects.signal.throwIfAborted()
    const first = via('udp', udpSize).catch(async (error: unknown) => {
      // Many machines have no IPv6 route, and that stays so.
      if (!isUnsent(transportErrorKind(error)) || isIPv6(server.address)) throw error
      await clock.sleep(SEND_AGAIN_MS, round.signal)
      return await via('udp', udpSize)
    })
    const firstTry = first.then((message) => ({ message, secondTry: undefined }))
    firstTry.catch(() => {})
    const second = (async () => {
      const early = await Promise.race([
        first.then(
          () => 'answered' as const,
          (error: unknown) => error,
        ),
        clock.sleep(options.retryAfterMs ?? RETRY_AFTER_MS, round.signal).then(() => 'retry' as const),
      ])
      const retryVia = (transport: 'udp' | 'tcp', size: number | undefined) =>
        via(transport, size).then((message) => ({ message, secondTry: transport }))
      if (early === 'answered') return await firstTry
      // A closed UDP port or a missing route needs no wait; TCP may still be open if UDP isn't, at the server or in this
      // machine's firewall.
      if (early !== 'retry')
        return transportErrorKind(early) === 'no-route' ? await firstTry : await retryVia('tcp', udpSize)
      return await Promise.any([retryVia('udp', undefined), retryVia('tcp', udpSize)])
    })()
    // If it rejects after losing the race, nobody else handles that.
    second.catch(() => {})
    const { message, secondTry } = await Promise.any([firstTry, second])
    const reply = { kind: 'answer', secondTry } as const
    const whole = message.tc
      ? await askUntruncated(message, via, udpSize)
      : { message, tcpFailure: undefined }
    return { ...reply, ...whole, ms: elapsed() }
  } catch (error) {
    effects.signal.throwIfAborted()
    return { kind: replyKind(error), ms: elapsed() }
  } finally {
    round.end()
  }
}

/** The answer was truncated (TC): TCP has all of it; if TCP is closed, a larger datagram may. */
async function askUntruncated(
  truncated: Message,
  via: (transport: 'udp' | 'tcp', size: number | undefined) => Promise<Message>,
  udpSize: number | undefined,
): Promise<{ message: Message; tcpFailure: DnsTransportError['kind'] | undefined }> {
  // Without EDNS if the server rejected it.
  const tcp = await via('tcp', udpSize).catch((error: unknown) => transportErrorKind(error))
  if (typeof tcp !== 'string') return { message: tcp, tcpFailure: undefined }
  // `over-limit`: no query is left. The rest of the answer is unknown, but nothing is wrong with TCP.
  if (tcp === 'timeout' || tcp === 'over-limit') return { message: truncated, tcpFailure: tcp }
  const large = await via('udp', LARGE_UDP_SIZE).catch(() => undefined)
  return { message: large ?? truncated, tcpFailure: tcp }
}

/** Even on a bad path, this many datagrams are hardly all lost. */
const UDP_TRIES = 3

/**
 * Whether a server answers over TCP, or at least one of a few datagrams, all sent at once. Undefined if none was answered,
 * but one could not be sent: then silence was not seen.
 *
 * @param edns whether the queries have EDNS, and if so whether they ask for signatures.
 */
export async function answers(
  transport: 'udp' | 'tcp',
  server: DnsAddress,
  question: Question,
  { edns, deadline }: { readonly edns: 'none' | 'plain' | 'signatures'; readonly deadline: number },
  effects: DnsEffects,
): Promise<boolean | undefined> {
  const options = { deadline, dnssecOk: edns === 'signatures' }
  const size = edns === 'none' ? undefined : UDP_SIZE
  const round = linkedAbort(effects.signal)
  let isUnseen = false
  const tryOnce = () =>
    send(transport, server, question, options, { ...effects, signal: round.signal }, size).catch(
      (error: unknown) => {
        const kind = transportErrorKind(error)
        isUnseen ||= kind === 'over-limit' || isUnsent(kind)
        throw error
      },
    )
  try {
    await Promise.any(Array.from({ length: transport === 'udp' ? UDP_TRIES : 1 }, tryOnce))
    return true
  } catch {
    effects.signal.throwIfAborted()
    return isUnseen ? undefined : false
  } finally {
    round.end()
  }
}

/** Sends one query and returns its answer. Rejects with a `DnsTransportError`. */
async function send(
  transport: 'udp' | 'tcp',
  server: DnsAddress,
  question: Question,
  options: AskOptions,
  effects: DnsEffects,
  udpSize: number | undefined,
): Promise<Message> {
  const [high = 0, low = 0] = effects.random.bytes(2)
  const id = (high << 8) | low
  const message = encodeQuery(id, question, {
    recursionDesired: options.recursionDesired ?? false,
    checkingDisabled: options.checkingDisabled ?? false,
    dnssecOk: options.dnssecOk ?? false,
    udpSize,
  })
  const timeoutMs = options.deadline - effects.clock.monotonic()
  if (timeoutMs <= 0) throw new DnsTransportError('timeout', `${server.address}: no time left`)
  let answer: Message | undefined
  await effects.dns[transport]({
    server,
    message,
    timeoutMs,
    signal: effects.signal,
    accept: (wire) => {
      answer = decodeAnswer(wire, id, question)
      return answer !== undefined
    },
  })
  if (answer === undefined) throw new DnsTransportError('closed', `${server.address}: no usable answer`)
  return answer
}

function transportErrorKind(error: unknown): DnsTransportError['kind'] {
  if (error instanceof DnsTransportError) return error.kind
  if (error instanceof AggregateError) {
    const kinds = error.errors.map(transportErrorKind)
    const [first = 'unreachable'] = kinds
    // What couldn't be sent over UDP says nothing about the server, even if TCP gets no answer.
    return kinds.includes('timeout') && first !== 'blocked' ? 'timeout' : first
  }
  throw error
}

function replyKind(error: unknown): Exclude<Reply['kind'], 'answer'> {
  const kind = transportErrorKind(error)
  if (kind === 'over-limit') return 'not-asked'
  if (isUnsent(kind)) return kind
  return kind === 'timeout' || kind === 'aborted' ? 'silent' : 'unreachable'
}
