import type { DomainClaim } from './claims.ts'
import { Problem } from './problems.ts'
import type { SandboxState } from './sandbox-state.ts'
import {
  copyOf,
  DEFAULT_TTL,
  NAME_SERVERS,
  NS_TTL,
  OTHER_SERVER,
  type RecordData,
  type Trouble,
  txtData,
  type Zones,
} from './zones.ts'

/** A way to publish the record of a claim; all but the first are what people get wrong. */
export interface Mistake {
  readonly id: string
  readonly description: string
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
  /** Gives the zone a second name server, at another address, that is in trouble or outdated. */
  second(differs: Trouble | 'outdated'): void
}

/** Text at the name of the claim that differs from the value it should have. */
const wrongValue = (id: string, description: string, change: (place: Place) => string): Mistake => ({
  id,
  description,
  plant: (place) => place.put(place.name, txtData([change(place)])),
})

const NO_BREAK_SPACE = '\u00a0'
const ZERO_WIDTH_SPACE = '\u200b'

export const MISTAKES: readonly [Mistake, ...Mistake[]] = [
  wrongValue('none', 'The right record', ({ value }) => value),
  { id: 'missing', description: 'Nothing at all', plant: () => {} },
  {
    id: 'doubled_name',
    description: 'Doubled name: the provider added the domain to a full name',
    plant: ({ put, name, zone, value }) => put(`${name}.${zone}`, txtData([value])),
  },
  {
    id: 'www',
    description: 'At www instead of the domain itself',
    plant: ({ put, name, value }) => put(`www.${name}`, txtData([value])),
  },
  {
    id: 'underscore_label',
    description: 'At a label that begins with an underscore',
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
  wrongValue('extra_text', 'More text in the value', ({ value }) => `our domain: ${value}`),
  {
    id: 'split_strings',
    description: 'One record of two strings (this one is right)',
    plant: ({ put, name, value }) => put(name, txtData([value.slice(0, 20), value.slice(20)])),
  },
  {
    id: 'split_records',
    description: 'Two records with half of the value each',
    plant: ({ put, name, value }) => put(name, txtData([value.slice(0, 20)]), txtData([value.slice(20)])),
  },
  {
    id: 'stale_beside_right',
    description: 'The value of an older claim beside the right one (this one is right)',
    plant: ({ put, name, prefix, token, value }) =>
      put(name, txtData([`${prefix}=${[...token].reverse().join('')}`]), txtData([value])),
  },
  {
    id: 'too_many',
    description: 'Forty other TXT records at the name',
    plant: ({ put, name }) =>
      put(name, ...Array.from({ length: 40 }, (_, n) => txtData([`service-${n}=${'x'.repeat(40)}`]))),
  },
  {
    id: 'wildcard',
    description: 'A wildcard record with other text',
    plant: ({ put, zone }) => put(`*.${zone}`, txtData(['v=spf1 -all'])),
  },
  {
    id: 'cname',
    description: 'A CNAME at the name, to a host without the record',
    plant: ({ alias, name }) => alias(name, 'parked.sandbox-dns.test'),
  },
  {
    id: 'cname_dangling',
    description: 'A CNAME at the name, to a host that does not exist',
    plant: ({ alias, name }) => alias(name, 'gone.sandbox-dns.test'),
  },
  {
    id: 'cname_loop',
    description: 'A CNAME at the name, and one back from there',
    plant: ({ alias, name }) => {
      alias(name, `loop.${name}`)
      alias(`loop.${name}`, name)
    },
  },
  {
    id: 'servfail',
    description: 'The right record, but the name servers fail',
    plant: withTrouble('servfail'),
  },
  {
    id: 'refused',
    description: 'The right record, but the name servers refuse',
    plant: withTrouble('refused'),
  },
  {
    id: 'silent',
    description: 'The right record, but the name servers do not answer',
    plant: withTrouble('silent'),
  },
  {
    id: 'lame',
    description: 'The right record, but the name servers do not know the zone',
    plant: withTrouble('lame'),
  },
  {
    id: 'second_outdated',
    description: 'The right record, but the second name server has an older zone',
    plant: withSecond('outdated'),
  },
  {
    id: 'second_servfail',
    description: 'The right record, but the second name server fails',
    plant: withSecond('servfail'),
  },
  {
    id: 'second_refused',
    description: 'The right record, but the second name server refuses',
    plant: withSecond('refused'),
  },
  {
    id: 'second_silent',
    description: 'The right record, but the second name server does not answer',
    plant: withSecond('silent'),
  },
  {
    id: 'second_lame',
    description: 'The right record, but the second name server does not know the zone',
    plant: withSecond('lame'),
  },
]

function withSecond(differs: Trouble | 'outdated'): Mistake['plant'] {
  return (place) => {
    place.second(differs)
    place.put(place.name, txtData([place.value]))
  }
}

function withTrouble(trouble: Trouble): Mistake['plant'] {
  return (place) => {
    place.put(place.name, txtData([place.value]))
    place.trouble(trouble)
  }
}

/**
 * Clears what was published for the claim before, and publishes its record in this way.
 * @throws Problem 409 if a second name server is needed and this system has no address for it.
 */
export function publish(
  { zones, dns }: Pick<SandboxState, 'zones' | 'dns'>,
  claim: DomainClaim,
  mistake: Mistake,
): void {
  const { name, value } = claim.record
  const zone = zones.ensure(name)
  const [prefix = '', token = ''] = value.split('=')
  for (const used of [name, `${name}.${zone.apex}`, `www.${name}`, `_${prefix}.${name}`, `*.${zone.apex}`]) {
    zones.remove(used, 'TXT')
  }
  for (const used of [name, `loop.${name}`]) zones.remove(used, 'CNAME')
  zone.trouble = undefined
  if (zone.second !== undefined) {
    zone.second = undefined
    setServers(zones, zone.apex, NAME_SERVERS)
  }
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
    second: (differs) => {
      if (!dns.hasOther) {
        throw new Problem(
          409,
          'no_second_address',
          `This system has no ${OTHER_SERVER.address} for a second server.`,
        )
      }
      setServers(zones, zone.apex, [NAME_SERVERS[0], OTHER_SERVER.host])
      zone.second = differs === 'outdated' ? copyOf(zone) : differs
    },
  })
}

function setServers(zones: Zones, apex: string, hosts: readonly string[]): void {
  zones.set(apex, 'NS', { ttl: NS_TTL, data: hosts.map((value) => ({ type: 'NS', value })) })
}
