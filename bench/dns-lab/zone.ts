import { BIND, INTERNAL, KNOT, NSD, ROOT, TLD_A, TLD_B } from './network.ts'

/** The servers that can hold a zone. */
export const HOLDERS = {
  root: ROOT[0],
  tldA: TLD_A,
  tldB: TLD_B,
  knot: KNOT,
  nsd: NSD,
  bind: BIND,
  internal: INTERNAL,
}
export type Holder = keyof typeof HOLDERS

/** Name server hosts with their addresses. A name with a final dot is absolute, others are below the zone. */
export type Hosts = Readonly<Record<string, readonly string[]>>

export interface Signing {
  readonly algorithm?: 'ECDSAP256SHA256' | 'RSASHA256' | 'ED25519' | 'ECDSAP384SHA384'
  readonly nsec3?: 'plain' | 'opt-out'
  readonly expired?: true
  /** The parent's DS: that of the key, that of another key, or none. */
  readonly ds?: 'right' | 'wrong' | 'none'
}

export interface Zone {
  readonly apex: string
  /** What each holder has except SOA, NS and the servers' addresses. */
  readonly on: Partial<Record<Holder, string>>
  readonly ns: Hosts
  /** The delegation in the parent if it differs, by holder of the parent zone or for all of them. */
  readonly delegation?: Hosts | 'none'
  readonly delegationAt?: Partial<Record<Holder, Hosts | 'none'>>
  readonly signed?: Signing
  /** A DS record in the parent of an unsigned zone. */
  readonly strayDs?: true
  readonly serials?: Partial<Record<Holder, number>>
  readonly mname?: Partial<Record<Holder, string>>
  readonly ttl?: number
  readonly nsTtl?: number
  readonly refresh?: number
  readonly minimum?: number
}

type Options = Omit<Partial<Zone>, 'apex' | 'on'> & { readonly at?: readonly Holder[] }

/** A zone with the same records at each holder; without `ns`, each holder is a name server. */
export function zone(
  apex: string,
  records: string | Partial<Record<Holder, string>>,
  options: Options = {},
): Zone {
  const { at = ['knot', 'nsd'], ...rest } = options
  const on = typeof records === 'string' ? Object.fromEntries(at.map((holder) => [holder, records])) : records
  const holders = Object.keys(on) as Holder[]
  const ns = Object.fromEntries(
    holders
      .filter((holder) => holder !== 'internal')
      .map((holder, index) => [`ns${index + 1}`, [HOLDERS[holder]]]),
  )
  return { apex, on, ns, ...rest }
}

export const absolute = (host: string, apex: string) =>
  host.endsWith('.') ? host : apex === '.' ? `${host}.` : `${host}.${apex}.`

function addressLines(hosts: Hosts, apex: string): string[] {
  return Object.entries(hosts).flatMap(([host, addresses]) =>
    addresses.map(
      (address) => `${absolute(host, apex)} 3600 ${address.includes(':') ? 'AAAA' : 'A'} ${address}`,
    ),
  )
}

const nsLines = (hosts: Hosts, apex: string, ttl: number) =>
  Object.keys(hosts).map((host) => `${apex === '.' ? '.' : `${apex}.`} ${ttl} NS ${absolute(host, apex)}`)

/** The delegation of a child in the parent zone, at one of its holders. */
export function delegationLines(child: Zone, at: Holder): string[] {
  const hosts = child.delegationAt?.[at] ?? child.delegation ?? child.ns
  if (hosts === 'none') return []
  return [...nsLines(hosts, child.apex, child.nsTtl ?? 86_400), ...addressLines(hosts, child.apex)]
}

export function parentOf(child: Zone, zones: readonly Zone[]): Zone | undefined {
  return zones
    .filter((other) => other.apex === '.' || child.apex.toLowerCase().endsWith(`.${other.apex}`))
    .filter((other) => other.apex !== child.apex)
    .sort((a, b) => b.apex.length - a.apex.length)[0]
}

/** The zone file for one holder, including delegations. */
export function zoneFile(zone: Zone, holder: Holder, delegations: readonly string[]): string {
  const [first = 'ns1'] = Object.keys(zone.ns)
  const mname = absolute(zone.mname?.[holder] ?? first, zone.apex)
  const serial = zone.serials?.[holder] ?? 7
  const timers = `${zone.refresh ?? 7200} 900 1209600 ${zone.minimum ?? 300}`
  const own = addressLines(zone.ns, zone.apex).filter((line) => isInside(line, zone.apex))
  return [
    `$ORIGIN ${zone.apex === '.' ? '.' : `${zone.apex}.`}`,
    `$TTL ${zone.ttl ?? 300}`,
    `@ 3600 SOA ${mname} hostmaster.${mname} ${serial} ${timers}`,
    ...nsLines(zone.ns, zone.apex, zone.nsTtl ?? 3600),
    ...own,
    zone.on[holder] ?? '',
    ...new Set(delegations),
    '',
  ].join('\n')
}

const isInside = (line: string, apex: string) =>
  apex === '.' || (line.split(' ')[0] ?? '').endsWith(`.${apex}.`)
