import { isIPv6 } from 'node:net'
import type { Observation, ZoneObservations } from '../observation/observations.ts'
import { listedRegistry } from '../resolution/registry.ts'
import type { Finding } from './finding.ts'
import { missingDots, splitByGlue } from './findings-delegation.ts'
import { fixAddresses, isCutOff } from './fix-addresses.ts'
import { listServers, serverEvidence } from './server-list.ts'

/** No server was queried: the check has used all its queries, or this machine has no route to their addresses. */
export function notQueried(observations: ZoneObservations, servers: readonly Observation[]): Finding {
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

export function unreachable(
  observations: ZoneObservations,
  dead: readonly Observation[],
  all: boolean,
): Finding {
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
