import { withoutUnderscores } from '../observation/misplaced-records.ts'
import type { MisplacedRecord, Observations, ProbeResult } from '../observation/observations.ts'
import { relativeName } from '../wire/name.ts'
import { hasText, haveSameValues } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { isValueAsName } from './findings-alias.ts'
import { addedRecord } from './labels.ts'
import { quote, text } from './text.ts'

/** The right value at the wrong name. */
export function misplacedFinding(observations: Observations, place: MisplacedRecord): Finding {
  const { name, zone, expected } = observations
  const host = relativeName(name, zone)
  const record = text`The TXT record ${quote(expected)} is at ${place.name}`
  const details = { found_at: place.name, expected_at: name, host_field: host }
  const [first = ''] = name.split('.')
  const why =
    name !== zone && place.name === `${first}.${name}`
      ? text`${quote(first)} was entered twice, or the provider added it`
      : 'the provider appended the domain to the name that was entered'
  const isDoubledByCaller = name === `${place.name}.${zone}` || name === `${place.name}.${place.name}`
  if (isDoubledByCaller)
    return {
      code: 'other_name',
      severity: 'error',
      message: text`${record}, which looks right: the name that was checked, ${name}, has the domain twice`,
      fix: `Check ${place.name} instead. Only if the record really belongs at ${name}, add it there (host ${host})`,
      details,
    }
  switch (place.how) {
    case 'wildcard':
      return {
        code: 'other_name',
        severity: 'error',
        message: text`The TXT record ${quote(expected)} is at the wildcard ${place.name}, which doesn't cover ${name} itself`,
        fix: `Add it at ${name} (host ${host})`,
        details,
      }
    case 'doubled':
      return {
        code: 'doubled_name',
        severity: 'error',
        message: text`${record} instead of ${name}: ${why}`,
        fix: `Change the host of the record to ${host}${host === '@' ? ' (or leave it empty)' : ''}; the provider adds ${zone} automatically`,
        details,
      }
    case 'at_sign':
      return {
        code: 'other_name',
        severity: 'error',
        message: text`${record} instead of ${name}: the provider took the ${quote('@')} in the host field literally`,
        fix: `${host === '@' ? 'Leave the host field of the record empty, or enter @ without quotation marks' : `Change the host of the record to ${host}`}. If the provider still doesn't accept it, enter the full name with a dot at the end: ${name}.`,
        details,
      }
    case 'other':
      return {
        code: 'other_name',
        severity: 'error',
        message: text`${record} instead of ${name}${place.name === withoutUnderscores(name) ? ': the underscore is missing' : ''}`,
        fix: `Add it at ${name} (host ${host}) and remove it from ${place.name}`,
        details,
      }
  }
}

/** Whether the part before the first `=` was entered as the host, and the rest as the value. */
export function splitAtEquals(expected: string, place: MisplacedRecord): boolean {
  const at = expected.indexOf('=')
  const prefix = expected.slice(0, Math.max(at, 0)).toLowerCase()
  const [label = ''] = place.name.split('.')
  return prefix !== '' && label.replace(/^_/, '') === prefix && hasText(place.values, expected.slice(at + 1))
}

/** Whether the value, or the part after its first `=`, was entered as the host, and no wildcard made the record there. */
export function valueAsHost(expected: string, place: MisplacedRecord, probes: ProbeResult): boolean {
  if (!isValueAsName(expected, place.name)) return false
  const wildcards = [
    { alias: probes.wildcardAlias, values: probes.wildcard },
    ...probes.misplaced.filter(({ how }) => how === 'wildcard'),
  ]
  return !wildcards.some(({ alias, values }) => alias === place.alias && haveSameValues(values, place.values))
}

/** The value was entered as the host. */
export function hostForValue({ name, zone, expected }: Observations, place: MisplacedRecord): Finding {
  const host = relativeName(name, zone)
  const what = place.alias === undefined ? 'a TXT record' : `an alias (CNAME) for ${place.alias}`
  return {
    code: 'other_name',
    severity: 'error',
    message: text`The value was entered as the host: there is ${what} at ${place.name}. Expected a TXT record ${quote(expected)} at ${name}`,
    fix: text`Remove the record at ${place.name}, and add ${addedRecord({ name, zone, expected })}`,
    details: { found_at: place.name, expected_at: name, host_field: host },
  }
}

/** The part before the first `=` was entered as the host. */
export function prefixAsHost({ name, zone, expected }: Observations, place: MisplacedRecord): Finding {
  const host = relativeName(name, zone)
  return {
    code: 'other_name',
    severity: 'error',
    message: text`The part before ${quote('=')} was entered as the host (${place.name}), and only the rest as the value. Both belong in the value: expected ${quote(expected)} at ${name}`,
    fix: text`Add ${addedRecord({ name, zone, expected })}`,
    details: { found_at: place.name, expected_at: name, host_field: host },
  }
}
