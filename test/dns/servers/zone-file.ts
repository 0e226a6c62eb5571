/** The addresses of the test servers. Knot listens at `a` and `b`. */
export const HOSTS = {
  a: '127.0.53.11',
  b: '127.0.53.12',
} as const

export type Holder = keyof typeof HOSTS

export interface TestZone {
  readonly domain: string
  /** The records of the zone at each server that holds it, except SOA, NS and the servers' addresses. */
  readonly on: Partial<Record<Holder, string>>
  /** The NS set of the zone and of its delegation. A name with a dot is used unchanged. */
  readonly ns: readonly string[]
  /** RDATA of a DS record in the parent zone. */
  readonly ds?: string
  /** Set if another test zone delegates this zone, and not `test.`. */
  readonly undelegated?: true
  readonly ttl?: number
  readonly minimum?: number
  /** `ns-a` has only this IPv6 address. */
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
