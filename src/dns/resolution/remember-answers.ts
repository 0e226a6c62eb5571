import packet from 'dns-packet'
import {
  type Clock,
  type DnsAddress,
  type DnsExchange,
  type DnsNetwork,
  DnsTransportError,
} from '../../context.ts'
import {
  type DecodedQuery,
  decodeAnswer,
  decodeQuestion,
  type Message,
  type QuestionType,
  soaOf,
} from '../wire/message.ts'
import { isAskable, isWithin } from '../wire/name.ts'
import { isRegistry } from './registry.ts'

/** What leads to a zone and its servers. TXT and SOA records are what a check looks at: they're always asked for. */
const REMEMBERED: readonly QuestionType[] = ['NS', 'A', 'AAAA', 'DS', 'DNSKEY']
/** Whatever the TTL: someone may be changing name servers while this runs. */
const MAX_MS = 5 * 60_000
const MAX_NEGATIVE_MS = 60_000
/** A resolver that failed or stayed silent is asked again after this (RFC 9520 section 3.2). */
const FAILURE_MS = 30_000
/** A shorter silence says nothing: the caller just had no more time. */
const MIN_SILENCE_MS = 1400
/** Answers and referrals; an entry has about a kilobyte. */
const MAX_ENTRIES = 4000

type Remembered =
  /** The whole answer to one question. */
  | { readonly kind: 'answer'; readonly wire: Uint8Array }
  /** A resolver doesn't answer this question. */
  | { readonly kind: 'silence' }
  /** What a server says about every name in a zone that it delegates. */
  | { readonly kind: 'referral'; readonly message: Message }

/**
 * A network that remembers, within their TTLs, the delegations that servers give and the addresses of name servers. So the
 * checks of many domains ask once for what they have in common.
 *
 * @param dns what is asked for the rest
 */
export function rememberAnswers(dns: DnsNetwork, clock: Pick<Clock, 'monotonic'>): DnsNetwork {
  const entries = new Map<string, { readonly what: Remembered; readonly until: number }>()

  function remember(key: string, what: Remembered, ms: number): void {
    if (ms <= 0) return
    entries.delete(key)
    entries.set(key, { what, until: clock.monotonic() + ms })
    const [oldest] = entries.keys()
    if (entries.size > MAX_ENTRIES && oldest !== undefined) entries.delete(oldest)
  }
  function recall(key: string): Remembered | undefined {
    const entry = entries.get(key)
    if (entry === undefined || entry.until > clock.monotonic()) return entry?.what
    entries.delete(key)
    return undefined
  }

  function recallFor(query: Query): Remembered | undefined {
    const exact = recall(query.key)
    if (exact !== undefined || query.recursionDesired || query.question.type === 'DS') return exact
    for (let zone = query.question.name; zone.includes('.'); zone = zone.slice(zone.indexOf('.') + 1)) {
      const referral = recall(`${query.sender} ${zone}`)
      if (referral !== undefined) return referral
    }
    return undefined
  }

  function learn(query: Query, wire: Uint8Array): void {
    const { question, key, recursionDesired } = query
    if (!REMEMBERED.includes(question.type) && !mayRefer(wire)) return
    const message = decodeAnswer(wire, query.id, question)
    if (message === undefined || message.tc) return
    const zone = recursionDesired ? undefined : referredZone(message, question.name)
    if (zone !== undefined) {
      remember(`${query.sender} ${zone}`, { kind: 'referral', message }, lifetime(message))
    } else if (REMEMBERED.includes(question.type)) {
      remember(key, { kind: 'answer', wire: Uint8Array.from(wire) }, lifetime(message))
    }
  }

  const remembering = (transport: 'udp' | 'tcp') => async (exchange: DnsExchange) => {
    const query = readQuery(exchange.server, exchange.message)
    if (query === undefined) return await dns[transport](exchange)
    const known = recallFor(query)
    if (known?.kind === 'silence')
      throw new DnsTransportError('timeout', `${exchange.server.address}: no answer to this a moment ago`)
    if (known !== undefined) {
      const wire =
        known.kind === 'answer' ? withId(known.wire, query.id) : encodeReferral(known.message, query)
      if (exchange.accept(wire)) return wire
    }
    const start = clock.monotonic()
    try {
      const wire = await dns[transport](exchange)
      learn(query, wire)
      return wire
    } catch (error) {
      const isSilence = error instanceof DnsTransportError && error.kind === 'timeout'
      if (isSilence && query.recursionDesired && REMEMBERED.includes(query.question.type))
        if (clock.monotonic() - start >= MIN_SILENCE_MS) remember(query.key, { kind: 'silence' }, FAILURE_MS)
      throw error
    }
  }
  return { ...dns, udp: remembering('udp'), tcp: remembering('tcp') }
}

interface Query extends DecodedQuery {
  /** The server, and all of the query but its id and question. */
  readonly sender: string
  /** That, and the question. */
  readonly key: string
}

/** Undefined if the query has an unusual form. */
function readQuery({ address, port }: DnsAddress, message: Uint8Array): Query | undefined {
  const query = decodeQuestion(message)
  const { name, type } = query.question
  if (!isAskable(name)) return undefined
  const buffer = Buffer.from(message.buffer, message.byteOffset, message.length)
  const rest = buffer.toString('latin1', 2, 4) + buffer.toString('latin1', query.end)
  const sender = `${address} ${port} ${rest}`
  return { ...query, sender, key: `${sender} ${name} ${type}` }
}

/**
 * The zone that the message refers to. A server that serves the domain but not the zone may refer upwards, to a registry or
 * the root, which says nothing about the other domains below.
 */
function referredZone({ aa, rcode, answers, authority }: Message, name: string): string | undefined {
  if (aa || rcode !== 'NOERROR' || answers.length > 0) return undefined
  const owner = authority.find((record) => record.type === 'NS' && isWithin(name, record.name))?.name
  return owner === undefined || !owner.includes('.') || isRegistry(owner) ? undefined : owner
}

/** Whether an answer may be a referral, by its header alone: most answers aren't, and need not be decoded again. */
function mayRefer(wire: Uint8Array): boolean {
  const [, , flags = 0, , , , high = 0, low = 0] = wire
  const isAuthoritative = (flags & 0x04) !== 0
  return !isAuthoritative && high === 0 && low === 0
}

/** How long a message may be remembered, in milliseconds. */
function lifetime(message: Message): number {
  const { rcode, answers, authority, additional } = message
  if (rcode === 'SERVFAIL' && message.ra) return FAILURE_MS
  if (rcode !== 'NOERROR' && rcode !== 'NXDOMAIN') return 0
  const negative = soaOf(message)?.negativeTtl
  if (answers.length === 0 && negative !== undefined) return Math.min(negative * 1000, MAX_NEGATIVE_MS)
  const isReferral = answers.length === 0
  const records = isReferral ? [...authority, ...additional].filter(({ type }) => type !== 'RRSIG') : answers
  if (records.length === 0) return 0
  return Math.min(...records.map(({ ttl }) => ttl * 1000), MAX_MS)
}

function withId(wire: Uint8Array, id: number): Uint8Array {
  const copy = Buffer.from(wire)
  copy.writeUInt16BE(id, 0)
  return copy
}

/** The referral as the answer to another question about a name in its zone. */
function encodeReferral({ ra, edns, authority, additional }: Message, { id, question }: Query): Uint8Array {
  const opt = {
    type: 'OPT',
    name: '.',
    udpPayloadSize: 1232,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: 0,
  } as const
  return packet.encode({
    type: 'response',
    id,
    flags: ra ? packet.RECURSION_AVAILABLE : 0,
    questions: [{ ...question, class: 'IN' }],
    authorities: authority.flatMap((record) =>
      record.type === 'NS' ? [{ type: 'NS', name: record.name, ttl: record.ttl, data: record.target }] : [],
    ),
    additionals: [
      ...additional.flatMap((record) =>
        record.type === 'A' || record.type === 'AAAA'
          ? [{ type: record.type, name: record.name, ttl: record.ttl, data: record.address }]
          : [],
      ),
      ...(edns ? [{ ...opt, flag_do: false, options: [] }] : []),
    ],
  })
}
