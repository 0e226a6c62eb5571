import { validationError } from './http.ts'
import { PARKED_HOST, type RecordData, type RecordType, type Trouble, txt, type Zones } from './zones.ts'

/** What a mistake is made of. */
interface Place {
  readonly name: string
  readonly zone: string
  /** The right value, and what precedes and follows its equals sign. */
  readonly value: string
  readonly prefix: string
  readonly token: string
}

/** What is published, and how the name servers behave then. */
interface Published {
  readonly at?: string
  readonly type?: RecordType
  /** Nothing if left out. */
  readonly data?: readonly RecordData[]
  readonly trouble?: Trouble
}

/** A way to publish the record of a claim; all but the first are what people get wrong. */
interface Mistake {
  readonly id: string
  readonly description: string
  publish(place: Place): Published
}

function mistake(id: string, description: string, publish: Mistake['publish']): Mistake {
  return { id, description, publish }
}

/** Text at the right name that differs from the right value. */
function wrongValue(id: string, description: string, change: (place: Place) => string): Mistake {
  return mistake(id, description, (place) => ({ data: [txt(change(place))] }))
}

/** The right value at a wrong name. */
function wrongName(id: string, description: string, name: (place: Place) => string): Mistake {
  return mistake(id, description, (place) => ({ at: name(place), data: [txt(place.value)] }))
}

/** The right record, that can't be seen as it should. */
function trouble(kind: Trouble, description: string): Mistake {
  return mistake(kind, description, ({ value }) => ({ data: [txt(value)], trouble: kind }))
}

export const MISTAKES: readonly [Mistake, ...Mistake[]] = [
  wrongValue('none', 'The right record', ({ value }) => value),
  mistake('missing', 'Nothing at all', () => ({})),
  wrongName('doubled_name', 'At a doubled name', ({ name, zone }) => `${name}.${zone}`),
  wrongName('www', 'At www instead of the domain itself', ({ name }) => `www.${name}`),
  wrongName('underscore_label', 'At a label with an underscore', ({ name, prefix }) => `_${prefix}.${name}`),
  wrongValue('quotes', 'Quotation marks typed into the value', ({ value }) => `"${value}"`),
  wrongValue('trailing_space', 'A space behind the value', ({ value }) => `${value} `),
  wrongValue(
    'zero_width',
    'An invisible character inside',
    ({ prefix, token }) => `${prefix}=\u200b${token}`,
  ),
  wrongValue('truncated', 'The end of the value is missing', ({ value }) => value.slice(0, -8)),
  wrongValue('lower_case', 'The value in lower case', ({ value }) => value.toLowerCase()),
  wrongValue(
    'stale_token',
    'The value of an older claim',
    ({ prefix }) => `${prefix}=VhPq3ZtOlderClaim0Tb7eYw2RsKm5k`,
  ),
  wrongValue('token_only', 'Only what follows the equals sign', ({ token }) => token),
  wrongValue('extra_text', 'More text in the value', ({ value }) => `our domain: ${value}`),
  mistake('split_records', 'Two records with half of the value each', ({ value }) => ({
    data: [txt(value.slice(0, 20)), txt(value.slice(20))],
  })),
  mistake('wildcard', 'A wildcard record with other text', ({ zone }) => ({
    at: `*.${zone}`,
    data: [txt('v=spf1 -all')],
  })),
  mistake('cname', 'A CNAME at the name, to another host', () => ({ type: 'CNAME', data: [PARKED_HOST] })),
  trouble('cached', 'The right record, but resolvers still remember that there was none'),
  trouble('silent', 'The right record, but the name servers do not answer'),
  trouble('refused', 'The right record, but the name servers refuse'),
  trouble('lame', 'The right record, but the name servers do not know the zone'),
]

/** @throws Problem 422 for an id that no mistake has */
export function mistakeOf(id: unknown): Mistake {
  const found = MISTAKES.find((mistake) => mistake.id === id)
  if (found !== undefined) return found
  throw validationError(`\`mistake\` must be one of ${MISTAKES.map((mistake) => mistake.id).join(', ')}.`)
}

/** Clears what was published for the record of a claim before, and publishes it in this way. */
export function publish(zones: Zones, record: { name: string; value: string }, { publish }: Mistake): void {
  const { name, value } = record
  const zone = zones.ensure(name)
  const [prefix = '', token = ''] = value.split('=')
  for (const used of [name, `${name}.${zone.apex}`, `www.${name}`, `_${prefix}.${name}`, `*.${zone.apex}`])
    for (const type of ['TXT', 'CNAME'] as const) zones.set(used, type, [])
  const published = publish({ name, zone: zone.apex, value, prefix, token })
  zones.set(published.at ?? name, published.type ?? 'TXT', published.data ?? [])
  zone.trouble = published.trouble
}
