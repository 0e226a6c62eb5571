import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { answersUdp } from '../wire/exchange.ts'
import { linkedAbort } from '../wire/linked-abort.ts'
import { isFailure, type Observation, type ResolverObservation } from './observations.ts'

/** A resolver that takes longer may be waiting for the zone's servers. */
const LATE_MS = 1000
/** A server that has just answered answers again within this. */
const PROBE_MS = 1000
const MOST_SERVERS = 3

/**
 * Which servers leave questions unanswered that ask for signatures, as validating resolvers do in each of theirs
 * (RFC 4035 section 3.2.1). They are asked only where a resolver fails or is late.
 *
 * @param servers those that answer other questions.
 */
export async function findUnansweredSignatures(
  servers: readonly Observation[],
  zone: string,
  resolvers: Promise<readonly ResolverObservation[]>,
  context: ResolutionContext,
): Promise<readonly Observation[]> {
  const { clock, signal } = context.effects
  const patience = linkedAbort(signal)
  try {
    const isSuspect = await Promise.race([
      resolvers.then((seen) => seen.some(isFailure)),
      clock.sleep(LATE_MS, patience.signal).then(() => true),
    ])
    if (!isSuspect) return []
  } finally {
    patience.end()
  }
  const prompt = servers.filter(({ dropped, ms }) => dropped === undefined && ms !== null && ms < PROBE_MS)
  const deadline = Math.min(context.deadline, clock.monotonic() + PROBE_MS)
  if (deadline - clock.monotonic() < PROBE_MS) return []
  const found = await Promise.all(
    prompt.slice(0, MOST_SERVERS).map(async (observation) => {
      const { server } = observation
      if (server === undefined) return []
      const question = { name: zone, type: 'SOA' } as const
      const options = { edns: 'signatures', deadline } as const
      return (await answersUdp(server, question, options, context.effects)) ? [] : [observation]
    }),
  )
  return found.flat()
}
