import {
  groupByOutcome,
  type Observation,
  type Observations,
  oldStateTtl,
} from '../observation/observations.ts'
import { isPrivateRegistry } from '../resolution/registry.ts'
import { relativeName } from '../wire/name.ts'
import {
  decodeValues,
  distinctValues,
  findText,
  hasText,
  haveSameValues,
  type TxtValue,
} from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import {
  aliasCause,
  aliasRemark,
  aliasUnknown,
  cnameBesideRecord,
  cnameInsteadOfTxt,
  isValueAsName,
} from './findings-alias.ts'
import { isSplitDelegation, zoneNotDelegated } from './findings-delegation.ts'
import {
  hostForValue,
  misplacedFinding,
  prefixAsHost,
  splitAtEquals,
  valueAsHost,
} from './findings-misplaced.ts'
import { partialPropagation, unsteadyServer } from './findings-propagation.ts'
import { valueFinding } from './findings-value.ts'
import { providerHint, registryFinding } from './findings-zone.ts'
import { addedRecord, listValues } from './labels.ts'
import { quote, text, unquoted } from './text.ts'
import { type ExplainedValue, explainValues } from './value-comparison.ts'

/**
 * Why the record is missing, or missing at some servers. At most one error: the most likely cause. None if no authoritative
 * server answered.
 */
export function causeFindings(observations: Observations): Finding[] {
  const { undelegated } = observations
  if (undelegated !== undefined) return [zoneNotDelegated(observations, undelegated)]
  const { withRecord, withoutRecord } = groupByOutcome(observations.servers)
  if (withRecord.length > 0) {
    const partial = withoutRecord.length > 0 && !isSplitDelegation(observations, withRecord, withoutRecord)
    return [
      ...(partial ? [partialPropagation(observations, withRecord, withoutRecord)] : []),
      ...remarks(observations, withRecord),
    ]
  }
  if (observations.alias?.end === 'unknown') return [aliasUnknown(observations, observations.alias.targets)]
  if (withoutRecord.length === 0) return []
  const unsteady = observations.probes?.unsteady
  if (unsteady !== undefined) return [unsteadyServer(observations, unsteady, withoutRecord)]
  const values = distinctValues(withoutRecord.flatMap((server) => server.values))
  const explained = explainValues(observations.expected, decodeValues(values), observations.name)
  const cause = aliasCause(observations) ?? recordCause(observations, withoutRecord, values, explained[0])
  // Any other record was added at the right provider, even if it's wrong.
  const elsewhere = cause.code === 'missing' || cause.code === 'stale_token'
  return [
    cause,
    ...staleBeside(observations, cause, withoutRecord, explained),
    ...(elsewhere ? [providerHint(observations)] : []),
  ]
}

/** Remarks on a record that exists. */
function remarks(observations: Observations, matching: readonly Observation[]): Finding[] {
  const own = findText(
    matching.flatMap((server) => server.values),
    observations.expected,
  )
  const findings: Finding[] = []
  if (own !== undefined && own.strings.length > 1)
    findings.push({
      code: 'split_strings',
      severity: 'info',
      message: `The value is stored in ${own.strings.length} strings; joined, they match exactly`,
      fix: 'Nothing to do',
      details: { strings: own.strings.length },
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
      details: { values: decodeValues(observations.probes.wildcard) },
    })
  const aliases = [cnameBesideRecord(observations, matching), aliasRemark(observations, matching)]
  return [...findings, ...aliases.filter((finding) => finding !== undefined)]
}

/** @param best the best explanation of the values; undefined if they have nothing to do with the record. */
function recordCause(
  observations: Observations,
  without: readonly Observation[],
  values: readonly TxtValue[],
  best: ExplainedValue | undefined,
): Finding {
  const { name, expected, probes } = observations
  const isWildcard =
    values.length > 0 && probes?.coversName === true && haveSameValues(values, probes.wildcard)
  const isAbsent = best === undefined || best.fault === 'stale_token'
  const misplaced = probes?.misplaced.find((place) => hasText(place.values, expected))
  if (misplaced !== undefined && isAbsent) return misplacedFinding(observations, misplaced)
  const split = probes?.misplaced.find((place) => splitAtEquals(expected, place))
  if (split !== undefined && isAbsent) return prefixAsHost(observations, split)
  const asHost = probes?.misplaced.find((place) => valueAsHost(expected, place, probes))
  if (asHost !== undefined && isAbsent) return hostForValue(observations, asHost)
  const alias = probes?.misplaced.find((place) => isValueAsName(expected, place.alias ?? ''))
  if (alias?.alias !== undefined && isAbsent) return cnameInsteadOfTxt(observations, alias.name, alias.alias)
  const registry = best === undefined ? registryFinding(observations) : undefined
  if (registry !== undefined) return registry
  if (isWildcard)
    return {
      code: 'wildcard_answer',
      severity: 'error',
      message: text`There's no record at ${name} itself: a wildcard answers for it. Expected ${quote(expected)}, found ${listValues(values)}`,
      fix: text`A record at ${name} itself overrides the wildcard: add ${addedRecord(observations)}`,
      details: { values: decodeValues(values) },
    }
  if (best !== undefined) return valueFinding(observations, best, oldStateTtl(without))
  return missing(observations, without, values)
}

function missing(
  { name, zone, expected }: Observations,
  without: readonly Observation[],
  values: readonly TxtValue[],
): Finding {
  const host = relativeName(name, zone)
  const instead =
    values.length > 0
      ? text`found ${values.length === 1 ? 'another TXT record' : `${values.length} other TXT records`}: ${listValues(values)}`
      : without.every((server) => server.outcome === 'nxdomain')
        ? "the name doesn't exist yet"
        : 'there are no TXT records'
  return {
    code: 'missing',
    severity: 'error',
    message: text`The TXT record isn't at ${name}: expected ${quote(expected)}, ${instead}`,
    fix: isPrivateRegistry(zone)
      ? text`Check that ${name} is registered: anyone can register names below ${zone}. If ${zone} is yours, the host of the record is ${host} and its value is ${unquoted(expected)}`
      : text`Add ${addedRecord({ name, zone, expected })}`,
    details: {
      zone,
      host_field: host,
      outcomes: [...new Set(without.map((server) => server.outcome))],
      values: decodeValues(values),
      negative_ttl: oldStateTtl(without),
    },
  }
}

/** An older token next to the actual cause. */
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
