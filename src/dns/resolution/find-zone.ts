import type { DnsAddress } from '../../context.ts'
import type { DnsEffects } from '../wire/effects.ts'
import { linkedAbort } from '../wire/linked-abort.ts'
import { createResolutionContext } from './create-resolution-context.ts'
import type { Located } from './delegation-walk.ts'
import type { ResolutionContext } from './resolution-context.ts'
import { type Location, locateZone } from './zone-search.ts'

/** Where and for how long to search. */
export interface SearchStart {
  readonly resolvers: readonly DnsAddress[] | 'system'
  readonly authoritativePort: number
  /** The time limit of the whole search. */
  readonly timeoutMs: number
}

/** A zone with the hosts of its name servers. */
export interface FoundZone {
  readonly zone: string
  readonly nameservers: readonly string[]
}

/**
 * The zone that holds a name, or undefined if none is found in time. Recursive resolvers are asked about the name itself
 * only as a last resort (see `locateZone`).
 */
export async function findZone(
  name: string,
  start: SearchStart,
  effects: DnsEffects,
): Promise<FoundZone | undefined> {
  return await withSearch(start, effects, async (context) => {
    const location = await locateZone(name, context)
    if (!isZoneFound(location)) return undefined
    const { zone, hosts } = location.delegation
    return { zone, nameservers: [...hosts.keys()] }
  })
}

/** Whether the record can go into this zone: not into the root, nor to a server that stands in for an unknown zone. */
export function isZoneFound(location: Location): location is Located {
  return location.kind === 'located' && location.standIn !== true && location.delegation.zone !== '.'
}

/** Calls back with a context whose queries end when the callback does. */
export async function withSearch<T>(
  start: SearchStart,
  effects: DnsEffects,
  search: (context: ResolutionContext) => Promise<T>,
): Promise<T> {
  const whole = linkedAbort(effects.signal)
  try {
    const resolvers = start.resolvers === 'system' ? await effects.dns.systemResolvers() : start.resolvers
    return await search(
      createResolutionContext({
        resolvers: resolvers.slice(0, 3),
        authoritativePort: start.authoritativePort,
        deadline: effects.clock.monotonic() + start.timeoutMs,
        effects: { ...effects, signal: whole.signal },
      }),
    )
  } finally {
    whole.end()
  }
}
