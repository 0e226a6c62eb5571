import type { DnsAddress } from '../../context.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import { unique } from '../resolution/host-addresses.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import type { DnsEffects } from '../wire/effects.ts'
import { linkedAbort } from '../wire/linked-abort.ts'
import { throughAliases } from './aliased-servers.ts'
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
import { findStaleGlue } from './stale-glue.ts'
import { findUnansweredSignatures } from './unanswered-signatures.ts'

/** After this, resolvers are asked even while some server is still silent. */
const PATIENCE_MS = 2500
/** Silence of one server ends here, so that a dead one among several costs five seconds and no more … */
const SERVER_MS = 4700
/** … of the whole check, as long as every server is given this much. */
const DEAD_SERVER_END_MS = 5000
const SERVER_LEAST_MS = 3500

/** What the observations are about: the record, and whom to ask about it. */
export interface ObservedRecord {
  /** The name in its ASCII form. */
  readonly name: string
  /** The whole TXT value. */
  readonly expected: string
  readonly resolvers: readonly DnsAddress[]
  /** When the check began, on `clock.monotonic()`. */
  readonly start: number
}

/**
 * Asks everybody who has to be asked, each kind of question as soon as its condition holds.
 *
 * @param context for the name servers, with its share of the questions.
 * @param effects for what is asked beside them.
 */
export async function gatherObservations(
  located: Located,
  { name, expected, resolvers, start }: ObservedRecord,
  context: ResolutionContext,
  effects: DnsEffects,
): Promise<Observations> {
  const { clock } = context.effects
  const rest: ResolutionContext = { ...context, effects }
  const { zone } = located.delegation
  const spent = clock.monotonic() - start
  const serverMs = Math.max(SERVER_LEAST_MS, Math.min(SERVER_MS, DEAD_SERVER_END_MS - spent))
  const survey = surveyNameServers(located, { name, expected, serverMs }, context)
  survey.done.catch(() => undefined)
  const signers = observeDelegationSigners(located, rest)
  signers.catch(() => undefined)
  const askResolvers = () => {
    // A server that drops questions is why a resolver is slow; waiting longer for it tells nothing new.
    const isExplained = survey.seen().some((server) => server.dropped !== undefined)
    const patienceMs = isExplained ? undefined : context.deadline - clock.monotonic()
    const question = { name, zone, expected, patienceMs }
    return Promise.all(resolvers.map((resolver) => observeResolver(resolver, question, rest)))
  }

  const patience = linkedAbort(context.effects.signal)
  let early: Promise<ResolverObservation[]> | undefined
  try {
    const late = await Promise.race([
      survey.done.then(() => false),
      clock.sleep(PATIENCE_MS, patience.signal).then(() => true),
    ])
    if (late && isVisible(survey.seen())) {
      early = askResolvers()
      early.catch(() => undefined)
    }
    await survey.done
  } finally {
    patience.end()
  }

  const seen = await throughAliases(survey.seen(), located, name, expected, context)
  const servers = seen.servers.toSorted(byHost)
  const { matching, without, silent } = groupByOutcome(servers)
  const [withRecord] = matching
  const [withoutRecord] = without
  const probeOtherNames = async () => {
    if (withRecord !== undefined)
      return name === zone ? undefined : await probeWildcard(withRecord, name, zone, rest)
    return withoutRecord === undefined
      ? undefined
      : await probeMisplacedRecords(withoutRecord, name, zone, expected, rest)
  }
  const probes = probeOtherNames()
  probes.catch(() => undefined)
  const checkSignatures = async () => {
    const answering = [...matching, ...without].flatMap(({ server }) => server ?? [])
    const [best, ...others] = unique(answering)
    const known = best === undefined ? undefined : await signers
    return known === undefined || best === undefined
      ? undefined
      : await observeDnssec(zone, known, [best, ...others], rest)
  }
  const dnssec = checkSignatures()
  dnssec.catch(() => undefined)
  // A cut answer proves that there are TXT records at the name: no cache can learn that there are none.
  const unreadable =
    matching.length === 0 && without.length === 0 && silent.some((s) => s.tcpFailure !== undefined)
  const asking = isVisible(servers) || unreadable ? (early ?? askResolvers()) : Promise.resolve([])
  const suspects = findUnansweredSignatures(matching, zone, asking, rest)
  suspects.catch(() => undefined)
  const glue = findStaleGlue(located, matching, without, rest)
  glue.catch(() => undefined)
  const seenByResolvers = await asking
  const unanswered = await suspects
  return {
    name,
    expected,
    zone,
    servers: servers.map((server) => (unanswered.includes(server) ? { ...server, dropped: 'do' } : server)),
    parent: located.parent,
    recursionAbove: located.recursionAbove ?? false,
    childHosts: survey.childHosts(),
    staleGlue: without.length > 0 ? await glue : [],
    alias: seen.alias,
    resolvers: seenByResolvers,
    probes: await probes,
    dnssec: await dnssec,
  }
}

/** At least one authoritative server has the record, and none says otherwise. */
function isVisible(servers: readonly Observation[]): boolean {
  const { matching, without } = groupByOutcome(servers)
  return matching.length > 0 && without.length === 0
}
