import { collectDnsObservations, type DnsCheckRequest } from './check.ts'
import { detectInterception, isConclusive } from './observations.ts'
import type { DnsEffects } from './wire/ask.ts'
import { deduplicateValues, haveSameValues, type TxtRdata } from './wire/txt-answer.ts'

/** Result of a TXT lookup at the authoritative servers of a name. */
export interface TxtLookupResult {
  /** Zone that holds the name; null if it wasn't found. */
  readonly zone: string | null
  /** Host names of the zone's name servers (an address if no name is known); empty if the zone wasn't found. */
  readonly nameservers: readonly string[]
  /** Complete TXT set at the name, with its TTL in seconds (null for an empty set); null if the set isn't known for certain. */
  readonly set: { readonly values: readonly TxtRdata[]; readonly ttl: number | null } | null
  /** Why the complete TXT set isn't known, for the end of an error message; null if it is known. */
  readonly reason: string | null
  /** TXT values of name servers if the complete set isn't known, for example because the servers disagree; otherwise empty. */
  readonly partial: readonly TxtRdata[]
}

/**
 * Looks up the complete TXT set of a name at the authoritative servers of its zone, because resolvers' caches might be outdated.
 * The set counts as unknown, for example, if the servers disagree, or if the zone might be this network's own instead of the
 * public one.
 *
 * @throws CliError `usage`, exit 2, if the name isn't a domain name; the abort reason of `effects.signal`
 */
export async function lookUpTxtInZone(
  name: string,
  request: Pick<DnsCheckRequest, 'resolvers' | 'authoritativePort' | 'deadline'>,
  effects: DnsEffects,
): Promise<TxtLookupResult> {
  const seen = await collectDnsObservations({ ...request, name, expected: null }, effects, false)
  const { location } = seen
  const { genuine, interception } = detectInterception(seen)
  const answers = genuine.filter(({ outcome, authoritative }) => isConclusive(outcome) && authoritative)
  const [first] = answers
  const [zone, hosts] = location.kind === 'found' ? [location.zone, location.hosts] : [null, new Map()]
  const result = { zone, nameservers: [...hosts.keys()], set: null, reason: null, partial: [] }
  const partial = answers.flatMap(({ values }) => values)
  const unknown = (reason: string): TxtLookupResult => ({ ...result, reason, partial })
  if (location.kind === 'no_domain') return unknown(`${location.domain} doesn't exist in DNS`)
  if (location.kind === 'lost')
    return unknown(`its name servers weren't found: ${location.replies.join(', ') || 'no resolver'}`)
  if (interception === 'inside') return unknown(`this network has its own ${zone}`)
  if (first === undefined) return unknown(`no name server of ${zone} gave a complete authoritative answer`)
  const alias = answers.find(({ outcome }) => outcome === 'alias')?.alias
  if (alias) return unknown(`${name} is an alias (CNAME) for ${alias}`)
  if (!answers.every((answer) => haveSameValues(answer.values, first.values)))
    return unknown(`the name servers of ${zone} disagree`)
  const values = deduplicateValues(first.values)
  // Treat the highest TTL as the zone's own: a server with a lower one may answer from a cache, which counts the TTL down.
  const ttl = values.length === 0 ? null : Math.max(...answers.map((answer) => answer.ttl ?? 0))
  return { ...result, set: { values, ttl } }
}
