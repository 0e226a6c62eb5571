import type { DnsAddress } from '../context.ts'
import type { Deadline } from '../timeout.ts'
import { type Delegation, type NoZone, OUTCOMES, type Zone } from './observations.ts'
import type { SharedCache } from './shared-cache.ts'
import { formatDnsAddress, isServerAddress, isV6, type Resolver } from './wire/address.ts'
import { ask, type DnsEffects, query } from './wire/ask.ts'
import { type Message, nsHosts, type ResourceRecord, soaOf } from './wire/message.ts'
import { ancestors, isAskable, isWithin, labelCount } from './wire/name.ts'
import { isRegistry, registeredDomainOf } from './wire/registry.ts'

/** What a check looks for, whom it asks, and until when. */
export interface Search {
  /** In its ASCII form. */
  readonly name: string
  /** The whole value; null if any will do. */
  readonly expected: string | null
  /** The first three are asked for zones and hosts: more wouldn't know more. */
  readonly resolvers: readonly Resolver[]
  /** Of authoritative servers: 53, except for private DNS. */
  readonly port: number
  readonly deadline: Deadline
  readonly effects: DnsEffects
  readonly cache: SharedCache
}

/** For one question to a resolver, which may have to ask others. */
const RESOLVER_MS = 2500
/** Flags of a query to a recursive resolver, with the CD bit: broken DNSSEC must not hide a zone (RFC 4035 section 3.2.2). */
const RECURSIVE = { recursionDesired: true, checkingDisabled: true } as const
/** For the servers of one zone on the way. */
const LEVEL_MS = 1500
/** Working zones have fewer; a hostile one could name thousands. */
export const MAX_HOSTS = 26

/**
 * Finds the zone that holds a name, and its servers, from the top down: resolvers give the NS records of the top-level domain,
 * and from there on authoritative servers are asked without recursion, which can't plant a negative answer in a cache (RFC
 * 2308). If that leads nowhere (private DNS, servers that can't be reached from here), resolvers are asked for the next name
 * down, but not for the name itself, which may not exist yet; and at last for the root's servers, which know whether the
 * top-level domain exists. The registered domain's zone is shared with other checks.
 */
export async function findZone(name: string, search: Search): Promise<Zone | NoZone> {
  const domain = registeredDomainOf(name)
  const above = await search.cache.memoize(
    `zone ${domain}`,
    () => findFrom([...ancestors(domain), domain, '.'], domain, search),
    ({ kind }) => kind === 'found',
  )
  if (above.kind === 'no_domain') return above
  if (above.kind === 'found') return (await walk(name, above, search)) ?? above
  const below = ancestors(name).filter((level) => labelCount(level) > labelCount(domain))
  const found = await findFrom(below, name, search)
  return found.kind === 'lost' ? above : found
}

/** Asks the resolvers for the NS records of each level in turn, and walks from there until one leads to the target's zone. */
async function findFrom(levels: readonly string[], target: string, search: Search): Promise<Zone | NoZone> {
  const replies = new Set<string>()
  const registry: Zone['registry'] = []
  let path: readonly Delegation[] = []
  for (const level of levels) {
    const delegation = await askResolvers(level, search, replies)
    if (delegation === undefined) continue
    const start = stepDown({ path: [], registry }, delegation, null)
    const found = await walk(target, start, search)
    if (found !== undefined) return found
    path = start.path
  }
  return { kind: 'lost', replies: [...replies], path }
}

/**
 * Where the resolvers' answers about the NS records of a level lead. That they deny it says nothing: some block everything, or
 * have a root of their own. Broken DNSSEC must not hide a zone: checking is disabled.
 */
async function askResolvers(
  level: string,
  { resolvers, port, deadline, effects }: Search,
  replies: Set<string>,
): Promise<Delegation | undefined> {
  const askOne = async (resolver: Resolver): Promise<Delegation | undefined> => {
    const question = { name: level, type: 'NS', ...RECURSIVE } as const
    const reply = await ask(resolver, question, deadline.limitedTo(RESOLVER_MS), effects)
    const answer = reply.kind === 'answer' ? reply.message.rcode : (reply.reason ?? OUTCOMES[reply.kind])
    replies.add(`${formatDnsAddress(resolver)}: ${answer}`)
    if (reply.kind !== 'answer') return undefined
    const { message } = reply
    const delegation = delegationFrom(message, level, port)
    if (delegation !== undefined || resolver instanceof URL) return delegation
    // No recursion: an authoritative server was given as the resolver, and the walk starts there.
    const isAuthoritative = !message.ra && message.rcode !== 'NXDOMAIN'
    return isAuthoritative ? singleServerZone('.', resolver) : undefined
  }
  // Any other resolver knows more than one without recursion.
  return await firstGood(resolvers.slice(0, 3).map(askOne), ({ zone }) => zone !== '.')
}

/**
 * Follows referrals down to the zone of the target. If no server of a zone leads further, that zone is the result, unless it is a
 * registry's: then undefined.
 */
async function walk(target: string, start: Zone, search: Search): Promise<Zone | NoZone | undefined> {
  let at = start
  while (at.zone !== target) {
    const answer = await askServers(at, target, search)
    if (answer === undefined) return isRegistry(at.zone) ? undefined : at
    if (answer.referral === undefined) return await findFinalZone(at, answer, target, search)
    at = stepDown(at, answer.referral, answer.server)
  }
  return at
}

/** One zone further down. */
function stepDown(
  { path, registry }: Pick<Zone, 'path' | 'registry'>,
  delegation: Delegation,
  parent: Zone['parent'],
): Zone {
  return { kind: 'found', ...delegation, parent, registry, path: [...path, delegation] }
}

/** What a server of a zone says about the way to the target; without a referral, it says that the way ends there. */
interface WalkAnswer {
  readonly server: DnsAddress
  readonly message: Message
  readonly referral: Delegation | undefined
}

/**
 * Asks four of a zone's servers for the SOA of the target, and takes the first answer that leads further. An answer of a
 * registry's server without a referral counts only if no other server refers to the domain: a denial may be older than the
 * domain, and an interceptor of one address family may have a zone of that name.
 */
async function askServers(at: Zone, target: string, search: Search): Promise<WalkAnswer | undefined> {
  const { zone, registry } = at
  const servers = await serversOf(at, search)
  const askOne = async (server: DnsAddress): Promise<WalkAnswer | undefined> => {
    if (search.cache.isSilent(server)) return undefined
    const message = await query(server, { name: target, type: 'SOA' }, search, LEVEL_MS)
    if (message === undefined) return undefined
    const referral = referralFrom(message, zone, target, search.port)
    const isEnd = message.aa && hasData(message) && isAnswer(message) && !isFromAbove(message, zone)
    // A registry refers or denies: whoever answers has the domain's own zone.
    const verdict = message.answers.length > 0 ? null : isSuspect(message)
    if (isRegistry(zone) && zone !== '.') registry.push({ address: server.address, isSuspect: verdict })
    return referral !== undefined || isEnd ? { server, message, referral } : undefined
  }
  return await firstGood(
    servers.slice(0, 4).map(askOne),
    ({ referral }) => referral !== undefined || !isRegistry(zone),
  )
}

/** The zone that an answer without a referral comes from: that of the server, one below it, or none because a registry denies it. */
async function findFinalZone(at: Zone, reply: WalkAnswer, target: string, search: Search) {
  const { server, message } = reply
  const soa = await enclosingSoa(reply, target, at.zone, search)
  const zone = soa?.zone ?? at.zone
  if (message.rcode === 'NXDOMAIN' && isRegistry(zone)) {
    const facts = { domain: registeredDomainOf(target), saidBy: zone, negativeTtl: soa?.negativeTtl ?? null }
    return { kind: 'no_domain' as const, ...facts, path: at.path }
  }
  if (zone === at.zone) return at
  // A server of both parent and child answers for the child at once, so the delegation between them isn't seen.
  const answer = await query(server, { name: zone, type: 'NS' }, search, LEVEL_MS)
  const own = answer && delegationFrom(answer, zone, search.port)
  const isUsable = own !== undefined && (await serversOf(own, search)).length > 0
  return stepDown(at, isUsable ? own : singleServerZone(zone, server), null)
}

/** A server instead of those that the zone would name. */
const singleServerZone = (zone: string, server: DnsAddress): Delegation => ({
  zone,
  hosts: new Map([[server.address, [server]]]),
})

/** The SOA of the zone that an answer comes from. An alias hides it (RFC 6604 section 3): then the names above are asked for. */
async function enclosingSoa({ server, message }: WalkAnswer, target: string, zone: string, search: Search) {
  const levels = [target, ...ancestors(target).toReversed()]
  for (const name of levels.filter((level) => isWithin(level, zone))) {
    const answer = name === target ? message : await query(server, { name, type: 'SOA' }, search, LEVEL_MS)
    const isAlias = answer?.answers.some(({ type }) => type === 'CNAME')
    const soa = answer === undefined || isAlias ? undefined : soaOf(answer)
    if (soa !== undefined && isWithin(target, soa.zone) && isWithin(soa.zone, zone)) return soa
  }
  return undefined
}

const hasData = (message: Message): boolean => soaOf(message) !== undefined || message.answers.length > 0
const isAnswer = ({ rcode }: Message): boolean => rcode === 'NOERROR' || rcode === 'NXDOMAIN'

/** Whether a server answers as no server of a zone does: it refuses or fails, or offers recursion and has no authority. */
export function isSuspect(message: Message): boolean {
  return !isAnswer(message) || (message.ra && !(message.aa && hasData(message)))
}

/**
 * Whether an answer is that of a server of the zone. A few leave out the AA bit, and resolvers take their word all the same; but
 * what offers recursion is a resolver in the server's place, and a referral says that the server doesn't have the zone.
 */
export function isFromZone(message: Message, zone: string): boolean {
  return (message.aa || (!message.ra && hasData(message))) && !isFromAbove(message, zone)
}

/** Whether a server answers from a zone above this one, which it then doesn't serve. */
function isFromAbove(message: Message, zone: string): boolean {
  const soa = soaOf(message)
  return message.answers.length === 0 && soa !== undefined && soa.zone !== zone && isWithin(zone, soa.zone)
}

/** The NS records of exactly this zone, from the answer or from a referral. */
function delegationFrom(message: Message, zone: string, port: number): Delegation | undefined {
  if (message.rcode !== 'NOERROR') return undefined
  const records = [...message.answers, ...message.authority]
  const hosts = nsHosts(records, zone)
  if (hosts.length === 0) return undefined
  const glue = (host: string) => message.additional.filter(({ name }) => name === host)
  const known = hosts.slice(0, MAX_HOSTS).map((host) => [host, addressesIn(glue(host), port)] as const)
  return { zone, hosts: new Map(known) }
}

/** A referral: NS records of a zone further down towards the name, without authority (RFC 1034 section 4.3.2). */
function referralFrom(message: Message, zone: string, name: string, port: number): Delegation | undefined {
  if (message.aa || message.answers.length > 0) return undefined
  const isBelow = (owner: string) => isWithin(name, owner) && owner !== zone && isWithin(owner, zone)
  const owner = message.authority.find((record) => record.type === 'NS' && isBelow(record.name))?.name
  return owner === undefined ? undefined : delegationFrom(message, owner, port)
}

/** The addresses of a zone's servers. The parent's glue counts; only hosts without it are looked up, three at most. */
async function serversOf({ hosts }: Delegation, search: Search): Promise<DnsAddress[]> {
  const glued = [...hosts.values()].flat()
  if (glued.length >= 3) return byFamily(glued)
  const others = [...hosts].filter(([, known]) => known.length === 0).slice(0, 3)
  const looked = await Promise.all(others.map(([host]) => resolveHost(host, search)))
  return byFamily([...glued, ...looked.flatMap((found) => found ?? [])])
}

/** IPv4 and IPv6 in turn: this machine may have only one of them. */
function byFamily(servers: readonly DnsAddress[]): DnsAddress[] {
  const [v6, v4] = [servers.filter(isV6), servers.filter((server) => !isV6(server))]
  return servers.flatMap((_, index) => [...v4.slice(index, index + 1), ...v6.slice(index, index + 1)])
}

/**
 * The IPv4 and IPv6 addresses of a name server, from the resolvers; undefined if nobody knows: without an answer, or with
 * addresses that no other machine can have.
 */
export function resolveHost(host: string, search: Search): Promise<readonly DnsAddress[] | undefined> {
  const { resolvers, port, cache } = search
  const lookUp = async (resolver: Resolver, type: 'A' | 'AAAA') => {
    const message = await query(resolver, { name: host, type, ...RECURSIVE }, search, RESOLVER_MS)
    if (message === undefined) return undefined
    const all = addressesIn(message.answers, port)
    const isDenied = all.length === 0 && ['NOERROR', 'NXDOMAIN'].includes(message.rcode) && message.ra
    const usable = all.filter(isServerAddress)
    return isDenied || usable.length > 0 ? usable : undefined
  }
  const look = async () => {
    if (!isAskable(host)) return []
    const families = await Promise.all(
      (['A', 'AAAA'] as const).map((type) => {
        const asked = resolvers.slice(0, 3).map((resolver) => lookUp(resolver, type))
        return firstGood(asked, (addresses) => addresses.length > 0)
      }),
    )
    const addresses = families.flatMap((found) => found ?? [])
    return addresses.length > 0 || !families.includes(undefined) ? addresses : undefined
  }
  return cache.memoize(`host ${host}`, look, (addresses) => addresses !== undefined && addresses.length > 0)
}

/** The addresses in records, each once. */
function addressesIn(records: readonly ResourceRecord[], port: number): DnsAddress[] {
  const addresses = records.flatMap((record) => ('address' in record ? [record.address] : []))
  return [...new Set(addresses)].map((address) => ({ address, port }))
}

/** The first good result or, if there is none, any other once all have ended. */
export async function firstGood<T>(
  tasks: readonly Promise<T | undefined>[],
  isGood: (result: T) => boolean,
): Promise<T | undefined> {
  const good = tasks.map((task) =>
    task.then((result) => (result !== undefined && isGood(result) ? result : Promise.reject(result))),
  )
  const others = Promise.all(tasks)
  others.catch(() => undefined)
  return await Promise.any(good).catch(async () => (await others).find((result) => result !== undefined))
}
