import type { DnsAddress } from '../context.ts'
import { buildReport, invalidNameReport, zoneNotFoundReport } from './diagnosis/build-report.ts'
import type { CheckReport } from './diagnosis/report.ts'
import { diagnose } from './diagnosis/verdict.ts'
import { gatherObservations } from './observation/gather-observations.ts'
import { createResolutionContext } from './resolution/create-resolution-context.ts'
import { locateZone } from './resolution/zone-search.ts'
import { PUBLIC_RESOLVERS } from './wire/address.ts'
import type { DnsEffects } from './wire/effects.ts'
import { linkedAbort } from './wire/linked-abort.ts'
import { checkName } from './wire/name.ts'
import { limitQueries } from './wire/query-limit.ts'

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
}

const DEADLINE_MS = 10_000
/** Left for the program's start and end on a busy machine. */
const MARGIN_MS = 600
/** The time limit for finding the zone; the rest is for its servers. */
const LOCATE_MS = 6000
/** Datagrams and connections of one check; most checks need fewer than forty … */
const MAX_QUERIES = 120
/** … of which finding and asking the name servers may use this many. */
const MAX_SEARCH_QUERIES = 96

/**
 * Finds out whether a TXT record is visible, and if not, why; without an expected value, which TXT records there are. Asks the authoritative servers; asks recursive resolvers
 * about the name itself only once an authoritative server has the record. Rejects only if the signal in the effects
 * aborts: whatever DNS does is in the report.
 */
export async function checkDns(request: CheckRequest, effects: DnsEffects): Promise<CheckReport> {
  const whole = linkedAbort(effects.signal)
  try {
    const dns = limitQueries(effects.dns, MAX_QUERIES)
    const run = () => check(request, { ...effects, dns, signal: whole.signal })
    return await (effects.dns.inTurn?.(run) ?? run())
  } finally {
    whole.end()
  }
}

async function check(request: CheckRequest, effects: DnsEffects): Promise<CheckReport> {
  const start = effects.clock.monotonic()
  const name = checkName(request.name)
  if (!name.ok) return invalidNameReport(request, name.problem, name.fix)
  const deadline = start + (request.deadlineMs ?? DEADLINE_MS) - MARGIN_MS
  const configured = request.resolvers === 'system' ? await effects.dns.systemResolvers() : request.resolvers
  const resolvers = [...configured, ...(request.publicResolvers ? PUBLIC_RESOLVERS : [])]
  const context = createResolutionContext({
    // More resolvers wouldn't know more about where the zone is.
    resolvers: resolvers.slice(0, 3),
    authoritativePort: request.authoritativePort,
    deadline,
    effects: { ...effects, dns: limitQueries(effects.dns, MAX_SEARCH_QUERIES) },
  })
  const location = await locateZone(name.ascii, {
    ...context,
    deadline: Math.min(start + LOCATE_MS, deadline),
  })
  if (location.kind !== 'located') return zoneNotFoundReport(request, name.ascii, location, resolvers)
  const record = { name: name.ascii, expected: request.expected, resolvers, start }
  const observations = await gatherObservations(location, record, context, effects)
  const { verdict, findings } = diagnose(observations)
  return buildReport(observations, verdict, findings)
}
