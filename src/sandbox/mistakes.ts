import type { DomainClaim } from './claims.ts'
import { DEFAULT_TTL, type RecordData, type Trouble, txtData, type Zones } from './zones.ts'

/** A way to publish the record of a claim; all but the first are what people get wrong. */
export interface Mistake {
  readonly id: string
  readonly says: string
  plant(place: Place): void
}

interface Place {
  readonly name: string
  readonly zone: string
  readonly value: string
  readonly prefix: string
  readonly token: string
  put(name: string, ...records: RecordData[]): void
  alias(name: string, target: string): void
  trouble(trouble: Trouble): void
}

/** Text at the name of the claim that differs from the value it should have. */
const wrongValue = (id: string, says: string, change: (place: Place) => string): Mistake => ({
  id,
  says,
  plant: (place) => place.put(place.name, txtData([change(place)])),
})

const NO_BREAK_SPACE = '\u00a0'
const ZERO_WIDTH_SPACE = '\u200b'

export const MISTAKES: readonly [Mistake, ...Mistake[]] = [
  wrongValue('none', 'The right record', ({ value }) => value),
  { id: 'missing', says: 'Nothing at all', plant: () => {} },
  {
    id: 'doubled_name',
    says: 'Doubled name: the provider added the domain to a full name',
    plant: ({ put, name, zone, value }) => put(`${name}.${zone}`, txtData([value])),
  },
  {
    id: 'www',
    says: 'At www instead of the domain itself',
    plant: ({ put, name, value }) => put(`www.${name}`, txtData([value])),
  },
  {
    id: 'underscore_label',
    says: 'At a label that begins with an underscore',
    plant: ({ put, name, prefix, value }) => put(`_${prefix}.${name}`, txtData([value])),
  },
  wrongValue('quotes', 'Quotes typed into the value', ({ value }) => `"${value}"`),
  wrongValue('trailing_space', 'A space behind the value', ({ value }) => `${value} `),
  wrongValue(
    'no_break_space',
    'A no-break space before the value',
    ({ value }) => `${NO_BREAK_SPACE}${value}`,
  ),
  wrongValue('zero_width', 'An invisible character inside the value', ({ prefix, token }) => {
    return `${prefix}=${ZERO_WIDTH_SPACE}${token}`
  }),
  wrongValue('truncated', 'The end of the value is missing', ({ value }) => value.slice(0, -8)),
  wrongValue('lower_case', 'The value in lower case', ({ value }) => value.toLowerCase()),
  wrongValue('stale_token', 'The value of an older claim', ({ prefix, token }) => {
    return `${prefix}=${[...token].reverse().join('')}`
  }),
  wrongValue('token_only', 'Only what follows the equals sign', ({ token }) => token),
  wrongValue('prefix_only', 'Only what precedes the equals sign', ({ prefix }) => prefix),
  wrongValue('pasted_line', 'A whole line of a zone file in the value', ({ name, value }) => {
    return `${name}. 300 IN TXT "${value}"`
  }),
  wrongValue('extra_text', 'More text in the value', ({ value }) => `TXT=${value}`),
  {
    id: 'split_strings',
    says: 'One record of two strings (this one is right)',
    plant: ({ put, name, value }) => put(name, txtData([value.slice(0, 20), value.slice(20)])),
  },
  {
    id: 'split_records',
    says: 'Two records with half of the value each',
    plant: ({ put, name, value }) => put(name, txtData([value.slice(0, 20)]), txtData([value.slice(20)])),
  },
  {
    id: 'stale_beside_right',
    says: 'The value of an older claim beside the right one (this one is right)',
    plant: ({ put, name, prefix, token, value }) =>
      put(name, txtData([`${prefix}=${[...token].reverse().join('')}`]), txtData([value])),
  },
  {
    id: 'too_many',
    says: 'Forty other TXT records at the name',
    plant: ({ put, name }) =>
      put(name, ...Array.from({ length: 40 }, (_, n) => txtData([`service-${n}=${'x'.repeat(40)}`]))),
  },
  {
    id: 'wildcard',
    says: 'A wildcard record with other text',
    plant: ({ put, zone }) => put(`*.${zone}`, txtData(['v=spf1 -all'])),
  },
  {
    id: 'cname',
    says: 'A CNAME at the name, to a host without the record',
    plant: ({ alias, name }) => alias(name, 'parked.sandbox-dns.test'),
  },
  {
    id: 'cname_dangling',
    says: 'A CNAME at the name, to a host that does not exist',
    plant: ({ alias, name }) => alias(name, 'gone.sandbox-dns.test'),
  },
  {
    id: 'cname_loop',
    says: 'A CNAME at the name, and one back from there',
    plant: ({ alias, name }) => {
      alias(name, `loop.${name}`)
      alias(`loop.${name}`, name)
    },
  },
  { id: 'servfail', says: 'The right record, but the name servers fail', plant: withTrouble('servfail') },
  { id: 'refused', says: 'The right record, but the name servers refuse', plant: withTrouble('refused') },
  {
    id: 'silent',
    says: 'The right record, but the name servers do not answer',
    plant: withTrouble('silent'),
  },
  {
    id: 'lame',
    says: 'The right record, but the name servers do not know the zone',
    plant: withTrouble('lame'),
  },
]

function withTrouble(trouble: Trouble): Mistake['plant'] {
  return (place) => {
    place.put(place.name, txtData([place.value]))
    place.trouble(trouble)
  }
}

/** Clears what was published for the claim before, and publishes its record in this way. */
export function publish(zones: Zones, claim: DomainClaim, mistake: Mistake): void {
  const { name, value } = claim.record
  const zone = zones.ensure(name)
  const [prefix = '', token = ''] = value.split('=')
  for (const used of [name, `${name}.${zone.apex}`, `www.${name}`, `_${prefix}.${name}`, `*.${zone.apex}`]) {
    zones.remove(used, 'TXT')
  }
  for (const used of [name, `loop.${name}`]) zones.remove(used, 'CNAME')
  zone.trouble = undefined
  mistake.plant({
    name,
    zone: zone.apex,
    value,
    prefix,
    token,
    put: (at, ...data) => void zones.set(at, 'TXT', { ttl: DEFAULT_TTL, data }),
    alias: (at, target) =>
      void zones.set(at, 'CNAME', { ttl: DEFAULT_TTL, data: [{ type: 'CNAME', value: target }] }),
    trouble: (trouble) => {
      zone.trouble = trouble
    },
  })
}
