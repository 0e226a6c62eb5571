import type { DnsAddress } from '../context.ts'
import { ask } from './exchange.ts'
import type { Message, Soa } from './message.ts'
import { ancestors, isRegistry, isWithin, labelCount, registeredDomain } from './name.ts'
import { addressesIn, askForHost, firstUseful, LEVEL_MS, type Route, unique } from './route.ts'

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

/** The registry, or the resolver where no registry can be reached, says that the domain does not exist. */
export interface NoDomain {
  readonly kind: 'no-domain'
  readonly domain: string
  /** The registry's zone, or `resolver`. */
  readonly saidBy: string
  readonly soa: Soa | undefined
}

/** A lost datagram must not end the walk: a zone further down would be missed, and its servers' referrals look lame. */
const RETRY_AFTER_MS = LEVEL_MS / 2

/** Further servers of a zone are asked when the first ones have been silent for so long. */
const NEXT_SERVERS_AFTER_MS = 400

/**
 * From server to server, by referrals, to the servers that answer for the name with authority. `useless` where servers
 * answered and none led on; undefined where none answered in time.
 */
export async function walk(
  name: string,
  start: Cut,
  route: Route,
  onCut: (zone: string) => void,
): Promise<Located | NoDomain | 'useless' | undefined> {
  let cut = start
  let parent: Located['parent']
  for (let step = 0; step < 24; step += 1) {
    const deadline = Math.min(route.deadline, route.effects.clock.monotonic() + LEVEL_MS)
    const answer = await askAnyOf(cut, name, deadline, route)
    if (answer === undefined || answer === 'useless') {
      const worthAsking = cut.zone !== '.' && !isRegistry(cut.zone)
      return worthAsking ? { kind: 'located', cut, soa: undefined, parent, verified: false } : answer
    }
    const { message, server } = answer
    const referral = message.aa ? undefined : referralFrom(message, cut.zone, name, route.authoritativePort)
    if (referral !== undefined) {
      parent = { zone: cut.zone, hosts: [...referral.hosts.keys()] }
      cut = referral
      onCut(cut.zone)
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
): Promise<{ message: Message; server: DnsAddress } | 'useless' | undefined> {
  const { effects } = route
  let isAnswered = false
  const askOne = async (server: DnsAddress) => {
    const options = { deadline, retryAfterMs: RETRY_AFTER_MS }
    const reply = await ask(server, { name, type: 'SOA' }, options, effects)
    if (reply.kind !== 'answer') return undefined
    isAnswered = true
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
  return (await firstUseful([...glued, ...looked])) ?? (isAnswered ? 'useless' : undefined)
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

/** NS records of exactly this zone, in the answer or, from a server without recursion, as a referral. */
export function cutFrom(message: Message, zone: string, port: number): Cut | undefined {
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

export function soaOf(message: Message): Soa | undefined {
  for (const record of [...message.answers, ...message.authority])
    if (record.type === 'SOA') return record.soa
  return undefined
}
