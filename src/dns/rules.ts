import { dnsHostOf } from './hosts.ts'
import type { Found as Located } from './locate.ts'
import {
  groupByOutcome,
  isDnsData,
  type MisplacedRecord,
  type Observations,
  oldStateTtl,
  type ResolverObservation,
  type ServerObservation,
} from './observations.ts'
import { type CheckReport, type Finding, findingOf } from './report.ts'
import { type ExplainedValue, explainValues, faultOnItsOwn, isProof } from './value.ts'
import { formatDnsAddress } from './wire/address.ts'
import { relativeName } from './wire/name.ts'
import { listedRegistry, registeredDomainOf } from './wire/registry.ts'
import { decodeValue, decodeValues, distinctValues, hasText } from './wire/txt-answer.ts'
import { type Code, type Facts, type ServerFact, type Severity, type Verdict, WORDS } from './words.ts'

/** What a rule finds: its words are in the table, and so is its severity, unless the finding says otherwise. */
interface Found {
  readonly code: Code
  readonly facts: Facts
  readonly severity?: Severity
}

/** An observation of a name whose zone was found; `parent`: the hosts in the delegation, none if it isn't known. */
type Seen = Observations & { readonly zone: string; readonly parent: readonly string[] }
/** The servers by what they answered. */
type Groups = ReturnType<typeof groupByOutcome>

/** The report on what was observed: findings with errors first, within each severity causes before consequences. */
export function diagnose(observations: Observations): CheckReport {
  const { name, expected, location, servers, resolvers } = observations
  const rank = { error: 0, warning: 1, info: 2 }
  const findings = findAll(observations)
    .map(({ code, facts, severity }) => findingOf(code, facts, severity))
    .toSorted((a, b) => rank[a.severity] - rank[b.severity])
  const verdict = expected === null ? 'unknown' : verdictOf(findings)
  return {
    name,
    expected,
    verdict,
    ready: verdict === 'ready' || verdict === 'ready_with_warning',
    retry_after_seconds: retryAfter(observations, verdict, findings),
    claim: null,
    zone: location.kind === 'found' ? location.zone : null,
    nameservers: servers.map(({ host, address, outcome, authoritative, values, ttl, serial, ms }) => ({
      ...{ host, address, outcome, authoritative },
      ...{ values: decodeValues(values), ttl, serial, ms },
    })),
    resolvers: resolvers.map(({ resolver, outcome, values, ttl, ms }) => ({
      ...{ address: formatDnsAddress(resolver), outcome, values: decodeValues(values), ttl, ms },
    })),
    findings,
    path: location.path,
  }
}

const VERDICTS: readonly Verdict[] = ['fix', 'unknown', 'wait', 'ready_with_warning', 'ready']

/** The worst that a finding makes of it. */
function verdictOf(findings: readonly Finding[]): Verdict {
  return VERDICTS.find((verdict) => findings.some(({ code }) => WORDS[code].verdict === verdict)) ?? 'ready'
}

/** Keeps a script that waits as long as the report says from spinning. */
const MIN_WAIT_SECONDS = 1
/** A longer TTL is most likely a mistake, and many caches ignore it (RFC 2308 section 5, RFC 8767 section 4). */
const MAX_WAIT_SECONDS = 86_400
/** If nothing says how long the old state is kept. */
const USUAL_WAIT_SECONDS = 60

const waitSeconds = (...known: readonly (number | null)[]): number => {
  const seconds = known.filter((one) => one !== null)
  const longest = seconds.length === 0 ? USUAL_WAIT_SECONDS : Math.max(MIN_WAIT_SECONDS, ...seconds)
  return Math.min(MAX_WAIT_SECONDS, longest)
}

/** What a finding says that is left to wait; if something has to be corrected, how long caches then keep the old state. */
function retryAfter(
  { servers, location, expected }: Observations,
  verdict: Verdict,
  findings: readonly Finding[],
): number | null {
  if (expected === null || (verdict !== 'wait' && verdict !== 'fix')) return null
  const left = findings.flatMap(({ evidence: { seconds } }) => (typeof seconds === 'number' ? [seconds] : []))
  if (left.length > 0) return Math.max(...left)
  const ttl =
    location.kind === 'no_domain' ? location.negativeTtl : oldStateTtl(groupByOutcome(servers).withoutRecord)
  return ttl === null ? null : Math.min(MAX_WAIT_SECONDS, ttl)
}

function findAll(observations: Observations): Found[] {
  const { name, location, limitReached } = observations
  switch (location.kind) {
    case 'invalid_name':
      return [{ code: 'invalid_name', facts: { problem: location.problem, advice: location.fix } }]
    case 'no_domain':
      return [{ code: 'domain_not_found', facts: { domain: location.domain, said_by: location.saidBy } }]
    case 'lost':
      if (limitReached) return [{ code: 'limit_reached', facts: { name } }]
      return [{ code: 'resolver_unreachable', facts: { name, replies: location.replies } }]
    case 'found': {
      const { zone, hosts, parent, registry } = location
      const asked = registry.map(({ server }) => formatDnsAddress(server))
      const servers = reached(registry, observations.servers)
      if (servers.length < observations.servers.length && servers.every(({ rcode }) => rcode === null))
        return [{ code: 'dns_intercepted', facts: { name, asked } }]
      const seen = { ...observations, servers, zone, parent: parent === null ? [] : [...hosts.keys()] }
      const groups = groupByOutcome(seen.servers)
      return [
        ...causes(seen, groups),
        dnssecBroken(seen),
        ...serversFailing(seen, groups),
        ...resolversLacking(seen),
      ].filter((found) => found !== undefined)
    }
  }
}

/** The servers without those behind something that answers instead of them. Many networks intercept only IPv4. */
function reached(registry: Located['registry'], servers: readonly ServerObservation[]) {
  const isV6 = (address: string | null) => address?.includes(':') === true
  return [false, true].flatMap((family) => {
    const own = servers.filter(({ address }) => isV6(address) === family)
    const above = registry.filter(({ server }) => isV6(server.address) === family)
    return isIntercepted(above, own) ? [] : own
  })
}

/**
 * Nobody was reached: the servers of registries answered just as those of the domain did, with REFUSED or as recursive
 * resolvers, so something on this network answers for all of them.
 */
function isIntercepted(registry: Located['registry'], servers: readonly ServerObservation[]): boolean {
  const answered = servers.filter(({ rcode }) => rcode !== null)
  const kinds = answered.map(({ outcome, recursion, authoritative }) => {
    if (outcome === 'refused') return 'refused'
    return recursion && !authoritative ? 'recursion' : 'usable'
  })
  const all = new Set([...registry.map(({ kind }) => kind), ...kinds])
  return registry.length > 0 && answered.length > 0 && all.size === 1 && !all.has('usable')
}

/** Why the record is missing, or missing at some servers: at most one error, the most likely cause. */
function causes(seen: Seen, groups: Groups): Found[] {
  const { withRecord, withoutRecord } = groups
  if (withoutRecord.length === 0) return []
  if (seen.expected === null) return registryFound(seen) ?? lookedAt(seen)
  if (withRecord.length > 0) return [partly(seen, groups)]
  const best = explainValues(seen.expected, valuesOf(withoutRecord))
  // Another token doesn't say where the right one was put.
  const isFault = best !== undefined && best.fault !== 'stale_token'
  const elsewhere = isFault ? undefined : (aliasFound(seen) ?? misplacedFound(seen) ?? wildcardFound(seen))
  if (elsewhere !== undefined) return [elsewhere]
  if (best !== undefined) return [valueFound(seen, best)]
  return registryFound(seen) ?? [missing(seen, withoutRecord), ...provider(seen)]
}

const valuesOf = (servers: readonly ServerObservation[]) =>
  distinctValues(servers.flatMap(({ values }) => values))

/** Where the record belongs, as a provider's form asks for it. */
const placeOf = ({ name, zone, expected }: Seen) => ({ name, zone, host: relativeName(name, zone), expected })

function missing(seen: Seen, without: readonly ServerObservation[]): Found {
  return { code: 'missing', facts: { ...placeOf(seen), values: decodeValues(valuesOf(without)) } }
}

/** Many missing records were added at a provider that doesn't host the zone. */
function provider({ zone, servers }: Seen): Found[] {
  const hosts = [...new Set(servers.map(({ host }) => host))]
  const found = dnsHostOf(hosts)
  return found === null ? [] : [{ code: 'wrong_provider', facts: { zone, provider: found, hosts } }]
}

/** A zone in which people register names; a private top-level domain is its owner's to edit. */
const isPublicRegistry = (zone: string): boolean => zone === '.' || listedRegistry(zone) === zone

/** The name is, or is directly in, a zone that only its registry can change. */
function registryFound({ name, zone }: Seen): Found[] | undefined {
  if (isPublicRegistry(name)) return [{ code: 'registry_name', facts: { name, example: `example.${name}` } }]
  if (!isPublicRegistry(zone)) return undefined
  return [{ code: 'domain_not_found', facts: { domain: registeredDomainOf(name), said_by: zone } }]
}

/** A name with a CNAME can't have other records (RFC 1034 section 3.6.2). */
function aliasFound(seen: Seen): Found | undefined {
  const { alias, elsewhere } = seen
  if (!alias?.isKnown || elsewhere?.wildcard) return undefined
  const target = alias.targets.at(-1) ?? seen.name
  return { code: 'cname_at_name', facts: { ...placeOf(seen), target, chain: alias.targets } }
}

function misplacedFound(seen: Seen): Found | undefined {
  const { expected, elsewhere } = seen
  // Whoever took the wrong name may have made another mistake as well. Names above are used for other things.
  const place = elsewhere?.misplaced.find(
    ({ how, values }) =>
      hasText(values, expected) || (how !== 'used' && explainValues(expected ?? '', values) !== undefined),
  )
  return place && misplaced(seen, place)
}

function misplaced(seen: Seen, { name, how }: MisplacedRecord): Found {
  return {
    code: how === 'doubled' ? 'doubled_name' : 'other_name',
    facts: { ...placeOf(seen), found_at: name },
  }
}

function wildcardFound(seen: Seen): Found | undefined {
  const wildcard = seen.elsewhere?.wildcard
  if (!wildcard) return undefined
  return { code: 'wildcard_answer', facts: { ...placeOf(seen), values: decodeValues(wildcard) } }
}

function valueFound(seen: Seen, { fault, seen: values }: ExplainedValue): Found {
  const [first = ''] = values
  return { code: fault, facts: { ...placeOf(seen), seen: values.length === 1 ? first : values } }
}

/** What looks like a mistake although nothing says which value is the right one. */
function lookedAt(seen: Seen): Found[] {
  const values = decodeValues(valuesOf(seen.servers))
  const prefixes = values.map(prefixOf)
  const places = (seen.elsewhere?.misplaced ?? []).filter(
    ({ how, values: there }) =>
      // What the name has from the same service as well is no mistake.
      how !== 'used' &&
      there
        .map(({ bytes }) => decodeValue(bytes))
        .some((one) => isProof(one) && !prefixes.includes(prefixOf(one))),
  )
  const found = [
    ...values.flatMap((value): Found[] => {
      const fault = faultOnItsOwn(value)
      return fault === undefined ? [] : [valueFound(seen, { fault, seen: [value] })]
    }),
    ...places.slice(0, 1).map((place) => misplaced(seen, place)),
  ]
  return found.map((one) => ({ ...one, severity: 'warning' }))
}

const prefixOf = (value: string): string => value.slice(0, value.indexOf('=') + 1)

/** Some servers have the record, others don't: copies of a zone take time, two zones never agree by themselves. */
function partly(seen: Seen, { withRecord, withoutRecord }: Groups): Found {
  const { name, zone, parent } = seen
  if (areApart(seen, withoutRecord, withRecord) || areApart(seen, withRecord, withoutRecord))
    return {
      code: 'parent_child_mismatch',
      facts: {
        ...placeOf(seen),
        servers: withoutRecord.map(serverFact),
        with: withRecord.map(serverFact),
        at_registrar: parent,
        in_zone: [...new Set(seen.servers.flatMap(({ nsSet }) => nsSet ?? []))],
      },
    }
  const newest = new Set(withRecord.map(({ serial }) => serial))
  // A secondary server that isn't notified looks for changes after the refresh time of its SOA record.
  const refresh = withoutRecord.map((server) => (newest.has(server.serial) ? null : server.refresh))
  return {
    code: 'partial_propagation',
    facts: {
      ...{ name, zone, with: withRecord.map(serverFact), without: withoutRecord.map(serverFact) },
      seconds: USUAL_WAIT_SECONDS,
      at_most: waitSeconds(oldStateTtl(withoutRecord), ...refresh),
    },
  }
}

/** Whether all of these are missing in the delegation, or in the zone that the others have: they serve another zone. */
function areApart(
  { parent }: Seen,
  some: readonly ServerObservation[],
  others: readonly ServerObservation[],
): boolean {
  const listed = others.flatMap(({ nsSet }) => nsSet ?? [])
  return [parent, listed].some((hosts) => hosts.length > 0 && some.every(({ host }) => !hosts.includes(host)))
}

const serverFact = ({ host, address, outcome, rcode, serial }: ServerObservation): ServerFact => ({
  ...{ host, address, outcome, rcode, serial },
})

function dnssecBroken({ zone, dnssec, resolvers }: Seen): Found | undefined {
  const state = dnssec?.state ?? 'unknown'
  const facts = (reason: string): Facts => ({ zone, reason, key_tags: dnssec?.keyTags ?? [] })
  if (state === 'ok' || state === 'unsigned') return undefined
  if (state !== 'unknown') return { code: 'dnssec_bogus', facts: facts(state) }
  return resolvers.some(({ failsValidation }) => failsValidation)
    ? { code: 'dnssec_bogus', facts: facts('rejected') }
    : undefined
}

/** Servers that don't answer for the zone, whatever the record. */
function serversFailing(seen: Seen, groups: Groups): Found[] {
  const { name, zone, servers, alias } = seen
  const { withRecord, withoutRecord, lame } = groups
  if (servers.every(({ address, outcome }) => address === null && outcome === 'unreachable'))
    return [{ code: 'no_nameservers', facts: { zone, hosts: [...new Set(servers.map(({ host }) => host))] } }]
  // A server that answered with an alias isn't dead, even if nothing is known about the alias.
  const silent = groups.silent.filter((server) => server.alias === null)
  const some: Found[] = [
    ...(lame.length === 0 ? [] : [servesNot('some_servers_lame', zone, lame)]),
    ...(silent.length === 0 || isOwnIpv6(servers, silent)
      ? []
      : [servesNot('some_servers_silent', zone, silent)]),
  ]
  if (withRecord.length + withoutRecord.length > 0) return some
  const target = alias?.isKnown === false ? alias.targets.at(-1) : undefined
  if (target !== undefined)
    return [{ code: 'nameserver_unreachable', facts: { name: target, alias_of: name } }]
  if (lame.length > 0 && lame.length === servers.length) return [servesNot('lame_nameserver', zone, lame)]
  if (seen.limitReached) return [{ code: 'limit_reached', facts: { name } }]
  const unheard = servers.filter((server) => !lame.includes(server)).map(serverFact)
  const unreachable: Found = { code: 'nameserver_unreachable', facts: { name, zone, servers: unheard } }
  return [unreachable, ...some.filter(({ code }) => code === 'some_servers_lame')]
}

const servesNot = (code: Code, zone: string, servers: readonly ServerObservation[]): Found => ({
  ...{ code, facts: { zone, servers: servers.map(serverFact) } },
})

/** If no IPv6 address answers, but the same hosts answer over IPv4, the cause is probably this machine. */
function isOwnIpv6(servers: readonly ServerObservation[], silent: readonly ServerObservation[]): boolean {
  const isV6 = ({ address }: ServerObservation) => address?.includes(':') === true
  const heard = servers.filter((server) => !silent.includes(server) && server.outcome !== 'not_checked')
  return (
    silent.every((server) => isV6(server) && heard.some(({ host }) => host === server.host)) &&
    !heard.some(isV6)
  )
}

/** Resolvers that lack a record which the authoritative servers have: what is cached goes, the rest is no matter. */
function resolversLacking({ expected, dnssec, resolvers }: Seen): Found[] {
  const isSound = dnssec?.state === 'ok' || dnssec?.state === 'unsigned'
  const lacking = resolvers.filter(
    ({ outcome, failsValidation }) =>
      // That the zone is broken is a finding already.
      outcome !== 'match' && outcome !== 'not_checked' && (isSound || !failsValidation),
  )
  const isCache = (resolver: ResolverObservation) =>
    resolver.failsValidation || (isDnsData(resolver.outcome) && cachedSeconds(resolver) !== null)
  const caches = lacking.filter(isCache)
  const found = (code: Code, some: readonly ResolverObservation[], more: Facts = {}): Found[] => {
    const addresses = some.map(({ resolver }) => formatDnsAddress(resolver))
    const facts = { resolvers: addresses, outcomes: some.map(({ outcome }) => outcome), ...more }
    return expected === null || some.length === 0 ? [] : [{ code, facts }]
  }
  return [
    ...found('cached', caches, { seconds: waitSeconds(...caches.map(cachedSeconds)) }),
    ...found(
      'resolver_differs',
      lacking.filter((resolver) => !isCache(resolver)),
    ),
  ]
}

/** How long the resolver keeps what it has; null if it isn't a cache that answers (RFC 2308 section 5: no SOA, not cached). */
function cachedSeconds(resolver: ResolverObservation): number | null {
  if (resolver.outcome === 'servfail') return resolver.keysTtl
  return resolver.authoritative ? null : oldStateTtl([resolver])
}
