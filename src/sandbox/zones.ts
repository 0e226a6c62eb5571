/** The records of one name and type. TXT values are the character strings of each record, as bytes. */
export type RecordData =
  | { readonly type: 'TXT'; readonly strings: readonly Buffer[] }
  | { readonly type: 'A' | 'AAAA' | 'CNAME' | 'NS'; readonly value: string }
  | { readonly type: 'MX'; readonly preference: number; readonly value: string }

export type RecordType = RecordData['type']
export const RECORD_TYPES: readonly RecordType[] = ['TXT', 'A', 'AAAA', 'CNAME', 'MX', 'NS']

export interface RecordSet {
  /** Seconds. */
  readonly ttl: number
  readonly data: readonly RecordData[]
}

/** A way for all name servers of a zone to misbehave. */
export type Trouble = 'servfail' | 'refused' | 'silent' | 'lame'
export const TROUBLES: readonly Trouble[] = ['servfail', 'refused', 'silent', 'lame']

export interface Zone {
  /** Lower case, no dot at the end; the root is ''. */
  readonly apex: string
  serial: number
  /** By name, then by type; the SOA is made from the zone itself. */
  readonly names: Map<string, Map<RecordType, RecordSet>>
  /** A parent of others, there only so that a walk from the root down finds a delegation. */
  readonly parent: boolean
  trouble: Trouble | undefined
  /** How the second of its two name servers differs from the first: by trouble, or by an older copy of the zone. */
  second: Trouble | Zone | undefined
}

export const NAME_SERVERS: readonly [string, string] = ['ns1.sandbox-dns.test', 'ns2.sandbox-dns.test']
/** A name server with another address, for zones whose two servers differ. */
export const OTHER_SERVER = { host: 'ns3.sandbox-dns.test', address: '127.0.0.2' } as const
/** The name server of the root and the registries; at 127.0.0.1 if the system doesn't have this address. */
export const REGISTRY_SERVER = { host: 'registry.sandbox-dns.test', address: '127.0.0.3' } as const
export const HOSTMASTER = 'hostmaster.sandbox-dns.test'
/** Where the name servers themselves have their names. */
export const INFRASTRUCTURE_ZONE = 'sandbox-dns.test'
export const NS_TTL = 3600
export const DEFAULT_TTL = 300

/**
 * Second-level names under which registries sell the third level; enough to guess the zone of a name in a sandbox.
 * The true list is that of publicsuffix.org.
 */
const SECOND_LEVELS = new Set(['ac', 'co', 'com', 'edu', 'gov', 'net', 'ne', 'nom', 'or', 'org'])

/** Lower case and without the final dot, as zones are kept. */
export function normalName(name: string): string {
  return name.replace(/\.$/, '').toLowerCase()
}

export function parentName(name: string): string {
  const dot = name.indexOf('.')
  return dot < 0 ? '' : name.slice(dot + 1)
}

export function isWithin(name: string, apex: string): boolean {
  return apex === '' || name === apex || name.endsWith(`.${apex}`)
}

export interface Zones {
  /** All zones that people see, in order of their names; without the parents. */
  list(): readonly Zone[]
  /** The deepest zone that holds the name, parents included. */
  holding(name: string): Zone | undefined
  /** The deepest of the parents that holds the name. */
  registryOf(name: string): Zone | undefined
  /** The zone for a name; creates it (as the registrable domain) if missing. */
  ensure(name: string): Zone
  set(name: string, type: RecordType, records: RecordSet): Zone
  /** True where something was removed. */
  remove(name: string, type: RecordType): boolean
  /** Whether anything lives at or below the name, which tells NODATA from NXDOMAIN (RFC 8020). */
  exists(zone: Zone, name: string): boolean
}

export function createZones(): Zones {
  const zones = new Map<string, Zone>()

  function create(apex: string, parent: boolean): Zone {
    const zone: Zone = { apex, serial: 1, names: new Map(), parent, trouble: undefined, second: undefined }
    zones.set(apex, zone)
    const hosts = parent ? [REGISTRY_SERVER.host] : NAME_SERVERS
    put(zone, apex, 'NS', { ttl: NS_TTL, data: hosts.map((value) => ({ type: 'NS', value })) })
    return zone
  }

  function put(zone: Zone, name: string, type: RecordType, records: RecordSet): void {
    const types = zone.names.get(name) ?? new Map<RecordType, RecordSet>()
    zone.names.set(name, types.set(type, records))
    zone.serial += 1
  }

  function holding(name: string): Zone | undefined {
    for (let apex = name; ; apex = parentName(apex)) {
      const zone = zones.get(apex)
      // The root and the parents exist, but they cannot deny names outside this sandbox.
      if (zone !== undefined) return apex === '' && name !== '' ? undefined : zone
      if (apex === '') return undefined
    }
  }

  function registryOf(name: string): Zone | undefined {
    const zone = holding(name)
    return zone === undefined || zone.parent ? zone : registryOf(parentName(zone.apex))
  }

  function ensure(name: string): Zone {
    const held = holding(name)
    if (held !== undefined && !held.parent) return held
    const labels = name.split('.')
    const third = labels.length > 2 && labels.at(-1)?.length === 2 && SECOND_LEVELS.has(labels.at(-2) ?? '')
    const apex = labels.slice(third ? -3 : -2).join('.')
    const top = labels.at(-1) ?? ''
    if (!zones.has('')) create('', true)
    if (!zones.has(top)) create(top, true)
    return zones.get(apex) ?? create(apex, false)
  }

  // A host without the record of any claim, for aliases to lead to.
  put(ensure(INFRASTRUCTURE_ZONE), `parked.${INFRASTRUCTURE_ZONE}`, 'A', {
    ttl: NS_TTL,
    data: [{ type: 'A', value: '192.0.2.80' }],
  })
  for (const host of [...NAME_SERVERS, REGISTRY_SERVER.host]) {
    put(ensure(INFRASTRUCTURE_ZONE), host, 'A', { ttl: NS_TTL, data: [{ type: 'A', value: '127.0.0.1' }] })
  }
  put(ensure(INFRASTRUCTURE_ZONE), OTHER_SERVER.host, 'A', {
    ttl: NS_TTL,
    data: [{ type: 'A', value: OTHER_SERVER.address }],
  })

  return {
    holding,
    registryOf,
    ensure,
    list: () => [...zones.values()].filter((zone) => !zone.parent).sort((a, b) => (a.apex < b.apex ? -1 : 1)),
    set(name, type, records) {
      const zone = ensure(name)
      put(zone, name, type, records)
      return zone
    },
    remove(name, type) {
      const zone = holding(name)
      const types = zone?.names.get(name)
      if (zone === undefined || types?.delete(type) !== true) return false
      if (types.size === 0) zone.names.delete(name)
      zone.serial += 1
      return true
    },
    exists(zone, name) {
      if (zone.names.has(name)) return true
      const below = (other: string) => other.endsWith(`.${name}`)
      for (const other of zone.names.keys()) if (below(other)) return true
      if (zone.parent) for (const other of zones.keys()) if (other === name || below(other)) return true
      return false
    },
  }
}

/** What a zone is now, untouched by what becomes of it. */
export function copyOf(zone: Zone): Zone {
  return { ...zone, names: new Map([...zone.names].map(([name, types]) => [name, new Map(types)])) }
}

/** TXT data from text: one string, or the given ones; each split if longer than 255 bytes (RFC 1035, 3.3.14). */
export function txtData(strings: readonly string[]): RecordData {
  const pieces = strings.flatMap((text) => {
    const bytes = Buffer.from(text, 'utf8')
    const cut: Buffer[] = []
    for (let start = 0; start === 0 || start < bytes.length; start += 255) {
      cut.push(bytes.subarray(start, start + 255))
    }
    return cut
  })
  return { type: 'TXT', strings: pieces }
}

/** The record's data as people write it; the strings of a TXT record joined. */
export function shownData(data: RecordData): string {
  if (data.type === 'TXT') return Buffer.concat(data.strings).toString('utf8')
  return data.type === 'MX' ? `${data.preference} ${data.value}` : data.value
}
