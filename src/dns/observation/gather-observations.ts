import type { DnsAddress } from '../../context.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import { uniqueAddresses } from '../resolution/host-addresses.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import type { DnsEffects } from '../wire/effects.ts'
import { linkedAbort } from '../wire/linked-abort.ts'
import { resolveAliases } from './aliased-servers.ts'
import { findCnamesBeside } from './cname-beside.ts'
import { probeMisplacedRecords, probeWildcard } from './misplaced-records.ts'
import { surveyNameServers } from './name-server-survey.ts'
import {
  byHost,
  groupByOutcome,
  type Observation,
  type Observations,
  type ResolverObservation,
} from './observations.ts'
import { observeDelegationSigners, observeDnssec } from './observe-dnssec.ts'
import { observeResolver } from './observe-resolver.ts'
import { createFilterLookup } from './query-filters.ts'
import { findStaleGlue } from './stale-glue.ts'
import { groupByTxtSet } from './txt-groups.ts'
import { findUnansweredSignatures } from './unanswered-signatures.ts'
import { findUndelegatedZone } from './undelegated-zone.ts'

/** Resolvers are asked after this even if some server is still silent. */
const RESOLVERS_AFTER_MS = 2500
/** The longest wait for one server. */
const MAX_SERVER_MS = 4700
/** The shortest, however late the survey starts. */
const MIN_SERVER_MS = 3500
/** Between those two, the wait for a dead server ends this long after the check began. */
const DEAD_SERVER_END_MS = 5000

/** The record to look for, and the resolvers to ask about it. */
export interface ObservedRecord<Expected extends string | null> {
  /** The name in its ASCII form. */
  readonly name: string
  /** The whole TXT value; null to see which values are there. */
  readonly expected: Expected
  readonly resolvers: readonly DnsAddress[]
  /** When the check began, on `clock.monotonic()`. */
  readonly start: number
}

/**
 * Queries the name servers, the resolvers, other names and DNSSEC records, each as soon as its condition holds. Without an
 * expected value, neither the resolvers nor other names.
 *
 * @param context for the name servers, with their share of the queries.
 * @param effects for all other queries.
 */
export async function gatherObservations<Expected extends string | null>(
  located: Located,
  { name, expected, resolvers, start }: ObservedRecord<Expected>,
  context: ResolutionContext,
  effects: DnsEffects,
): Promise<Observations<Expected>> {
  const { clock } = context.effects
  const otherContext: ResolutionContext = { ...context, effects }
  const { zone } = located.delegation
  const spent = clock.monotonic() - start
  const serverMs = Math.max(MIN_SERVER_MS, Math.min(MAX_SERVER_MS, DEAD_SERVER_END_MS - spent))
  const survey = surveyNameServers(located, { name, expected, serverMs }, context)
  survey.done.catch(() => undefined)
  const signers = observeDelegationSigners(located, otherContext)
  signers.catch(() => undefined)
  const askResolvers = () => {
    if (expected === null) return Promise.resolve([])
    // A server that drops queries explains a slow resolver; waiting longer for it tells nothing new.
    const isExplained = survey.seen().some((server) => server.dropped !== undefined)
    const responsiveMs = isExplained ? undefined : context.deadline - clock.monotonic()
    const question = { name, zone, expected, responsiveMs }
    return Promise.all(resolvers.map((resolver) => observeResolver(resolver, question, otherContext)))
  }

  const timer = linkedAbort(context.effects.signal)
  let early: Promise<ResolverObservation[]> | undefined
  try {
    const late = await Promise.race([
      survey.done.then(() => false),
      clock.sleep(RESOLVERS_AFTER_MS, timer.signal).then(() => true),
    ])
    if (late && isVisible(survey.seen())) {
      early = askResolvers()
      early.catch(() => undefined)
    }
    await survey.done
  } finally {
    timer.end()
  }

  const seen = await resolveAliases(survey.seen(), located, name, expected, context)
  const servers = seen.servers.toSorted(byHost)
  const { withRecord, withoutRecord, lame, silent } = groupByOutcome(servers)
  const registryAnswers = located.registryAnswers ?? []
  const locateFilter = createFilterLookup(zone, servers, registryAnswers, otherContext)
  // Its probes run while the resolvers are asked.
  const locateTcpFilter = async (server: Observation) =>
    server.tcpFailure === undefined ? undefined : await locateFilter({ ...server, dropped: 'tcp' })
  for (const server of servers)
    Promise.all([locateFilter(server), locateTcpFilter(server)]).catch(() => undefined)
  const probeOtherNames = async () => {
    if (expected === null) return undefined
    const [server] = withRecord
    if (server !== undefined)
      return name === zone ? undefined : await probeWildcard(server, name, zone, otherContext)
    const [other] = withoutRecord
    return other && (await probeMisplacedRecords(other, name, zone, expected, otherContext))
  }
  const probes = probeOtherNames()
  probes.catch(() => undefined)
  const checkSignatures = async () => {
    const answering = [...withRecord, ...withoutRecord].flatMap(({ server }) => server ?? [])
    const [best, ...others] = uniqueAddresses(answering)
    const known = best && (await signers)
    const observed =
      known && (await observeDnssec({ name, zone }, known.signers, [best, ...others], otherContext))
    const isOutdated = observed?.state === 'expired' || observed?.state === 'not-yet-valid'
    return isOutdated && known?.state === observed.state
      ? { ...observed, wrongClock: true as const }
      : observed
  }
  const dnssec = checkSignatures()
  dnssec.catch(() => undefined)
  // A truncated answer proves that the name has TXT records, so no cache will store that there are none.
  const unreadable =
    withRecord.length === 0 && withoutRecord.length === 0 && silent.some((s) => s.tcpFailure !== undefined)
  // A server that has the zone without authority may be one that resolvers use anyway.
  const withoutAuthority = withoutRecord.length === 0 && servers.some((server) => server.withoutAuthority)
  const asking =
    isVisible(servers) || unreadable || withoutAuthority ? (early ?? askResolvers()) : Promise.resolve([])
  const signatureDrops = findUnansweredSignatures(withRecord, zone, asking, otherContext)
  signatureDrops
    .then((found) => Promise.all(found.map((server) => locateFilter({ ...server, dropped: 'do' }))))
    .catch(() => undefined)
  const [newest = [], ...older] = groupByTxtSet(servers)
  const [current, outdated] = expected === null ? [newest, older.flat()] : [withRecord, withoutRecord]
  const suspects = [...(current.length > 0 ? outdated : []), ...lame, ...silent]
  const glue = findStaleGlue(located, suspects, [...current, ...outdated][0]?.server, otherContext)
  glue.catch(() => undefined)
  const undelegated = findUndelegatedZone(located, servers, { name, expected }, otherContext)
  undelegated.catch(() => undefined)
  const seenByResolvers = await asking
  const cnames = await findCnamesBeside(withRecord, name, seenByResolvers, otherContext)
  const droppingDo = await signatureDrops
  const finish = async (server: Observation): Promise<Observation> => {
    const dropped = droppingDo.includes(server) ? 'do' : server.dropped
    const [filteredAt, tcpFilteredAt] = await Promise.all([
      locateFilter({ ...server, dropped }),
      locateTcpFilter(server),
    ])
    return {
      ...server,
      dropped,
      filteredAt,
      tcpFilteredAt,
      cnameBeside: cnames.get(server) ?? server.cnameBeside,
    }
  }
  return {
    name,
    expected,
    zone,
    servers: await Promise.all(servers.map(finish)),
    parent: located.parent,
    path: located.path,
    registryUnseen: located.registryUnseen === true,
    recursionAbove: registryAnswers.filter(({ isRecursion }) => isRecursion).map(({ server }) => server),
    childHosts: survey.childHosts(),
    hostAliases: survey.hostAliases,
    unconfirmed: survey.unconfirmed,
    staleGlue: await glue,
    undelegated: await undelegated,
    alias: seen.alias,
    resolvers: seenByResolvers,
    probes: await probes,
    dnssec: await dnssec,
  }
}

/** At least one authoritative server has the record, and none lacks it. */
function isVisible(servers: readonly Observation[]): boolean {
  const { withRecord, withoutRecord } = groupByOutcome(servers)
  return withRecord.length > 0 && withoutRecord.length === 0
}
