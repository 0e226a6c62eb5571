import { isIPv6 } from 'node:net'
import { type DnsAddress, DnsTransportError } from '../../context.ts'
import type { DnsEffects } from './effects.ts'
import { linkedAbort } from './linked-abort.ts'
import { decodeAnswer, encodeQuery, type Message, type Question } from './message.ts'

export interface AskOptions {
  readonly recursionDesired?: boolean
  readonly checkingDisabled?: boolean
  /** Asks for the signatures as well. */
  readonly dnssecOk?: boolean
  /** When the wait is over at the latest, on `clock.monotonic()`. */
  readonly deadline: number
  /** Silence for so long starts a second try, in milliseconds; two seconds where not given. */
  readonly retryAfterMs?: number
}

/** What became of one question to one server. `ms` counts from the first datagram to the answer. */
export type Reply =
  | {
      readonly kind: 'answer'
      readonly message: Message
      readonly ms: number
      /** Set where the answer did not fit UDP and TCP did not work: the message lacks records then, unless TC is clear. */
      readonly tcpFailure: DnsTransportError['kind'] | undefined
      /** Set where the first question stayed silent: what answered the second try, UDP without EDNS or TCP. */
      readonly secondTry: 'udp' | 'tcp' | undefined
    }
  /** `not-asked`: the check has asked all the questions that it may ask. */
  | { readonly kind: 'silent' | 'unreachable' | 'no-route' | 'not-asked'; readonly ms: number }

/** The EDNS size that avoids fragmentation on practically every path (DNS flag day 2020). */
const UDP_SIZE = 1232
/** What is tried where TCP is closed: fragments may still come through. */
const LARGE_UDP_SIZE = 4096
/** Silence for so long starts a second try; the first one goes on listening. */
export const RETRY_AFTER_MS = 2000

/**
 * Asks one server one question: UDP with EDNS; after two silent seconds (or as told) once more without EDNS, and over TCP
 * beside it; over TCP where the answer is cut. Servers that choke on EDNS are asked without. Never rejects but for the
 * caller's own signal: silence, refusals and junk are results.
 */
export async function ask(
  server: DnsAddress,
  question: Question,
  options: AskOptions,
  effects: DnsEffects,
): Promise<Reply> {
  const start = effects.clock.monotonic()
  const withEdns = await askOnce(server, question, options, effects, UDP_SIZE)
  if (withEdns.kind !== 'answer' || !chokedOnEdns(withEdns.message, options)) return withEdns
  const plain = await askOnce(server, question, options, effects, undefined)
  return plain.kind === 'answer' ? { ...plain, ms: Math.round(effects.clock.monotonic() - start) } : withEdns
}

/** RFC 6891 section 7, and servers older than it that fail in their own ways. */
function chokedOnEdns(message: Message, options: AskOptions): boolean {
  if (message.rcode === 'FORMERR' || message.rcode === 'NOTIMP' || message.rcode === 'BADVERS') return true
  return message.rcode === 'SERVFAIL' && !message.edns && options.recursionDesired !== true
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
  // Whatever still waits when the answer is there is withdrawn with this.
  const round = linkedAbort(effects.signal)
  const via = (transport: 'udp' | 'tcp', size: number | undefined) =>
    send(transport, server, question, options, { ...effects, signal: round.signal }, size)

  try {
    effects.signal.throwIfAborted()
    const first = via('udp', udpSize)
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
      const over = (transport: 'udp' | 'tcp', size: number | undefined) =>
        via(transport, size).then((message) => ({ message, secondTry: transport }))
      if (early === 'answered') return await firstTry
      // A closed UDP port or a missing route is an answer of its own; TCP may still be open where UDP is not.
      if (early !== 'retry')
        return transportErrorKind(early) === 'no-route' ? await firstTry : await over('tcp', udpSize)
      return await Promise.any([over('udp', undefined), over('tcp', udpSize)])
    })()
    // Without a handler of its own, a race lost by rejection would count as unhandled.
    second.catch(() => {})
    const { message, secondTry } = await Promise.any([firstTry, second])
    const reply = { kind: 'answer', secondTry } as const
    const whole = message.tc ? await askWhole(message, via, udpSize) : { message, tcpFailure: undefined }
    return { ...reply, ...whole, ms: elapsed() }
  } catch (error) {
    effects.signal.throwIfAborted()
    return { kind: replyKind(error, isIPv6(server.address)), ms: elapsed() }
  } finally {
    round.end()
  }
}

/** The answer was cut (TC): TCP has it whole; where TCP is closed, a larger datagram may. */
async function askWhole(
  cut: Message,
  via: (transport: 'udp' | 'tcp', size: number | undefined) => Promise<Message>,
  udpSize: number | undefined,
): Promise<{ message: Message; tcpFailure: DnsTransportError['kind'] | undefined }> {
  // Without EDNS where the server choked on it.
  const tcp = await via('tcp', udpSize).catch((error: unknown) => transportErrorKind(error))
  if (typeof tcp !== 'string') return { message: tcp, tcpFailure: undefined }
  // No question left: what the rest says is not known, and nothing is wrong with TCP.
  if (tcp === 'timeout' || tcp === 'over-limit') return { message: cut, tcpFailure: tcp }
  const large = await via('udp', LARGE_UDP_SIZE).catch(() => undefined)
  return { message: large ?? cut, tcpFailure: tcp }
}

/** As many datagrams are hardly all lost, even on a bad path. */
const UDP_TRIES = 3

/**
 * Whether a server answers one of a few datagrams, all sent at once. True as well where no question may be asked any more:
 * silence was not seen then.
 *
 * @param edns whether the questions have EDNS, and with it whether they ask for signatures.
 */
export async function answersUdp(
  server: DnsAddress,
  question: Question,
  { edns, deadline }: { readonly edns: 'none' | 'plain' | 'signatures'; readonly deadline: number },
  effects: DnsEffects,
): Promise<boolean> {
  const options = { deadline, dnssecOk: edns === 'signatures' }
  const size = edns === 'none' ? undefined : UDP_SIZE
  const round = linkedAbort(effects.signal)
  const tryOnce = () =>
    send('udp', server, question, options, { ...effects, signal: round.signal }, size).catch(
      (error: unknown) => {
        if (transportErrorKind(error) !== 'over-limit') throw error
      },
    )
  try {
    await Promise.any(Array.from({ length: UDP_TRIES }, tryOnce))
    return true
  } catch {
    effects.signal.throwIfAborted()
    return false
  } finally {
    round.end()
  }
}

/** One message out, its answer in. Rejects with a `DnsTransportError`. */
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
    return kinds.includes('timeout') ? 'timeout' : first
  }
  throw error
}

/** A machine without IPv6 is usual and says nothing about the server; without a route over IPv4 it is offline. */
function replyKind(error: unknown, ipv6: boolean): Exclude<Reply['kind'], 'answer'> {
  const kind = transportErrorKind(error)
  if (kind === 'over-limit') return 'not-asked'
  if (kind === 'no-route') return ipv6 ? 'no-route' : 'unreachable'
  return kind === 'timeout' || kind === 'aborted' ? 'silent' : 'unreachable'
}
