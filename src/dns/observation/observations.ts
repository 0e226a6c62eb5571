import type { DnsAddress } from '../../context.ts'
import type { AliasEnd, AliasPath } from '../resolution/alias.ts'
import type { ParentSide } from '../resolution/delegation-walk.ts'
import type { Message, Soa } from '../wire/message.ts'
import type { TxtValue } from '../wire/txt-answer.ts'
import type { ProbeResult } from './misplaced-records.ts'
import type { DnssecObservation } from './observe-dnssec.ts'
import type { StaleGlue } from './stale-glue.ts'

export type Outcome =
  | 'match'
  | 'mismatch'
  | 'absent'
  | 'nxdomain'
  | 'refused'
  | 'servfail'
  | 'timeout'
  | 'unreachable'
  | 'lame'
  | 'not_checked'

/** What one server said about the name. */
export interface Observation {
  readonly host: string
  /** Undefined for a host without an address. */
  readonly server: DnsAddress | undefined
  readonly outcome: Outcome
  readonly authoritative: boolean
  readonly values: readonly TxtValue[]
  /** Seconds; of the TXT set, or of the CNAME. */
  readonly ttl: number | null
  /** The zone's SOA at this server. */
  readonly soa: Soa | undefined
  /** Seconds that a cache may hold this negative answer. */
  readonly negativeTtl: number | undefined
  readonly ms: number | null
  /** Bytes of the TXT answer. */
  readonly size: number
  readonly rcode: string | undefined
  readonly recursionAvailable: boolean
  readonly extendedError: Message['extendedError']
  /** Set where the answer needs TCP and TCP did not work. A larger datagram may have brought it whole all the same. */
  readonly tcpFailure: string | undefined
  /** The targets of CNAMEs from the name on; empty without any. */
  readonly aliases: readonly string[]
  readonly aliasEnd: AliasEnd | undefined
  /** The name above this one whose DNAME made the first alias (RFC 6672); undefined where a CNAME did. */
  readonly dname: string | undefined
  /** The zone's NS set as this server has it. */
  readonly nsSet: readonly string[] | undefined
  /**
   * What the server lets pass in silence: over UDP, questions that ask for signatures (the DO bit), questions with EDNS,
   * or all. It answers otherwise.
   */
  readonly dropped: 'do' | 'edns' | 'udp' | undefined
}

/** What a recursive resolver said, and what it said with checking disabled after a SERVFAIL. */
export interface ResolverObservation extends Observation {
  readonly resolver: DnsAddress
  /** Whether it says that it has validated the answer. */
  readonly authenticated: boolean
  readonly unchecked: Observation | undefined
  /** What it knows of the zone; asked where it lacks a record that the zone's servers have. */
  readonly zoneView: ZoneView | undefined
}

/** The zone as a resolver sees it. */
export interface ZoneView {
  readonly soa: Soa | undefined
  /** The NS set and the seconds that are left of it. */
  readonly nsSet:
    | { readonly hosts: readonly string[]; readonly ttl: number; readonly isPrivate: boolean }
    | undefined
  /** Asked once more after more than a second, the resolver gave the very same TTL: no cache counts it down. */
  readonly steadyTtl: boolean
}

/** Everything that was seen of a zone that could be found; the findings are made of nothing else. */
export interface Observations {
  readonly name: string
  /** The whole TXT value. */
  readonly expected: string
  readonly zone: string
  readonly servers: readonly Observation[]
  readonly parent: Pick<ParentSide, 'zone' | 'hosts'> | undefined
  /** Servers of zones above answered as recursive resolvers do, and none of them as a server of its zone. */
  readonly recursionAbove?: boolean
  readonly childHosts: readonly string[] | undefined
  /** Asked for where some servers lack a record that others have. */
  readonly staleGlue?: readonly StaleGlue[]
  readonly alias: AliasPath | undefined
  readonly probes: ProbeResult | undefined
  readonly resolvers: readonly ResolverObservation[]
  /** Undefined where it could not be asked. */
  readonly dnssec: DnssecObservation | undefined
}

/** The servers by what their answers are worth. */
export interface ServersByOutcome {
  readonly matching: readonly Observation[]
  /** Authoritative answers without the value. */
  readonly without: readonly Observation[]
  /** They answered, but not as a server of the zone. */
  readonly lame: readonly Observation[]
  /** No answer, or one that could not be read whole. */
  readonly silent: readonly Observation[]
  readonly unchecked: readonly Observation[]
}

export function groupByOutcome(servers: readonly Observation[]): ServersByOutcome {
  const of = (...outcomes: Observation['outcome'][]) =>
    servers.filter((server) => outcomes.includes(server.outcome))
  return {
    matching: of('match'),
    without: of('mismatch', 'absent', 'nxdomain'),
    lame: of('lame', 'refused', 'servfail'),
    silent: of('timeout', 'unreachable'),
    unchecked: of('not_checked'),
  }
}

/**
 * Seconds for which a cache that looked already may hold the old state: the TTL of the set that was there, or of its
 * absence (RFC 2308 section 5).
 */
export function oldStateTtl(servers: readonly Observation[]): number | null {
  const seconds = servers.flatMap((server) => {
    const known =
      server.values.length > 0 || server.aliases.length > 0
        ? server.ttl
        : (server.negativeTtl ?? server.soa?.negativeTtl)
    return known === null || known === undefined ? [] : [known]
  })
  return seconds.length === 0 ? null : Math.max(...seconds)
}

/** Servers in the order of their names, and IPv4 first, whichever answered first. */
export function byHost(a: Observation, b: Observation): number {
  const key = (o: Observation) =>
    `${o.host} ${o.server?.address.includes(':') ? 1 : 0} ${o.server?.address ?? ''}`
  return key(a) < key(b) ? -1 : 1
}

/** A resolver got nothing, by its own account or by its silence. */
export function isFailure({ outcome }: Observation): boolean {
  return outcome === 'timeout' || outcome === 'servfail'
}

/** Whether an answer says what is at the name, be it nothing: neither a failure nor silence. */
export function isDnsData(outcome: Outcome): boolean {
  return outcome === 'match' || outcome === 'mismatch' || outcome === 'absent' || outcome === 'nxdomain'
}
