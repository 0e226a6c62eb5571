import { isIPv6 } from 'node:net'
import type { DnsAddress } from '../../context.ts'
import { groupByOutcome, type Observation, type ZoneObservations } from '../observation/observations.ts'
import { listedRegistry } from '../resolution/registry.ts'
import { hasText } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { delegationPlace, splitByGlue } from './findings-delegation.ts'
import { fixAddresses, isCutOff } from './fix-addresses.ts'
import { LEAVE_INTERCEPTION } from './labels.ts'
import { listServers, serverEvidence } from './server-list.ts'
import { capitalize } from './text.ts'

/**
 * The lame servers instead of which something on the network answers: every answer is a recursive resolver's and none is
 * authoritative. A resolver that is listed as a name server looks the same, so the zones above decide, if their servers were
 * asked. Some routers redirect IPv4 only, so one address family may be enough.
 */
export function interceptedServers(
  { zone, servers, recursionAbove = [], parent }: ZoneObservations,
  lame: readonly Observation[],
): readonly Observation[] {
  const answered = servers.filter((server) => server.rcode !== undefined)
  // A registry's servers do serve its zone.
  if (listedRegistry(zone) === zone && answered.every((server) => lame.includes(server))) return lame
  // Some relays don't offer recursion, and resolvers may refuse queries without recursion.
  const isRelayed = (server: Observation) =>
    recursionAbove.some((above) => isV6(above) === isV6(server.server))
  const isRecursion = (server: Observation) =>
    !server.authoritative && (server.recursionAvailable || isRelayed(server))
  const isData = answered.every((server) => server.rcode === 'NOERROR' || server.rcode === 'NXDOMAIN')
  if (answered.every(isRecursion) && (recursionAbove.length > 0 || (isData && parent === undefined)))
    return lame
  return lame.filter(
    (server) =>
      isRelayed(server) &&
      answered.every((other) => isV6(other.server) !== isV6(server.server) || isRecursion(other)),
  )
}

const isV6 = (server: DnsAddress | undefined) => isIPv6(server?.address ?? '')

export function intercepted(
  observations: ZoneObservations,
  servers: readonly Observation[],
  all: boolean,
): Finding {
  const hasRecord = servers.some((server) => hasText(server.values, observations.expected))
  return {
    code: 'dns_intercepted',
    severity: all ? 'error' : 'warning',
    message: `Something on the network answers instead of ${all ? `the name servers of ${observations.zone}` : listServers(servers)}: every answer comes from a recursive resolver, and none is authoritative. ${hasRecord ? 'It has the record, but whether the name servers have it is unknown' : 'That says nothing about the record'}`,
    fix: `This network redirects DNS. ${capitalize(LEAVE_INTERCEPTION)}, or ask the network's administrator to allow DNS`,
    certain: false,
    details: { servers: serverEvidence(servers), has_record: hasRecord },
  }
}

/** Whether a server serves the zone, as its SOA record shows, but fails for TXT queries. */
export function failsTxtOnly(server: Observation): boolean {
  if (server.soa === undefined || server.tcpFailure !== undefined || server.aliases.length > 0) return false
  // What this machine couldn't even send says nothing about the server.
  if (server.outcome === 'unreachable') return false
  return server.rcode !== 'NOERROR' && server.rcode !== 'NXDOMAIN'
}

export function txtRefused(
  observations: ZoneObservations,
  servers: readonly Observation[],
  all: boolean,
): Finding {
  const one = servers.length === 1
  const silent = servers.every((server) => server.rcode === undefined)
  const said = [...new Set(servers.map((server) => server.rcode ?? 'silence'))].join(', ')
  return {
    code: 'txt_refused',
    severity: all ? 'error' : 'warning',
    message: `${listServers(servers)} ${one ? 'serves' : 'serve'} ${observations.zone}, but ${silent ? `${one ? "doesn't" : "don't"} answer TXT queries` : `${one ? 'answers' : 'answer'} TXT queries with ${said}`}. Other queries work`,
    fix: `Ask whoever runs ${one ? 'this server' : 'these servers'} to allow TXT queries: the cause is the server itself or a filter in front of it`,
    // Silence may come from a filter on this network.
    certain: !silent,
    details: { zone: observations.zone, servers: serverEvidence(servers) },
  }
}

/** Servers that have the zone and the record, but don't set the AA bit (RFC 1035 section 4.1.1). */
export function notAuthoritative(observations: ZoneObservations, servers: readonly Observation[]): Finding {
  const { zone, expected, resolvers } = observations
  const { withRecord, withoutRecord } = groupByOutcome(observations.servers)
  const one = servers.length === 1
  const isSeen = resolvers.some((resolver) => resolver.outcome === 'match')
  const isHarmless = isSeen || withRecord.length + withoutRecord.length > 0
  const isRecursive = servers.every((server) => server.recursionAvailable)
  return {
    code: 'not_authoritative',
    severity: isHarmless ? 'warning' : 'error',
    message: `${listServers(servers)} ${one ? 'has' : 'have'} ${expected === null ? 'TXT records' : 'the record'}, but ${one ? 'answers' : 'answer'} for ${zone} without the authoritative flag (AA)${isRecursive ? ' and with recursion on offer' : ''}, as a resolver or a proxy in front of the actual server does. Some resolvers don't accept such answers${isSeen ? ', although one that was asked did' : ''}`,
    fix: `Ask whoever runs ${one ? 'this server' : 'these servers'} to have the server that holds ${zone} answer directly, or to make what is in front of it pass on its answers unchanged; or list the server that holds it in the NS records instead`,
    certain: resolvers.length > 0,
    details: { zone, servers: serverEvidence(servers) },
  }
}

export function lameServers(
  observations: ZoneObservations,
  servers: readonly Observation[],
  all: boolean,
): Finding {
  const { zone } = observations
  const one = servers.length === 1
  // Removing these would leave none, or only servers that don't answer.
  const isLast = observations.servers.every(
    (server) => servers.includes(server) || (server.rcode ?? server.tcpFailure) === undefined,
  )
  const said = [
    ...new Set(
      servers.map(({ outcome, authoritative, rcode }) =>
        outcome !== 'lame'
          ? outcome.toUpperCase()
          : authoritative && (rcode === 'NOERROR' || rcode === 'NXDOMAIN')
            ? `${rcode} from a zone above it`
            : 'a non-authoritative answer',
      ),
    ),
  ]
  return {
    code: 'lame_nameserver',
    severity: all || isCutOff(observations, splitByGlue(observations, servers).stale) ? 'error' : 'warning',
    message: `${listServers(servers)} ${one ? 'is' : 'are'} listed as ${one ? 'a name server' : 'name servers'} of ${zone} but ${one ? "doesn't" : "don't"} serve it: ${said.join(', ')}`,
    ...fixAddresses(observations, servers, (others, removal) =>
      isLast && servers.every(({ outcome }) => outcome === 'servfail')
        ? `Ask the DNS provider why ${others.length === 1 ? 'that server fails' : 'those servers fail'} for ${zone}; an outage passes by itself, so check again in a few minutes. If that isn't the provider that has the zone, change the name servers ${delegationPlace(observations)}`
        : isLast
          ? `Set the name servers of ${zone} ${delegationPlace(observations)} to those of the DNS provider that has the zone, or have ${others.length === 1 ? 'that server' : 'those servers'} load it`
          : `Have ${others.length === 1 ? 'that server' : 'those servers'} load the zone ${zone}, or ${removal}`,
    ),
  }
}
