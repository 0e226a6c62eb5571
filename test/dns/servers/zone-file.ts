/** The addresses of the test servers. `a` (Knot), `b`, `c` (NSD) and `bind` are real; most of the others are relays. */
export const HOSTS = {
  a: '127.0.53.11',
  b: '127.0.53.12',
  c: '127.0.53.13',
  /** `a` at another address. */
  d: '127.0.53.14',
  /** BIND, both resolver and server. It only listens on configured interface addresses: on loopback, this one. */
  bind: '127.0.0.1',
  /** `a` with TCP closed. */
  udponly: '127.0.53.21',
  /** `a`, three seconds late. */
  slow: '127.0.53.22',
  /** `a`, which refuses EDNS. */
  noedns: '127.0.53.23',
  /** `a`, with forged and broken answers before the real ones. */
  noisy: '127.0.53.24',
  /** A resolver that answers queries without recursion as well, listed as a name server. */
  openResolver: '127.0.53.25',
  /** `a`, which drops queries with EDNS. */
  dropsEdns: '127.0.53.26',
  /** `a`, which refuses TXT queries. */
  refusesTxt: '127.0.53.27',
  /** A resolver that refuses queries without recursion, listed as a name server. */
  recursor: '127.0.53.28',
  /** A router that removes TXT and SOA records from the resolver's answers. */
  stripper: '127.0.53.29',
  /** `a`, which drops queries for signatures. */
  dropsDo: '127.0.53.30',
  /** `a`, with a CNAME next to the TXT records in its answers. */
  addsCname: '127.0.53.31',
  /** `a`, with a CNAME in all other answers about names with TXT records. */
  hasCname: '127.0.53.32',
  /** `a`, which answers queries with EDNS with SERVFAIL. */
  failsEdns: '127.0.53.33',
  /** `a`, which answers queries with EDNS with BADVERS. */
  badversEdns: '127.0.53.35',
  /** `a`, whose answers lack the AA bit. */
  unauthoritative: '127.0.53.34',
  /** Accepts queries over UDP and TCP but never answers. */
  silent: '127.0.53.98',
  silent2: '127.0.53.97',
  /** Nothing listens here. */
  dead: '127.0.53.99',
} as const

export type Host = keyof typeof HOSTS
export type Holder = 'a' | 'b' | 'c' | 'bind'

export interface TestZone {
  readonly domain: string
  /** The records of the zone at each server that holds it, except SOA, NS and the servers' addresses. */
  readonly on: Partial<Record<Holder, string>>
  /** The NS set of the zone itself. A name with a dot is used unchanged. */
  readonly ns: readonly (Host | string)[]
  /** The NS set in the parent, if it differs. */
  readonly parentNs?: readonly (Host | string)[]
  /** A DS record in the parent, without its owner. */
  readonly ds?: string
  /** The parent has no glue. */
  readonly withoutGlue?: true
  /** The primary server in the SOA record of a holder, if it differs. */
  readonly primaries?: Partial<Record<Holder, string>>
  /** Not delegated by `test.`, but by another test zone or not at all. */
  readonly undelegated?: true
  readonly serials?: Partial<Record<Holder, number>>
  readonly ttl?: number
  readonly soaTtl?: number
  readonly minimum?: number
  /** AAAA records of `ns-a`. */
  readonly ipv6?: string
  readonly signed?: true
  /** Which server resolvers use instead of the first holder. */
  readonly resolveAt?: Host
}

const hostName = (host: string, domain: string) => (host.includes('.') ? host : `ns-${host}.${domain}.`)

function addressLines(zone: TestZone, hosts: readonly string[]): string[] {
  return [...new Set(hosts)]
    .filter((host) => !host.includes('.'))
    .flatMap((host) => [
      ...(zone.ipv6 !== undefined && host === 'a' ? [`ns-${host}.${zone.domain}. AAAA ${zone.ipv6}`] : []),
      ...(zone.ipv6 !== undefined && host === 'a'
        ? []
        : [`ns-${host}.${zone.domain}. A ${HOSTS[host as Host]}`]),
    ])
}

/** The zone file for one server. */
export function zoneFile(zone: TestZone, holder: Holder): string {
  const { domain, ttl = 300, soaTtl = 3600, minimum = 60 } = zone
  const serial = zone.serials?.[holder] ?? 1
  return [
    `$ORIGIN ${domain}.`,
    `$TTL ${ttl}`,
    `@ ${soaTtl} SOA ${zone.primaries?.[holder] ?? 'ns-a'} hostmaster ${serial} 7200 900 86400 ${minimum}`,
    ...zone.ns.map((host) => `@ NS ${hostName(host, domain)}`),
    ...addressLines(zone, [...zone.ns, ...(zone.parentNs ?? [])]),
    zone.on[holder] ?? '',
    '',
  ].join('\n')
}

/** The delegation in the parent, with glue. */
export function delegation(zone: TestZone): string {
  const hosts = zone.parentNs ?? zone.ns
  return [
    ...hosts.map((host) => `${zone.domain}. NS ${hostName(host, zone.domain)}`),
    ...(zone.withoutGlue ? [] : addressLines(zone, hosts)),
    ...(zone.ds === undefined ? [] : [`${zone.domain}. DS ${zone.ds}`]),
  ].join('\n')
}
