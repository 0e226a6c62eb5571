import { isIPv6 } from 'node:net'
import type { DnsAddress } from '../../context.ts'
import {
  groupByOutcome,
  type Observation,
  type StaleGlue,
  type ZoneObservations,
} from '../observation/observations.ts'
import { listedRegistry } from '../resolution/registry.ts'
import { hasText } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import {
  aliasedNameServers,
  delegationNotChecked,
  delegationPlace,
  glueFix,
  missingDots,
  noNameservers,
  parentChildMismatch,
  splitByGlue,
} from './findings-delegation.ts'
import { filterFindings, tcpBlocked } from './findings-transport.ts'
import { LEAVE_INTERCEPTION } from './labels.ts'
import { listServers, serverEvidence } from './server-list.ts'
import { capitalize } from './text.ts'

/** Servers don't give larger answers over UDP, and some verifiers stop reading there. */
const LARGE_ANSWER = 4096
/** Too many for people to find their way. */
const MANY_RECORDS = 40

/** What is wrong with the name servers themselves, whatever the record. */
export function serverFindings(observations: ZoneObservations): Finding[] {
  const { servers } = observations
  if (servers.every((server) => server.server === undefined && server.outcome === 'unreachable'))
    return [noNameservers(observations)]
  return [
    ...answerFindings(observations),
    ...filterFindings(observations),
    aliasedNameServers(observations),
    parentChildMismatch(observations),
    delegationNotChecked(observations),
    tooManyTxt(observations),
  ].filter((finding) => finding !== undefined)
}

/** The servers that don't answer TXT queries for the zone as they should, one finding for each kind of failure. */
function answerFindings(observations: ZoneObservations): Finding[] {
  const { servers } = observations
  // That these answer from the zone above has a finding of its own.
  const fromAbove = observations.undelegated?.without.map(({ server }) => server.address) ?? []
  const serving = servers.filter(({ server }) => !fromAbove.includes(server?.address ?? ''))
  const { withRecord, withoutRecord, lame: failing, silent, notChecked } = groupByOutcome(serving)
  const answering = [...withRecord, ...withoutRecord]
  const refusing = [...failing, ...silent].filter(failsTxtOnly)
  const replaced = interceptedServers(
    observations,
    failing.filter((server) => !refusing.includes(server)),
  )
  const unserving = failing.filter((server) => !refusing.includes(server) && !replaced.includes(server))
  const lame = unserving.filter((server) => server.withoutAuthority !== true)
  const proxied = unserving.filter((server) => server.withoutAuthority === true)
  // A server that answered with an alias isn't dead, even if nothing is known about the alias.
  const unread = silent.filter((server) => server.aliases.length === 0 && !refusing.includes(server))
  const truncated = unread.filter((server) => server.tcpFailure !== undefined)
  const dead = unread.filter((server) => server.tcpFailure === undefined)
  const nobodyAnswered = dead.length + notChecked.length === servers.length

  const findings: Finding[] = []
  if (replaced.length > 0) findings.push(intercepted(observations, replaced, answering.length === 0))
  if (proxied.length > 0) findings.push(notAuthoritative(observations, proxied))
  if (lame.length > 0)
    findings.push(lameServers(observations, lame, lame.length + notChecked.length === servers.length))
  if (refusing.length > 0) findings.push(txtRefused(observations, refusing, answering.length === 0))
  if (truncated.length > 0 || answering.some((server) => server.tcpFailure !== undefined))
    findings.push(tcpBlocked(observations, truncated, answering.length > 0))
  if (nobodyAnswered && dead.length === 0) findings.push(notQueried(observations, notChecked))
  else if (dead.length > 0) findings.push(unreachable(observations, dead, nobodyAnswered))
  return findings
}

/**
 * The lame servers instead of which something on the network answers: every answer is a recursive resolver's and none is
 * authoritative. A resolver that is listed as a name server looks the same, so the zones above decide, if their servers were
 * asked. Some routers redirect IPv4 only, so one address family may be enough.
 */
function interceptedServers(
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

function intercepted(observations: ZoneObservations, servers: readonly Observation[], all: boolean): Finding {
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
function failsTxtOnly(server: Observation): boolean {
  if (server.soa === undefined || server.tcpFailure !== undefined || server.aliases.length > 0) return false
  // What this machine couldn't even send says nothing about the server.
  if (server.outcome === 'unreachable') return false
  return server.rcode !== 'NOERROR' && server.rcode !== 'NXDOMAIN'
}

function txtRefused(observations: ZoneObservations, servers: readonly Observation[], all: boolean): Finding {
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
function notAuthoritative(observations: ZoneObservations, servers: readonly Observation[]): Finding {
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

/**
 * What to do about addresses that don't answer as they should: correct the glue where it is old, and for the others what
 * `fix` says, which is given how to take them out of use.
 */
function fixAddresses(
  observations: ZoneObservations,
  servers: readonly Observation[],
  fix: (others: readonly Observation[], removal: string) => string,
): Pick<Finding, 'fix' | 'details'> {
  const { stale, others } = splitByGlue(observations, servers)
  const { withRecord, withoutRecord } = groupByOutcome(observations.servers)
  const serving = new Set([...withRecord, ...withoutRecord].map(({ host }) => host))
  // A host that serves the zone at another address has to stay.
  const isKept = others.some(({ host }) => serving.has(host))
  const place = `${delegationPlace(observations)} and in the zone itself`
  const removal = isKept
    ? others
        .map(({ host, server }) =>
          serving.has(host)
            ? `remove the address ${server?.address} from the A/AAAA records and the glue of ${host}`
            : `remove ${host} from the NS records ${place}`,
        )
        .join(', and ')
    : `remove ${others.length === 1 ? 'it' : 'them'} from the NS records of ${observations.zone}, ${place}`
  return {
    fix: [
      ...(stale.length > 0 ? [glueFix(observations, stale)] : []),
      ...(others.length > 0 ? [fix(others, removal)] : []),
    ].join('. '),
    details: {
      zone: observations.zone,
      servers: serverEvidence(servers),
      ...(stale.length > 0 ? { stale_glue: stale } : {}),
    },
  }
}

/** Whether the parent zone leads to old addresses only, and no resolver gets the record. */
function isCutOff({ parent, resolvers }: ZoneObservations, stale: readonly StaleGlue[]): boolean {
  return (
    parent?.hosts.every((host) => stale.some((old) => old.host === host)) === true &&
    resolvers.every(({ outcome }) => outcome !== 'match')
  )
}

function lameServers(observations: ZoneObservations, servers: readonly Observation[], all: boolean): Finding {
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
      isLast
        ? `Set the name servers of ${zone} ${delegationPlace(observations)} to those of the DNS provider that has the zone, or have ${others.length === 1 ? 'that server' : 'those servers'} load it`
        : `Have ${others.length === 1 ? 'that server' : 'those servers'} load the zone ${zone}, or ${removal}`,
    ),
  }
}

/** No server was queried: the check has used all its queries, or this machine has no route to their addresses. */
function notQueried(observations: ZoneObservations, servers: readonly Observation[]): Finding {
  const { zone, name } = observations
  const common = {
    code: 'nameserver_unreachable',
    severity: 'error',
    certain: false,
    details: { servers: serverEvidence(servers) },
  } as const
  if (servers.some(({ unsent }) => unsent === 'blocked'))
    return {
      ...common,
      message: `This machine isn't allowed to send DNS queries to the name servers of ${zone}, most likely by a firewall on it: ${listServers(servers)}. The record itself may be fine`,
      fix: "Allow outbound DNS (port 53, UDP and TCP) in this machine's firewall, or check from another machine",
    }
  if (servers.some(({ unsent }) => unsent === undefined))
    return {
      ...common,
      message: `The name servers of ${zone} couldn't be queried: the check reached its query limit first. The record itself may be fine`,
      fix: `Query one of them directly: dig +tcp TXT ${name} @${servers[0]?.host ?? ''}`,
    }
  const families = [
    ...new Set(servers.map(({ server }) => (isIPv6(server?.address ?? '') ? 'IPv6' : 'IPv4'))),
  ]
  const [family, other] = families
  if (other !== undefined)
    return {
      ...common,
      message: `This machine has no route to any name server of ${zone}: ${listServers(servers)}. The record itself may be fine`,
      fix: "Check this machine's network connection and firewall, and try again",
    }
  return {
    ...common,
    message: `The name servers of ${zone} have only ${family} addresses, and this machine has no ${family} route: nothing could be checked`,
    fix: `Check from a machine with ${family}`,
  }
}

function unreachable(observations: ZoneObservations, dead: readonly Observation[], all: boolean): Finding {
  const common = { code: 'nameserver_unreachable', details: { servers: serverEvidence(dead) } } as const
  const { stale, others } = splitByGlue(observations, dead)
  if (all && others.length > 0)
    return { ...common, severity: 'error', ...nobodyAnswers(observations, dead), certain: false }
  if (isOwnIpv6(observations, dead))
    return {
      ...common,
      severity: 'info',
      message: `${listServers(dead)} ${dead.length === 1 ? "doesn't" : "don't"} answer; no IPv6 address does, so it may be the IPv6 of this machine`,
      fix: "No action needed if IPv6 doesn't work here",
    }
  const unresolved = dead.filter((server) => server.server === undefined && server.outcome === 'unreachable')
  const dots = missingDots(
    unresolved.map(({ host }) => host),
    observations.zone,
  )
  const what =
    unresolved.length === dead.length
      ? `${dead.length === 1 ? 'has' : 'have'} no address`
      : dead.every((server) => server.outcome === 'timeout')
        ? `${dead.length === 1 ? "doesn't" : "don't"} answer`
        : "can't be reached"
  return {
    ...common,
    severity: all || isCutOff(observations, stale) ? 'error' : 'warning',
    message: `${listServers(dead)} ${what}${dots === undefined ? '' : `. ${dots.message}`}`,
    ...fixAddresses(
      observations,
      dead,
      (others, removal) =>
        dots?.fix ??
        `Verification may fail if it queries ${others.length === 1 ? 'this server: have it' : 'one of these servers: have them'} repaired, or ${removal}`,
    ),
  }
}

/** If servers of the zone above answered, this network doesn't block DNS. */
function nobodyAnswers(
  { zone, parent, registryUnseen, recursionAbove = [] }: ZoneObservations,
  dead: readonly Observation[],
): Pick<Finding, 'message' | 'fix'> {
  const message = `No name server of ${zone} answers: ${listServers(dead)}`
  const fine = 'The record itself may be fine'
  if (parent !== undefined && recursionAbove.length === 0)
    return {
      message: `${message}. The servers of ${parent.zone} do, so this network doesn't block all DNS queries. ${fine}`,
      fix: "Tell the DNS provider that its servers don't answer; to be sure that they are down, check from another network first",
    }
  const registry = listedRegistry(zone)
  return {
    message: `${message}${registryUnseen === true && registry !== undefined ? `. The registry (${registry}) couldn't be asked either, so this network probably blocks DNS queries` : ''}. ${fine}`,
    fix: "Check this machine's network connection, and whether outbound port 53 (UDP and TCP) is allowed, or check from another network. If the servers don't answer there either, tell the DNS provider that they are down",
  }
}

/** If no IPv6 address answers, but the same hosts answer over IPv4, the cause is probably this machine. */
function isOwnIpv6(observations: ZoneObservations, dead: readonly Observation[]): boolean {
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

function tooManyTxt(observations: ZoneObservations): Finding | undefined {
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
