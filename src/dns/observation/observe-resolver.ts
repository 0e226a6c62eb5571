import type { DnsAddress } from '../../context.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { ask } from '../wire/exchange.ts'
import { isDnsData, type Observation, type ResolverObservation } from './observations.ts'
import { classifyResolver } from './observe-server.ts'

const RESOLVER_MS = 3000

/** Asks a resolver about the record; where it fails, without validation, and once more to see whether that was all. */
export async function observeResolver(
  resolver: DnsAddress,
  name: string,
  expected: string,
  context: ResolutionContext,
): Promise<ResolverObservation> {
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + RESOLVER_MS)
  const observe = async (checkingDisabled: boolean): Promise<Observation> => {
    const options = { recursionDesired: true, checkingDisabled, deadline }
    const reply = await ask(resolver, { name, type: 'TXT' }, options, context.effects)
    return classifyResolver(resolver, reply, name, expected)
  }
  const first = await observe(false)
  if (first.outcome !== 'servfail') return { ...first, resolver, unchecked: undefined }
  const unchecked = await observe(true)
  // A resolver may also have failed because a server was slow: then it has the answer by now, and no signature is bad.
  const last = isDnsData(unchecked.outcome) ? await observe(false) : first
  return isDnsData(last.outcome)
    ? { ...last, resolver, unchecked: undefined }
    : { ...first, resolver, unchecked }
}
