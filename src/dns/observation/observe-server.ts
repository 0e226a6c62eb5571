import type { DnsAddress } from '../../context.ts'
import type { AliasEnd } from '../resolution/alias.ts'
import { isFromAbove } from '../resolution/delegation-walk.ts'
import { firstDefined } from '../resolution/race.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { answersUdp, ask, RETRY_AFTER_MS, type Reply } from '../wire/exchange.ts'
import { type Message, soaOf } from '../wire/message.ts'
import { MAX_NAME_LENGTH } from '../wire/name.ts'
import { hasText, readTxt, type TxtValue } from '../wire/txt-answer.ts'
import { isDnsData, type Observation, type Outcome } from './observations.ts'

/** What a name server is asked about. */
export interface SurveyQuestion {
  readonly name: string
  readonly zone: string
  /** Whether the zone was found: then a server that answers from a zone above doesn't serve it. */
  readonly zoneFound: boolean
  readonly expected: string | null
  /** The time limit for one server, in milliseconds. */
  readonly serverMs: number
}

/** Longer than any time limit here, so the query isn't repeated. */
const NO_RETRY_MS = 60_000
/** A server that has just answered answers again within this. */
const PROBE_MS = 1000

/**
 * Asks one server for the name's TXT set and the zone's SOA and NS set, all at once. Only a server that has answered the
 * first is asked again for the other two.
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
  const askZone = (type: 'SOA' | 'NS', retryAfterMs: number) =>
    ask(server, { name: zone, type }, { deadline, retryAfterMs }, context.effects)
  const early = { SOA: askZone('SOA', NO_RETRY_MS), NS: askZone('NS', NO_RETRY_MS) }
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
  // A dead server isn't asked again, to save queries.
  const askAgain = async (type: 'SOA' | 'NS'): Promise<Reply | undefined> => {
    if (txt.kind !== 'answer') return await early[type]
    const again = async () => {
      const pause = needsSecondTry ? 0 : Math.min(RETRY_AFTER_MS, deadline - clock.monotonic())
      await clock.sleep(Math.max(0, pause), context.effects.signal)
      return await askZone(type, needsSecondTry ? 0 : NO_RETRY_MS)
    }
    return await firstDefined(
      [() => early[type], again].map((task) => async () => {
        const reply = await task()
        return reply.kind === 'answer' ? reply : undefined
      }),
    )
  }
  const [soa, ns, dropped] = await Promise.all([
    askAgain('SOA'),
    askAgain('NS'),
    needsSecondTry ? findDropped(server, zone, txt.secondTry === 'udp', context) : undefined,
  ])
  const zoneSoa = soa?.kind === 'answer' ? soaOf(soa.message) : undefined
  const hasZone = zoneSoa?.zone === zone
  const observation = classifyAuthoritative(host, server, txt, name, expected)
  const isAnswerFromAbove =
    zoneFound &&
    txt.kind === 'answer' &&
    txt.message.answers.length === 0 &&
    isFromAbove(soaOf(txt.message), zone)
  return {
    ...observation,
    ...(isAnswerFromAbove && isDnsData(observation.outcome) ? { outcome: 'lame' as const } : {}),
    soa: hasZone && soa?.kind === 'answer' && soa.message.aa ? zoneSoa : undefined,
    nsSet: ns?.kind === 'answer' && ns.message.aa ? nsHosts(ns.message, zone) : undefined,
    dropped,
    ednsRejection: rejectionOf(txt) === rejectionOf(soa) ? rejectionOf(txt) : undefined,
    withoutAuthority:
      hasZone &&
      observation.outcome === 'lame' &&
      !observation.authoritative &&
      hasRecord(observation, expected),
  }
}

/**
 * Which queries a server drops that only answered second tries; undefined if it was only slow or far away.
 *
 * @param answersPlain whether it has already answered a datagram without EDNS.
 */
async function findDropped(
  server: DnsAddress,
  zone: string,
  answersPlain: boolean,
  { deadline, effects }: ResolutionContext,
): Promise<Observation['dropped']> {
  const until = Math.min(deadline, effects.clock.monotonic() + PROBE_MS)
  const probe = (edns: 'none' | 'plain') =>
    answersUdp(server, { name: zone, type: 'SOA' }, { edns, deadline: until }, effects)
  const [withEdns, plain] = await Promise.all([probe('plain'), answersPlain || probe('none')])
  if (withEdns !== false) return undefined
  return plain === false ? 'udp' : 'edns'
}

/** A single failure may be an accident. */
const rejectionOf = (reply: Reply | undefined) => (reply?.kind === 'answer' ? reply.ednsRejection : undefined)

const hasRecord = ({ values }: Pick<Observation, 'values'>, expected: string | null) =>
  expected === null ? values.length > 0 : hasText(values, expected)

function nsHosts(message: Message, zone: string): string[] | undefined {
  const hosts = message.answers.flatMap((r) => (r.type === 'NS' && r.name === zone ? [r.target] : []))
  return hosts.length > 0 ? hosts : undefined
}

const EMPTY = {
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

/** A host without an address, or (`timeout`) one whose addresses couldn't be looked up. */
export function withoutAddress(
  host: string,
  outcome: 'unreachable' | 'timeout' | 'not_checked',
): Observation {
  return { ...EMPTY, host, server: undefined, outcome, ms: null }
}

/** What the TXT reply of an authoritative server means. */
function classifyAuthoritative(
  host: string,
  server: DnsAddress,
  reply: Reply,
  name: string,
  expected: string | null,
): Observation {
  const base = { ...EMPTY, host, server }
  if (reply.kind !== 'answer') return { ...base, ...failure(reply) }
  const answer = classifyAnswer(reply.message, name, expected)
  const observation = { ...base, ...answer, ms: reply.ms, tcpFailure: reply.tcpFailure }
  if (!reply.message.aa && isDnsData(answer.outcome)) return { ...observation, outcome: 'lame' }
  return classifyTruncated(observation, reply.message)
}

/** What a recursive resolver's reply means. */
export function classifyResolver(
  server: DnsAddress,
  reply: Reply,
  name: string,
  expected: string | null,
): Observation {
  const base = { ...EMPTY, host: server.address, server }
  if (reply.kind !== 'answer') return { ...base, ...failure(reply) }
  const answer = classifyAnswer(reply.message, name, expected)
  // Without recursion or authority, it helped to find the zone but knows nothing about this name. Nor does a resolver
  // without recursion know where an alias leads that it doesn't follow.
  const knowsNothing =
    !reply.message.ra &&
    ((!reply.message.aa && reply.message.rcode === 'NOERROR') || answer.aliasEnd === 'unknown')
  const observation = {
    ...base,
    ...answer,
    ...(knowsNothing ? { outcome: 'not_checked' as const } : {}),
    ms: reply.ms,
    tcpFailure: reply.tcpFailure,
  }
  return classifyTruncated(observation, reply.message)
}

function failure({
  kind,
  ms,
}: Exclude<Reply, { kind: 'answer' }>): Pick<Observation, 'outcome' | 'ms' | 'unsent'> {
  if (kind === 'no-route' || kind === 'blocked') return { outcome: 'not_checked', ms: null, unsent: kind }
  if (kind === 'not-asked') return { outcome: 'not_checked', ms: null }
  return { outcome: kind === 'silent' ? 'timeout' : 'unreachable', ms }
}

/** An answer that TCP would have completed says nothing, unless the record is in the part that came. */
function classifyTruncated(observation: Observation, { tc }: Message): Observation {
  if (!tc || observation.tcpFailure === undefined) return observation
  if (observation.outcome === 'match')
    return observation.tcpFailure === 'over-limit' ? { ...observation, tcpFailure: undefined } : observation
  const wasLarge = observation.outcome === 'mismatch' || observation.outcome === 'absent'
  if (!wasLarge) return observation
  if (observation.tcpFailure === 'over-limit')
    return { ...observation, outcome: 'not_checked', tcpFailure: undefined }
  return { ...observation, outcome: observation.tcpFailure === 'timeout' ? 'timeout' : 'unreachable' }
}

function classifyAnswer(message: Message, name: string, expected: string | null) {
  const { values, aliases, dname, loop, ttl, aliasTtl, cnameBeside } = readTxt(message, name)
  const negative = values.length === 0 ? soaOf(message) : undefined
  const common = {
    authoritative: message.aa,
    values,
    ttl,
    negativeTtl: negative?.negativeTtl,
    size: message.size,
    truncated: message.tc,
    rcode: message.rcode,
    recursionAvailable: message.ra,
    extendedError: message.extendedError,
    aliases,
    dname,
    aliasTtl,
    cnameBeside,
  }
  const outcome = outcomeOf(message.rcode, values, expected)
  const last = aliases.at(-1)
  if (last === undefined) return { ...common, aliasEnd: undefined, outcome }
  if (loop) return { ...common, aliasEnd: 'loop' as const, outcome: 'absent' as const }
  if (values.length > 0) return { ...common, aliasEnd: 'txt' as const, outcome }
  // The rcode is about the end of the chain, if the server knows it (RFC 6604 section 3).
  const isMissing = message.rcode === 'NXDOMAIN' || last.length > MAX_NAME_LENGTH
  const end: AliasEnd = isMissing ? 'nxdomain' : negative !== undefined ? 'absent' : 'unknown'
  return { ...common, aliasEnd: end, outcome: 'absent' as const }
}

function outcomeOf(rcode: string, values: readonly TxtValue[], expected: string | null): Outcome {
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
