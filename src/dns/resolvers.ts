import type { Search } from './locate.ts'
import { isDnsData, type ResolverObservation, type Target } from './observations.ts'
import { readAnswer } from './servers.ts'
import type { Resolver } from './wire/address.ts'
import { ask, askFor } from './wire/ask.ts'

/** A resolver with a cold cache has to ask everybody from the root on. */
const RESOLVER_MS = 5000
/** With less time than this, silence says nothing. */
const MIN_MS = 1500
/** For records that it has cached. */
const CACHED_MS = 2000

/**
 * Asks a resolver for a record that the authoritative servers have. After SERVFAIL it is asked with checking disabled, which
 * tells whether DNSSEC is the reason, and then for how long it keeps the keys that it has cached.
 */
export async function askResolver(
  resolver: Resolver,
  { name, zone, expected }: Target,
  search: Search,
): Promise<ResolverObservation> {
  const { clock } = search.effects
  const deadline = Math.min(search.deadline, clock.monotonic() + RESOLVER_MS)
  const isHurried = deadline - clock.monotonic() < MIN_MS
  const observe = async (checkingDisabled: boolean): Promise<ResolverObservation> => {
    const options = { recursionDesired: true, checkingDisabled, deadline }
    const reply = await ask(resolver, { name, type: 'TXT' }, options, search.effects)
    const answer = readAnswer(reply, name, expected)
    const message = reply.kind === 'answer' ? reply.message : undefined
    // Without recursion or authority, it helped to find the zone but knows nothing about this name.
    const knowsNothing = message?.ra === false && !message.aa
    return {
      ...answer,
      ...(knowsNothing || (isHurried && answer.outcome === 'timeout') ? { outcome: 'not_checked' } : {}),
      resolver,
      failsValidation: false,
      keysTtl: null,
    }
  }
  const first = await observe(false)
  if (first.outcome !== 'servfail') return first
  const { outcome: unchecked } = await observe(true)
  if (!isDnsData(unchecked)) return first
  // It may have failed because a server was slow: then it has the answer by now.
  const again = await observe(false)
  if (again.outcome !== 'servfail') return again
  const options = { recursionDesired: true, checkingDisabled: true }
  const ttls = await Promise.all(
    (['DS', 'DNSKEY'] as const).map(async (type) => {
      const message = await askFor(resolver, { name: zone, type }, CACHED_MS, search, options)
      return message?.answers.filter((record) => record.type === type).map(({ ttl }) => ttl) ?? []
    }),
  )
  const known = ttls.flat()
  return { ...again, failsValidation: true, keysTtl: known.length > 0 ? Math.max(...known) : null }
}
