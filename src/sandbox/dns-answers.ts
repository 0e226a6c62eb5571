import type { Answer } from 'dns-packet'
import {
  HOSTMASTER,
  isWithin,
  NAME_SERVERS,
  parentName,
  type RecordData,
  type RecordSet,
  type RecordType,
  type Zone,
  type Zones,
} from './zones.ts'

export const Rcode = {
  noError: 0,
  formErr: 1,
  servFail: 2,
  nxDomain: 3,
  notImp: 4,
  refused: 5,
  badVers: 16,
} as const

export interface DnsAnswer {
  readonly rcode: number
  readonly authoritative: boolean
  readonly answers: readonly Answer[]
  readonly authorities: readonly Answer[]
  readonly additionals: readonly Answer[]
}

/** Seconds for which a "no" may be remembered (RFC 2308, section 5). */
const NEGATIVE_TTL = 60
const MOST_ALIASES = 8

function plain(rcode: number, authoritative = false): DnsAnswer {
  return { rcode, authoritative, answers: [], authorities: [], additionals: [] }
}

/** Who asks whom. */
export interface Asked {
  /** Recursion is desired: the server is asked as a resolver, not as one of the zone's name servers. */
  readonly recursion: boolean
  readonly server: ServerRole
}

/** By the address that was asked: one of the two name servers of the zones, or that of the root and the registries. */
export type ServerRole = 'first' | 'second' | 'registry'

/** Nobody may transfer a zone (RFC 5936, section 2.2.1). */
const TRANSFERS = ['AXFR', 'IXFR']

/** What a resolver still knows when the name servers of a zone are in trouble. */
const STILL_KNOWN = ['NS', 'SOA', 'A', 'AAAA', 'DS']

/**
 * What an authoritative server says (RFC 1034, section 4.3.2, with the wildcards of RFC 4592), or undefined where the
 * zone is told to be silent. `name` is normal, `asked` is how the question wrote it.
 */
export function answerQuestion(
  zones: Zones,
  name: string,
  asked: string,
  type: string,
  { recursion, server }: Asked,
): DnsAnswer | undefined {
  const held = server === 'registry' ? zones.registryOf(name) : heldFor(zones, name, type)
  if (held === undefined || TRANSFERS.includes(type)) return plain(Rcode.refused)
  const second = server === 'second' ? held.second : undefined
  const trouble = typeof second === 'string' ? second : held.trouble
  const zone = typeof second === 'object' ? second : held
  if (trouble !== undefined && recursion) {
    if (!STILL_KNOWN.includes(type)) return plain(Rcode.servFail)
  } else if (trouble === 'silent') return undefined
  else if (trouble === 'servfail') return plain(Rcode.servFail)
  else if (trouble === 'refused') return plain(Rcode.refused)
  else if (trouble === 'lame') return plain(Rcode.noError)

  const answers: Answer[] = []
  let owner = name
  let shownOwner = asked
  for (let here = zone; ; ) {
    const cut = delegation(zones, here, owner)
    if (cut !== undefined && !(type === 'DS' && cut.name === owner)) {
      const authorities = toAnswers(cut.name, cut.set)
      return {
        ...plain(Rcode.noError, answers.length > 0),
        answers,
        authorities,
        additionals: glue(zones, cut.set),
      }
    }
    const types = at(zones, here, owner)
    if (types === undefined) {
      return { ...plain(Rcode.nxDomain, true), answers, authorities: [soa(here, NEGATIVE_TTL)] }
    }
    const found = matching(here, owner, types, type, shownOwner)
    const alias = types.get('CNAME')
    const target = alias?.data[0]
    if (found.length === 0 && alias !== undefined && target !== undefined && 'value' in target) {
      answers.push(...toAnswers(shownOwner, alias))
      owner = target.value.toLowerCase()
      shownOwner = target.value
      const next = zones.holding(owner)
      if (next === undefined || answers.length >= MOST_ALIASES) {
        return { ...plain(Rcode.noError, true), answers }
      }
      here = next
      continue
    }
    answers.push(...found)
    if (found.length === 0) {
      return { ...plain(Rcode.noError, true), answers, authorities: [soa(here, NEGATIVE_TTL)] }
    }
    const additionals = type === 'NS' ? glue(zones, types.get('NS')) : []
    return { ...plain(Rcode.noError, true), answers, additionals }
  }
}

/** The zone that answers: for DS that of the parent (RFC 4035, section 3.1.4.1), but the root denies nobody's domain. */
function heldFor(zones: Zones, name: string, type: string): Zone | undefined {
  const parent = type === 'DS' && name !== '' ? zones.holding(parentName(name)) : undefined
  return parent === undefined || (parent.apex === '' && !zones.exists(parent, name))
    ? zones.holding(name)
    : parent
}

/** The records at a name, or at the wildcard that covers it; undefined if the name does not exist. */
function at(zones: Zones, zone: Zone, name: string): ReadonlyMap<RecordType, RecordSet> | undefined {
  const types = zone.names.get(name)
  if (types !== undefined) return types
  if (name === zone.apex || zones.exists(zone, name)) return new Map()
  let encloser = parentName(name)
  while (encloser !== zone.apex && !zones.exists(zone, encloser)) encloser = parentName(encloser)
  return zone.names.get(encloser === '' ? '*' : `*.${encloser}`)
}

function matching(
  zone: Zone,
  owner: string,
  types: ReadonlyMap<RecordType, RecordSet>,
  type: string,
  shownOwner: string,
): Answer[] {
  const isApex = owner === zone.apex
  if (type === 'SOA') return isApex ? [{ ...soa(zone, 3600), name: shownOwner } as Answer] : []
  if (type === 'ANY') {
    const all = [...types.values()].flatMap((set) => toAnswers(shownOwner, set))
    return isApex ? [soa(zone, 3600), ...all] : all
  }
  for (const [known, set] of types) if (known === type) return toAnswers(shownOwner, set)
  return []
}

function delegation(zones: Zones, zone: Zone, name: string): { name: string; set: RecordSet } | undefined {
  if (zone.parent) {
    const child = zones.holding(name)
    const set = child === zone ? undefined : child?.names.get(child.apex)?.get('NS')
    return child === undefined || set === undefined ? undefined : { name: child.apex, set }
  }
  for (let cut = name; cut !== zone.apex && isWithin(cut, zone.apex); cut = parentName(cut)) {
    const set = zone.names.get(cut)?.get('NS')
    if (set !== undefined) return { name: cut, set }
  }
  return undefined
}

function glue(zones: Zones, set: RecordSet | undefined): Answer[] {
  return (set?.data ?? []).flatMap((data) => {
    if (data.type !== 'NS') return []
    const host = data.value.toLowerCase()
    const addresses = zones.holding(host)?.names.get(host)?.get('A')
    return addresses === undefined ? [] : toAnswers(data.value, addresses)
  })
}

function soa(zone: Zone, ttl: number): Answer {
  return {
    type: 'SOA',
    name: zone.apex === '' ? '.' : zone.apex,
    ttl,
    data: {
      mname: NAME_SERVERS[0],
      rname: HOSTMASTER,
      serial: zone.serial,
      refresh: 7200,
      retry: 900,
      expire: 1_209_600,
      minimum: NEGATIVE_TTL,
    },
  }
}

function toAnswers(name: string, set: RecordSet): Answer[] {
  const owner = name === '' ? '.' : name
  return set.data.map((data) => toAnswer(owner, set.ttl, data))
}

function toAnswer(name: string, ttl: number, data: RecordData): Answer {
  if (data.type === 'TXT') return { type: 'TXT', name, ttl, data: [...data.strings] }
  if (data.type === 'MX') {
    return { type: 'MX', name, ttl, data: { preference: data.preference, exchange: data.value } }
  }
  return { type: data.type, name, ttl, data: data.value }
}
