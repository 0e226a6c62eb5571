import type { DnsAddress } from '../context.ts'
import { observeDnssec } from './dnssec.ts'
import { lookElsewhere } from './elsewhere.ts'
import { type Found, locate, type Search } from './locate.ts'
import { groupByOutcome, type Observations, type ServerObservation } from './observations.ts'
import type { CheckReport } from './report.ts'
import { askResolver } from './resolvers.ts'
import { diagnose } from './rules.ts'
import { askNameServers } from './servers.ts'
import { createShare, type Share } from './share.ts'
import { PUBLIC_RESOLVERS } from './wire/address.ts'
import { type DnsEffects, limitQueries } from './wire/ask.ts'
import { checkName } from './wire/name.ts'

export interface CheckRequest {
  /** The name of the record, as a person writes it. */
  readonly name: string
  /** The whole TXT value; null to see which values are there. */
  readonly expected: string | null
  /** Where the search for the zone starts: resolvers, or authoritative servers of private DNS. */
  readonly resolvers: readonly DnsAddress[] | 'system'
  /** 53, except for private DNS. */
  readonly authoritativePort: number
  /** Whether to ask well-known public resolvers as well. */
  readonly publicResolvers: boolean
  /** The time limit of the whole check in milliseconds; 10 seconds by default. */
  readonly deadlineMs?: number
  /** What the checks of a run of many share. */
  readonly share?: Share
}

const DEADLINE_MS = 10_000
/** Left for the program's start and end on a busy machine. */
const MARGIN_MS = 600
/** For finding the zone; the rest is for its servers. */
const LOCATE_MS = 6000
/** Datagrams and connections of one check; most checks need fewer than forty … */
const MAX_QUERIES = 120
/** … of which finding and asking the name servers may use this many. */
const MAX_SEARCH_QUERIES = 96

/**
 * Finds out whether a TXT record is visible, and if not, why; without an expected value, which TXT records there are. Asks the
 * authoritative servers; asks recursive resolvers about the name only once those have the record. Rejects only if the signal
 * in the effects aborts: whatever DNS does is in the report.
 */
export async function checkDns(request: CheckRequest, effects: DnsEffects): Promise<CheckReport> {
  return diagnose(await observe(request, effects))
}

/** Asks everybody, and says what they answered. Rejects only if the signal in the effects aborts. */
export async function observe(request: CheckRequest, effects: DnsEffects): Promise<Observations> {
  const over = new AbortController()
  const signal = AbortSignal.any([effects.signal, over.signal])
  try {
    return await observeWithin(request, { ...effects, signal })
  } finally {
    // What was still being asked isn't needed any more.
    over.abort()
  }
}

async function observeWithin(request: CheckRequest, effects: DnsEffects): Promise<Observations> {
  const { expected, authoritativePort: port } = request
  const { clock, dns } = effects
  const checked = checkName(request.name)
  if (!checked.ok) {
    const { problem, fix } = checked
    return { ...NOTHING, name: request.name, expected, location: { kind: 'invalid_name', problem, fix } }
  }
  const name = checked.ascii
  const start = clock.monotonic()
  const deadline = start + (request.deadlineMs ?? DEADLINE_MS) - MARGIN_MS
  const configured = request.resolvers === 'system' ? await dns.systemResolvers() : request.resolvers
  const resolvers = [...configured, ...(request.publicResolvers ? PUBLIC_RESOLVERS : [])]
  const whole = limitQueries(dns, MAX_QUERIES)
  const part = limitQueries(whole, MAX_SEARCH_QUERIES)
  const share = request.share ?? createShare(clock)
  const search: Search = { resolvers, port, deadline, share, effects: { ...effects, dns: whole } }
  const early: Search = { ...search, effects: { ...effects, dns: part } }

  const found = await locate(name, { ...early, deadline: Math.min(start + LOCATE_MS, deadline) })
  const { path } = found
  const isReached = () => whole.isReached() || part.isReached()
  if (found.kind !== 'found')
    return { ...NOTHING, name, expected, location: found, path, limitReached: isReached() }

  const { zone } = found.delegation
  const survey = await askNameServers(found, name, expected, early)
  const { withRecord, withoutRecord } = groupByOutcome(survey.servers)
  const [best] = [...withRecord, ...withoutRecord]
  const server = best?.address ? { address: best.address, port } : undefined
  // A resolver that is asked too early caches the absence.
  const isVisible = withRecord.length > 0 && withoutRecord.length === 0
  const asked = isVisible ? resolvers : []
  const [seen, elsewhere, dnssec] = await Promise.all([
    Promise.all(asked.map((resolver) => askResolver(resolver, name, zone, expected, search))),
    server && withRecord.length === 0 ? lookElsewhere(server, name, zone, expected, search) : null,
    server ? observeDnssec(found, server, search) : null,
  ])
  const parent = found.parent && { zone: found.parent.zone, hosts: found.parent.hosts }
  return {
    name,
    expected,
    location: { kind: 'found', zone, parent },
    path,
    servers: survey.servers,
    alias: survey.alias,
    resolvers: seen,
    elsewhere,
    dnssec,
    interceptedAt: interceptedAt(found, survey.servers),
    limitReached: isReached() || survey.limitReached,
  }
}

const NOTHING = {
  path: [],
  servers: [],
  alias: null,
  resolvers: [],
  elsewhere: null,
  dnssec: null,
  interceptedAt: null,
  limitReached: false,
} as const

/**
 * The servers of registries, if they answered just as those of the domain did, with REFUSED or as recursive resolvers: then
 * something on this network answers for all of them.
 */
function interceptedAt(
  { registry }: Found,
  servers: readonly ServerObservation[],
): readonly DnsAddress[] | null {
  const answered = servers.filter(({ rcode }) => rcode !== null)
  const isAlike = (kind: Found['registry'][number]['kind'], isSame: (server: ServerObservation) => boolean) =>
    registry.every((answer) => answer.kind === kind) && answered.every(isSame)
  if (registry.length === 0 || answered.length === 0) return null
  const isIntercepted =
    isAlike('refused', ({ outcome }) => outcome === 'refused') ||
    isAlike('recursion', ({ recursion, authoritative }) => recursion && !authoritative)
  return isIntercepted ? registry.map(({ server }) => server) : null
}
