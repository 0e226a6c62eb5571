import { validationError } from './http.ts'
import { MISTAKEN_CNAME_TARGET, toTxtData, type ZoneFault, type ZoneStore } from './zones.ts'

/** A claim's correct TXT record and its parts, from which the wrong records of `MISTAKES` are built. */
interface RecordParts {
  readonly name: string
  /** The zone's apex, such as example.com. */
  readonly zone: string
  /** The correct TXT value: `prefix=token`. */
  readonly value: string
  readonly prefix: string
  readonly token: string
}

/** Deviations from a correctly published TXT record; an absent field means no deviation. */
interface Difference {
  /** Name at which records are published instead of the claim's record name. */
  readonly at?: string
  readonly values?: readonly string[]
  /** The target of a CNAME record that is published instead of TXT records. */
  readonly cname?: string
  readonly fault?: ZoneFault
}

type Mistake = readonly [description: string, differ: (parts: RecordParts) => Difference]

/** Ways to publish a claim's record, by id: correctly (`none`), with a common mistake, or with a fault of the zone. */
export const MISTAKES: Readonly<Record<string, Mistake>> = {
  none: ['The right record', () => ({})],
  missing: ['Nothing at all', () => ({ values: [] })],
  doubled_name: ['At a doubled name', ({ name, zone }) => ({ at: `${name}.${zone}` })],
  www: ['At www instead of the domain itself', ({ name }) => ({ at: `www.${name}` })],
  underscore_label: ['At a label with an underscore', ({ name, prefix }) => ({ at: `_${prefix}.${name}` })],
  quotes: ['Quotation marks typed into the value', ({ value }) => ({ values: [`"${value}"`] })],
  trailing_space: ['A space behind the value', ({ value }) => ({ values: [`${value} `] })],
  zero_width: [
    'An invisible character inside',
    ({ prefix, token }) => ({ values: [`${prefix}=\u200b${token}`] }),
  ],
  truncated: ['The end of the value is missing', ({ value }) => ({ values: [value.slice(0, -8)] })],
  lower_case: ['The value in lower case', ({ value }) => ({ values: [value.toLowerCase()] })],
  stale_token: [
    'The value of an older claim',
    ({ prefix }) => ({ values: [`${prefix}=VhPq3ZtOlderClaim0Tb7eYw2RsKm5k`] }),
  ],
  token_only: ['Only what follows the equals sign', ({ token }) => ({ values: [token] })],
  extra_text: ['More text in the value', ({ value }) => ({ values: [`our domain: ${value}`] })],
  split_records: [
    'Two records with half of the value each',
    ({ value }) => ({ values: [value.slice(0, 20), value.slice(20)] }),
  ],
  wildcard: [
    'A wildcard record with other text',
    ({ zone }) => ({ at: `*.${zone}`, values: ['v=spf1 -all'] }),
  ],
  cname: ['A CNAME at the name, to another host', () => ({ cname: MISTAKEN_CNAME_TARGET })],
  cached: ['Resolvers still remember that there was no record', () => ({ fault: 'cached' })],
  silent: ['The name servers do not answer', () => ({ fault: 'silent' })],
  refused: ['The name servers refuse', () => ({ fault: 'refused' })],
  lame: ['The name servers do not know the zone', () => ({ fault: 'lame' })],
}

/**
 * Publishes a claim's record with the given mistake, and sets or clears the zone's fault. First deletes the TXT and CNAME records
 * at the names that mistakes use, so that nothing of the previous call is left.
 * @param mistake a key of `MISTAKES`
 * @throws HttpError 422 for an unknown mistake
 */
export function publishRecord(zones: ZoneStore, record: { name: string; value: string }, mistake: unknown) {
  const [, differ] = Object.entries(MISTAKES).find(([id]) => id === mistake)?.[1] ?? []
  if (differ === undefined)
    throw validationError(`\`mistake\` must be one of ${Object.keys(MISTAKES).join(', ')}.`)
  const { name, value } = record
  const zone = zones.ensureZone(name)
  const [prefix = '', token = ''] = value.split('=')
  for (const used of [name, `${name}.${zone.apex}`, `www.${name}`, `_${prefix}.${name}`, `*.${zone.apex}`])
    for (const type of ['TXT', 'CNAME'] as const) zones.setRecords(used, type, [])
  const parts = { name, zone: zone.apex, value, prefix, token }
  const { at = name, values = [value], cname, fault } = differ(parts)
  if (cname === undefined) zones.setRecords(at, 'TXT', values.map(toTxtData))
  else zones.setRecords(at, 'CNAME', [cname])
  zone.fault = fault
}
