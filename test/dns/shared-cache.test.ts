import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { collectDnsObservations } from '../../src/dns/check.ts'
import { createCheckCache } from '../../src/dns/shared-cache.ts'
import type { Asked, FakeReply } from './fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedEffects } from './timed-check.ts'
import { createVirtualClock } from './virtual-clock.ts'

const COM: FakeZone = { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'], 'b.nic.com': ['192.0.2.2'] } }

/** Creates a zone whose names d0, d1, … have the record, on two servers at 192.0.2.`host` and the next address. */
function zone(apex: string, host: number, names: number): FakeZone {
  return {
    apex,
    servers: { [`ns1.${apex}`]: [`192.0.2.${host}`], [`ns2.${apex}`]: [`192.0.2.${host + 1}`] },
    records: Array.from({ length: names }, (_, n) => txt(`d${n}.${apex}`, 'prefix=token')),
  }
}

/** Creates a run over many domains: checks in virtual time that share a cache. */
function createRun(respond: (asked: Asked) => FakeReply) {
  const { effects, asked } = timedEffects(respond)
  const cache = createCheckCache(effects.clock)
  const outcomesOf = async (name: string) => {
    const request = {
      name,
      expected: 'prefix=token',
      resolvers: [{ address: RESOLVER, port: 53 }],
      authoritativePort: 53,
      publicResolvers: false,
      cache,
    }
    return (await collectDnsObservations(request, effects)).servers.map(({ outcome }) => outcome).join()
  }
  /** Checks all names, sixteen at a time, and returns the outcomes by name. */
  const all = async (names: readonly string[]) => {
    const outcomes = new Map<string, string>()
    const queue = [...names]
    const work = async () => {
      for (let name = queue.shift(); name !== undefined; name = queue.shift())
        outcomes.set(name, await outcomesOf(name))
    }
    await Promise.all(Array.from({ length: 16 }, work))
    return outcomes
  }
  return { outcomesOf, all, asked, clock: effects.clock }
}

const isDead = ({ server }: Asked) => /^192\.0\.2\.1[12]$/.test(server)

test('checks with one cache query the registry about a zone once in five minutes, but the name servers of the zone about each name', async () => {
  const world = fakeInternet([COM, zone('example.com', 11, 3)])
  const { outcomesOf, asked, clock } = createRun(world)
  const above = () => asked.filter(({ server, type }) => /2\.[12]$/.test(server) && type === 'SOA').length
  expect(await outcomesOf('d0.example.com')).toBe('match,match')
  const [alone, first] = [asked.length, above()]
  expect(await outcomesOf('d1.example.com')).toBe('match,match')
  expect(asked.length - alone).toBeLessThan(alone)
  expect(above()).toBe(first)
  expect(await outcomesOf('d9.example.com')).toBe('nxdomain,nxdomain')
  await clock.sleep(301_000)
  await outcomesOf('d2.example.com')
  expect(above()).toBeGreaterThan(first)
})

test.each<[string, (before: (asked: Asked) => FakeReply) => (asked: Asked) => FakeReply]>([
  ['a failed search for the zone', () => () => 'silent'],
  ['the denial of a domain, which might be registered soon', (before) => before],
])('checks with one cache do not share %s', async (_title, early) => {
  let isEarly = true
  const [world, before] = [fakeInternet([COM, zone('example.com', 11, 1)]), early(fakeInternet([COM]))]
  const { outcomesOf } = createRun((asked) => (isEarly ? before : world)(asked))
  expect(await outcomesOf('d0.example.com')).toBe('')
  isEarly = false
  expect(await outcomesOf('d0.example.com')).toBe('match,match')
})

test('sixteen concurrent checks with one cache look up the top-level domain once', async () => {
  const { all, asked } = createRun(fakeInternet([COM, zone('example.com', 11, 16)]))
  const outcomes = await all(Array.from({ length: 16 }, (_, n) => `d${n}.example.com`))
  expect(new Set(outcomes.values())).toEqual(new Set(['match,match']))
  expect(asked.filter(({ name, server }) => name === 'com' && server === RESOLVER)).toHaveLength(1)
})

describe('a server that is silent', () => {
  const names = Array.from({ length: 300 }, (_, n) => `d${n}.example.com`)

  test('silent name servers delay a run of 300 checks by less than ten seconds, and are not queried in the last check', async () => {
    const world = fakeInternet([COM, zone('example.com', 11, 300)])
    const healthy = createRun(world)
    await healthy.all(names)
    const broken = createRun((asked) => (isDead(asked) ? 'silent' : world(asked)))
    const outcomes = await broken.all(names)
    expect(broken.clock.monotonic() - healthy.clock.monotonic()).toBeLessThan(10_000)
    expect(outcomes.get('d0.example.com')).toBe('timeout,timeout')
    expect(outcomes.get('d299.example.com')).toBe('not_checked,not_checked')
  })

  test('the cache treats a DNS server as silent for five minutes after three unanswered queries in a row', async () => {
    const clock = createVirtualClock()
    const cache = createCheckCache(clock)
    const server = { address: '192.0.2.11', port: 53 }
    for (const answered of [false, false, true, false, false]) cache.recordReply(server, answered)
    expect(cache.isSilent(server)).toBe(false)
    cache.recordReply(server, false)
    expect([cache.isSilent(server), cache.isSilent({ ...server, port: 54 })]).toEqual([true, false])
    await clock.sleep(301_000)
    expect(cache.isSilent(server)).toBe(false)
  })
})

test('checks with one cache leave no listener on the abort signal, and the cache drops a zone after a thousand newer results', async () => {
  const { effects, asked } = timedEffects(fakeInternet([COM, zone('shop.com', 10, 3)]))
  const cache = createCheckCache(effects.clock)
  const request = {
    expected: null,
    resolvers: [{ address: RESOLVER, port: 53 }],
    authoritativePort: 53,
    cache,
  }
  const countOf = async (name: string) => {
    const before = asked.length
    await collectDnsObservations({ ...request, name }, effects)
    return asked.length - before
  }
  const first = await countOf('d0.shop.com')
  expect(await countOf('d1.shop.com')).toBeLessThan(first)
  expect(getEventListeners(effects.signal, 'abort')).toEqual([])
  for (let at = 0; at < 1000; at++)
    await cache.memoize(
      `zone ${at}.com`,
      async () => at,
      () => true,
    )
  expect(await countOf('d2.shop.com')).toBe(first)
})
