import type { TestZone } from './zone-file.ts'

/** Value that the checks of these zones expect. */
export const EXPECTED = 'mc-verify=Q7dX2kV9pLr4TzB8nW'
export const OTHER_TOKEN = 'mc-verify=A1b2C3d4E5f6G7h8J9'
const SPF = '@ TXT "v=spf1 include:_spf.example.net ~all"'
const RIGHT = `@ TXT "${EXPECTED}"`

const onA = (domain: string, records: string, more: Partial<TestZone> = {}): TestZone => ({
  domain,
  on: { a: records },
  ns: ['a'],
  ...more,
})

/** Creates a zone with the same records at two servers. */
const onBoth = (domain: string, records: string, more: Partial<TestZone> = {}): TestZone => ({
  domain,
  on: { a: records, b: records },
  ns: ['a', 'b'],
  ...more,
})

/** Creates TXT records of about 200 bytes each. */
function fillers(count: number): string {
  return Array.from(
    { length: count },
    (_, index) => `@ TXT "service-${index}-proof=${String(index).padStart(3, '0').repeat(60)}"`,
  ).join('\n')
}

export const ZONES: readonly TestZone[] = [
  onA('six.test', RIGHT, { ipv6: '::1' }),
  onBoth('sub.test', `app TXT "${EXPECTED}"`),
  onA('signed.test', RIGHT, { signed: true }),
  onA('dname.test', `old DNAME new\napp.new TXT "${EXPECTED}"`),
  // outer.test delegates team.outer.test, so its own TXT record at that name is occluded.
  onA('outer.test', 'team NS ns-b.team.outer.test.\nns-b.team A 127.0.53.12\nteam TXT "occluded"'),
  { domain: 'team.outer.test', on: { b: RIGHT }, ns: ['b'], undelegated: true },
  onA('large.test', `${RIGHT}\n${fillers(12)}`),

  onBoth('soamin.test', 'www A 192.0.2.1', { minimum: 120 }),
  onBoth('wild.test', '* TXT "v=spf1 -all"'),
  // The wildcard doesn't match a.b, which exists, but it matches the wrong names at which the check looks for the record.
  onBoth('wildhigh.test', `* TXT "${EXPECTED}"\na.b A 192.0.2.1`),
  onBoth('dangling.test', 'app CNAME gone'),

  onA('cachedabsence.test', 'www A 192.0.2.1', { minimum: 77 }),
  onA('cachedapex.test', `${SPF}\n@ TXT "${OTHER_TOKEN}"`, { ttl: 222 }),
  onA('dsleft.test', RIGHT, { ds: `12345 13 2 ${'ab'.repeat(32)}` }),
]
