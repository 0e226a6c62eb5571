import { describe, expect, test } from 'vitest'
import { AA, type Asked, type FakeReply, smallWorld } from './fake-dns.ts'
import { fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { ROUND_MS, timedCheck } from './timed-check.ts'

/** The resolver for `com`, the registry, the zone's SOA, its TXT set, the resolver's TXT set: each needs the one before. */
const CHAIN = 5

const healthy = smallWorld(() => ['prefix=token'])
const empty = smallWorld(() => [])

/** The healthy zone with name servers at 192.0.2.2, .3, …, all like the first unless `other` answers. */
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

describe('a check takes no longer than its longest chain of queries', () => {
  test('with one server', async () => {
    const { report, ms } = await timedCheck(healthy)
    expect(report.verdict).toBe('ready')
    expect(ms).toBeLessThanOrEqual(CHAIN * ROUND_MS * 1.2)
  })

  test('with four servers', async () => {
    const { report, ms } = await timedCheck(withServers(healthy, 4, () => undefined))
    expect(report).toMatchObject({ verdict: 'ready', findings: [] })
    expect(report.nameservers).toHaveLength(4)
    expect(ms).toBeLessThanOrEqual(CHAIN * ROUND_MS * 1.2)
  })

  test('with a missing record, including the search at other names', async () => {
    const { report, ms } = await timedCheck(withServers(empty, 4, () => undefined))
    expect(report.findings[0]?.code).toBe('missing')
    expect(ms).toBeLessThanOrEqual(CHAIN * ROUND_MS * 1.2)
  })
})

describe('a check with silent servers', () => {
  test('takes at most five and a half seconds if one of three is dead', async () => {
    const dead = withServers(healthy, 3, ({ server }) => (server === '192.0.2.4' ? 'silent' : undefined))
    const { report, ms } = await timedCheck(dead)
    expect(report.verdict).toBe('ready_with_warning')
    expect(report.findings.map((finding) => finding.code)).toEqual(['nameserver_unreachable'])
    expect(ms).toBeLessThanOrEqual(5500)
  })

  test('takes at most five and a half seconds if one of three is dead and the others lack the record', async () => {
    const dead = withServers(empty, 3, ({ server }) => (server === '192.0.2.4' ? 'silent' : undefined))
    const { report, ms } = await timedCheck(dead)
    expect(report.findings.map((finding) => finding.code)).toContain('missing')
    expect(ms).toBeLessThanOrEqual(5500)
  })

  test.each([
    ['everything', () => true],
    ['the resolver', (server: string) => server === '192.0.2.53'],
    ['everything but the resolver', (server: string) => server !== '192.0.2.53'],
    ['the zone', (server: string) => server === '192.0.2.2'],
  ])('ends as unknown within ten seconds if %s is silent', async (_title, isSilent) => {
    const { report, ms } = await timedCheck((asked) => (isSilent(asked.server) ? 'silent' : healthy(asked)))
    expect(report.verdict).toBe('unknown')
    expect(report.findings.filter((finding) => finding.code === 'missing')).toEqual([])
    expect(ms).toBeLessThanOrEqual(10_000)
  })

  test('finds the zone of a silent registry through a resolver that knows it', async () => {
    const { report, ms } = await timedCheck((asked) => {
      if (asked.server === '192.0.2.1') return 'silent'
      if (asked.server === '192.0.2.53' && asked.type === 'NS' && asked.name === 'example.com')
        return { flags: 128, answers: [{ name: 'example.com', type: 'NS', ttl: 60, data: 'ns.example.com' }] }
      return healthy(asked)
    })
    expect(report).toMatchObject({
      verdict: 'ready_with_warning',
      findings: [{ code: 'delegation_not_checked', details: { registry: 'com' } }],
    })
    expect(ms).toBeLessThanOrEqual(2000)
  })

  test('does not ask the resolver about a name that may not exist, even if the network blocks everything else', async () => {
    const { report, asked } = await timedCheck(
      (one) => {
        if (one.server !== '192.0.2.53') return 'silent'
        if (one.type === 'NS' && one.name === 'example.com')
          return {
            flags: 128,
            answers: [{ name: 'example.com', type: 'NS', ttl: 60, data: 'ns.example.com' }],
          }
        return healthy(one)
      },
      { name: 'a.b.example.com' },
    )
    expect(report).toMatchObject({ verdict: 'unknown', zone: 'example.com' })
    const atResolver = asked.filter((one) => one.server === '192.0.2.53').map((one) => one.name)
    expect(atResolver).toContain('example.com')
    expect(atResolver).not.toContain('b.example.com')
    expect(atResolver).not.toContain('a.b.example.com')
  })

  test('finds the zone if one of two resolvers is silent', async () => {
    const { report } = await timedCheck(
      (asked) => (asked.server === '192.0.2.54' ? 'silent' : healthy(asked)),
      { resolvers: ['192.0.2.54', '192.0.2.53'] },
    )
    expect(report.verdict).toBe('ready_with_warning')
    expect(report.findings).toMatchObject([{ code: 'resolver_broken' }])
  })
})

describe('a check with slow servers', () => {
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

  test('gives a resolver with a cold cache five seconds', async () => {
    const { report, ms } = await timedCheck(world, {
      name: 'shop.com',
      roundMs: (server, _name, type) => (server === RESOLVER && type === 'TXT' ? 5000 : ROUND_MS),
    })
    expect(report).toMatchObject({ verdict: 'ready', findings: [] })
    expect(ms).toBeLessThan(10_000)
  })

  test('ends in time if a slow server answers some queries just before the deadline', async () => {
    const { report, ms } = await timedCheck(
      (asked) => (asked.server === '192.0.2.2' && asked.type === 'NS' ? 'silent' : healthy(asked)),
      {
        roundMs: (server, _name, type) =>
          server === RESOLVER && type === 'NS' ? 5500 : server === '192.0.2.2' && type === 'TXT' ? 3300 : 0,
      },
    )
    expect(report.nameservers).toMatchObject([{ outcome: 'match' }])
    expect(ms).toBeLessThan(9500)
  })

  test('asks the servers of a name server’s zone if a resolver takes too long to look it up', async () => {
    const referral = (asked: Asked): FakeReply =>
      asked.server === '192.0.2.1'
        ? { authorities: [{ type: 'NS', name: 'shop.com', ttl: 60, data: 'ns.host.net' }] }
        : world(asked)
    const { report, ms } = await timedCheck(referral, {
      name: 'shop.com',
      roundMs: (server, name) => (server === RESOLVER && name === 'ns.host.net' ? 20_000 : ROUND_MS),
    })
    expect(report.nameservers).toMatchObject([{ address: '192.0.2.2', outcome: 'match' }])
    expect(report.ready).toBe(true)
    expect(ms).toBeLessThan(10_000)
  })
})

test('a hostile zone with hundreds of name servers does not exceed the query limit', async () => {
  const many = Array.from({ length: 400 }, (_, index) => ({
    name: 'example.com',
    type: 'NS' as const,
    ttl: 60,
    data: `n${index}.victim.example`,
  }))
  const { report, asked } = await timedCheck((one) => {
    if (one.server === '192.0.2.2' && one.type === 'NS') return { flags: AA, answers: many }
    return healthy(one)
  })
  expect(report.ready).toBe(true)
  expect(asked.length).toBeLessThanOrEqual(120)
})
