import { formatDuration } from '../../terminal/duration.ts'
import {
  groupByOutcome,
  isFailure,
  type Observations,
  type ResolverObservation,
  type ZoneObservations,
} from '../observation/observations.ts'
import { formatDnsAddress, isPrivateAddress, isServerAddress } from '../wire/address.ts'
import { decodeValues } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { failsValidation } from './findings-dnssec.ts'
import { explainsResolver } from './findings-transport.ts'
import { cacheTime, listValues } from './labels.ts'
import { quote, text } from './text.ts'

/** The resolvers that lack a record which the authoritative servers have, or that fail. */
export function resolverFindings(observations: Observations): Finding[] {
  const { withRecord } = groupByOutcome(observations.servers)
  // They were asked only because no server's answer could be read, so their failure isn't a finding.
  if (withRecord.length === 0) return []
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
      // The CNAME next to the record is a finding already.
      return followsCnameBeside(observations, resolver) || isExplained(observations, resolver)
        ? undefined
        : withoutRecord(observations, resolver)
    default:
      // Another finding says why it fails.
      return failsValidation(resolver) || isExplained(observations, resolver)
        ? undefined
        : broken(observations, resolver)
  }
}

/** Whether another finding, on name servers that don't answer all queries or that are aliases, says why it lacks the record. */
const isExplained = (observations: Observations, resolver: ResolverObservation) =>
  explainsResolver(observations, resolver) ||
  (isFailure(resolver) && [...(observations.hostAliases?.values() ?? [])].some(({ hasGlue }) => !hasGlue))

/** Why a resolver lacks the record. Waiting only helps if it is cached. */
function withoutRecord(observations: Observations, resolver: ResolverObservation): Finding {
  const { zoneView } = resolver
  // An authoritative answer comes from a zone, not from a cache.
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
  const seconds = cachedSeconds(observations, resolver)
  if (seconds === undefined) return filtered(observations, resolver)
  if (zoneView?.steadyTtl === true)
    return otherView(
      observations,
      resolver,
      'answers from something other than a cache (its TTL stays the same)',
    )
  return isMismatch
    ? cachedOldValue(observations, resolver, seconds)
    : cachedAbsence(observations, resolver, seconds)
}

function followsCnameBeside({ servers }: Observations, { aliases: [alias] }: ResolverObservation): boolean {
  return alias !== undefined && servers.some((server) => server.cnameBeside === alias)
}

/** The alias that a resolver follows although the name servers don't have it anymore. */
function oldAlias({ servers }: Observations, { aliases: [alias] }: ResolverObservation): string | undefined {
  return servers.some((server) => server.aliases[0] === alias) ? undefined : alias
}

/**
 * How long the resolver keeps what it has: an old alias, whatever is at its end; an old TXT set; or an absence, which it
 * can cache only with an SOA record (RFC 2308 section 5).
 */
function cachedSeconds(observations: Observations, resolver: ResolverObservation): number | undefined {
  const { outcome, ttl, aliasTtl, negativeTtl } = resolver
  if (oldAlias(observations, resolver) !== undefined) return aliasTtl ?? undefined
  return outcome === 'mismatch' ? (ttl ?? undefined) : negativeTtl
}

/** The resolver uses none of the current name servers: it has cached others, or is configured to use others. */
function staleNameServers(observations: Observations, resolver: ResolverObservation): Finding | undefined {
  const { parent, childHosts, zone } = observations
  const { nsSet } = resolver.zoneView ?? {}
  const current = [...(parent?.hosts ?? []), ...(childHosts ?? [])]
  if (nsSet === undefined || current.length === 0 || nsSet.hosts.some((host) => current.includes(host)))
    return undefined
  const hosts = nsSet.hosts.join(', ')
  if (nsSet.isPrivate)
    return otherView(observations, resolver, `uses name servers in a private network (${hosts})`)
  const address = formatDnsAddress(resolver.resolver)
  return {
    code: 'stale_delegation',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} still uses the previous name servers of ${zone} (${hosts}), for up to ${formatDuration(nsSet.ttl)} more`,
    fix: `Wait, or delete the zone ${zone} at the previous provider, which makes resolvers look for the new name servers. If ${address} is configured to use the previous ones (split DNS), neither helps, but verification doesn't depend on it`,
    secondsLeft: nsSet.ttl,
    details: { resolver: address, previous: [...nsSet.hosts], current: [...new Set(current)] },
  }
}

/** Without the SOA record of a negative answer (RFC 2308 section 3), something has removed the record from the answer. */
function filtered(observations: Observations, resolver: ResolverObservation): Finding {
  const address = formatDnsAddress(resolver.resolver)
  const how =
    resolver.outcome === 'nxdomain'
      ? `blocks ${observations.name}: it answers that the name doesn't exist`
      : 'returns no TXT records'
  return {
    code: 'txt_filtered',
    severity: 'warning',
    message: `The name servers have the record, but ${address} ${how}, without the SOA record that a genuine negative answer has`,
    fix: `Verification uses the name servers of ${observations.zone}, so this doesn't affect it, and waiting won't help. To see the record here as well, check the DNS settings of the router or filter at ${address}, or use another resolver (--resolver)`,
    details: { resolver: address, outcome: resolver.outcome },
  }
}

function cachedAbsence(observations: Observations, resolver: ResolverObservation, seconds: number): Finding {
  const address = formatDnsAddress(resolver.resolver)
  const alias = oldAlias(observations, resolver)
  const what =
    alias === undefined ? 'has cached that there was none' : `still has the old CNAME (to ${alias}) cached`
  return {
    code: 'cached_absence',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} ${what}, for ${cacheTime(seconds, 'more ')}`,
    fix: `Wait ${cacheTime(seconds)}; there's nothing to change`,
    secondsLeft: seconds,
    details: { resolver: address, outcome: resolver.outcome },
  }
}

function cachedOldValue(observations: Observations, resolver: ResolverObservation, seconds: number): Finding {
  const address = formatDnsAddress(resolver.resolver)
  return {
    code: 'cached_old_value',
    severity: 'warning',
    message: text`The name servers have the record, but the resolver ${address} still has the old TXT records cached, for ${cacheTime(seconds, 'more ')}: expected ${quote(observations.expected)}, found ${listValues(resolver.values)}`,
    fix: `Wait ${cacheTime(seconds)}; there's nothing to change`,
    secondsLeft: seconds,
    details: { resolver: address, values: decodeValues(resolver.values) },
  }
}

function otherView(observations: Observations, resolver: ResolverObservation, how: string): Finding {
  const address = formatDnsAddress(resolver.resolver)
  return {
    code: 'split_dns',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} ${how}, which doesn't have it (split DNS)`,
    fix: `Verification uses the name servers of ${observations.zone}, so this doesn't affect it, and waiting won't help. To see the record behind ${address} as well, add it to the zone there, or allow it in the filter if there is one`,
    details: {
      resolver: address,
      outcome: resolver.outcome,
      authoritative: resolver.authoritative,
      primary: resolver.zoneView?.soa?.primary ?? null,
      values: decodeValues(resolver.values),
    },
  }
}

/** Addresses of name servers that only a resolver gives. They don't count: other resolvers don't have them. */
export function foreignAddresses({ zone, unconfirmed = [] }: ZoneObservations): Finding[] {
  const resolvers = [...new Set(unconfirmed.map(({ resolver }) => formatDnsAddress(resolver)))]
  return resolvers.map((address) => {
    const claims = unconfirmed.filter(({ resolver }) => formatDnsAddress(resolver) === address)
    const given = claims.map(({ host, server }) => `${server.address} for ${host}`).join(', ')
    const isFilter = claims.every(({ server }) => !isServerAddress(server))
    return {
      code: 'split_dns',
      severity: 'info',
      message: `The resolver ${address} gives ${given}, ${isFilter ? 'as a filter does that blocks a name' : `which the name servers' own zone and the registry of ${zone} don't (split DNS)`}. These addresses weren't counted as servers of ${zone}`,
      fix: isFilter
        ? `Nothing to do for ${zone}, as verification doesn't use this resolver. If names below ${zone} don't resolve here, allow ${[...new Set(claims.map(({ host }) => host))].join(', ')} in the filter behind ${address}`
        : "Nothing to do, as verification doesn't use this resolver",
      details: {
        resolver: address,
        addresses: claims.map(({ host, server }) => ({ host, address: server.address })),
        filtered: isFilter,
      },
    }
  })
}

/** In milliseconds; resolvers may time out with servers that are slower than this. */
const SLOW_MS = 1000

function broken(observations: Observations, resolver: ResolverObservation): Finding {
  const times = observations.servers.flatMap(({ ms }) => ms ?? [])
  const areSlow = isFailure(resolver) && times.every((ms) => ms > SLOW_MS)
  const address = formatDnsAddress(resolver.resolver)
  // The DNS proxies of some routers know only the common types.
  const isUnsupported = resolver.rcode === 'NOTIMP'
  const isRouter = isUnsupported && isPrivateAddress(resolver.resolver.address)
  const said = isUnsupported
    ? `${isRouter ? '(probably the router of this network) ' : ''}doesn't support TXT queries: it answers NOTIMP`
    : resolver.outcome === 'timeout'
      ? "doesn't answer"
      : resolver.outcome === 'unreachable'
        ? "can't be reached"
        : `answers ${resolver.rcode ?? resolver.outcome.toUpperCase()}`
  return {
    code: 'resolver_broken',
    severity: 'warning',
    message: `The name servers have the record, but the resolver ${address} ${said}${areSlow ? `: it waits for the name servers, which take ${(Math.min(...times) / 1000).toFixed(1)} seconds or more to answer` : ''}`,
    fix: areSlow
      ? `Check again: the resolver may have the answer by then. If it stays slow, ask the DNS provider why the name servers of ${observations.zone} are so slow`
      : `Verification doesn't depend on this resolver. ${isUnsupported ? `To see the record here as well, update the ${isRouter ? "router's firmware" : `software of ${address}`}` : `If other lookups fail here as well, have ${address} repaired`}, or use another one (--resolver)`,
    details: {
      resolver: address,
      outcome: resolver.outcome,
      rcode: resolver.rcode ?? null,
      with_checking_disabled: resolver.withCheckingDisabled?.outcome ?? null,
      extended_error: resolver.extendedError ?? null,
    },
  }
}
