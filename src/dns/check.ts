import type { DnsAddress } from '../context.ts'
import { formatDnsAddress } from './address.ts'
import { createRoute, type Located, type Location, locate, type Route, soaOf } from './delegation.ts'
import { ask, type DnsEffects } from './exchange.ts'
import { type AliasPath, type Facts, oldStateTtl, type ResolverObservation, tally } from './facts.ts'
import { judge } from './findings.ts'
import { checkName, isWithin } from './name.ts'
import { hasValue, judgeResolver, type Observation, readTxt, survey } from './observe.ts'
import { probe, probeWildcard } from './probe.ts'
import type { CheckReport, Finding, ResolverReport, Verdict } from './report.ts'
import { decodeValue } from './value.ts'
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
const MAX_ALIASES = 8
const LEAST_WAIT_SECONDS = 1

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
  return report(facts, verdict, findings, request.expected)
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
  const servers = seen.servers
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

async function askResolver(
  resolver: DnsAddress,
  name: string,
  expected: Uint8Array,
  route: Route,
): Promise<ResolverObservation> {
  const deadline = Math.min(route.deadline, route.effects.clock.monotonic() + RESOLVER_MS)
  const question = { name, type: 'TXT' } as const
  const options = { recursionDesired: true, deadline }
  const reply = await ask(resolver, question, options, route.effects)
  const observation = judgeResolver(resolver, reply, name, expected)
  const unchecked =
    observation.outcome === 'servfail'
      ? judgeResolver(
          resolver,
          await ask(resolver, question, { ...options, checkingDisabled: true }, route.effects),
          name,
          expected,
        )
      : undefined
  return { ...observation, resolver, unchecked }
}

/** Follows aliases that leave what a server could tell by itself, and judges those servers by where they lead. */
async function throughAliases(
  servers: readonly Observation[],
  located: Located,
  name: string,
  expected: Uint8Array,
  route: Route,
): Promise<{ servers: Observation[]; alias: AliasPath | undefined }> {
  const paths = new Map<string, Promise<AliasPath>>()
  let alias: AliasPath | undefined
  const resolved = await Promise.all(
    servers.map(async (server) => {
      const last = server.aliases.at(-1)
      if (last === undefined || server.outcome === 'lame') return server
      const known: AliasPath = {
        targets: server.aliases,
        end: server.aliasEnd ?? 'unknown',
        values: server.values,
        ttl: server.ttl,
        negativeTtl: server.negativeTtl,
      }
      // A server speaks for its own zone only: what it says of targets elsewhere is not authoritative.
      const isOwn = server.aliases.every((target) => isWithin(target, located.cut.zone))
      const final = known.end === 'loop' || (isOwn && known.end !== 'unknown')
      const key = server.aliases.join(' ')
      const path = final
        ? known
        : await (paths.get(key) ?? remember(paths, key, followAlias([name, ...server.aliases], route)))
      alias ??= path
      return judgedByAlias(server, path, expected)
    }),
  )
  return { servers: resolved, alias }
}

function remember<T>(map: Map<string, Promise<T>>, key: string, value: Promise<T>): Promise<T> {
  map.set(key, value)
  return value
}

function judgedByAlias(server: Observation, path: AliasPath, expected: Uint8Array): Observation {
  const outcome =
    path.end === 'txt'
      ? hasValue(path.values, expected)
        ? ('match' as const)
        : ('mismatch' as const)
      : path.end === 'unknown'
        ? ('timeout' as const)
        : ('absent' as const)
  return { ...server, outcome, values: path.values, aliases: path.targets, aliasEnd: path.end }
}

/**
 * Looks up the end of a chain at the authoritative servers of its zones. The target may not exist yet either, so no
 * resolver is asked about it.
 */
async function followAlias(visited: readonly string[], route: Route): Promise<AliasPath> {
  const targets = visited.slice(1)
  const target = targets.at(-1) ?? ''
  const nothing = { targets, values: [], ttl: null, negativeTtl: undefined }
  if (targets.length > MAX_ALIASES) return { ...nothing, end: 'loop' }
  if (!checkName(target).ok) return { ...nothing, end: 'nxdomain' }
  const until = Math.min(route.deadline, route.effects.clock.monotonic() + LOCATE_MS)
  const location = await locate(target, { ...route, deadline: until })
  if (location.kind === 'lost') return { ...nothing, end: 'unknown' }
  if (location.kind === 'no-domain')
    return { ...nothing, end: 'nxdomain', negativeTtl: location.soa?.negativeTtl }
  const known = [...location.cut.hosts.values()].flat()
  const looked =
    known.length > 0 ? [] : await Promise.all([...location.cut.hosts.keys()].slice(0, 3).map(route.lookUp))
  const servers = [...known, ...looked.flatMap((host) => host.addresses)]
  for (const server of servers.slice(0, 4)) {
    const reply = await ask(server, { name: target, type: 'TXT' }, { deadline: until }, route.effects)
    if (reply.kind !== 'answer' || !reply.message.aa) continue
    if (reply.message.rcode !== 'NOERROR' && reply.message.rcode !== 'NXDOMAIN') continue
    const { aliases, loop, values, ttl } = readTxt(reply.message, target)
    const chain = [...targets, ...aliases]
    const path = { targets: chain, values, ttl, negativeTtl: soaOf(reply.message)?.negativeTtl }
    if (values.length > 0) return { ...path, end: 'txt' }
    const last = aliases.at(-1)
    if (loop || (last !== undefined && visited.includes(last))) return { ...path, end: 'loop' }
    if (last !== undefined) return await followAlias([...visited, ...aliases], route)
    return { ...path, end: reply.message.rcode === 'NXDOMAIN' ? 'nxdomain' : 'absent' }
  }
  return { ...nothing, end: 'unknown' }
}

function report(facts: Facts, verdict: Verdict, findings: Finding[], expected: string): CheckReport {
  const texts = (observation: Observation) => observation.values.map((value) => decodeValue(value.bytes))
  return {
    name: facts.name,
    expected,
    verdict,
    ready: verdict === 'ready' || verdict === 'ready_with_warning',
    retry_after_seconds: retryAfter(facts, verdict, findings),
    zone: facts.zone,
    nameservers: [...facts.servers].sort(byHost).map((server) => ({
      host: server.host,
      address: server.server?.address ?? null,
      outcome: server.outcome,
      authoritative: server.authoritative,
      values: texts(server),
      ttl: server.ttl,
      serial: server.soa?.serial ?? null,
      ms: server.ms,
    })),
    resolvers: facts.resolvers.map(
      (resolver): ResolverReport => ({
        address: formatDnsAddress(resolver.resolver),
        outcome: resolver.outcome,
        values: texts(resolver),
        ttl: resolver.ttl,
        ms: resolver.ms,
      }),
    ),
    findings,
  }
}

function byHost(a: Observation, b: Observation): number {
  const key = (o: Observation) =>
    `${o.host} ${o.server?.address.includes(':') ? 1 : 0} ${o.server?.address ?? ''}`
  return key(a) < key(b) ? -1 : 1
}

/** What caches may still hold: at resolvers by what they say is left, else by what the servers without it gave out. */
function retryAfter(facts: Facts, verdict: Verdict, findings: readonly Finding[]): number | null {
  if (verdict === 'ready' || verdict === 'ready_with_warning' || verdict === 'unknown') return null
  const left = findings.flatMap((finding) => {
    const seconds = finding.evidence['seconds_left']
    return typeof seconds === 'number' ? [seconds] : []
  })
  if (left.length > 0) return Math.max(LEAST_WAIT_SECONDS, ...left)
  const { without } = tally(facts.servers)
  const seconds = oldStateTtl(without)
  // A script that waits for so long must not spin.
  return verdict === 'wait' ? Math.max(seconds ?? 0, LEAST_WAIT_SECONDS) : seconds
}

/** A report that ends before any name server was asked. */
function shape(request: CheckRequest, name: string, verdict: Verdict, finding: Finding): CheckReport {
  return {
    name,
    expected: request.expected,
    verdict,
    ready: false,
    retry_after_seconds: null,
    zone: null,
    nameservers: [],
    resolvers: [],
    findings: [finding],
  }
}

function invalidName(request: CheckRequest, problem: string, fix: string): CheckReport {
  return shape(request, request.name, 'fix', {
    code: 'invalid_name',
    severity: 'error',
    message: problem,
    fix,
    evidence: { input: request.name },
  })
}

function withoutZone(
  request: CheckRequest,
  name: string,
  location: Exclude<Location, Located>,
  resolvers: readonly DnsAddress[],
): CheckReport {
  if (location.kind === 'no-domain')
    return {
      ...shape(request, name, 'fix', {
        code: 'domain_not_found',
        severity: 'error',
        message: `The domain ${location.domain} does not exist: ${location.saidBy === 'resolver' ? 'the resolver' : `the registry (${location.saidBy})`} answers NXDOMAIN`,
        fix: `Check the spelling of ${location.domain}. If it is right, the domain is not registered, has expired, or has no name servers set at the registrar`,
        evidence: { domain: location.domain, said_by: location.saidBy },
      }),
      retry_after_seconds: location.soa?.negativeTtl ?? null,
    }
  const replies = location.resolverReplies.map(({ resolver, question, reply }) => ({
    resolver: formatDnsAddress(resolver),
    question,
    answer: reply.kind === 'answer' ? reply.message.rcode : reply.kind,
  }))
  const addresses = resolvers.map(formatDnsAddress)
  return shape(request, name, 'unknown', {
    code: 'resolver_broken',
    severity: 'error',
    message:
      addresses.length === 0
        ? 'No DNS resolver is configured on this machine, so the name servers could not be found'
        : `The name servers of ${name} could not be found: ${addresses.join(', ')} ${replies.some((reply) => reply.answer !== 'silent' && reply.answer !== 'unreachable') ? 'gave no usable answer' : 'did not answer'}. That says nothing about the record`,
    fix: 'Check the network of this machine, or name a resolver that works: --resolver 9.9.9.9',
    evidence: { resolvers: addresses, replies },
  })
}
