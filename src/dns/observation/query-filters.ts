import { isIPv6 } from 'node:net'
import type { RegistryAnswer } from '../resolution/delegation-walk.ts'
import { uniqueAddresses } from '../resolution/host-addresses.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { answersUdp } from '../wire/exchange.ts'
import type { Observation } from './observations.ts'

/** A server that has just answered answers again within this. */
const PROBE_MS = 1000
/** Of each address family. */
const MAX_REGISTRY_SERVERS = 2

/** In the terms of `answersUdp`. */
const EDNS_OF = { udp: 'none', edns: 'plain', do: 'signatures' } as const

type Filter = Pick<Observation, 'server' | 'dropped' | 'ednsRejection'>

/**
 * Where queries are dropped or rejected that a server doesn't answer. Every registry's servers answer them, so if those of
 * the same address family don't either, it is this network. Undefined if none could be asked.
 *
 * @returns looks it up for one server; each kind of query is sent only once.
 */
export function createFilterLookup(
  zone: string,
  servers: readonly Observation[],
  answers: readonly RegistryAnswer[],
  context: ResolutionContext,
): (filter: Filter) => Promise<Observation['filteredAt']> {
  const own = new Set(servers.flatMap(({ server }) => server?.address ?? []))
  // The search starts at the root only if a server was given that is authoritative itself, which may be the domain's.
  const others = answers.filter((answer) => answer.zone !== '.' && !own.has(answer.server.address))
  const probe = async (
    registry: readonly RegistryAnswer[],
    edns: 'none' | 'plain' | 'signatures',
  ): Promise<Observation['filteredAt']> => {
    const { clock } = context.effects
    const deadline = clock.monotonic() + PROBE_MS
    if (deadline > context.deadline) return undefined
    const seen = await Promise.all(
      uniqueAddresses(registry.map(({ server }) => server))
        .slice(0, MAX_REGISTRY_SERVERS)
        .map((server) =>
          answersUdp(server, { name: zone, type: 'SOA' }, { edns, deadline }, context.effects),
        ),
    )
    if (seen.includes(true)) return 'server'
    return seen.includes(false) ? 'network' : undefined
  }
  const probes = new Map<string, Promise<Observation['filteredAt']>>()
  return async ({ server, dropped, ednsRejection }) => {
    const isV6 = isIPv6(server?.address ?? '')
    const registry = others.filter((other) => isIPv6(other.server.address) === isV6)
    if (registry.length === 0 || (dropped === undefined && ednsRejection === undefined)) return undefined
    // The search for the zone has already asked the registry with EDNS.
    if (dropped === undefined) return registry.every((other) => other.rejectsEdns) ? 'network' : 'server'
    const key = `${dropped} ${isV6}`
    const running = probes.get(key) ?? probe(registry, EDNS_OF[dropped])
    probes.set(key, running)
    return await running
  }
}
