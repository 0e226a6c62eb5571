import type { Located } from '../resolution/delegation-walk.ts'
import { askServersForHost } from '../resolution/host-addresses.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { isWithin } from '../wire/name.ts'
import type { Observation, StaleGlue } from './observations.ts'

/** Each costs two queries. */
const MAX_HOSTS = 4

/**
 * Which servers without the record are in use only because the parent zone still has an old address. The addresses in the
 * zone itself come from a server with the record: the other one may serve an older version of the zone.
 */
export async function findStaleGlue(
  { delegation, parent }: Located,
  withRecord: readonly Observation[],
  withoutRecord: readonly Observation[],
  context: ResolutionContext,
): Promise<readonly StaleGlue[]> {
  const serverWithRecord = withRecord[0]?.server
  if (serverWithRecord === undefined || parent === undefined) return []
  const suspects = withoutRecord.flatMap(({ host, server }) => {
    const glue = delegation.hosts.get(host)?.some(({ address }) => address === server?.address)
    return glue === true && server !== undefined && isWithin(host, delegation.zone)
      ? [{ host, glue: server.address }]
      : []
  })
  const found = await Promise.all(
    suspects.slice(0, MAX_HOSTS).map(async (suspect) => {
      const own = (await askServersForHost(suspect.host, [serverWithRecord], context)).map(
        ({ address }) => address,
      )
      return { ...suspect, own }
    }),
  )
  return found.filter(({ glue, own }) => own.length > 0 && !own.includes(glue))
}
