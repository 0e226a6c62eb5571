import { describe, expect, test } from 'vitest'
import { checkDns } from '../../src/dns/check.ts'
import type { CheckReport } from '../../src/dns/diagnosis/report.ts'
import { AA, type Asked, createFakeDns, type FakeReply, smallWorld } from './fake-dns.ts'
import { fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'
import { createVirtualClock } from './virtual-clock.ts'

/** How long one question takes, in milliseconds of virtual time. */
const ROUND_MS = 100
/** Resolver for `com`, registry, the zone's SOA, its TXT set, the resolver's TXT set: each needs the one before. */
const CHAIN = 5

/** Checks in virtual time. The zone has more name servers where `hosts` says so. */
async function timed(
  respond: (asked: Asked) => FakeReply,
  resolvers = ['192.0.2.53'],
  name = 'example.com',
): Promise<{ report: CheckReport; ms: number; asked: readonly Asked[] }> {
  const clock = createVirtualClock()
  const dns = createFakeDns(respond, clock, [])
  const slow =
    (transport: 'udp' | 'tcp'): (typeof dns)['udp'] =>
    async (exchange) => {
      await clock.sleep(ROUND_MS, exchange.signal)
      return await dns[transport](exchange)
    }
  const report = await checkDns(
    {
      name,
      expected: 'prefix=token',
      resolvers: resolvers.map((address) => ({ address, port: 53 })),
      authoritativePort: 53,
      publicResolvers: false,
    },
    {
      clock,
      dns: { ...dns, udp: slow('udp'), tcp: slow('tcp') },
      random: { bytes: (length) => new Uint8Array(length).fill(3), fraction: () => 0 },
      signal: new AbortController().signal,
    },
  )
  return { report, ms: clock.monotonic(), asked: dns.asked }
}

const healthy = smallWorld(() => ['prefix=token'])
const empty = smallWorld(() => [])

/** The healthy zone with name servers at 192.0.2.2, .3, …, all as good as the first unless told otherwise. */
function withServers(
  world: (asked: Asked) => FakeReply,
  count: number,
  other: (asked: Asked) => FakeReply | undefined,
) {
  const hosts = Array.from({ length: count }, (_, index) => ({
    name: index === 0 ? 'ns.example.com' : `ns${index + 1}.example.com`,
    address: `192.0.2.${index + 2}`,
  }))
  const ns = hosts.map(({ name }) => ({ name: 'example.com', type: 'NS' as const, ttl: 60, data: name }))
  const glue = hosts.map(({ name, address }) => ({ name, type: 'A' as const, ttl: 60, data: address }))
  return (asked: Asked): FakeReply => {
    const special = other(asked)
    if (special !== undefined) return special
    if (asked.server === '192.0.2.1') return { authorities: ns, additionals: glue }
    if (asked.server === '192.0.2.53') {
      const host = hosts.find(({ name }) => name === asked.name)
      if (host !== undefined && asked.type === 'A')
        return { flags: 128, answers: glue.filter((record) => record.name === host.name) }
      return world(asked)
    }
    if (asked.name === 'example.com' && asked.type === 'NS') return { flags: AA, answers: ns }
    return world({ ...asked, server: '192.0.2.2' })
  }
}

describe('a check takes as long as its longest chain of questions', () => {
  test('with one server', async () => {
    const { report, ms } = await timed(healthy)
    expect(report.verdict).toBe('ready')
    expect(ms).toBeLessThanOrEqual(CHAIN * ROUND_MS * 1.2)
  })

  test('with four servers', async () => {
    const { report, ms } = await timed(withServers(healthy, 4, () => undefined))
    expect(report).toMatchObject({ verdict: 'ready', findings: [] })
    expect(report.nameservers).toHaveLength(4)
    expect(ms).toBeLessThanOrEqual(CHAIN * ROUND_MS * 1.2)
  })

  test('where the record is missing, the wrong places included', async () => {
    const { report, ms } = await timed(withServers(empty, 4, () => undefined))
    expect(report.findings[0]?.code).toBe('missing')
    expect(ms).toBeLessThanOrEqual(CHAIN * ROUND_MS * 1.2)
  })
})

describe('silence has its limits', () => {
  test('one dead server among three costs five seconds and a half at most', async () => {
    const dead = withServers(healthy, 3, ({ server }) => (server === '192.0.2.4' ? 'silent' : undefined))
    const { report, ms } = await timed(dead)
    expect(report.verdict).toBe('ready_with_warning')
    expect(report.findings.map((finding) => finding.code)).toEqual(['nameserver_unreachable'])
    expect(ms).toBeLessThanOrEqual(5500)
  })

  test('so does one dead server among three that lack the record', async () => {
    const dead = withServers(empty, 3, ({ server }) => (server === '192.0.2.4' ? 'silent' : undefined))
    const { report, ms } = await timed(dead)
    expect(report.findings.map((finding) => finding.code)).toContain('missing')
    expect(ms).toBeLessThanOrEqual(5500)
  })

  test.each([
    ['everybody', () => true],
    ['the resolver', (server: string) => server === '192.0.2.53'],
    ['the registry and the zone', (server: string) => server !== '192.0.2.53'],
    ['the zone', (server: string) => server === '192.0.2.2'],
  ])('%s silent is unknown within ten seconds', async (_says, isSilent) => {
    const { report, ms } = await timed((asked) => (isSilent(asked.server) ? 'silent' : healthy(asked)))
    expect(report.verdict).toBe('unknown')
    expect(report.findings.filter((finding) => finding.code === 'missing')).toEqual([])
    expect(ms).toBeLessThanOrEqual(10_000)
  })

  test('a silent registry does not hide the zone from a resolver that knows it', async () => {
    const { report, ms } = await timed((asked) => {
      if (asked.server === '192.0.2.1') return 'silent'
      if (asked.server === '192.0.2.53' && asked.type === 'NS' && asked.name === 'example.com')
        return { flags: 128, answers: [{ name: 'example.com', type: 'NS', ttl: 60, data: 'ns.example.com' }] }
      return healthy(asked)
    })
    expect(report.verdict).toBe('ready')
    expect(ms).toBeLessThanOrEqual(2000)
  })

  test('where the network lets nothing through, the resolver is not asked about what may not exist', async () => {
    const { report, asked } = await timed(
      (one) => {
        if (one.server !== '192.0.2.53') return 'silent'
        if (one.type === 'NS' && one.name === 'example.com')
          return {
            flags: 128,
            answers: [{ name: 'example.com', type: 'NS', ttl: 60, data: 'ns.example.com' }],
          }
        return healthy(one)
      },
      ['192.0.2.53'],
      'a.b.example.com',
    )
    expect(report).toMatchObject({ verdict: 'unknown', zone: 'example.com' })
    const atResolver = asked.filter((one) => one.server === '192.0.2.53').map((one) => one.name)
    expect(atResolver).toContain('example.com')
    expect(atResolver).not.toContain('b.example.com')
    expect(atResolver).not.toContain('a.b.example.com')
  })

  test('one of two resolvers silent does not hide the zone', async () => {
    const { report } = await timed(
      (asked) => (asked.server === '192.0.2.54' ? 'silent' : healthy(asked)),
      ['192.0.2.54', '192.0.2.53'],
    )
    expect(report.verdict).toBe('ready_with_warning')
    expect(report.findings).toMatchObject([{ code: 'resolver_broken' }])
  })
})

describe('what is slow is not broken', () => {
  const zones = [
    { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
    { apex: 'net', servers: { 'a.nic.net': ['192.0.2.4'] } },
    { apex: 'host.net', servers: { 'ns.host.net': ['192.0.2.2'] } },
    {
      apex: 'shop.com',
      servers: { 'ns.host.net': ['192.0.2.2'] },
      records: [txt('shop.com', 'prefix=token')],
    },
  ]
  const world = fakeInternet(zones)

  test('a resolver with a cold cache may take five seconds for the record', async () => {
    const { report, ms } = await timedCheck(world, 'shop.com', (server, _name, type) =>
      server === RESOLVER && type === 'TXT' ? 5000 : ROUND_MS,
    )
    expect(report).toMatchObject({ verdict: 'ready', findings: [] })
    expect(ms).toBeLessThan(10_000)
  })

  test('where a resolver takes too long to look up a name server, the servers of its zone are asked', async () => {
    const referral = (asked: Asked): FakeReply =>
      asked.server === '192.0.2.1'
        ? { authorities: [{ type: 'NS', name: 'shop.com', ttl: 60, data: 'ns.host.net' }] }
        : world(asked)
    const { report, ms } = await timedCheck(referral, 'shop.com', (server, name) =>
      server === RESOLVER && name === 'ns.host.net' ? 20_000 : ROUND_MS,
    )
    expect(report.nameservers).toMatchObject([{ address: '192.0.2.2', outcome: 'match' }])
    expect(report.ready).toBe(true)
    expect(ms).toBeLessThan(10_000)
  })
})

test('a hostile zone with thousands of name servers is not followed to the end', async () => {
  const many = Array.from({ length: 400 }, (_, index) => ({
    name: 'example.com',
    type: 'NS' as const,
    ttl: 60,
    data: `n${index}.victim.example`,
  }))
  const { report, asked } = await timed((one) => {
    if (one.server === '192.0.2.2' && one.type === 'NS') return { flags: AA, answers: many }
    return healthy(one)
  })
  expect(report.ready).toBe(true)
  expect(asked.length).toBeLessThanOrEqual(120)
})
