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

/** The record that is looked for. */
export interface WantedRecord {
  /** The name of the record, as a person writes it. */
  readonly name: string
  /** The whole TXT value; null to see which values are there. */
  readonly expected: string | null
  /** Whether a person gave that value, and may have cut it. */
  readonly isGiven?: boolean
}

/** What is looked for, whom to ask, and until when. */
export interface CheckRequest extends WantedRecord {
  /** Where the search for the zone starts: resolvers, or authoritative servers of private DNS. */
  readonly resolvers: readonly Resolver[] | 'system'
  /** 53, except for private DNS. */
  readonly authoritativePort: number
  /** Whether to ask well-known public resolvers as well. */
  readonly publicResolvers?: boolean | undefined
  /** Whether caches have had as much time as they named in earlier checks. */
  readonly isOverdue?: boolean
  /** Of the command; the check itself takes 10 seconds at most. */
  readonly deadline?: Deadline
  /** What the checks of a run of many share. */
  readonly cache?: SharedCache | undefined
}

const DEADLINE_MS = 10_000
/** Left for the program's start and end on a busy machine. */
const MARGIN_MS = 600
/** For finding the zone; the rest is for its servers. */
const LOCATE_MS = 6000
/** Of the rest: should they be silent, it is resolvers' turn. */
const SERVERS_SHARE = 0.75
/** Datagrams and connections of one check; most checks need fewer than forty. */
const MAX_QUERIES = 120

/**
 * Finds out whether a TXT record is visible, and if not, why; without an expected value, which TXT records there are. Asks the
 * authoritative servers; asks recursive resolvers about the name only once those have the record, or if none of them can be
 * reached. Whatever DNS does is in the report.
 *
 * @throws CliError exit 2 if the name is none; the reason of the signal in the effects
 */
export async function checkDns(request: CheckRequest, effects: DnsEffects): Promise<CheckReport> {
  return diagnose(await observe(request, effects))
}

/** Asks everybody, and says what they answered. @param causes whether to look also at what may be wrong: resolvers, other names, DNSSEC */
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
    // A resolver that is asked too early caches the absence. If nobody else can tell, there is nothing to lose.
    const isTime = causes && (isVisible || needsResolvers(seen))
    // Where port 53 leads to this network's own zone, only resolvers over HTTPS see the public one.
    const isOwnZone = interception === 'inside'
    const toTrust = resolvers.flatMap((one) => (!isOwnZone || one instanceof URL ? one : (one.https ?? [])))
    const [seenBy, otherNames, dnssec] = await Promise.all([
      Promise.all(
        (isTime ? toTrust : []).map((one) => askResolver(one, isVisible ? found?.zone : undefined, search)),
      ),
      server && found && withRecord.length === 0 ? findOtherNames(server, found.zone, search) : null,
      server && found ? observeDnssec(found, server, search) : null,
    ])
    // An alias that only resolvers show is an old one, or is beside the TXT records.
    const isHidden = server && !servers.some((one) => one.alias) && seenBy.some((one) => one.alias)
    const cname = isHidden ? await query(server, { name, type: 'CNAME' }, search) : undefined
    const target = cname && readTxt(cname, name).alias
    const beside = target ? { alias: { targets: [target], isKnown: true, isBeside: true as const } } : {}
    return { ...seen, ...beside, resolvers: seenBy, otherNames, dnssec, limitReached: limited.isReached() }
  } finally {
    // What was still being asked isn't needed any more.
    controller.abort()
  }
}

const NOTHING = { servers: [], alias: null, resolvers: [], otherNames: null, dnssec: null } as const
