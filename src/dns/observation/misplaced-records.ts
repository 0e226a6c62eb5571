import type { Random } from '../../context.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { ask } from '../wire/exchange.ts'
import { isAskable, isWithin } from '../wire/name.ts'
import { hasValue, readTxt, type TxtValue } from '../wire/txt-answer.ts'
import type { Observation } from './observations.ts'

/** What was found where the record does not belong. */
export interface Misplaced {
  readonly name: string
  readonly how: 'wildcard' | 'doubled' | 'other'
  readonly values: readonly TxtValue[]
}

export interface ProbeResult {
  readonly places: readonly Misplaced[]
  /** The TXT set that any unused name beside this one has, by a wildcard; empty without one. */
  readonly wildcard: readonly TxtValue[]
  /** The alias that any unused name beside this one has, by a wildcard. */
  readonly wildcardAlias: string | undefined
  /** Whether that wildcard speaks for the name as well, which it does only where the name has no record of its own. */
  readonly coversName: boolean
}

/**
 * The places where records end up by mistake, the most telling first. A wildcard above or below the name (asked for as
 * it is written) comes before what it may speak for. Providers append the zone to what is typed, so a full name doubles;
 * people choose www, a parent, or a label that another service asked for.
 */
export function wrongPlaces(
  name: string,
  zone: string,
  expected: string,
): { name: string; how: Misplaced['how'] }[] {
  const doubled = [`${name}.${zone}`, `${name}.${name}`]
  const prefix = /^[a-z0-9_-]{1,40}(?==)/i.exec(expected)?.[0].toLowerCase()
  const parents: string[] = []
  for (let rest = name; rest !== zone && rest.includes('.'); ) {
    rest = rest.slice(rest.indexOf('.') + 1)
    if (isWithin(rest, zone)) parents.push(rest)
  }
  const labels = [
    'www',
    ...(prefix === undefined ? [] : [`_${prefix}`, prefix]),
    '_verification',
    '_domain-verification',
    '_dnsauth',
    '_dmarc',
    '_txt',
    'txt',
    'send',
    'mail',
    '@',
  ]
  const others = [
    ...parents,
    ...labels.map((label) => `${label}.${name}`),
    ...(name === zone ? [] : [`www.${zone}`]),
  ]
  const wildcards = [...parents.toReversed(), name].map((level) => `*.${level}`)
  const seen = new Set([name])
  return [
    ...wildcards.map((place) => ({ name: place, how: 'wildcard' as const })),
    ...doubled.map((place) => ({ name: place, how: 'doubled' as const })),
    ...others.map((place) => ({ name: place, how: 'other' as const })),
  ].filter((place) => {
    if (seen.has(place.name) || !isAskable(place.name)) return false
    seen.add(place.name)
    return isWithin(place.name, zone)
  })
}

/** Looks at the wrong places, and for a wildcard, at one authoritative server. */
export async function probeMisplacedRecords(
  at: Observation,
  name: string,
  zone: string,
  expected: string,
  context: ResolutionContext,
): Promise<ProbeResult> {
  const txtAt = txtReader(at, context)
  const [wildcard, ...found] = await Promise.all([
    probeWildcard(at, name, zone, context),
    ...wrongPlaces(name, zone, expected).map(async (place) => {
      const answer = await txtAt(place.name)
      return { ...place, values: answer?.aliases.length === 0 ? answer.values : [] }
    }),
  ])
  return { ...wildcard, places: found.filter((place) => place.values.length > 0) }
}

/**
 * Looks for a wildcard that covers names beside this one: under the same closest encloser (RFC 4592). Whether it covers
 * the name too shows below the name: no wildcard reaches past a name that exists (section 3.3.1), even where a record of
 * its own says the very same.
 */
export async function probeWildcard(
  at: Observation,
  name: string,
  zone: string,
  context: ResolutionContext,
): Promise<ProbeResult> {
  const txtAt = txtReader(at, context)
  const unused = randomLabel(context.effects.random)
  const [beside, belowName] = await Promise.all([
    txtAt(`${unused}.${name === zone ? name : name.slice(name.indexOf('.') + 1)}`),
    name === zone ? undefined : txtAt(`${unused}.${name}`),
  ])
  const wildcard = beside?.values ?? []
  const wildcardAlias = beside?.aliases[0]
  const coversName =
    belowName !== undefined &&
    belowName.aliases[0] === wildcardAlias &&
    belowName.values.length === wildcard.length &&
    belowName.values.every((value) => hasValue(wildcard, value.bytes))
  return { places: [], wildcard, wildcardAlias, coversName }
}

function txtReader({ server }: Observation, context: ResolutionContext) {
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + 2500)
  return async (name: string) => {
    if (server === undefined || !isAskable(name)) return undefined
    const reply = await ask(server, { name, type: 'TXT' }, { deadline }, context.effects)
    return reply.kind === 'answer' && reply.message.aa ? readTxt(reply.message, name) : undefined
  }
}

function randomLabel(random: Random): string {
  return `mc-${Buffer.from(random.bytes(8)).toString('hex')}`
}
