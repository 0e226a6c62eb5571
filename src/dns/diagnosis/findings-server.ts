import { groupByOutcome, type Observation, type Observations } from '../observation/observations.ts'
import { isRegistry } from '../wire/name.ts'
import type { Finding } from './finding.ts'
import { providersOf } from './providers.ts'

/** More than this does not even fit the largest UDP answer that servers give; some verifiers stop there. */
const LARGE_ANSWER = 4096
/** Nor do people find their way among so many. */
const MANY_RECORDS = 40

/** What is wrong with the name servers themselves, whatever the record. */
export function serverFindings(observations: Observations): Finding[] {
  const { matching, without, lame, silent, unchecked } = groupByOutcome(observations.servers)
  const findings: (Finding | undefined)[] = []
  const answering = matching.length + without.length
  if (
    observations.servers.every((server) => server.server === undefined && server.outcome === 'unreachable')
  ) {
    findings.push(noNameservers(observations))
    return findings.filter((finding) => finding !== undefined)
  }
  const cut = silent.filter((server) => server.tcpFailure !== undefined && server.aliases.length === 0)
  // A server that answered with an alias is not dead, whatever became of the alias.
  const dead = silent.filter((server) => server.tcpFailure === undefined && server.aliases.length === 0)
  const aliased = silent.length - dead.length - cut.length
  if (isIntercepted(observations.servers)) findings.push(intercepted(observations, lame))
  else if (lame.length > 0)
    findings.push(lameServers(observations, lame, answering === 0 && silent.length === 0))
  if (cut.length > 0 || [...matching, ...without].some((server) => server.tcpFailure !== undefined))
    findings.push(tcpBlocked(observations, cut, answering > 0))
  const heard = answering + lame.length + cut.length + aliased
  if (dead.length > 0 || heard === 0) findings.push(unreachable(observations, dead, unchecked, heard === 0))
  findings.push(parentChild(observations), tooManyTxt(observations))
  return findings.filter((finding) => finding !== undefined)
}

function where(server: Observation): string {
  return server.server === undefined ? server.host : `${server.host} (${server.server.address})`
}

/** Where the delegation of the zone is written down: at the registrar, or in the zone above that is no registry's. */
function delegationPlace({ parent }: Observations): string {
  return parent === undefined || parent.zone === '.' || isRegistry(parent.zone)
    ? 'at the registrar'
    : `in the zone ${parent.zone}`
}

const list = (servers: readonly Observation[]) => servers.map(where).join(', ')

function describeAll(servers: readonly Observation[]) {
  return servers.map((server) => ({
    host: server.host,
    address: server.server?.address ?? null,
    outcome: server.outcome,
    rcode: server.rcode ?? null,
    authoritative: server.authoritative,
    ms: server.ms,
  }))
}

function noNameservers(observations: Observations): Finding {
  const hosts = observations.servers.map((server) => server.host)
  return {
    code: 'no_nameservers',
    severity: 'error',
    message: `None of the name servers of ${observations.zone} (${hosts.join(', ')}) has an address, so nobody can look anything up in this zone`,
    fix: `Set name servers for ${observations.zone} that exist, ${delegationPlace(observations)}; the DNS provider lists them`,
    details: { zone: observations.zone, hosts },
  }
}

/** Every server recurses and none speaks with authority: someone on the way answers in their place. */
function isIntercepted(servers: readonly Observation[]): boolean {
  const answered = servers.filter((server) => server.rcode !== undefined)
  return (
    answered.length > 0 &&
    answered.every(
      (server) =>
        !server.authoritative &&
        server.recursionAvailable &&
        (server.rcode === 'NOERROR' || server.rcode === 'NXDOMAIN'),
    )
  )
}

function intercepted(observations: Observations, servers: readonly Observation[]): Finding {
  return {
    code: 'dns_intercepted',
    severity: 'error',
    message: `Questions to the name servers of ${observations.zone} are answered by something that is none of them: every answer offers recursion and none is authoritative`,
    fix: 'This network redirects DNS (a captive portal, a VPN, a router). Check from another network, or ask the network’s administrator to let DNS through',
    certain: false,
    details: { servers: describeAll(servers) },
  }
}

function lameServers(observations: Observations, servers: readonly Observation[], all: boolean): Finding {
  const one = servers.length === 1
  const said = [
    ...new Set(
      servers.map((server) =>
        server.outcome === 'lame' ? 'an answer without authority' : server.outcome.toUpperCase(),
      ),
    ),
  ]
  return {
    code: 'lame_nameserver',
    severity: all ? 'error' : 'warning',
    message: `${list(servers)} ${one ? 'is' : 'are'} named as ${one ? 'a server' : 'servers'} of ${observations.zone} but ${one ? 'does' : 'do'} not serve it: ${said.join(', ')}`,
    fix: `Have ${one ? 'that server' : 'those servers'} load the zone ${observations.zone}, or take ${one ? 'it' : 'them'} out of the NS records of ${observations.zone}, ${delegationPlace(observations)} and in the zone itself`,
    details: { zone: observations.zone, servers: describeAll(servers) },
  }
}

function tcpBlocked(observations: Observations, cut: readonly Observation[], someAnswered: boolean): Finding {
  const concerned = observations.servers.filter((server) => server.tcpFailure !== undefined)
  const { matching } = groupByOutcome(observations.servers)
  const readable = observations.resolvers.some((resolver) => resolver.outcome === 'match')
  // Silence of a resolver says as little as silence of a server.
  const resolversFailed =
    !readable &&
    observations.resolvers.some((resolver) => ['servfail', 'absent', 'nxdomain'].includes(resolver.outcome))
  const closed = cut.some((server) => server.tcpFailure !== 'timeout')
  const harmless = matching.length > 0 || someAnswered || readable
  // Closed at the server, or closed to a resolver elsewhere as well: then it is not this network.
  const certain = !harmless && (closed || resolversFailed)
  return {
    code: 'tcp_blocked',
    severity: harmless ? 'warning' : 'error',
    message: `The TXT answer of ${list(concerned)} does not fit a UDP datagram, and TCP to port ${concerned[0]?.server?.port ?? 53} ${closed || cut.length === 0 ? 'is closed' : 'is not answered'}${readable ? '; the resolver can read it' : ''}`,
    fix: readable
      ? 'The record is visible elsewhere: let TCP to port 53 out of this network to check from here'
      : 'Let TCP port 53 through to the name servers (RFC 7766 asks for it), or remove TXT records at this name that are no longer needed',
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

function unreachable(
  observations: Observations,
  dead: readonly Observation[],
  unchecked: readonly Observation[],
  all: boolean,
): Finding {
  if (all && dead.length === 0) {
    return {
      code: 'nameserver_unreachable',
      severity: 'error',
      message: `The name servers of ${observations.zone} have only IPv6 addresses, and this machine has no IPv6 route: nothing could be checked`,
      fix: 'Check from a machine with IPv6',
      certain: false,
      details: { servers: describeAll(unchecked) },
    }
  }
  const nameless = dead.every((server) => server.server === undefined && server.outcome === 'unreachable')
  const silentOnly = dead.every((server) => server.outcome === 'timeout')
  const ownIpv6 = !all && isOwnIpv6(observations, dead)
  const what = nameless
    ? `${dead.length === 1 ? 'has' : 'have'} no address`
    : silentOnly
      ? `${dead.length === 1 ? 'does' : 'do'} not answer`
      : 'cannot be reached'
  const message = all
    ? `No name server of ${observations.zone} answers: ${list(dead)}. That says nothing about the record`
    : `${list(dead)} ${what}${ownIpv6 ? '; every IPv6 address is silent, so it may be the IPv6 of this machine' : ''}`
  return {
    code: 'nameserver_unreachable',
    severity: all ? 'error' : ownIpv6 ? 'info' : 'warning',
    message,
    fix: all
      ? 'Check the network of this machine (does it let DNS out to port 53?) and try again; if it is fine, tell the DNS provider that the servers are down'
      : ownIpv6
        ? 'Nothing has to be done if IPv6 does not work here'
        : 'Verification may fail whenever it happens to ask this server: have it repaired, or take it out of the NS records',
    certain: !all,
    details: { servers: describeAll(dead) },
  }
}

/** All IPv6 silent while the same hosts answer over IPv4 tells more about this machine than about them. */
function isOwnIpv6(observations: Observations, dead: readonly Observation[]): boolean {
  const isV6 = (server: Observation) => server.server?.address.includes(':') === true
  const others = observations.servers.filter(
    (server) => !dead.includes(server) && server.outcome !== 'not_checked',
  )
  return (
    dead.every((server) => isV6(server) && server.outcome === 'timeout') &&
    !others.some(isV6) &&
    dead.every((server) => others.some((other) => other.host === server.host))
  )
}

function parentChild(observations: Observations): Finding | undefined {
  const { parent, childHosts } = observations
  if (parent === undefined || childHosts === undefined) return undefined
  const onlyParent = parent.hosts.filter((host) => !childHosts.includes(host))
  const onlyChild = childHosts.filter((host) => !parent.hosts.includes(host))
  if (onlyParent.length === 0 && onlyChild.length === 0) return undefined
  const { matching, without } = groupByOutcome(observations.servers)
  // The record is at one provider while the other side of the delegation points to the other: waiting does not help.
  const divided = matching.length > 0 && without.length > 0 && isDivided(observations, matching, without)
  const providers = providersOf([...parent.hosts, ...childHosts])
  return {
    code: 'parent_child_mismatch',
    severity: divided ? 'error' : 'warning',
    message: `The delegation of ${observations.zone} in ${parent.zone} names ${parent.hosts.join(', ')}, the zone itself names ${childHosts.join(', ')}${divided ? '; only some of them have the record' : ''}`,
    fix: `Make both name the same servers: the NS records in the zone and those ${delegationPlace(observations)}${divided ? '. Until then, add the record wherever the servers of the delegation are run' : ''}`,
    details: {
      parent: [...parent.hosts],
      child: [...childHosts],
      only_parent: onlyParent,
      only_child: onlyChild,
      ...(providers.length > 0 ? { providers } : {}),
    },
  }
}

/** Whether the servers without the record are exactly those that only one side of the delegation names. */
export function isDivided(
  observations: Observations,
  matching: readonly Observation[],
  without: readonly Observation[],
): boolean {
  const { parent, childHosts } = observations
  if (parent === undefined || childHosts === undefined) return false
  const isShared = (server: Observation) =>
    parent.hosts.includes(server.host) && childHosts.includes(server.host)
  return without.every((server) => !isShared(server)) || matching.every((server) => !isShared(server))
}

function tooManyTxt(observations: Observations): Finding | undefined {
  const largest = [...observations.servers].sort((a, b) => b.size - a.size)[0]
  if (largest === undefined || largest.values.length === 0) return undefined
  if (largest.size <= LARGE_ANSWER && largest.values.length < MANY_RECORDS) return undefined
  return {
    code: 'too_many_txt',
    severity: 'warning',
    message: `There are ${largest.values.length} TXT records at ${observations.name}, ${largest.size} bytes together: more than many resolvers and verifiers read`,
    fix: 'Remove the TXT records that are no longer needed (old proofs of other services)',
    details: { records: largest.values.length, bytes: largest.size },
  }
}
