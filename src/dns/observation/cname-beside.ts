import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { ask } from '../wire/exchange.ts'
import { cnameAt } from '../wire/txt-answer.ts'
import type { Observation, ResolverObservation } from './observations.ts'

const CNAME_MS = 1500
const MAX_SERVERS = 3

/**
 * The servers with the record, each with the CNAME that it also has at the name. They are asked only if a resolver has
 * followed an alias that their TXT answers don't show.
 *
 * @param servers that have the record.
 */
export async function findCnamesBeside(
  servers: readonly Observation[],
  name: string,
  resolvers: readonly ResolverObservation[],
  context: ResolutionContext,
): Promise<ReadonlyMap<Observation, string>> {
  const direct = servers.filter(
    ({ aliases, cnameBeside }) => aliases.length === 0 && cnameBeside === undefined,
  )
  const isSuspect = resolvers.some(({ outcome, aliases }) => outcome !== 'match' && aliases.length > 0)
  if (!isSuspect) return new Map()
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + CNAME_MS)
  const found = await Promise.all(
    direct.slice(0, MAX_SERVERS).map(async (observation) => {
      if (observation.server === undefined) return []
      const reply = await ask(observation.server, { name, type: 'CNAME' }, { deadline }, context.effects)
      const cname = reply.kind === 'answer' && reply.message.aa ? cnameAt(reply.message, name) : undefined
      return cname === undefined ? [] : [[observation, cname.target] as const]
    }),
  )
  return new Map(found.flat())
}
