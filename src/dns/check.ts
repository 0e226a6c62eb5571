import type { DnsAddress } from '../context.ts'
import { invalidName, reportOf, withoutZone } from './diagnosis/build-report.ts'
import type { CheckReport } from './diagnosis/report.ts'
import { diagnose } from './diagnosis/verdict.ts'
import { gatherObservations } from './observation/gather-observations.ts'
import { createResolutionContext } from './resolution/resolution-context.ts'
import { locateZone } from './resolution/zone-search.ts'
import type { DnsEffects } from './wire/effects.ts'
import { linkedAbort } from './wire/linked-abort.ts'
import { checkName } from './wire/name.ts'
import { limitQuestions } from './wire/question-limit.ts'

export interface CheckRequest {
  /** The name that has to have the record, as a person writes it. */
  readonly name: string
  /** The whole TXT value. */
  readonly expected: string
  /** Where to start: resolvers, or authoritative servers of private DNS. */
  readonly resolvers: readonly DnsAddress[] | 'system'
  /** 53, but for private DNS. */
  readonly authoritativePort: number
  /** Whether well-known public resolvers are asked as well. */
  readonly publicResolvers: boolean
  /** The whole check, in milliseconds; 10 seconds where not given. */
  readonly deadlineMs?: number
}

export const PUBLIC_RESOLVERS: readonly DnsAddress[] = ['1.1.1.1', '8.8.8.8', '9.9.9.9'].map((address) => ({
  address,
  port: 53,
}))

const DEADLINE_MS = 10_000
/** For the start of the program and for what a busy machine takes to end. */
const MARGIN_MS = 600
/** Finding the zone may take so long that its servers can still be given their time. */
const LOCATE_MS = 6000
/** Datagrams and connections of one check; a usual one needs fewer than forty … */
const MOST_QUESTIONS = 120
/** … of which so many may go into finding and asking the name servers, so that some are left for the rest. */
const MOST_SEARCH_QUESTIONS = 96

/**
 * Finds out whether a TXT record is visible, and if not, why. Asks the authoritative servers; a recursive resolver is
 * asked about the name itself only once an authoritative server has the record. Never rejects but for the signal of the
 * effects: whatever DNS does is in the report.
 */
export async function checkDns(request: CheckRequest, effects: DnsEffects): Promise<CheckReport> {
  const whole = linkedAbort(effects.signal)
  try {
    const dns = limitQuestions(effects.dns, MOST_QUESTIONS)
    return await check(request, { ...effects, dns, signal: whole.signal })
  } finally {
    whole.end()
  }
}

async function check(request: CheckRequest, effects: DnsEffects): Promise<CheckReport> {
  const start = effects.clock.monotonic()
  const name = checkName(request.name)
  if (!name.ok) return invalidName(request, name.problem, name.fix)
  const deadline = start + (request.deadlineMs ?? DEADLINE_MS) - MARGIN_MS
  const configured = request.resolvers === 'system' ? await effects.dns.systemResolvers() : request.resolvers
  const resolvers = [...configured, ...(request.publicResolvers ? PUBLIC_RESOLVERS : [])]
  const context = createResolutionContext({
    // More than a handful of resolvers tell nothing more about where the zone is.
    resolvers: resolvers.slice(0, 3),
    authoritativePort: request.authoritativePort,
    deadline,
    effects: { ...effects, dns: limitQuestions(effects.dns, MOST_SEARCH_QUESTIONS) },
  })
  const location = await locateZone(name.ascii, {
    ...context,
    deadline: Math.min(start + LOCATE_MS, deadline),
  })
  if (location.kind !== 'located') return withoutZone(request, name.ascii, location, resolvers)
  const record = { name: name.ascii, expected: request.expected, resolvers, start }
  const observations = await gatherObservations(location, record, context, effects)
  const { verdict, findings } = diagnose(observations)
  return reportOf(observations, verdict, findings, request.expected)
}
