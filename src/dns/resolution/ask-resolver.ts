import type { DnsAddress } from '../../context.ts'
import { ask, RETRY_AFTER_MS, type Reply } from '../wire/exchange.ts'
import type { Question } from '../wire/message.ts'
import type { ResolutionContext } from './resolution-context.ts'

/** A resolver that doesn't know the CD bit may answer one of these. */
const REFUSALS = ['FORMERR', 'NOTIMP', 'REFUSED']

/**
 * Asks a resolver during the search for a zone. Checking is disabled in order to find zones with broken DNSSEC as well; a
 * resolver that refuses that is asked again with checking.
 *
 * @param retryAfterMs see `AskOptions`.
 */
export async function askResolver(
  resolver: DnsAddress,
  question: Question,
  context: Pick<ResolutionContext, 'deadline' | 'effects' | 'responsive'>,
  retryAfterMs = RETRY_AFTER_MS,
): Promise<Reply> {
  const options = { recursionDesired: true, deadline: context.deadline, retryAfterMs }
  const unchecked = await ask(resolver, question, { ...options, checkingDisabled: true }, context.effects)
  if (unchecked.kind === 'answer') context.responsive.add(resolver)
  if (unchecked.kind !== 'answer' || !unchecked.message.ra || !REFUSALS.includes(unchecked.message.rcode))
    return unchecked
  const checked = await ask(resolver, question, options, context.effects)
  return checked.kind === 'answer' ? checked : unchecked
}
