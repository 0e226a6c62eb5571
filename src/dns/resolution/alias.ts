import { ask } from '../wire/exchange.ts'
import { soaOf } from '../wire/message.ts'
import { checkName } from '../wire/name.ts'
import { MAX_ALIASES, readTxt, type TxtValue } from '../wire/txt-answer.ts'
import { firstDefined } from './race.ts'
import type { ResolutionContext } from './resolution-context.ts'
import { locateZone } from './zone-search.ts'

/** How a chain of aliases ends. */
export type AliasEnd = 'txt' | 'absent' | 'nxdomain' | 'loop' | 'unknown'

/** Where the aliases from a name lead, as the authoritative servers of each zone say. */
export interface AliasPath {
  readonly targets: readonly string[]
  readonly end: AliasEnd
  readonly values: readonly TxtValue[]
  readonly ttl: number | null
  readonly negativeTtl: number | undefined
}

/** The time limit for finding the zone of a target. */
const LOCATE_MS = 4000

/**
 * Follows a chain of aliases to its end at the authoritative servers of its zones. The target may not exist yet either, so
 * no resolver is asked about it.
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
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + LOCATE_MS)
  const location = await locateZone(target, { ...context, deadline: deadline })
  if (location.kind === 'lost') return { ...nothing, end: 'unknown' }
  if (location.kind === 'no-domain')
    return { ...nothing, end: 'nxdomain', negativeTtl: location.soa?.negativeTtl }
  const known = [...location.delegation.hosts.values()].flat()
  const lookups =
    known.length > 0
      ? []
      : await Promise.all([...location.delegation.hosts.keys()].slice(0, 3).map(context.resolveHost))
  const servers = [...known, ...lookups.flatMap((host) => host.addresses)]
  const message = await firstDefined(
    servers.slice(0, 4).map((server) => async () => {
      const reply = await ask(server, { name: target, type: 'TXT' }, { deadline: deadline }, context.effects)
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
