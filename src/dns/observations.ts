import type { DnsServerAddress } from '../context.ts'
import { type DnsServer, hasIpv6Address, isPrivateAddress } from './wire/address.ts'
import type { SoaSummary } from './wire/message.ts'
import { findPublicSuffix } from './wire/registry.ts'
import type { TxtRdata } from './wire/txt-answer.ts'

/**
 * Outcomes of a TXT query to one server, with their labels in reports:
 *
 * - `match`, `mismatch`: TXT records with or without the expected value; if none is expected, `mismatch`
 * - `absent`, `nxdomain`: no TXT record, or no such name
 * - `alias`: a name server's CNAME that doesn't lead to the expected value
 * - `refused`, `servfail`: an error with this rcode; `refused` also for another unusable response of a server with the zone's SOA
 * - `lame`: another unusable response, such as a referral of a server that doesn't serve the zone
 * - `timeout`, `unreachable`: no complete response, so nothing is known about the record
 * - `not_checked`: no query was sent (for example, no route), or the resolver offers no recursion
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

export type TxtOutcome = keyof typeof OUTCOME_LABELS

/** Result of the TXT query to one name server or resolver. */
export interface TxtObservation {
  readonly outcome: TxtOutcome
  /** TXT set at the name or at the end of its CNAME chain. */
  readonly values: readonly TxtRdata[]
  /** TTL in seconds of the TXT set or of the first CNAME; null without either. From a resolver's cache: the time left. */
  readonly ttl: number | null
  /** Negative TTL in seconds (RFC 2308 section 5); null if the response has TXT records, or no SOA record. */
  readonly negativeTtl: number | null
  /** Target of the CNAME at the name; null without a CNAME, or with TXT records beside it. */
  readonly alias: string | null
  /** Whether the response had the AA bit (RFC 1035 section 4.1.1). A resolver sets this bit for a zone that it serves itself. */
  readonly authoritative: boolean
  /** Milliseconds from the query to the response or the failure; null if no query was sent. */
  readonly ms: number | null
}

/** Result of the queries to one name server at one of its addresses: the TXT set, and the zone's SOA record and NS set. */
export interface ServerObservation extends TxtObservation {
  readonly host: string
  /** IP address. Null without one: the host has no address (outcome `unreachable`), or its lookup failed (`timeout`). */
  readonly address: string | null
  /** Whether the response is implausible for an authoritative server, and so might be an interceptor's; null without a response. */
  readonly isImplausible: boolean | null
  /**
   * Whether the server acts as a recursive resolver: it offers recursion (RA) without authority (AA), or answers for the
   * registry's zone too.
   */
  readonly isResolver: boolean
  /** SOA record of the zone from this server; null unless returned with the AA bit. */
  readonly soa: SoaSummary | null
  /**
   * Host names of the zone's NS set from this server; empty without the AA bit, and if the server seems to be an interceptor,
   * because it also answers for the registry's zone, such as `com`.
   */
  readonly nsSet: readonly string[]
}

export interface ResolverObservation extends TxtObservation {
  readonly resolver: DnsServer
  /** Whether DNSSEC validation fails at the resolver: SERVFAIL, but an answer with the CD bit. False if untested. */
  readonly failsValidation: boolean
  /** Text of the extended DNS error (RFC 8914); null without one. */
  readonly explanation: string | null
  /**
   * Records of the zone in the resolver's cache, perhaps outdated; null if not queried. `texts`: host names of the NS set or, if
   * validation fails, the DS and DNSKEY records with their signatures. `ttl`: their longest TTL, in seconds.
   */
  readonly cached: { readonly texts: readonly string[]; readonly ttl: number } | null
}

/** TXT records that one authoritative server has at names other than the checked name. */
export interface TxtRecordsAtOtherNames {
  /**
   * Names that have TXT records, among those where the expected record often ends up by mistake. Left out: names of the kinds
   * `doubled` and `wrong` whose TXT set is that of a wildcard.
   */
  readonly candidates: readonly OtherNameWithTxt[]
  /**
   * TXT values of a wildcard that covers the checked name, which then has no records itself (RFC 4592). Empty if the response has
   * only the wildcard's CNAME; null without such a wildcard.
   */
  readonly wildcard: readonly TxtRdata[] | null
}

/** A name where the expected record often ends up by mistake, with its TXT values. */
export interface OtherNameWithTxt {
  readonly name: string
  /**
   * Relation of `name` to the checked name. `doubled`: the checked name with the zone, or itself, appended. `used`: a name that
   * can rightly have other TXT records, such as the parent or a wildcard. `wrong`: any other name.
   */
  readonly kind: 'doubled' | 'wrong' | 'used'
  /** TXT set at `name`, with at least one value, not necessarily the expected one. */
  readonly values: readonly TxtRdata[]
}

/** CNAME chain that starts at the checked name, according to the authoritative servers of each zone. */
export interface CnameChain {
  /** Targets of the CNAMEs in the order of the chain; at least one. */
  readonly targets: readonly string[]
  /** Whether it is known which TXT records, if any, the CNAMEs lead to. False, for example, if a target's servers time out. */
  readonly isKnown: boolean
  /** Whether the checked name has TXT records beside the CNAME, which RFC 1034 section 3.6.2 forbids. Default: false. */
  readonly hasTxtBeside?: true
}

/**
 * State of a zone's DNSSEC records. Only DS records count whose algorithm and digest type validators support. Signatures aren't
 * verified; the expiration is that of the signatures over the SOA record.
 *
 * - `unsigned`: no DS record
 * - `ok`: a DS record matches a key, and a signature hasn't expired
 * - `no_key`: a DS record, but no key
 * - `wrong_ds`: DS records and keys, but none that match
 * - `expired`: a DS record matches a key, but all signatures have expired
 */
export interface ZoneDnssecObservation {
  readonly state: 'unsigned' | 'ok' | 'no_key' | 'wrong_ds' | 'expired'
  /** Key tags of the DS records whose algorithms and digests validators support. */
  readonly keyTags: readonly number[]
  /**
   * DS records and, in the states `ok` and `expired`, the DNSKEY records with the signatures over them, as texts to compare
   * with a resolver's cache.
   */
  readonly keys: readonly string[]
}

/** A zone and its name servers, from NS records or, without usable ones, a single known server. */
export interface Delegation {
  readonly zone: string
  /**
   * Host names of the name servers, each with its addresses from glue records (an empty list without glue). If only the address
   * of a single server is known, the address is its host name as well.
   */
  readonly hosts: ReadonlyMap<string, readonly DnsServerAddress[]>
  /**
   * Whether a recursive resolver gave the NS records with authority (AA and RA bits), so that it probably serves the zone itself.
   * Always false for a registry's zone. Default: false.
   */
  readonly isResolverZone?: boolean
}

/** Deepest zone that the search for a name's zone has reached, and the delegations from the start of the search down to it. */
export interface FoundZone extends Delegation {
  readonly kind: 'found'
  /** Server of the parent zone that sent the referral to this zone; null if the zone was found without a referral. */
  readonly parent: DnsServerAddress | null
  /** Delegations from the zone where the search began down to this zone. */
  readonly path: readonly Delegation[]
  /**
   * Servers of registries below the root that responded in the search for the zone. `isImplausible`: whether the response might
   * be an interceptor's; null for a response with answer records, since these alone don't tell.
   */
  readonly registry: { readonly address: string; readonly isImplausible: boolean | null }[]
}

/**
 * Why no zone was found. `no_domain`: a registry denies the registrable domain (NXDOMAIN). `lost`: no name server led to the zone.
 */
type ZoneNotFound = {
  /**
   * Delegations found on the way to the name. Kind `no_domain`: down to the registry that denies the domain. Kind `lost`: only the
   * last one that a resolver returned, if any.
   */
  readonly path: readonly Delegation[]
} & (
  | {
      readonly kind: 'no_domain'
      readonly domain: string
      /** Zone of the registry that denies the domain. */
      readonly deniedBy: string
      /** Negative TTL in seconds of the registry's response; null if the response has no SOA record. */
      readonly negativeTtl: number | null
    }
  /** `replies`: distinct replies of the queried resolvers, such as `9.9.9.9: no answer`. */
  | { readonly kind: 'lost'; readonly replies: readonly string[] }
)

export type ZoneLocation = FoundZone | ZoneNotFound

/** Name and expected value of one check, and its observations of DNS: the check derives its findings from these alone. */
export interface DnsObservations {
  /** Checked name in A-labels (RFC 5890 section 2.3.2.1), lowercase. */
  readonly name: string
  /** Expected TXT value; null if none is expected. */
  readonly expected: string | null
  /** Whether the expected value might be cut off: a user typed it, and it isn't known from a claim. */
  readonly mayBeCut: boolean
  readonly location: ZoneLocation
  /** Name servers, one entry for each host and address. Empty unless the zone was found. */
  readonly servers: readonly ServerObservation[]
  /** CNAME chain at the checked name; null unless a name server returned a CNAME. */
  readonly alias: CnameChain | null
  /**
   * Whether the zone is, or might be, this network's own instead of the public one. False unless `authoritative_port` is 53: with
   * another port, the user means private DNS.
   */
  readonly mayBeLocal: boolean
  /**
   * Results of the resolvers, the configured ones first. Empty unless all name servers that answer have the record, or only
   * resolvers can show it (`onlyResolversCanShowRecord`).
   */
  readonly resolvers: readonly ResolverObservation[]
  /** TXT records at other names; null if not searched, as when a name server has the expected record. */
  readonly otherNames: TxtRecordsAtOtherNames | null
  /** State of the zone's DNSSEC records; null if unknown. */
  readonly dnssec: ZoneDnssecObservation | null
  /** Whether the wait reported for the finding `cached` has passed, so that caching doesn't explain a missing record anymore. */
  readonly isOverdue: boolean
  /** Whether the check reached its limit of queries, so that some queries weren't sent. */
  readonly limitReached: boolean
}

/**
 * Tells the name servers from an interceptor that answers in their place, such as a firewall that redirects port 53. An address
 * family (IPv4 or IPv6) is intercepted if all its name servers that respond are recursive resolvers, or if none of its responses
 * from registries' servers is plausible. If no registry's server has responded, the responses of the name servers count instead.
 *
 * @returns `genuine`: the servers that aren't intercepted, without silent servers that an interceptor's NS set names.
 *   `interception`: `inside` if this network has, or might have, a zone of the same name, even without an interceptor; `answered`
 *   if all responses are an interceptor's, without such a zone; otherwise null
 */
export function detectInterception(observed: Pick<DnsObservations, 'servers' | 'location' | 'mayBeLocal'>) {
  const { servers, location, mayBeLocal } = observed
  const heard = servers.filter(({ isImplausible }) => isImplausible !== null)
  const registry = location.kind === 'found' ? location.registry : []
  // Answer records from a registry's server (`isImplausible` null) count as plausible only if a name server of the domain, known by
  // its host name, has the same address: such a server serves both zones. An interceptor answers at any address.
  const isSound = ({ isImplausible: bad, address }: Pick<ServerObservation, 'isImplausible' | 'address'>) =>
    bad === null ? heard.some((one) => one.address === address && one.host !== address) : !bad
  const isGenuine = (server: ServerObservation) => {
    const isIpv6 = hasIpv6Address(server)
    const isNear = (other: Pick<ServerObservation, 'address'>) => hasIpv6Address(other) === isIpv6
    if (server.isImplausible === null) return true
    if (heard.filter(isNear).every(({ isResolver }) => isResolver)) return false
    return (registry.some(isNear) ? registry : heard).some((one) => isNear(one) && isSound(one))
  }
  const intercepted = servers.filter((server) => !isGenuine(server))
  const isAnswered = intercepted.length > 0 && heard.length === intercepted.length
  const hasZone = mayBeLocal || (isAnswered && intercepted.some(({ outcome }) => isConclusive(outcome)))
  const interception = hasZone ? 'inside' : isAnswered ? 'answered' : null
  // An interceptor's NS set can name hosts that exist on this network only. Drop the silent ones: users can't repair them.
  const named = intercepted.flatMap(({ nsSet }) => nsSet)
  const isNamed = (one: ServerObservation) => one.isImplausible === null && named.includes(one.host)
  return { genuine: servers.filter((server) => isGenuine(server) && !isNamed(server)), interception }
}

/**
 * Whether the zone is, or might be, this network's own. True if all name servers have private addresses. Also true, except after a
 * search from the root or below a private top-level domain, if a resolver serves the zone (or one above) itself, or if servers
 * answer without the record while no server has it and no registry's server responded.
 */
export function mayBeLocalZone({ zone, path, registry }: FoundZone, servers: readonly ServerObservation[]) {
  if (servers.length > 0 && servers.every(({ address }) => isPrivateAddress(address))) return true
  // Judge by the addresses alone in two cases: after a search that began at the root, as with an authoritative server given as
  // resolver; and below a private top-level domain, which has no registry.
  if (path[0]?.zone === '.' || findPublicSuffix(zone) === undefined) return false
  const { withRecord, withoutRecord } = groupServers(servers)
  const isUnproven = registry.length + withRecord.length === 0 && withoutRecord.length > 0
  return isUnproven || path.some(({ isResolverZone }) => isResolverZone)
}

/** Groups name servers by outcome, without those that weren't queried (`not_checked`). */
export function groupServers(servers: readonly ServerObservation[]) {
  const of = (...outcomes: TxtOutcome[]) => servers.filter(({ outcome }) => outcomes.includes(outcome))
  const failed = of('lame', 'refused', 'servfail')
  return {
    withRecord: of('match'),
    /** Servers of the zone that answer, but without the expected value. */
    withoutRecord: of('mismatch', 'absent', 'nxdomain', 'alias'),
    /** Servers that don't serve the zone: an unusable response to the TXT query, and no SOA record of the zone. */
    lame: failed.filter(({ soa }) => soa === null),
    /**
     * Servers without a complete response, or with a CNAME chain whose end is unknown; and servers of the zone that fail for the
     * TXT query.
     */
    silent: [...of('timeout', 'unreachable'), ...failed.filter(({ soa }) => soa !== null)],
  }
}

/** Whether an outcome proves which TXT records or CNAME the name has, or that it has neither. */
export const isConclusive = (outcome: TxtOutcome): boolean =>
  ['match', 'mismatch', 'absent', 'nxdomain', 'alias'].includes(outcome)

/**
 * Returns the longest time in seconds that caches may keep the observed data: the TTL of a TXT set or CNAME, or a negative TTL;
 * null if unknown.
 */
export function longestTtlOf(answers: readonly TxtObservation[]): number | null {
  const seconds = answers.flatMap(({ values, alias, ttl, negativeTtl }) => {
    const known = values.length > 0 || alias !== null ? ttl : negativeTtl
    return known === null ? [] : [known]
  })
  return seconds.length === 0 ? null : Math.max(...seconds)
}
