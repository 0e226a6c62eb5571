import { ask } from '../wire/exchange.ts'
import { soaOf } from '../wire/message.ts'
import { checkName } from '../wire/name.ts'
import { MAX_ALIASES, readTxt, type TxtValue } from '../wire/txt-answer.ts'
import { firstUseful } from './race.ts'
import type { ResolutionContext } from './resolution-context.ts'
import { locateZone } from './zone-search.ts'

/** Where a chain of aliases from the name ends. */
export type AliasEnd = 'txt' | 'absent' | 'nxdomain' | 'loop' | 'unknown'

/** Where the aliases from the name lead, looked up from zone to zone at the authoritative servers. */
export interface AliasPath {
  readonly targets: readonly string[]
  readonly end: AliasEnd
  readonly values: readonly TxtValue[]
  readonly ttl: number | null
  readonly negativeTtl: number | undefined
}

/** Finding the zone of a target may take so long. */
const LOCATE_MS = 4000

/**
 * Looks up the end of a chain at the authoritative servers of its zones. The target may not exist yet either, so no
 * resolver is asked about it.
 */
export async function followAlias(
  visited: readonly string[],
  context: ResolutionContext,
): Promise<AliasPath> {
  const targets = visited.slice(1)
  const target = targets.at(-1) ?? ''
  const nothing = { targets, values: [], ttl: null, negativeTtl: undefined }
  if (targets.length > MAX_ALIASES) return { ...nothing, end: 'loop' }
  if (!checkName(target).ok) return { ...nothing, end: 'nxdomain' }
  const until = Math.min(context.deadline, context.effects.clock.monotonic() + LOCATE_MS)
  const location = await locateZone(target, { ...context, deadline: until })
  if (location.kind === 'lost') return { ...nothing, end: 'unknown' }
  if (location.kind === 'no-domain')
    return { ...nothing, end: 'nxdomain', negativeTtl: location.soa?.negativeTtl }
  const known = [...location.delegation.hosts.values()].flat()
  const looked =
    known.length > 0
      ? []
      : await Promise.all([...location.delegation.hosts.keys()].slice(0, 3).map(context.resolveHost))
  const servers = [...known, ...looked.flatMap((host) => host.addresses)]
  const message = await firstUseful(
    servers.slice(0, 4).map((server) => async () => {
      const reply = await ask(server, { name: target, type: 'TXT' }, { deadline: until }, context.effects)
      if (reply.kind !== 'answer' || !reply.message.aa) return undefined
      const { rcode } = reply.message
      return ['NOERROR', 'NXDOMAIN', 'YXDOMAIN'].includes(rcode) ? reply.message : undefined
    }),
  )
  if (message === undefined) return { ...nothing, end: 'unknown' }
  const { aliases, loop, values, ttl } = readTxt(message, target)
  const path = { targets: [...targets, ...aliases], values, ttl, negativeTtl: soaOf(message)?.negativeTtl }
  if (values.length > 0) return { ...path, end: 'txt' }
  const last = aliases.at(-1)
  if (loop || (last !== undefined && visited.includes(last))) return { ...path, end: 'loop' }
  if (last !== undefined) return await followAlias([...visited, ...aliases], context)
  return { ...path, end: message.rcode === 'NOERROR' ? 'absent' : 'nxdomain' }
}
