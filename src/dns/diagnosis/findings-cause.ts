import type { Misplaced } from '../observation/misplaced-records.ts'
import {
  groupByOutcome,
  type Observation,
  type Observations,
  oldStateTtl,
} from '../observation/observations.ts'
import { isRegistry, registeredDomain } from '../resolution/registry.ts'
import { isWithin, MAX_NAME_LENGTH, relativeName } from '../wire/name.ts'
import { decodeValue, hasText, hasValue, type TxtValue } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { isDivided } from './findings-server.ts'
import { valueFinding } from './findings-value.ts'
import { providersOf } from './providers.ts'
import { type ExplainedValue, explainValues } from './value-comparison.ts'

/**
 * Why the record is not there, or not everywhere. At most one error: the most likely cause. Nothing is said about the
 * record where no authoritative server spoke.
 */
export function causeFindings(observations: Observations): Finding[] {
  const { matching, without } = groupByOutcome(observations.servers)
  if (matching.length > 0) {
    const partial = without.length > 0 && !isDivided(observations, matching, without)
    return [...(partial ? [partialPropagation(matching, without)] : []), ...remarks(observations, matching)]
  }
  if (observations.alias?.end === 'unknown') return [aliasUnknown(observations, observations.alias.targets)]
  if (without.length === 0) return []
  const values = distinct(without.flatMap((server) => server.values))
  const explained = explainValues(
    observations.expected,
    values.map((value) => decodeValue(value.bytes)),
  )
  const cause = aliasCause(observations) ?? recordCause(observations, without, values, explained[0])
  // A record that is in the zone, though wrong, was added at the right provider.
  const elsewhere = cause.code === 'missing' || cause.code === 'stale_token'
  return [
    cause,
    ...staleBeside(observations, cause, without, explained),
    ...(elsewhere ? [providerHint(observations)] : []),
  ]
}

/** Remarks on a record that is there. */
function remarks(observations: Observations, matching: readonly Observation[]): Finding[] {
  const own = matching
    .flatMap((server) => server.values)
    .find((value) => hasText([value], observations.expected))
  const findings: Finding[] = []
  if (own !== undefined && own.strings > 1)
    findings.push({
      code: 'split_strings',
      severity: 'info',
      message: `The value is stored in ${own.strings} strings; joined they are exactly what is expected`,
      fix: 'Nothing has to be done',
      details: { strings: own.strings },
    })
  if (
    own !== undefined &&
    observations.probes?.coversName &&
    hasText(observations.probes.wildcard, observations.expected)
  )
    findings.push({
      code: 'wildcard_answer',
      severity: 'info',
      message: `The value comes from a wildcard: every unused name beside ${observations.name} has it`,
      fix: 'Nothing has to be done as long as the wildcard stays',
      details: { values: observations.probes.wildcard.map((value) => decodeValue(value.bytes)) },
    })
  const target = matching.find((server) => server.aliases.length > 0)?.aliases.at(-1)
  if (target !== undefined)
    findings.push({
      code: 'cname_at_name',
      severity: 'info',
      message: `${aliasWords(observations).is} of ${target}; the value is found there`,
      fix: 'Nothing has to be done as long as the alias stays',
      details: { target },
    })
  return findings
}

function partialPropagation(matching: readonly Observation[], without: readonly Observation[]): Finding {
  const serial = (server: Observation) => server.soa?.serial ?? null
  const place = (server: Observation) =>
    `${server.host}${serial(server) === null ? '' : ` (serial ${serial(server)})`}`
  const newest = new Set(matching.map(serial))
  const sameSerial = without.every((server) => serial(server) !== null && newest.has(serial(server)))
  const recordIsOlder = without.every((server) =>
    matching.every((other) => isNewer(serial(server), serial(other))),
  )
  const apart = serversApart(matching, without)
  const isLagging = !apart && !recordIsOlder && !sameSerial
  const refresh = without.flatMap((server) => server.soa?.refresh ?? [])
  const fix = apart
    ? `These are two zones at two places: the servers with the record name only ${apart.with.join(', ')}, the others only ${apart.without.join(', ')}. Waiting does not help: add the record at both, or have one of them taken out of the delegation`
    : recordIsOlder
      ? 'The servers without the record have the newer zone: it was removed there, or they are fed from another place. Add it where the newest zone is edited'
      : sameSerial
        ? 'Wait a little. If it stays so, the servers are not copies of each other although their serials agree: add the record at every provider that serves this zone'
        : 'Wait until the other name servers have copied the zone: seconds where they are notified of the change, else up to the time given (the refresh time of the SOA record). If it takes longer, ask the DNS provider why they do not'
  return {
    code: 'partial_propagation',
    severity: apart ? 'error' : 'warning',
    message: `${matching.length} of ${matching.length + without.length} name servers have the record: ${matching.map(place).join(', ')}; not yet: ${without.map(place).join(', ')}`,
    fix,
    ...(isLagging ? { secondsLeft: Math.max(...refresh, oldStateTtl(without) ?? 0) } : {}),
    details: {
      with: matching.map((server) => ({ ...who(server), serial: serial(server) })),
      without: without.map((server) => ({
        ...who(server),
        outcome: server.outcome,
        serial: serial(server),
      })),
      ...(apart ? { apart } : {}),
      old_state_ttl: oldStateTtl(without),
    },
  }
}

/**
 * The NS sets of the servers with the record and of those without, where they have no server in common: a domain moved
 * by half. Copies of one zone that is just being changed share some.
 */
function serversApart(
  matching: readonly Observation[],
  without: readonly Observation[],
): { with: string[]; without: string[] } | undefined {
  const hosts = (servers: readonly Observation[]) => [
    ...new Set(servers.flatMap((server) => server.nsSet ?? [])),
  ]
  const sets = { with: hosts(matching).sort(), without: hosts(without).sort() }
  const areKnown = [...matching, ...without].every((server) => server.nsSet !== undefined)
  return areKnown && sets.with.every((host) => !sets.without.includes(host)) ? sets : undefined
}

/** Serial numbers go round: which of two is newer follows from their distance (RFC 1982). */
function isNewer(serial: number | null, other: number | null): boolean {
  if (serial === null || other === null || serial === other) return false
  return (serial - other) >>> 0 < 0x8000_0000
}

const who = (server: Observation) => ({
  host: server.host,
  address: server.server?.address ?? null,
})

/** What makes the name an alias: a CNAME at it, or a DNAME above it, which leaves no name below it (RFC 6672 section 2.4). */
function aliasWords({ name, servers }: Observations): {
  is: string
  cause: string
  dname: string | undefined
} {
  const dname = servers.find((server) => server.aliases.length > 0)?.dname
  return dname === undefined
    ? { is: `${name} is an alias (CNAME)`, cause: `the CNAME at ${name}`, dname }
    : { is: `${name} is an alias (by the DNAME at ${dname})`, cause: `the DNAME at ${dname}`, dname }
}

/** A CNAME at the name excludes every other record there (RFC 1034 section 3.6.2). */
function aliasCause(observations: Observations): Finding | undefined {
  const { alias, name, expected, probes } = observations
  if (alias === undefined) return undefined
  const [target = ''] = alias.targets
  const last = alias.targets.at(-1) ?? ''
  const words = aliasWords(observations)
  const details = {
    ...(words.dname === undefined ? {} : { dname: words.dname }),
    chain: [...alias.targets],
    end: alias.end,
    values: alias.values.map((v) => decodeValue(v.bytes)),
  }
  if (probes?.coversName && probes.wildcardAlias === target)
    return {
      code: 'wildcard_answer',
      severity: 'error',
      message: `There is no record at ${name}: the answer is a wildcard's (an alias of ${target})`,
      fix: `Add the TXT record ${quote(expected)} at ${name}; a record of its own goes before the wildcard`,
      details: { ...details, wildcard_alias: target },
    }
  switch (alias.end) {
    case 'loop':
      return {
        code: 'cname_loop',
        severity: 'error',
        message: `${words.is} that ${loopText(name, alias.targets, words.dname)}`,
        fix: `Remove ${words.cause} and add the TXT record ${quote(expected)} at ${name}`,
        details,
      }
    case 'nxdomain':
      return {
        code: 'cname_dangling',
        severity: 'error',
        message:
          last.length > MAX_NAME_LENGTH
            ? `${words.is} of a name of ${last.length} characters, which cannot exist: DNS allows ${MAX_NAME_LENGTH}`
            : `${words.is} of ${last}, which does not exist`,
        fix: `Remove ${words.cause} if it is a leftover, and add the TXT record ${quote(expected)} at ${name}`,
        details,
      }
    default:
      return {
        code: 'cname_at_name',
        severity: 'error',
        message: `${words.is} of ${last}, so no TXT record can be ${words.dname === undefined ? 'beside it' : 'there'}; expected ${quote(expected)}, seen there: ${seenText(alias.values)}`,
        fix: `Either add the TXT record at ${last}, or replace ${words.cause} by ${words.dname === undefined ? 'address records' : 'records of their own for the names below'} and add the TXT record at ${name}`,
        details,
      }
  }
}

/** How aliases go on without end: in a circle, by a DNAME that applies to its own target, or through ever new names. */
function loopText(name: string, targets: readonly string[], dname: string | undefined): string {
  const chain = [name, ...targets]
  const last = targets.at(-1) ?? ''
  const start = `${chain.slice(0, 4).join(' → ')} → …`
  if (dname !== undefined && isWithin(targets[0] ?? '', dname))
    return `leads below ${dname} itself, where the same DNAME applies again, without end: ${start}`
  return chain.indexOf(last) < chain.length - 1
    ? `leads in a circle: ${chain.join(' → ')}`
    : `leads on without end: ${start}`
}

/** The name is an alias, and nobody told what is at its end: a lead, but no verdict. */
function aliasUnknown(observations: Observations, targets: readonly string[]): Finding {
  const target = targets.at(-1)
  return {
    code: 'cname_at_name',
    severity: 'error',
    message: `${aliasWords(observations).is} of ${target}, whose name servers could not be asked: whether the record is there is not known`,
    fix: `Check again. If the alias is a leftover, replace it by a TXT record ${quote(observations.expected)} at ${observations.name}`,
    certain: false,
    details: { chain: [...targets], end: 'unknown', certain: false },
  }
}

/** @param best what explains the values best; undefined where they have nothing to do with the record. */
function recordCause(
  observations: Observations,
  without: readonly Observation[],
  values: readonly TxtValue[],
  best: ExplainedValue | undefined,
): Finding {
  const { name, zone, expected, probes } = observations
  const isWildcard =
    values.length > 0 &&
    probes?.coversName === true &&
    probes.wildcard.length === values.length &&
    values.every((value) => hasValue(probes.wildcard, value.bytes))
  const misplaced = probes?.places.find((place) => hasText(place.values, observations.expected))
  if (misplaced !== undefined && (best === undefined || best.fault === 'stale_token'))
    return misplacedFinding(observations, misplaced)
  if (best === undefined && isRegistry(zone) && name !== zone) return undelegated(name, zone)
  if (isWildcard)
    return {
      code: 'wildcard_answer',
      severity: 'error',
      message: `There is no record at ${name}: the answer is a wildcard's. Expected ${quote(expected)}, seen ${seenText(values)}`,
      fix: `Add the TXT record ${quote(expected)} at ${name}; a record of its own goes before the wildcard`,
      details: { values: values.map((value) => decodeValue(value.bytes)) },
    }
  if (best !== undefined) return valueFinding(observations, best, oldStateTtl(without))
  return missing(name, zone, expected, without, values)
}

/**
 * Nobody can add a record to a registry's zone. Some registries have a wildcard or left-over addresses there, so that a
 * domain without a delegation has no NXDOMAIN.
 */
function undelegated(name: string, zone: string): Finding {
  const domain = registeredDomain(name, zone)
  return {
    code: 'domain_not_found',
    severity: 'error',
    message: `The domain ${domain} has no name servers of its own: the registry (${zone}) answers for it`,
    fix: `Check the spelling of ${domain}. If it is right, the domain is not registered, has expired, or has no name servers set at the registrar`,
    details: { domain, said_by: zone },
  }
}

function missing(
  name: string,
  zone: string,
  expected: string,
  without: readonly Observation[],
  values: readonly TxtValue[],
): Finding {
  const seen =
    values.length > 0
      ? `only ${values.length === 1 ? 'another TXT record' : `${values.length} other TXT records`}: ${seenText(values)}`
      : without.every((server) => server.outcome === 'nxdomain')
        ? 'the name does not exist yet'
        : 'there is no TXT record'
  return {
    code: 'missing',
    severity: 'error',
    message: `The TXT record is not at ${name}: expected ${quote(expected)}, ${seen}`,
    fix: `Add a TXT record in the zone ${zone}: host ${relativeName(name, zone)}, value ${expected}`,
    details: {
      zone,
      host_field: relativeName(name, zone),
      outcomes: [...new Set(without.map((server) => server.outcome))],
      values: values.map((value) => decodeValue(value.bytes)),
      negative_ttl: oldStateTtl(without),
    },
  }
}

function misplacedFinding(observations: Observations, place: Misplaced): Finding {
  const { name, zone, expected } = observations
  const host = relativeName(name, zone)
  if (place.how === 'wildcard')
    return {
      code: 'other_name',
      severity: 'error',
      message: `The record ${quote(expected)} is at the wildcard ${place.name}, which does not cover ${name} itself`,
      fix: `Add it at ${name} (host ${host})`,
      details: { found_at: place.name, expected_at: name, host_field: host },
    }
  if (place.how === 'doubled')
    return {
      code: 'doubled_name',
      severity: 'error',
      message: `The record ${quote(expected)} is at ${place.name} instead of ${name}: the provider appended the domain to the name that was typed`,
      fix: `Change the host of the record to ${host}${host === '@' ? ' (or leave it empty)' : ''}; the provider adds ${zone} by itself`,
      details: { found_at: place.name, expected_at: name, host_field: host },
    }
  return {
    code: 'other_name',
    severity: 'error',
    message: `The record ${quote(expected)} is at ${place.name} instead of ${name}`,
    fix: `Add it at ${name} (host ${host}) and remove it from ${place.name}`,
    details: { found_at: place.name, expected_at: name, host_field: host },
  }
}

/** An older proof beside the actual cause: not the cause, but worth knowing. */
function staleBeside(
  observations: Observations,
  cause: Finding,
  without: readonly Observation[],
  explained: readonly ExplainedValue[],
): Finding[] {
  if (cause.code === 'stale_token') return []
  const stale = explained.find((found) => found.fault === 'stale_token')
  return stale === undefined
    ? []
    : [{ ...valueFinding(observations, stale, oldStateTtl(without)), severity: 'info' }]
}

/** Half of all lost records were added at a provider that does not run the zone. */
function providerHint(observations: Observations): Finding {
  const hosts = [...new Set(observations.servers.map((server) => server.host))]
  const providers = providersOf(hosts)
  const run = providers.length > 0 ? providers.join(' and ') : hosts.join(', ')
  return {
    code: 'wrong_provider_hint',
    severity: 'info',
    message: `The zone ${observations.zone} is run by ${run}${providers.length > 0 ? ` (${hosts.join(', ')})` : ''}`,
    fix: `Edit the record there. Records added anywhere else (at the registrar, at the web host) have no effect`,
    details: { zone: observations.zone, providers, nameservers: hosts },
  }
}

function distinct(values: readonly TxtValue[]): TxtValue[] {
  return [...new Map(values.map((value) => [Buffer.from(value.bytes).toString('latin1'), value])).values()]
}

const quote = (text: string) => `"${text}"`

/** A few values, long ones cut: the whole of them is in the evidence. */
function seenText(values: readonly TxtValue[]): string {
  if (values.length === 0) return 'nothing'
  const shown = values.slice(0, 3).map((value) => {
    const text = decodeValue(value.bytes)
    return quote(text.length > 100 ? `${text.slice(0, 100)}…` : text)
  })
  return values.length > 3 ? `${shown.join(', ')} and ${values.length - 3} more` : shown.join(', ')
}
