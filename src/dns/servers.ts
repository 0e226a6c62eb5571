import type { DnsServerAddress } from '../context.ts'
import { type CheckRun, findZone, isFromZone, isImplausible, MAX_NS_HOSTS, resolveHost } from './locate.ts'
import type { CnameChain, FoundZone, ServerObservation, TxtObservation, TxtOutcome } from './observations.ts'
import { DNS_PORT } from './wire/address.ts'
import { awaitPreferredOrAny, type QueryResult, queryDns, trySendQuery } from './wire/ask.ts'
import { collectNsHosts, type DnsReply, findSoa } from './wire/message.ts'
import { canQueryName, isWithin } from './wire/name.ts'
import { findPublicSuffix } from './wire/registry.ts'
import { hasTxtValue, MAX_CNAMES, readTxtAnswer, type TxtAnswer, type TxtRdata } from './wire/txt-answer.ts'

/** Maximum milliseconds for a query to one name server. */
const SERVER_MS = 4000
/**
 * Maximum number of addresses that a check queries of the zone's name servers. Each that responds costs three queries or more
 * (TXT, SOA, NS), and more servers hardly tell more.
 */
const MAX_ADDRESSES = 24

/**
 * Queries the name servers of the delegation and of the NS sets in their responses, at up to `MAX_ADDRESSES` addresses. CNAMEs
 * are followed at authoritative servers, because a resolver could cache that a CNAME's target doesn't exist yet.
 */
export async function observeNameServers(location: FoundZone, check: CheckRun) {
  const { expected } = check
  const { zone } = location
  const hosts = new Set<string>()
  const asked = new Map<string, Promise<ServerReply>>()

  const askAddress = async (server: DnsServerAddress): Promise<ServerReply> => {
    const known = asked.get(server.address)
    if (known === undefined && asked.size >= MAX_ADDRESSES) return NOT_ASKED
    const answer = known ?? askServer(server, location, check)
    asked.set(server.address, answer)
    return await answer
  }
  const askHost = async (host: string): Promise<ServerReply[]> => {
    if (hosts.has(host) || hosts.size >= MAX_NS_HOSTS) return []
    hosts.add(host)
    const addresses = await findHostAddresses(host, location, check)
    if (addresses === undefined || addresses.length === 0)
      return [{ ...NOT_ASKED, host, outcome: addresses === undefined ? 'timeout' : 'unreachable' }]
    const seen = await Promise.all(
      addresses.map(async (server) => {
        const one = await askAddress(server)
        const others = await Promise.all(one.nsSet.map(askHost))
        return [{ ...one, host, address: server.address }, ...others.flat()]
      }),
    )
    return seen.flat()
  }

  const found = await Promise.all([...location.hosts.keys()].map(askHost))
  // The end of each CNAME chain, by the targets of the chain, so that a chain that several servers return is followed once.
  const ends = new Map<string, Promise<CnameEnd>>()
  let alias = null as CnameChain | null
  const servers = await Promise.all(
    found.flat().map(async ({ txt, ...server }) => {
      if (txt?.aliases.length === 0 && txt.alias)
        alias ??= { targets: [txt.alias], isKnown: true, hasTxtBeside: true }
      if (txt === undefined || txt.aliases.length === 0) return server
      const key = txt.aliases.join(' ')
      const end = ends.get(key) ?? findCnameEnd(zone, txt, server, check)
      ends.set(key, end)
      const { targets, isKnown, values, ttl } = await end
      alias ??= { targets, isKnown }
      if (hasTxtValue(values, expected)) return { ...server, outcome: 'match' as const, values, ttl }
      const outcome: TxtOutcome = isKnown || expected === null ? 'alias' : 'timeout'
      return { ...server, outcome, values }
    }),
  )
  return { servers: servers.toSorted(compareByHost), alias }
}

/**
 * Returns the addresses of a name server, from glue or from resolvers; empty if it certainly has none, undefined if unknown.
 */
async function findHostAddresses(host: string, { zone, hosts, parent }: FoundZone, check: CheckRun) {
  const glue = hosts.get(host) ?? []
  const addresses = glue.length > 0 ? glue : await resolveHost(host, check)
  // Without any glue in the delegation, nobody can look up name servers inside the zone. So if the lookup of such a server is
  // inconclusive, treat the server as having no address.
  const isUnfindable = parent !== null && [...hosts.values()].every((known) => known.length === 0)
  return addresses ?? (isUnfindable && isWithin(host, zone) ? [] : undefined)
}

/** Observation of one server, and `txt`: the TXT set and CNAME chain of its response; undefined without a usable response. */
interface ServerReply extends ServerObservation {
  readonly txt: TxtAnswer | undefined
}

/** Observation for a query that wasn't sent; after a query without a response, the caller replaces `outcome` and `ms`. */
const NO_ANSWER: TxtObservation = {
  ...{ outcome: 'not_checked', values: [], ttl: null, negativeTtl: null, alias: null },
  ...{ authoritative: false, ms: null },
}

/** Observation of a server that wasn't queried; the caller adds host and address. */
const NOT_ASKED: ServerReply = {
  ...NO_ANSWER,
  ...{ host: '', address: null, isImplausible: null, isResolver: false },
  ...{ soa: null, nsSet: [], txt: undefined },
}

/**
 * Queries one server for the TXT set of the name and, if it responds, for the SOA record and NS set of the zone. A server might be
 * an interceptor, with another zone of the same name, if it lacks the expected value and its NS set has no host of the
 * delegation. So such a server is also queried for the registry's zone, such as `com`, for which the zone's own servers don't
 * answer.
 */
async function askServer(server: DnsServerAddress, { zone, hosts }: FoundZone, check: CheckRun) {
  const { name, expected, cache, deadline, effects } = check
  if (cache.isSilent(server)) return NOT_ASKED
  const reply = await trySendQuery(server, { name, type: 'TXT' }, deadline.limitedTo(SERVER_MS), effects)
  if (reply.kind !== 'not_checked') cache.recordReply(server, reply.kind !== 'timeout')
  const answer = toTxtObservation(reply, name, expected)
  if (reply.kind !== 'answer') return { ...NOT_ASKED, ...answer }
  const { message } = reply
  const [soaAnswer, nsAnswer] = await Promise.all(
    (['SOA', 'NS'] as const).map((type) => queryDns(server, { name: zone, type }, check, SERVER_MS)),
  )
  const found = soaAnswer?.aa === true ? findSoa(soaAnswer) : undefined
  const soa = found?.zone === zone ? found : null
  const isLame = !['REFUSED', 'SERVFAIL'].includes(message.rcode) && !isFromZone(message, zone)
  const nsSet = nsAnswer?.aa === true ? collectNsHosts(nsAnswer.answers, zone) : []
  const failure: TxtOutcome = soa === null ? 'lame' : 'refused'
  const outcome = isLame || answer.outcome === 'lame' ? failure : answer.outcome
  const isAbsent = ['mismatch', 'absent', 'nxdomain'].includes(outcome)
  const isDoubtful = isAbsent && !nsSet.some((host) => hosts.has(host))
  const isInterceptor = isDoubtful && (await answersForRegistry(server, zone, check))
  return {
    ...NOT_ASKED,
    ...answer,
    outcome,
    isImplausible: isInterceptor || isImplausible(message),
    isResolver: isInterceptor || (message.ra && !message.aa),
    ...{ soa, nsSet: isInterceptor ? [] : nsSet },
    txt: isLame ? undefined : readTxtAnswer(message, name),
  }
}

/**
 * Whether a server answers a recursive query for the SOA record of the registry above `zone` as a resolver does (with RA, or
 * without AA): authoritative servers refuse or refer (RFC 1034 section 4.3.2). Returns false, and sends no query, if the server's
 * port isn't 53, because networks hardly intercept other ports.
 */
async function answersForRegistry(server: DnsServerAddress, zone: string, check: CheckRun): Promise<boolean> {
  if (server.port !== DNS_PORT) return false
  const name = findPublicSuffix(zone) ?? zone.slice(zone.lastIndexOf('.') + 1)
  const question = { name, type: 'SOA', recursionDesired: true } as const
  const message = await queryDns(server, question, check)
  return message !== undefined && message.answers.length > 0 && (message.ra || !message.aa)
}

/** Converts the result of a TXT query. Silence, errors and truncated responses never give the outcome `absent`. */
export function toTxtObservation(reply: QueryResult, name: string, expected: string | null): TxtObservation {
  if (reply.kind !== 'answer')
    return { ...NO_ANSWER, outcome: reply.kind, ms: reply.kind === 'not_checked' ? null : reply.ms }
  const { message, ms } = reply
  const { values, ttl, aliases } = readTxtAnswer(message, name)
  const outcome = outcomeOf(message.rcode, values, expected)
  return {
    // A truncated response (TC bit) after TCP failed is incomplete and can't prove that the value is missing, so report a
    // timeout.
    outcome: message.tc && (outcome === 'mismatch' || outcome === 'absent') ? 'timeout' : outcome,
    ...{ values, ttl, alias: aliases[0] ?? null, authoritative: message.aa, ms },
    negativeTtl: values.length > 0 ? null : (findSoa(message)?.negativeTtl ?? null),
  }
}

function outcomeOf(rcode: string, values: readonly TxtRdata[], expected: string | null): TxtOutcome {
  if (rcode === 'NXDOMAIN') return 'nxdomain'
  if (rcode === 'REFUSED') return 'refused'
  if (rcode !== 'NOERROR') return rcode === 'SERVFAIL' ? 'servfail' : 'lame'
  if (values.length === 0) return 'absent'
  return hasTxtValue(values, expected) ? 'match' : 'mismatch'
}

/** A CNAME chain, with the TXT set at its end. */
type CnameEnd = CnameChain & Pick<TxtAnswer, 'values' | 'ttl'>

/**
 * Finds the end of a CNAME chain: in the server's own response if all targets are in the server's zone, and the response has TXT
 * records or is negative; otherwise at the name servers of the targets.
 */
async function findCnameEnd(zone: string, txt: TxtAnswer, answer: TxtObservation, check: CheckRun) {
  const { aliases, values, ttl } = txt
  const { outcome, negativeTtl } = answer
  const isInZone = aliases.every((target) => isWithin(target, zone))
  // The rcode belongs to the last name of the CNAME chain (RFC 6604 section 3), so after NXDOMAIN that name is the end of the
  // chain.
  if (isInZone && (values.length > 0 || outcome === 'nxdomain' || negativeTtl !== null))
    return { targets: aliases, isKnown: true, values, ttl }
  return await followCnames([check.name, ...aliases], check)
}

/**
 * Follows a CNAME chain from its last known target to its end, at the authoritative servers of each target.
 *
 * @param visited the checked name and the targets so far
 */
async function followCnames(visited: readonly string[], check: CheckRun): Promise<CnameEnd> {
  const targets = visited.slice(1)
  const target = targets.at(-1) ?? ''
  const nothing = (isKnown: boolean): CnameEnd => ({ targets, isKnown, values: [], ttl: null })
  // Don't follow a CNAME chain that is too long, or a target that is no host name: a single label is probably a TXT value,
  // entered as a CNAME target.
  if (targets.length > MAX_CNAMES || !canQueryName(target) || !target.includes('.')) return nothing(true)
  const location = await findZone(target, check)
  if (location.kind !== 'found') return nothing(location.kind === 'no_domain')
  const hosts = [...location.hosts.keys()].slice(0, 4)
  const known = await Promise.all(hosts.map((host) => findHostAddresses(host, location, check)))
  const servers = known.flatMap((addresses) => addresses ?? []).slice(0, 4)
  const isGood = (one: DnsReply) =>
    ['NOERROR', 'NXDOMAIN', 'YXDOMAIN'].includes(one.rcode) && isFromZone(one, location.zone)
  const answers = servers.map((server) => queryDns(server, { name: target, type: 'TXT' }, check, SERVER_MS))
  const message = await awaitPreferredOrAny(answers, isGood)
  // Without a response, the CNAME chain is known to lead to no value only if all name servers in `hosts` certainly have no
  // address.
  if (message === undefined) return nothing(known.every((addresses) => addresses?.length === 0))
  // If the response of an authoritative server (no RA) is unusable, resolvers find no value either: the CNAME chain is known to
  // lead to no value.
  if (!isGood(message)) return nothing(!message.ra)
  const { aliases, values, ttl } = readTxtAnswer(message, target)
  const isOver = values.length > 0 || aliases.length === 0
  if (isOver || aliases.some((one) => visited.includes(one)))
    return { targets: [...targets, ...aliases], isKnown: true, values, ttl }
  return await followCnames([...visited, ...aliases], check)
}

/** Compares servers for sorting: by host name, then IPv4 before IPv6, then by address. */
function compareByHost(one: ServerObservation, other: ServerObservation): number {
  const key = ({ host, address }: ServerObservation) => `${host} ${address?.includes(':') ? 1 : 0} ${address}`
  return key(one) < key(other) ? -1 : 1
}
