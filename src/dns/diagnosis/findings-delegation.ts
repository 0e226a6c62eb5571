import { isIP } from 'node:net'
import {
  groupByOutcome,
  type HostAlias,
  type Observation,
  type ServerAtHost,
  type StaleGlue,
  type UndelegatedZone,
  type ZoneObservations,
} from '../observation/observations.ts'
import { isRegistry, listedRegistry, registeredDomain } from '../resolution/registry.ts'
import { isWithin } from '../wire/name.ts'
import { dnsHostsOf } from './dns-hosts.ts'
import type { Finding } from './finding.ts'
import { addedRecord } from './labels.ts'
import { text } from './text.ts'

/** Where to change the delegation of the zone: at the registrar, or in the parent zone if that isn't a registry's. */
export function delegationPlace({ parent }: ZoneObservations): string {
  return parent === undefined || parent.zone === '.' || isRegistry(parent.zone)
    ? 'at the registrar'
    : `in the zone ${parent.zone}`
}

/** The old addresses among these servers', and the servers at other addresses. */
export function splitByGlue({ staleGlue = [] }: ZoneObservations, servers: readonly Observation[]) {
  const at = (stale: StaleGlue, { host, server }: Observation) =>
    stale.host === host && stale.glue === server?.address
  return {
    stale: staleGlue.filter((stale) => servers.some((server) => at(stale, server))),
    others: servers.filter((server) => !staleGlue.some((stale) => at(stale, server))),
  }
}

/** The parent zone sends resolvers to addresses that the hosts' own zones don't have. */
export function glueFix({ parent }: ZoneObservations, stale: readonly StaleGlue[]): string {
  const changes = stale.map(({ host, glue, own }) => {
    const [holder, place] =
      parent === undefined || isRegistry(parent.zone)
        ? ['the registry', `at the registrar of ${registeredDomain(host, parent?.zone ?? '.')}`]
        : [parent.zone, `in the zone ${parent.zone}`]
    return `${holder} still has the old address ${glue} for ${host}, so change the glue (host record) ${place} to ${own.join(', ')}`
  })
  return `Waiting won't help: ${changes.join('; ')}`
}

/** The NS records of a zone file in which the dot after the host is missing, so the zone was appended (RFC 1035 section 5.1). */
export interface MissingDots {
  /** `ns1.example.net` for `ns1.example.net.example.com`. */
  readonly meant: ReadonlyMap<string, string>
  readonly message: string
  readonly fix: string
}

/** Undefined if no dot is missing in the names of these servers. */
export function missingDots(hosts: readonly string[], zone: string): MissingDots | undefined {
  const appended = `.${zone}`
  const meant = new Map(
    hosts
      .filter((host) => host.endsWith(appended))
      .map((host): [string, string] => [host, host.slice(0, -appended.length)])
      .filter(([, name]) => ![undefined, name].includes(listedRegistry(name))),
  )
  const [first] = meant
  if (first === undefined) return undefined
  return {
    meant,
    message: `The dot at the end is missing in the NS records, so ${zone} was appended: ${first[0]} is most likely meant to be ${first[1]}`,
    fix: `Enter the name servers with a dot at the end (${[...meant.values()].map((name) => `${name}.`).join(', ')})`,
  }
}

/** None of the name servers has an address: there is none, the glue is missing, or looking it up fails. */
export function noNameservers(observations: ZoneObservations): Finding {
  const { zone, parent, servers } = observations
  const hosts = servers.map((server) => server.host)
  const place = delegationPlace(observations)
  const addresses = hosts.filter((host) => isIP(host) !== 0)
  if (addresses.length > 0)
    return {
      code: 'no_nameservers',
      severity: 'error',
      message: `The delegation of ${zone} lists ${addresses.join(', ')} as ${addresses.length === 1 ? 'a name server' : 'name servers'}, but a name server is given by its name, not by its IP address`,
      fix: `Enter the names of the name servers ${place}, such as ns1.example.com; the DNS provider lists them`,
      details: { zone, hosts, addresses },
    }
  const dots = missingDots(hosts, zone)
  if (dots !== undefined)
    return {
      code: 'no_nameservers',
      severity: 'error',
      message: `None of the name servers of ${zone} has an address (${hosts.join(', ')}). ${dots.message}`,
      fix: `${dots.fix} ${place}`,
      details: { zone, hosts, meant: Object.fromEntries(dots.meant) },
    }
  const missesGlue = hosts.length > 0 && hosts.every((host) => isWithin(host, zone))
  return {
    code: 'no_nameservers',
    severity: 'error',
    message: missesGlue
      ? `The name servers of ${zone} (${hosts.join(', ')}) are in the zone itself, and the delegation${parent === undefined ? '' : ` in ${parent.zone}`} has no addresses for them (glue), so they can't be found`
      : `None of the name servers of ${zone} (${hosts.join(', ')}) has an address that can be looked up, so nothing in this zone can be looked up`,
    fix: missesGlue
      ? `Add the addresses of ${hosts.join(', ')} ${place} (glue records, also called host records)`
      : `Set name servers for ${zone} that exist and can be looked up without ${zone} itself, ${place}; the DNS provider lists them`,
    details: { zone, hosts, glue_missing: missesGlue },
  }
}

/** A zone at only some servers of the zone above, which doesn't delegate it. */
export function zoneNotDelegated(
  { name, expected }: ZoneObservations,
  undelegated: UndelegatedZone,
): Finding {
  const { zone, above, holders, without } = undelegated
  const list = (servers: readonly ServerAtHost[]) =>
    servers.map(({ host, server }) => `${host} (${server.address})`).join(', ')
  const details = (servers: readonly ServerAtHost[]) =>
    servers.map(({ host, server }) => ({ host, address: server.address }))
  return {
    code: 'zone_not_delegated',
    severity: 'error',
    message: `The zone ${zone} exists only at ${list(holders)}, and ${above} doesn't delegate it: ${list(without)} ${without.length === 1 ? 'answers' : 'answer'} from ${above}. So what resolvers see depends on the server they ask`,
    fix: text`Waiting won't help. Delegate ${zone} with NS records in ${above}, or delete the zone ${zone} and add ${addedRecord({ name, zone: above, expected })}`,
    details: { zone, above, with: details(holders), without: details(without) },
  }
}

/** The target of an NS record must not be an alias (RFC 2181 section 10.3), and some resolvers don't use one that is. */
export function aliasedNameServers(observations: ZoneObservations): Finding | undefined {
  const { zone, servers, hostAliases = new Map<string, HostAlias>() } = observations
  const withoutGlue = [...hostAliases].filter(([, { hasGlue }]) => !hasGlue)
  const isHarmless = withoutGlue.length === 0
  const named = isHarmless ? [...hostAliases] : withoutGlue
  if (named.length === 0) return undefined
  const aliases = new Map(named.map(([host, { target }]) => [host, target]))
  const all = servers.every(({ host }) => aliases.has(host))
  const one = aliases.size === 1
  const listed = [...aliases].map(([host, target]) => `${host} (to ${target})`).join(', ')
  const them = one ? 'it' : 'them'
  const effect = isHarmless
    ? `the addresses that come with the delegation (glue) make ${them} work anyway`
    : all
      ? `some resolvers, such as BIND, can't look up anything in ${zone}`
      : `some resolvers, such as BIND, don't use ${them}`
  return {
    code: 'nameserver_alias',
    severity: isHarmless ? 'info' : all ? 'error' : 'warning',
    message: `${listed} ${one ? 'is an alias (CNAME), and a name server' : 'are aliases (CNAME), and name servers'} must not be (RFC 2181 section 10.3): ${effect}`,
    fix: `Replace ${one ? 'the CNAME of this name server with its' : 'the CNAMEs of these name servers with their'} A/AAAA records, or list ${[...new Set(aliases.values())].join(', ')} instead ${delegationPlace(observations)} and in the NS records of ${zone}`,
    details: { zone, aliases: Object.fromEntries(aliases) },
  }
}

/** The parent's and the zone's own NS records differ; undefined if they don't. */
export function parentChildMismatch(observations: ZoneObservations): Finding | undefined {
  const { parent, childHosts } = observations
  if (parent === undefined || childHosts === undefined) return undefined
  const onlyParent = parent.hosts.filter((host) => !childHosts.includes(host))
  const onlyChild = childHosts.filter((host) => !parent.hosts.includes(host))
  if (onlyParent.length === 0 && onlyChild.length === 0) return undefined
  const { withRecord, withoutRecord } = groupByOutcome(observations.servers)
  // The record is at one provider, and the other side of the delegation points to another one: waiting won't help.
  const isSplit =
    withRecord.length > 0 &&
    withoutRecord.length > 0 &&
    isSplitDelegation(observations, withRecord, withoutRecord)
  const providers = dnsHostsOf(observations.zone, [...parent.hosts, ...childHosts]).map(({ name }) => name)
  const isUnresolved = (host: string) =>
    observations.servers.some((server) => server.host === host && server.server === undefined)
  const dots = missingDots([...onlyChild, ...onlyParent].filter(isUnresolved), observations.zone)
  return {
    code: 'parent_child_mismatch',
    severity: isSplit ? 'error' : 'warning',
    message: `The delegation of ${observations.zone} in ${parent.zone} lists ${parent.hosts.join(', ')}, but the zone itself lists ${childHosts.join(', ')}${isSplit ? '; only some of them have the record' : ''}`,
    fix: `${dots === undefined ? 'Make' : `${dots.fix}, and make`} both lists the same: the NS records in the zone and those ${delegationPlace(observations)}${isSplit ? '. Until then, add the record at the provider of each server in the delegation' : ''}`,
    details: {
      parent: [...parent.hosts],
      child: [...childHosts],
      only_parent: onlyParent,
      only_child: onlyChild,
      ...(providers.length > 0 ? { providers } : {}),
    },
  }
}

/** The name servers are those that a resolver knows, which may have cached them before a move. Private domains have no registry. */
export function delegationNotChecked({
  zone,
  registryUnseen,
  servers,
}: ZoneObservations): Finding | undefined {
  const registry = listedRegistry(zone)
  const { withRecord, withoutRecord } = groupByOutcome(servers)
  const answered = withRecord.length + withoutRecord.length > 0
  if (!answered || registryUnseen !== true || registry === undefined || registry === zone) return undefined
  const hosts = [...new Set(servers.map(({ host }) => host))]
  return {
    code: 'delegation_not_checked',
    severity: 'warning',
    message: `The registry (${registry}) couldn't be asked which name servers ${zone} has. Those that were checked (${hosts.join(', ')}) may not be all, or may be outdated`,
    fix: 'Check again, or from another network. In a private network, the public name servers may be different ones',
    details: { zone, registry, nameservers: hosts },
  }
}

/** Whether only one side of the delegation names the servers without the record, or those with it. */
export function isSplitDelegation(
  { parent, childHosts }: ZoneObservations,
  withRecord: readonly Observation[],
  withoutRecord: readonly Observation[],
): boolean {
  if (parent === undefined || childHosts === undefined) return false
  const isOneSided = ({ host }: Observation) => !parent.hosts.includes(host) || !childHosts.includes(host)
  return withoutRecord.every(isOneSided) || withRecord.every(isOneSided)
}
