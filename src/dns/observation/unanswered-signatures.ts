import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { answersUdp } from '../wire/exchange.ts'
import { linkedAbort } from '../wire/linked-abort.ts'
import { isFailure, type Observation, type ResolverObservation } from './observations.ts'

/** A resolver that takes longer may be waiting for the zone's servers. */
const LATE_MS = 1000
/** A server that has just answered answers again within this. */
const PROBE_MS = 1000
const MAX_SERVERS = 3

/**
 * Which servers drop queries that ask for signatures, as validating resolvers always do (RFC 4035 section 3.2.1). Looks
 * only if a resolver fails or is late.
 *
 * @param servers that answer other queries.
 */
export async function findUnansweredSignatures(
  servers: readonly Observation[],
  zone: string,
  resolvers: Promise<readonly ResolverObservation[]>,
  context: ResolutionContext,
): Promise<readonly Observation[]> {
  const { clock, signal } = context.effects
  const timer = linkedAbort(signal)
  try {
    const isSuspect = await Promise.race([
      resolvers.then((seen) => seen.some(isFailure)),
      clock.sleep(LATE_MS, timer.signal).then(() => true),
    ])
    if (!isSuspect) return []
  } finally {
    timer.end()
  }
  const prompt = servers.filter(({ dropped, ms }) => dropped === undefined && ms !== null && ms < PROBE_MS)
  const deadline = clock.monotonic() + PROBE_MS
  if (deadline > context.deadline) return []
  const found = await Promise.all(
    prompt.slice(0, MAX_SERVERS).map(async (observation) => {
      const { server } = observation
      if (server === undefined) return []
      const question = { name: zone, type: 'SOA' } as const
      const options = { edns: 'signatures', deadline } as const
      return (await answersUdp(server, question, options, context.effects)) === false ? [observation] : []
    }),
  )
  return found.flat()
}
