import { describe, expect, test } from 'vitest'
import type { DnsNetwork } from '../../src/context.ts'
import { checkDns } from '../../src/dns/old-check.ts'
import { registeredDomainOf } from '../../src/dns/resolution/registry.ts'
import { rememberAnswers } from '../../src/dns/resolution/remember-answers.ts'
import type { DnsEffects } from '../../src/dns/wire/effects.ts'
import { shareNetwork } from '../../src/dns/wire/shared-network.ts'
import type { Asked, FakeReply } from './fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedEffects } from './timed-check.ts'

const ABOVE: readonly FakeZone[] = [
  { apex: '.', servers: { 'a.root-servers.net': ['198.41.0.4'] } },
  { apex: 'com', servers: { 'a.gtld.net': ['192.0.2.1'], 'b.gtld.net': ['192.0.2.2'] } },
]

/** A zone with names below it that have the record, on servers whose addresses end in `host`. */
function zone(apex: string, host: number, names: number): FakeZone {
  return {
    apex,
    servers: { [`ns1.${apex}`]: [`192.0.2.${host}`], [`ns2.${apex}`]: [`192.0.2.${host + 1}`] },
    records: Array.from({ length: names }, (_, n) => txt(`d${n}.${apex}`, 'prefix=token')),
  }
}

/** The effects of a run over many domains, and what was asked. */
function sharedEffects(respond: (asked: Asked) => FakeReply, checks = 16) {
  const { effects, asked } = timedEffects(respond)
  const network = shareNetwork(effects.dns, effects.clock, { checks, zoneOf: registeredDomainOf })
  const shared: DnsEffects = { ...effects, dns: rememberAnswers(network, effects.clock) }
  return { effects: shared, asked }
}

const check = (name: string, effects: DnsEffects) =>
  checkDns(
    {
      name,
      expected: 'prefix=token',
      resolvers: [{ address: RESOLVER, port: 53 }],
      authoritativePort: 53,
      publicResolvers: false,
    },
    effects,
  )

describe('what checks in one run share', () => {
  test('the second check in a zone asks less than half, and finds the same', async () => {
    const internet = fakeInternet([...ABOVE, zone('example.com', 11, 2)])
    const { effects, asked } = sharedEffects(internet)
    const first = await check('d0.example.com', effects)
    const alone = asked.length
    const second = await check('d1.example.com', effects)
    expect([first.verdict, second.verdict]).toEqual(['ready', 'ready'])
    expect(asked.length - alone).toBeLessThanOrEqual(alone / 2)
    expect(second.nameservers.map(({ host }) => host)).toEqual(first.nameservers.map(({ host }) => host))
  })

  test('the record itself is asked for each time', async () => {
    let value = 'prefix=old'
    const { effects } = sharedEffects((asked) =>
      fakeInternet([...ABOVE, { ...zone('example.com', 11, 0), records: [txt('d0.example.com', value)] }])(
        asked,
      ),
    )
    expect((await check('d0.example.com', effects)).ready).toBe(false)
    value = 'prefix=token'
    expect((await check('d0.example.com', effects)).ready).toBe(true)
  })

  test('a delegation is asked for again when its time is over', async () => {
    const internet = fakeInternet([...ABOVE, zone('example.com', 11, 3)])
    const { effects, asked } = sharedEffects(internet)
    const registryQuestions = () => asked.filter(({ server }) => /^192\.0\.2\.[12]$/.test(server)).length
    await check('d0.example.com', effects)
    const first = registryQuestions()
    await check('d1.example.com', effects)
    expect(registryQuestions()).toBe(first)
    await effects.clock.sleep(301_000)
    await check('d2.example.com', effects)
    expect(registryQuestions()).toBeGreaterThan(first)
  })

  test('a moved domain is not looked for at its old servers, once the registry says so', async () => {
    let host = 11
    const { effects } = sharedEffects((asked) =>
      fakeInternet([
        ...ABOVE,
        {
          ...zone('example.com', host, host === 11 ? 0 : 1),
          records: host === 11 ? [] : [txt('d0.example.com', 'prefix=token')],
        },
      ])(asked),
    )
    expect((await check('d0.example.com', effects)).ready).toBe(false)
    host = 21
    await effects.clock.sleep(301_000)
    expect((await check('d0.example.com', effects)).ready).toBe(true)
  })

  test('a server that serves one domain and refers upwards for another is asked about both', async () => {
    const internet = fakeInternet([
      ...ABOVE,
      zone('good.com', 11, 1),
      {
        ...zone('lame.com', 11, 1),
        servers: { 'ns1.good.com': ['192.0.2.11'], 'ns2.good.com': ['192.0.2.12'] },
      },
    ])
    const upwards = (asked: Asked): FakeReply =>
      /^192\.0\.2\.1[12]$/.test(asked.server) && asked.name.endsWith('lame.com')
        ? { authorities: [{ type: 'NS', name: 'com', ttl: 3600, data: 'a.gtld.net' }] }
        : internet(asked)
    const { effects } = sharedEffects(upwards)
    const lame = await check('d0.lame.com', effects)
    const good = await check('d0.good.com', effects)
    expect(lame.ready).toBe(false)
    expect(good.verdict).toBe('ready')
  })
})

describe('dead name servers', () => {
  const dead = (asked: Asked): FakeReply | undefined =>
    /^192\.0\.2\.1[12]$/.test(asked.server) ? 'silent' : undefined

  test('300 domains at a dead host take ten seconds more than at one that answers', async () => {
    const run = async (odd: (asked: Asked) => FakeReply | undefined) => {
      const { effects } = sharedEffects(fakeInternet([...ABOVE, zone('example.com', 11, 300)], odd))
      let next = 0
      const verdicts = new Map<string, number>()
      const work = async () => {
        for (let n = next++; n < 300; n = next++) {
          const { verdict } = await check(`d${n}.example.com`, effects)
          verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1)
        }
      }
      await Promise.all(Array.from({ length: 16 }, work))
      return { verdicts, ms: effects.clock.monotonic() }
    }
    const healthy = await run(() => undefined)
    const broken = await run(dead)
    expect(healthy.verdicts).toEqual(new Map([['ready', 300]]))
    expect(broken.verdicts.get('ready')).toBeUndefined()
    expect(broken.ms - healthy.ms).toBeLessThan(10_000)
  })

  /** Zones on the same two servers. */
  const hosted = (apexes: readonly string[]) => [
    ...ABOVE,
    zone('host.com', 11, 0),
    ...apexes.map((apex) => ({
      ...zone(apex, 11, 1),
      servers: { 'ns1.host.com': ['192.0.2.11'], 'ns2.host.com': ['192.0.2.12'] },
    })),
  ]
  const numbered = (count: number) => Array.from({ length: count }, (_, n) => `zone${n}.com`)
  async function checkAll(
    apexes: readonly string[],
    odd: (asked: Asked) => FakeReply | undefined,
    jobs: number,
  ) {
    const { effects } = sharedEffects(fakeInternet(hosted(apexes), odd), jobs)
    const verdicts = await Promise.all(
      apexes.map(async (apex) => (await check(`d0.${apex}`, effects)).verdict),
    )
    return { verdicts, effects, ms: effects.clock.monotonic() }
  }

  test.each([1, 4, 16, 60])(
    'three zones that their servers are silent about say nothing about the other zones there, %i at once',
    async (jobs) => {
      const { verdicts, effects } = await checkAll(
        numbered(43),
        (asked) => (/zone[012]\.com$/.test(asked.name) ? dead(asked) : undefined),
        jobs,
      )
      expect(verdicts.slice(3)).toEqual(Array.from({ length: 40 }, () => 'ready'))
      expect(verdicts.slice(0, 3)).not.toContain('ready')
      expect(effects.dns.wasLeftOut?.('d0.zone5.com')).toBe(false)
    },
  )

  test('100 zones at a dead host take ten seconds more than at one that answers', async () => {
    const healthy = await checkAll(numbered(100), () => undefined, 16)
    const broken = await checkAll(numbered(100), dead, 16)
    expect(broken.verdicts).not.toContain('ready')
    expect(broken.ms - healthy.ms).toBeLessThan(10_000)
    expect(broken.effects.dns.wasLeftOut?.('d0.zone99.com')).toBe(true)
    expect(broken.effects.dns.wasLeftOut?.('d0.zone99.com')).toBe(false)
  })

  test('a server that answers again is asked again', async () => {
    let isDead = true
    const internet = fakeInternet([...ABOVE, zone('example.com', 11, 3)], (asked) =>
      isDead ? dead(asked) : undefined,
    )
    const { effects } = sharedEffects(internet)
    expect((await check('d0.example.com', effects)).ready).toBe(false)
    isDead = false
    await effects.clock.sleep(121_000)
    expect((await check('d1.example.com', effects)).ready).toBe(true)
  })

  test('a resolver that stays silent about one domain is asked about the next', async () => {
    const internet = fakeInternet([...ABOVE, zone('example.com', 11, 2)])
    const { effects } = sharedEffects((asked) =>
      asked.server === RESOLVER && asked.name === 'd0.example.com' ? 'silent' : internet(asked),
    )
    await check('d0.example.com', effects)
    const { verdict, resolvers } = await check('d1.example.com', effects)
    expect([verdict, resolvers[0]?.outcome]).toEqual(['ready', 'match'])
  })

  test('the sockets for it leave room for others', async () => {
    let open = 0
    let most = 0
    const { effects } = timedEffects(
      fakeInternet([...ABOVE, zone('dead.com', 11, 60), zone('alive.com', 31, 60)], dead),
    )
    const counted =
      (transport: 'udp' | 'tcp'): DnsNetwork['udp'] =>
      async (exchange) => {
        open += 1
        most = Math.max(most, open)
        try {
          return await effects.dns[transport](exchange)
        } finally {
          open -= 1
        }
      }
    const network = { ...effects.dns, udp: counted('udp'), tcp: counted('tcp') }
    const shared = {
      ...effects,
      dns: shareNetwork(network, effects.clock, { checks: 100, zoneOf: registeredDomainOf }),
    }
    const names = Array.from({ length: 50 }, (_, n) => [`d${n}.dead.com`, `d${n}.alive.com`]).flat()
    const reports = await Promise.all(names.map((name) => check(name, shared)))
    expect(most).toBeLessThanOrEqual(160)
    expect(reports.filter(({ verdict }) => verdict === 'ready').map(({ name }) => name)).toEqual(
      names.filter((name) => name.endsWith('.alive.com')),
    )
  })
})
