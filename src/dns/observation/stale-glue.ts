import type { Located } from '../resolution/delegation-walk.ts'
import { askForHost } from '../resolution/host-addresses.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { isWithin } from '../wire/name.ts'
import type { Observation } from './observations.ts'

/** Two questions each. */
const MOST_HOSTS = 4

/** An address of a name server in the parent zone (glue) that the zone itself does not give for this host. */
export interface StaleGlue {
  readonly host: string
  /** The address in the parent zone. */
  readonly glue: string
  /** The addresses in the zone itself; at least one. */
  readonly own: readonly string[]
}

/**
 * Which servers without the record are asked only because the parent zone still has an old address of theirs. What the
 * zone says about its hosts is asked at a server that has the record: the other one may serve the zone of before.
 */
export async function findStaleGlue(
  { delegation, parent }: Located,
  matching: readonly Observation[],
  without: readonly Observation[],
  context: ResolutionContext,
): Promise<readonly StaleGlue[]> {
  const good = matching[0]?.server
  if (good === undefined || parent === undefined) return []
  const suspects = without.flatMap(({ host, server }) => {
    const glue = delegation.hosts.get(host)?.some(({ address }) => address === server?.address)
    return glue === true && server !== undefined && isWithin(host, delegation.zone)
      ? [{ host, glue: server.address }]
      : []
  })
  const found = await Promise.all(
    suspects.slice(0, MOST_HOSTS).map(async (suspect) => {
      const own = (await askForHost(suspect.host, [good], context)).map(({ address }) => address)
      return { ...suspect, own }
    }),
  )
  return found.filter(({ glue, own }) => own.length > 0 && !own.includes(glue))
}
