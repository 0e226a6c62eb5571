import { type CheckRequest, observe } from './check.ts'
import { isDnsData, separateIntercepted } from './observations.ts'
import type { DnsEffects } from './wire/ask.ts'
import { distinctValues, haveSameValues, type TxtValue } from './wire/txt-answer.ts'

/** The zone of a name and its TXT set. */
export interface TxtLookup {
  /** Null if it wasn't found. */
  readonly zone: string | null
  /** The hosts of its name servers. */
  readonly nameservers: readonly string[]
  /** All TXT values at the name, each once; null if that isn't certain. The TTL is in seconds, null without values. */
  readonly set: { readonly values: readonly TxtValue[]; readonly ttl: number | null } | null
  /** Why the set isn't known, as the rest of a sentence; null if it is. */
  readonly reason: string | null
  /** What single servers have: perhaps not all, and perhaps no longer. */
  readonly partial: readonly TxtValue[]
}

/**
 * Asks the name servers of a zone for all TXT values at a name. They count only if at least one server gave a complete
 * authoritative answer, and all that did agree. Resolvers are never asked for them: a cache may be out of date. Rejects only if
 * the signal in the effects aborts.
 */
export async function lookUpTxt(
  name: string,
  request: Pick<CheckRequest, 'resolvers' | 'authoritativePort' | 'deadline'>,
  effects: DnsEffects,
): Promise<TxtLookup> {
  const seen = await observe({ ...request, name, expected: null }, effects, false)
  const { location } = seen
  const { genuine, interception } = separateIntercepted(seen)
  const answers = genuine.filter(({ outcome, authoritative }) => isDnsData(outcome) && authoritative)
  const [first] = answers
  const [zone, hosts] = location.kind === 'found' ? [location.zone, location.hosts] : [null, new Map()]
  const result = { zone, nameservers: [...hosts.keys()], set: null, reason: null, partial: [] }
  const partial = answers.flatMap(({ values }) => values)
  const unknown = (reason: string): TxtLookup => ({ ...result, reason, partial })
  if (location.kind === 'no_domain') return unknown(`${location.domain} doesn't exist in DNS`)
  if (location.kind === 'lost')
    return unknown(`its name servers weren't found: ${location.replies.join(', ') || 'no resolver'}`)
  if (interception === 'inside') return unknown(`this network has its own ${zone}`)
  if (first === undefined) return unknown(`no name server of ${zone} gave a complete authoritative answer`)
  const alias = answers.find(({ outcome }) => outcome === 'alias')?.alias
  if (alias) return unknown(`${name} is an alias (CNAME) for ${alias}`)
  if (!answers.every((answer) => haveSameValues(answer.values, first.values)))
    return unknown(`the name servers of ${zone} disagree`)
  const values = distinctValues(first.values)
  // A server that counts the TTL down answers from a cache.
  const ttl = values.length === 0 ? null : Math.max(...answers.map((answer) => answer.ttl ?? 0))
  return { ...result, set: { values, ttl } }
}
