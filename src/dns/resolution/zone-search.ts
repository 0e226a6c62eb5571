import type { DnsAddress } from '../../context.ts'
import type { Reply } from '../wire/exchange.ts'
import { linkedAbort } from '../wire/linked-abort.ts'
import { type Message, type Soa, soaOf } from '../wire/message.ts'
import { ancestors, labelCount } from '../wire/name.ts'
import { askResolver } from './ask-resolver.ts'
import { type Delegation, delegationFrom } from './delegation.ts'
import { type Located, type NoDomain, type WalkProgress, walkDelegations } from './delegation-walk.ts'
import { bestOf } from './race.ts'
import { isRegistry, registeredDomain } from './registry.ts'
import type { ResolutionContext } from './resolution-context.ts'

export type Location =
  | Located
  | NoDomain
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

/**
 * Finds the zone that holds a name and its servers, from the top down.
 *
 * A resolver is only asked for the NS records of ancestors, the topmost first; from there on the authoritative servers
 * are asked directly, without recursion, so that no cache learns that the name does not exist (RFC 2308). Where an
 * ancestor leads nowhere (private DNS without a root, servers that are not reachable from here), the next one down is
 * tried; the name itself comes last. Checking is disabled in these questions: a zone with broken DNSSEC is found as well.
 */
export async function locateZone(name: string, context: ResolutionContext): Promise<Location> {
  const { clock } = context.effects
  const withdrawn = linkedAbort(context.effects.signal)
  const inner: ResolutionContext = { ...context, effects: { ...context.effects, signal: withdrawn.signal } }

  const ways = [...ancestors(name), name]
  const running = new Set<Promise<Location | undefined>>()
  const replies: ResolverReply[] = []
  let candidate: Located | undefined
  let noDomain: Location | undefined
  let nextAt = clock.monotonic()
  // Once the domain's servers are known, resolvers have nothing more to tell: what is below may not exist yet.
  let reached: Located | undefined
  const onDelegation: WalkProgress['onDelegation'] = (delegation, parent) => {
    if (delegation.zone === '.' || isRegistry(delegation.zone)) return
    ways.length = 0
    reached = { kind: 'located', delegation, soa: undefined, parent, verified: false }
  }
  const recursing = new Set<string>()
  const onRecursion = (zone: string) => {
    recursing.add(zone)
  }
  try {
    while (clock.monotonic() < context.deadline) {
      const next = ways[0]
      if (next !== undefined && (running.size === 0 || clock.monotonic() >= nextAt)) {
        ways.shift()
        const way = tryWay(name, next, inner, { replies, onDelegation, onRecursion })
        // It may be withdrawn while nobody waits for it any more.
        way.catch(() => undefined)
        running.add(way)
        const isDeep = labelCount(ways[0] ?? name) > 2
        nextAt = clock.monotonic() + (isDeep ? LATE_WAY_AFTER_MS : NEXT_WAY_AFTER_MS)
      }
      if (running.size === 0) break
      const until = ways.length > 0 ? Math.min(nextAt, context.deadline) : context.deadline
      const outcome = await firstOf(running, until, inner)
      if (outcome === 'time' || outcome === undefined) continue
      if (outcome.kind === 'located') {
        // Who serves the zone is known then, even where those servers say nothing.
        if (outcome.standIn === undefined) {
          const { zone } = outcome.delegation
          return { ...outcome, recursionAbove: [...recursing].some((above) => above !== zone) }
        }
        candidate = outcome
      } else if (outcome.kind === 'no-domain') {
        if (outcome.saidBy !== 'resolver') return outcome
        noDomain = outcome
        // Nothing is below a name that does not exist (RFC 8020).
        if (running.size === 0) break
      }
    }
    // The time is over before its servers were found or have answered.
    return reached ?? candidate ?? noDomain ?? { kind: 'lost', resolverReplies: replies }
  } finally {
    withdrawn.end()
  }
}

/** The first of the running ways to end, taken out of the set; or `time`. */
async function firstOf(
  running: Set<Promise<Location | undefined>>,
  until: number,
  context: ResolutionContext,
): Promise<Location | undefined | 'time'> {
  const { clock, signal } = context.effects
  const alarm = linkedAbort(signal)
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
interface SearchProgress extends WalkProgress {
  readonly replies: ResolverReply[]
}

/** One way down: the NS records of `level` from the resolvers, then from server to server to the name. */
async function tryWay(
  name: string,
  level: string,
  context: ResolutionContext,
  progress: SearchProgress,
): Promise<Location | undefined> {
  const found = await bestOf(
    context.resolvers.map((resolver) => async () => {
      const reply = await askResolver(resolver, { name: level, type: 'NS' }, context)
      progress.replies.push({ resolver, question: `${level} NS`, reply })
      if (reply.kind !== 'answer') return undefined
      const { message } = reply
      return message.ra && (message.rcode === 'REFUSED' || message.rcode === 'NOTIMP')
        ? await primaryServer(level, resolver, context)
        : readResolver(level, resolver, message, context)
    }),
    worth,
    context.effects,
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
  progress.onDelegation(found.delegation, undefined)
  const end = await walkDelegations(name, found.delegation, context, progress)
  if (end === 'useless') {
    if (found.delegation.zone !== '.' || found.refused === true) return undefined
  } else if (end !== undefined || found.delegation.zone !== '.') return end
  const stand = { zone: name, hosts: found.delegation.hosts }
  return {
    kind: 'located',
    delegation: stand,
    soa: undefined,
    parent: undefined,
    verified: false,
    standIn: true,
  }
}

type Start =
  | { readonly kind: 'delegation'; readonly delegation: Delegation; readonly refused?: boolean }
  | { readonly kind: 'nxdomain'; readonly soa: Soa | undefined }

/** Which of several resolvers' answers to go by, the lowest: name servers, then a denial or a start, then a refusal. */
function worth(start: Start): number {
  if (start.kind === 'delegation' && start.delegation.zone !== '.') return 0
  return start.kind === 'delegation' && start.refused ? 2 : 1
}

/** Where a resolver refuses NS questions, its SOA record names at least one server of a zone: the primary. */
async function primaryServer(
  level: string,
  resolver: DnsAddress,
  context: ResolutionContext,
): Promise<Start | undefined> {
  const reply = await askResolver(resolver, { name: level, type: 'SOA' }, context)
  const soa = reply.kind === 'answer' ? soaOf(reply.message) : undefined
  if (soa?.zone !== level) return undefined
  return { kind: 'delegation', delegation: { zone: level, hosts: new Map([[soa.primary, []]]) } }
}

/** What a resolver's answer about the NS records of an ancestor is good for. */
function readResolver(
  level: string,
  resolver: DnsAddress,
  message: Message,
  context: ResolutionContext,
): Start | undefined {
  const delegation = delegationFrom(message, level, context.authoritativePort)
  if (delegation !== undefined) return { kind: 'delegation', delegation }
  // No recursion on offer: an authoritative server was named as the resolver. It is where the walk starts, then.
  // One that refuses may only be closed to us: it is asked for the name itself, but does not count as a name server.
  if (!message.ra) {
    const delegation = { zone: '.', hosts: new Map([[resolver.address, [resolver]]]) }
    return {
      kind: 'delegation',
      delegation,
      refused: message.rcode !== 'NOERROR' && message.rcode !== 'NXDOMAIN',
    }
  }
  if (message.rcode === 'NXDOMAIN') return { kind: 'nxdomain', soa: soaOf(message) }
  return undefined
}
