import {
  groupByOutcome,
  type Observation,
  type Observations,
  oldStateTtl,
} from '../observation/observations.ts'
import { isPrivateRegistry, isRegistry, registeredDomain } from '../resolution/registry.ts'
import { relativeName } from '../wire/name.ts'
import { decodeValue, hasText, hasValue, type TxtValue } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { aliasCause, aliasRemark, aliasUnknown, cnameInsteadOfTxt, targetsValue } from './findings-alias.ts'
import { misplacedFinding, prefixAsHost, splitAtEquals } from './findings-place.ts'
import { partialPropagation } from './findings-propagation.ts'
import { isDivided } from './findings-server.ts'
import { valueFinding } from './findings-value.ts'
import { listValues, quote } from './labels.ts'
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
    return [
      ...(partial ? [partialPropagation(observations, matching, without)] : []),
      ...remarks(observations, matching),
    ]
  }
  if (observations.alias?.end === 'unknown') return [aliasUnknown(observations, observations.alias.targets)]
  if (without.length === 0) return []
  const values = distinct(without.flatMap((server) => server.values))
  const explained = explainValues(
    observations.expected,
    values.map((value) => decodeValue(value.bytes)),
    observations.name,
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
      message: `The value is stored in ${own.strings} strings; joined, they match exactly`,
      fix: 'Nothing to do',
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
      message: `The value comes from a wildcard: every unused name next to ${observations.name} has it too`,
      fix: 'Nothing to do, as long as the wildcard stays',
      details: { values: observations.probes.wildcard.map((value) => decodeValue(value.bytes)) },
    })
  const alias = aliasRemark(observations, matching)
  return alias === undefined ? findings : [...findings, alias]
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
  const isAbsent = best === undefined || best.fault === 'stale_token'
  const misplaced = probes?.places.find((place) => hasText(place.values, expected))
  if (misplaced !== undefined && isAbsent) return misplacedFinding(observations, misplaced)
  const split = probes?.places.find((place) => splitAtEquals(expected, place))
  if (split !== undefined && isAbsent) return prefixAsHost(observations, split)
  const alias = probes?.places.find((place) => targetsValue(expected, place.alias ?? ''))
  if (alias?.alias !== undefined && isAbsent) return cnameInsteadOfTxt(observations, alias.name, alias.alias)
  if (best === undefined && isRegistry(name)) return registryName(name)
  if (best === undefined && isRegistry(zone) && name !== zone) return undelegated(name, zone)
  if (isWildcard)
    return {
      code: 'wildcard_answer',
      severity: 'error',
      message: `There is no record at ${name} itself: a wildcard answers for it. Expected ${quote(expected)}, found ${listValues(values)}`,
      fix: `Add the TXT record ${quote(expected)} at ${name}; a record there overrides the wildcard`,
      details: { values: values.map((value) => decodeValue(value.bytes)) },
    }
  if (best !== undefined) return valueFinding(observations, best, oldStateTtl(without))
  return missing(observations, without, values)
}

/** Only the registry itself edits that zone; what was meant is a domain below it. */
function registryName(name: string): Finding {
  return {
    code: 'domain_not_found',
    severity: 'error',
    message: `${name} isn't a registered domain but a registry's zone: only the registry can change records there`,
    fix: `Check your registered domain instead, such as example.${name}`,
    details: { domain: name, said_by: name },
  }
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
    fix: `Check the spelling of ${domain}. If it's right, the domain isn't registered, has expired, or has no name servers set at the registrar`,
    details: { domain, said_by: zone },
  }
}

function missing(
  { name, zone, expected }: Observations,
  without: readonly Observation[],
  values: readonly TxtValue[],
): Finding {
  const host = relativeName(name, zone)
  const instead =
    values.length > 0
      ? `found ${values.length === 1 ? 'another TXT record' : `${values.length} other TXT records`}: ${listValues(values)}`
      : without.every((server) => server.outcome === 'nxdomain')
        ? "the name doesn't exist yet"
        : 'there are no TXT records'
  return {
    code: 'missing',
    severity: 'error',
    message: `The TXT record isn't at ${name}: expected ${quote(expected)}, ${instead}`,
    fix: isPrivateRegistry(zone)
      ? `Check that ${name} is registered: ${zone} is a zone below which anyone can have names. If ${zone} is yours, the host of the record is ${host}, and its value ${expected}`
      : `Add a TXT record in the zone ${zone}: host ${host}, value ${expected}`,
    details: {
      zone,
      host_field: host,
      outcomes: [...new Set(without.map((server) => server.outcome))],
      values: values.map((value) => decodeValue(value.bytes)),
      negative_ttl: oldStateTtl(without),
    },
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
    message: `The zone ${observations.zone} is hosted by ${run}${providers.length > 0 ? ` (${hosts.join(', ')})` : ''}`,
    fix: 'Edit the record there. Records added anywhere else (at the registrar, at the web host) have no effect',
    details: { zone: observations.zone, providers, nameservers: hosts },
  }
}

function distinct(values: readonly TxtValue[]): TxtValue[] {
  return [...new Map(values.map((value) => [Buffer.from(value.bytes).toString('latin1'), value])).values()]
}
