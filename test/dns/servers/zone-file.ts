/** Addresses of the two authoritative servers, `a` and `b`. */
export const HOSTS = {
  a: '127.0.53.11',
  b: '127.0.53.12',
} as const

export type Holder = keyof typeof HOSTS

export interface TestZone {
  readonly domain: string
  /** The records of the zone at each server that holds it, except SOA, NS and the servers' addresses. */
  readonly on: Partial<Record<Holder, string>>
  /** NS set of the zone and its delegation: `a` and `b` for `ns-a` and `ns-b` below the zone, or a complete name with a dot. */
  readonly ns: readonly string[]
  /** RDATA of a DS record in the parent zone. */
  readonly ds?: string
  /** Set if another test zone delegates this zone instead of `test.`. */
  readonly undelegated?: true
  readonly ttl?: number
  readonly minimum?: number
  /** IPv6 address of `ns-a` and `ns-b`, instead of their IPv4 addresses. */
  readonly ipv6?: string
  readonly signed?: true
}

const hostName = (host: string, domain: string) => (host.includes('.') ? host : `ns-${host}.${domain}.`)

function addressLines({ ipv6, domain, ns }: TestZone): string[] {
  return ns
    .filter((host): host is Holder => !host.includes('.'))
    .map((host) =>
      ipv6 === undefined ? `ns-${host}.${domain}. A ${HOSTS[host]}` : `ns-${host}.${domain}. AAAA ${ipv6}`,
    )
}

/** Creates the zone file for one server. */
export function zoneFile(zone: TestZone, holder: Holder): string {
  const { domain, ttl = 300, minimum = 60 } = zone
  return [
    `$ORIGIN ${domain}.`,
    `$TTL ${ttl}`,
    `@ 3600 SOA ns-a hostmaster 1 7200 900 86400 ${minimum}`,
    ...zone.ns.map((host) => `@ NS ${hostName(host, domain)}`),
    ...addressLines(zone),
    zone.on[holder] ?? '',
    '',
  ].join('\n')
}

/** Creates the delegation in the parent zone, with glue. */
export function delegation(zone: TestZone): string {
  return [
    ...zone.ns.map((host) => `${zone.domain}. NS ${hostName(host, zone.domain)}`),
    ...addressLines(zone),
    ...(zone.ds === undefined ? [] : [`${zone.domain}. DS ${zone.ds}`]),
  ].join('\n')
}
