import type { DnsAddress } from '../../context.ts'
import { ancestors } from '../wire/name.ts'
import { askServersForHost, queryHostAddresses } from './host-addresses.ts'
import { firstDefined } from './race.ts'
import { isRegistry } from './registry.ts'
import type { HostAddresses, ResolutionContext } from './resolution-context.ts'
import { locateZone } from './zone-search.ts'

/** A resolver with a cold cache may take longer than querying slow servers directly. */
const OWN_WALK_AFTER_MS = 1500
const OWN_WALK_MS = 4500

/** The addresses of a name server host, from the resolvers and, if they are slow or filter it, also from the servers of its zone. */
export async function findHostAddresses(host: string, context: ResolutionContext): Promise<HostAddresses> {
  const { clock, signal } = context.effects
  const asked = queryHostAddresses(host, context)
  const early = await Promise.race([asked, clock.sleep(OWN_WALK_AFTER_MS, signal).then(() => undefined)])
  if (early !== undefined && early.failure !== 'filtered') return early
  const found = await firstDefined<HostAddresses>([
    async () => {
      const answer = await asked
      return answer.failure === undefined || answer.failure === 'no-address' ? answer : undefined
    },
    async () => {
      const addresses = await context.walkToHost(host)
      return addresses.length > 0 ? { addresses, failure: undefined, claims: early?.claims ?? [] } : undefined
    },
  ])
  return found ?? (await asked)
}

/**
 * The addresses of a host from the servers of its own zone.
 *
 * @param serversAbove see `findServersAbove`.
 */
export async function walkToHost(
  host: string,
  serversAbove: (domain: string) => Promise<readonly DnsAddress[]>,
  context: ResolutionContext,
): Promise<readonly DnsAddress[]> {
  const above = ancestors(host).at(-1)
  const servers = await serversAbove(above === undefined || isRegistry(above) ? host : above)
  return await askServersForHost(host, servers, context)
}

/** The servers of the zone that holds a name. */
export async function findServersAbove(
  domain: string,
  context: ResolutionContext,
): Promise<readonly DnsAddress[]> {
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + OWN_WALK_MS)
  const location = await locateZone(domain, { ...context, deadline })
  return location.kind === 'located' ? [...location.delegation.hosts.values()].flat() : []
}
