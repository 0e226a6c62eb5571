import type { DnsServerAddress } from '../context.ts'
import type { Deadline } from '../timeout.ts'
import { type Delegation, type FoundZone, OUTCOME_LABELS, type ZoneLocation } from './observations.ts'
import type { CheckCache } from './shared-cache.ts'
import { canBeNameServerAddress, type DnsServer, formatResolver, hasIpv6Address } from './wire/address.ts'
import { awaitPreferredOrAny, type DnsEffects, queryDns, trySendQuery } from './wire/ask.ts'
import { collectNsHosts, type DnsReply, findSoa, type ResourceRecord } from './wire/message.ts'
import { canQueryName, collectNonRootAncestors, countLabels, isWithin } from './wire/name.ts'
import { isRegistryZone, registrableDomainOf } from './wire/registry.ts'

/** A DNS check in progress: the record to find, and what its queries need, such as resolvers and a deadline. */
export interface CheckRun {
  /** Checked name in A-labels (RFC 5890 section 2.3.2.1), lowercase. */
  readonly name: string
  /** Expected TXT value; null if none is expected. */
  readonly expected: string | null
  /** Resolvers of the check, of which the first three are queried about zones and hosts. */
  readonly resolvers: readonly DnsServer[]
  /** Port of authoritative servers: the setting `authoritative_port`, which is 53 except for private DNS and tests. */
  readonly port: number
  readonly deadline: Deadline
  readonly effects: DnsEffects
  readonly cache: CheckCache
}

/** Maximum milliseconds for a query to a resolver about a zone or a host. */
const RESOLVER_MS = 2500
/**
 * Flags of a query to a resolver about a zone or a host. Without the CD bit, broken DNSSEC would hide a zone (RFC 4035 section
 * 3.2.2).
 */
const RECURSIVE = { recursionDesired: true, checkingDisabled: true } as const
/** Maximum milliseconds for a query to an authoritative server on the way down to the zone. */
const LEVEL_MS = 1500
/** Maximum number of hosts used from a zone's NS records, since a hostile zone could have thousands. */
export const MAX_NS_HOSTS = 26

/**
 * Finds the zone that holds a name, and the zone's name servers. Resolvers give the NS records of the top-level domain; from there
 * on, authoritative servers are queried, so that no resolver caches a negative answer about the name (RFC 2308).
 *
 * If this fails, as in private DNS or behind a firewall, the search starts again from the NS records that resolvers give for a
 * lower ancestor of the name, or for the root, which can deny the top-level domain. Below the registrable domain, resolvers aren't
 * asked about the name itself, since it might not exist yet.
 */
export async function findZone(name: string, check: CheckRun): Promise<ZoneLocation> {
  const domain = registrableDomainOf(name)
  const above = await check.cache.memoize(
    `zone ${domain}`,
    () => findFrom([...collectNonRootAncestors(domain), domain, '.'], domain, check),
    ({ kind }) => kind === 'found',
  )
  if (above.kind === 'no_domain') return above
  if (above.kind === 'found') return (await followReferrals(name, above, check)) ?? above
  const below = collectNonRootAncestors(name).filter((level) => countLabels(level) > countLabels(domain))
  const found = await findFrom(below, name, check)
  return found.kind === 'lost' ? above : found
}

/**
 * Searches for the zone of `target` by referrals. Starts from each of the names `levels` in turn, with the NS records that the
 * resolvers give for it, until one leads to a zone or to a registry's denial. Returns `lost` if none does.
 */
async function findFrom(levels: readonly string[], target: string, check: CheckRun): Promise<ZoneLocation> {
  const replies = new Set<string>()
  const registry: FoundZone['registry'] = []
  let path: readonly Delegation[] = []
  for (const level of levels) {
    const delegation = await askResolvers(level, check, replies)
    if (delegation === undefined) continue
    const start = extendPath({ path: [], registry }, delegation, null)
    const found = await followReferrals(target, start, check)
    if (found !== undefined) return found
    path = start.path
  }
  return { kind: 'lost', replies: [...replies], path }
}

/**
 * Queries resolvers for the NS records of the name `level`, and returns the name servers from which to follow referrals; undefined
 * if there are none. A denial counts as no answer, because some resolvers block every name or have their own root zone. Adds
 * replies such as `9.9.9.9: no answer` to `replies`.
 */
async function askResolvers(
  level: string,
  { resolvers, port, deadline, effects }: CheckRun,
  replies: Set<string>,
): Promise<Delegation | undefined> {
  const askOne = async (resolver: DnsServer): Promise<Delegation | undefined> => {
    const question = { name: level, type: 'NS', ...RECURSIVE } as const
    const reply = await trySendQuery(resolver, question, deadline.limitedTo(RESOLVER_MS), effects)
    const answer =
      reply.kind === 'answer' ? reply.message.rcode : (reply.reason ?? OUTCOME_LABELS[reply.kind])
    replies.add(`${formatResolver(resolver)}: ${answer}`)
    if (reply.kind !== 'answer') return undefined
    const { message } = reply
    const delegation = readDelegation(message, level, port)
    // A resolver with authority (AA) over a zone other than a registry's might serve its own version of the zone instead of the
    // public one. So mark the delegation with `isResolverZone`.
    const isResolverZone = message.aa && message.ra && !isRegistryZone(level)
    if (delegation !== undefined || resolver instanceof URL)
      return delegation && { ...delegation, isResolverZone }
    // A resolver that doesn't offer recursion (RA) is probably an authoritative server of a private DNS. So start the search at
    // this server.
    const isAuthoritative = !message.ra && message.rcode !== 'NXDOMAIN'
    return isAuthoritative ? singleServerZone('.', resolver) : undefined
  }
  // Prefer NS records of the public DNS to those of a zone that a resolver serves itself, and to an authoritative server
  // among the resolvers.
  const asked = resolvers.slice(0, 3).map(askOne)
  return await awaitPreferredOrAny(asked, ({ zone, isResolverZone }) => zone !== '.' && !isResolverZone)
}

/**
 * Follows referrals from the zone `start` down to the zone of `target`, or to a registry's denial. Ends at a zone whose servers
 * give no usable response; returns undefined if that is a registry's, because the target's zone is usually below it.
 */
async function followReferrals(target: string, start: FoundZone, check: CheckRun) {
  let at = start
  while (at.zone !== target) {
    const answer = await askServers(at, target, check)
    if (answer === undefined) return isRegistryZone(at.zone) ? undefined : at
    if (answer.referral === undefined) return await findFinalZone(at, answer, target, check)
    at = extendPath(at, answer.referral, answer.server)
  }
  return at
}

function extendPath(
  { path, registry }: Pick<FoundZone, 'path' | 'registry'>,
  delegation: Delegation,
  parent: FoundZone['parent'],
): FoundZone {
  return { kind: 'found', ...delegation, parent, registry, path: [...path, delegation] }
}

/** A name server on the path to a name's zone, with its response: a referral, or an authoritative answer that ends the path. */
type PathReply = NonNullable<Awaited<ReturnType<typeof askServers>>>

/**
 * Queries up to four addresses of a zone's servers for the SOA record of `target`, and returns a referral or an authoritative
 * answer; undefined without either. At a registry, a referral is preferred: a denial might be older than the domain, and another
 * answer might be an interceptor's. Appends to `at.registry` the servers of registries below the root that respond.
 */
async function askServers(at: FoundZone, target: string, check: CheckRun) {
  const { zone, registry } = at
  const servers = await findServerAddresses(at, check)
  const askOne = async (server: DnsServerAddress) => {
    if (check.cache.isSilent(server)) return undefined
    const message = await queryDns(server, { name: target, type: 'SOA' }, check, LEVEL_MS)
    if (message === undefined) return undefined
    const referral = readReferral(message, zone, target, check.port)
    const isEnd = message.aa && hasData(message) && isAnswerOrDenial(message) && !isFromAbove(message, zone)
    // A registry's server usually sends a referral or a negative answer. One that returns answer records might serve the domain's
    // zone as well, or be an interceptor: null leaves the decision to `detectInterception`.
    const verdict = message.answers.length > 0 ? null : isImplausible(message)
    if (isRegistryZone(zone) && zone !== '.')
      registry.push({ address: server.address, isImplausible: verdict })
    return referral !== undefined || isEnd ? { server, message, referral } : undefined
  }
  return await awaitPreferredOrAny(
    servers.slice(0, 4).map(askOne),
    ({ referral }) => referral !== undefined || !isRegistryZone(zone),
  )
}

/**
 * Finds the zone of `target` after a response without a referral: the queried zone, or a zone below it on the same server. Returns
 * `no_domain` if a registry denies the domain.
 */
async function findFinalZone(at: FoundZone, reply: PathReply, target: string, check: CheckRun) {
  const { server, message } = reply
  const soa = await findZoneSoa(reply, target, at.zone, check)
  const zone = soa?.zone ?? at.zone
  if (message.rcode === 'NXDOMAIN' && isRegistryZone(zone)) {
    const facts = { domain: registrableDomainOf(target), deniedBy: zone, path: at.path }
    return { kind: 'no_domain' as const, ...facts, negativeTtl: soa?.negativeTtl ?? null }
  }
  if (zone === at.zone) return at
  // A server with authority over a zone and its parent zone sends no referral to the lower one. So query the same server for the
  // lower zone's NS records.
  const answer = await queryDns(server, { name: zone, type: 'NS' }, check, LEVEL_MS)
  const own = answer && readDelegation(answer, zone, check.port)
  const isUsable = own !== undefined && (await findServerAddresses(own, check)).length > 0
  return extendPath(at, isUsable ? own : singleServerZone(zone, server), null)
}

/** Creates a delegation to one known server, with its address as host name, for a zone whose NS records are unknown or unusable. */
const singleServerZone = (zone: string, server: DnsServerAddress): Delegation => ({
  zone,
  hosts: new Map([[server.address, [server]]]),
})

/**
 * Finds the SOA record of the zone that holds `target`: in the response or, without one there, by queries for the names above
 * `target`, up to `zone`. In a response with a CNAME, the SOA record may be of the zone where the chain ends, so it isn't used.
 */
async function findZoneSoa({ server, message }: PathReply, target: string, zone: string, check: CheckRun) {
  const levels = [target, ...collectNonRootAncestors(target).toReversed()]
  for (const name of levels.filter((level) => isWithin(level, zone))) {
    const answer = name === target ? message : await queryDns(server, { name, type: 'SOA' }, check, LEVEL_MS)
    const isAlias = answer?.answers.some(({ type }) => type === 'CNAME')
    const soa = answer === undefined || isAlias ? undefined : findSoa(answer)
    if (soa !== undefined && isWithin(target, soa.zone) && isWithin(soa.zone, zone)) return soa
  }
  return undefined
}

/** Whether a response has answer records, or the SOA record of a negative answer. */
const hasData = (message: DnsReply): boolean => findSoa(message) !== undefined || message.answers.length > 0
/** Whether a response has the rcode NOERROR or NXDOMAIN, so that the server has neither failed nor refused. */
export const isAnswerOrDenial = ({ rcode }: DnsReply): boolean => rcode === 'NOERROR' || rcode === 'NXDOMAIN'

/**
 * Whether a response is implausible for an authoritative server, so that it might be an interceptor's: an error such as REFUSED,
 * or an offer of recursion (RA) without authoritative data (AA).
 */
export function isImplausible(authorityReply: DnsReply): boolean {
  return (
    !isAnswerOrDenial(authorityReply) ||
    (authorityReply.ra && !(authorityReply.aa && hasData(authorityReply)))
  )
}

/**
 * Whether a response counts as sent by a server of the zone: with the AA bit or, because a few servers forget that bit, with data
 * but without the RA bit, which resolvers set. A negative answer from a zone above doesn't count.
 */
export function isFromZone(message: DnsReply, zone: string): boolean {
  return (message.aa || (!message.ra && hasData(message))) && !isFromAbove(message, zone)
}

/** Whether a response is a negative answer from a zone above `zone`: a server of `zone` would answer from `zone`. */
function isFromAbove(message: DnsReply, zone: string): boolean {
  const soa = findSoa(message)
  return message.answers.length === 0 && soa !== undefined && soa.zone !== zone && isWithin(zone, soa.zone)
}

/** Reads the NS records of a zone, with their glue, from an answer or referral; undefined for an error, or without NS records. */
function readDelegation(message: DnsReply, zone: string, port: number): Delegation | undefined {
  if (message.rcode !== 'NOERROR') return undefined
  const records = [...message.answers, ...message.authority]
  const hosts = collectNsHosts(records, zone)
  if (hosts.length === 0) return undefined
  const glue = (host: string) => message.additional.filter(({ name }) => name === host)
  const known = hosts.slice(0, MAX_NS_HOSTS).map((host) => [host, readAddresses(glue(host), port)] as const)
  return { zone, hosts: new Map(known) }
}

/**
 * Reads a referral: NS records of a zone closer to the name, in a response without answers and without the AA bit (RFC 1034
 * section 4.3.2).
 */
function readReferral(message: DnsReply, zone: string, name: string, port: number): Delegation | undefined {
  if (message.aa || message.answers.length > 0) return undefined
  const isBelow = (owner: string) => isWithin(name, owner) && owner !== zone && isWithin(owner, zone)
  const owner = message.authority.find((record) => record.type === 'NS' && isBelow(record.name))?.name
  return owner === undefined ? undefined : readDelegation(message, owner, port)
}

/**
 * Returns addresses of a zone's name servers from glue. If glue has fewer than three addresses, looks up up to three hosts without
 * glue as well.
 */
async function findServerAddresses({ hosts }: Delegation, check: CheckRun): Promise<DnsServerAddress[]> {
  const glued = [...hosts.values()].flat()
  if (glued.length >= 3) return alternateFamilies(glued)
  const others = [...hosts].filter(([, known]) => known.length === 0).slice(0, 3)
  const looked = await Promise.all(others.map(([host]) => resolveHost(host, check)))
  return alternateFamilies([...glued, ...looked.flatMap((found) => found ?? [])])
}

/** Orders addresses so that IPv4 and IPv6 alternate: only the first few are queried, and a machine might lack one of the two. */
function alternateFamilies(servers: readonly DnsServerAddress[]): DnsServerAddress[] {
  const [v6, v4] = [servers.filter(hasIpv6Address), servers.filter((server) => !hasIpv6Address(server))]
  return servers.flatMap((_, index) => [...v4.slice(index, index + 1), ...v6.slice(index, index + 1)])
}

/**
 * Looks up the IPv4 and IPv6 addresses of a name server at the resolvers. Empty if it has none; undefined if that is unknown, for
 * example because a DNS filter returns a loopback address instead.
 */
export function resolveHost(host: string, check: CheckRun): Promise<readonly DnsServerAddress[] | undefined> {
  const { resolvers, port, cache } = check
  const lookUp = async (resolver: DnsServer, type: 'A' | 'AAAA') => {
    const message = await queryDns(resolver, { name: host, type, ...RECURSIVE }, check, RESOLVER_MS)
    if (message === undefined) return undefined
    const all = readAddresses(message.answers, port)
    const isDenied = all.length === 0 && isAnswerOrDenial(message) && message.ra
    const usable = all.filter(canBeNameServerAddress)
    return isDenied || usable.length > 0 ? usable : undefined
  }
  const look = async () => {
    if (!canQueryName(host)) return []
    const families = await Promise.all(
      (['A', 'AAAA'] as const).map((type) => {
        const asked = resolvers.slice(0, 3).map((resolver) => lookUp(resolver, type))
        return awaitPreferredOrAny(asked, (addresses) => addresses.length > 0)
      }),
    )
    const addresses = families.flatMap((found) => found ?? [])
    return addresses.length > 0 || !families.includes(undefined) ? addresses : undefined
  }
  return cache.memoize(`host ${host}`, look, (addresses) => addresses !== undefined && addresses.length > 0)
}

function readAddresses(records: readonly ResourceRecord[], port: number): DnsServerAddress[] {
  const addresses = records.flatMap((record) => ('address' in record ? [record.address] : []))
  return [...new Set(addresses)].map((address) => ({ address, port }))
}
