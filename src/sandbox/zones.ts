import type { Answer } from 'dns-packet'

export type RecordType = 'A' | 'CNAME' | 'NS' | 'TXT'

/** The data of one record: an address or host, or the character strings of a TXT record. */
export type RecordData = string | readonly Buffer[]

/** How the name servers of a zone misbehave; with `cached`, resolvers still have the answer from before. */
export type ServerFault = 'silent' | 'refused' | 'lame' | 'cached'

export interface Zone {
  /** Lower case, no dot at the end; the root is ''. */
  readonly apex: string
  serial: number
  /** The root, or a registry: there only so that a walk from the root down finds a delegation. */
  readonly isParent: boolean
  fault: ServerFault | undefined
}

/** The name servers of every zone. All have the address of the sandbox. */
const NAME_SERVERS = ['ns1.sandbox-dns.test', 'ns2.sandbox-dns.test']
/** That of the root and the registries. */
const PARENT_SERVER = 'registry.sandbox-dns.test'
/** A host without the record of any claim, for aliases to lead to. */
export const PARKED_HOST = 'parked.sandbox-dns.test'

const TTL: Readonly<Record<RecordType, number>> = { A: 3600, NS: 3600, CNAME: 300, TXT: 300 }
/** Seconds for which a "no" may be remembered (RFC 2308, section 5). */
const NEGATIVE_TTL = 60

/** Second-level names under which registries sell the third level; the true list is that of publicsuffix.org. */
const SECOND_LEVELS = ['ac', 'co', 'com', 'edu', 'gov', 'net', 'ne', 'nom', 'or', 'org']

function parentName(name: string): string {
  const dot = name.indexOf('.')
  return dot < 0 ? '' : name.slice(dot + 1)
}

export type Zones = ReturnType<typeof createZones>

/** All zones, with names in lower case and without the final dot. */
export function createZones() {
  const zones = new Map<string, Zone>()
  /** Of all zones: a name is in the deepest zone that holds it. */
  const names = new Map<string, Map<RecordType, readonly RecordData[]>>()

  function createZone(apex: string, isParent: boolean): Zone {
    const zone: Zone = { apex, serial: 1, isParent, fault: undefined }
    zones.set(apex, zone)
    setRecords(apex, 'NS', isParent ? [PARENT_SERVER] : NAME_SERVERS)
    // As its previous owner left it: a web server, but no record of a claim.
    if (!isParent) setRecords(apex, 'A', ['192.0.2.10'])
    return zone
  }

  /** The deepest zone that holds the name; none for names below a top level that has no zones. */
  function findZone(name: string): Zone | undefined {
    for (let apex = name; ; apex = parentName(apex)) {
      const zone = zones.get(apex)
      // The root cannot deny names outside this sandbox.
      if (zone !== undefined || apex === '') return apex === '' && name !== '' ? undefined : zone
    }
  }

  /** The zone of a name, made as the registrable domain if it is missing. */
  function ensureZone(name: string): Zone {
    const held = findZone(name)
    if (held !== undefined && !held.isParent) return held
    const labels = name.split('.')
    const top = labels.at(-1) ?? ''
    const isThird = labels.length > 2 && top.length === 2 && SECOND_LEVELS.includes(labels.at(-2) ?? '')
    for (const parent of ['', top]) if (!zones.has(parent)) createZone(parent, true)
    return createZone(labels.slice(isThird ? -3 : -2).join('.'), false)
  }

  /** Puts these records in the place of those with the same name and type; none removes them. */
  function setRecords(name: string, type: RecordType, data: readonly RecordData[]): void {
    const held = findZone(name)
    const zone = held?.apex === name ? held : ensureZone(name)
    const types = names.get(name) ?? new Map<RecordType, readonly RecordData[]>()
    if (data.length > 0) types.set(type, data)
    else if (!types.delete(type)) return
    if (types.size > 0) names.set(name, types)
    else names.delete(name)
    zone.serial += 1
  }

  for (const host of [...NAME_SERVERS, PARENT_SERVER]) {
    ensureZone(host)
    setRecords(host, 'A', ['127.0.0.1'])
  }
  setRecords(PARKED_HOST, 'A', ['192.0.2.80'])
  ensureZone('example.com')

  return {
    findZone,
    ensureZone,
    setRecords,
    recordsAt: (name: string): ReadonlyMap<RecordType, readonly RecordData[]> | undefined => names.get(name),
    /** Whether anything lives at or below the name, which tells NODATA from NXDOMAIN (RFC 8020). */
    nameExists(name: string): boolean {
      if (names.has(name)) return true
      for (const other of names.keys()) if (other.endsWith(`.${name}`)) return true
      return false
    },
  }
}

/** A TXT record with this text, in strings of at most 255 bytes (RFC 1035, section 3.3.14). */
export function txtData(text: string): RecordData {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  for (let at = 0; at === 0 || at < bytes.length; at += 255) pieces.push(bytes.subarray(at, at + 255))
  return pieces
}

export const RCODES = { noError: 0, servFail: 2, nxDomain: 3, refused: 5 } as const

export interface DnsAnswer {
  readonly rcode: number
  readonly authoritative?: boolean
  readonly answers?: readonly Answer[]
  readonly authorities?: readonly Answer[]
  readonly additionals?: readonly Answer[]
}

/**
 * What the server says (RFC 1034, section 4.3.2, with the wildcards of RFC 4592).
 * @param asked the name as the question wrote it
 * @param recursion whether it is asked as a resolver, not as a name server of root, registry or zone
 */
export function answerQuestion(
  zones: Zones,
  asked: string,
  type: string,
  recursion: boolean,
): DnsAnswer | 'silence' {
  const owner = asked.replace(/\.$/, '').toLowerCase()
  // The parent answers for DS (RFC 4035, section 3.1.4.1).
  const isOfParent = type === 'DS' && owner !== '' && zones.findZone(owner)?.apex === owner
  const zone = zones.findZone(isOfParent ? parentName(owner) : owner)
  if (zone === undefined) return { rcode: RCODES.refused }
  const faultAnswer = answerWithFault(zones, zone, type, recursion)
  if (faultAnswer !== undefined) return faultAnswer

  const types = findRecords(zones, zone, owner)
  const authorities = [soa(zone, NEGATIVE_TTL)]
  if (types === undefined) return { rcode: RCODES.nxDomain, authoritative: true, authorities }
  const isApex = type === 'SOA' && owner === zone.apex
  const found = isApex ? [soa(zone, 3600)] : toRRs(asked, type as RecordType, types.get(type as RecordType))
  const [target] = types.get('CNAME') ?? []
  if (found.length === 0 && typeof target === 'string') {
    const answer = answerQuestion(zones, target, type, recursion)
    const alias = toRRs(asked, 'CNAME', [target])
    return answer === 'silence' ? answer : { ...answer, answers: [...alias, ...(answer.answers ?? [])] }
  }
  return {
    rcode: RCODES.noError,
    authoritative: true,
    answers: found,
    ...(found.length === 0 ? { authorities } : {}),
    ...(type === 'NS' ? { additionals: glue(zones, types.get('NS')) } : {}),
  }
}

/** What is said about a zone in trouble, where that shows. */
function answerWithFault(
  zones: Zones,
  zone: Zone,
  type: string,
  recursion: boolean,
): DnsAnswer | 'silence' | undefined {
  if (zone.fault === undefined) return undefined
  if (zone.fault === 'cached') {
    const isCached = recursion && type === 'TXT'
    return isCached ? { rcode: RCODES.noError, authorities: [soa(zone, NEGATIVE_TTL)] } : undefined
  }
  // A resolver still knows where the zone is.
  if (recursion) return type === 'TXT' ? { rcode: RCODES.servFail } : undefined
  // What the registry would answer, which has the same address as the servers of the zone.
  if (type === 'SOA' || type === 'NS') {
    const hosts = zones.recordsAt(zone.apex)?.get('NS')
    const authorities = toRRs(zone.apex, 'NS', hosts)
    return { rcode: RCODES.noError, authorities, additionals: glue(zones, hosts) }
  }
  if (zone.fault === 'silent') return 'silence'
  return { rcode: zone.fault === 'refused' ? RCODES.refused : RCODES.noError }
}

/** The records at a name, or at the wildcard that covers it; undefined if the name doesn't exist. */
function findRecords(zones: Zones, zone: Zone, name: string): ReturnType<Zones['recordsAt']> {
  const types = zones.recordsAt(name)
  if (types !== undefined) return types
  if (zones.nameExists(name)) return new Map()
  let encloser = parentName(name)
  while (encloser !== zone.apex && !zones.nameExists(encloser)) encloser = parentName(encloser)
  return zones.recordsAt(`*.${encloser}`)
}

function glue(zones: Zones, hosts: readonly RecordData[] | undefined): Answer[] {
  return (hosts ?? []).flatMap((host) =>
    typeof host === 'string' ? toRRs(host, 'A', zones.recordsAt(host)?.get('A')) : [],
  )
}

function soa(zone: Zone, ttl: number): Answer {
  return {
    type: 'SOA',
    name: zone.apex === '' ? '.' : zone.apex,
    ttl,
    data: {
      mname: NAME_SERVERS[0] ?? '',
      rname: 'hostmaster.sandbox-dns.test',
      serial: zone.serial,
      refresh: 7200,
      retry: 900,
      expire: 1_209_600,
      minimum: NEGATIVE_TTL,
    },
  }
}

function toRRs(name: string, type: RecordType, data: readonly RecordData[] | undefined): Answer[] {
  const owner = name === '' ? '.' : name
  return (data ?? []).map((one) => {
    // The encoder changes the list of strings that it gets.
    const value = typeof one === 'string' ? one : [...one]
    return { type, name: owner, ttl: TTL[type], data: value } as Answer
  })
}
