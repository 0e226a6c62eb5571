import type { DnsAddress } from '../context.ts'
import { ask, type Reply } from './exchange.ts'
import type { Message, ResourceRecord, Soa } from './message.ts'
import { isWithin } from './name.ts'
import type { Outcome } from './report.ts'
import type { Route } from './route.ts'
import { sameBytes } from './value.ts'
import { soaOf } from './walk.ts'

/** One TXT record: its strings joined, and how many there were (RFC 1035 section 3.3.14). */
export interface TxtValue {
  readonly bytes: Uint8Array
  readonly strings: number
}

/** Where a chain of aliases from the name ends. */
export type AliasEnd = 'txt' | 'absent' | 'nxdomain' | 'loop' | 'unknown'

/** What one server said about the name. */
export interface Observation {
  readonly host: string
  /** Undefined for a host without an address. */
  readonly server: DnsAddress | undefined
  readonly outcome: Outcome
  readonly authoritative: boolean
  readonly values: readonly TxtValue[]
  /** Seconds; of the TXT set, or of the CNAME. */
  readonly ttl: number | null
  /** The zone's SOA at this server. */
  readonly soa: Soa | undefined
  /** Seconds that a cache may hold this negative answer. */
  readonly negativeTtl: number | undefined
  readonly ms: number | null
  /** Bytes of the TXT answer. */
  readonly size: number
  readonly rcode: string | undefined
  readonly recursionAvailable: boolean
  readonly extendedError: Message['extendedError']
  /** Set where the answer needs TCP and TCP did not work. A larger datagram may have brought it whole all the same. */
  readonly tcpFailure: string | undefined
  /** The targets of CNAMEs from the name on; empty without any. */
  readonly aliases: readonly string[]
  readonly aliasEnd: AliasEnd | undefined
  /** The name above this one whose DNAME made the first alias (RFC 6672); undefined where a CNAME did. */
  readonly dname: string | undefined
  /** The zone's NS set as this server has it. */
  readonly nsSet: readonly string[] | undefined
}

export interface TxtAnswer {
  readonly aliases: readonly string[]
  readonly dname: string | undefined
  readonly loop: boolean
  readonly values: readonly TxtValue[]
  readonly ttl: number | null
}

/** Reads the TXT set out of an answer, along CNAMEs and DNAMEs (RFC 1034 section 4.3.2, RFC 6672). */
export function readTxt(message: Message, name: string): TxtAnswer {
  const aliases: string[] = []
  const visited = new Set([name])
  let owner = name
  let aliasTtl: number | null = null
  const first = { dname: dnameAbove(message, name)?.name }
  for (;;) {
    const txt = message.answers.filter((record) => record.type === 'TXT' && record.name === owner)
    const values = txt.flatMap((record) =>
      record.type === 'TXT' ? [{ bytes: Buffer.concat(record.strings), strings: record.strings.length }] : [],
    )
    if (values.length > 0) return { ...first, aliases, loop: false, values, ttl: txt[0]?.ttl ?? null }
    const alias = message.answers.find((record) => record.type === 'CNAME' && record.name === owner)
    const dname = dnameAbove(message, owner)
    const next =
      alias?.type === 'CNAME'
        ? alias.target
        : dname?.type === 'DNAME'
          ? `${owner.slice(0, -dname.name.length)}${dname.target}`
          : undefined
    if (next === undefined) return { ...first, aliases, loop: false, values: [], ttl: aliasTtl }
    aliasTtl ??= alias?.ttl ?? dname?.ttl ?? null
    aliases.push(next)
    if (visited.has(next)) return { ...first, aliases, loop: true, values: [], ttl: aliasTtl }
    visited.add(next)
    owner = next
  }
}

/** The DNAME that an answer carries for a name; the CNAME beside it is made up by the server (RFC 6672 section 3.1). */
function dnameAbove(message: Message, name: string): ResourceRecord | undefined {
  return message.answers.find(
    (record) => record.type === 'DNAME' && record.name !== name && isWithin(name, record.name),
  )
}

export function hasValue(values: readonly TxtValue[], expected: Uint8Array): boolean {
  return values.some((value) => sameBytes(value.bytes, expected))
}

/** Servers in the order of their names, and IPv4 first, whichever answered first. */
export function byHost(a: Observation, b: Observation): number {
  const key = (o: Observation) =>
    `${o.host} ${o.server?.address.includes(':') ? 1 : 0} ${o.server?.address ?? ''}`
  return key(a) < key(b) ? -1 : 1
}

/** What a server is asked about. */
export interface SurveyQuestion {
  readonly name: string
  readonly zone: string
  readonly expected: Uint8Array
  /** How long one server may be silent. */
  readonly serverMs: number
}

/** Asks one server everything at once: the name's TXT set, the zone's SOA and NS set. */
export async function observeServer(
  host: string,
  server: DnsAddress,
  question: SurveyQuestion,
  route: Route,
): Promise<Observation> {
  const { name, zone, expected, serverMs } = question
  const deadline = Math.min(route.deadline, route.effects.clock.monotonic() + serverMs)
  const [txt, soa, ns] = await Promise.all([
    ask(server, { name, type: 'TXT' }, { deadline }, route.effects),
    ask(server, { name: zone, type: 'SOA' }, { deadline }, route.effects),
    ask(server, { name: zone, type: 'NS' }, { deadline }, route.effects),
  ])
  const zoneSoa = soa.kind === 'answer' && soa.message.aa ? soaOf(soa.message) : undefined
  return {
    ...judgeAuthoritative(host, server, txt, name, expected),
    soa: zoneSoa?.zone === zone ? zoneSoa : undefined,
    nsSet: ns.kind === 'answer' && ns.message.aa ? nsHosts(ns.message, zone) : undefined,
  }
}

function nsHosts(message: Message, zone: string): string[] | undefined {
  const hosts = message.answers.flatMap((r) => (r.type === 'NS' && r.name === zone ? [r.target] : []))
  return hosts.length > 0 ? hosts : undefined
}

const NOTHING = {
  authoritative: false,
  values: [],
  ttl: null,
  soa: undefined,
  negativeTtl: undefined,
  size: 0,
  rcode: undefined,
  recursionAvailable: false,
  extendedError: undefined,
  tcpFailure: undefined,
  aliases: [],
  aliasEnd: undefined,
  dname: undefined,
  nsSet: undefined,
} as const satisfies Partial<Observation>

/** A host without an address, or (`timeout`) one for which nobody could say whether it has any. */
export function withoutAddress(
  host: string,
  outcome: 'unreachable' | 'timeout' | 'not_checked',
): Observation {
  return { ...NOTHING, host, server: undefined, outcome, ms: null }
}

/** What the TXT reply of an authoritative server means. */
export function judgeAuthoritative(
  host: string,
  server: DnsAddress,
  reply: Reply,
  name: string,
  expected: Uint8Array,
): Observation {
  const base = { ...NOTHING, host, server }
  if (reply.kind !== 'answer')
    return { ...base, outcome: failureOutcome(reply.kind), ms: reply.kind === 'no-route' ? null : reply.ms }
  const answer = judgeAnswer(reply.message, name, expected)
  const observation = { ...base, ...answer, ms: reply.ms, tcpFailure: reply.tcpFailure }
  if (!reply.message.aa && isDnsData(answer.outcome)) return { ...observation, outcome: 'lame' }
  return cutShort(observation, reply.message)
}

/** What a recursive resolver's reply means. */
export function judgeResolver(
  server: DnsAddress,
  reply: Reply,
  name: string,
  expected: Uint8Array,
): Observation {
  const base = { ...NOTHING, host: server.address, server }
  if (reply.kind !== 'answer')
    return { ...base, outcome: failureOutcome(reply.kind), ms: reply.kind === 'no-route' ? null : reply.ms }
  const answer = judgeAnswer(reply.message, name, expected)
  // Neither recursion nor authority: it was of use on the way to the zone, but of this name it knows nothing.
  // Nor does one without recursion know where an alias leads to that it does not follow.
  const isStranger =
    !reply.message.ra &&
    ((!reply.message.aa && reply.message.rcode === 'NOERROR') || answer.aliasEnd === 'unknown')
  const observation = {
    ...base,
    ...answer,
    ...(isStranger ? { outcome: 'not_checked' as const } : {}),
    ms: reply.ms,
    tcpFailure: reply.tcpFailure,
  }
  return cutShort(observation, reply.message)
}

/** Whether an answer says what is at the name, be it nothing: neither a failure nor silence. */
export function isDnsData(outcome: Outcome): boolean {
  return outcome === 'match' || outcome === 'mismatch' || outcome === 'absent' || outcome === 'nxdomain'
}

function failureOutcome(kind: 'silent' | 'unreachable' | 'no-route'): Outcome {
  if (kind === 'no-route') return 'not_checked'
  return kind === 'silent' ? 'timeout' : 'unreachable'
}

/** An answer of which TCP would have brought the rest says nothing, unless the record is in the part that came. */
function cutShort(observation: Observation, { tc }: Message): Observation {
  if (!tc || observation.tcpFailure === undefined || observation.outcome === 'match') return observation
  const wasLarge = observation.outcome === 'mismatch' || observation.outcome === 'absent'
  if (!wasLarge) return observation
  return { ...observation, outcome: observation.tcpFailure === 'timeout' ? 'timeout' : 'unreachable' }
}

function judgeAnswer(message: Message, name: string, expected: Uint8Array) {
  const { values, aliases, dname, loop, ttl } = readTxt(message, name)
  const negative = values.length === 0 ? soaOf(message) : undefined
  const common = {
    authoritative: message.aa,
    values,
    ttl,
    negativeTtl: negative?.negativeTtl,
    size: message.size,
    rcode: message.rcode,
    recursionAvailable: message.ra,
    extendedError: message.extendedError,
    aliases,
    dname,
  }
  const outcome = outcomeOf(message.rcode, values, expected)
  if (aliases.length === 0) return { ...common, aliasEnd: undefined, outcome }
  if (loop) return { ...common, aliasEnd: 'loop' as const, outcome: 'absent' as const }
  if (values.length > 0) return { ...common, aliasEnd: 'txt' as const, outcome }
  // RFC 6604 section 3: the code speaks of the end of the chain, where the server knows it.
  const end: AliasEnd =
    message.rcode === 'NXDOMAIN' ? 'nxdomain' : negative !== undefined ? 'absent' : 'unknown'
  return { ...common, aliasEnd: end, outcome: 'absent' as const }
}

function outcomeOf(rcode: string, values: readonly TxtValue[], expected: Uint8Array): Outcome {
  switch (rcode) {
    case 'NOERROR':
      if (values.length === 0) return 'absent'
      return hasValue(values, expected) ? 'match' : 'mismatch'
    case 'NXDOMAIN':
      return 'nxdomain'
    case 'REFUSED':
      return 'refused'
    case 'SERVFAIL':
      return 'servfail'
    default:
      return 'lame'
  }
}
