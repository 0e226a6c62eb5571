import { isIP, isIPv4 } from 'node:net'
import {
  groupByOutcome,
  isFailure,
  type Observation,
  type Observations,
} from '../observation/observations.ts'
import { isRegistry } from '../resolution/registry.ts'
import { formatDnsAddress } from '../wire/address.ts'
import { isWithin } from '../wire/name.ts'
import { hasText } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { providersOf } from './providers.ts'

/** More than this does not even fit the largest UDP answer that servers give; some verifiers stop there. */
const LARGE_ANSWER = 4096
/** Nor do people find their way among so many. */
const MANY_RECORDS = 40

/** What is wrong with the name servers themselves, whatever the record. */
export function serverFindings(observations: Observations): Finding[] {
  const { matching, without, lame: failing, silent, unchecked } = groupByOutcome(observations.servers)
  const findings: (Finding | undefined)[] = []
  const answering = matching.length + without.length
  if (
    observations.servers.every((server) => server.server === undefined && server.outcome === 'unreachable')
  ) {
    findings.push(noNameservers(observations))
    return findings.filter((finding) => finding !== undefined)
  }
  const refusing = [...failing, ...silent].filter(failsTxtOnly)
  const lame = failing.filter((server) => !refusing.includes(server))
  const cut = silent.filter((server) => server.tcpFailure !== undefined && server.aliases.length === 0)
  // A server that answered with an alias is not dead, whatever became of the alias.
  const dead = silent.filter(
    (server) => server.tcpFailure === undefined && server.aliases.length === 0 && !refusing.includes(server),
  )
  const aliased = silent.filter((server) => server.aliases.length > 0).length
  if (isIntercepted(observations)) findings.push(intercepted(observations, lame))
  else if (lame.length > 0)
    findings.push(
      lameServers(observations, lame, answering === 0 && silent.length === 0 && refusing.length === 0),
    )
  if (refusing.length > 0) findings.push(txtRefused(observations, refusing, answering === 0))
  if (cut.length > 0 || [...matching, ...without].some((server) => server.tcpFailure !== undefined))
    findings.push(tcpBlocked(observations, cut, answering > 0))
  const heard = answering + lame.length + refusing.length + cut.length + aliased
  if (dead.length > 0 || heard === 0) findings.push(unreachable(observations, dead, unchecked, heard === 0))
  findings.push(
    dropping(observations, 'udp'),
    dropping(observations, 'edns'),
    dropping(observations, 'do'),
    parentChild(observations),
    tooManyTxt(observations),
  )
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

/** Without an address, nobody can ask any of them: there is none, the glue is missing, or look-ups for it fail. */
function noNameservers(observations: Observations): Finding {
  const { zone, parent, servers } = observations
  const hosts = servers.map((server) => server.host)
  const own = hosts.filter((host) => isWithin(host, zone))
  const addresses = hosts.filter((host) => isIP(host) !== 0)
  if (addresses.length > 0)
    return {
      code: 'no_nameservers',
      severity: 'error',
      message: `The delegation of ${zone} has ${addresses.join(', ')} as ${addresses.length === 1 ? 'a name server' : 'name servers'}, but a name server is given by its name, not by its IP address`,
      fix: `Enter the names of the name servers ${delegationPlace(observations)}, such as ns1.example.com; the DNS provider lists them`,
      details: { zone, hosts, addresses },
    }
  const missesGlue = own.length > 0 && own.length === hosts.length
  const place = delegationPlace(observations)
  return {
    code: 'no_nameservers',
    severity: 'error',
    message: missesGlue
      ? `The name servers of ${zone} (${hosts.join(', ')}) are in the zone itself, and the delegation${parent === undefined ? '' : ` in ${parent.zone}`} has no address for them (glue), so nobody can find them`
      : `None of the name servers of ${zone} (${hosts.join(', ')}) has an address that can be looked up, so nobody can look anything up in this zone`,
    fix: missesGlue
      ? `Add the addresses of ${own.join(', ')} ${place} (glue records, also called host records)`
      : `Set name servers for ${zone} that exist and can be looked up without ${zone} itself, ${place}; the DNS provider lists them`,
    details: { zone, hosts, glue_missing: missesGlue },
  }
}

/**
 * Somebody on the way answers in the servers' place: all offer recursion and none has authority. A resolver that refuses
 * questions without recursion looks like a lame server; it gives itself away where it "is" the servers of the zones above
 * as well.
 */
function isIntercepted({ servers, recursionAbove }: Observations): boolean {
  const answered = servers.filter((server) => server.rcode !== undefined)
  const isRecursion = answered.every((server) => !server.authoritative && server.recursionAvailable)
  const isData = answered.every((server) => server.rcode === 'NOERROR' || server.rcode === 'NXDOMAIN')
  return answered.length > 0 && isRecursion && (isData || recursionAbove === true)
}

function intercepted(observations: Observations, servers: readonly Observation[]): Finding {
  const hasRecord = servers.some((server) => hasText(server.values, observations.expected))
  return {
    code: 'dns_intercepted',
    severity: 'error',
    message: `Something on the network answers in place of the name servers of ${observations.zone}: every answer offers recursion and none is authoritative. ${hasRecord ? 'What answers in their place has the record, but what the name servers have is not known' : 'That says nothing about the record'}`,
    fix: "This network redirects DNS (a captive portal, a VPN, a router). Check from another network, or ask the network's administrator to allow DNS",
    certain: false,
    details: { servers: describeAll(servers), has_record: hasRecord },
  }
}

/** It serves the zone, as its SOA record shows, and fails for TXT questions alone. */
function failsTxtOnly(server: Observation): boolean {
  if (server.soa === undefined || server.tcpFailure !== undefined || server.aliases.length > 0) return false
  return server.rcode !== 'NOERROR' && server.rcode !== 'NXDOMAIN'
}

function txtRefused(observations: Observations, servers: readonly Observation[], all: boolean): Finding {
  const one = servers.length === 1
  const silent = servers.every((server) => server.rcode === undefined)
  const said = [...new Set(servers.map((server) => server.rcode ?? 'silence'))].join(', ')
  return {
    code: 'txt_refused',
    severity: all ? 'error' : 'warning',
    message: `${list(servers)} ${one ? 'serves' : 'serve'} ${observations.zone}, but ${silent ? `${one ? 'does' : 'do'} not answer TXT questions` : `${one ? 'answers' : 'answer'} TXT questions with ${said}`}. Other questions are answered`,
    fix: `Ask whoever runs ${one ? 'this server' : 'these servers'} to answer TXT questions: the cause is the server itself, or a filter in front of it`,
    // Silence may be a filter on the way from here.
    certain: !silent,
    details: { zone: observations.zone, servers: describeAll(servers) },
  }
}

/** Servers that leave questions unanswered which resolvers ask in the first place. */
function dropping(observations: Observations, what: 'do' | 'edns' | 'udp'): Finding | undefined {
  const { servers, resolvers } = observations
  const dropping = servers.filter((server) => server.dropped === what)
  if (dropping.length === 0) return undefined
  const all = servers.every((server) => server.dropped !== undefined)
  const fails = resolvers.length > 0 && resolvers.every(isFailure)
  const one = dropping.length === 1
  const answers = one ? 'does' : 'do'
  return {
    code: what === 'udp' ? 'udp_dropped' : 'edns_dropped',
    severity: all && fails ? 'error' : 'warning',
    message:
      what === 'udp'
        ? `${list(dropping)} ${answers} not answer over UDP, only over TCP`
        : what === 'edns'
          ? `${list(dropping)} ${answers} not answer questions with EDNS (RFC 6891), only those without`
          : `${list(dropping)} ${answers} not answer questions that ask for DNSSEC signatures (the DO bit, RFC 3225), only those without`,
    fix: `${what === 'udp' ? 'Allow UDP port 53 to' : 'Update the software of, or the firewall in front of,'} ${one ? 'this server' : 'these servers'}: resolvers give up before they get an answer${fails ? `, as ${resolvers.map((resolver) => formatDnsAddress(resolver.resolver)).join(', ')} did` : ''}`,
    details: { dropped: what, servers: describeAll(dropping) },
  }
}

function lameServers(observations: Observations, servers: readonly Observation[], all: boolean): Finding {
  const one = servers.length === 1
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
    severity: all ? 'error' : 'warning',
    message: `${list(servers)} ${one ? 'is' : 'are'} listed as ${one ? 'a name server' : 'name servers'} of ${observations.zone} but ${one ? "doesn't" : "don't"} serve it: ${said.join(', ')}`,
    fix: `Have ${one ? 'that server' : 'those servers'} load the zone ${observations.zone}, or remove ${one ? 'it' : 'them'} from the NS records of ${observations.zone}, ${delegationPlace(observations)} and in the zone itself`,
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
    message: `The TXT answer of ${list(concerned)} is too large for UDP, and TCP port ${concerned[0]?.server?.port ?? 53} ${closed || cut.length === 0 ? 'is closed' : "doesn't answer"}${readable ? '; the resolver can read it' : ''}`,
    fix: readable
      ? 'The record is visible elsewhere: to check from here, allow outbound TCP port 53 on this network'
      : 'Allow TCP port 53 to the name servers (required by RFC 7766), or remove TXT records at this name that you no longer need',
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
  if (
    all &&
    dead.length === 0 &&
    unchecked.some(({ server }) => server !== undefined && isIPv4(server.address))
  ) {
    return {
      code: 'nameserver_unreachable',
      severity: 'error',
      message: `The name servers of ${observations.zone} could not be asked within the number of questions that a check may use. The record itself may be fine`,
      fix: `Ask one of them directly: dig +tcp TXT ${observations.name} @${unchecked[0]?.host ?? ''}`,
      certain: false,
      details: { servers: describeAll(unchecked) },
    }
  }
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
      ? `${dead.length === 1 ? "doesn't" : "don't"} answer`
      : "can't be reached"
  const message = all
    ? `No name server of ${observations.zone} answers: ${list(dead)}. The record itself may be fine`
    : `${list(dead)} ${what}${ownIpv6 ? '; every IPv6 address is silent, so it may be the IPv6 of this machine' : ''}`
  return {
    code: 'nameserver_unreachable',
    severity: all ? 'error' : ownIpv6 ? 'info' : 'warning',
    message,
    fix: all
      ? "Check this machine's network connection (is outbound port 53 allowed?) and try again; if it works, tell the DNS provider that the servers are down"
      : ownIpv6
        ? "No action needed if IPv6 doesn't work here"
        : 'Verification may fail when it happens to query this server: have it repaired, or remove it from the NS records',
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
    message: `The delegation of ${observations.zone} in ${parent.zone} lists ${parent.hosts.join(', ')}, but the zone itself lists ${childHosts.join(', ')}${divided ? '; only some of them have the record' : ''}`,
    fix: `Make both lists the same: the NS records in the zone and those ${delegationPlace(observations)}${divided ? '. Until then, add the record wherever the servers of the delegation are run' : ''}`,
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
    message: `There are ${largest.values.length} TXT records at ${observations.name}, ${largest.size} bytes together: more than many resolvers and verifiers can handle`,
    fix: 'Remove TXT records you no longer need (old proofs for other services)',
    details: { records: largest.values.length, bytes: largest.size },
  }
}
