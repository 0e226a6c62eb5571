import { detectDomainUse, formatDnsProviders } from './hosts.ts'
import {
  type DnsObservations,
  detectInterception,
  groupServers,
  isConclusive,
  longestTtlOf,
  type OtherNameWithTxt,
  type ResolverObservation,
  type ServerObservation,
  type TxtObservation,
} from './observations.ts'
import type { CheckReport, Finding } from './report.ts'
import { type FaultWithValues, findFormatFault, findSpecificFault, looksLikeVerification } from './value.ts'
import { formatResolver, hasIpv6Address } from './wire/address.ts'
import { formatHostField } from './wire/name.ts'
import { findPublicSuffix, isRegistryZone, registrableDomainOf } from './wire/registry.ts'
import { decodeTxtValues, deduplicateValues, hasTxtValue } from './wire/txt-answer.ts'
import {
  type CheckVerdict,
  type Evidence,
  FINDING_TEXTS,
  type FindingCode,
  fillTemplate,
  getDefaultSeverity,
  type ServerEvidence,
  toPlainText,
  verdictOf,
  verdictRankOf,
} from './words.ts'

/**
 * Observations of a check whose zone was found, with the name servers grouped by outcome. `servers` has no intercepted ones;
 * `resolvers` is empty unless a name server has the record.
 */
type ZoneState = DnsObservations &
  ReturnType<typeof groupServers> & {
    readonly zone: string
    /** Host names of the name servers in the delegation at the parent zone; empty if unknown. */
    readonly parent: readonly string[]
    /** Zone whose NS records delegate this zone; null if the delegation is changed at the registrar. */
    readonly holder: string | null
  }

/** Derives the report from the observations of a check. Findings are sorted by the verdict that they cause, `fix` first. */
export function createCheckReport(observations: DnsObservations): CheckReport {
  const { name, expected, location, servers, resolvers } = observations
  const isUnseen = ({ code }: Finding) => onlyResolversCanShowRecord(observations) && NO_REPLY.includes(code)
  const found = diagnoseServers(observations)
    .flatMap((one) => (isUnseen(one) ? diagnoseResolvers(observations, one) : [one]))
    .toSorted((a, b) => verdictRankOf(a.code) - verdictRankOf(b.code))
  const reason = found[0] === undefined ? 'ready' : verdictOf(found[0].code)
  const verdict = expected === null ? 'unknown' : reason
  return {
    name,
    expected,
    verdict,
    ready: verdict === 'ready' || verdict === 'ready_with_warning',
    retry_after_seconds: retryAfterSeconds(observations, verdict, found),
    claim: null,
    zone: location.kind === 'found' ? location.zone : null,
    nameservers: servers.map(({ host, address, outcome, authoritative, values, ttl, soa, ms }) => ({
      ...{ host, address, outcome, authoritative },
      ...{ values: decodeTxtValues(values), ttl, serial: soa?.serial ?? null, ms },
    })),
    resolvers: resolvers.map(({ resolver, outcome, values, ttl, ms }) => ({
      ...{ address: formatResolver(resolver), outcome, values: decodeTxtValues(values), ttl, ms },
    })),
    findings: found,
    path: location.path,
  }
}

/** Minimum seconds of a wait that a finding names: with 0, a script that waits so long would check in a loop without a pause. */
const MIN_WAIT_SECONDS = 1
/**
 * Maximum of `retry_after_seconds`: a longer TTL is most likely a mistake, and many caches limit TTLs (RFC 2308 section 5, RFC
 * 8767 section 4).
 */
const MAX_WAIT_SECONDS = 86_400
/** Seconds to wait before the next check if a TTL is unknown, or for a zone transfer to lagging name servers. */
const USUAL_WAIT_SECONDS = 60

/**
 * Returns the longest of the given times in seconds, at least 1 and at most a day; null (unknown) counts as `USUAL_WAIT_SECONDS`.
 */
const secondsToWait = (...known: readonly (number | null)[]): number =>
  Math.min(MAX_WAIT_SECONDS, Math.max(MIN_WAIT_SECONDS, ...known.map((one) => one ?? USUAL_WAIT_SECONDS)))

/**
 * Returns `retry_after_seconds` of the report: the longest wait that a finding names. If none names one and the verdict is `fix`,
 * returns the seconds for which caches may keep the present state after the fix. Null if neither is known, or if no TXT value is
 * expected.
 */
function retryAfterSeconds(
  { servers, location, expected }: DnsObservations,
  verdict: CheckVerdict,
  found: readonly Finding[],
): number | null {
  if (expected === null) return null
  const left = found.flatMap(({ evidence: { seconds } }) => (typeof seconds === 'number' ? seconds : []))
  if (left.length > 0) return Math.max(...left)
  if (verdict !== 'fix') return null
  const ttl =
    location.kind === 'no_domain' ? location.negativeTtl : longestTtlOf(groupServers(servers).withoutRecord)
  return ttl === null ? null : secondsToWait(ttl)
}

/** Codes of findings which say that no name server was found or gave a usable response; resolvers might still show the record. */
const NO_REPLY: readonly FindingCode[] = ['nameserver_unreachable', 'resolver_unreachable', 'dns_intercepted']

/**
 * Whether only resolvers can show the record: the name servers weren't found, are intercepted, or don't answer TXT queries. False
 * if a name server returned a CNAME, which is usable even if the end of its chain is unknown.
 */
export function onlyResolversCanShowRecord(observations: DnsObservations): boolean {
  const [first] = diagnoseServers(observations)
  return first !== undefined && NO_REPLY.includes(first.code) && !observations.alias
}

/**
 * Derives findings from the resolvers' responses. The expected value at a resolver proves that DNS has it; its absence there proves
 * nothing, because a cache might hold an old negative answer.
 *
 * @param unseen finding that says why the name servers don't show the record; left out if a resolver has the expected value
 */
function diagnoseResolvers(observations: DnsObservations, unseen: Finding): Finding[] {
  const { name, expected, location } = observations
  // A resolver that answers with authority (AA) for a name of the public DNS might serve a zone of its own, so ignore its
  // response.
  const isPublic = ({ authoritative }: TxtObservation) =>
    !authoritative || findPublicSuffix(name) === undefined
  const answers = observations.resolvers.filter((one) => isConclusive(one.outcome) && isPublic(one))
  const having = answers.filter(({ outcome }) => outcome === 'match')
  if (having.length > 0) return [createFinding('resolver_only', { name, ...resolverFacts(having) })]
  if (answers.length === 0) return [unseen]
  const ttl = longestTtlOf(answers)
  const facts = { seconds: ttl === null ? null : secondsToWait(ttl), ...resolverFacts(answers) }
  const values = valuesOf(answers)
  const best = expected === null ? undefined : findSpecificFault(expected, values, observations.mayBeCut)
  if (best === undefined)
    return [createFinding(unseen.code, { ...unseen.evidence, values: decodeTxtValues(values), ...facts })]
  const zone = location.kind === 'found' ? location.zone : null
  return [createValueFinding({ ...observations, zone }, best, facts), unseen]
}

/**
 * Derives all findings but those of `diagnoseResolvers`. If the zone wasn't found, might be this network's own, or was seen through
 * an interceptor only, returns nothing but the finding about that.
 */
function diagnoseServers(observations: DnsObservations): Finding[] {
  const { name, location, limitReached } = observations
  if (location.kind === 'no_domain')
    return [createFinding('domain_not_found', { domain: location.domain, said_by: location.deniedBy })]
  if (location.kind === 'lost' && limitReached) return [createFinding('limit_reached', { name })]
  if (location.kind === 'lost')
    return [createFinding('resolver_unreachable', { name, replies: location.replies })]
  const { zone, hosts, parent } = location
  const { genuine: servers, interception: reason } = detectInterception(observations)
  if (reason !== null) return [createFinding('dns_intercepted', { name, reason })]
  const above = location.path.at(-2)?.zone ?? registrableDomainOf(zone)
  const holder = above === zone || isRegistryZone(above) ? null : above
  const place = { zone, holder, parent: parent === null ? [] : [...hosts.keys()] }
  const groups = groupServers(servers)
  const resolvers = groups.withRecord.length > 0 ? observations.resolvers : []
  const state = { ...observations, ...place, servers, resolvers, ...groups }
  const searches = [findCauses, findBrokenDnssec, findBrokenServers, findStaleResolvers]
  return searches.flatMap((find) => find(state))
}

/**
 * Finds the most likely reason why all or some name servers lack the expected value, or why resolvers may not see it; a wrong
 * value at a wrong name gives two findings. Without an expected value, finds likely mistakes.
 */
function findCauses(state: ZoneState): Finding[] {
  const { withRecord, withoutRecord } = state
  // A resolver that has cached the CNAME doesn't see the TXT record beside it, so report the CNAME even if all name servers have
  // the expected value.
  if (state.expected !== null && state.alias?.hasTxtBeside) return findCname(state) ?? []
  if (withoutRecord.length === 0) return []
  if (state.expected === null) return findUnregistered(state) ?? findSuspicions(state)
  if (withRecord.length > 0) return [findDisagreement(state)]
  const best = findSpecificFault(state.expected, valuesOf(withoutRecord), state.mayBeCut)
  // Another claim's token at the name doesn't show where the expected value is, so search other names for that value too.
  const isFault = best !== undefined && best.fault !== 'stale_token'
  const otherNames = isFault ? undefined : (findCname(state) ?? findMisplaced(state) ?? findWildcard(state))
  if (otherNames !== undefined) return otherNames
  if (best !== undefined) return [createValueFinding(state, best)]
  const values = decodeTxtValues(valuesOf(withoutRecord))
  const owner = values.map((value) => /^heritage=([\w.-]+)/.exec(value)?.[1]).find(Boolean) ?? null
  return findUnregistered(state) ?? [createFinding('missing', { ...recordFacts(state), values, owner })]
}

const valuesOf = (seen: readonly TxtObservation[]) => deduplicateValues(seen.flatMap(({ values }) => values))

type WithZone = DnsObservations & { readonly zone: string | null }

/**
 * Returns the facts, for a finding's evidence, that a user needs to add the record. `in_charge`: the zone's name servers, because
 * users often add the record at a provider that doesn't host the zone.
 */
function recordFacts({ name, zone, expected, servers }: WithZone) {
  const hosts = servers.map(({ host }) => host)
  const host = zone === null ? name : formatHostField(name, zone)
  const place = { name, zone, provider: formatDnsProviders(hosts), host, expected, ...detectDomainUse(hosts) }
  return { ...place, in_charge: zone === null ? null : [...new Set(hosts)] }
}

/**
 * Finds an unregistered domain: its name is in the zone of a public registry, or in the root zone, without a delegation. Undefined
 * for the name of that zone itself, and in other zones, whose owners can add records.
 */
function findUnregistered({ name, zone }: ZoneState): Finding[] | undefined {
  if (name === zone || (zone !== '.' && findPublicSuffix(zone) !== zone)) return undefined
  return [createFinding('domain_not_found', { domain: registrableDomainOf(name), said_by: zone })]
}

/**
 * Finds a CNAME at the name, which can't have other records then (RFC 1034 section 3.6.2). Undefined without a CNAME, if the end of
 * its chain is unknown, or if it comes from a wildcard.
 */
function findCname(state: ZoneState): Finding[] | undefined {
  const { alias, otherNames } = state
  if (!alias?.isKnown || otherNames?.wildcard) return undefined
  const target = alias.targets.at(-1) ?? state.name
  const reason = isValueTarget(target) ? 'value_as_target' : alias.hasTxtBeside ? 'beside' : 'other_target'
  return [createFinding('cname_at_name', { ...recordFacts(state), target, reason, chain: alias.targets })]
}

/** Whether a CNAME target looks like a TXT value, entered with the wrong record type: no host name has an equals sign. */
const isValueTarget = (target: string): boolean => target.includes('=')

/** Finds the expected value, or a faulty copy of it, at another name. */
function findMisplaced(state: ZoneState): Finding[] | undefined {
  const { expected, otherNames } = state
  const places = otherNames?.candidates ?? []
  const isFaulty = ({ values }: OtherNameWithTxt) => findSpecificFault(expected ?? '', values, state.mayBeCut)
  const place =
    places.find(({ values }) => hasTxtValue(values, expected)) ??
    // Ignore faulty copies of the expected value at names that can rightly have other TXT records (kind `used`), such as the
    // parent: similar values there are probably of other services.
    places.find((one) => one.kind !== 'used' && isFaulty(one) !== undefined)
  return place && explainMisplaced(state, place)
}

/**
 * Returns the finding for a record at a wrong name and, if its value is wrong too, a second finding: otherwise users would move a
 * wrong value to the right name.
 */
function explainMisplaced(state: ZoneState, { name, kind, values }: OtherNameWithTxt): Finding[] {
  const isRight = hasTxtValue(values, state.expected)
  const fault = isRight ? undefined : findSpecificFault(state.expected ?? '', values, state.mayBeCut)
  const there = isRight ? [state.expected] : (fault?.seen ?? decodeTxtValues(values))
  const code = kind === 'doubled' ? 'doubled_name' : 'other_name'
  const value = fault === undefined || fault.fault === 'given_value_cut' ? null : state.expected
  return [
    createFinding(code, { ...recordFacts(state), found_at: name, values: there, value }),
    ...(fault === undefined ? [] : [createValueFinding(state, fault)]),
  ]
}

/** Finds a wildcard that covers the name, because the name doesn't exist itself (RFC 4592). */
function findWildcard(state: ZoneState): Finding[] | undefined {
  const wildcard = state.otherNames?.wildcard
  if (!wildcard) return undefined
  const values = wildcard.length === 0 ? null : decodeTxtValues(wildcard)
  return [createFinding('wildcard_answer', { ...recordFacts(state), values })]
}

/** Creates the finding for a fault of a TXT value. */
function createValueFinding(state: WithZone, { fault, seen: values }: FaultWithValues, more: Evidence = {}) {
  const seen = values.length === 1 ? (values[0] ?? '') : values
  return createFinding(fault, { ...recordFacts(state), seen, ...more })
}

/**
 * For a check without an expected value, finds likely mistakes, as warnings: faulty values, a verification value at a wrong name,
 * a value entered as a CNAME target.
 */
function findSuspicions(state: ZoneState): Finding[] {
  const values = decodeTxtValues(valuesOf(state.servers))
  const prefixes = values.map(prefixOf)
  const places = (state.otherNames?.candidates ?? []).filter(
    ({ kind, values: there }) =>
      kind !== 'used' &&
      // Ignore a value with the prefix of a value at the checked name, because a service can verify several names.
      decodeTxtValues(there).some((one) => looksLikeVerification(one) && !prefixes.includes(prefixOf(one))),
  )
  const found = [
    ...values.flatMap((value): Finding[] => {
      const fault = findFormatFault(value)
      return fault === undefined ? [] : [createValueFinding(state, { fault, seen: [value] })]
    }),
    ...places.slice(0, 1).flatMap((place) => explainMisplaced(state, place)),
    ...(isValueTarget(state.alias?.targets.at(-1) ?? '') ? (findCname(state) ?? []) : []),
  ]
  return found.map((one) => ({ ...one, severity: 'warning' }))
}

/** Returns the beginning of a value, up to and including the first equals sign; empty without one. */
const prefixOf = (value: string): string => value.slice(0, value.indexOf('=') + 1)

/**
 * Explains why only some name servers have the record: the others serve another zone of the same name, have a damaged copy (same
 * SOA serial, faulty value), or else might still wait for the zone transfer.
 */
function findDisagreement(state: ZoneState): Finding {
  const { name, zone, parent, holder, withRecord, withoutRecord } = state
  // Whether the delegation, or the NS set of `others`, is known and has none of the servers in `some`: then the two groups of
  // name servers serve different zones of the same name, and waiting doesn't help.
  const areLeftOut = (some: readonly ServerObservation[], others: readonly ServerObservation[]) =>
    [parent, others.flatMap(({ nsSet }) => nsSet)].some(
      (hosts) => hosts.length > 0 && some.every(({ host }) => !hosts.includes(host)),
    )
  if (areLeftOut(withoutRecord, withRecord) || areLeftOut(withRecord, withoutRecord)) {
    const isDelegated = ({ host }: ServerObservation) => parent.length === 0 || parent.includes(host)
    const reason = withoutRecord.some(isDelegated) ? 'delegated' : 'not_delegated'
    const inZone = [...new Set(state.servers.flatMap(({ nsSet }) => nsSet))]
    const both = { servers: withoutRecord.map(toEvidence), with: withRecord.map(toEvidence) }
    const place = { ...recordFacts(state), holder, at_registrar: parent, in_zone: inZone }
    return createFinding('parent_child_mismatch', { ...place, reason, ...both })
  }
  const serials = withRecord.map(({ soa }) => soa?.serial)
  const damaged = withoutRecord.filter(({ soa }) => soa !== null && serials.includes(soa.serial))
  const best = findSpecificFault(state.expected ?? '', valuesOf(damaged))
  if (best !== undefined && best.fault !== 'stale_token')
    return createValueFinding(state, best, { copies: damaged.map(toEvidence) })
  const facts = { name, zone, with: withRecord.map(toEvidence), without: withoutRecord.map(toEvidence) }
  const serial = damaged.length === withoutRecord.length ? (damaged[0]?.soa?.serial ?? null) : null
  return createFinding('partial_propagation', { ...facts, serial, seconds: USUAL_WAIT_SECONDS })
}

const toEvidence = ({ host, address, outcome, soa }: ServerObservation): ServerEvidence => ({
  ...{ host, address, outcome, serial: soa?.serial ?? null },
})

/**
 * Finds broken DNSSEC: wrong DS records, missing keys or expired signatures or, without these, resolvers whose failed validation
 * isn't explained by old keys in their caches.
 */
function findBrokenDnssec(state: ZoneState): Finding[] {
  const { zone, holder, dnssec, alias, resolvers } = state
  const rejecting = resolvers.filter((one) => one.failsValidation && staleSeconds(one, state) === null)
  const facts = { zone, holder, key_tags: dnssec?.keyTags ?? [], reason: dnssec?.state ?? null }
  if (!isDnssecSound(state)) return [createFinding('dnssec_bogus', facts)]
  if (rejecting.length === 0) return []
  const says = rejecting.flatMap(({ explanation }) => explanation ?? [])[0] ?? null
  const reason = alias === null && dnssec?.state === 'unsigned' ? 'unproven' : 'rejected'
  const of = { zone: alias?.targets.at(-1) ?? zone, reason, resolver_says: says }
  return [createFinding('dnssec_bogus', { ...facts, ...of, ...resolverFacts(rejecting) })]
}

/** Whether no fault of the zone's DNSSEC records is known; also true for an unsigned zone, and if the state is unknown. */
const isDnssecSound = ({ dnssec }: ZoneState): boolean =>
  ['ok', 'unsigned', undefined].includes(dnssec?.state)

/** Returns the findings about name servers that don't answer for the zone: without an address, lame, or silent. */
function findBrokenServers(state: ZoneState): Finding[] {
  const { name, zone, parent, holder, servers, alias, withRecord, withoutRecord, lame } = state
  const addressless = servers.filter(({ address, outcome }) => address === null && outcome === 'unreachable')
  if (addressless.length === servers.length)
    return [createFinding('no_nameservers', { zone, holder, hosts: addressless.map(({ host }) => host) })]
  const heard = servers.filter(({ isImplausible }) => isImplausible !== null)
  // Leave out hosts without an address, which get a finding of their own; servers that responded with a CNAME, whose outcome is
  // `timeout` only because the end of its chain is unknown; and IPv6 addresses of hosts that respond over IPv4, because this
  // machine might lack IPv6.
  const silent = state.silent.filter(
    (server) =>
      server.alias === null &&
      !addressless.includes(server) &&
      !(hasIpv6Address(server) && heard.some((one) => one.host === server.host && !hasIpv6Address(one))),
  )
  const found = (code: FindingCode, some: typeof servers, reason: string | null = null): Finding[] => {
    const provider = formatDnsProviders(some.map(({ host }) => host))
    // Servers in the NS records of the zone, but not of the delegation, can only be removed in the zone. So `holder`, the zone
    // whose NS records the user has to change, is then the zone itself.
    const isAbove = parent.length === 0 || some.some(({ host }) => parent.includes(host))
    const place = { name, zone, holder: isAbove ? holder : zone }
    const closed = reason === 'too_large' ? 'TCP port 53' : null
    const facts = { ...place, reason, provider, closed, servers: some.map(toEvidence) }
    return some.length === 0 ? [] : [createFinding(code, facts)]
  }
  const lameFindings = found('some_servers_lame', lame)
  // Servers that respond, but don't deliver the TXT set: it is truncated (TC bit) and TCP fails (outcome `timeout`), or they fail
  // for TXT queries.
  const mute = silent.filter(({ isImplausible }) => isImplausible !== null)
  const why = mute.some(({ outcome }) => outcome === 'timeout') ? 'too_large' : 'no_txt'
  const dead = silent.filter(({ isImplausible }) => isImplausible === null)
  if (withRecord.length + withoutRecord.length > 0)
    return [
      ...lameFindings,
      ...found('some_servers_silent', mute, why),
      ...found('some_servers_silent', dead, 'dead'),
      ...found('some_servers_silent', addressless, 'no_address'),
    ]
  const target = alias?.isKnown === false ? alias.targets.at(-1) : undefined
  if (target !== undefined)
    return [createFinding('nameserver_unreachable', { name: target, alias_of: name, reason: 'alias' })]
  if (lame.length === servers.length) return found('lame_nameserver', lame)
  if (state.limitReached) return [createFinding('limit_reached', { name })]
  if (mute.length > 0) return [...found('nameserver_unreachable', mute, why), ...lameFindings]
  const unheard = servers.filter((server) => !lame.includes(server))
  const reason = unheard.every(({ outcome }) => outcome === 'not_checked') ? 'not_asked' : 'silent'
  return [...found('nameserver_unreachable', unheard, reason), ...lameFindings]
}

const resolverFacts = (some: readonly ResolverObservation[]): Evidence => ({
  resolvers: some.map(({ resolver }) => formatResolver(resolver)),
  outcomes: some.map(({ outcome }) => outcome),
})

/**
 * Finds resolvers that lack the record although the name servers have it: `cached` if outdated data in their caches explains it,
 * otherwise, unless they fail DNSSEC validation, the warning `resolver_differs`.
 */
function findStaleResolvers(state: ZoneState): Finding[] {
  if (state.expected === null || state.alias?.hasTxtBeside) return []
  const left = (one: ResolverObservation) => staleSeconds(one, state)
  // Resolvers that lack the record. Silent and unchecked ones are left out, because they prove nothing; those whose DNSSEC
  // validation fails are left out below if `dnssec_bogus` reports them already.
  const lacking = state.resolvers.filter(
    (one) => !['match', 'timeout', 'unreachable', 'not_checked'].includes(one.outcome),
  )
  const caches = lacking.filter((one) => left(one) !== null && (isDnssecSound(state) || !one.failsValidation))
  const others = lacking.filter((one) => left(one) === null && !one.failsValidation)
  const seconds = secondsToWait(...caches.map(left))
  return [
    ...(caches.length === 0 ? [] : [createFinding('cached', { ...resolverFacts(caches), seconds })]),
    ...(others.length === 0 ? [] : [createFinding('resolver_differs', resolverFacts(others))]),
  ]
}

/**
 * Returns the seconds until outdated data in a resolver's cache expires, such as a negative answer, an old NS set or old keys. Null
 * if caching doesn't explain that the resolver lacks the record, or doesn't anymore (`isOverdue`).
 */
function staleSeconds(
  resolver: ResolverObservation,
  { servers, dnssec, isOverdue }: ZoneState,
): number | null {
  const { cached, alias, ttl, authoritative, failsValidation } = resolver
  if (isOverdue || authoritative) return null
  const current = failsValidation ? (dnssec?.keys ?? null) : servers.map(({ host }) => host)
  const isOld = cached !== null && current !== null && cached.texts.some((text) => !current.includes(text))
  const isOldAlias = alias !== null && servers.every((server) => server.alias !== alias)
  const ttls = [
    isConclusive(resolver.outcome) ? longestTtlOf([resolver]) : null,
    isOld ? cached.ttl : null,
    isOldAlias ? ttl : null,
  ].filter((ttl) => ttl !== null)
  return ttls.length === 0 ? null : Math.max(...ttls)
}

/** Creates a finding: fills its facts (`evidence`) into the texts for its code, which are a message and a fix. */
export function createFinding(code: FindingCode, evidence: Evidence): Finding {
  const { message, fix } = FINDING_TEXTS[code]
  return {
    ...{ code, severity: getDefaultSeverity(code) },
    message: toPlainText(fillTemplate(message, evidence)),
    fix: toPlainText(fillTemplate(fix, evidence)),
    evidence,
  }
}
