import type { DnsAddress } from '../context.ts'
import { ask, type Reply } from './exchange.ts'
import type { Message, Soa } from './message.ts'
import { ancestors, isRegistry, labelCount, registeredDomain } from './name.ts'
import { bestOf, type Route } from './route.ts'
import { type Cut, cutFrom, type Located, type NoDomain, soaOf, walk } from './walk.ts'
import { below } from './withdraw.ts'

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
  const found = await bestOf(
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
    worth,
    route.effects,
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
  const end = await walk(name, found.cut, route, told.onCut)
  if (end === 'useless') {
    if (found.cut.zone !== '.' || found.refused === true) return undefined
  } else if (end !== undefined || found.cut.zone !== '.') return end
  const stand = { zone: name, hosts: found.cut.hosts }
  return { kind: 'located', cut: stand, soa: undefined, parent: undefined, verified: false, standIn: true }
}

type Start =
  | { readonly kind: 'cut'; readonly cut: Cut; readonly refused?: boolean }
  | { readonly kind: 'nxdomain'; readonly soa: Soa | undefined }

/** Which of several resolvers' answers to go by, the lowest: name servers, then a denial or a start, then a refusal. */
function worth(start: Start): number {
  if (start.kind === 'cut' && start.cut.zone !== '.') return 0
  return start.kind === 'cut' && start.refused ? 2 : 1
}

/** What a resolver's answer about the NS records of an ancestor is good for. */
function readResolver(
  level: string,
  resolver: DnsAddress,
  message: Message,
  route: Route,
): Start | undefined {
  const cut = cutFrom(message, level, route.authoritativePort)
  if (cut !== undefined) return { kind: 'cut', cut }
  // No recursion on offer: an authoritative server was named as the resolver. It is where the walk starts, then.
  // One that refuses may only be closed to us: it is asked for the name itself, but does not count as a name server.
  if (!message.ra) {
    const cut = { zone: '.', hosts: new Map([[resolver.address, [resolver]]]) }
    return { kind: 'cut', cut, refused: message.rcode !== 'NOERROR' && message.rcode !== 'NXDOMAIN' }
  }
  if (message.rcode === 'NXDOMAIN') return { kind: 'nxdomain', soa: soaOf(message) }
  return undefined
}
