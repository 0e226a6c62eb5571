import {
  groupByOutcome,
  isDnsData,
  isFailure,
  type Observation,
  type ResolverObservation,
  type ZoneObservations,
} from '../observation/observations.ts'
import { formatDnsAddress } from '../wire/address.ts'
import type { Finding } from './finding.ts'
import { listServers, serverEvidence } from './server-list.ts'
import { capitalize } from './text.ts'

/** What a server drops or rejects; `rejected`: it answers queries with EDNS, but with an error. */
type Filter = 'udp' | 'edns' | 'do' | 'rejected'

const QUERIES: Readonly<Record<Filter, string>> = {
  udp: 'queries over UDP',
  edns: 'queries with EDNS (RFC 6891)',
  do: 'queries for DNSSEC signatures (the DO bit, RFC 3225)',
  rejected: 'queries with EDNS (RFC 6891)',
}

/** Servers that answer, but not the queries that resolvers start with; or this network, if it stops those queries. */
export function filterFindings(observations: ZoneObservations): Finding[] {
  const filtering = observations.servers.filter(
    (server) => filterOf(server) !== undefined && isDnsData(server.outcome),
  )
  const here = filtering.filter(({ filteredAt }) => filteredAt === 'network')
  const there = (filter: Filter) =>
    filtering.filter((server) => server.filteredAt !== 'network' && filterOf(server) === filter)
  return [
    ...(here.length > 0 ? [networkFilters(observations, here)] : []),
    ...(['udp', 'edns', 'do'] as const).flatMap((filter) => dropped(observations, filter, there(filter))),
    ...rejected(observations, there('rejected')),
  ]
}

/** Whether what servers drop or reject explains that a resolver lacks the record. */
export function explainsResolver({ servers }: ZoneObservations, resolver: ResolverObservation): boolean {
  return servers.some(
    (server) =>
      (isFailure(resolver) && (server.dropped !== undefined || isHardRejection(server))) ||
      isMisled(resolver, server),
  )
}

/** Some resolvers take BADVERS, most of which is in the OPT record (RFC 6891 section 6.1.3), for an answer without records. */
const isMisled = ({ outcome, negativeTtl }: ResolverObservation, { ednsRejection }: Observation) =>
  ednsRejection === 'BADVERS' && outcome === 'absent' && negativeTtl === undefined

const filterOf = ({ dropped, ednsRejection }: Observation): Filter | undefined =>
  dropped ?? (ednsRejection === undefined ? undefined : 'rejected')

/** Resolvers ask again without EDNS after these only (RFC 6891 section 7). */
const SOFT_REJECTIONS: readonly (string | undefined)[] = ['FORMERR', 'NOTIMP', undefined]
const isHardRejection = ({ ednsRejection }: Observation) => !SOFT_REJECTIONS.includes(ednsRejection)

const affectedResolvers = (observations: ZoneObservations) =>
  observations.resolvers.filter((resolver) => explainsResolver(observations, resolver))
const listResolvers = (resolvers: readonly ResolverObservation[]) =>
  resolvers.map(({ resolver }) => formatDnsAddress(resolver)).join(', ')

/** The registry's servers, which do answer such queries, don't answer them from here either. */
function networkFilters(observations: ZoneObservations, servers: readonly Observation[]): Finding {
  const { zone } = observations
  const filters = [...new Set(servers.flatMap((server) => filterOf(server) ?? []))]
  const verb = filters.includes('rejected') ? 'rejects' : 'drops'
  const failed = listResolvers(affectedResolvers(observations))
  return {
    code: 'queries_filtered',
    severity: failed === '' ? 'info' : 'warning',
    message: `Something on this network ${verb} DNS ${[...new Set(filters.map((filter) => QUERIES[filter]))].join(' and ')}: from here, not even the registry's servers answer them, so this says nothing about the name servers of ${zone}${failed === '' ? '' : `; this is probably why ${failed} fails as well`}`,
    fix: `There's nothing to change for ${zone}. To check without this filter, use another network, or have DNS allowed in the firewall or router of this one (port 53, UDP and TCP, with EDNS)`,
    details: { filtered: filters, servers: serverEvidence(servers) },
  }
}

/** Servers that drop queries. Without an answer from a registry, it may be this network that does. */
function dropped(
  observations: ZoneObservations,
  what: 'do' | 'edns' | 'udp',
  servers: readonly Observation[],
): Finding[] {
  if (servers.length === 0) return []
  const isServer = servers.every(({ filteredAt }) => filteredAt === 'server')
  const one = servers.length === 1
  const remedy = `${what === 'udp' ? 'allow UDP port 53 to' : 'update the software of, or the firewall in front of,'} ${one ? 'this server' : 'these servers'}`
  const failed = listResolvers(affectedResolvers(observations))
  const consequence = failed === '' ? '' : `: resolvers give up before they get an answer, as ${failed} did`
  return [
    {
      code: what === 'udp' ? 'udp_dropped' : 'edns_dropped',
      severity: severityOf(observations, (server) => server.dropped !== undefined),
      message: `${listServers(servers)} ${one ? "doesn't" : "don't"} answer ${what === 'udp' ? 'over UDP, only over TCP' : `${QUERIES[what]}, only those without`}${isServer ? ". It isn't this network: the registry's servers do answer such queries from here" : ''}`,
      fix: isServer
        ? `${capitalize(remedy)}${consequence}`
        : `Check from another network first: a firewall on this one may drop these queries, and then the domain's servers are fine. Otherwise: ${remedy}${consequence}`,
      certain: isServer,
      details: { dropped: what, servers: serverEvidence(servers) },
    },
  ]
}

/** Servers that answer queries with EDNS with an error. */
function rejected(observations: ZoneObservations, servers: readonly Observation[]): Finding[] {
  if (servers.length === 0) return []
  const one = servers.length === 1
  const isSoft = !servers.some(isHardRejection)
  const rcodes = [...new Set(servers.flatMap(({ ednsRejection }) => ednsRejection ?? []))].join(', ')
  const failed = listResolvers(affectedResolvers(observations))
  const isServer = servers.every(({ filteredAt }) => filteredAt === 'server')
  const consequence = isSoft
    ? "Resolvers ask again without EDNS, so lookups work, but DNSSEC doesn't"
    : `Most resolvers don't ask again without EDNS after that, so lookups fail${rcodes.includes('BADVERS') ? ' or find nothing' : ''}${failed === '' ? '' : `, as at ${failed}`}`
  const remedy = `update the software of, or the firewall or load balancer in front of, ${one ? 'this server' : 'these servers'}, which should answer queries with EDNS`
  return [
    {
      code: 'edns_rejected',
      severity: isSoft ? 'info' : severityOf(observations, isHardRejection),
      message: `${listServers(servers)} ${one ? 'answers' : 'answer'} queries with EDNS (RFC 6891) with ${rcodes}, and properly only those without. ${consequence}`,
      fix: isSoft
        ? `No action needed for verification. To have this repaired, ${remedy}`
        : `${isServer ? 'Update' : "Check from another network first, as something on this one may do it. If it's the same there, update"}${remedy.slice('update'.length)}`,
      certain: isServer,
      details: { rcodes, servers: serverEvidence(servers) },
    },
  ]
}

/** An error if resolvers get nowhere: all servers are affected, and all resolvers fail. */
function severityOf(
  observations: ZoneObservations,
  isAffected: (server: Observation) => boolean,
): 'error' | 'warning' {
  const { servers, resolvers } = observations
  const isUnseen = resolvers.length > 0 && affectedResolvers(observations).length === resolvers.length
  return isUnseen && servers.every(isAffected) ? 'error' : 'warning'
}

/** Why an answer that needs TCP couldn't be read, as the rest of "TCP port 53 …". */
const TCP_FAILURES: Readonly<Record<string, string>> = {
  timeout: "doesn't answer",
  closed: 'closes the connection without an answer',
  'other-answers': 'answers other queries than the one it was sent',
  'no-route': "can't be reached from this machine",
  blocked: 'is blocked by a firewall on this machine',
}

/** An answer too large for UDP that couldn't be read over TCP. */
export function tcpBlocked(
  observations: ZoneObservations,
  truncated: readonly Observation[],
  someAnswered: boolean,
): Finding {
  const concerned = observations.servers.filter((server) => server.tcpFailure !== undefined)
  const { withRecord } = groupByOutcome(observations.servers)
  const readable = observations.resolvers.some((resolver) => resolver.outcome === 'match')
  // A resolver's silence says as little as a server's.
  const resolversFailed =
    !readable &&
    observations.resolvers.some((resolver) => ['servfail', 'absent', 'nxdomain'].includes(resolver.outcome))
  // A connection that this machine couldn't open says nothing about the server.
  const closed = truncated.find(
    ({ tcpFailure }) => !['timeout', 'no-route', 'blocked'].includes(tcpFailure ?? 'timeout'),
  )
  const failure = (closed ?? truncated[0] ?? concerned[0])?.tcpFailure
  const harmless = withRecord.length > 0 || someAnswered || readable
  // If it is closed at the server, or to a resolver elsewhere as well, it isn't this network.
  const certain = !harmless && (closed !== undefined || resolversFailed)
  const remedy =
    failure === 'other-answers'
      ? 'Have TCP on these name servers, or the filter in front of them, repaired'
      : 'Allow TCP port 53 to the name servers'
  return {
    code: 'tcp_blocked',
    severity: harmless ? 'warning' : 'error',
    message: `The TXT answer of ${listServers(concerned)} is too large for UDP, and TCP port ${concerned[0]?.server?.port ?? 53} ${TCP_FAILURES[failure ?? ''] ?? 'is closed'}${readable ? '; the resolver can read it' : ''}`,
    fix: readable
      ? 'The record is visible elsewhere: to check from here, allow outbound TCP port 53 on this network'
      : `${certain ? '' : "Check from another network first: many firewalls let DNS out over UDP only, and then the domain's servers are fine. Otherwise: "}${remedy} (required by RFC 7766), or remove TXT records at this name that you no longer need`,
    certain,
    details: {
      servers: concerned.map((server) => ({
        host: server.host,
        address: server.server?.address ?? null,
        tcp: server.tcpFailure ?? null,
        udp_bytes: server.size,
      })),
      certain,
    },
  }
}
