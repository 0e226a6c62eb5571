import type { DnsAddress } from '../../context.ts'
import { ask, type Reply } from '../wire/exchange.ts'
import type { Question } from '../wire/message.ts'
import type { ResolutionContext } from './resolution-context.ts'

/** A resolver that does not know the CD bit may take it for an error. */
const REFUSALS = ['FORMERR', 'NOTIMP', 'REFUSED']

/**
 * Asks a resolver on the way to a zone. Checking is disabled, so that a zone with broken DNSSEC is found as well; where
 * that is refused, the resolver is asked as usual.
 */
export async function askResolver(
  resolver: DnsAddress,
  question: Question,
  context: Pick<ResolutionContext, 'deadline' | 'effects' | 'heard'>,
): Promise<Reply> {
  const options = { recursionDesired: true, deadline: context.deadline }
  const unchecked = await ask(resolver, question, { ...options, checkingDisabled: true }, context.effects)
  if (unchecked.kind === 'answer') context.heard.add(resolver)
  if (unchecked.kind !== 'answer' || !unchecked.message.ra || !REFUSALS.includes(unchecked.message.rcode))
    return unchecked
  const checked = await ask(resolver, question, options, context.effects)
  return checked.kind === 'answer' ? checked : unchecked
}
