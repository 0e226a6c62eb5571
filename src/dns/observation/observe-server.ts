import type { DnsAddress } from '../../context.ts'
import type { AliasEnd } from '../resolution/alias.ts'
import { isFromAbove } from '../resolution/delegation-walk.ts'
import { firstUseful } from '../resolution/race.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { answersUdp, ask, RETRY_AFTER_MS, type Reply } from '../wire/exchange.ts'
import { type Message, soaOf } from '../wire/message.ts'
import { MAX_NAME_LENGTH } from '../wire/name.ts'
import { hasText, readTxt, type TxtValue } from '../wire/txt-answer.ts'
import { isDnsData, type Observation, type Outcome } from './observations.ts'

/** What a server is asked about. */
export interface SurveyQuestion {
  readonly name: string
  readonly zone: string
  /** Whether the zone was found, so that a server that answers from one above does not serve it. */
  readonly zoneFound: boolean
  readonly expected: string
  /** How long one server may be silent. */
  readonly serverMs: number
}

/** Longer than one silent question may last, so that nothing is asked a second time. */
const NO_RETRY_MS = 60_000
/** A server that has just answered answers again within this. */
const PROBE_MS = 1000

/**
 * Asks one server everything at once: the name's TXT set, the zone's SOA and NS set. The last two are asked again only
 * once the first has been answered.
 */
export async function observeServer(
  host: string,
  server: DnsAddress,
  question: SurveyQuestion,
  context: ResolutionContext,
): Promise<Observation> {
  const { name, zone, zoneFound, expected, serverMs } = question
  const { clock } = context.effects
  const now = clock.monotonic()
  const deadline = Math.min(context.deadline, now + serverMs)
  const aboutZone = (type: 'SOA' | 'NS', retryAfterMs: number) =>
    ask(server, { name: zone, type }, { deadline, retryAfterMs }, context.effects)
  const early = { SOA: aboutZone('SOA', NO_RETRY_MS), NS: aboutZone('NS', NO_RETRY_MS) }
  let answersFirstTries = false
  for (const reply of Object.values(early))
    reply.then(
      ({ kind }) => {
        answersFirstTries ||= kind === 'answer'
      },
      () => undefined,
    )
  const txt = await ask(server, { name, type: 'TXT' }, { deadline }, context.effects)
  const needsSecondTry = txt.kind === 'answer' && txt.secondTry !== undefined && !answersFirstTries
  // Only a server that is alive is asked again, so that a dead one costs few questions.
  const insist = async (type: 'SOA' | 'NS'): Promise<Reply | undefined> => {
    if (txt.kind !== 'answer') return await early[type]
    const again = async () => {
      await clock.sleep(needsSecondTry ? 0 : RETRY_AFTER_MS, context.effects.signal)
      return await aboutZone(type, needsSecondTry ? 0 : NO_RETRY_MS)
    }
    return await firstUseful(
      [() => early[type], again].map((task) => async () => {
        const reply = await task()
        return reply.kind === 'answer' ? reply : undefined
      }),
    )
  }
  const [soa, ns, dropped] = await Promise.all([
    insist('SOA'),
    insist('NS'),
    needsSecondTry ? droppedBy(server, zone, txt.secondTry === 'udp', context) : undefined,
  ])
  const zoneSoa = soa?.kind === 'answer' && soa.message.aa ? soaOf(soa.message) : undefined
  const observation = classifyAuthoritative(host, server, txt, name, expected)
  const isElsewhere =
    zoneFound &&
    txt.kind === 'answer' &&
    txt.message.answers.length === 0 &&
    isFromAbove(soaOf(txt.message), zone)
  return {
    ...observation,
    ...(isElsewhere && isDnsData(observation.outcome) ? { outcome: 'lame' as const } : {}),
    soa: zoneSoa?.zone === zone ? zoneSoa : undefined,
    nsSet: ns?.kind === 'answer' && ns.message.aa ? nsHosts(ns.message, zone) : undefined,
    dropped,
  }
}

/**
 * What a server leaves unanswered that has answered second tries alone; undefined where it was only slow or far away.
 *
 * @param answersPlain whether it has answered a datagram without EDNS already.
 */
async function droppedBy(
  server: DnsAddress,
  zone: string,
  answersPlain: boolean,
  { deadline, effects }: ResolutionContext,
): Promise<Observation['dropped']> {
  const until = Math.min(deadline, effects.clock.monotonic() + PROBE_MS)
  const probe = (edns: 'none' | 'plain') =>
    answersUdp(server, { name: zone, type: 'SOA' }, { edns, deadline: until }, effects)
  const [withEdns, plain] = await Promise.all([probe('plain'), answersPlain || probe('none')])
  if (withEdns) return undefined
  return plain ? 'edns' : 'udp'
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
  dropped: undefined,
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
  if (reply.kind !== 'answer') return { ...base, outcome: failureOutcome(reply.kind), ms: failureMs(reply) }
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
  if (reply.kind !== 'answer') return { ...base, outcome: failureOutcome(reply.kind), ms: failureMs(reply) }
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

function failureMs({ kind, ms }: Reply): number | null {
  return kind === 'no-route' || kind === 'not-asked' ? null : ms
}

function failureOutcome(kind: Exclude<Reply['kind'], 'answer'>): Outcome {
  if (kind === 'no-route' || kind === 'not-asked') return 'not_checked'
  return kind === 'silent' ? 'timeout' : 'unreachable'
}

/** An answer of which TCP would have brought the rest says nothing, unless the record is in the part that came. */
function cutShort(observation: Observation, { tc }: Message): Observation {
  if (!tc || observation.tcpFailure === undefined) return observation
  if (observation.outcome === 'match')
    return observation.tcpFailure === 'over-limit' ? { ...observation, tcpFailure: undefined } : observation
  const wasLarge = observation.outcome === 'mismatch' || observation.outcome === 'absent'
  if (!wasLarge) return observation
  if (observation.tcpFailure === 'over-limit')
    return { ...observation, outcome: 'not_checked', tcpFailure: undefined }
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
