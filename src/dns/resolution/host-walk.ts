import type { DnsAddress } from '../../context.ts'
import { askServersForHost, queryHostAddresses } from './host-addresses.ts'
import { firstDefined } from './race.ts'
import type { HostAddresses, ResolutionContext } from './resolution-context.ts'
import { locateZone } from './zone-search.ts'

/** A resolver with a cold cache may take longer than querying slow servers directly. */
const OWN_WALK_AFTER_MS = 1500
const OWN_WALK_MS = 4500

/** The addresses of a name server host, from the resolvers and, if they are slow, also from the servers of its zone. */
export async function findHostAddresses(host: string, context: ResolutionContext): Promise<HostAddresses> {
  const { clock, signal } = context.effects
  const asked = queryHostAddresses(host, context)
  const early = await Promise.race([asked, clock.sleep(OWN_WALK_AFTER_MS, signal).then(() => undefined)])
  if (early !== undefined) return early
  const found = await firstDefined<HostAddresses>([
    async () => {
      const answer = await asked
      return answer.failure === undefined || answer.failure === 'no-address' ? answer : undefined
    },
    async () => {
      const addresses = await walkToHost(host, context)
      return addresses.length > 0 ? { addresses, failure: undefined } : undefined
    },
  ])
  return found ?? (await asked)
}

async function walkToHost(host: string, context: ResolutionContext): Promise<DnsAddress[]> {
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + OWN_WALK_MS)
  const location = await locateZone(host, { ...context, deadline })
  if (location.kind !== 'located') return []
  return await askServersForHost(host, [...location.delegation.hosts.values()].flat(), {
    ...context,
    deadline,
  })
}
