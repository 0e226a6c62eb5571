import type { Observation, Observations } from '../observation/observations.ts'
import { isWithin, MAX_NAME_LENGTH, relativeName } from '../wire/name.ts'
import { decodeValue } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { listValues, quote } from './labels.ts'

/** Why a name that is an alias doesn't have the record: a CNAME excludes every other record there (RFC 1034 section 3.6.2). */
export function aliasCause(observations: Observations): Finding | undefined {
  const { alias, name, zone, expected, probes } = observations
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
  if (words.dname === undefined && targetsValue(expected, target))
    return cnameInsteadOfTxt(observations, name, target)
  if (probes?.coversName && probes.wildcardAlias === target)
    return {
      code: 'wildcard_answer',
      severity: 'error',
      message: `There is no record at ${name} itself: a wildcard answers for it (an alias for ${target})`,
      fix: `Add the TXT record ${quote(expected)} at ${name}; a record there overrides the wildcard`,
      details: { ...details, wildcard_alias: target },
    }
  // Beside the SOA and NS records that every zone has at its top (RFC 1912 section 2.4).
  const isAtApex = words.dname === undefined && name === zone
  const apex = isAtApex ? `. A CNAME isn't allowed at the top of a zone` : ''
  const replacement = isAtApex ? 'A/AAAA records (or ALIAS, if the provider has it)' : 'A/AAAA records'
  switch (alias.end) {
    case 'loop':
      return {
        code: 'cname_loop',
        severity: 'error',
        message: `${words.is} that ${loopText(name, alias.targets, words.dname)}${apex}`,
        fix: `Remove ${words.cause} and add the TXT record ${quote(expected)} at ${name}`,
        details,
      }
    case 'nxdomain':
      return {
        code: 'cname_dangling',
        severity: 'error',
        message: `${
          last.length > MAX_NAME_LENGTH
            ? `${words.is} for a name of ${last.length} characters, which can't exist: DNS allows ${MAX_NAME_LENGTH}`
            : `${words.is} for ${last}, which doesn't exist`
        }${apex}`,
        fix: `Remove ${words.cause} if it's no longer needed, and add the TXT record ${quote(expected)} at ${name}`,
        details,
      }
    default:
      return {
        code: 'cname_at_name',
        severity: 'error',
        message: `${words.is} for ${last}, so there can't be a TXT record ${words.dname === undefined ? 'next to it' : 'there'}; expected ${quote(expected)}, found at the target: ${listValues(alias.values)}${apex}`,
        fix: isAtApex
          ? `Replace ${words.cause} with ${replacement} and add the TXT record ${quote(expected)}`
          : `Either add the TXT record at ${last}, or replace ${words.cause} with ${words.dname === undefined ? replacement : 'separate records for the names below it'} and add the TXT record at ${name}`,
        details,
      }
  }
}

/** The value is there, through an alias: worth knowing, nothing to fix. */
export function aliasRemark(
  observations: Observations,
  matching: readonly Observation[],
): Finding | undefined {
  const target = matching.find((server) => server.aliases.length > 0)?.aliases.at(-1)
  if (target === undefined) return undefined
  return {
    code: 'cname_at_name',
    severity: 'info',
    message: `${aliasWords(observations).is} for ${target}; the value was found there`,
    fix: 'Nothing to do, as long as the alias stays',
    details: { target },
  }
}

/** The name is an alias, and nobody told what is at its end: a lead, but no verdict. */
export function aliasUnknown(observations: Observations, targets: readonly string[]): Finding {
  const target = targets.at(-1)
  return {
    code: 'cname_at_name',
    severity: 'error',
    message: `${aliasWords(observations).is} for ${target}, whose name servers couldn't be queried, so it's unknown whether the record is there`,
    fix: `Check again. If the alias is no longer needed, replace it with a TXT record ${quote(observations.expected)} at ${observations.name}`,
    certain: false,
    details: { chain: [...targets], end: 'unknown', certain: false },
  }
}

/** Whether an alias leads to the TXT value, perhaps with the domain appended. DNS names come in lower case. */
export function targetsValue(expected: string, target: string): boolean {
  const value = expected.toLowerCase()
  return value.length >= 8 && (target === value || target.startsWith(`${value}.`))
}

/** The right value in a record of the wrong type. */
export function cnameInsteadOfTxt(observations: Observations, at: string, target: string): Finding {
  const { name, zone, expected } = observations
  const host = relativeName(name, zone)
  return {
    code: 'cname_instead_of_txt',
    severity: 'error',
    message: `The value was entered as a CNAME record instead of a TXT record: ${at} is an alias for ${target}`,
    fix: `Delete the CNAME record at ${at} and add a record of type TXT: host ${host}, value ${expected}`,
    details: { found_at: at, target, expected_at: name, host_field: host },
  }
}

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

/** How aliases go on without end: in a circle, by a DNAME that applies to its own target, or through ever new names. */
function loopText(name: string, targets: readonly string[], dname: string | undefined): string {
  const chain = [name, ...targets]
  const last = targets.at(-1) ?? ''
  const start = `${chain.slice(0, 4).join(' → ')} → …`
  if (dname !== undefined && isWithin(targets[0] ?? '', dname))
    return `leads below ${dname} itself, where the same DNAME applies again, endlessly: ${start}`
  return chain.indexOf(last) < chain.length - 1
    ? `leads in a circle: ${chain.join(' → ')}`
    : `never ends: ${start}`
}
