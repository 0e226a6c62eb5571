import type packet from 'dns-packet'
import { isWithin } from '../../src/dns/wire/name.ts'
import { AA, type Asked, type FakeReply, RA, RCODE } from './fake-dns.ts'

/** Address of the recursive resolver. */
export const RESOLVER = '192.0.2.53'

export interface FakeZone {
  readonly apex: string
  /** Host names of the name servers, each with its addresses. */
  readonly servers: Readonly<Record<string, readonly string[]>>
  /** Records of the zone except SOA, NS and the addresses of its name servers. */
  readonly records?: readonly packet.Answer[]
  /** Set if the parent zone has no glue. */
  readonly withoutGlue?: true
}

export const txt = (name: string, data: string): packet.Answer => ({ type: 'TXT', name, ttl: 300, data })

/**
 * Creates authoritative servers that follow RFC 1034 section 4.3.2, and resolvers (one at `RESOLVER`, and every server that is
 * queried over HTTPS) that know all zones except those without glue.
 *
 * @param odd returns a response that replaces the usual one; undefined for the usual one
 */
export function fakeInternet(
  zones: readonly FakeZone[],
  odd: (asked: Asked) => FakeReply | undefined = () => undefined,
): (asked: Asked) => FakeReply {
  const addresses = (zone: FakeZone) => Object.values(zone.servers).flat()
  const enclosing = (name: string, among: readonly FakeZone[]) =>
    among
      .filter((zone) => isWithin(name, zone.apex))
      .sort((a, b) => b.apex.length - a.apex.length || (a.apex === '.' ? 1 : -1))[0]
  const nsOf = (zone: FakeZone): packet.Answer[] =>
    Object.keys(zone.servers).map((data) => ({ type: 'NS', name: zone.apex, ttl: 3600, data }))
  const addressesOf = (zone: FakeZone): packet.Answer[] =>
    Object.entries(zone.servers).flatMap(([name, list]) =>
      list.map((data): packet.Answer => ({ type: data.includes(':') ? 'AAAA' : 'A', name, ttl: 3600, data })),
    )
  const soaOf = (zone: FakeZone): packet.Answer => ({
    type: 'SOA',
    name: zone.apex,
    ttl: 3600,
    data: {
      mname: Object.keys(zone.servers)[0] ?? '.',
      rname: 'hostmaster.test',
      serial: 9,
      refresh: 7200,
      retry: 900,
      expire: 86_400,
      minimum: 60,
    },
  })
  const answerFrom = (zone: FakeZone, name: string, type: string): Partial<packet.Packet> => {
    const all = [
      soaOf(zone),
      ...nsOf(zone),
      ...zones.flatMap(addressesOf).filter((record) => enclosing(record.name, zones) === zone),
      ...(zone.records ?? []),
    ]
    const here = all.filter((record) => record.name === name)
    const answers = here.filter((record) => record.type === type || record.type === 'CNAME')
    if (answers.length > 0) return { flags: AA, answers }
    const exists = all.some((record) => isWithin(record.name, name))
    return { flags: exists ? AA : AA | RCODE.NXDOMAIN, authorities: [soaOf(zone)] }
  }
  const authoritative = (held: readonly FakeZone[], name: string, type: string): FakeReply => {
    // The zone above answers DS queries (RFC 4035 section 3.1.4.1).
    const parent = type === 'DS' ? held.filter(({ apex }) => apex !== name) : held
    const zone = enclosing(name, parent) ?? enclosing(name, held)
    if (zone === undefined) return { flags: RCODE.REFUSED }
    const child = enclosing(
      name,
      zones.filter((other) => isWithin(other.apex, zone.apex)),
    )
    if (child === undefined || child === zone || (type === 'DS' && child.apex === name))
      return answerFrom(zone, name, type)
    // Refer to the topmost zone cut (RFC 8499) between `zone` and the name.
    const cut =
      zones
        .filter((other) => other !== zone && isWithin(other.apex, zone.apex) && isWithin(name, other.apex))
        .sort((a, b) => a.apex.length - b.apex.length)[0] ?? child
    return { authorities: nsOf(cut), additionals: cut.withoutGlue ? [] : addressesOf(cut) }
  }
  const recursive = (name: string, type: string): FakeReply => {
    const zone = enclosing(name, zones)
    if (zone === undefined) return { flags: RA | RCODE.NXDOMAIN }
    if (zone.withoutGlue) return { flags: RA | RCODE.SERVFAIL }
    const answer = answerFrom(zone, name, type)
    return { ...answer, flags: RA | ((answer.flags ?? 0) & 0xf) }
  }
  return (asked) => {
    const special = odd(asked)
    if (special !== undefined) return special
    if (asked.server === RESOLVER || asked.transport === 'https') return recursive(asked.name, asked.type)
    return authoritative(
      zones.filter((zone) => addresses(zone).includes(asked.server)),
      asked.name,
      asked.type,
    )
  }
}

/** Behavior of a network that redirects port 53 to its own server. */
interface Interceptor {
  /** Header flags added to responses from the network's own zone. */
  readonly flags: number
  /** Reaction to queries for names outside the network's own zone. */
  readonly otherwise: 'forwards' | 'refuses'
  readonly isRedirected?: (asked: Asked) => boolean
}

/**
 * Creates a network that redirects queries over UDP and TCP to the server of its zone `own`. Queries over HTTPS, and those for which
 * `isRedirected` is false, reach `world`.
 */
export function intercepted(
  world: (asked: Asked) => FakeReply,
  own: FakeZone,
  { flags, otherwise, isRedirected = () => true }: Interceptor,
): (asked: Asked) => FakeReply {
  const [server = ''] = Object.values(own.servers).flat()
  const inside = fakeInternet([own])
  return (asked) => {
    if (asked.transport === 'https' || !isRedirected(asked)) return world(asked)
    if (isWithin(asked.name, own.apex)) {
      const reply = inside({ ...asked, server })
      return typeof reply === 'string' ? reply : { ...reply, flags: (reply.flags ?? 0) | flags }
    }
    return otherwise === 'refuses' ? { flags: RCODE.REFUSED } : world({ ...asked, server: RESOLVER })
  }
}

/** Creates a registry for `com`, and the zone `example.com` with the TXT records `values()`, read at each query. */
export function smallWorld(values: () => readonly string[]): (asked: Asked) => FakeReply {
  return (asked) =>
    fakeInternet([
      { apex: 'com', servers: { 'a.registry.com': ['192.0.2.1'] } },
      {
        apex: 'example.com',
        servers: { 'ns.example.com': ['192.0.2.2'] },
        records: values().map((value) => txt('example.com', value)),
      },
    ])(asked)
}
