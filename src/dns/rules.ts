import { dnsHostOf, useOf } from './hosts.ts'
import {
  type Answer,
  groupByOutcome,
  isDnsData,
  type MisplacedRecord,
  type Observations,
  oldStateTtl,
  type ResolverObservation,
  type ServerObservation,
  separateIntercepted,
} from './observations.ts'
import type { CheckReport, Finding } from './report.ts'
import { type ExplainedValue, explainValues, faultOnItsOwn, isProof } from './value.ts'
import { formatDnsAddress, isV6 } from './wire/address.ts'
import { relativeName } from './wire/name.ts'
import { isRegistry, listedRegistry, registeredDomainOf } from './wire/registry.ts'
import { decodeValues, distinctValues, hasText } from './wire/txt-answer.ts'
import {
  type Code,
  type Facts,
  plainText,
  rankOf,
  type ServerFact,
  severityOf,
  textOf,
  type Verdict,
  verdictOf,
  WORDS,
} from './words.ts'

/**
 * An observation of a name whose zone was found, with the servers by what they answered; `parent`: the hosts in the delegation,
 * none if it isn't known; `holder`: the zone with the delegation, null if the registrar sets it.
 */
type Seen = Observations &
  ReturnType<typeof groupByOutcome> & {
    readonly zone: string
    readonly parent: readonly string[]
    readonly holder: string | null
  }

/** The report on what was observed: first the findings that give its verdict, and of these causes before consequences. */
export function diagnose(observations: Observations): CheckReport {
  const { name, expected, location, servers, resolvers } = observations
  const found = findAll(observations).toSorted((a, b) => rankOf(a.code) - rankOf(b.code))
  const reason = found[0] === undefined ? 'ready' : verdictOf(found[0].code)
  const verdict = expected === null ? 'unknown' : reason
  return {
    name,
    expected,
    verdict,
    ready: verdict === 'ready' || verdict === 'ready_with_warning',
    retry_after_seconds: retryAfter(observations, verdict, found),
    claim: null,
    zone: location.kind === 'found' ? location.zone : null,
    nameservers: servers.map(({ host, address, outcome, authoritative, values, ttl, soa, ms }) => ({
      ...{ host, address, outcome, authoritative },
      ...{ values: decodeValues(values), ttl, serial: soa?.serial ?? null, ms },
    })),
    resolvers: resolvers.map(({ resolver, outcome, values, ttl, ms }) => ({
      ...{ address: formatDnsAddress(resolver), outcome, values: decodeValues(values), ttl, ms },
    })),
    findings: found,
    path: location.path,
  }
}

/** Keeps a script that waits as long as the report says from spinning. */
const MIN_WAIT_SECONDS = 1
/** A longer TTL is most likely a mistake, and many caches ignore it (RFC 2308 section 5, RFC 8767 section 4). */
const MAX_WAIT_SECONDS = 86_400
/** If nothing says how long the old state is kept. */
const USUAL_WAIT_SECONDS = 60

const secondsToWait = (...known: readonly (number | null)[]): number =>
  Math.min(MAX_WAIT_SECONDS, Math.max(MIN_WAIT_SECONDS, ...known.map((one) => one ?? USUAL_WAIT_SECONDS)))

/** How long the findings wait; if something has to be corrected, how long caches then keep the old state. */
function retryAfter(
  { servers, location, expected }: Observations,
  verdict: Verdict,
  found: readonly Finding[],
): number | null {
  if (expected === null) return null
  const left = found.flatMap(({ evidence: { seconds } }) => (typeof seconds === 'number' ? seconds : []))
  if (left.length > 0) return Math.max(...left)
  if (verdict !== 'fix') return null
  const ttl =
    location.kind === 'no_domain' ? location.negativeTtl : oldStateTtl(groupByOutcome(servers).withoutRecord)
  return ttl === null ? null : Math.min(MAX_WAIT_SECONDS, ttl)
}

/** What stands for no answer that counts, from whichever name server. */
const UNSEEN: readonly Code[] = ['nameserver_unreachable', 'resolver_unreachable', 'dns_intercepted']

/** Whether only resolvers can still tell what is at the name: an alias, though, comes from a name server. */
export function isUnseen(observations: Observations): boolean {
  const [first] = fromServers({ ...observations, resolvers: [] })
  return first !== undefined && UNSEEN.includes(first.code) && !observations.alias
}

function findAll(observations: Observations): Finding[] {
  if (!isUnseen(observations)) return fromServers(observations)
  const found = fromServers({ ...observations, resolvers: [] })
  return found.flatMap((one) => (UNSEEN.includes(one.code) ? fromResolvers(observations, one) : [one]))
}

/**
 * What resolvers show where no name server's answer counts. A value is there, whoever shows it; that there is none says nothing,
 * because that may be a cache's memory.
 */
function fromResolvers(observations: Observations, unseen: Finding): Finding[] {
  const { name, expected, location } = observations
  const answers = observations.resolvers.filter(({ outcome }) => isDnsData(outcome))
  const having = answers.filter(({ outcome }) => outcome === 'match')
  if (having.length > 0) return [findingOf('resolver_only', { name, ...resolverFacts(having) })]
  if (answers.length === 0) return [unseen]
  const ttl = oldStateTtl(answers)
  const facts = { seconds: ttl === null ? null : secondsToWait(ttl), ...resolverFacts(answers) }
  const values = valuesOf(answers)
  const best = expected === null ? undefined : explainValues(expected, values, observations.isGiven)
  if (best === undefined)
    return [findingOf(unseen.code, { ...unseen.evidence, values: decodeValues(values), ...facts })]
  const zone = location.kind === 'found' ? location.zone : null
  return [valueFound({ ...observations, zone }, best, facts), unseen]
}

/** What the name servers show, or why they show nothing. */
function fromServers(observations: Observations): Finding[] {
  const { name, location, limitReached } = observations
  if (location.kind === 'no_domain')
    return [findingOf('domain_not_found', { domain: location.domain, said_by: location.saidBy })]
  if (location.kind === 'lost' && limitReached) return [findingOf('limit_reached', { name })]
  if (location.kind === 'lost')
    return [findingOf('resolver_unreachable', { name, replies: location.replies })]
  const { zone, hosts, parent } = location
  const { reached: servers, interception: reason } = separateIntercepted(observations)
  if (reason !== null) return [findingOf('dns_intercepted', { name, reason })]
  const above = location.path.at(-2)?.zone ?? registeredDomainOf(zone)
  const holder = above === zone || isRegistry(above) ? null : above
  const place = { zone, holder, parent: parent === null ? [] : [...hosts.keys()] }
  const seen = { ...observations, ...place, servers, ...groupByOutcome(servers) }
  return [...causes(seen), ...dnssecBroken(seen), ...serversFailing(seen), ...resolversLacking(seen)]
}

/** Why the record is missing, or missing at some servers: at most one error, the most likely cause. */
function causes(seen: Seen): Finding[] {
  const { withRecord, withoutRecord } = seen
  if (seen.expected !== null && seen.alias?.isBeside) return aliasFound(seen) ?? []
  if (withoutRecord.length === 0) return []
  if (seen.expected === null) return registryFound(seen) ?? lookedAt(seen)
  if (withRecord.length > 0) return [partly(seen)]
  const best = explainValues(seen.expected, valuesOf(withoutRecord), seen.isGiven)
  // Another token doesn't say where the right one was put.
  const isFault = best !== undefined && best.fault !== 'stale_token'
  const elsewhere = isFault ? undefined : (aliasFound(seen) ?? misplacedFound(seen) ?? wildcardFound(seen))
  if (elsewhere !== undefined) return elsewhere
  if (best !== undefined) return [valueFound(seen, best)]
  const values = decodeValues(valuesOf(withoutRecord))
  const owner = values.map((value) => /^heritage=([\w.-]+)/.exec(value)?.[1]).find(Boolean) ?? null
  return registryFound(seen) ?? [findingOf('missing', { ...placeOf(seen), values, owner })]
}

const valuesOf = (answers: readonly Answer[]) => distinctValues(answers.flatMap(({ values }) => values))

/** An observation with the zone of the name, null if that isn't known. */
type Placed = Observations & { readonly zone: string | null }

/** Where the record belongs, as a provider's form asks for it. Many were added at a provider that doesn't host the zone. */
function placeOf({ name, zone, expected, servers }: Placed) {
  const hosts = servers.map(({ host }) => host)
  const { use, server } = useOf(hosts)
  const host = zone === null ? name : relativeName(name, zone)
  const place = { name, zone, provider: dnsHostOf(hosts), host, expected, use, at: server }
  return { ...place, in_charge: zone === null ? null : [...new Set(hosts)] }
}

/**
 * The name isn't registered: a registry's zone holds it. Registries, and a few others with names like theirs, have records too; a
 * private top-level domain is its owner's to edit.
 */
function registryFound({ name, zone }: Seen): Finding[] | undefined {
  if (name === zone || (zone !== '.' && listedRegistry(zone) !== zone)) return undefined
  return [findingOf('domain_not_found', { domain: registeredDomainOf(name), said_by: zone })]
}

/** A name with a CNAME can't have other records (RFC 1034 section 3.6.2). */
function aliasFound(seen: Seen): Finding[] | undefined {
  const { alias, elsewhere } = seen
  if (!alias?.isKnown || elsewhere?.wildcard) return undefined
  const target = alias.targets.at(-1) ?? seen.name
  const reason = isValueTarget(target) ? 'value_as_target' : alias.isBeside ? 'beside' : 'other_target'
  return [findingOf('cname_at_name', { ...placeOf(seen), target, reason, chain: alias.targets })]
}

/** No host has an equals sign in its name: the value was entered as the target, in whatever case, perhaps with the zone added. */
const isValueTarget = (target: string): boolean => target.includes('=')

function misplacedFound(seen: Seen): Finding[] | undefined {
  const { expected, elsewhere } = seen
  const places = elsewhere?.misplaced ?? []
  // Whoever took the wrong name may have made another mistake as well. Names above are used for other things.
  const isFaulty = ({ values }: MisplacedRecord) => explainValues(expected ?? '', values, seen.isGiven)
  const place =
    places.find(({ values }) => hasText(values, expected)) ??
    places.find((one) => one.how !== 'used' && isFaulty(one) !== undefined)
  return place && misplaced(seen, place)
}

/** The record at a wrong name, with the value there; and what is wrong with that, so that nobody moves a wrong value. */
function misplaced(seen: Seen, { name, how, values }: MisplacedRecord): Finding[] {
  const isRight = hasText(values, seen.expected)
  const fault = isRight ? undefined : explainValues(seen.expected ?? '', values, seen.isGiven)
  const there = isRight ? [seen.expected] : (fault?.seen ?? decodeValues(values))
  const code = how === 'doubled' ? 'doubled_name' : 'other_name'
  const value = fault === undefined || fault.fault === 'given_value_cut' ? null : seen.expected
  return [
    findingOf(code, { ...placeOf(seen), found_at: name, values: there, value }),
    ...(fault === undefined ? [] : [valueFound(seen, fault)]),
  ]
}

function wildcardFound(seen: Seen): Finding[] | undefined {
  const wildcard = seen.elsewhere?.wildcard
  if (!wildcard) return undefined
  const values = wildcard.length === 0 ? null : decodeValues(wildcard)
  return [findingOf('wildcard_answer', { ...placeOf(seen), values })]
}

function valueFound(seen: Placed, { fault, seen: values }: ExplainedValue, more: Facts = {}): Finding {
  const [first = ''] = values
  return findingOf(fault, { ...placeOf(seen), seen: values.length === 1 ? first : values, ...more })
}

/** What looks like a mistake although nothing says which value is the right one. */
function lookedAt(seen: Seen): Finding[] {
  const values = decodeValues(valuesOf(seen.servers))
  const prefixes = values.map(prefixOf)
  const places = (seen.elsewhere?.misplaced ?? []).filter(
    ({ how, values: there }) =>
      // What the name has from the same service as well is no mistake.
      how !== 'used' && decodeValues(there).some((one) => isProof(one) && !prefixes.includes(prefixOf(one))),
  )
  const found = [
    ...values.flatMap((value): Finding[] => {
      const fault = faultOnItsOwn(value)
      return fault === undefined ? [] : [valueFound(seen, { fault, seen: [value] })]
    }),
    ...places.slice(0, 1).flatMap((place) => misplaced(seen, place)),
    ...(isValueTarget(seen.alias?.targets.at(-1) ?? '') ? (aliasFound(seen) ?? []) : []),
  ]
  return found.map((one) => ({ ...one, severity: 'warning' }))
}

const prefixOf = (value: string): string => value.slice(0, value.indexOf('=') + 1)

/**
 * Some servers have the record, others don't: copies of a zone take time, two zones never agree by themselves, and neither does a
 * copy that has a damaged value at the same serial.
 */
function partly(seen: Seen): Finding {
  const { name, zone, parent, holder, withRecord, withoutRecord } = seen
  if (areApart(seen, withoutRecord, withRecord) || areApart(seen, withRecord, withoutRecord)) {
    const isDelegated = ({ host }: ServerObservation) => parent.length === 0 || parent.includes(host)
    const reason = withoutRecord.some(isDelegated) ? 'delegated' : 'not_delegated'
    const inZone = [...new Set(seen.servers.flatMap(({ nsSet }) => nsSet ?? []))]
    const both = { servers: withoutRecord.map(serverFact), with: withRecord.map(serverFact) }
    const place = { ...placeOf(seen), holder, at_registrar: parent, in_zone: inZone }
    return findingOf('parent_child_mismatch', { ...place, reason, ...both })
  }
  const serials = withRecord.map(({ soa }) => soa?.serial)
  const damaged = withoutRecord.filter(({ soa }) => soa !== null && serials.includes(soa.serial))
  const best = explainValues(seen.expected ?? '', valuesOf(damaged))
  if (best !== undefined && best.fault !== 'stale_token')
    return valueFound(seen, best, { copies: damaged.map(serverFact) })
  const facts = { name, zone, with: withRecord.map(serverFact), without: withoutRecord.map(serverFact) }
  return findingOf('partial_propagation', { ...facts, seconds: USUAL_WAIT_SECONDS })
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

const serverFact = ({ host, address, outcome, soa }: ServerObservation): ServerFact => ({
  ...{ host, address, outcome, serial: soa?.serial ?? null },
})

function dnssecBroken(seen: Seen): Finding[] {
  const { zone, holder, dnssec, alias, resolvers } = seen
  const rejecting = resolvers.filter((one) => one.failsValidation && keptSeconds(one, seen) === null)
  const facts = { zone, holder, key_tags: dnssec?.keyTags ?? [] }
  if (!isSound(seen)) return [findingOf('dnssec_bogus', { ...facts, reason: dnssec?.state ?? null })]
  if (rejecting.length === 0) return []
  const says = rejecting.flatMap(({ explanation }) => explanation ?? [])[0] ?? null
  const reason = alias === null && dnssec?.state === 'unsigned' ? 'unproven' : 'rejected'
  const of = { zone: alias?.targets.at(-1) ?? zone, reason, resolver_says: says }
  return [findingOf('dnssec_bogus', { ...facts, ...of, ...resolverFacts(rejecting) })]
}

/** Whether nothing is known to be wrong with the zone's signatures. */
const isSound = ({ dnssec }: Seen): boolean => ['ok', 'unsigned', undefined].includes(dnssec?.state)

/** Servers that don't answer for the zone, whatever the record. */
function serversFailing(seen: Seen): Finding[] {
  const { name, zone, parent, holder, servers, alias, withRecord, withoutRecord, lame } = seen
  const nowhere = servers.filter(({ address, outcome }) => address === null && outcome === 'unreachable')
  if (nowhere.length === servers.length)
    return [findingOf('no_nameservers', { zone, holder, hosts: nowhere.map(({ host }) => host) })]
  // A server that answered with an alias isn't dead, even if nothing is known about the alias; nor is a host that answers over IPv4
  // and not over IPv6, which may be this machine's.
  const heard = servers.filter(({ isOdd }) => isOdd !== null)
  const silent = seen.silent.filter(
    (server) =>
      server.alias === null &&
      !nowhere.includes(server) &&
      !(isV6(server) && heard.some((one) => one.host === server.host && !isV6(one))),
  )
  const found = (code: Code, some: typeof servers, reason: string | null = null): Finding[] => {
    const provider = dnsHostOf(some.map(({ host }) => host))
    // Those that only the zone itself names are set there.
    const isAbove = parent.length === 0 || some.some(({ host }) => parent.includes(host))
    const place = { name, zone, holder: isAbove ? holder : zone }
    const closed = reason === 'too_large' ? 'TCP port 53' : null
    const facts = { ...place, reason, provider, closed, servers: some.map(serverFact) }
    return some.length === 0 ? [] : [findingOf(code, facts)]
  }
  const isLame = found('some_servers_lame', lame)
  // These answered over UDP, but not with the whole set, and over TCP not at all.
  const tooLarge = silent.filter(({ isOdd }) => isOdd !== null)
  const dead = silent.filter(({ isOdd }) => isOdd === null)
  if (withRecord.length + withoutRecord.length > 0)
    return [
      ...isLame,
      ...found('some_servers_silent', tooLarge, 'too_large'),
      ...found('some_servers_silent', dead, 'dead'),
      ...found('some_servers_silent', nowhere, 'no_address'),
    ]
  const target = alias?.isKnown === false ? alias.targets.at(-1) : undefined
  if (target !== undefined)
    return [findingOf('nameserver_unreachable', { name: target, alias_of: name, reason: 'alias' })]
  if (lame.length === servers.length) return found('lame_nameserver', lame)
  if (seen.limitReached) return [findingOf('limit_reached', { name })]
  if (tooLarge.length > 0) return [...found('nameserver_unreachable', tooLarge, 'too_large'), ...isLame]
  const unheard = servers.filter((server) => !lame.includes(server))
  const reason = unheard.every(({ outcome }) => outcome === 'not_checked') ? 'not_asked' : 'silent'
  return [...found('nameserver_unreachable', unheard, reason), ...isLame]
}

const resolverFacts = (some: readonly ResolverObservation[]): Facts => ({
  resolvers: some.map(({ resolver }) => formatDnsAddress(resolver)),
  outcomes: some.map(({ outcome }) => outcome),
})

/** Resolvers that lack a record which the authoritative servers have: what is cached goes, the rest is no matter. */
function resolversLacking(seen: Seen): Finding[] {
  if (seen.expected === null || seen.alias?.isBeside) return []
  const kept = (one: ResolverObservation) => keptSeconds(one, seen)
  // Silence says nothing, and that the zone is broken is a finding already.
  const lacking = seen.resolvers.filter(
    (one) => !['match', 'timeout', 'unreachable', 'not_checked'].includes(one.outcome),
  )
  const caches = lacking.filter((one) => kept(one) !== null && (isSound(seen) || !one.failsValidation))
  const others = lacking.filter((one) => kept(one) === null && !one.failsValidation)
  const seconds = secondsToWait(...caches.map(kept))
  return [
    ...(caches.length === 0 ? [] : [findingOf('cached', { ...resolverFacts(caches), seconds })]),
    ...(others.length === 0 ? [] : [findingOf('resolver_differs', resolverFacts(others))]),
  ]
}

/**
 * For how many seconds a resolver keeps what is no longer so: the record's absence or its old value, an alias, name servers, or
 * keys; null if it has nothing like that (RFC 2308 section 5: no SOA, not cached), or isn't a cache.
 */
function keptSeconds(resolver: ResolverObservation, { servers, dnssec, isOverdue }: Seen): number | null {
  const { cached, alias, ttl, authoritative, failsValidation } = resolver
  if (isOverdue || authoritative) return null
  const current = failsValidation ? (dnssec?.keys ?? null) : servers.map(({ host }) => host)
  const isOld = cached !== null && current !== null && cached.texts.some((text) => !current.includes(text))
  const isOldAlias = alias !== null && servers.every((server) => server.alias !== alias)
  const ttls = [
    isDnsData(resolver.outcome) ? oldStateTtl([resolver]) : null,
    isOld ? cached.ttl : null,
    isOldAlias ? ttl : null,
  ].filter((ttl) => ttl !== null)
  return ttls.length === 0 ? null : Math.max(...ttls)
}

/** Creates a finding, with its facts in the message and fix from `WORDS`. */
export function findingOf(code: Code, facts: Facts): Finding {
  const { message, fix } = WORDS[code]
  return {
    ...{ code, severity: severityOf(code) },
    message: plainText(textOf(message, facts)),
    fix: plainText(textOf(fix, facts)),
    evidence: facts,
  }
}
