import type packet from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { observeTxtSet } from '../../../src/dns/observation/observe-txt-set.ts'
import { AA, type Asked, type FakeReply, TC } from '../fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from '../fake-internet.ts'
import { timedEffects } from '../timed-check.ts'

const FIRST = '192.0.2.11'
const SECOND = '192.0.2.12'
const SPF = 'v=spf1 -all'

async function observe(
  records: readonly packet.Answer[],
  odd?: (asked: Asked) => FakeReply | undefined,
  name = 'shop.com',
) {
  const zones: FakeZone[] = [
    { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
    { apex: 'shop.com', servers: { 'ns1.shop.com': [FIRST], 'ns2.shop.com': [SECOND] }, records },
  ]
  const { effects, asked } = timedEffects(fakeInternet(zones, odd))
  const start = { resolvers: [{ address: RESOLVER, port: 53 }], authoritativePort: 53 }
  const set = await observeTxtSet(name, start, effects)
  const texts =
    set.kind === 'seen' ? set.values.map(({ strings }) => strings.map((bytes) => Buffer.from(bytes))) : []
  return { set, texts, asked, ms: effects.clock.monotonic() }
}

const txtAt = (server: string, reply: (asked: Asked) => FakeReply) => (asked: Asked) =>
  asked.server === server && asked.type === 'TXT' ? reply(asked) : undefined

describe('the TXT set of a name', () => {
  test('has every value of the zone in its exact strings, and the TTL', async () => {
    const binary = Buffer.from([0, 0xff, 0x22, 0x5c])
    const split: packet.Answer = { ...txt('shop.com', ''), data: ['a'.repeat(255), binary] } as packet.Answer
    const { set, texts } = await observe([txt('shop.com', SPF), split])
    expect(set).toMatchObject({ kind: 'seen', zone: 'shop.com', ttl: 300 })
    expect(texts).toEqual([[Buffer.from(SPF)], [Buffer.from('a'.repeat(255)), binary]])
  })

  test.each(['shop.com', 'app.shop.com'])('is empty at %s without TXT records', async (name) => {
    const { set } = await observe([], undefined, name)
    expect(set).toEqual({ kind: 'seen', zone: 'shop.com', values: [], ttl: null })
  })

  test('has what a wildcard answers', async () => {
    const { texts } = await observe(
      [],
      ({ type, server, name }) =>
        type === 'TXT' && server !== RESOLVER ? { flags: AA, answers: [txt(name, SPF)] } : undefined,
      'app.shop.com',
    )
    expect(texts).toEqual([[Buffer.from(SPF)]])
  })

  test('is never asked of a resolver, whose cache could be out of date', async () => {
    const { asked } = await observe([txt('shop.com', SPF)])
    expect(asked.filter(({ server, type }) => server === RESOLVER && type === 'TXT')).toEqual([])
  })

  test.each(['silent', 'unreachable', { flags: 5 }] as const)(
    'is known if one of two servers answers and the other one is out of order: %j',
    async (reply) => {
      const { texts } = await observe(
        [txt('shop.com', SPF)],
        txtAt(FIRST, () => reply),
      )
      expect(texts).toEqual([[Buffer.from(SPF)]])
    },
  )

  test('has the TTL of the server that does not count it down', async () => {
    const { set } = await observe(
      [txt('shop.com', SPF)],
      txtAt(FIRST, () => ({ flags: AA, answers: [{ ...txt('shop.com', SPF), ttl: 17 } as packet.Answer] })),
    )
    expect(set).toMatchObject({ kind: 'seen', ttl: 300 })
  })
})

describe('the TXT set of a name is not known', () => {
  const truncated = ({ transport, name }: Asked): FakeReply =>
    transport === 'tcp' ? 'refused' : { flags: AA | TC, answers: [txt(name, SPF)] }

  test.each<[string, (asked: Asked) => FakeReply | undefined, RegExp]>([
    [
      'if no server answers',
      ({ server }) => (server === FIRST || server === SECOND ? 'silent' : undefined),
      /no name server of shop\.com gave an authoritative answer/,
    ],
    [
      'if the servers answer without authority',
      ({ server, type, name }) =>
        server !== RESOLVER && type === 'TXT' ? { answers: [txt(name, SPF)] } : undefined,
      /no name server of shop\.com gave an authoritative answer/,
    ],
    [
      'if the servers disagree',
      txtAt(FIRST, () => ({ flags: AA, answers: [txt('shop.com', 'v=spf1 ~all')] })),
      /the name servers of shop\.com disagree/,
    ],
    [
      'if one server has more values',
      txtAt(SECOND, () => ({ flags: AA, answers: [txt('shop.com', SPF), txt('shop.com', 'other')] })),
      /the name servers of shop\.com disagree/,
    ],
    [
      'if the answers are truncated and TCP is closed',
      (asked) => (asked.type === 'TXT' && asked.server !== RESOLVER ? truncated(asked) : undefined),
      /truncated/,
    ],
    [
      'if the answers are truncated over TCP as well',
      ({ server, type, name }) =>
        type === 'TXT' && server !== RESOLVER ? { flags: AA | TC, answers: [txt(name, SPF)] } : undefined,
      /truncated/,
    ],
    [
      'if the name is an alias, whose values are those of another name',
      ({ server, type, name }) =>
        type === 'TXT' && server !== RESOLVER
          ? {
              flags: AA,
              answers: [
                { type: 'CNAME', name, ttl: 60, data: 'www.shop.com' },
                { ...txt('www.shop.com', SPF) },
              ],
            }
          : undefined,
      /shop\.com is an alias \(CNAME\) for www\.shop\.com/,
    ],
    [
      'if nothing answers at all',
      () => 'silent',
      /its name servers weren't found: 192\.0\.2\.53 didn't answer/,
    ],
  ])('%s', async (_when, odd, reason) => {
    const { set, ms } = await observe([txt('shop.com', SPF)], odd)
    expect(set).toMatchObject({ kind: 'unseen', reason: expect.stringMatching(reason) })
    expect(ms).toBeLessThanOrEqual(10_000)
  })

  test('if the domain does not exist', async () => {
    const { set } = await observe([], undefined, 'shoop.com')
    expect(set).toEqual({
      kind: 'unseen',
      zone: undefined,
      reason: "shoop.com doesn't exist in DNS",
      isAbsent: true,
      particulars: { ZONE: 'shoop.com' },
      partial: [],
    })
  })
})
