import { describe, expect, test } from 'vitest'
import { probeMisplacedRecords, probeWildcard } from '../../../src/dns/observation/misplaced-records.ts'
import type { Observation } from '../../../src/dns/observation/observations.ts'
import { withoutAddress } from '../../../src/dns/observation/observe-server.ts'
import { type FakeZone, fakeInternet, txt } from '../fake-internet.ts'
import { timedContext } from '../timed-check.ts'

const zone = (...records: NonNullable<FakeZone['records']>): FakeZone => ({
  apex: 'shop.com',
  servers: { 'ns.shop.com': ['192.0.2.11'] },
  records,
})
const AT: Observation = {
  ...withoutAddress('ns.shop.com', 'unreachable'),
  server: { address: '192.0.2.11', port: 53 },
}

describe('the search for misplaced records at one authoritative server', () => {
  test('finds the record at another name', async () => {
    const { context } = timedContext(fakeInternet([zone(txt('www.app.shop.com', 'prefix=token'))]))
    const { misplaced } = await probeMisplacedRecords(AT, 'app.shop.com', 'shop.com', 'prefix=token', context)
    expect(misplaced.map(({ name }) => name)).toEqual(['www.app.shop.com'])
  })

  test('takes one round of queries to that server only', async () => {
    const { context, asked } = timedContext(fakeInternet([zone()]))
    await probeMisplacedRecords(AT, 'app.shop.com', 'shop.com', 'prefix=token', context)
    expect(context.effects.clock.monotonic()).toBeCloseTo(100)
    expect(new Set(asked.map(({ server }) => server))).toEqual(new Set(['192.0.2.11']))
    expect(asked.length).toBeLessThanOrEqual(50)
  })

  test('finds no wildcard if an unused name next to it does not exist', async () => {
    const { context } = timedContext(fakeInternet([zone(txt('app.shop.com', 'prefix=token'))]))
    const { wildcard, coversName } = await probeWildcard(AT, 'app.shop.com', 'shop.com', context)
    expect({ wildcard, coversName }).toEqual({ wildcard: [], coversName: true })
  })
})
