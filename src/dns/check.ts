import { usageError } from '../errors.ts'
import { createDeadline, type Deadline, stepTimeoutMs } from '../timeout.ts'
import { observeDnssec } from './dnssec.ts'
import { type DnsCheck, findZone } from './locate.ts'
import { type DnsObservations, detectInterception, groupByOutcome, mayBeLocalZone } from './observations.ts'
import { findTxtAtOtherNames } from './other-names.ts'
import type { CheckReport } from './report.ts'
import { observeResolver } from './resolvers.ts'
import { createCheckReport, needsResolvers } from './rules.ts'
import { observeNameServers } from './servers.ts'
import { type CheckCache, createCheckCache } from './shared-cache.ts'
import { DNS_PORT, type DnsServer, PUBLIC_RESOLVERS } from './wire/address.ts'
import { createChildController, type DnsEffects, limitQueries, queryDns } from './wire/ask.ts'
import { parseDomainName } from './wire/name.ts'
import { readTxtAnswer } from './wire/txt-answer.ts'

/** A domain name, and the TXT value that it should have. */
export interface ExpectedTxt {
  /** Domain name of the record, as a user types it: IDNs and a trailing dot are accepted. */
  readonly name: string
  /** Expected TXT value; null to list the TXT values instead. */
  readonly expected: string | null
  /** Whether the expected value might be cut off: a user typed it, and it isn't known from a claim. Default: false. */
  readonly mayBeCut?: boolean
}

export interface DnsCheckRequest extends ExpectedTxt {
  /**
   * Recursive resolvers, or authoritative servers of a private DNS. `'system'`: the resolvers of the operating system.
   */
  readonly resolvers: readonly DnsServer[] | 'system'
  /** Port of authoritative servers: 53, or the port that the user set for private DNS. */
  readonly authoritativePort: number
  /** Whether to query the well-known public resolvers as well. Default: false. */
  readonly publicResolvers?: boolean | undefined
  /**
   * Whether the longest wait that earlier checks in a row reported for the finding `cached` has passed, so that caching doesn't
   * explain a resolver without the record anymore. Default: false.
   */
  readonly isOverdue?: boolean
  /**
   * Deadline of the command. A check takes at most 10 seconds (with the program's start and end) even if more time is left, and
   * may take 2 seconds even if less time is left.
   */
  readonly deadline?: Deadline
  /** Cache shared with the other checks of a run over many domains. Default: a new cache. */
  readonly cache?: CheckCache | undefined
}

/** Maximum milliseconds of one check, including the program's start and end. */
const DEADLINE_MS = 10_000
/** Milliseconds reserved for the program's start and end on a busy machine, so that the command ends within 10 seconds. */
const MARGIN_MS = 600
/** Maximum milliseconds to find the zone, so that time is left to query its name servers. */
const LOCATE_MS = 6000
/** Share of the remaining time for name servers, so that resolvers can still be queried if name servers are silent. */
const SERVERS_SHARE = 0.75
/** Maximum number of queries of one check over UDP, TCP and HTTPS, retries included. Most checks need fewer than 40. */
const MAX_QUERIES = 120

/**
 * Checks whether a TXT record is visible, and if not, finds the cause. Without an expected value, reports the TXT values at the
 * name.
 *
 * Queries the authoritative servers first. Recursive resolvers are queried for the record only if all of those servers that
 * answer have it, or only resolvers can show it (`needsResolvers`): an earlier query could leave a negative answer in their
 * caches (RFC 2308). DNS failures are findings of the report, not errors.
 *
 * @throws CliError `usage`, exit 2, if the name isn't a domain name; the abort reason of `effects.signal`
 */
export async function checkDns(request: DnsCheckRequest, effects: DnsEffects): Promise<CheckReport> {
  return createCheckReport(await collectObservations(request, effects))
}

/**
 * Queries the servers of a check, and returns their responses, from which `createCheckReport` derives the findings.
 *
 * @param causes whether to look for the causes of a missing record as well: at resolvers, at other names, in DNSSEC. Default:
 *   true
 * @throws CliError `usage`, exit 2, if the name isn't a domain name; the abort reason of `effects.signal`
 */
export async function collectObservations(
  request: DnsCheckRequest,
  effects: DnsEffects,
  causes = true,
): Promise<DnsObservations> {
  const { expected, mayBeCut = false, isOverdue = false, authoritativePort: port } = request
  const { clock, dns } = effects
  const checked = parseDomainName(request.name)
  if (!checked.ok) throw usageError(checked.problem, checked.fix)
  const name = checked.ascii
  const givenMs = request.deadline ? stepTimeoutMs(request.deadline) : DEADLINE_MS
  const deadline = createDeadline(Math.min(DEADLINE_MS, givenMs) - MARGIN_MS, clock)
  const configured = request.resolvers === 'system' ? await dns.systemResolvers() : request.resolvers
  const resolvers: DnsServer[] = [...configured, ...(request.publicResolvers ? PUBLIC_RESOLVERS : [])]
  const limited = limitQueries(dns, MAX_QUERIES)
  const controller = createChildController(effects.signal)
  const cache = request.cache ?? createCheckCache(clock)
  const own = { ...effects, signal: controller.signal, dns: limited }
  const check: DnsCheck = { name, expected, resolvers, port, deadline, cache, effects: own }
  try {
    const location = await findZone(name, { ...check, deadline: deadline.limitedTo(LOCATE_MS) })
    const found = location.kind === 'found' ? location : undefined
    const toAsk = deadline.limitedTo(deadline.remainingMs() * SERVERS_SHARE)
    const survey = found ? await observeNameServers(found, { ...check, deadline: toAsk }) : NOT_OBSERVED
    const { servers } = survey
    const mayBeLocal = port === DNS_PORT && found !== undefined && mayBeLocalZone(found, servers)
    const seen = {
      ...{ ...NOT_OBSERVED, ...survey, name, expected, mayBeCut, isOverdue, location, mayBeLocal },
      limitReached: limited.isReached(),
    }
    const { genuine, interception } = detectInterception(seen)
    const { withRecord, withoutRecord } = groupByOutcome(genuine)
    const [best] = [...withRecord, ...withoutRecord]
    const server = causes && best?.address ? { address: best.address, port } : undefined
    const isVisible = withRecord.length > 0 && withoutRecord.length === 0
    // A resolver queried too early caches the record's absence (RFC 2308). So query resolvers only if all name servers that
    // answer have the record, or only resolvers can show it.
    const isTime = causes && (isVisible || needsResolvers(seen))
    const isOwnZone = interception === 'inside'
    // In a network with its own zone of this name, responses without HTTPS may be from that zone. So query resolvers only over
    // HTTPS.
    const toTrust = resolvers.flatMap((one) => (!isOwnZone || one instanceof URL ? one : (one.https ?? [])))
    const zone = isVisible ? found?.zone : undefined
    const [seenBy, otherNames, dnssec] = await Promise.all([
      Promise.all((isTime ? toTrust : []).map((resolver) => observeResolver(resolver, zone, check))),
      server && found && withRecord.length === 0 ? findTxtAtOtherNames(server, found.zone, check) : null,
      server && found ? observeDnssec(found, server, check) : null,
    ])
    const isHidden = server && !servers.some((one) => one.alias) && seenBy.some((one) => one.alias)
    // A CNAME that only resolvers show is either outdated, or hidden beside TXT records at the name servers. So query a name
    // server for the CNAME, which it returns in the second case only.
    const cname = isHidden ? await queryDns(server, { name, type: 'CNAME' }, check) : undefined
    const target = cname && readTxtAnswer(cname, name).alias
    const beside = target ? { alias: { targets: [target], isKnown: true, hasTxtBeside: true as const } } : {}
    return { ...seen, ...beside, resolvers: seenBy, otherNames, dnssec, limitReached: limited.isReached() }
  } finally {
    // Cancel queries that are still waiting, such as those to slow servers.
    controller.abort()
  }
}

/** Observations of a check that hasn't queried name servers or resolvers for the record. */
const NOT_OBSERVED = { servers: [], alias: null, resolvers: [], otherNames: null, dnssec: null } as const
