/** The servers of the tests: where they are. `a` (Knot), `b`, `c` (NSD) and `bind` are real, the others stand before `a` or are none. */
export const HOSTS = {
  a: '127.0.53.11',
  b: '127.0.53.12',
  c: '127.0.53.13',
  /** `a` once more. */
  d: '127.0.53.14',
  /** BIND, resolver and server in one: it listens on addresses that an interface has by name, of loopback this one. */
  bind: '127.0.0.1',
  /** `a` with TCP closed. */
  udponly: '127.0.53.21',
  /** `a`, three seconds late. */
  slow: '127.0.53.22',
  /** `a`, which refuses EDNS. */
  noedns: '127.0.53.23',
  /** `a` with forged and broken answers in front of the true ones. */
  noisy: '127.0.53.24',
  /** Something on the way that answers in everybody's place. */
  interceptor: '127.0.53.25',
  /** `a`, which drops questions with EDNS. */
  dropsEdns: '127.0.53.26',
  /** `a`, which refuses TXT questions. */
  refusesTxt: '127.0.53.27',
  /** A resolver that refuses questions without recursion, named as a server. */
  recursor: '127.0.53.28',
  /** A router in front of the resolver that takes TXT and SOA records out of answers. */
  stripper: '127.0.53.29',
  /** It takes questions and says nothing, over UDP and TCP. */
  silent: '127.0.53.98',
  silent2: '127.0.53.97',
  /** Nobody is there. */
  dead: '127.0.53.99',
} as const

export type Host = keyof typeof HOSTS
export type Holder = 'a' | 'b' | 'c' | 'bind'

export interface TestZone {
  readonly domain: string
  /** The records of the zone at each server that holds it, beside SOA, NS and the servers' addresses. */
  readonly on: Partial<Record<Holder, string>>
  /** The NS set of the zone itself. A name with a dot is taken as it is. */
  readonly ns: readonly (Host | string)[]
  /** The NS set that the parent gives, where it differs. */
  readonly parentNs?: readonly (Host | string)[]
  /** A DS record that the parent has, without its owner. */
  readonly ds?: string
  /** The parent gives no addresses. */
  readonly withoutGlue?: true
  /** The first server that the SOA record names, where a holder's differs. */
  readonly primaries?: Partial<Record<Holder, string>>
  /** Not delegated by `test.` but by a zone of the tests, or by none. */
  readonly undelegated?: true
  readonly serials?: Partial<Record<Holder, number>>
  readonly ttl?: number
  readonly soaTtl?: number
  readonly minimum?: number
  /** AAAA records of `ns-a`. */
  readonly ipv6?: string
  readonly signed?: true
  /** Where resolvers look instead of at the first holder. */
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

/** The zone as a master file of one server. */
export function masterFile(zone: TestZone, holder: Holder): string {
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

/** The delegation as the parent has it, with glue. */
export function delegation(zone: TestZone): string {
  const hosts = zone.parentNs ?? zone.ns
  return [
    ...hosts.map((host) => `${zone.domain}. NS ${hostName(host, zone.domain)}`),
    ...(zone.withoutGlue ? [] : addressLines(zone, hosts)),
    ...(zone.ds === undefined ? [] : [`${zone.domain}. DS ${zone.ds}`]),
  ].join('\n')
}
