import { dnsProviderOf, parkingStateOf } from './hosts.ts'
import {
  detectInterception,
  groupByOutcome,
  isConclusive,
  longestTtl,
  type MisplacedRecord,
  type Observations,
  type ResolverObservation,
  type ServerObservation,
  type TxtObservation,
} from './observations.ts'
import type { CheckReport, Finding } from './report.ts'
import { explainValues, findFormatFault, looksLikeToken, type ValueExplanation } from './value.ts'
import { formatResolver, hasIpv6 } from './wire/address.ts'
import { toRelativeName } from './wire/name.ts'
import { findPublicSuffix, isRegistry, registeredDomainOf } from './wire/registry.ts'
import { decodeValues, deduplicateValues, hasText } from './wire/txt-answer.ts'
import {
  type Evidence,
  FINDING_TEXTS,
  type FindingCode,
  fillTemplate,
  type ServerFact,
  severityOf,
  toPlainText,
  type Verdict,
  verdictOf,
  verdictRankOf,
} from './words.ts'

/**
 * Answers of a check whose zone was found, with the genuine name servers grouped by outcome. `parent`: hosts of the delegation,
 * empty if unknown. `holder`: zone that holds the delegation; null if the registrar sets it.
 */
type ZoneState = Observations &
  ReturnType<typeof groupByOutcome> & {
    readonly zone: string
    readonly parent: readonly string[]
    readonly holder: string | null
  }

/**
 * Derives the report from the answers of a check. Findings are sorted by the verdict that they cause, `fix` first; with the same
 * verdict, they keep the order of the rules, causes before consequences.
 */
export function diagnose(observations: Observations): CheckReport {
  const { name, expected, location, servers, resolvers } = observations
  const isUnseen = ({ code }: Finding) => needsResolvers(observations) && UNSEEN.includes(code)
  const found = fromServers(observations)
    .flatMap((one) => (isUnseen(one) ? fromResolvers(observations, one) : [one]))
    .toSorted((a, b) => verdictRankOf(a.code) - verdictRankOf(b.code))
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
      ...{ address: formatResolver(resolver), outcome, values: decodeValues(values), ttl, ms },
    })),
    findings: found,
    path: location.path,
  }
}

/** Minimum of `retry_after_seconds`, so that a script that waits for so long before it retries doesn't spin. */
const MIN_WAIT_SECONDS = 1
/**
 * Maximum of `retry_after_seconds`: a longer TTL is most likely a mistake, and many caches limit it (RFC 2308 section 5, RFC 8767
 * section 4).
 */
const MAX_WAIT_SECONDS = 86_400
/** Seconds to wait if no TTL shows how long the old state is kept. */
const USUAL_WAIT_SECONDS = 60

/** Returns the longest of several times in seconds, within the limits; null (unknown) is treated as the usual time. */
const secondsToWait = (...known: readonly (number | null)[]): number =>
  Math.min(MAX_WAIT_SECONDS, Math.max(MIN_WAIT_SECONDS, ...known.map((one) => one ?? USUAL_WAIT_SECONDS)))

/**
 * Returns `retry_after_seconds` of the report: the longest time that a finding waits for or, if the record needs a fix, the time
 * that caches keep the old state afterward; null if unknown.
 */
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
    location.kind === 'no_domain' ? location.negativeTtl : longestTtl(groupByOutcome(servers).withoutRecord)
  return ttl === null ? null : Math.min(MAX_WAIT_SECONDS, ttl)
}

/** Codes of the findings after which no name server's answer is used, so that only resolvers can show the record. */
const UNSEEN: readonly FindingCode[] = ['nameserver_unreachable', 'resolver_unreachable', 'dns_intercepted']

/**
 * Whether only resolvers can show the data at the name, because no name server gave a usable answer. False if a name server
 * showed a CNAME.
 */
export function needsResolvers(observations: Observations): boolean {
  const [first] = fromServers(observations)
  return first !== undefined && UNSEEN.includes(first.code) && !observations.alias
}

/**
 * Derives findings from the resolvers' answers if no name server gave a usable one. Values at a resolver prove that they are in
 * DNS. Their absence proves nothing, because a cache might have kept a negative answer.
 */
function fromResolvers(observations: Observations, unseen: Finding): Finding[] {
  const { name, expected, location } = observations
  // A resolver with authority (AA) over a name of the public DNS answers from a zone of its own, so ignore its answer.
  const isPublic = ({ authoritative }: TxtObservation) =>
    !authoritative || findPublicSuffix(name) === undefined
  const answers = observations.resolvers.filter((one) => isConclusive(one.outcome) && isPublic(one))
  const having = answers.filter(({ outcome }) => outcome === 'match')
  if (having.length > 0) return [createFinding('resolver_only', { name, ...resolverFacts(having) })]
  if (answers.length === 0) return [unseen]
  const ttl = longestTtl(answers)
  const facts = { seconds: ttl === null ? null : secondsToWait(ttl), ...resolverFacts(answers) }
  const values = valuesOf(answers)
  const best = expected === null ? undefined : explainValues(expected, values, observations.isGiven)
  if (best === undefined)
    return [createFinding(unseen.code, { ...unseen.evidence, values: decodeValues(values), ...facts })]
  const zone = location.kind === 'found' ? location.zone : null
  return [wrongValue({ ...observations, zone }, best, facts), unseen]
}

/** Derives findings from the name servers' answers, or from the failure to get any. */
function fromServers(observations: Observations): Finding[] {
  const { name, location, limitReached } = observations
  if (location.kind === 'no_domain')
    return [createFinding('domain_not_found', { domain: location.domain, said_by: location.saidBy })]
  if (location.kind === 'lost' && limitReached) return [createFinding('limit_reached', { name })]
  if (location.kind === 'lost')
    return [createFinding('resolver_unreachable', { name, replies: location.replies })]
  const { zone, hosts, parent } = location
  const { genuine: servers, interception: reason } = detectInterception(observations)
  if (reason !== null) return [createFinding('dns_intercepted', { name, reason })]
  const above = location.path.at(-2)?.zone ?? registeredDomainOf(zone)
  const holder = above === zone || isRegistry(above) ? null : above
  const place = { zone, holder, parent: parent === null ? [] : [...hosts.keys()] }
  const groups = groupByOutcome(servers)
  const resolvers = groups.withRecord.length > 0 ? observations.resolvers : []
  const state = { ...observations, ...place, servers, resolvers, ...groups }
  const searches = [findCauses, findBrokenDnssec, findBrokenServers, findStaleResolvers]
  return searches.flatMap((find) => find(state))
}

/**
 * Returns why the record is missing, or missing at some servers: at most one mistake, the most likely one, plus a wrong value at a
 * misplaced record.
 */
function findCauses(state: ZoneState): Finding[] {
  const { withRecord, withoutRecord } = state
  if (state.expected !== null && state.alias?.isBeside) return findAlias(state) ?? []
  if (withoutRecord.length === 0) return []
  if (state.expected === null) return findRegistry(state) ?? findSuspicions(state)
  if (withRecord.length > 0) return [findDisagreement(state)]
  const best = explainValues(state.expected, valuesOf(withoutRecord), state.isGiven)
  // A stale token doesn't show where the new one was put, so other names are searched as well.
  const isFault = best !== undefined && best.fault !== 'stale_token'
  const otherNames = isFault ? undefined : (findAlias(state) ?? findMisplaced(state) ?? findWildcard(state))
  if (otherNames !== undefined) return otherNames
  if (best !== undefined) return [wrongValue(state, best)]
  const values = decodeValues(valuesOf(withoutRecord))
  const owner = values.map((value) => /^heritage=([\w.-]+)/.exec(value)?.[1]).find(Boolean) ?? null
  return findRegistry(state) ?? [createFinding('missing', { ...placeOf(state), values, owner })]
}

/** Returns the TXT values of several answers, each once. */
const valuesOf = (seen: readonly TxtObservation[]) => deduplicateValues(seen.flatMap(({ values }) => values))

/** Answers of a check with the zone of the name; null if the zone wasn't found. */
type Placed = Observations & { readonly zone: string | null }

/**
 * Facts about the place of the record, as a provider's form asks for it. Many records were added at a provider that doesn't host
 * the zone, so the facts include the zone's name servers.
 */
function placeOf({ name, zone, expected, servers }: Placed) {
  const hosts = servers.map(({ host }) => host)
  const host = zone === null ? name : toRelativeName(name, zone)
  const place = { name, zone, provider: dnsProviderOf(hosts), host, expected, ...parkingStateOf(hosts) }
  return { ...place, in_charge: zone === null ? null : [...new Set(hosts)] }
}

/**
 * Finds an unregistered domain: a registry's zone holds the name. Not the registry's apex, where registries of the Public Suffix
 * List have TXT records of their own, and not a name below a private top-level domain, which its owner can edit.
 */
function findRegistry({ name, zone }: ZoneState): Finding[] | undefined {
  if (name === zone || (zone !== '.' && findPublicSuffix(zone) !== zone)) return undefined
  return [createFinding('domain_not_found', { domain: registeredDomainOf(name), said_by: zone })]
}

/** Finds a CNAME at the name, which can't have other records then (RFC 1034 section 3.6.2). */
function findAlias(state: ZoneState): Finding[] | undefined {
  const { alias, otherNames } = state
  if (!alias?.isKnown || otherNames?.wildcard) return undefined
  const target = alias.targets.at(-1) ?? state.name
  const reason = isValueTarget(target) ? 'value_as_target' : alias.isBeside ? 'beside' : 'other_target'
  return [createFinding('cname_at_name', { ...placeOf(state), target, reason, chain: alias.targets })]
}

/** Whether a CNAME target is a TXT value that was entered with the wrong record type: no host name has an equals sign. */
const isValueTarget = (target: string): boolean => target.includes('=')

/** Finds the expected value, or a faulty copy, at another name. */
function findMisplaced(state: ZoneState): Finding[] | undefined {
  const { expected, otherNames } = state
  const places = otherNames?.misplaced ?? []
  // A record at a wrong name can have a wrong value too, so faulty copies are found as well; but not at names in use, such as the
  // parent, which have values of other services.
  const isFaulty = ({ values }: MisplacedRecord) => explainValues(expected ?? '', values, state.isGiven)
  const place =
    places.find(({ values }) => hasText(values, expected)) ??
    places.find((one) => one.how !== 'used' && isFaulty(one) !== undefined)
  return place && explainMisplaced(state, place)
}

/** Returns the finding of a record at a wrong name, and of a mistake in its value, so that users don't move a wrong value. */
function explainMisplaced(state: ZoneState, { name, how, values }: MisplacedRecord): Finding[] {
  const isRight = hasText(values, state.expected)
  const fault = isRight ? undefined : explainValues(state.expected ?? '', values, state.isGiven)
  const there = isRight ? [state.expected] : (fault?.seen ?? decodeValues(values))
  const code = how === 'doubled' ? 'doubled_name' : 'other_name'
  const value = fault === undefined || fault.fault === 'given_value_cut' ? null : state.expected
  return [
    createFinding(code, { ...placeOf(state), found_at: name, values: there, value }),
    ...(fault === undefined ? [] : [wrongValue(state, fault)]),
  ]
}

/** Finds a wildcard that answers for the name, which then has no record of its own. */
function findWildcard(state: ZoneState): Finding[] | undefined {
  const wildcard = state.otherNames?.wildcard
  if (!wildcard) return undefined
  const values = wildcard.length === 0 ? null : decodeValues(wildcard)
  return [createFinding('wildcard_answer', { ...placeOf(state), values })]
}

/** Returns the finding of a TXT value with a fault, whose code is the fault's name. */
function wrongValue(state: Placed, { fault, seen: values }: ValueExplanation, more: Evidence = {}): Finding {
  const seen = values.length === 1 ? (values[0] ?? '') : values
  return createFinding(fault, { ...placeOf(state), seen, ...more })
}

/**
 * Finds likely mistakes without an expected value: faulty values, service values at wrong names, a value as CNAME target. All are
 * warnings.
 */
function findSuspicions(state: ZoneState): Finding[] {
  const values = decodeValues(valuesOf(state.servers))
  const prefixes = values.map(prefixOf)
  const places = (state.otherNames?.misplaced ?? []).filter(
    ({ how, values: there }) =>
      // A service with a value at the name can have another one elsewhere, so a value with the same prefix is no mistake.
      how !== 'used' &&
      decodeValues(there).some((one) => looksLikeToken(one) && !prefixes.includes(prefixOf(one))),
  )
  const found = [
    ...values.flatMap((value): Finding[] => {
      const fault = findFormatFault(value)
      return fault === undefined ? [] : [wrongValue(state, { fault, seen: [value] })]
    }),
    ...places.slice(0, 1).flatMap((place) => explainMisplaced(state, place)),
    ...(isValueTarget(state.alias?.targets.at(-1) ?? '') ? (findAlias(state) ?? []) : []),
  ]
  return found.map((one) => ({ ...one, severity: 'warning' }))
}

/** Returns the prefix of a value, including the equals sign. */
const prefixOf = (value: string): string => value.slice(0, value.indexOf('=') + 1)

/**
 * Explains why only some servers have the record: two zones of the same name, which never agree; a damaged copy of the value with
 * the same SOA serial; or a zone transfer that takes time.
 */
function findDisagreement(state: ZoneState): Finding {
  const { name, zone, parent, holder, withRecord, withoutRecord } = state
  // Servers that are missing in the delegation, or in the NS set of the other servers, serve another zone of the same name. So
  // waiting doesn't help.
  const areLeftOut = (some: readonly ServerObservation[], others: readonly ServerObservation[]) =>
    [parent, others.flatMap(({ nsSet }) => nsSet)].some(
      (hosts) => hosts.length > 0 && some.every(({ host }) => !hosts.includes(host)),
    )
  if (areLeftOut(withoutRecord, withRecord) || areLeftOut(withRecord, withoutRecord)) {
    const isDelegated = ({ host }: ServerObservation) => parent.length === 0 || parent.includes(host)
    const reason = withoutRecord.some(isDelegated) ? 'delegated' : 'not_delegated'
    const inZone = [...new Set(state.servers.flatMap(({ nsSet }) => nsSet))]
    const both = { servers: withoutRecord.map(serverFact), with: withRecord.map(serverFact) }
    const place = { ...placeOf(state), holder, at_registrar: parent, in_zone: inZone }
    return createFinding('parent_child_mismatch', { ...place, reason, ...both })
  }
  const serials = withRecord.map(({ soa }) => soa?.serial)
  const damaged = withoutRecord.filter(({ soa }) => soa !== null && serials.includes(soa.serial))
  const best = explainValues(state.expected ?? '', valuesOf(damaged))
  if (best !== undefined && best.fault !== 'stale_token')
    return wrongValue(state, best, { copies: damaged.map(serverFact) })
  const facts = { name, zone, with: withRecord.map(serverFact), without: withoutRecord.map(serverFact) }
  const serial = damaged.length === withoutRecord.length ? (damaged[0]?.soa?.serial ?? null) : null
  return createFinding('partial_propagation', { ...facts, serial, seconds: USUAL_WAIT_SECONDS })
}

/** Returns a name server's host, address, outcome and SOA serial as a fact of a finding. */
const serverFact = ({ host, address, outcome, soa }: ServerObservation): ServerFact => ({
  ...{ host, address, outcome, serial: soa?.serial ?? null },
})

/** Finds broken DNSSEC: by the DS records, keys and signature dates of the zone, or by resolvers that reject its signatures. */
function findBrokenDnssec(state: ZoneState): Finding[] {
  const { zone, holder, dnssec, alias, resolvers } = state
  const rejecting = resolvers.filter((one) => one.failsValidation && keptSeconds(one, state) === null)
  const facts = { zone, holder, key_tags: dnssec?.keyTags ?? [] }
  const broken = { ...facts, reason: dnssec?.state ?? null }
  if (!isDnssecSound(state)) return [createFinding('dnssec_bogus', broken)]
  if (rejecting.length === 0) return []
  const says = rejecting.flatMap(({ explanation }) => explanation ?? [])[0] ?? null
  const reason = alias === null && dnssec?.state === 'unsigned' ? 'unproven' : 'rejected'
  const of = { zone: alias?.targets.at(-1) ?? zone, reason, resolver_says: says }
  return [createFinding('dnssec_bogus', { ...facts, ...of, ...resolverFacts(rejecting) })]
}

/** Whether the zone's DS records, keys and signature dates are in order, or couldn't be checked. */
const isDnssecSound = ({ dnssec }: ZoneState): boolean =>
  ['ok', 'unsigned', undefined].includes(dnssec?.state)

/** Finds servers that don't answer for the zone: without an address, lame, or silent. */
function findBrokenServers(state: ZoneState): Finding[] {
  const { name, zone, parent, holder, servers, alias, withRecord, withoutRecord, lame } = state
  const nowhere = servers.filter(({ address, outcome }) => address === null && outcome === 'unreachable')
  if (nowhere.length === servers.length)
    return [createFinding('no_nameservers', { zone, holder, hosts: nowhere.map(({ host }) => host) })]
  const heard = servers.filter(({ isSuspect }) => isSuspect !== null)
  // Not broken: a server with the outcome `timeout` only because the end of its CNAME chain is unknown, and an IPv6 address whose
  // host answers over IPv4, since this machine might lack IPv6.
  const silent = state.silent.filter(
    (server) =>
      server.alias === null &&
      !nowhere.includes(server) &&
      !(hasIpv6(server) && heard.some((one) => one.host === server.host && !hasIpv6(one))),
  )
  const found = (code: FindingCode, some: typeof servers, reason: string | null = null): Finding[] => {
    const provider = dnsProviderOf(some.map(({ host }) => host))
    // NS records that only the zone itself has are removed in the zone, not at the holder of the delegation, so name the zone.
    const isAbove = parent.length === 0 || some.some(({ host }) => parent.includes(host))
    const place = { name, zone, holder: isAbove ? holder : zone }
    const closed = reason === 'too_large' ? 'TCP port 53' : null
    const facts = { ...place, reason, provider, closed, servers: some.map(serverFact) }
    return some.length === 0 ? [] : [createFinding(code, facts)]
  }
  const isLame = found('some_servers_lame', lame)
  // Servers that answer, but without the TXT set: it is truncated (TC bit) and TCP fails (outcome `timeout`), or they refuse TXT
  // queries.
  const mute = silent.filter(({ isSuspect }) => isSuspect !== null)
  const why = mute.some(({ outcome }) => outcome === 'timeout') ? 'too_large' : 'no_txt'
  const dead = silent.filter(({ isSuspect }) => isSuspect === null)
  if (withRecord.length + withoutRecord.length > 0)
    return [
      ...isLame,
      ...found('some_servers_silent', mute, why),
      ...found('some_servers_silent', dead, 'dead'),
      ...found('some_servers_silent', nowhere, 'no_address'),
    ]
  const target = alias?.isKnown === false ? alias.targets.at(-1) : undefined
  if (target !== undefined)
    return [createFinding('nameserver_unreachable', { name: target, alias_of: name, reason: 'alias' })]
  if (lame.length === servers.length) return found('lame_nameserver', lame)
  if (state.limitReached) return [createFinding('limit_reached', { name })]
  if (mute.length > 0) return [...found('nameserver_unreachable', mute, why), ...isLame]
  const unheard = servers.filter((server) => !lame.includes(server))
  const reason = unheard.every(({ outcome }) => outcome === 'not_checked') ? 'not_asked' : 'silent'
  return [...found('nameserver_unreachable', unheard, reason), ...isLame]
}

/** Returns the facts about several resolvers: addresses and outcomes. */
const resolverFacts = (some: readonly ResolverObservation[]): Evidence => ({
  resolvers: some.map(({ resolver }) => formatResolver(resolver)),
  outcomes: some.map(({ outcome }) => outcome),
})

/**
 * Finds resolvers that lack a record which the authoritative servers have. Stale caches are waited for; other resolvers are a
 * warning.
 */
function findStaleResolvers(state: ZoneState): Finding[] {
  if (state.expected === null || state.alias?.isBeside) return []
  const kept = (one: ResolverObservation) => keptSeconds(one, state)
  // A resolver's silence proves nothing, so leave it out. Failed validation of a broken zone is left out below, because it is a
  // finding already.
  const lacking = state.resolvers.filter(
    (one) => !['match', 'timeout', 'unreachable', 'not_checked'].includes(one.outcome),
  )
  const caches = lacking.filter((one) => kept(one) !== null && (isDnssecSound(state) || !one.failsValidation))
  const others = lacking.filter((one) => kept(one) === null && !one.failsValidation)
  const seconds = secondsToWait(...caches.map(kept))
  return [
    ...(caches.length === 0 ? [] : [createFinding('cached', { ...resolverFacts(caches), seconds })]),
    ...(others.length === 0 ? [] : [createFinding('resolver_differs', resolverFacts(others))]),
  ]
}

/**
 * Returns the seconds for which a resolver keeps outdated data: the record's absence or old value, a CNAME, an NS set, or keys.
 * Null if nothing outdated is cached (RFC 2308 section 5: a negative answer without SOA isn't), if the resolver answers with
 * authority, or if its data is older than all TTLs allow.
 */
function keptSeconds(
  resolver: ResolverObservation,
  { servers, dnssec, isOverdue }: ZoneState,
): number | null {
  const { cached, alias, ttl, authoritative, failsValidation } = resolver
  if (isOverdue || authoritative) return null
  const current = failsValidation ? (dnssec?.keys ?? null) : servers.map(({ host }) => host)
  const isOld = cached !== null && current !== null && cached.texts.some((text) => !current.includes(text))
  const isOldAlias = alias !== null && servers.every((server) => server.alias !== alias)
  const ttls = [
    isConclusive(resolver.outcome) ? longestTtl([resolver]) : null,
    isOld ? cached.ttl : null,
    isOldAlias ? ttl : null,
  ].filter((ttl) => ttl !== null)
  return ttls.length === 0 ? null : Math.max(...ttls)
}

/** Creates a finding, with its facts in the message and fix from `FINDING_TEXTS`. */
export function createFinding(code: FindingCode, facts: Evidence): Finding {
  const { message, fix } = FINDING_TEXTS[code]
  return {
    ...{ code, severity: severityOf(code) },
    message: toPlainText(fillTemplate(message, facts)),
    fix: toPlainText(fillTemplate(fix, facts)),
    evidence: facts,
  }
}
