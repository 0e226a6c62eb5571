import { usageError } from '../errors.ts'
import { createDeadline, type Deadline, stepTimeout } from '../timeout.ts'
import { observeDnssec } from './dnssec.ts'
import { findZone, type Search } from './locate.ts'
import { groupByOutcome, type Observations, separateIntercepted } from './observations.ts'
import { findOtherNames } from './other-names.ts'
import type { CheckReport } from './report.ts'
import { askResolver } from './resolvers.ts'
import { diagnose, needsResolvers } from './rules.ts'
import { askNameServers } from './servers.ts'
import { createSharedCache, type SharedCache } from './shared-cache.ts'
import { DNS_PORT, isPrivate, PUBLIC_RESOLVERS, type Resolver } from './wire/address.ts'
import { childController, type DnsEffects, limitQueries, query } from './wire/ask.ts'
import { checkName } from './wire/name.ts'
import { readTxt } from './wire/txt-answer.ts'

/** The TXT record that a check expects at a name. */
export interface WantedRecord {
  /** Domain name of the record, as a user types it: IDNs and a trailing dot are accepted. */
  readonly name: string
  /** Expected TXT value, whole; null to report the values in DNS instead. */
  readonly expected: string | null
  /** Whether a user typed the expected value, and might have truncated it while copying. Default: false. */
  readonly isGiven?: boolean
}

/** Options of one DNS check. */
export interface CheckRequest extends WantedRecord {
  /**
   * Resolvers that start the search for the zone; authoritative servers are accepted too, for private DNS. `'system'`: those of the
   * system.
   */
  readonly resolvers: readonly Resolver[] | 'system'
  /** Port of authoritative servers: 53, except for private DNS. */
  readonly authoritativePort: number
  /** Whether to query the well-known public resolvers as well. Default: false. */
  readonly publicResolvers?: boolean | undefined
  /**
   * Whether every cache TTL named by earlier checks of this wait has passed, so that a stale resolver no longer counts as a cache.
   * Default: false.
   */
  readonly isOverdue?: boolean
  /** Deadline of the command; the check takes at most 10 seconds even if more is left. */
  readonly deadline?: Deadline
  /** Cache shared with the other checks of a run over many domains. Default: a new cache. */
  readonly cache?: SharedCache | undefined
}

/** Maximum milliseconds of one check, with the start and end of the program. */
const DEADLINE_MS = 10_000
/** Milliseconds reserved for the program's start and end on a busy machine, so that the whole command ends within 10 seconds. */
const MARGIN_MS = 600
/** Maximum milliseconds to find the zone, so that time is left to query the zone's servers. */
const LOCATE_MS = 6000
/** Share of the remaining time for authoritative servers, so that resolvers can still be queried if those servers are silent. */
const SERVERS_SHARE = 0.75
/** Maximum number of datagrams and connections of one check; most checks need fewer than 40. */
const MAX_QUERIES = 120

/**
 * Checks whether a TXT record is visible, and if not, finds the cause; without an expected value, reports the TXT values in DNS.
 * Queries the authoritative servers first. Recursive resolvers are queried for the name only if all of those servers have the
 * record, or none can be reached: an earlier query could plant a negative answer in a cache (RFC 2308). DNS failures are findings
 * of the report, not errors.
 *
 * @throws CliError `usage`, exit 2, if the name isn't a domain name; the abort reason of `effects.signal`
 */
export async function checkDns(request: CheckRequest, effects: DnsEffects): Promise<CheckReport> {
  return diagnose(await observe(request, effects))
}

/**
 * Queries the servers of a check and returns their answers without judging them.
 *
 * @param causes whether to query for causes as well: resolvers, other names, DNSSEC
 * @throws CliError `usage`, exit 2, if the name isn't a domain name; the abort reason of `effects.signal`
 */
export async function observe(
  request: CheckRequest,
  effects: DnsEffects,
  causes = true,
): Promise<Observations> {
  const { expected, isGiven = false, isOverdue = false, authoritativePort: port } = request
  const { clock, dns } = effects
  const checked = checkName(request.name)
  if (!checked.ok) throw usageError(checked.problem, checked.fix)
  const name = checked.ascii
  const givenMs = request.deadline ? stepTimeout(request.deadline) : DEADLINE_MS
  const deadline = createDeadline(Math.min(DEADLINE_MS, givenMs) - MARGIN_MS, clock)
  const configured = request.resolvers === 'system' ? await dns.systemResolvers() : request.resolvers
  const resolvers: readonly Resolver[] = [...configured, ...(request.publicResolvers ? PUBLIC_RESOLVERS : [])]
  const limited = limitQueries(dns, MAX_QUERIES)
  const controller = childController(effects.signal)
  const cache = request.cache ?? createSharedCache(clock)
  const own = { ...effects, signal: controller.signal, dns: limited }
  const search: Search = { name, expected, resolvers, port, deadline, cache, effects: own }
  try {
    const location = await findZone(name, { ...search, deadline: deadline.limitedTo(LOCATE_MS) })
    const found = location.kind === 'found' ? location : undefined
    const toAsk = deadline.limitedTo(deadline.remainingMs() * SERVERS_SHARE)
    const survey = found ? await askNameServers(found, { ...search, deadline: toAsk }) : NOTHING
    const { servers } = survey
    const isInside =
      port === DNS_PORT && servers.length > 0 && servers.every(({ address }) => isPrivate(address))
    const seen = {
      ...{ ...NOTHING, ...survey, name, expected, isGiven, isOverdue, location, isInside },
      limitReached: limited.isReached(),
    }
    const { genuine, interception } = separateIntercepted(seen)
    const { withRecord, withoutRecord } = groupByOutcome(genuine)
    const [best] = [...withRecord, ...withoutRecord]
    const server = causes && best?.address ? { address: best.address, port } : undefined
    const isVisible = withRecord.length > 0 && withoutRecord.length === 0
    // A resolver that is queried too early caches the record's absence, so wait for the name servers unless only resolvers can
    // tell.
    const isTime = causes && (isVisible || needsResolvers(seen))
    // Inside a network with its own zone of this name on port 53, only resolvers over HTTPS see the public zone.
    const isOwnZone = interception === 'inside'
    const toTrust = resolvers.flatMap((one) => (!isOwnZone || one instanceof URL ? one : (one.https ?? [])))
    const [seenBy, otherNames, dnssec] = await Promise.all([
      Promise.all(
        (isTime ? toTrust : []).map((one) => askResolver(one, isVisible ? found?.zone : undefined, search)),
      ),
      server && found && withRecord.length === 0 ? findOtherNames(server, found.zone, search) : null,
      server && found ? observeDnssec(found, server, search) : null,
    ])
    // A CNAME that only resolvers show is either cached from an earlier state, or stands beside TXT records at the name servers.
    const isHidden = server && !servers.some((one) => one.alias) && seenBy.some((one) => one.alias)
    const cname = isHidden ? await query(server, { name, type: 'CNAME' }, search) : undefined
    const target = cname && readTxt(cname, name).alias
    const beside = target ? { alias: { targets: [target], isKnown: true, isBeside: true as const } } : {}
    return { ...seen, ...beside, resolvers: seenBy, otherNames, dnssec, limitReached: limited.isReached() }
  } finally {
    // Cancel queries that are still in flight, such as those to slow servers.
    controller.abort()
  }
}

/** Observations of a check that queried no server. */
const NOTHING = { servers: [], alias: null, resolvers: [], otherNames: null, dnssec: null } as const
