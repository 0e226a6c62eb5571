import {
  groupByOutcome,
  isDnsData,
  type Observations,
  oldStateTtl,
  type ResolverObservation,
} from '../observation/observations.ts'
import { formatDnsAddress } from '../wire/address.ts'
import { isWithin } from '../wire/name.ts'
import { decodeValue } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'

/** What recursive resolvers see of a record that the authoritative servers have. */
export function resolverFindings(observations: Observations): Finding[] {
  const { matching } = groupByOutcome(observations.servers)
  // Asked for the sake of an answer that could not be read directly: their failure is no finding of its own.
  if (matching.length === 0) return []
  return observations.resolvers.flatMap((resolver) => {
    const finding = resolverFinding(observations, resolver)
    return finding === undefined ? [] : [finding]
  })
}

function resolverFinding(observations: Observations, resolver: ResolverObservation): Finding | undefined {
  // With authority: a zone of its own, as in split DNS. It remembers nothing, so there is nothing to wait for.
  if (resolver.authoritative && isDnsData(resolver.outcome) && resolver.outcome !== 'match')
    return otherView(observations, resolver)
  switch (resolver.outcome) {
    case 'match':
    case 'not_checked':
      return undefined
    case 'absent':
    case 'nxdomain':
      return cachedAbsence(observations, resolver)
    case 'mismatch':
      return cachedOldValue(observations, resolver)
    case 'servfail':
      return resolver.unchecked !== undefined && isDnsData(resolver.unchecked.outcome)
        ? dnssecBogus(observations, resolver)
        : broken(resolver)
    default:
      return broken(resolver)
  }
}

function cachedAbsence(observations: Observations, resolver: ResolverObservation): Finding {
  const seconds = resolver.negativeTtl ?? oldStateTtl(observations.servers) ?? 0
  const address = formatDnsAddress(resolver.resolver)
  return {
    code: 'cached_absence',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} remembers that there was none, for ${seconds} seconds more`,
    fix: `Wait ${seconds} seconds; nothing has to be changed`,
    secondsLeft: seconds,
    details: { resolver: address, outcome: resolver.outcome },
  }
}

function cachedOldValue(observations: Observations, resolver: ResolverObservation): Finding {
  const seconds = resolver.ttl ?? oldStateTtl(observations.servers) ?? 0
  const address = formatDnsAddress(resolver.resolver)
  const values = resolver.values.map((value) => decodeValue(value.bytes))
  return {
    code: 'cached_old_value',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} remembers the old TXT set, for ${seconds} seconds more: expected "${observations.expected}", seen ${values.map((value) => `"${value}"`).join(', ')}`,
    fix: `Wait ${seconds} seconds; nothing has to be changed`,
    secondsLeft: seconds,
    details: { resolver: address, values },
  }
}

function otherView(observations: Observations, resolver: ResolverObservation): Finding {
  const address = formatDnsAddress(resolver.resolver)
  return {
    code: 'resolver_broken',
    severity: 'warning',
    message: `The name servers have the record, but ${address} answers from a zone of its own that lacks it (split DNS)`,
    fix: `Verification sees what the name servers of ${observations.zone} say. To see the record behind ${address} as well, add it to the zone there`,
    details: {
      resolver: address,
      outcome: resolver.outcome,
      authoritative: true,
      values: resolver.values.map((value) => decodeValue(value.bytes)),
    },
  }
}

function dnssecBogus(observations: Observations, resolver: ResolverObservation): Finding {
  const address = formatDnsAddress(resolver.resolver)
  // Which of the two is not signed well, the resolver does not say.
  const target = observations.alias?.targets.at(-1)
  const zones =
    target === undefined || isWithin(target, observations.zone)
      ? observations.zone
      : `${observations.zone}, or of the zone of ${target},`
  const given = resolver.unchecked?.outcome === 'match' ? 'the record' : 'an answer'
  return {
    code: 'dnssec_bogus',
    severity: 'error',
    message: `The record is there, but the DNSSEC signatures of ${zones} are not valid: ${address} answers SERVFAIL, and gives ${given} only with checking disabled`,
    fix: `Repair DNSSEC of ${zones.replace(/,$/, '')}: have the zone signed anew, or correct or remove the DS record at the registrar. Until then, validating resolvers see nothing of this zone`,
    details: {
      resolver: address,
      with_checking: 'SERVFAIL',
      with_checking_disabled: resolver.unchecked?.outcome ?? null,
      extended_error: resolver.extendedError ?? null,
    },
  }
}

function broken(resolver: ResolverObservation): Finding {
  const address = formatDnsAddress(resolver.resolver)
  const said =
    resolver.outcome === 'timeout'
      ? 'does not answer'
      : resolver.outcome === 'unreachable'
        ? 'cannot be reached'
        : `answers ${resolver.rcode ?? resolver.outcome.toUpperCase()}`
  return {
    code: 'resolver_broken',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} ${said}`,
    fix: `Verification does not depend on this resolver. If other look-ups fail here as well, have ${address} repaired or use another one (--resolver)`,
    details: {
      resolver: address,
      outcome: resolver.outcome,
      rcode: resolver.rcode ?? null,
      with_checking_disabled: resolver.unchecked?.outcome ?? null,
      extended_error: resolver.extendedError ?? null,
    },
  }
}
