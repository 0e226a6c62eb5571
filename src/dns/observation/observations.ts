import type { DnsAddress } from '../../context.ts'
import type { AliasEnd, AliasPath } from '../resolution/alias.ts'
import type { ParentDelegation, PathStep } from '../resolution/delegation-walk.ts'
import type { AddressClaim } from '../resolution/resolution-context.ts'
import type { Message, Soa } from '../wire/message.ts'
import type { TxtValue } from '../wire/txt-answer.ts'
import type { DnssecObservation } from './observe-dnssec.ts'

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

/** What one server answered about the name. */
export interface Observation {
  readonly host: string
  /** Undefined if the host has no address. */
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
  /** Set if the answer needs TCP and TCP failed. A larger datagram may still have brought all of it. */
  readonly tcpFailure: string | undefined
  /** Whether records are missing from the answer. */
  readonly truncated?: boolean
  /** The targets of the aliases from the name on. */
  readonly aliases: readonly string[]
  readonly aliasEnd: AliasEnd | undefined
  /** The owner of the DNAME behind the first alias (RFC 6672); undefined for a CNAME. */
  readonly dname: string | undefined
  /** Seconds; of the first alias, whatever is at its end. */
  readonly aliasTtl?: number | null
  /** The target of a CNAME that the server has at the name next to the TXT records. */
  readonly cnameBeside?: string | undefined
  /** The zone's NS set as this server has it. */
  readonly nsSet: readonly string[] | undefined
  /** Why this machine couldn't send anything to that address, which says nothing about the server. */
  readonly unsent?: 'no-route' | 'blocked'
  /** The queries that the server doesn't answer: over UDP, those with the DO bit (RFC 3225), those with EDNS, or all. */
  readonly dropped: 'do' | 'edns' | 'udp' | undefined
  /** The rcode with which the server rejects queries with EDNS; it answers those without. */
  readonly ednsRejection?: string | undefined
  /** Where these are dropped or rejected; undefined if no server of a registry shows it. */
  readonly filteredAt?: 'network' | 'server' | undefined
  /** Where TCP fails, in the same way. */
  readonly tcpFilteredAt?: 'network' | 'server' | undefined
  /** Whether the server has the zone and the record, but answers without authority (AA). */
  readonly withoutAuthority?: boolean
}

/** What a recursive resolver answered. */
export interface ResolverObservation extends Observation {
  readonly resolver: DnsAddress
  /** Whether it says that it validated the answer. */
  readonly authenticated: boolean
  /** Its answer with checking disabled, after a SERVFAIL. */
  readonly withCheckingDisabled: Observation | undefined
  /** How it sees the zone; asked if it lacks a record that the zone's servers have. */
  readonly zoneView: ZoneView | undefined
}

/** The zone as a resolver sees it. */
export interface ZoneView {
  readonly soa: Soa | undefined
  /** The NS set and how many seconds it stays cached. */
  readonly nsSet:
    | { readonly hosts: readonly string[]; readonly ttl: number; readonly isPrivate: boolean }
    | undefined
  /** The TTL was the same a second later: it isn't counted down in a cache. */
  readonly steadyTtl: boolean
}

/** How a record ended up at the wrong name. */
export type Misplacement = 'wildcard' | 'doubled' | 'at_sign' | 'other'

/** What was found at a name where the record doesn't belong. */
export interface MisplacedRecord {
  readonly name: string
  readonly how: Misplacement
  readonly values: readonly TxtValue[]
  /** The target if there is an alias instead of TXT records. */
  readonly alias: string | undefined
}

export interface ProbeResult {
  readonly misplaced: readonly MisplacedRecord[]
  /** The TXT set of the wildcard that covers unused names next to this one; empty without a wildcard. */
  readonly wildcard: readonly TxtValue[]
  /** The target if that wildcard is an alias. */
  readonly wildcardAlias: string | undefined
  /** Whether that wildcard covers the name as well, which it does only if the name has no record of its own. */
  readonly coversName: boolean
  /** A server that lacked the record had it when asked again: there are several machines behind its address. */
  readonly unsteady?: ServerAtHost | undefined
}

/** A name server's address in the parent zone (glue) that differs from those in the zone of its name. */
export interface StaleGlue {
  readonly host: string
  /** The address in the parent zone. */
  readonly glue: string
  /** The addresses in the zone of its name; at least one. */
  readonly own: readonly string[]
}

/** A name server whose name is an alias (CNAME). */
export interface HostAlias {
  readonly target: string
  /** Whether the delegation has addresses for it; otherwise they were only found at the target. */
  readonly hasGlue: boolean
}

/** A name server at one of its addresses. */
export interface ServerAtHost {
  readonly host: string
  readonly server: DnsAddress
}

/** A zone that only some servers of the zone above have, and that isn't delegated there. */
export interface UndelegatedZone {
  readonly zone: string
  readonly above: string
  /** The servers that have the zone. */
  readonly holders: readonly ServerAtHost[]
  /** The servers that answer from the zone above. */
  readonly without: readonly ServerAtHost[]
}

/** Everything that the findings are based on. */
export interface Observations<Expected extends string | null = string> {
  readonly name: string
  /** The whole TXT value; null in a check that only looks. */
  readonly expected: Expected
  readonly zone: string
  readonly servers: readonly Observation[]
  readonly parent: Pick<ParentDelegation, 'zone' | 'hosts'> | undefined
  /** See `Located`. */
  readonly path?: readonly PathStep[] | undefined
  /** See `Located`. */
  readonly registryUnseen?: boolean
  /** The servers of registries above that answered like recursive resolvers. */
  readonly recursionAbove?: readonly DnsAddress[]
  readonly childHosts: readonly string[] | undefined
  /** The name servers that are aliases. */
  readonly hostAliases?: ReadonlyMap<string, HostAlias>
  /** See `NameServerSurvey`. */
  readonly unconfirmed?: readonly AddressClaim[]
  /** Looked for if some servers lack a record that others have (without an expected value: if their TXT sets differ), don't
   * serve the zone, or don't answer. */
  readonly staleGlue?: readonly StaleGlue[]
  readonly undelegated?: UndelegatedZone | undefined
  readonly alias: AliasPath | undefined
  readonly probes: ProbeResult | undefined
  readonly resolvers: readonly ResolverObservation[]
  /** Undefined if it couldn't be queried. */
  readonly dnssec: DnssecObservation | undefined
}

/** What a check found out, whether or not a value was expected. */
export type ZoneObservations = Observations<string | null>

/** The servers by what they answered. */
export interface ServersByOutcome {
  readonly withRecord: readonly Observation[]
  /** Authoritative for the zone, but without the value. */
  readonly withoutRecord: readonly Observation[]
  /** They answered, but not as servers of the zone. */
  readonly lame: readonly Observation[]
  /** No answer, or one that couldn't be read completely. */
  readonly silent: readonly Observation[]
  readonly notChecked: readonly Observation[]
}

export function groupByOutcome(servers: readonly Observation[]): ServersByOutcome {
  const of = (...outcomes: Observation['outcome'][]) =>
    servers.filter((server) => outcomes.includes(server.outcome))
  return {
    withRecord: of('match'),
    withoutRecord: of('mismatch', 'absent', 'nxdomain'),
    lame: of('lame', 'refused', 'servfail'),
    silent: of('timeout', 'unreachable'),
    notChecked: of('not_checked'),
  }
}

/** Seconds for which caches may keep the old state: the TTL of the old set, or of its absence (RFC 2308 section 5). */
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

/** Sorts by host, IPv4 first. */
export function byHost(a: Observation, b: Observation): number {
  const key = (o: Observation) =>
    `${o.host} ${o.server?.address.includes(':') ? 1 : 0} ${o.server?.address ?? ''}`
  return key(a) < key(b) ? -1 : 1
}

/** Whether a resolver failed to get an answer. */
export function isFailure({ outcome }: Observation): boolean {
  return outcome === 'timeout' || outcome === 'servfail'
}

/** Whether an answer says what is at the name, even if that is nothing. */
export function isDnsData(outcome: Outcome): boolean {
  return outcome === 'match' || outcome === 'mismatch' || outcome === 'absent' || outcome === 'nxdomain'
}
