import type { DnsAddress } from '../context.ts'
import { throughAliases } from './alias.ts'
import { invalidName, reportOf, withoutZone } from './build-report.ts'
import { locate } from './delegation.ts'
import { ask, type DnsEffects } from './exchange.ts'
import { type Facts, type ResolverObservation, tally } from './facts.ts'
import { judge } from './findings.ts'
import { checkName } from './name.ts'
import { byHost, isDnsData, judgeResolver, type Observation } from './observe.ts'
import { probe, probeWildcard } from './probe.ts'
import type { CheckReport } from './report.ts'
import { createRoute, type Route } from './route.ts'
import { survey } from './survey.ts'
import type { Located } from './walk.ts'
import { below } from './withdraw.ts'

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
/** Finding the zone may take so long that its servers can still be given their five seconds. */
const LOCATE_MS = 4000
/** After this, resolvers are asked even while some server is still silent. */
const PATIENCE_MS = 2500
const RESOLVER_MS = 3000
/** Silence of one server ends here, so that a dead one among several costs five seconds and no more … */
const SERVER_MS = 4700
/** … of the whole check, as long as every server is given this much. */
const DEAD_SERVER_END_MS = 5000
const SERVER_LEAST_MS = 3500

/**
 * Finds out whether a TXT record is visible, and if not, why. Asks the authoritative servers; a recursive resolver is
 * asked about the name itself only once an authoritative server has the record. Never rejects but for the signal of the
 * effects: whatever DNS does is in the report.
 */
export async function checkDns(request: CheckRequest, effects: DnsEffects): Promise<CheckReport> {
  const whole = below(effects.signal)
  try {
    return await check(request, { ...effects, signal: whole.signal })
  } finally {
    whole.end()
  }
}

async function check(request: CheckRequest, effects: DnsEffects): Promise<CheckReport> {
  const start = effects.clock.monotonic()
  const name = checkName(request.name)
  if (!name.ok) return invalidName(request, name.problem, name.fix)
  const deadline = start + (request.deadlineMs ?? DEADLINE_MS) - 150
  const configured = request.resolvers === 'system' ? await effects.dns.systemResolvers() : request.resolvers
  const resolvers = [...configured, ...(request.publicResolvers ? PUBLIC_RESOLVERS : [])]
  const whole = createRoute({
    // More than a handful of resolvers tell nothing more about where the zone is.
    resolvers: resolvers.slice(0, 3),
    authoritativePort: request.authoritativePort,
    deadline,
    effects,
  })
  const route = (until: number): Route => ({ ...whole, deadline: Math.min(until, deadline) })
  const location = await locate(name.ascii, route(start + LOCATE_MS))
  if (location.kind !== 'located') return withoutZone(request, name.ascii, location, resolvers)
  const facts = await gather(location, request, name.ascii, resolvers, start, route(deadline))
  const { verdict, findings } = judge(facts)
  return reportOf(facts, verdict, findings, request.expected)
}

/** Asks everybody who has to be asked, each kind of question as soon as its condition holds. */
async function gather(
  located: Located,
  request: CheckRequest,
  name: string,
  resolvers: readonly DnsAddress[],
  start: number,
  route: Route,
): Promise<Facts> {
  const { clock } = route.effects
  const expectedBytes = Buffer.from(request.expected)
  const spent = clock.monotonic() - start
  const serverMs = Math.max(SERVER_LEAST_MS, Math.min(SERVER_MS, DEAD_SERVER_END_MS - spent))
  const surveyed = survey(located, { name, expected: expectedBytes, serverMs }, route)
  surveyed.done.catch(() => undefined)
  const askResolvers = () =>
    Promise.all(resolvers.map((resolver) => askResolver(resolver, name, expectedBytes, route)))

  const patience = below(route.effects.signal)
  let early: Promise<ResolverObservation[]> | undefined
  try {
    const late = await Promise.race([
      surveyed.done.then(() => false),
      clock.sleep(PATIENCE_MS, patience.signal).then(() => true),
    ])
    if (late && isVisible(surveyed.seen())) {
      early = askResolvers()
      early.catch(() => undefined)
    }
    await surveyed.done
  } finally {
    patience.end()
  }

  const seen = await throughAliases(surveyed.seen(), located, name, expectedBytes, route)
  const servers = seen.servers.toSorted(byHost)
  const { matching, without, silent } = tally(servers)
  const [good] = without
  const [having] = matching
  const lookAround = async () => {
    const zone = located.cut.zone
    if (having !== undefined)
      return name === zone ? undefined : await probeWildcard(having, name, zone, route)
    return good === undefined ? undefined : await probe(good, name, zone, request.expected, route)
  }
  const probes = lookAround()
  probes.catch(() => undefined)
  // A cut answer proves that there are TXT records at the name: no cache can learn that there are none.
  const unreadable =
    matching.length === 0 && without.length === 0 && silent.some((s) => s.tcpFailure !== undefined)
  const wanted = isVisible(servers) || unreadable
  return {
    name,
    expected: request.expected,
    expectedBytes,
    zone: located.cut.zone,
    servers,
    parent: located.parent,
    childHosts: surveyed.childHosts(),
    alias: seen.alias,
    resolvers: wanted ? await (early ?? askResolvers()) : [],
    probes: await probes,
  }
}

/** At least one authoritative server has the record, and none says otherwise. */
function isVisible(servers: readonly Observation[]): boolean {
  const { matching, without } = tally(servers)
  return matching.length > 0 && without.length === 0
}

/** Asks a resolver about the record; where it fails, without validation, and once more to see whether that was all. */
async function askResolver(
  resolver: DnsAddress,
  name: string,
  expected: Uint8Array,
  route: Route,
): Promise<ResolverObservation> {
  const deadline = Math.min(route.deadline, route.effects.clock.monotonic() + RESOLVER_MS)
  const observe = async (checkingDisabled: boolean): Promise<Observation> => {
    const options = { recursionDesired: true, checkingDisabled, deadline }
    const reply = await ask(resolver, { name, type: 'TXT' }, options, route.effects)
    return judgeResolver(resolver, reply, name, expected)
  }
  const first = await observe(false)
  if (first.outcome !== 'servfail') return { ...first, resolver, unchecked: undefined }
  const unchecked = await observe(true)
  // A resolver may also have failed because a server was slow: then it has the answer by now, and no signature is bad.
  const last = isDnsData(unchecked.outcome) ? await observe(false) : first
  return isDnsData(last.outcome)
    ? { ...last, resolver, unchecked: undefined }
    : { ...first, resolver, unchecked }
}
