import { isZoneFound, type SearchStart, withSearch } from '../resolution/find-zone.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { describeReplies } from '../resolution/resolver-replies.ts'
import { type Location, locateZone } from '../resolution/zone-search.ts'
import type { DnsEffects } from '../wire/effects.ts'
import { limitQueries } from '../wire/query-limit.ts'
import type { TxtValue } from '../wire/txt-answer.ts'
import { surveyNameServers } from './name-server-survey.ts'
import { isDnsData, type Observation } from './observations.ts'

/** The TXT values at a name, as the zone's own name servers have them. */
export type TxtSet =
  | {
      readonly kind: 'seen'
      readonly zone: string
      /** Each once. */
      readonly values: readonly TxtValue[]
      /** Seconds; null without values. */
      readonly ttl: number | null
    }
  | {
      readonly kind: 'unseen'
      /** Undefined if it wasn't found. */
      readonly zone: string | undefined
      /** Why, as the rest of a sentence. */
      readonly reason: string
      /** Whether the domain doesn't exist. */
      readonly isAbsent?: boolean
      /** Whether the name is an alias: no TXT record can stand beside a CNAME. */
      readonly isAlias?: boolean
      /** What is particular to the name in the reason, for a summary about several. */
      readonly particulars?: Readonly<Record<string, string | undefined>>
      /** What single servers have: perhaps not all, and perhaps no longer. */
      readonly partial: readonly TxtValue[]
    }

const TIMEOUT_MS = 9400
/** The time limit for finding the zone; the rest is for its servers. */
const LOCATE_MS = 6000
const SERVER_MS = 4700
const MAX_QUERIES = 96

/**
 * Asks the name servers of a zone for all TXT values at a name. The values are only seen if at least one server gave a
 * complete authoritative answer, and all that did agree. Resolvers are never asked: a cache may be out of date. Rejects
 * only if the signal in the effects aborts.
 */
export async function observeTxtSet(
  name: string,
  start: Omit<SearchStart, 'timeoutMs'>,
  effects: DnsEffects,
): Promise<TxtSet> {
  const limited = { ...effects, dns: limitQueries(effects.dns, MAX_QUERIES) }
  return await withSearch({ ...start, timeoutMs: TIMEOUT_MS }, limited, async (context) => {
    const locateUntil = effects.clock.monotonic() + LOCATE_MS
    const location = await locateZone(name, { ...context, deadline: locateUntil })
    if (!isZoneFound(location))
      return {
        kind: 'unseen',
        zone: undefined,
        reason: whyNotFound(location, context),
        isAbsent: location.kind === 'no-domain',
        particulars: { ZONE: location.kind === 'no-domain' ? location.domain : undefined },
        partial: [],
      }
    const survey = surveyNameServers(location, { name, expected: null, serverMs: SERVER_MS }, context)
    await survey.done
    return readSet(name, location.delegation.zone, survey.seen())
  })
}

function whyNotFound(location: Location, { resolvers }: Pick<ResolutionContext, 'resolvers'>): string {
  if (location.kind === 'no-domain') return `${location.domain} doesn't exist in DNS`
  const said = location.kind === 'lost' ? describeReplies(location.resolverReplies, resolvers) : ''
  return said === '' ? "its zone wasn't found in DNS" : `its name servers weren't found: ${said}`
}

function readSet(name: string, zone: string, servers: readonly Observation[]): TxtSet {
  const answers = servers.filter(({ outcome }) => isDnsData(outcome))
  const unseen = (reason: string): Extract<TxtSet, { kind: 'unseen' }> => ({
    kind: 'unseen',
    zone,
    reason,
    particulars: { ZONE: zone },
    partial: answers.flatMap(({ values }) => values),
  })
  const complete = answers.filter(({ truncated }) => truncated !== true)
  const [first] = complete
  if (first === undefined)
    return unseen(
      servers.some(({ truncated }) => truncated === true)
        ? `the name servers of ${zone} gave truncated answers`
        : `no name server of ${zone} gave an authoritative answer`,
    )
  const alias = complete.find(({ aliases }) => aliases.length > 0)
  if (alias !== undefined)
    return {
      ...unseen(`${name} is an alias (CNAME) for ${alias.aliases[0]}`),
      isAlias: true,
      particulars: { ZONE: zone, TARGET: alias.aliases[0] },
    }
  const values = byStrings(first)
  const disagrees = complete.some((other) => {
    const others = byStrings(other)
    return others.size !== values.size || [...others.keys()].some((key) => !values.has(key))
  })
  if (disagrees) return unseen(`the name servers of ${zone} disagree`)
  // A server that counts the TTL down answers from a cache.
  const ttl = values.size === 0 ? null : Math.max(...complete.map((server) => server.ttl ?? 0))
  return { kind: 'seen', zone, values: [...values.values()], ttl }
}

/** The values of an answer by the exact bytes of their strings. */
function byStrings({ values }: Observation): Map<string, TxtValue> {
  return new Map(
    values.map((value) => [
      value.strings.map((bytes) => Buffer.from(bytes).toString('hex')).join(' '),
      value,
    ]),
  )
}
