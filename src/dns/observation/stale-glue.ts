import type { DnsAddress } from '../../context.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import { askServersForHost } from '../resolution/host-addresses.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { isWithin } from '../wire/name.ts'
import type { Observation, StaleGlue } from './observations.ts'

/** Each costs two queries, and those of hosts in other zones the search for that zone. */
const MAX_HOSTS = 4

/**
 * Which of these servers are in use only because the parent zone still has an old address. The addresses of a host outside
 * the zone come from the servers of its own zone.
 *
 * @param suspects servers that lack the record, don't serve the zone, or don't answer.
 * @param source which has the zone's newest version, for the addresses of hosts inside it: another server may serve an
 *   older one.
 */
export async function findStaleGlue(
  { delegation, parent }: Located,
  suspects: readonly Observation[],
  source: DnsAddress | undefined,
  context: ResolutionContext,
): Promise<readonly StaleGlue[]> {
  if (parent === undefined) return []
  const glued = suspects.flatMap(({ host, server }) => {
    const glue = delegation.hosts.get(host)?.some(({ address }) => address === server?.address)
    return glue === true && server !== undefined ? [{ host, glue: server.address }] : []
  })
  const ownAddresses = async (host: string): Promise<readonly DnsAddress[]> => {
    if (!isWithin(host, delegation.zone)) return await context.walkToHost(host)
    return source === undefined ? [] : await askServersForHost(host, [source], context)
  }
  const found = await Promise.all(
    glued.slice(0, MAX_HOSTS).map(async (suspect) => {
      const own = (await ownAddresses(suspect.host)).map(({ address }) => address)
      return { ...suspect, own }
    }),
  )
  return found.filter(({ glue, own }) => own.length > 0 && !own.includes(glue))
}
