import type { DnsAddress } from '../../context.ts'
import type { AliasEnd } from '../resolution/alias.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { ask, type Reply } from '../wire/exchange.ts'
import { type Message, soaOf } from '../wire/message.ts'
import { MAX_NAME_LENGTH } from '../wire/name.ts'
import { hasText, readTxt, type TxtValue } from '../wire/txt-answer.ts'
import { isDnsData, type Observation, type Outcome } from './observations.ts'

/** What a server is asked about. */
export interface SurveyQuestion {
  readonly name: string
  readonly zone: string
  readonly expected: string
  /** How long one server may be silent. */
  readonly serverMs: number
}

/** Asks one server everything at once: the name's TXT set, the zone's SOA and NS set. */
export async function observeServer(
  host: string,
  server: DnsAddress,
  question: SurveyQuestion,
  context: ResolutionContext,
): Promise<Observation> {
  const { name, zone, expected, serverMs } = question
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + serverMs)
  const [txt, soa, ns] = await Promise.all([
    ask(server, { name, type: 'TXT' }, { deadline }, context.effects),
    ask(server, { name: zone, type: 'SOA' }, { deadline }, context.effects),
    ask(server, { name: zone, type: 'NS' }, { deadline }, context.effects),
  ])
  const zoneSoa = soa.kind === 'answer' && soa.message.aa ? soaOf(soa.message) : undefined
  return {
    ...classifyAuthoritative(host, server, txt, name, expected),
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
function classifyAuthoritative(
  host: string,
  server: DnsAddress,
  reply: Reply,
  name: string,
  expected: string,
): Observation {
  const base = { ...NOTHING, host, server }
  if (reply.kind !== 'answer')
    return { ...base, outcome: failureOutcome(reply.kind), ms: reply.kind === 'no-route' ? null : reply.ms }
  const answer = classifyAnswer(reply.message, name, expected)
  const observation = { ...base, ...answer, ms: reply.ms, tcpFailure: reply.tcpFailure }
  if (!reply.message.aa && isDnsData(answer.outcome)) return { ...observation, outcome: 'lame' }
  return cutShort(observation, reply.message)
}

/** What a recursive resolver's reply means. */
export function classifyResolver(
  server: DnsAddress,
  reply: Reply,
  name: string,
  expected: string,
): Observation {
  const base = { ...NOTHING, host: server.address, server }
  if (reply.kind !== 'answer')
    return { ...base, outcome: failureOutcome(reply.kind), ms: reply.kind === 'no-route' ? null : reply.ms }
  const answer = classifyAnswer(reply.message, name, expected)
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

function classifyAnswer(message: Message, name: string, expected: string) {
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
  const last = aliases.at(-1)
  if (last === undefined) return { ...common, aliasEnd: undefined, outcome }
  if (loop) return { ...common, aliasEnd: 'loop' as const, outcome: 'absent' as const }
  if (values.length > 0) return { ...common, aliasEnd: 'txt' as const, outcome }
  // RFC 6604 section 3: the code speaks of the end of the chain, where the server knows it.
  const isMissing = message.rcode === 'NXDOMAIN' || last.length > MAX_NAME_LENGTH
  const end: AliasEnd = isMissing ? 'nxdomain' : negative !== undefined ? 'absent' : 'unknown'
  return { ...common, aliasEnd: end, outcome: 'absent' as const }
}

function outcomeOf(rcode: string, values: readonly TxtValue[], expected: string): Outcome {
  switch (rcode) {
    case 'NOERROR':
      if (values.length === 0) return 'absent'
      return hasText(values, expected) ? 'match' : 'mismatch'
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
