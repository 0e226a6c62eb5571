import type { DnsAddress } from '../../context.ts'
import { ask } from '../wire/exchange.ts'
import { type Message, type Soa, soaOf } from '../wire/message.ts'
import { ancestors, isWithin } from '../wire/name.ts'
import { type Delegation, delegationFrom, referralFrom } from './delegation.ts'
import { askForHost, LEVEL_MS, unique } from './host-addresses.ts'
import { bestOf, firstUseful } from './race.ts'
import { isRegistry, registeredDomain } from './registry.ts'
import type { ResolutionContext } from './resolution-context.ts'

export interface Located {
  readonly kind: 'located'
  /** The zone that holds the name, and the name servers that the walk came to. */
  readonly delegation: Delegation
  readonly soa: Soa | undefined
  /** The delegation as the parent zone's own servers give it; undefined where no parent was to be seen. */
  readonly parent: ParentSide | undefined
  /** Whether a server answered with authority for the zone. */
  readonly verified: boolean
  /** No zone was found: the server that was named as a resolver but offers no recursion stands in for its servers. */
  readonly standIn?: true
  /** Servers of zones above answered as recursive resolvers do, and none of them as a server of its zone. */
  readonly recursionAbove?: boolean
}

/** The delegation as the parent zone has it. */
export interface ParentSide {
  readonly zone: string
  readonly hosts: readonly string[]
  /** The server of the parent zone that gave the delegation. */
  readonly server: DnsAddress
}

/** What the walk tells while it is under way. */
export interface WalkProgress {
  /** A zone on the way to the name was found. */
  readonly onDelegation: (delegation: Delegation, parent: ParentSide | undefined) => void
  /** Whoever answered for a zone's servers offers recursion and has no authority. */
  readonly onRecursion: (zone: string) => void
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

/** How long the servers of the domain itself may take. */
const OWN_LEVEL_MS = 2500

/** Further servers of a zone are asked when the first ones have been silent for so long. */
const NEXT_SERVERS_AFTER_MS = 400

/**
 * From server to server, by referrals, to the servers that answer for the name with authority. `useless` where servers
 * answered and none led on; undefined where none answered in time.
 */
export async function walkDelegations(
  name: string,
  start: Delegation,
  context: ResolutionContext,
  progress: WalkProgress,
): Promise<Located | NoDomain | 'useless' | undefined> {
  let delegation = start
  let parent: Located['parent']
  for (let step = 0; step < 24; step += 1) {
    const answer = await askAnyOf(delegation, name, context, progress)
    if (answer === undefined || answer === 'useless') {
      const worthAsking = delegation.zone !== '.' && !isRegistry(delegation.zone)
      return worthAsking ? { kind: 'located', delegation, soa: undefined, parent, verified: false } : answer
    }
    const { message, server } = answer
    const referral = message.aa
      ? undefined
      : referralFrom(message, delegation.zone, name, context.authoritativePort)
    if (referral !== undefined) {
      parent = { zone: delegation.zone, hosts: [...referral.hosts.keys()], server }
      delegation = referral
      progress.onDelegation(delegation, parent)
      continue
    }
    // With an alias at the name, code and SOA are those of the zone where it leads (RFC 6604 section 3).
    const isAlias = message.answers.some((record) => record.type === 'CNAME' || record.type === 'DNAME')
    const soa =
      (isAlias ? undefined : soaOf(message)) ?? (await enclosingSoa(name, delegation.zone, server, context))
    // Who answered counts, not the name in the SOA record: a delegated server may answer from a zone above its own.
    if (isFromAbove(soa, delegation.zone))
      return { kind: 'located', delegation, soa: undefined, parent, verified: false }
    const zone = soa !== undefined && isWithin(name, soa.zone) ? soa.zone : delegation.zone
    if (!isAlias && message.rcode === 'NXDOMAIN' && (zone === '.' || isRegistry(zone)) && name !== zone)
      return { kind: 'no-domain', domain: registeredDomain(name, zone), saidBy: zone, soa }
    // A server that holds parent and child answers for the child at once: the delegation between them stays unseen.
    return zone === delegation.zone
      ? { kind: 'located', delegation, soa, parent, verified: true }
      : {
          kind: 'located',
          delegation: await ownServers(zone, server, context),
          soa,
          parent: undefined,
          verified: true,
        }
  }
  return undefined
}

/** Whether an SOA record belongs to a zone above this one: who answers with it does not serve this one. */
export function isFromAbove(soa: Soa | undefined, zone: string): boolean {
  return soa !== undefined && soa.zone !== zone && isWithin(zone, soa.zone)
}

interface StepAnswer {
  readonly message: Message
  readonly server: DnsAddress
}

/**
 * Asks the servers of a zone for the SOA of the name, three at a time; the first answer that leads on counts. Where a
 * registry's servers disagree about a domain, it is new to some of them: a referral goes before NXDOMAIN. Hosts without
 * glue are looked up on the way.
 */
async function askAnyOf(
  delegation: Delegation,
  name: string,
  context: ResolutionContext,
  progress: WalkProgress,
): Promise<StepAnswer | 'useless' | undefined> {
  const { effects } = context
  const seen: Message[] = []
  // The domain's own servers are the last ones that can tell, so they get more time.
  const patienceMs = isRegistry(delegation.zone) || delegation.zone === '.' ? LEVEL_MS : OWN_LEVEL_MS
  const askOne = async (server: DnsAddress): Promise<StepAnswer | undefined> => {
    const deadline = Math.min(context.deadline, effects.clock.monotonic() + patienceMs)
    const options = { deadline, retryAfterMs: RETRY_AFTER_MS }
    const reply = await ask(server, { name, type: 'SOA' }, options, effects)
    if (reply.kind !== 'answer') return undefined
    const { message } = reply
    seen.push(message)
    const leadsOn =
      message.aa || referralFrom(message, delegation.zone, name, context.authoritativePort) !== undefined
    const isAnswer = message.rcode === 'NOERROR' || message.rcode === 'NXDOMAIN'
    return leadsOn && isAnswer ? { message, server } : undefined
  }
  const known = unique([...delegation.hosts.values()].flat())
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
  const nameless =
    known.length >= 3 ? [] : [...delegation.hosts].filter(([, addresses]) => addresses.length === 0)
  const looked = nameless.slice(0, 6).map(([host], index) => async () => {
    await turn(index)
    const { addresses } = await context.resolveHost(host)
    return await firstUseful(addresses.slice(0, 3).map((server) => () => askOne(server)))
  })
  const isDenial = ({ message }: StepAnswer) =>
    message.rcode === 'NXDOMAIN' && (delegation.zone === '.' || isRegistry(delegation.zone))
  const isElsewhere = ({ message }: StepAnswer) =>
    message.answers.length === 0 && isFromAbove(soaOf(message), delegation.zone)
  const worth = (answer: StepAnswer) => (isDenial(answer) || isElsewhere(answer) ? 1 : 0)
  const best = await bestOf([...glued, ...looked], worth, effects)
  if (best !== undefined || seen.length === 0) return best
  if (seen.every((message) => message.ra && !message.aa)) progress.onRecursion(delegation.zone)
  return 'useless'
}

/**
 * The name servers of a zone as the zone itself names them, asked at a server that holds it. Where none of the names
 * leads to an address, that server stands in.
 */
async function ownServers(zone: string, server: DnsAddress, context: ResolutionContext): Promise<Delegation> {
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + LEVEL_MS)
  const reply = await ask(server, { name: zone, type: 'NS' }, { deadline }, context.effects)
  const own =
    reply.kind === 'answer' ? delegationFrom(reply.message, zone, context.authoritativePort) : undefined
  if (own === undefined) return { zone, hosts: new Map([[server.address, [server]]]) }
  const hosts = await Promise.all(
    [...own.hosts].map(async ([host, known]) => {
      if (known.length > 0) return [host, known] as const
      const [looked, asked] = await Promise.all([
        context.resolveHost(host),
        askForHost(host, [server], context),
      ])
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
  context: ResolutionContext,
): Promise<Soa | undefined> {
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + LEVEL_MS)
  const above = ancestors(name)
    .filter((level) => isWithin(level, zone))
    .reverse()
  for (const level of above) {
    const reply = await ask(server, { name: level, type: 'SOA' }, { deadline }, context.effects)
    const soa = reply.kind === 'answer' ? soaOf(reply.message) : undefined
    if (soa !== undefined) return soa
  }
  return undefined
}
