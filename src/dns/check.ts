import { usageError } from '../errors.ts'
import { createDeadline, type Deadline, remainingMsOrMin } from '../timeout.ts'
import { observeDnssec } from './dnssec.ts'
import { type CheckRun, findZone } from './locate.ts'
import { type DnsObservations, detectInterception, groupServers, mayBeLocalZone } from './observations.ts'
import { findTxtAtOtherNames } from './other-names.ts'
import type { CheckReport } from './report.ts'
import { observeResolver } from './resolvers.ts'
import { createCheckReport, onlyResolversCanShowRecord } from './rules.ts'
import { observeNameServers } from './servers.ts'
import { type CheckCache, createCheckCache } from './shared-cache.ts'
import { DNS_PORT, type DnsServer, PUBLIC_RESOLVERS } from './wire/address.ts'
import { createChildController, type DnsEffects, limitTotalQueries, queryDns } from './wire/ask.ts'
import { parseDomainName } from './wire/name.ts'
import { readTxtAnswer } from './wire/txt-answer.ts'

/** Target of a DNS check: the TXT record of a domain name, with its value if one is expected. */
export interface ExpectedTxt {
  /** Domain name of the record; an IDN in Unicode and a trailing dot are accepted. */
  readonly name: string
  /** Expected TXT value; null to list the TXT values at the name instead. */
  readonly expected: string | null
  /** Whether the expected value might be cut off: a user typed it, and it isn't known from a claim. Default: false. */
  readonly mayBeCut?: boolean
}

export interface DnsCheckRequest extends ExpectedTxt {
  /** Recursive resolvers, or authoritative servers of a private DNS; `'system'` for the resolvers of the operating system. */
  readonly resolvers: readonly DnsServer[] | 'system'
  /** Port of authoritative servers: the setting `authoritative_port`, which is 53 except for private DNS and tests. */
  readonly authoritativePort: number
  /** Whether to query the public resolvers of Cloudflare, Google and Quad9 as well. Default: false. */
  readonly publicResolvers?: boolean | undefined
  /**
   * Whether the caches of resolvers should have expired by now, according to the finding `cached` of earlier checks. Then a
   * resolver without the record needs another explanation. Default: false.
   */
  readonly isOverdue?: boolean
  /** Deadline of the command. A check may take 2 seconds even if less time is left, and 10 seconds at most. */
  readonly deadline?: Deadline
  /** Cache of zones and server addresses, shared by the checks of a run over many domains. Default: a new cache. */
  readonly cache?: CheckCache | undefined
}

/** Maximum milliseconds of one check, including the program's start and end. */
const DEADLINE_MS = 10_000
/** Milliseconds of `DEADLINE_MS` that are kept for the program's start and end on a busy machine. */
const MARGIN_MS = 600
/** Maximum milliseconds to find the zone of the name, so that time is left to query the zone's name servers. */
const LOCATE_MS = 6000
/** Share of the time left once the zone is found, for queries to its name servers: if they are silent, resolvers get the rest. */
const SERVERS_SHARE = 0.75
/** Maximum number of queries that one check sends, over UDP, TCP and HTTPS together. Most checks need fewer than 40. */
const MAX_QUERIES = 120

/**
 * Checks whether a TXT record is visible in DNS, and if not, looks for the cause. Without an expected value, reports the TXT values
 * at the name. Failures of DNS are findings of the report, not errors.
 *
 * @throws CliError `usage`, exit 2, if the name isn't a domain name; the abort reason of `effects.signal`
 */
export async function checkDns(request: DnsCheckRequest, effects: DnsEffects): Promise<CheckReport> {
  return createCheckReport(await collectDnsObservations(request, effects))
}

/**
 * Runs the queries of a check, and returns the observations from which `createCheckReport` derives the findings.
 *
 * @param seeksCauses whether to query, besides the name servers, resolvers for the TXT set, other names and DNSSEC. Default: true
 * @throws CliError `usage`, exit 2, if the name isn't a domain name; the abort reason of `effects.signal`
 */
export async function collectDnsObservations(
  request: DnsCheckRequest,
  effects: DnsEffects,
  seeksCauses = true,
): Promise<DnsObservations> {
  const { expected, mayBeCut = false, isOverdue = false, authoritativePort: port } = request
  const { clock, dns } = effects
  const checked = parseDomainName(request.name)
  if (!checked.ok) throw usageError(checked.problem, checked.fix)
  const name = checked.ascii
  const givenMs = request.deadline ? remainingMsOrMin(request.deadline) : DEADLINE_MS
  const deadline = createDeadline(Math.min(DEADLINE_MS, givenMs) - MARGIN_MS, clock)
  const configured = request.resolvers === 'system' ? await dns.systemResolvers() : request.resolvers
  const resolvers: DnsServer[] = [...configured, ...(request.publicResolvers ? PUBLIC_RESOLVERS : [])]
  const limited = limitTotalQueries(dns, MAX_QUERIES)
  const controller = createChildController(effects.signal)
  const cache = request.cache ?? createCheckCache(clock)
  const own = { ...effects, signal: controller.signal, dns: limited }
  const check: CheckRun = { name, expected, resolvers, port, deadline, cache, effects: own }
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
    const { withRecord, withoutRecord } = groupServers(genuine)
    const [best] = [...withRecord, ...withoutRecord]
    const server = seeksCauses && best?.address ? { address: best.address, port } : undefined
    const isVisible = withRecord.length > 0 && withoutRecord.length === 0
    // A resolver queried too early caches the record's absence (RFC 2308). So query resolvers only if all name servers with a
    // usable answer have the record, or if only resolvers can show it.
    const isTime = seeksCauses && (isVisible || onlyResolversCanShowRecord(seen))
    const isOwnZone = interception === 'inside'
    // In a network with its own version of the zone, answers over UDP and TCP may be from that version. So query resolvers only
    // over HTTPS.
    const toTrust = resolvers.flatMap((one) => (!isOwnZone || one instanceof URL ? one : (one.https ?? [])))
    const zone = isVisible ? found?.zone : undefined
    const [seenBy, otherNames, dnssec] = await Promise.all([
      Promise.all((isTime ? toTrust : []).map((resolver) => observeResolver(resolver, zone, check))),
      server && found && withRecord.length === 0 ? findTxtAtOtherNames(server, found.zone, check) : null,
      server && found ? observeDnssec(found, server, check) : null,
    ])
    const isHidden = server && !servers.some((one) => one.alias) && seenBy.some((one) => one.alias)
    // A CNAME that only resolvers show may be outdated, or hidden beside TXT records at the name servers. So query a name server
    // for the CNAME, which it returns if it has one.
    const cname = isHidden ? await queryDns(server, { name, type: 'CNAME' }, check) : undefined
    const target = cname && readTxtAnswer(cname, name).alias
    const beside = target ? { alias: { targets: [target], isKnown: true, hasTxtBeside: true as const } } : {}
    return { ...seen, ...beside, resolvers: seenBy, otherNames, dnssec, limitReached: limited.isReached() }
  } finally {
    // At the end of the check, also after an error, cancel the queries that still wait for a response.
    controller.abort()
  }
}

/** Observations before name servers and resolvers are queried for the record. */
const NOT_OBSERVED = { servers: [], alias: null, resolvers: [], otherNames: null, dnssec: null } as const
