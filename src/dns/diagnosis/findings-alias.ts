import type { Observation, Observations, ZoneObservations } from '../observation/observations.ts'
import { isWithin, MAX_NAME_LENGTH, relativeName } from '../wire/name.ts'
import { decodeValues } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { addedRecord, listValues } from './labels.ts'
import { quote, text } from './text.ts'

const replacementAt = (name: string, zone: string) =>
  name === zone ? 'A/AAAA records (or ALIAS, if the provider has it)' : 'A/AAAA records'

/**
 * Why an alias doesn't have the record: a name with a CNAME can't have other records (RFC 1034 section 3.6.2). Without an
 * expected value, what the alias means for any TXT record; then only an alias that can't work is an error.
 */
export function aliasCause(observations: ZoneObservations): Finding | undefined {
  const { alias, name, zone, expected, probes } = observations
  if (alias === undefined) return undefined
  const [target = ''] = alias.targets
  const last = alias.targets.at(-1) ?? ''
  const phrases = describeAlias(observations)
  const details = {
    ...(phrases.dname === undefined ? {} : { dname: phrases.dname }),
    chain: [...alias.targets],
    end: alias.end,
    values: decodeValues(alias.values),
  }
  if (expected !== null && phrases.dname === undefined && isValueAsName(expected, target))
    return cnameInsteadOfTxt({ name, zone, expected }, name, target)
  const plain = expected === null ? 'TXT records' : 'the TXT record'
  const added = addedRecord(observations)
  if (probes?.coversName && probes.wildcardAlias === target)
    return {
      code: 'wildcard_answer',
      severity: 'error',
      message: `There's no record at ${name} itself: a wildcard alias (to ${target}) answers for it`,
      fix: text`A record at ${name} itself overrides the wildcard: add ${added}`,
      details: { ...details, wildcard_alias: target },
    }
  // The top of a zone has SOA and NS records (RFC 1912 section 2.4).
  const isAtApex = phrases.dname === undefined && name === zone
  const apex = isAtApex ? `. A CNAME isn't allowed at the top of a zone` : ''
  const replacement = isAtApex ? replacementAt(name, zone) : 'A/AAAA records'
  switch (alias.end) {
    case 'loop':
      return {
        code: 'cname_loop',
        severity: 'error',
        message: `${phrases.is} that ${loopText(name, alias.targets, phrases.dname)}${apex}`,
        fix: text`Remove ${phrases.cause} and add ${added}`,
        details,
      }
    case 'nxdomain':
      return {
        code: 'cname_dangling',
        severity: 'error',
        message: `${
          last.length > MAX_NAME_LENGTH
            ? `${phrases.is} for a name of ${last.length} characters, which can't exist: DNS allows ${MAX_NAME_LENGTH}`
            : `${phrases.is} for ${last}, which doesn't exist`
        }${apex}`,
        fix: text`Remove ${phrases.cause} if it's no longer needed, and add ${added}`,
        details,
      }
    case 'unknown':
      return aliasUnknown(observations, alias.targets)
    default:
      return {
        code: 'cname_at_name',
        severity: expected === null && !isAtApex ? 'info' : 'error',
        message: text`${phrases.is} for ${last}, so there can't be a TXT record ${phrases.dname === undefined ? 'next to it' : 'there'}; ${expected === null ? '' : text`expected ${quote(expected)}, `}found at the target: ${listValues(alias.values)}${apex}`,
        fix: isAtApex
          ? text`Replace ${phrases.cause} with ${replacement}, and add ${added}`
          : text`Either add ${plain} at ${last}${isWithin(last, zone) ? '' : ', if that name is yours'}, or replace ${phrases.cause} with ${phrases.dname === undefined ? replacement : 'separate records for the names below it'} and add ${added}`,
        details,
      }
  }
}

/** A CNAME next to the record: whoever caches or follows the CNAME doesn't see the record. */
export function cnameBesideRecord(
  { name, zone }: Observations,
  withRecord: readonly Observation[],
): Finding | undefined {
  const servers = withRecord.filter((server) => server.cnameBeside !== undefined)
  const target = servers[0]?.cnameBeside
  if (target === undefined) return undefined
  const hosts = [...new Set(servers.map(({ host }) => host))]
  return {
    code: 'cname_at_name',
    severity: 'error',
    message: `${name} has a CNAME record (to ${target}) next to the TXT record, which DNS doesn't allow (RFC 1034 section 3.6.2): resolvers that follow the CNAME don't see the TXT record, and waiting won't help`,
    fix: `Remove the CNAME at ${name}, or replace it with ${replacementAt(name, zone)}`,
    details: { target, servers: hosts },
  }
}

/** The value is there, through an alias. */
export function aliasRemark(
  observations: Observations,
  withRecord: readonly Observation[],
): Finding | undefined {
  const target = withRecord.find((server) => server.aliases.length > 0)?.aliases.at(-1)
  if (target === undefined) return undefined
  return {
    code: 'cname_at_name',
    severity: 'info',
    message: `${describeAlias(observations).is} for ${target}; the value was found there`,
    fix: 'Nothing to do, as long as the alias stays',
    details: { target },
  }
}

/** The name is an alias, and what it leads to couldn't be queried. */
export function aliasUnknown(observations: ZoneObservations, targets: readonly string[]): Finding {
  const { expected } = observations
  const target = targets.at(-1)
  return {
    code: 'cname_at_name',
    severity: 'error',
    message: `${describeAlias(observations).is} for ${target}, whose name servers couldn't be queried, so it's unknown ${expected === null ? 'which TXT records are' : 'whether the record is'} there`,
    fix: text`Check again. If the alias is no longer needed, remove it and add ${addedRecord(observations)}`,
    certain: false,
    details: { chain: [...targets], end: 'unknown', certain: false },
  }
}

/**
 * Whether a name, such as the target of an alias, is the TXT value or its part after the first `=`, perhaps with the domain
 * appended. The name is in lowercase.
 */
export function isValueAsName(expected: string, name: string): boolean {
  const value = expected.toLowerCase()
  const token = value.slice(value.indexOf('=') + 1)
  return [value, token].some((part) => part.length >= 8 && (name === part || name.startsWith(`${part}.`)))
}

/** The right value in a record of the wrong type. */
export function cnameInsteadOfTxt(
  { name, zone, expected }: Pick<Observations, 'name' | 'zone' | 'expected'>,
  at: string,
  target: string,
): Finding {
  return {
    code: 'cname_instead_of_txt',
    severity: 'error',
    message: `The value was entered as a CNAME record instead of a TXT record: ${at} is an alias for ${target}`,
    fix: text`Delete the CNAME record at ${at}, and add ${addedRecord({ name, zone, expected })}`,
    details: { found_at: at, target, expected_at: name, host_field: relativeName(name, zone) },
  }
}

/** What makes the name an alias: its CNAME, or a DNAME above it (RFC 6672 section 2.4). */
function describeAlias({ name, servers }: ZoneObservations): {
  is: string
  cause: string
  dname: string | undefined
} {
  const dname = servers.find((server) => server.aliases.length > 0)?.dname
  return dname === undefined
    ? { is: `${name} is an alias (CNAME)`, cause: `the CNAME at ${name}`, dname }
    : { is: `${name} is an alias (through the DNAME at ${dname})`, cause: `the DNAME at ${dname}`, dname }
}

/** How aliases never end: in a circle, through a DNAME that applies to its own target, or through ever new names. */
function loopText(name: string, targets: readonly string[], dname: string | undefined): string {
  const chain = [name, ...targets]
  const last = targets.at(-1) ?? ''
  const start = `${chain.slice(0, 4).join(' → ')} → …`
  if (dname !== undefined && isWithin(targets[0] ?? '', dname))
    return `leads back below ${dname}, where the same DNAME applies again, endlessly: ${start}`
  return chain.indexOf(last) < chain.length - 1
    ? `leads in a circle: ${chain.join(' → ')}`
    : `never ends: ${start}`
}
