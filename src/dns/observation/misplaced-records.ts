import type { Random } from '../../context.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { ask } from '../wire/exchange.ts'
import { isAskable, isWithin } from '../wire/name.ts'
import { hasValue, readTxt, type TxtValue } from '../wire/txt-answer.ts'
import type { Observation } from './observations.ts'

/** How a record came to a wrong name. */
export type Misplacement = 'wildcard' | 'doubled' | 'at_sign' | 'other'

/** What was found where the record does not belong. */
export interface Misplaced {
  readonly name: string
  readonly how: Misplacement
  readonly values: readonly TxtValue[]
  /** The target, where there is an alias instead of TXT records. */
  readonly alias: string | undefined
}

/** Names with many labels have as many parents, and each would be two more questions. */
const MOST_PARENTS = 5
/** The whole check stays well below 120 questions. */
const MOST_PLACES = 50

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
 * it is written) comes before what it may speak for. Providers append the zone to what is typed, so a full name doubles,
 * a first label repeats, and an "@" that is not understood becomes a label; people choose www, a parent, or a label that
 * another service asked for.
 */
export function wrongPlaces(
  name: string,
  zone: string,
  expected: string,
): { name: string; how: Misplacement }[] {
  const [first = ''] = name.split('.')
  const prefix = /^[a-z0-9_-]{1,40}(?==)/i.exec(expected)?.[0].toLowerCase()
  const parents: string[] = []
  for (let rest = name; rest !== zone && rest.includes('.') && parents.length < MOST_PARENTS; ) {
    rest = rest.slice(rest.indexOf('.') + 1)
    if (isWithin(rest, zone)) parents.push(rest)
  }
  const labels = [
    'www',
    ...(prefix === undefined ? [] : [`_${prefix}`, prefix]),
    '_verification',
    '_domain-verification',
    '_dnsauth',
    '_acme-challenge',
    '_dmarc',
    '_domainkey',
    'default._domainkey',
    '_txt',
    'txt',
    'send',
    'mail',
  ]
  const at = (how: Misplacement, names: readonly string[]) => names.map((place) => ({ name: place, how }))
  const places = [
    ...at(
      'wildcard',
      [...parents.toReversed(), name].map((level) => `*.${level}`),
    ),
    ...at('doubled', [`${name}.${zone}`, `${name}.${name}`, `${name}.${zone}.${zone}`, `${first}.${name}`]),
    ...at(
      'at_sign',
      [name, zone].flatMap((level) => ['@', '"@"', "'@'", '\\@'].map((sign) => `${sign}.${level}`)),
    ),
    ...at('other', [
      ...parents,
      ...(isWithin(zone, name) ? [] : [zone, `www.${zone}`]),
      ...labels.map((label) => `${label}.${name}`),
    ]),
  ]
  const known = new Set([name])
  return places
    .filter((place) => {
      if (known.has(place.name) || !isAskable(place.name) || !isWithin(place.name, zone)) return false
      known.add(place.name)
      return true
    })
    .slice(0, MOST_PLACES)
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
      const alias = answer?.aliases[0]
      return { ...place, values: alias === undefined ? (answer?.values ?? []) : [], alias }
    }),
  ])
  const places = found.filter((place) => place.values.length > 0 || place.alias !== undefined)
  return { ...wildcard, places }
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
