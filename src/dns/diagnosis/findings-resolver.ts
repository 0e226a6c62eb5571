import { formatDuration } from '../../terminal/duration.ts'
import {
  groupByOutcome,
  isFailure,
  type Observations,
  type ResolverObservation,
} from '../observation/observations.ts'
import { formatDnsAddress } from '../wire/address.ts'
import { decodeValue } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { failsValidation } from './findings-dnssec.ts'

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
  switch (resolver.outcome) {
    case 'match':
    case 'not_checked':
      return undefined
    case 'absent':
    case 'nxdomain':
    case 'mismatch':
      return withoutRecord(observations, resolver)
    default:
      // Why it fails is a finding already: signatures that it rejects, or servers that do not answer it.
      return failsValidation(resolver) ||
        (isFailure(resolver) && observations.servers.some((server) => server.dropped !== undefined))
        ? undefined
        : broken(observations, resolver)
  }
}

/** Why a resolver has no such record: only what it remembers goes away by waiting. */
function withoutRecord(observations: Observations, resolver: ResolverObservation): Finding {
  const { zoneView } = resolver
  // With authority: a zone of its own. It remembers nothing.
  if (resolver.authoritative) return otherView(observations, resolver, 'answers from a zone of its own')
  const stale = staleNameServers(observations, resolver)
  if (stale !== undefined) return stale
  const primaries = observations.servers.flatMap((server) => server.soa?.primary ?? [])
  const primary = zoneView?.soa?.primary
  if (primary !== undefined && primaries.length > 0 && !primaries.includes(primary))
    return otherView(
      observations,
      resolver,
      `answers from another zone of this name, whose SOA record names ${primary}`,
    )
  const isMismatch = resolver.outcome === 'mismatch'
  const seconds = isMismatch ? (resolver.ttl ?? undefined) : rememberedSeconds(observations, resolver)
  if (seconds === undefined) return filtered(observations, resolver)
  if (zoneView?.steadyTtl === true)
    return otherView(
      observations,
      resolver,
      'answers from something other than a cache (its TTL stays the same)',
    )
  return isMismatch ? cachedOldValue(observations, resolver, seconds) : cachedAbsence(resolver, seconds)
}

/** Only an absence that comes with an SOA record can be cached (RFC 2308 section 5); so can an alias of before. */
function rememberedSeconds({ servers }: Observations, resolver: ResolverObservation): number | undefined {
  if (resolver.negativeTtl !== undefined) return resolver.negativeTtl
  const [alias] = resolver.aliases
  const isCurrent = servers.some((server) => server.aliases[0] === alias)
  return alias === undefined || isCurrent ? undefined : (resolver.ttl ?? undefined)
}

/** The resolver knows none of today's name servers: it remembers others, or it was told to ask others. */
function staleNameServers(observations: Observations, resolver: ResolverObservation): Finding | undefined {
  const { parent, childHosts, zone } = observations
  const { nsSet } = resolver.zoneView ?? {}
  const current = [...(parent?.hosts ?? []), ...(childHosts ?? [])]
  if (nsSet === undefined || current.length === 0 || nsSet.hosts.some((host) => current.includes(host)))
    return undefined
  const hosts = nsSet.hosts.join(', ')
  if (nsSet.isPrivate)
    return otherView(observations, resolver, `asks name servers of a private network (${hosts})`)
  const address = formatDnsAddress(resolver.resolver)
  return {
    code: 'stale_delegation',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} still asks the previous name servers of ${zone} (${hosts}), for up to ${formatDuration(nsSet.ttl)} more`,
    fix: `Wait, or delete the zone ${zone} at the previous provider: then resolvers ask for the new name servers at once. If ${address} was set up to ask those servers (split DNS), neither helps, and verification does not depend on it`,
    secondsLeft: nsSet.ttl,
    details: { resolver: address, previous: [...nsSet.hosts], current: [...new Set(current)] },
  }
}

/** Without the SOA record that goes with every absence (RFC 2308 section 3): somebody took the record out of the answer. */
function filtered(observations: Observations, resolver: ResolverObservation): Finding {
  const address = formatDnsAddress(resolver.resolver)
  const how =
    resolver.outcome === 'nxdomain'
      ? `blocks ${observations.name}: it answers that the name doesn't exist`
      : 'leaves TXT records out of its answers: they are empty'
  return {
    code: 'txt_filtered',
    severity: 'warning',
    message: `The name servers have the record, but ${address} ${how}, without the SOA record that a true absence has`,
    fix: `Verification sees what the name servers of ${observations.zone} say, and waiting changes nothing here. To see the record here as well, look into the DNS settings of the router or filter at ${address}, or use another resolver (--resolver)`,
    details: { resolver: address, outcome: resolver.outcome },
  }
}

function cachedAbsence(resolver: ResolverObservation, seconds: number): Finding {
  const address = formatDnsAddress(resolver.resolver)
  return {
    code: 'cached_absence',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} has cached that there was none, for ${seconds} more seconds`,
    fix: `Wait ${seconds} seconds; there's nothing to change`,
    secondsLeft: seconds,
    details: { resolver: address, outcome: resolver.outcome },
  }
}

function cachedOldValue(observations: Observations, resolver: ResolverObservation, seconds: number): Finding {
  const address = formatDnsAddress(resolver.resolver)
  const values = resolver.values.map((value) => decodeValue(value.bytes))
  return {
    code: 'cached_old_value',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} still has the old TXT records cached, for ${seconds} more seconds: expected "${observations.expected}", found ${values.map((value) => `"${value}"`).join(', ')}`,
    fix: `Wait ${seconds} seconds; there's nothing to change`,
    secondsLeft: seconds,
    details: { resolver: address, values },
  }
}

function otherView(observations: Observations, resolver: ResolverObservation, how: string): Finding {
  const address = formatDnsAddress(resolver.resolver)
  return {
    code: 'split_dns',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} ${how}, which doesn't have it (split DNS)`,
    fix: `Verification sees what the name servers of ${observations.zone} say, and waiting changes nothing here. To see the record behind ${address} as well, add it to the zone there, or allow it in the filter if one runs there`,
    details: {
      resolver: address,
      outcome: resolver.outcome,
      authoritative: resolver.authoritative,
      primary: resolver.zoneView?.soa?.primary ?? null,
      values: resolver.values.map((value) => decodeValue(value.bytes)),
    },
  }
}

/** Servers that take so long, in milliseconds, keep resolvers waiting for longer than these may take. */
const SLOW_MS = 1000

function broken(observations: Observations, resolver: ResolverObservation): Finding {
  const times = observations.servers.flatMap(({ ms }) => ms ?? [])
  const areSlow = isFailure(resolver) && times.every((ms) => ms > SLOW_MS)
  const address = formatDnsAddress(resolver.resolver)
  const said =
    resolver.outcome === 'timeout'
      ? "doesn't answer"
      : resolver.outcome === 'unreachable'
        ? "can't be reached"
        : `answers ${resolver.rcode ?? resolver.outcome.toUpperCase()}`
  return {
    code: 'resolver_broken',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} ${said}${areSlow ? `: it waits for the name servers, which need ${(Math.min(...times) / 1000).toFixed(1)} seconds or more for an answer` : ''}`,
    fix: areSlow
      ? `Check again: by then, the resolver may have the answer. If it stays slow, ask the DNS provider why the name servers of ${observations.zone} are`
      : `Verification does not depend on this resolver. If other lookups fail here as well, have ${address} repaired or use another one (--resolver)`,
    details: {
      resolver: address,
      outcome: resolver.outcome,
      rcode: resolver.rcode ?? null,
      with_checking_disabled: resolver.unchecked?.outcome ?? null,
      extended_error: resolver.extendedError ?? null,
    },
  }
}
