import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { ask } from '../wire/exchange.ts'
import { isAskable, isWithin, randomLabel } from '../wire/name.ts'
import { hasText, haveSameValues, readTxt } from '../wire/txt-answer.ts'
import type { Misplacement, Observation, ProbeResult } from './observations.ts'

/** A name with many labels has as many parents, and each costs two queries. */
const MAX_PARENTS = 5
/** Keeps the whole check well below its limit of 120 queries. */
const MAX_CANDIDATES = 50
/** With two machines behind one address, this finds the other one in three of four checks. */
const REPEATS = 2

/**
 * The names where records end up by mistake, the most telling first. A wildcard above or below the name (queried
 * literally) comes before the names it covers. Providers append the zone to what is typed, so a full name doubles, a first
 * label repeats, and an unsupported "@" becomes a label; people choose www, a parent, or a label that another service uses.
 */
export function candidateNames(
  name: string,
  zone: string,
  expected: string,
): { name: string; how: Misplacement }[] {
  const [first = ''] = name.split('.')
  const value = expected.toLowerCase()
  const prefix = /^[a-z0-9_-]{1,40}(?==)/.exec(value)?.[0]
  const parents: string[] = []
  for (let rest = name; rest !== zone && rest.includes('.') && parents.length < MAX_PARENTS; ) {
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
    'mailclaim',
    '_mailclaim',
    'mailclaim._domainkey',
    '_txt',
    'txt',
    'send',
    'mail',
  ]
  const at = (how: Misplacement, names: readonly string[]) =>
    names.map((candidate) => ({ name: candidate, how }))
  const candidates = [
    ...at(
      'wildcard',
      [...parents.toReversed(), name].map((level) => `*.${level}`),
    ),
    ...at('doubled', [
      `${name}.${zone}`,
      `${name}.${name}`,
      `${name}.${zone}.${zone}`,
      `${first}.${name}`,
      `https://${name}.${zone}`,
    ]),
    ...at(
      'at_sign',
      [name, zone].flatMap((level) => ['@', '"@"', "'@'", '\\@'].map((sign) => `${sign}.${level}`)),
    ),
    ...at('other', [
      withoutUnderscores(name),
      `https://${name}`,
      // The value itself, or its token, in the host field.
      ...[name, zone].map((level) => `${value}.${level}`),
      ...(prefix === undefined ? [] : [`${value.slice(prefix.length + 1)}.${name}`]),
      ...parents,
      ...(isWithin(zone, name) ? [] : [zone, `www.${zone}`]),
      ...labels.map((label) => `${label}.${name}`),
    ]),
  ]
  const known = new Set([name])
  return candidates
    .filter((candidate) => {
      if (known.has(candidate.name) || !isAskable(candidate.name) || !isWithin(candidate.name, zone))
        return false
      known.add(candidate.name)
      return true
    })
    .slice(0, MAX_CANDIDATES)
}

/** The name as forms store it that don't allow underscores at the start of a label. */
export function withoutUnderscores(name: string): string {
  return name.replace(/(^|\.)_+/g, '$1')
}

/** Looks for the record at the names where it may be by mistake, for a wildcard, and again at the name, at one authoritative server. */
export async function probeMisplacedRecords(
  at: Observation,
  name: string,
  zone: string,
  expected: string,
  context: ResolutionContext,
): Promise<ProbeResult> {
  const txtAt = txtReader(at, context)
  const [wildcard, again, ...found] = await Promise.all([
    probeWildcard(at, name, zone, context),
    Promise.all(Array.from({ length: REPEATS }, () => txtAt(name))),
    ...candidateNames(name, zone, expected).map(async (candidate) => {
      const answer = await txtAt(candidate.name)
      const alias = answer?.aliases[0]
      return { ...candidate, values: alias === undefined ? (answer?.values ?? []) : [], alias }
    }),
  ])
  const misplaced = found.filter(({ values, alias }) => values.length > 0 || alias !== undefined)
  const isUnsteady = again.some((answer) => answer !== undefined && hasText(answer.values, expected))
  return {
    ...wildcard,
    misplaced,
    ...(isUnsteady && at.server !== undefined ? { unsteady: { host: at.host, server: at.server } } : {}),
  }
}

/**
 * Looks for a wildcard that covers names next to this one, under the same closest encloser (RFC 4592). A query below the
 * name shows whether it covers the name too: a wildcard doesn't reach past a name that exists (section 3.3.1), even if the
 * name's own record has the same value.
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
    haveSameValues(belowName.values, wildcard)
  return { misplaced: [], wildcard, wildcardAlias, coversName }
}

function txtReader({ server }: Observation, context: ResolutionContext) {
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + 2500)
  return async (name: string) => {
    if (server === undefined || !isAskable(name)) return undefined
    const reply = await ask(server, { name, type: 'TXT' }, { deadline }, context.effects)
    return reply.kind === 'answer' && reply.message.aa ? readTxt(reply.message, name) : undefined
  }
}
