import type { Answer } from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { AA, type Asked, type FakeReply } from './fake-dns.ts'
import { fakeInternet, RESOLVER } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const PARKING = '192.0.2.9'

const zones = [
  { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
  { apex: 'example.com', servers: { 'ns.park.net': [PARKING] } },
]

/** A server that answers any name with the same records, as if it were the top of a zone of its own. */
const parked = (value: string) =>
  fakeInternet(zones, ({ server, name, type }: Asked): FakeReply | undefined => {
    const base = { name, ttl: 60 }
    const soa: Answer = {
      ...base,
      type: 'SOA',
      data: {
        mname: 'ns.park.net',
        rname: 'h.park.net',
        serial: 1,
        refresh: 1,
        retry: 1,
        expire: 1,
        minimum: 1,
      },
    }
    const records: Record<string, Answer> = {
      SOA: soa,
      NS: { ...base, type: 'NS', data: 'ns.park.net' },
      A: { ...base, type: 'A', data: '192.0.2.80' },
      TXT: { ...base, type: 'TXT', data: value },
    }
    const answer = records[type]
    if (server === RESOLVER && type === 'TXT' && answer !== undefined)
      return { flags: 0x80, answers: [answer] }
    if (server !== PARKING) return undefined
    return { flags: AA, ...(answer === undefined ? { authorities: [soa] } : { answers: [answer] }) }
  })

describe('a parked domain, whose server answers any name with the same TXT record', () => {
  test.each(['app.example.com', 'a.b.example.com'])(
    'is one zone, and its record at %s is a wildcard',
    async (name) => {
      const { report } = await timedCheck(parked('v=spf1 -all'), { name })
      expect(report).toMatchObject({ zone: 'example.com', verdict: 'fix' })
      expect(report.findings).toMatchObject([{ code: 'wildcard_answer', severity: 'error' }])
      expect(report.nameservers.map(({ address }) => address)).toEqual([PARKING])
    },
  )

  test('lacks the record at its top', async () => {
    const { report } = await timedCheck(parked('v=spf1 -all'))
    expect(report.findings).toMatchObject([{ code: 'missing' }, { code: 'wrong_provider_hint' }])
  })

  test('is ready with the right value, with a remark on the wildcard', async () => {
    const { report } = await timedCheck(parked('prefix=token'), { name: 'app.example.com' })
    expect(report).toMatchObject({ verdict: 'ready', zone: 'example.com' })
    expect(report.findings).toMatchObject([{ code: 'wildcard_answer', severity: 'info' }])
  })
})
