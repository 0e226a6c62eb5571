import type { DnsAddress } from '../context.ts'
import { type AskOptions, ask, type DnsEffects } from './exchange.ts'
import type { Message, ResourceRecord } from './message.ts'
import { isAskable } from './name.ts'
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

/** How long the servers of one zone may take before the walk goes on without them. */
export const LEVEL_MS = 1500

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
      bestOf(
        route.resolvers.map((resolver) => async () => {
          const reply = await ask(resolver, { name: host, type }, options, route.effects)
          if (reply.kind !== 'answer') return undefined
          const { rcode, ra } = reply.message
          const addresses =
            rcode === 'NOERROR' ? answeredAddresses(reply.message, host, route.authoritativePort) : []
          const certain = ra && (rcode === 'NOERROR' || rcode === 'NXDOMAIN')
          return addresses.length > 0 || certain ? addresses : undefined
        }),
        (addresses) => (addresses.length > 0 ? 0 : 1),
        route.effects,
      ),
    ),
  )
  return {
    addresses: unique(families.flatMap((addresses) => addresses ?? [])),
    certain: families.every((addresses) => addresses !== undefined),
  }
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

/** The addresses that a message carries for a host, glue included. */
export function addressesIn(message: Message, host: string, port: number): DnsAddress[] {
  return toAddresses(
    [...message.answers, ...message.additional].filter((record) => record.name === host),
    port,
  )
}

/**
 * The addresses that a message answers for a host. They may be under another name in the answer, behind an alias;
 * beside the answer, other names belong to other hosts: servers add their own addresses there, or glue of a referral.
 */
function answeredAddresses(message: Message, host: string, port: number): DnsAddress[] {
  return unique([...toAddresses(message.answers, port), ...addressesIn(message, host, port)])
}

function toAddresses(records: readonly ResourceRecord[], port: number): DnsAddress[] {
  return unique(
    records.flatMap((record) =>
      record.type === 'A' || record.type === 'AAAA' ? [{ address: record.address, port }] : [],
    ),
  )
}

export function unique(addresses: readonly DnsAddress[]): DnsAddress[] {
  return [...new Map(addresses.map((server) => [`${server.address} ${server.port}`, server])).values()]
}

/** A lesser answer is taken when nobody has had a better one for so long. */
const BETTER_ANSWER_MS = 500

/**
 * Starts all at once; the first result of rank 0 wins, a lesser one only where no better one comes soon. Resolvers see
 * different parts of DNS (that of a VPN beside a public one), and who denies or refuses is often the quicker.
 */
export async function bestOf<T>(
  tasks: readonly (() => Promise<T | undefined>)[],
  rank: (result: T) => number,
  { clock, signal }: DnsEffects,
): Promise<T | undefined> {
  const patience = below(signal)
  let best: T | undefined
  const running = tasks.map((task) => task())
  const ended = Promise.allSettled(running)
  const ranked = running.map((task) => async () => {
    const result = await task
    if (result === undefined) return undefined
    if (best === undefined || rank(result) < rank(best)) best = result
    if (rank(result) > 0) await Promise.race([ended, clock.sleep(BETTER_ANSWER_MS, patience.signal)])
    return best
  })
  try {
    return await firstUseful(ranked)
  } finally {
    patience.end()
  }
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
