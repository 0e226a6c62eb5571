import type { DnsAddress } from '../context.ts'
import { type AskOptions, ask, type DnsEffects, type Reply } from './exchange.ts'
import type { Message, Soa } from './message.ts'
import { ancestors, isAskable, isRegistry, isWithin, labelCount } from './name.ts'
import { below } from './withdraw.ts'

/** Who is asked, and until when: what a walk through the delegations goes by. */
export interface Route {
  readonly resolvers: readonly DnsAddress[]
  readonly authoritativePort: number
  /** When finding the zone has to be over, on `clock.monotonic()`. */
  readonly deadline: number
  readonly effects: DnsEffects
  /** Addresses of a name server host; each host is looked up once a check. */
  readonly lookUp: (host: string) => Promise<HostAddresses>
}

/** A route that remembers which hosts it has looked up, for as long as it is used. */
export function createRoute(way: Omit<Route, 'lookUp'>): Route {
  const hosts = new Map<string, Promise<HostAddresses>>()
  const lookUp = (host: string): Promise<HostAddresses> => {
    const running = hosts.get(host) ?? lookUpHost(host, way)
    // Whoever waits for it sees a rejection; where nobody does any more, it is no one's.
    running.catch(() => undefined)
    hosts.set(host, running)
    return running
  }
  return { ...way, lookUp }
}

/** A zone and its name servers, as one side tells it: host names in the order given, with the addresses known so far. */
export interface Cut {
  readonly zone: string
  readonly hosts: ReadonlyMap<string, readonly DnsAddress[]>
}

export interface Located {
  readonly kind: 'located'
  /** The zone that holds the name, and the name servers that the walk came to. */
  readonly cut: Cut
  readonly soa: Soa | undefined
  /** The delegation as the parent zone's own servers give it; undefined where no parent was to be seen. */
  readonly parent: { readonly zone: string; readonly hosts: readonly string[] } | undefined
  /** Whether a server answered with authority for the zone. */
  readonly verified: boolean
  /** No zone was found: the server that was named as a resolver but offers no recursion stands in for its servers. */
  readonly standIn?: true
}

export type Location =
  | Located
  /** The registry, or the resolver where no registry can be reached, says that the domain does not exist. */
  | {
      readonly kind: 'no-domain'
      readonly domain: string
      readonly saidBy: string
      readonly soa: Soa | undefined
    }
  /** Neither resolvers nor servers led to a zone. */
  | { readonly kind: 'lost'; readonly resolverReplies: readonly ResolverReply[] }

export interface ResolverReply {
  readonly resolver: DnsAddress
  readonly question: string
  readonly reply: Reply
}

/** Silence of the resolver, or of a zone's servers, for so long starts the next way beside it. */
const NEXT_WAY_AFTER_MS = 600
/** What is deep below a registry may not exist yet: a resolver is asked about it only after a longer wait. */
const LATE_WAY_AFTER_MS = 1500
/** How long the servers of one zone may take before the walk goes on without them. */
const LEVEL_MS = 1500
/** Further servers of a zone are asked when the first ones have been silent for so long. */
const NEXT_SERVERS_AFTER_MS = 400

/**
 * Finds the zone that holds a name and its servers, from the top down.
 *
 * A resolver is only asked for the NS records of ancestors, the topmost first; from there on the authoritative servers
 * are asked directly, without recursion, so that no cache learns that the name does not exist (RFC 2308). Where an
 * ancestor leads nowhere (private DNS without a root, servers that are not reachable from here), the next one down is
 * tried; the name itself comes last. Checking is disabled in these questions: a zone with broken DNSSEC is found as well.
 */
export async function locate(name: string, route: Route): Promise<Location> {
  const { clock } = route.effects
  const withdrawn = below(route.effects.signal)
  const inner: Route = { ...route, effects: { ...route.effects, signal: withdrawn.signal } }

  const ways = [...ancestors(name), name]
  const running = new Set<Promise<Location | undefined>>()
  const replies: ResolverReply[] = []
  let candidate: Located | undefined
  let noDomain: Location | undefined
  let nextAt = clock.monotonic()
  // Once the domain's servers are known, resolvers have nothing more to tell: what is below may not exist yet.
  const onCut = (zone: string) => {
    if (zone !== '.' && !isRegistry(zone)) ways.length = 0
  }
  try {
    while (clock.monotonic() < route.deadline) {
      const next = ways[0]
      if (next !== undefined && (running.size === 0 || clock.monotonic() >= nextAt)) {
        ways.shift()
        const way = tryWay(name, next, inner, { replies, onCut })
        // It may be withdrawn while nobody waits for it any more.
        way.catch(() => undefined)
        running.add(way)
        const isDeep = labelCount(ways[0] ?? name) > 2
        nextAt = clock.monotonic() + (isDeep ? LATE_WAY_AFTER_MS : NEXT_WAY_AFTER_MS)
      }
      if (running.size === 0) break
      const until = ways.length > 0 ? Math.min(nextAt, route.deadline) : route.deadline
      const outcome = await firstOf(running, until, inner)
      if (outcome === 'time' || outcome === undefined) continue
      if (outcome.kind === 'located') {
        // Who serves the zone is known then, even where those servers say nothing.
        if (outcome.standIn === undefined) return outcome
        candidate = outcome
      } else if (outcome.kind === 'no-domain') {
        if (outcome.saidBy !== 'resolver') return outcome
        noDomain = outcome
        // Nothing is below a name that does not exist (RFC 8020).
        if (running.size === 0) break
      }
    }
    return candidate ?? noDomain ?? { kind: 'lost', resolverReplies: replies }
  } finally {
    withdrawn.end()
  }
}

/** The first of the running ways to end, taken out of the set; or `time`. */
async function firstOf(
  running: Set<Promise<Location | undefined>>,
  until: number,
  route: Route,
): Promise<Location | undefined | 'time'> {
  const { clock, signal } = route.effects
  const alarm = below(signal)
  try {
    const ended = await Promise.race([
      ...[...running].map((way) => way.then((outcome) => ({ way, outcome }))),
      clock.sleep(Math.max(0, until - clock.monotonic()), alarm.signal).then(() => 'time' as const),
    ])
    if (ended === 'time') return 'time'
    running.delete(ended.way)
    return ended.outcome
  } finally {
    alarm.end()
  }
}

/** What the ways tell while they are under way. */
interface Told {
  readonly replies: ResolverReply[]
  /** A zone on the way to the name was found. */
  readonly onCut: (zone: string) => void
}

/** One way down: the NS records of `level` from the resolvers, then from server to server to the name. */
async function tryWay(name: string, level: string, route: Route, told: Told): Promise<Location | undefined> {
  const found = await firstUseful(
    route.resolvers.map((resolver) => async () => {
      const reply = await ask(
        resolver,
        { name: level, type: 'NS' },
        { recursionDesired: true, checkingDisabled: true, deadline: route.deadline },
        route.effects,
      )
      told.replies.push({ resolver, question: `${level} NS`, reply })
      return reply.kind === 'answer' ? readResolver(level, resolver, reply.message, route) : undefined
    }),
  )
  if (found === undefined) return undefined
  if (found.kind === 'nxdomain') {
    const domain = registeredDomain(name, found.soa?.zone ?? '.')
    const certain =
      labelCount(level) > 1 &&
      (found.soa === undefined || isRegistry(found.soa.zone) || found.soa.zone === '.')
    return certain || level === name
      ? { kind: 'no-domain', domain, saidBy: 'resolver', soa: found.soa }
      : undefined
  }
  told.onCut(found.cut.zone)
  const end = await walk(name, found.cut, route, told)
  if (end !== undefined || found.cut.zone !== '.') return end
  const stand = { zone: name, hosts: found.cut.hosts }
  return { kind: 'located', cut: stand, soa: undefined, parent: undefined, verified: false, standIn: true }
}

/** What a resolver's answer about the NS records of an ancestor is good for. */
function readResolver(
  level: string,
  resolver: DnsAddress,
  message: Message,
  route: Route,
): { kind: 'cut'; cut: Cut } | { kind: 'nxdomain'; soa: Soa | undefined } | undefined {
  const cut = cutFrom(message, level, route.authoritativePort)
  if (cut !== undefined) return { kind: 'cut', cut }
  // No recursion on offer: an authoritative server was named as the resolver. It is where the walk starts, then.
  if (!message.ra)
    return { kind: 'cut', cut: { zone: '.', hosts: new Map([[resolver.address, [resolver]]]) } }
  if (message.rcode === 'NXDOMAIN') return { kind: 'nxdomain', soa: soaOf(message) }
  return undefined
}

/** From server to server, by referrals, to the servers that answer for the name with authority. */
async function walk(name: string, start: Cut, route: Route, told: Told): Promise<Location | undefined> {
  let cut = start
  let parent: Located['parent']
  for (let step = 0; step < 24; step += 1) {
    const deadline = Math.min(route.deadline, route.effects.clock.monotonic() + LEVEL_MS)
    const answer = await askAnyOf(cut, name, deadline, route)
    if (answer === undefined) {
      const worthAsking = cut.zone !== '.' && !isRegistry(cut.zone)
      return worthAsking ? { kind: 'located', cut, soa: undefined, parent, verified: false } : undefined
    }
    const { message, server } = answer
    const referral = message.aa ? undefined : referralFrom(message, cut.zone, name, route.authoritativePort)
    if (referral !== undefined) {
      parent = { zone: cut.zone, hosts: [...referral.hosts.keys()] }
      cut = referral
      told.onCut(cut.zone)
      continue
    }
    // With an alias at the name, code and SOA are those of the zone where it leads (RFC 6604 section 3).
    const isAlias = message.answers.some((record) => record.type === 'CNAME' || record.type === 'DNAME')
    const soa =
      (isAlias ? undefined : soaOf(message)) ?? (await enclosingSoa(name, cut.zone, server, deadline, route))
    const zone = soa !== undefined && isWithin(name, soa.zone) ? soa.zone : cut.zone
    if (!isAlias && message.rcode === 'NXDOMAIN' && (zone === '.' || isRegistry(zone)) && name !== zone)
      return { kind: 'no-domain', domain: registeredDomain(name, zone), saidBy: zone, soa }
    // A server that holds parent and child answers for the child at once: the delegation between them stays unseen.
    return zone === cut.zone
      ? { kind: 'located', cut, soa, parent, verified: true }
      : {
          kind: 'located',
          cut: await ownServers(zone, server, route),
          soa,
          parent: undefined,
          verified: true,
        }
  }
  return undefined
}

/**
 * Asks the servers of a zone for the SOA of the name, three at a time; the first answer that leads on counts. Hosts
 * without glue are looked up on the way.
 */
async function askAnyOf(
  cut: Cut,
  name: string,
  deadline: number,
  route: Route,
): Promise<{ message: Message; server: DnsAddress } | undefined> {
  const { effects } = route
  const askOne = async (server: DnsAddress) => {
    const reply = await ask(server, { name, type: 'SOA' }, { deadline }, effects)
    if (reply.kind !== 'answer') return undefined
    const { message } = reply
    const leadsOn = message.aa || referralFrom(message, cut.zone, name, route.authoritativePort) !== undefined
    const isAnswer = message.rcode === 'NOERROR' || message.rcode === 'NXDOMAIN'
    return leadsOn && isAnswer ? { message, server } : undefined
  }
  const known = unique([...cut.hosts.values()].flat())
  // IPv4 first: more machines have it. Within a family the order is the parent's, which rotates it.
  const ordered = [...known].sort((a, b) => Number(a.address.includes(':')) - Number(b.address.includes(':')))
  const turn = async (index: number) => {
    const pause = Math.floor(index / 3) * NEXT_SERVERS_AFTER_MS
    if (pause > 0) await effects.clock.sleep(pause, effects.signal)
  }
  const glued = ordered.slice(0, 9).map((server, index) => async () => {
    await turn(index)
    return await askOne(server)
  })
  // With plenty of servers known, the walk need not look up the rest.
  const nameless = known.length >= 3 ? [] : [...cut.hosts].filter(([, addresses]) => addresses.length === 0)
  const looked = nameless.slice(0, 6).map(([host], index) => async () => {
    await turn(index)
    const { addresses } = await route.lookUp(host)
    return await firstUseful(addresses.slice(0, 3).map((server) => () => askOne(server)))
  })
  return await firstUseful([...glued, ...looked])
}

/**
 * The name servers of a zone as the zone itself names them, asked at a server that holds it. Where none of the names
 * leads to an address, that server stands in.
 */
async function ownServers(zone: string, server: DnsAddress, route: Route): Promise<Cut> {
  const deadline = Math.min(route.deadline, route.effects.clock.monotonic() + LEVEL_MS)
  const reply = await ask(server, { name: zone, type: 'NS' }, { deadline }, route.effects)
  const own = reply.kind === 'answer' ? cutFrom(reply.message, zone, route.authoritativePort) : undefined
  if (own === undefined) return { zone, hosts: new Map([[server.address, [server]]]) }
  const hosts = await Promise.all(
    [...own.hosts].map(async ([host, known]) => {
      if (known.length > 0) return [host, known] as const
      const [looked, asked] = await Promise.all([route.lookUp(host), askForHost(host, [server], route)])
      return [host, unique([...looked.addresses, ...asked])] as const
    }),
  )
  const [first] = own.hosts.keys()
  const isReachable = hosts.some(([, addresses]) => addresses.length > 0)
  return { zone, hosts: isReachable || first === undefined ? new Map(hosts) : new Map([[first, [server]]]) }
}

/** Addresses of a host inside a zone, from the zone's own servers: where no resolver knows the zone, they still do. */
export async function askForHost(
  host: string,
  servers: readonly DnsAddress[],
  route: Route,
): Promise<DnsAddress[]> {
  if (!isAskable(host)) return []
  const deadline = Math.min(route.deadline, route.effects.clock.monotonic() + LEVEL_MS)
  const found = await Promise.all(
    servers.slice(0, 3).flatMap((server) =>
      (['A', 'AAAA'] as const).map(async (type) => {
        const reply = await ask(server, { name: host, type }, { deadline }, route.effects)
        return reply.kind === 'answer' && reply.message.aa
          ? addressesIn(reply.message, host, route.authoritativePort)
          : []
      }),
    ),
  )
  return unique(found.flat())
}

/** A CNAME at the name hides the SOA: the zone is then found at the nearest ancestor that has one. */
async function enclosingSoa(
  name: string,
  zone: string,
  server: DnsAddress,
  deadline: number,
  route: Route,
): Promise<Soa | undefined> {
  const above = ancestors(name)
    .filter((level) => isWithin(level, zone))
    .reverse()
  for (const level of above) {
    const reply = await ask(server, { name: level, type: 'SOA' }, { deadline }, route.effects)
    const soa = reply.kind === 'answer' ? soaOf(reply.message) : undefined
    if (soa !== undefined) return soa
  }
  return undefined
}

export interface HostAddresses {
  readonly addresses: readonly DnsAddress[]
  /** Whether somebody said so: no address is then a fact and no time-out. */
  readonly certain: boolean
}

/** Addresses of a name server host, v4 and v6, through the resolvers. */
async function lookUpHost(host: string, route: Omit<Route, 'lookUp'>): Promise<HostAddresses> {
  if (!isAskable(host)) return { addresses: [], certain: true }
  const deadline = Math.min(route.deadline, route.effects.clock.monotonic() + 2500)
  const options: AskOptions = { recursionDesired: true, checkingDisabled: true, deadline }
  const families = await Promise.all(
    (['A', 'AAAA'] as const).map((type) =>
      firstUseful(
        route.resolvers.map((resolver) => async () => {
          const reply = await ask(resolver, { name: host, type }, options, route.effects)
          if (reply.kind !== 'answer') return undefined
          const { rcode, ra } = reply.message
          const addresses =
            rcode === 'NOERROR' ? addressesIn(reply.message, undefined, route.authoritativePort) : []
          const certain = ra && (rcode === 'NOERROR' || rcode === 'NXDOMAIN')
          return addresses.length > 0 || certain ? addresses : undefined
        }),
      ),
    ),
  )
  return {
    addresses: unique(families.flatMap((addresses) => addresses ?? [])),
    certain: families.every((addresses) => addresses !== undefined),
  }
}

/** NS records of exactly this zone, in the answer or, from a server without recursion, as a referral. */
function cutFrom(message: Message, zone: string, port: number): Cut | undefined {
  if (message.rcode !== 'NOERROR') return undefined
  const answer = [...message.answers, ...message.authority].filter((r) => r.type === 'NS' && r.name === zone)
  const hosts = answer.flatMap((record) => (record.type === 'NS' ? [record.target] : []))
  if (hosts.length === 0) return undefined
  return { zone, hosts: new Map(hosts.map((host) => [host, addressesIn(message, host, port)])) }
}

/** A referral: NS records of a zone below the one that was asked, on the way to the name (RFC 1034 section 4.3.2). */
function referralFrom(message: Message, zone: string, name: string, port: number): Cut | undefined {
  const owner = message.authority.find(
    (record) =>
      record.type === 'NS' &&
      isWithin(name, record.name) &&
      labelCount(record.name) > labelCount(zone) &&
      isWithin(record.name, zone),
  )?.name
  return owner === undefined || message.answers.length > 0 ? undefined : cutFrom(message, owner, port)
}

/** The addresses that a message carries for a host, or for any name where no host is given. */
export function addressesIn(message: Message, host: string | undefined, port: number): DnsAddress[] {
  return unique(
    [...message.answers, ...message.additional].flatMap((record) =>
      (record.type === 'A' || record.type === 'AAAA') && (host === undefined || record.name === host)
        ? [{ address: record.address, port }]
        : [],
    ),
  )
}

export function soaOf(message: Message): Soa | undefined {
  for (const record of [...message.answers, ...message.authority])
    if (record.type === 'SOA') return record.soa
  return undefined
}

export function unique(addresses: readonly DnsAddress[]): DnsAddress[] {
  return [...new Map(addresses.map((server) => [`${server.address} ${server.port}`, server])).values()]
}

/** The domain that is, or is not, registered directly below a registry's zone. */
function registeredDomain(name: string, zone: string): string {
  const depth = Math.max(2, labelCount(zone) + 1)
  return name.split('.').slice(-depth).join('.')
}

/** Starts all at once; the first result that is not undefined wins. Undefined when all have ended without one. */
export async function firstUseful<T>(
  tasks: readonly (() => Promise<T | undefined>)[],
): Promise<T | undefined> {
  if (tasks.length === 0) return undefined
  return await new Promise((resolve, reject) => {
    let left = tasks.length
    for (const task of tasks) {
      task().then((result) => {
        left -= 1
        if (result !== undefined || left === 0) resolve(result)
      }, reject)
    }
  })
}
