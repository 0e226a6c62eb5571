import type { DnsServerAddress } from '../context.ts'
import { hasIpv6, isPrivateAddress, type Resolver } from './wire/address.ts'
import type { Soa } from './wire/message.ts'
import { findPublicSuffix } from './wire/registry.ts'
import type { TxtValue } from './wire/txt-answer.ts'

/**
 * Outcome of a TXT query to one server, with its label in reports:
 *
 * - `match`: the expected value is at the name or at the end of its CNAME chain; never without an expected value
 * - `mismatch`: TXT records, but not the expected value; without an expected value any TXT records
 * - `absent`, `nxdomain`: an answer that there is no TXT record, or no such name
 * - `alias`: a CNAME is at the name, and the expected value isn't at the end of the chain
 * - `refused`, `servfail`: an answer without data; if the server has an SOA record of the zone, it fails for TXT queries alone
 * - `lame`: an answer that no server of the zone gives, such as a referral
 * - `timeout`, `unreachable`: no complete answer, which proves nothing about the record
 * - `not_checked`: no query was sent (no route from here, no query left, a server known to be silent)
 */
export const OUTCOME_LABELS = {
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

/** Outcome of a TXT query to one server. */
export type TxtOutcome = keyof typeof OUTCOME_LABELS

/** Answer of a name server or a resolver to the TXT query of a check. */
export interface TxtObservation {
  readonly outcome: TxtOutcome
  /** TXT set, one entry per record; if the name has a CNAME, the set at the end of the chain. */
  readonly values: readonly TxtValue[]
  /** TTL in seconds of the TXT set or of the first CNAME; null without either. A resolver gives the time left in its cache. */
  readonly ttl: number | null
  /** Seconds that caches keep the record's absence (RFC 2308 section 5); null unless the answer is negative. */
  readonly negativeTtl: number | null
  /** Target of the first CNAME; null without a CNAME. */
  readonly alias: string | null
  /** Whether the answer had the AA bit (RFC 1035 section 4.1.1). A resolver with this bit answers from a zone of its own. */
  readonly authoritative: boolean
  /** Milliseconds from the query to the answer; null without an answer. */
  readonly ms: number | null
}

/** Answer of one name server at one of its addresses. */
export interface ServerObservation extends TxtObservation {
  readonly host: string
  /** IP address; null if the host has none, with the outcome `unreachable` if that is certain, `timeout` if the lookup failed. */
  readonly address: string | null
  /**
   * Whether the answer was one that no authoritative server of the zone gives (a refusal, a failure, recursion without authority);
   * null without an answer.
   */
  readonly isSuspect: boolean | null
  /** Whether the server is a recursive resolver: it offers recursion without authority, or answers for the registry's zone. */
  readonly isResolver: boolean
  /** SOA record of the zone at this server; null without an authoritative answer. */
  readonly soa: Soa | null
  /** Hosts of the zone's NS set at this server; empty without an authoritative answer. */
  readonly nsSet: readonly string[]
}

/** Answer of one recursive resolver. */
export interface ResolverObservation extends TxtObservation {
  readonly resolver: Resolver
  /** Whether DNSSEC validation fails at the resolver: it answers SERVFAIL, but has data with checking disabled (the CD bit). */
  readonly failsValidation: boolean
  /** Text of the extended DNS error (RFC 8914); null without one. */
  readonly explanation: string | null
  /**
   * Data of the zone in the resolver's cache. `texts`: hosts of the NS set or, if validation fails, the keys; `ttl`: the longest
   * TTL in seconds. Null if the resolver wasn't queried for it.
   */
  readonly cached: { readonly texts: readonly string[]; readonly ttl: number } | null
}

/** TXT records of one authoritative server at names other than the expected one. */
export interface TxtAtOtherNames {
  /** TXT records at names where the record doesn't belong, except those that a wildcard generates. */
  readonly misplaced: readonly MisplacedRecord[]
  /**
   * Values of a wildcard that answers for the name, which then has no record of its own; empty if the wildcard has no TXT records,
   * null without a wildcard.
   */
  readonly wildcard: readonly TxtValue[] | null
}

/** TXT records at a name where the expected record often ends up by mistake. */
export interface MisplacedRecord {
  readonly name: string
  /**
   * Kind of name. `doubled`: the name with the zone or itself appended. `used`: a name that can have TXT records of its own, such
   * as the parent or `*`. `wrong`: any other.
   */
  readonly how: 'doubled' | 'wrong' | 'used'
  /** All TXT values at that name, at least one; the expected value needn't be among them. */
  readonly values: readonly TxtValue[]
}

/** CNAME chain that starts at the name, by the answers of the authoritative servers of each zone. */
export interface CnameChain {
  /** Targets in the order of the chain; at least one. */
  readonly targets: readonly string[]
  /** Whether the end of the chain could be queried, or certainly doesn't exist. */
  readonly isKnown: boolean
  /** Whether the name has TXT records beside the CNAME, which RFC 1034 section 3.6.2 forbids. */
  readonly isBeside?: true
}

/**
 * State of the zone's DNSSEC records, without verifying signatures: `unsigned`: no DS record; `ok`: a DS record matches a key, and
 * the SOA's signature is within its validity period; `no_key`: a DS record, but no key; `wrong_ds`: keys, but no DS record matches
 * one; `expired`: a matching key, but the SOA's signatures have expired.
 */
export interface DnssecObservation {
  readonly state: 'unsigned' | 'ok' | 'no_key' | 'wrong_ds' | 'expired'
  /** Key tags of the DS records. */
  readonly keyTags: readonly number[]
  /** DS records, keys and their signatures, as texts to compare with those in a cache. */
  readonly keys: readonly string[]
}

/** A zone and its name servers, by NS records of the parent or of the zone itself, with the addresses that came along as glue. */
export interface Delegation {
  readonly zone: string
  readonly hosts: ReadonlyMap<string, readonly DnsServerAddress[]>
  /** Whether the NS records are from a zone of a recursive resolver's own: its answer had the AA and RA bits. Default: false. */
  readonly isResolvers?: boolean
}

/** Zone that holds the name, with the delegations that led there. */
export interface FoundZone extends Delegation {
  readonly kind: 'found'
  /** Server of the parent zone whose referral names these hosts; null if no such server was queried. */
  readonly parent: DnsServerAddress | null
  /** Delegations from the topmost zone down to this zone. */
  readonly path: readonly Delegation[]
  /**
   * Servers of the registries above that answered, and whether the answer was suspect. All registries work, so a suspect answer
   * comes from an interceptor on this network. `isSuspect` null: the answer had records of the domain's own zone, as only a
   * server of both zones, or an interceptor, gives.
   */
  readonly registry: { readonly address: string; readonly isSuspect: boolean | null }[]
}

/**
 * Why the zone isn't known: a registry answers that the registered domain doesn't exist (`no_domain`), or no name server was
 * found (`lost`).
 */
type ZoneNotFound = {
  /** Delegations found before the search ended, from the top down. */
  readonly path: readonly Delegation[]
} & (
  | {
      readonly kind: 'no_domain'
      readonly domain: string
      readonly saidBy: string
      readonly negativeTtl: number | null
    }
  /** `replies`: replies of the resolvers, such as `9.9.9.9: no answer`. */
  | { readonly kind: 'lost'; readonly replies: readonly string[] }
)

/** Result of the search for the zone that holds a name. */
export type ZoneLocation = FoundZone | ZoneNotFound

/** All answers of one check, from which the findings are derived. */
export interface Observations {
  /** Name of the record in A-labels (RFC 5890 section 2.3.2.1), lowercase. */
  readonly name: string
  /** Expected TXT value, untruncated; null if none is expected. */
  readonly expected: string | null
  /** Whether a user typed the expected value, and might have truncated it while copying. */
  readonly isGiven: boolean
  /** Zone that holds the name, or why it isn't known. */
  readonly location: ZoneLocation
  /** Name servers, one entry for each host and address. Empty unless the zone was found. */
  readonly servers: readonly ServerObservation[]
  /** CNAME chain at the name; null unless a name server shows a CNAME. */
  readonly alias: CnameChain | null
  /**
   * Whether the zone is this network's own, or could be for all that the answers prove, although the user didn't ask for private
   * DNS.
   */
  readonly mayBeLocal: boolean
  /**
   * Answers of the resolvers, the machine's own first. Empty unless the authoritative servers have the record, or none of them can
   * be reached.
   */
  readonly resolvers: readonly ResolverObservation[]
  /** TXT records at other names; null if a name server has the expected record, or none of them gave a usable answer. */
  readonly otherNames: TxtAtOtherNames | null
  /** State of the zone's DNSSEC records; null if it couldn't be queried. */
  readonly dnssec: DnssecObservation | null
  /**
   * Whether every cache TTL named by earlier checks has passed, so that a resolver with the old state isn't explained by caching.
   */
  readonly isOverdue: boolean
  /** Whether the check used up its queries, so that some servers weren't queried. */
  readonly limitReached: boolean
}

/**
 * Separates the servers of the zone from an interceptor on this network, for each address family (IPv4, IPv6) on its own. A
 * family is intercepted if no answer of the registry's servers is plausible or, without answers of these, none of the domain's
 * own servers. Some networks exempt registries, so a family is also intercepted if all of the domain's servers that answer are
 * recursive resolvers.
 *
 * @returns `genuine`: servers that weren't intercepted, without silent hosts that an interceptor's NS set names; `interception`:
 *   `inside` if this network has, or might have, a zone of the same name, `answered` if all answers came from an interceptor
 *   without such a zone, otherwise null
 */
export function detectInterception(seen: Pick<Observations, 'servers' | 'location' | 'mayBeLocal'>) {
  const { servers, location, mayBeLocal } = seen
  const heard = servers.filter(({ isSuspect }) => isSuspect !== null)
  const registry = location.kind === 'found' ? location.registry : []
  // A registry's answer with records of the domain's own zone (`isSuspect` null) is plausible only from an address of one of the
  // domain's named servers, which then serves both zones. An interceptor with a zone of that name gives such an answer at any
  // address.
  const isPlausible = ({ isSuspect, address }: Pick<ServerObservation, 'isSuspect' | 'address'>) =>
    isSuspect === null ? heard.some((one) => one.address === address && one.host !== address) : !isSuspect
  const isGenuine = (server: ServerObservation) => {
    const isNear = (other: Pick<ServerObservation, 'address'>) => hasIpv6(other) === hasIpv6(server)
    if (server.isSuspect === null) return true
    if (heard.filter(isNear).every(({ isResolver }) => isResolver)) return false
    return (registry.some(isNear) ? registry : heard).some((one) => isNear(one) && isPlausible(one))
  }
  const intercepted = servers.filter((server) => !isGenuine(server))
  const isAnswered = intercepted.length > 0 && heard.length === intercepted.length
  const hasZone = mayBeLocal || (isAnswered && intercepted.some(({ outcome }) => isConclusive(outcome)))
  const interception = hasZone ? 'inside' : isAnswered ? 'answered' : null
  // The NS set of an interceptor's own zone names hosts of this network, which the public zone needn't have. So drop them: users
  // can't repair them.
  const named = intercepted.flatMap(({ nsSet }) => nsSet)
  const isForeign = ({ host, isSuspect }: ServerObservation) => isSuspect === null && named.includes(host)
  return { genuine: servers.filter((server) => isGenuine(server) && !isForeign(server)), interception }
}

/**
 * Whether the zone is this network's own, or could be: all name servers have private addresses; a resolver has the zone itself;
 * or servers lack the record, and no server of the registry was heard. Only private addresses decide for a private top-level
 * domain, and if the user chose an authoritative server as the resolver: then no registry is queried.
 */
export function mayBeLocalZone({ zone, path, registry }: FoundZone, servers: readonly ServerObservation[]) {
  if (servers.length > 0 && servers.every(({ address }) => isPrivateAddress(address))) return true
  if (path[0]?.zone === '.' || findPublicSuffix(zone) === undefined) return false
  const { withRecord, withoutRecord } = groupByOutcome(servers)
  const isUnproven = registry.length + withRecord.length === 0 && withoutRecord.length > 0
  return isUnproven || path.some(({ isResolvers }) => isResolvers)
}

/** Groups servers by outcome; those with the outcome `not_checked` are in no group. */
export function groupByOutcome(servers: readonly ServerObservation[]) {
  const of = (...outcomes: TxtOutcome[]) => servers.filter(({ outcome }) => outcomes.includes(outcome))
  const failed = of('lame', 'refused', 'servfail')
  return {
    withRecord: of('match'),
    /** Authoritative servers of the zone that lack the value. */
    withoutRecord: of('mismatch', 'absent', 'nxdomain', 'alias'),
    lame: failed.filter(({ soa }) => soa === null),
    /** Servers without an answer, and authoritative servers of the zone that answer, but not for TXT records. */
    silent: [...of('timeout', 'unreachable'), ...failed.filter(({ soa }) => soa !== null)],
  }
}

/** Whether an outcome shows which data is at the name, including that there is none. */
export const isConclusive = (outcome: TxtOutcome): boolean =>
  ['match', 'mismatch', 'absent', 'nxdomain', 'alias'].includes(outcome)

/**
 * Returns the seconds for which caches may keep the old state: the longest TTL of the old set or CNAME, or negative TTL; null if
 * unknown.
 */
export function longestTtl(answers: readonly TxtObservation[]): number | null {
  const seconds = answers.flatMap(({ values, alias, ttl, negativeTtl }) => {
    const known = values.length > 0 || alias !== null ? ttl : negativeTtl
    return known === null ? [] : [known]
  })
  return seconds.length === 0 ? null : Math.max(...seconds)
}
