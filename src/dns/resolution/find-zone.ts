import type { DnsAddress } from '../../context.ts'
import type { DnsEffects } from '../wire/effects.ts'
import { linkedAbort } from '../wire/linked-abort.ts'
import { createResolutionContext } from './create-resolution-context.ts'
import { locateZone } from './zone-search.ts'

/**
 * The zone that holds a name, or undefined if none is found in time. Recursive resolvers are asked about the name itself
 * only as a last resort (see `locateZone`).
 *
 * @param timeoutMs the time limit of the whole search.
 */
export async function findZone(
  name: string,
  start: {
    readonly resolvers: readonly DnsAddress[] | 'system'
    readonly authoritativePort: number
    readonly timeoutMs: number
  },
  effects: DnsEffects,
): Promise<string | undefined> {
  const search = linkedAbort(effects.signal)
  try {
    const resolvers = start.resolvers === 'system' ? await effects.dns.systemResolvers() : start.resolvers
    const context = createResolutionContext({
      resolvers: resolvers.slice(0, 3),
      authoritativePort: start.authoritativePort,
      deadline: effects.clock.monotonic() + start.timeoutMs,
      effects: { ...effects, signal: search.signal },
    })
    const location = await locateZone(name, context)
    // The record doesn't go into the root, nor to a server that stands in for an unknown zone.
    return location.kind === 'located' && location.standIn !== true && location.delegation.zone !== '.'
      ? location.delegation.zone
      : undefined
  } finally {
    search.end()
  }
}
