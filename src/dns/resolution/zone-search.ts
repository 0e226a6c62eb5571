import type { DnsAddress } from '../../context.ts'
import type { Reply } from '../wire/exchange.ts'
import { linkedAbort } from '../wire/linked-abort.ts'
import { type Message, type Soa, soaOf } from '../wire/message.ts'
import { ancestors, labelCount } from '../wire/name.ts'
import { askResolver } from './ask-resolver.ts'
import { type Delegation, delegationFrom } from './delegation.ts'
import {
  type Located,
  type NoDomain,
  type PathStep,
  type RegistryAnswer,
  type WalkProgress,
  walkDelegations,
} from './delegation-walk.ts'
import { bestOf } from './race.ts'
import { isListedTopLevel, isRegistry, registeredDomain } from './registry.ts'
import type { ResolutionContext } from './resolution-context.ts'

export type Location =
  | Located
  | NoDomain
  /** No zone was found, from resolvers or servers. */
  | {
      readonly kind: 'lost'
      readonly resolverReplies: readonly ResolverReply[]
      /** How far the search came. */
      readonly path: readonly PathStep[]
    }

export interface ResolverReply {
  readonly resolver: DnsAddress
  /** The name whose NS records were asked for. */
  readonly level: string
  readonly reply: Reply
}

/** The next level is tried in parallel if there is no result after this. */
const NEXT_LEVEL_AFTER_MS = 600

/** A name deep below a registry may not exist yet, so resolvers are asked about it only after a longer wait. */
const DEEP_LEVEL_AFTER_MS = 1500

/** A resolver that is silent for this long is asked again: without its answer, the search would miss the registry. */
const ASK_AGAIN_AFTER_MS = 750

/** How long a zone found from further down waits for the search from above, which learns what the registry says. */
const WAIT_FOR_REGISTRY_MS = 3000

/**
 * Finds the zone that holds a name and its servers, from the top down.
 *
 * Resolvers are only asked for the NS records of ancestors, the topmost first; from there on, authoritative servers are
 * asked directly, without recursion, which won't poison caches with a negative answer (RFC 2308). If an ancestor leads
 * nowhere (private DNS without a root, servers that can't be reached from here), the next one down is tried; the name itself
 * comes last. What a search from further down finds counts only if those from above end without a result: a resolver may
 * have cached the name servers from before a move, and a zone may list others than its registry. Checking is disabled in
 * these queries in order to find zones with broken DNSSEC as well.
 */
export async function locateZone(name: string, context: ResolutionContext): Promise<Location> {
  const { clock } = context.effects
  const search = linkedAbort(context.effects.signal)
  const inner: ResolutionContext = { ...context, effects: { ...context.effects, signal: search.signal } }

  const levels = [...ancestors(name), name]
  // In the order of their start, the topmost first.
  const running: Promise<Location | undefined>[] = []
  const replies: ResolverReply[] = []
  let candidate: Located | undefined
  let fromBelow: { readonly located: Located; readonly until: number } | undefined
  let noDomain: Location | undefined
  let nextAt = clock.monotonic()
  // Once the domain's servers are known, resolvers aren't asked anymore: what is below may not exist yet.
  let reached: Located | undefined
  let longestPath: readonly PathStep[] = []
  const onDelegation: SearchProgress['onDelegation'] = (delegation, parent, path) => {
    if (path.length > longestPath.length) longestPath = path
    if (delegation.zone === '.' || isRegistry(delegation.zone)) return
    levels.length = 0
    if (parent === undefined && reached?.parent !== undefined) return
    const unseen = parent === undefined ? ({ registryUnseen: true } as const) : {}
    reached = { kind: 'located', delegation, soa: undefined, parent, verified: false, path, ...unseen }
  }
  const registryAnswers: RegistryAnswer[] = []
  const onRegistryAnswer: WalkProgress['onRegistryAnswer'] = (answer) => {
    registryAnswers.push(answer)
  }
  const withRegistryAnswers = (located: Located): Located => ({
    ...located,
    registryAnswers: registryAnswers.filter(({ zone }) => zone !== located.delegation.zone),
  })
  try {
    while (clock.monotonic() < context.deadline) {
      const next = levels[0]
      if (next !== undefined && (running.length === 0 || clock.monotonic() >= nextAt)) {
        levels.shift()
        const attempt = searchFrom(name, next, inner, { replies, onDelegation, onRegistryAnswer })
        // If it is aborted after the search has ended, nobody else handles that.
        attempt.catch(() => undefined)
        running.push(attempt)
        const isDeep = labelCount(levels[0] ?? name) > 2
        nextAt = clock.monotonic() + (isDeep ? DEEP_LEVEL_AFTER_MS : NEXT_LEVEL_AFTER_MS)
      }
      const waitUntil = Math.min(fromBelow?.until ?? context.deadline, context.deadline)
      if (running.length === 0 || clock.monotonic() >= waitUntil) break
      const ended = await firstOf(running, levels.length > 0 ? Math.min(nextAt, waitUntil) : waitUntil, inner)
      if (ended === 'time' || ended.outcome === undefined) continue
      const { outcome, isTopmost } = ended
      if (outcome.kind === 'located') {
        if (outcome.standIn === true) candidate = outcome
        // The zone's servers are known then, even if they don't answer.
        else if (isTopmost) return withRegistryAnswers(outcome)
        else fromBelow ??= { located: outcome, until: clock.monotonic() + WAIT_FOR_REGISTRY_MS }
      } else if (outcome.kind === 'no-domain') {
        if (outcome.saidBy !== 'resolver') return outcome
        noDomain = outcome
        // If a name doesn't exist, neither does anything below it (RFC 8020).
        if (running.length === 0) break
      }
    }
    // The time is over before the zone's servers were found or have answered, or the registry has.
    const known = fromBelow?.located
    const isConfirmed = reached?.parent !== undefined && reached.delegation.zone === known?.delegation.zone
    const found = isConfirmed ? reached : (known ?? reached)
    return (
      (found && withRegistryAnswers(found)) ??
      candidate ??
      noDomain ?? { kind: 'lost', resolverReplies: replies, path: longestPath }
    )
  } finally {
    search.end()
  }
}

/**
 * The first of the running attempts to end, which is removed, and whether all that started before it have ended; or
 * `time`.
 */
async function firstOf(
  running: Promise<Location | undefined>[],
  until: number,
  context: ResolutionContext,
): Promise<{ readonly outcome: Location | undefined; readonly isTopmost: boolean } | 'time'> {
  const { clock, signal } = context.effects
  const timer = linkedAbort(signal)
  try {
    const ended = await Promise.race([
      ...running.map((attempt) => attempt.then((outcome) => ({ attempt, outcome }))),
      clock.sleep(Math.max(0, until - clock.monotonic()), timer.signal).then(() => 'time' as const),
    ])
    if (ended === 'time') return 'time'
    const at = running.indexOf(ended.attempt)
    running.splice(at, 1)
    return { outcome: ended.outcome, isTopmost: at === 0 }
  } finally {
    timer.end()
  }
}

/** What the attempts report on their way. */
interface SearchProgress extends Omit<WalkProgress, 'onDelegation'> {
  readonly replies: ResolverReply[]
  /** @param path down to this delegation */
  readonly onDelegation: (
    ...found: [...Parameters<WalkProgress['onDelegation']>, path: readonly PathStep[]]
  ) => void
}

/** Asks the resolvers for the NS records of `level`, and walks from there to the name. */
async function searchFrom(
  name: string,
  level: string,
  context: ResolutionContext,
  progress: SearchProgress,
): Promise<Location | undefined> {
  const found = await bestOf(
    context.resolvers.map((resolver) => async () => {
      const reply = await askResolver(resolver, { name: level, type: 'NS' }, context, ASK_AGAIN_AFTER_MS)
      progress.replies.push({ resolver, level, reply })
      if (reply.kind !== 'answer') return undefined
      const { message } = reply
      if (message.rcode === 'NXDOMAIN' && deniesKnownNames(resolver, progress.replies)) return undefined
      return message.ra && (message.rcode === 'REFUSED' || message.rcode === 'NOTIMP')
        ? await primaryServer(level, resolver, context)
        : readResolver(level, resolver, message, context)
    }),
    rankOf,
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
  let hasSeenRegistry = false
  let path: readonly PathStep[] = []
  let last = found.delegation
  const onDelegation: WalkProgress['onDelegation'] = (delegation, parent) => {
    hasSeenRegistry ||= isRegistry(delegation.zone)
    const server = parent?.server ?? found.givenBy
    const givenBy = { ...server, host: parent === undefined ? undefined : hostAt(last, server) }
    path = [...path, { zone: delegation.zone, hosts: [...delegation.hosts.keys()], givenBy }]
    last = delegation
    progress.onDelegation(delegation, parent, path)
  }
  onDelegation(found.delegation, undefined)
  const end = await walkDelegations(name, found.delegation, context, { ...progress, onDelegation })
  const isStandIn = found.delegation.zone === '.'
  if (end === 'dead-end') {
    if (!isStandIn || found.refused === true) return undefined
  } else if (end !== undefined) {
    // Something that answers everything itself gives no SOA record, or one of its own root.
    const isUnproven = isStandIn && (end.soa === undefined || isFromOtherRoot(end.soa, name))
    if (isUnproven && (end.kind === 'no-domain' || end.delegation.zone === '.')) return undefined
    if (end.kind === 'no-domain') return { ...end, path, ...(isStandIn ? { saidBy: 'resolver' } : {}) }
    return { ...end, path, ...(hasSeenRegistry || found.isCached !== true ? {} : { registryUnseen: true }) }
  } else if (!isStandIn) return undefined
  return {
    kind: 'located',
    delegation: { zone: name, hosts: found.delegation.hosts },
    soa: undefined,
    parent: undefined,
    verified: false,
    standIn: true,
    path,
  }
}

/** The name of the server with that address, if the delegation has it. */
function hostAt({ hosts }: Delegation, { address, port }: DnsAddress): string | undefined {
  const isThis = (server: DnsAddress) => server.address === address && server.port === port
  return [...hosts].find(([, addresses]) => addresses.some(isThis))?.[0]
}

/**
 * Whether a resolver has denied a name that exists: it has a root of its own, or blocks everything, so whatever it denies
 * may exist.
 */
function deniesKnownNames(resolver: DnsAddress, replies: readonly ResolverReply[]): boolean {
  return replies.some(
    ({ resolver: other, level, reply }) =>
      other === resolver &&
      reply.kind === 'answer' &&
      reply.message.rcode === 'NXDOMAIN' &&
      (isListedTopLevel(level) || isFromOtherRoot(soaOf(reply.message), level)),
  )
}

/** Whether an answer about a name comes from a root zone of its own: the actual one refers to the top-level domain. */
function isFromOtherRoot(soa: Soa | undefined, name: string): boolean {
  return soa?.zone === '.' && isListedTopLevel(name.slice(name.lastIndexOf('.') + 1))
}

type StartingPoint =
  | {
      readonly kind: 'delegation'
      readonly delegation: Delegation
      readonly givenBy: DnsAddress
      readonly refused?: boolean
      /** A recursive resolver gave it. */
      readonly isCached?: boolean
    }
  | { readonly kind: 'nxdomain'; readonly soa: Soa | undefined }

/** Lower is better: name servers, then a denial or an authoritative server, then a refusal. */
function rankOf(start: StartingPoint): number {
  if (start.kind === 'delegation' && start.delegation.zone !== '.') return 0
  return start.kind === 'delegation' && start.refused ? 2 : 1
}

/** If a resolver refuses NS queries, the SOA record gives at least one server of the zone: the primary. */
async function primaryServer(
  level: string,
  resolver: DnsAddress,
  context: ResolutionContext,
): Promise<StartingPoint | undefined> {
  const reply = await askResolver(resolver, { name: level, type: 'SOA' }, context)
  const soa = reply.kind === 'answer' ? soaOf(reply.message) : undefined
  if (soa?.zone !== level) return undefined
  const delegation = { zone: level, hosts: new Map([[soa.primary, []]]) }
  return { kind: 'delegation', delegation, givenBy: resolver, isCached: true }
}

/** Where a resolver's answer about the NS records of an ancestor leads. */
function readResolver(
  level: string,
  resolver: DnsAddress,
  message: Message,
  context: ResolutionContext,
): StartingPoint | undefined {
  const delegation = delegationFrom(message, level, context.authoritativePort)
  if (delegation !== undefined)
    return { kind: 'delegation', delegation, givenBy: resolver, isCached: message.ra }
  // No recursion: an authoritative server was given as the resolver, and the walk starts there. One that refuses may
  // still answer for the name itself, but doesn't count as a name server.
  if (!message.ra) {
    const delegation = { zone: '.', hosts: new Map([[resolver.address, [resolver]]]) }
    return {
      kind: 'delegation',
      delegation,
      givenBy: resolver,
      refused: message.rcode !== 'NOERROR' && message.rcode !== 'NXDOMAIN',
    }
  }
  if (message.rcode === 'NXDOMAIN') return { kind: 'nxdomain', soa: soaOf(message) }
  return undefined
}
