import { keyTexts } from './dnssec.ts'
import type { Search } from './locate.ts'
import { isDnsData, type ResolverObservation } from './observations.ts'
import { readAnswer } from './servers.ts'
import type { Resolver } from './wire/address.ts'
import { ask, query } from './wire/ask.ts'
import { type Message, nsHosts } from './wire/message.ts'

/** A resolver with a cold cache has to ask everybody from the root on. */
const RESOLVER_MS = 5000

/**
 * Asks a resolver for a record that the authoritative servers have. If it lacks that, it is asked what else of the zone it has
 * cached: the NS set or, after SERVFAIL that checking disabled takes away, the keys.
 *
 * @param zone undefined if there is no authoritative server to compare with
 */
export async function askResolver(
  resolver: Resolver,
  zone: string | undefined,
  search: Search,
): Promise<ResolverObservation> {
  const { name, expected } = search
  const deadline = search.deadline.limitedTo(RESOLVER_MS)
  const observe = async (checkingDisabled: boolean): Promise<ResolverObservation> => {
    const question = { name, type: 'TXT', recursionDesired: true, checkingDisabled } as const
    const reply = await ask(resolver, question, deadline, search.effects)
    const answer = readAnswer(reply, name, expected)
    const message = reply.kind === 'answer' ? reply.message : undefined
    // Without recursion or authority, it helped to find the zone but knows nothing about this name.
    const knowsNothing = message?.ra === false && !message.aa
    return {
      ...answer,
      ...(knowsNothing ? { outcome: 'not_checked' } : {}),
      ...{ resolver, failsValidation: false, explanation: message?.explanation ?? null, cached: null },
    }
  }
  const cachedSet = async (
    types: readonly ('NS' | 'DS' | 'DNSKEY')[],
    textsOf: (message: Message) => readonly string[],
  ) => {
    const flags = { recursionDesired: true, checkingDisabled: true, dnssecOk: true }
    const asked = types.map((type) => query(resolver, { name: zone ?? name, type, ...flags }, search))
    const messages = (await Promise.all(asked)).flatMap((message) => message ?? [])
    const ttls = messages.flatMap(({ answers }) => answers.map(({ ttl }) => ttl))
    return { texts: messages.flatMap(textsOf), ttl: Math.max(0, ...ttls) }
  }
  const first = await observe(false)
  if (zone === undefined) return first
  if (isDnsData(first.outcome) && first.outcome !== 'match')
    return { ...first, cached: await cachedSet(['NS'], ({ answers }) => nsHosts(answers, zone)) }
  if (first.outcome !== 'servfail') return first
  const { outcome: unchecked } = await observe(true)
  if (!isDnsData(unchecked)) return first
  // It may have failed because a server was slow: then it has the answer by now.
  const again = await observe(false)
  if (again.outcome !== 'servfail') return again
  return { ...again, failsValidation: true, cached: await cachedSet(['DS', 'DNSKEY'], keyTexts) }
}
