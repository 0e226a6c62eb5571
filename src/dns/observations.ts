import type { DnsAddress } from '../context.ts'
import { isV6, type Resolver } from './wire/address.ts'
import type { Soa } from './wire/message.ts'
import type { TxtValue } from './wire/txt-answer.ts'

/**
 * What one server answered about the name, in a few words:
 *
 * - `match`: the value is there, at the name or at the end of its alias; without an expected value never
 * - `mismatch`: TXT records, but not the value; without an expected value any TXT records
 * - `absent`, `nxdomain`: an authoritative answer that there is no TXT record, or no such name
 * - `alias`: the name is an alias (CNAME), and it is known that the value isn't at its end
 * - `lame`: an answer, but not as a server of the zone
 * - `timeout`, `unreachable`: no answer, or none that could be read completely; says nothing about the record
 * - `not_checked`: nothing was sent (no route from here, no query left, a server known to be silent)
 */
export const OUTCOMES = {
  match: 'found',
  mismatch: 'other value',
  absent: 'no TXT record',
  nxdomain: 'no such name',
  alias: 'alias',
  refused: 'refused',
  servfail: 'SERVFAIL',
  timeout: 'no answer',
  unreachable: 'unreachable',
  lame: 'not authoritative',
  not_checked: 'not checked',
} as const

export type Outcome = keyof typeof OUTCOMES

/** What an answer says about the name, from whichever server. */
export interface Answer {
  readonly outcome: Outcome
  /** The TXT set: one entry a record, with the boundaries of its strings. That at the end, if the name is an alias. */
  readonly values: readonly TxtValue[]
  /** Seconds, of the TXT set or of the first alias; null without either. From a resolver, what is left in its cache. */
  readonly ttl: number | null
  /** Seconds that caches keep the absence (RFC 2308 section 5); null unless the answer is negative. */
  readonly negativeTtl: number | null
  /** The target of the first alias; null without one. */
  readonly alias: string | null
  /** Whether the answer had the AA bit (RFC 1035 section 4.1.1). A resolver with it answers from a zone of its own. */
  readonly authoritative: boolean
  /** From the question to the answer, in milliseconds; null without an answer. */
  readonly ms: number | null
}

/** One name server at one of its addresses. */
export interface ServerObservation extends Answer {
  readonly host: string
  /** Null if the host has no address: `unreachable` if that is certain, `timeout` if it couldn't be looked up. */
  readonly address: string | null
  /** Whether it answered as no server of its own zone does; null without an answer. */
  readonly isSuspect: boolean | null
  /** Whether it is a recursive resolver: offers recursion without authority, or answers for the zone of the registry. */
  readonly isResolver: boolean
  /** The zone's SOA record at this server; null if it gave none. */
  readonly soa: Soa | null
  /** Hosts of the zone's NS set at this server; empty without an authoritative answer. */
  readonly nsSet: readonly string[]
}

/** One recursive resolver. */
export interface ResolverObservation extends Answer {
  readonly resolver: Resolver
  /** SERVFAIL, and an answer with checking disabled, which leaves DNSSEC out. */
  readonly failsValidation: boolean
  /** Why it failed, in its own words (RFC 8914); null if it doesn't say. */
  readonly explanation: string | null
  /** What it has of the zone: the hosts of the NS set or, if validation fails, the keys; null unless it was asked. */
  readonly cached: { readonly texts: readonly string[]; readonly ttl: number } | null
}

/** What one authoritative server has at other names. */
export interface OtherNames {
  /** TXT records at names where the record doesn't belong. What only a wildcard shows isn't among them. */
  readonly misplaced: readonly MisplacedRecord[]
  /** What the name shows if a wildcard answers for it, so that it has no record of its own; otherwise null. */
  readonly wildcard: readonly TxtValue[] | null
}

export interface MisplacedRecord {
  readonly name: string
  /** `doubled`: the name with the zone or itself behind it; `used`: names that have records of their own, above or `*`. */
  readonly how: 'doubled' | 'wrong' | 'used'
  /** Never empty; with an expected value, whatever is there, not only that value. */
  readonly values: readonly TxtValue[]
}

/** Where the alias at the name leads, as the authoritative servers of each zone say. */
export interface AliasPath {
  /** In order; at least one. */
  readonly targets: readonly string[]
  /** Whether it is known what is at its end, even if that is nothing. */
  readonly isKnown: boolean
  /** Whether the name has TXT records as well, which RFC 1034 section 3.6.2 forbids. */
  readonly isBeside?: true
}

/**
 * What the DS records in the parent zone and the zone's own keys and signatures say right now, without verifying signatures:
 * `unsigned`: no DS; `ok`: a DS matches a key and the SOA's signature is valid by its dates; `no_key`: a DS, but no key at
 * all; `wrong_ds`: keys, but no DS matches one; `expired`.
 */
export interface DnssecObservation {
  readonly state: 'unsigned' | 'ok' | 'no_key' | 'wrong_ds' | 'expired'
  /** Of the DS records. */
  readonly keyTags: readonly number[]
  /** The DS records and, if there are any, the keys and their signatures, as texts to compare. */
  readonly keys: readonly string[]
}

/** A zone and its name servers by the parent's or its own NS records, with the addresses that came with them. */
export interface Delegation {
  readonly zone: string
  readonly hosts: ReadonlyMap<string, readonly DnsAddress[]>
}

/** The zone that holds the name. */
export interface Zone extends Delegation {
  readonly kind: 'found'
  /** The server of the parent zone that refers to these hosts; null if none was asked. */
  readonly parent: DnsAddress | null
  /** From the top down. */
  readonly path: readonly Delegation[]
  /**
   * The servers of registries above that answered. All registries work, so an odd answer comes from this network. Null: the answer
   * came with authority from the domain's own zone, as only a server of both zones should give it.
   */
  readonly registry: { readonly address: string; readonly isSuspect: boolean | null }[]
}

/** The registered domain doesn't exist, as that zone of a registry says; or no zone was found. */
export type NoZone = {
  /** As far as the search came. */
  readonly path: readonly Delegation[]
} & (
  | {
      readonly kind: 'no_domain'
      readonly domain: string
      readonly saidBy: string
      readonly negativeTtl: number | null
    }
  /** `replies`: what the resolvers said, such as `9.9.9.9: no answer`. */
  | { readonly kind: 'lost'; readonly replies: readonly string[] }
)

/** Everything that one check has seen, and all that the findings are based on. */
export interface Observations {
  /** In its ASCII form. */
  readonly name: string
  /** The whole TXT value; null in a check that only looks. */
  readonly expected: string | null
  /** A person gave that value, and may have cut it. */
  readonly isGiven: boolean
  /** The zone that holds the name, or why it isn't known. */
  readonly location: Zone | NoZone
  /** Each address once; two hosts at one address are both listed. Empty unless the zone was found. */
  readonly servers: readonly ServerObservation[]
  /** Null unless a server shows an alias at the name. */
  readonly alias: AliasPath | null
  /** Whether all servers have private addresses, to which the check wasn't sent: it sees a zone of this network's own. */
  readonly isInside: boolean
  /**
   * Empty unless the authoritative servers have the record, or none of them can be reached. The first of them are those that this
   * machine uses.
   */
  readonly resolvers: readonly ResolverObservation[]
  /** Null unless the record is missing or, without an expected value, whenever a server answered. */
  readonly otherNames: OtherNames | null
  /** Null if it couldn't be queried. */
  readonly dnssec: DnssecObservation | null
  /** Caches have had as much time as they ever named: who still has the old state isn't one. */
  readonly isOverdue: boolean
  /** The check has sent as many queries as it may, so something wasn't asked. */
  readonly limitReached: boolean
}

/**
 * Tells the servers of the zone from an interceptor on this network. Over each address family, the registry's servers decide: if
 * all of them answered oddly, port 53 is intercepted. Some networks leave registries out: a zone whose servers are all recursive
 * resolvers is intercepted too. A record that is visible counts, whoever shows it.
 *
 * @returns the servers without those that were intercepted; if that leaves no answer, whether this network has a zone of the same
 *   name (`inside`) or not (`answered`)
 */
export function separateIntercepted(seen: Pick<Observations, 'servers' | 'location' | 'isInside'>) {
  const { servers, location, isInside } = seen
  const heard = servers.filter(({ isSuspect }) => isSuspect !== null)
  const registry = location.kind === 'found' ? location.registry : []
  // A server of both zones is among the domain's servers; an interceptor with a zone of that name answers at any address.
  const isPlausible = ({ isSuspect, address }: Pick<ServerObservation, 'isSuspect' | 'address'>) =>
    isSuspect === null ? heard.some((one) => one.address === address && one.host !== address) : !isSuspect
  const isGenuine = (server: ServerObservation) => {
    const isNear = (other: Pick<ServerObservation, 'address'>) => isV6(other) === isV6(server)
    if (server.isSuspect === null || server.outcome === 'match') return true
    if (heard.filter(isNear).every(({ isResolver }) => isResolver)) return false
    return (registry.some(isNear) ? registry : heard).some((one) => isNear(one) && isPlausible(one))
  }
  const intercepted = servers.filter((server) => !isGenuine(server))
  const isAnswered = intercepted.length > 0 && heard.length === intercepted.length
  const hasZone = isInside || (isAnswered && intercepted.some(({ outcome }) => isDnsData(outcome)))
  const interception = hasZone ? 'inside' : isAnswered ? 'answered' : null
  // The NS set of an interceptor's own zone names hosts of this network, which the public zone needn't have or repair.
  const named = intercepted.flatMap(({ nsSet }) => nsSet)
  const isForeign = ({ host, isSuspect }: ServerObservation) => isSuspect === null && named.includes(host)
  return { genuine: servers.filter((server) => isGenuine(server) && !isForeign(server)), interception }
}

/** The servers by what they answered. */
export function groupByOutcome(servers: readonly ServerObservation[]) {
  const of = (...outcomes: Outcome[]) => servers.filter(({ outcome }) => outcomes.includes(outcome))
  return {
    withRecord: of('match'),
    /** Authoritative for the zone, but without the value. */
    withoutRecord: of('mismatch', 'absent', 'nxdomain', 'alias'),
    lame: of('lame', 'refused', 'servfail'),
    silent: of('timeout', 'unreachable'),
  }
}

/** Whether an answer says what is at the name, even if that is nothing. */
export function isDnsData(outcome: Outcome): boolean {
  return ['match', 'mismatch', 'absent', 'nxdomain', 'alias'].includes(outcome)
}

/** Seconds for which caches may keep the old state: the TTL of the old set, or of its absence; null if unknown. */
export function oldStateTtl(answers: readonly Answer[]): number | null {
  const seconds = answers.flatMap(({ values, alias, ttl, negativeTtl }) => {
    const known = values.length > 0 || alias !== null ? ttl : negativeTtl
    return known === null ? [] : [known]
  })
  return seconds.length === 0 ? null : Math.max(...seconds)
}
