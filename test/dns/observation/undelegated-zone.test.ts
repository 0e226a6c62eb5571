import type { Answer } from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { AA } from '../fake-dns.ts'
import { type FakeZone, fakeInternet, txt } from '../fake-internet.ts'
import { timedCheck } from '../timed-check.ts'

const NAME = 'mail.example.com'
const PRIMARY = '192.0.2.11'
const SECONDARY = '192.0.2.12'
const RECORD = txt(NAME, 'prefix=token')
const MX: Answer = { type: 'MX', name: NAME, ttl: 60, data: { preference: 1, exchange: 'mx.example.com' } }

const REGISTRY: FakeZone = { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } }
const EXAMPLE: FakeZone = {
  apex: 'example.com',
  servers: { 'ns1.example.com': [PRIMARY], 'ns2.example.com': [SECONDARY] },
}
const PANEL: FakeZone = {
  apex: NAME,
  servers: { 'ns1.example.com': [PRIMARY] },
  records: [RECORD],
  undelegated: true,
}
const BOTH = { ...PANEL, servers: EXAMPLE.servers }

/**
 * @param first the server that answers the walk.
 * @param above what differs in the zone above.
 */
async function check(first: string, panel: FakeZone, above: Partial<FakeZone> = {}, secondaryHasIt = false) {
  const zones = [REGISTRY, { ...EXAMPLE, ...above }]
  const primary = fakeInternet([...zones, panel])
  const secondary = secondaryHasIt ? primary : fakeInternet(zones)
  return await timedCheck((asked) => (asked.server === SECONDARY ? secondary : primary)(asked), {
    name: NAME,
    roundMs: (server) => (server === first ? 20 : 200),
  })
}

describe('a zone that only one server of the zone above has', () => {
  test.each([
    ['the server with it answers first', PRIMARY, PANEL],
    ['the server without it answers first', SECONDARY, PANEL],
    ['it lists both servers, the one with it first', PRIMARY, BOTH],
    ['it lists both servers, the one without it first', SECONDARY, BOTH],
    ['the record is missing, and the server with it answers first', PRIMARY, { ...PANEL, records: [MX] }],
    [
      'the record is missing, and the server without it answers first',
      SECONDARY,
      { ...PANEL, records: [MX] },
    ],
  ])('has to be deleted or delegated if %s', async (_when, first, panel) => {
    const { report, asked } = await check(first, panel)
    expect(report).toMatchObject({ verdict: 'fix', ready: false })
    expect(report.findings.map(({ code }) => code)).toEqual(['zone_not_delegated'])
    expect(report.findings[0]?.details).toEqual({
      zone: NAME,
      above: 'example.com',
      with: [{ host: 'ns1.example.com', address: PRIMARY }],
      without: [{ host: 'ns2.example.com', address: SECONDARY }],
    })
    expect(asked.length).toBeLessThan(64)
  })

  test.each([PRIMARY, SECONDARY])(
    'is recognized by serials if the name exists above: %s first',
    async (first) => {
      const { report } = await check(first, PANEL, { records: [MX] })
      expect(report.findings).toMatchObject([{ code: 'zone_not_delegated' }])
    },
  )

  test.each([PRIMARY, SECONDARY])(
    'has to be deleted if only the zone above has the record: %s first',
    async (first) => {
      const { report } = await check(first, { ...PANEL, records: [MX] }, { records: [RECORD] })
      expect(report).toMatchObject({ verdict: 'fix', findings: [{ code: 'zone_not_delegated' }] })
    },
  )

  test.each([PRIMARY, SECONDARY])(
    'does no harm if the record is also in the zone above: %s first',
    async (first) => {
      const { report } = await check(first, PANEL, { records: [RECORD] })
      expect(report).toMatchObject({ verdict: 'ready', findings: [] })
    },
  )

  test.each([PRIMARY, SECONDARY])('is healthy if the zone above delegates it: %s first', async (first) => {
    const { undelegated: _, ...delegated } = PANEL
    const { report } = await check(first, delegated, {}, true)
    expect(report).toMatchObject({ verdict: 'ready', zone: NAME, findings: [] })
  })

  test('is waited for if the zone above has just delegated it, and the other server is behind', async () => {
    const primary = fakeInternet([REGISTRY, EXAMPLE, PANEL])
    const secondary = fakeInternet([REGISTRY, EXAMPLE])
    const { report } = await timedCheck(
      (asked) => {
        if (asked.server === SECONDARY) return secondary(asked)
        const reply = primary(asked)
        if (asked.type !== 'DS' || asked.name !== NAME || typeof reply === 'string') return reply
        const authorities = reply.authorities?.map((soa) =>
          soa.type === 'SOA' ? { ...soa, data: { ...soa.data, serial: 10 } } : soa,
        )
        return { flags: AA, authorities: authorities ?? [] }
      },
      { name: NAME, roundMs: (server) => (server === SECONDARY ? 20 : 200) },
    )
    expect(report).toMatchObject({ verdict: 'wait', findings: [{ code: 'partial_propagation' }] })
  })

  test.each([PRIMARY, SECONDARY])('is healthy if all servers have it: %s first', async (first) => {
    const { report } = await check(first, BOTH, {}, true)
    expect(report).toMatchObject({ verdict: 'ready', findings: [] })
  })
})
