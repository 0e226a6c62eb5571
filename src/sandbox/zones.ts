import type { Answer } from 'dns-packet'

export type RecordType = 'A' | 'CNAME' | 'NS' | 'TXT'

/** The data (RDATA) of one record: the address of A, the host of CNAME and NS, the character strings of TXT. */
export type RecordData = string | readonly Buffer[]

/**
 * Way in which DNS fails for a zone: its name servers don't respond (`silent`), refuse (`refused`) or don't know the zone (`lame`:
 * a lame delegation), or resolvers have cached that it has no TXT records (`cached`).
 */
export type ZoneFault = 'silent' | 'refused' | 'lame' | 'cached'

/** A zone of the sandbox, without its records. */
export interface DnsZone {
  /** The zone's name in lowercase without the final dot; '' for the root. */
  readonly apex: string
  serial: number
  /** Whether the zone is the root or a top-level domain. */
  readonly isParent: boolean
  fault: ZoneFault | undefined
}

/** The name servers of every zone below a top-level domain. All resolve to loopback, where the sandbox listens. */
const NAME_SERVERS = ['ns1.sandbox-dns.test', 'ns2.sandbox-dns.test']
/** The name server of the root and of the top-level domains. */
const PARENT_SERVER = 'registry.sandbox-dns.test'
/** Target of CNAME records that were published by mistake: a host without TXT records. */
export const MISTAKEN_CNAME_TARGET = 'parked.sandbox-dns.test'

const TTL: Readonly<Record<RecordType, number>> = { A: 3600, NS: 3600, CNAME: 300, TXT: 300 }
/** Negative TTL in seconds: the SOA record's TTL and MINIMUM in negative responses (RFC 2308, section 5). */
const NEGATIVE_TTL = 60

/** Labels that form a public suffix with a two-letter top-level domain, such as co.uk: a stand-in for the Public Suffix List. */
const SECOND_LEVELS = ['ac', 'co', 'com', 'edu', 'gov', 'net', 'ne', 'nom', 'or', 'org']

function parentName(name: string): string {
  const dot = name.indexOf('.')
  return dot < 0 ? '' : name.slice(dot + 1)
}

export type ZoneStore = ReturnType<typeof createZoneStore>

/**
 * Creates the store of zones and records, with the zones example.com and sandbox-dns.test, and the zones above these. Names are in
 * lowercase, without the final dot.
 */
export function createZoneStore() {
  const zones = new Map<string, DnsZone>()
  /** RRsets of all zones, by owner name and type; SOA records are made when they are asked for. */
  const names = new Map<string, Map<RecordType, readonly RecordData[]>>()
  /** For each name, the number of names at or below it that have records. */
  const counts = new Map<string, number>()

  function createZone(apex: string, isParent: boolean): DnsZone {
    const zone: DnsZone = { apex, serial: 1, isParent, fault: undefined }
    zones.set(apex, zone)
    setRecords(apex, 'NS', isParent ? [PARENT_SERVER] : NAME_SERVERS)
    // Give the zone a web server's address, so that it looks like a domain in use that lacks only the TXT record.
    if (!isParent) setRecords(apex, 'A', ['192.0.2.10'])
    return zone
  }

  /** Finds the zone whose apex is the longest suffix of the name; undefined if not even the top-level domain is in the sandbox. */
  function findZone(name: string): DnsZone | undefined {
    for (let apex = name; ; apex = parentName(apex)) {
      const zone = zones.get(apex)
      // Don't return the root zone for a name below the root: its NXDOMAIN would deny a top-level domain that may exist outside of
      // the sandbox.
      if (zone !== undefined || apex === '') return apex === '' && name !== '' ? undefined : zone
    }
  }

  /** Returns the zone of a name below a top-level domain; creates this zone, and those above, if missing. */
  function ensureZone(name: string): DnsZone {
    const existing = findZone(name)
    if (existing !== undefined && !existing.isParent) return existing
    const labels = name.split('.')
    const top = labels.at(-1) ?? ''
    const isThird = labels.length > 2 && top.length === 2 && SECOND_LEVELS.includes(labels.at(-2) ?? '')
    for (const parent of ['', top]) if (!zones.has(parent)) createZone(parent, true)
    return createZone(labels.slice(isThird ? -3 : -2).join('.'), false)
  }

  /** Replaces the RRset of a name and type; empty data deletes the RRset. Each change increments the zone's serial. */
  function setRecords(name: string, type: RecordType, data: readonly RecordData[]): void {
    const existing = findZone(name)
    const zone = existing?.apex === name ? existing : ensureZone(name)
    const types = names.get(name) ?? new Map<RecordType, readonly RecordData[]>()
    const hadRecords = names.has(name)
    if (data.length > 0) types.set(type, data)
    else if (!types.delete(type)) return
    if (types.size > 0) names.set(name, types)
    else names.delete(name)
    const change = Number(types.size > 0) - Number(hadRecords)
    for (let at = name; at !== ''; at = parentName(at)) counts.set(at, (counts.get(at) ?? 0) + change)
    zone.serial += 1
  }

  for (const host of [...NAME_SERVERS, PARENT_SERVER]) {
    ensureZone(host)
    setRecords(host, 'A', ['127.0.0.1'])
  }
  setRecords(MISTAKEN_CNAME_TARGET, 'A', ['192.0.2.80'])
  ensureZone('example.com')

  return {
    findZone,
    ensureZone,
    setRecords,
    recordsAt: (name: string): ReadonlyMap<RecordType, readonly RecordData[]> | undefined => names.get(name),
    /**
     * Whether records exist at or below a name (not the root): then the response for a missing type is NODATA, not NXDOMAIN (RFC
     * 8020).
     */
    nameExists: (name: string): boolean => (counts.get(name) ?? 0) > 0,
  }
}

/** Returns the data of a TXT record: the text split into character strings of at most 255 bytes (RFC 1035, section 3.3.14). */
export function toTxtData(text: string): RecordData {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  for (let at = 0; at === 0 || at < bytes.length; at += 255) pieces.push(bytes.subarray(at, at + 255))
  return pieces
}

export const RCODES = { noError: 0, servFail: 2, nxDomain: 3, refused: 5 } as const

export interface DnsResponse {
  readonly rcode: number
  readonly authoritative?: boolean
  readonly answers?: readonly Answer[]
  readonly authorities?: readonly Answer[]
  readonly additionals?: readonly Answer[]
}

/**
 * Returns the response to a question (RFC 1034, section 4.3.2); `'silence'` to send none.
 * @param asked the name in the question's letter case, which the answer's owner name repeats
 * @param recursion whether the query has RD set: if the zone has a fault, such a query gets a recursive resolver's response
 */
export function answerQuestion(
  zones: ZoneStore,
  asked: string,
  type: string,
  recursion: boolean,
): DnsResponse | 'silence' {
  const owner = asked.replace(/\.$/, '').toLowerCase()
  // DS records belong to the parent side of a zone cut (RFC 4035, section 3.1.4.1), so answer for them from the parent zone.
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

/** Returns the response of a zone with a fault; undefined without a fault, or if it doesn't affect this query. */
function answerWithFault(
  zones: ZoneStore,
  zone: DnsZone,
  type: string,
  recursion: boolean,
): DnsResponse | 'silence' | undefined {
  if (zone.fault === undefined) return undefined
  if (zone.fault === 'cached') {
    const isCached = recursion && type === 'TXT'
    return isCached ? { rcode: RCODES.noError, authorities: [soa(zone, NEGATIVE_TTL)] } : undefined
  }
  // Fail only TXT queries to a resolver: queries that find the zone (SOA, NS, A) would still succeed from its cache.
  if (recursion) return type === 'TXT' ? { rcode: RCODES.servFail } : undefined
  // Answer SOA and NS queries with a referral to the faulty zone's servers, as a registry does: clients send these queries to the
  // registry to find the zone, and the sandbox's registry has the same address as the zone's servers.
  if (type === 'SOA' || type === 'NS') {
    const hosts = zones.recordsAt(zone.apex)?.get('NS')
    const authorities = toRRs(zone.apex, 'NS', hosts)
    return { rcode: RCODES.noError, authorities, additionals: glue(zones, hosts) }
  }
  if (zone.fault === 'silent') return 'silence'
  return { rcode: zone.fault === 'refused' ? RCODES.refused : RCODES.noError }
}

/**
 * Returns the RRsets at a name or at the wildcard that covers it (RFC 4592); an empty map for an empty non-terminal, a name with
 * records only below it; undefined if the name doesn't exist.
 */
function findRecords(zones: ZoneStore, zone: DnsZone, name: string): ReturnType<ZoneStore['recordsAt']> {
  const types = zones.recordsAt(name)
  if (types !== undefined) return types
  if (zones.nameExists(name)) return new Map()
  let encloser = parentName(name)
  while (encloser !== zone.apex && !zones.nameExists(encloser)) encloser = parentName(encloser)
  return zones.recordsAt(`*.${encloser}`)
}

function glue(zones: ZoneStore, hosts: readonly RecordData[] | undefined): Answer[] {
  return (hosts ?? []).flatMap((host) =>
    typeof host === 'string' ? toRRs(host, 'A', zones.recordsAt(host)?.get('A')) : [],
  )
}

function soa(zone: DnsZone, ttl: number): Answer {
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
    // Copy the list of character strings, because dns-packet's encoder modifies the list.
    const value = typeof one === 'string' ? one : [...one]
    return { type, name: owner, ttl: TTL[type], data: value } as Answer
  })
}
