import type packet from 'dns-packet'
import { expect, test } from 'vitest'
import { lookUpTxtInZone } from '../../src/dns/lookup.ts'
import { AA, type Asked, type FakeReply, RCODE } from './fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedEffects } from './timed-check.ts'

const FIRST = '192.0.2.11'
const SECOND = '192.0.2.12'
const SPF = 'v=spf1 -all'
const HOSTS = { 'ns1.shop.com': [FIRST], 'ns2.shop.com': [SECOND] }

async function runLookup(
  records: readonly packet.Answer[],
  odd?: (asked: Asked) => FakeReply | undefined,
  name = 'shop.com',
  servers: FakeZone['servers'] = HOSTS,
  authoritativePort = 53,
) {
  const zones: FakeZone[] = [
    { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
    { apex: 'shop.com', servers, records },
  ]
  const { effects, asked } = timedEffects(fakeInternet(zones, odd))
  const seen = await lookUpTxtInZone(
    name,
    { resolvers: [{ address: RESOLVER, port: 53 }], authoritativePort },
    effects,
  )
  const texts = seen.set?.values.map(({ strings }) => strings.map((bytes) => Buffer.from(bytes)))
  return { seen, texts, asked, ms: effects.clock.monotonic() }
}

const txtAt = (server: string, reply: FakeReply) => (asked: Asked) =>
  asked.server === server && asked.type === 'TXT' ? reply : undefined

test('lookUpTxtInZone returns the zone, its name servers, and the TXT set with its exact bytes and TTL', async () => {
  const binary = Buffer.from([0, 0xff, 0x22, 0x5c])
  const split: packet.Answer = { type: 'TXT', name: 'shop.com', ttl: 300, data: ['a'.repeat(255), binary] }
  const { seen, texts, asked } = await runLookup([txt('shop.com', SPF), split])
  const found = { zone: 'shop.com', nameservers: Object.keys(HOSTS), set: { ttl: 300 }, reason: null }
  expect(seen).toMatchObject(found)
  expect(texts).toEqual([[Buffer.from(SPF)], [Buffer.from('a'.repeat(255)), binary]])
  expect(asked.filter(({ server, type }) => server === RESOLVER && type === 'TXT')).toEqual([])
})

test.each(['shop.com', 'app.shop.com'])(
  'lookUpTxtInZone returns an empty TXT set for the name %s if it has no TXT records',
  async (name) => {
    const { seen } = await runLookup([], undefined, name)
    expect(seen).toMatchObject({ zone: 'shop.com', set: { values: [], ttl: null } })
  },
)

test('lookUpTxtInZone returns the TXT set if one of two name servers refuses the TXT query', async () => {
  const { texts } = await runLookup([txt('shop.com', SPF)], txtAt(FIRST, { flags: RCODE.REFUSED }))
  expect(texts).toEqual([[Buffer.from(SPF)]])
})

test('lookUpTxtInZone returns the TXT set of servers with private addresses only if the authoritative port is not 53', async () => {
  const inside = { 'dc1.shop.com': ['10.0.0.1'] }
  const { seen } = await runLookup([txt('shop.com', SPF)], undefined, 'shop.com', inside)
  expect(seen).toMatchObject({ set: null, reason: expect.stringContaining('its own shop.com') })
  expect((await runLookup([txt('shop.com', SPF)], undefined, 'shop.com', inside, 5353)).texts).toHaveLength(1)
})

test('lookUpTxtInZone ignores a name server that answers without the AA bit', async () => {
  const { seen, texts } = await runLookup(
    [txt('shop.com', SPF)],
    txtAt(FIRST, { answers: [txt('shop.com', 'x')] }),
  )
  expect([texts, seen.reason]).toEqual([[[Buffer.from(SPF)]], null])
})

test('lookUpTxtInZone returns the highest TTL that the name servers give for the TXT set', async () => {
  const counted: packet.Answer = { type: 'TXT', name: 'shop.com', ttl: 17, data: SPF }
  const { seen } = await runLookup([txt('shop.com', SPF)], txtAt(FIRST, { flags: AA, answers: [counted] }))
  expect(seen.set?.ttl).toBe(300)
})

test.each<[string, packet.Answer[], ((asked: Asked) => FakeReply | undefined) | undefined, object]>([
  [
    'the name servers disagree',
    [txt('shop.com', SPF)],
    txtAt(FIRST, { flags: AA, answers: [txt('shop.com', 'x')] }),
    { reason: 'the name servers of shop.com disagree' },
  ],
  [
    'no name server answers',
    [],
    ({ server }) => (server === FIRST || server === SECOND ? 'silent' : undefined),
    { zone: 'shop.com', reason: 'no name server of shop.com gave a complete authoritative answer' },
  ],
  [
    'the name is an alias',
    [{ type: 'CNAME', name: 'shop.com', ttl: 60, data: 'www.shop.com' }],
    undefined,
    { reason: 'shop.com is an alias (CNAME) for www.shop.com' },
  ],
  [
    'no resolver answers',
    [],
    () => 'silent',
    { zone: null, reason: expect.stringContaining("weren't found: 192.0.2.53: no answer") },
  ],
])('lookUpTxtInZone returns a reason instead of the TXT set if %s', async (_case, records, odd, expected) => {
  const { seen, ms } = await runLookup(records, odd)
  expect(seen).toMatchObject({ set: null, ...expected })
  expect(ms).toBeLessThan(10_000)
})

test('lookUpTxtInZone returns no zone for a domain that does not exist, and a reason which says that it does not exist', async () => {
  const { seen } = await runLookup([], undefined, 'nowhere.com')
  expect(seen).toMatchObject({ zone: null, reason: "nowhere.com doesn't exist in DNS" })
})
