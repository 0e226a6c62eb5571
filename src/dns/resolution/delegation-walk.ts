import type { DnsAddress } from '../../context.ts'
import { ask } from '../wire/exchange.ts'
import { type Message, type Soa, soaOf } from '../wire/message.ts'
import { ancestors, isAskable, isWithin, randomLabel } from '../wire/name.ts'
import { type Delegation, delegationFrom, referralFrom } from './delegation.ts'
import { askServersForHost, LEVEL_MS, uniqueAddresses } from './host-addresses.ts'
import { bestOf, firstDefined } from './race.ts'
import { isRegistry, listedRegistry, registeredDomain } from './registry.ts'
import type { ResolutionContext } from './resolution-context.ts'

export interface Located {
  readonly kind: 'located'
  /** The zone that holds the name, and its name servers as found by the walk. */
  readonly delegation: Delegation
  readonly soa: Soa | undefined
  /** The delegation as the parent zone's servers give it; undefined if the walk didn't pass the parent zone. */
  readonly parent: ParentDelegation | undefined
  /** The zone above, if one of its servers answered for this one without a referral. */
  readonly above?: Delegation
  /** The name servers are those that a recursive resolver knows: no server of the registry could be asked. */
  readonly registryUnseen?: true
  /** Whether a server gave an authoritative answer for the zone. */
  readonly verified: boolean
  /** No zone was found: a server given as the resolver, which offers no recursion, stands in for the zone's servers. */
  readonly standIn?: true
  /** The answers of the root's and registries' servers above. */
  readonly registryAnswers?: readonly RegistryAnswer[]
  /** The zones on the way, the topmost first. */
  readonly path?: readonly PathStep[]
}

/** How a server of the root or a registry answered; all of them work, so what is odd comes from this network. */
export interface RegistryAnswer {
  readonly zone: string
  readonly server: DnsAddress
  /** It answers like a recursive resolver, as only something in its place does. */
  readonly isRecursion: boolean
  /** It answers only queries without EDNS. */
  readonly rejectsEdns: boolean
}

/** A zone on the way to the name, and who gave its name servers. */
export interface PathStep {
  readonly zone: string
  readonly hosts: readonly string[]
  /** A resolver, for the first step, or else a server of the zone before; `host` if its name is known. */
  readonly givenBy: DnsAddress & { readonly host?: string | undefined }
}

/** The delegation in the parent zone. */
export interface ParentDelegation {
  readonly zone: string
  readonly hosts: readonly string[]
  /** The server of the parent zone that gave the delegation. */
  readonly server: DnsAddress
}

/** What the walk reports on its way. */
export interface WalkProgress {
  /** A zone on the way to the name was found. */
  readonly onDelegation: (delegation: Delegation, parent: ParentDelegation | undefined) => void
  readonly onRegistryAnswer: (answer: RegistryAnswer) => void
}

/** The domain doesn't exist: the registry says so or, if no registry can be reached, the resolver. */
export interface NoDomain {
  readonly kind: 'no-domain'
  readonly domain: string
  /** The registry's zone, or `resolver`. */
  readonly saidBy: string
  readonly soa: Soa | undefined
  readonly path?: readonly PathStep[]
}

/** A lost datagram must not end the walk: it would miss a zone further down, whose servers would then look lame. */
const RETRY_AFTER_MS = LEVEL_MS / 2

/** The time limit for the servers of the domain itself. */
const OWN_LEVEL_MS = 2500

/** The next servers of a zone are asked if the first ones haven't answered after this. */
const NEXT_SERVERS_AFTER_MS = 400

/**
 * Follows referrals from server to server, down to those that are authoritative for the name. `dead-end` if servers
 * answered but no answer led further; undefined if none answered in time.
 */
export async function walkDelegations(
  name: string,
  start: Delegation,
  context: ResolutionContext,
  progress: WalkProgress,
): Promise<Located | NoDomain | 'dead-end' | undefined> {
  let delegation = start
  let parent: Located['parent']
  for (let step = 0; step < 24; step += 1) {
    const answer = await askAnyOf(delegation, name, context, progress)
    if (answer === undefined || answer === 'dead-end') {
      return isAboveDomains(delegation.zone)
        ? answer
        : { kind: 'located', delegation, soa: undefined, parent, verified: false }
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
    // If the name is an alias, the rcode and SOA are those of the target's zone (RFC 6604 section 3).
    const isAlias = message.answers.some((record) => record.type === 'CNAME' || record.type === 'DNAME')
    const soa =
      (isAlias ? undefined : soaOf(message)) ?? (await enclosingSoa(name, delegation.zone, server, context))
    // A server of the delegated zone may answer from a zone above it.
    if (isFromAbove(soa, delegation.zone))
      return { kind: 'located', delegation, soa: undefined, parent, verified: false }
    const zone = soa !== undefined && isWithin(name, soa.zone) ? soa.zone : delegation.zone
    if (zone !== delegation.zone && (await servesAnyZone(delegation.zone, server, context)))
      return { kind: 'located', delegation, soa: undefined, parent, verified: true }
    if (!isAlias && message.rcode === 'NXDOMAIN' && isAboveDomains(zone) && name !== zone)
      return { kind: 'no-domain', domain: registeredDomain(name, zone), saidBy: zone, soa }
    // A server of both parent and child answers for the child at once, so the delegation between them isn't seen.
    return zone === delegation.zone
      ? { kind: 'located', delegation, soa, parent, verified: true }
      : {
          kind: 'located',
          delegation: await ownServers(zone, server, context),
          soa,
          parent: undefined,
          ...(isAboveDomains(delegation.zone) ? {} : { above: delegation }),
          verified: true,
        }
  }
  return undefined
}

/** Whether an SOA record belongs to a zone above this one: a server that answers with it doesn't serve this one. */
export function isFromAbove(soa: Soa | undefined, zone: string): boolean {
  return soa !== undefined && soa.zone !== zone && isWithin(zone, soa.zone)
}

const isAboveDomains = (zone: string) => zone === '.' || isRegistry(zone)

interface StepAnswer {
  readonly message: Message
  readonly server: DnsAddress
}

/**
 * Asks the servers of a zone for the SOA of the name, three at a time, and takes the first answer that leads further. If a
 * registry's servers disagree about a domain, it is new to some of them: a referral is preferred to NXDOMAIN. Hosts without
 * glue are looked up on the way.
 */
async function askAnyOf(
  delegation: Delegation,
  name: string,
  context: ResolutionContext,
  progress: WalkProgress,
): Promise<StepAnswer | 'dead-end' | undefined> {
  const { effects } = context
  let hasAnswers = false
  // The domain's own servers are the last ones that can answer, so they get more time.
  const limitMs = isAboveDomains(delegation.zone) ? LEVEL_MS : OWN_LEVEL_MS
  const askOne = async (server: DnsAddress): Promise<StepAnswer | undefined> => {
    const deadline = Math.min(context.deadline, effects.clock.monotonic() + limitMs)
    const options = { deadline, retryAfterMs: RETRY_AFTER_MS }
    const reply = await ask(server, { name, type: 'SOA' }, options, effects)
    if (reply.kind !== 'answer') return undefined
    const { message } = reply
    hasAnswers = true
    // One address family may be redirected and the other not, so each server is reported.
    // Some relays don't offer recursion, but what they answer still comes from a cache.
    // Some forwarders claim authority for the empty answers that they give themselves; a registry's server has an SOA.
    const hasRecords = soaOf(message) !== undefined || message.answers.length > 0
    const isRecursion = message.aa ? message.ra && !hasRecords : message.ra || hasRecords
    const rejectsEdns = reply.ednsRejection !== undefined
    if (isAboveDomains(delegation.zone))
      progress.onRegistryAnswer({ zone: delegation.zone, server, isRecursion, rejectsEdns })
    const isEmpty = message.rcode === 'NOERROR' ? !hasRecords : isRecursion
    const leadsFurther = message.aa
      ? !isEmpty || listedRegistry(delegation.zone) !== delegation.zone
      : referralFrom(message, delegation.zone, name, context.authoritativePort) !== undefined
    const isAnswer = message.rcode === 'NOERROR' || message.rcode === 'NXDOMAIN'
    return leadsFurther && isAnswer ? { message, server } : undefined
  }
  const known = uniqueAddresses([...delegation.hosts.values()].flat())
  // Two of three are IPv4: more machines have it, but some have only IPv6. The parent rotates the order within each family.
  const isV6 = ({ address }: DnsAddress) => address.includes(':')
  const [v6, v4] = [known.filter(isV6), known.filter((server) => !isV6(server))]
  const ordered = known
    .map((_, index) => [v4.slice(2 * index, 2 * index + 2), v6.slice(index, index + 1)])
    .flat(2)
  const waitForTurn = async (index: number) => {
    const delay = Math.floor(index / 3) * NEXT_SERVERS_AFTER_MS
    if (delay > 0) await effects.clock.sleep(delay, effects.signal)
  }
  const glued = ordered.slice(0, 9).map((server, index) => async () => {
    await waitForTurn(index)
    return await askOne(server)
  })
  // With enough servers known, the rest needn't be looked up.
  const withoutGlue =
    known.length >= 3 ? [] : [...delegation.hosts].filter(([, addresses]) => addresses.length === 0)
  const lookups = withoutGlue.slice(0, 6).map(([host], index) => async () => {
    await waitForTurn(index)
    const { addresses } = await context.resolveHost(host)
    return await firstDefined(addresses.slice(0, 3).map((server) => () => askOne(server)))
  })
  const isDenial = ({ message }: StepAnswer) =>
    message.rcode === 'NXDOMAIN' && isAboveDomains(delegation.zone)
  const isAnswerFromAbove = ({ message }: StepAnswer) =>
    message.answers.length === 0 && isFromAbove(soaOf(message), delegation.zone)
  const isBare = ({ message }: StepAnswer) =>
    message.aa && message.answers.length === 0 && soaOf(message) === undefined
  const rankOf = (answer: StepAnswer) =>
    isDenial(answer) || isAnswerFromAbove(answer) || isBare(answer) ? 1 : 0
  const best = await bestOf([...glued, ...lookups], rankOf, effects)
  return best ?? (hasAnswers ? 'dead-end' : undefined)
}

/** Whether a server claims every name below a domain to be a zone of its own, as those of parked domains do. */
async function servesAnyZone(
  domain: string,
  server: DnsAddress,
  context: ResolutionContext,
): Promise<boolean> {
  const name = `${randomLabel(context.effects.random)}.${domain}`
  if (isAboveDomains(domain) || !isAskable(name)) return false
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + LEVEL_MS)
  const reply = await ask(server, { name, type: 'SOA' }, { deadline }, context.effects)
  return reply.kind === 'answer' && soaOf(reply.message)?.zone === name
}

/**
 * The name servers of a zone by its own NS records, from a server that holds it. If none of them has an address, that
 * server stands in.
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
        askServersForHost(host, [server], context),
      ])
      return [host, asked.length > 0 ? asked : looked.addresses] as const
    }),
  )
  const [first] = own.hosts.keys()
  const isReachable = hosts.some(([, addresses]) => addresses.length > 0)
  return { zone, hosts: isReachable || first === undefined ? new Map(hosts) : new Map([[first, [server]]]) }
}

/** A CNAME at the name hides the SOA: the nearest ancestor with an SOA is the zone. */
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
