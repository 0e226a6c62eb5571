import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkDns } from '../../src/dns/check.ts'
import { ask } from '../../src/dns/wire/ask.ts'
import { createDeadline } from '../../src/timeout.ts'
import { needs } from '../requirements.ts'
import { realEffects } from './real-effects.ts'
import { type ServerNetwork, startServerNetwork } from './servers/server-network.ts'
import { HOSTS } from './servers/zone-file.ts'
import { EXPECTED, OTHER_TOKEN, ZONES } from './servers/zones.ts'

describe.runIf(needs('knotd', 'unbound'))('against Knot and Unbound', () => {
  let network: ServerNetwork
  beforeAll(async () => {
    network = await startServerNetwork(ZONES)
  })
  afterAll(async () => {
    await network?.stop()
  })
  const codesOf = ({ findings }: Awaited<ReturnType<ServerNetwork['check']>>) =>
    findings.map(({ code }) => code)

  test.each([
    ['a name server with only IPv6', 'six.test'],
    ['a zone signed with DNSSEC, validated', 'signed.test'],
    ['a name below a DNAME', 'app.old.dname.test'],
    ['a zone below another one', 'team.outer.test'],
    ['an answer that needs TCP', 'large.test'],
    ['a server behind forged and broken answers', 'noisy.test'],
  ])('%s is ready', async (_title, name) => {
    const report = await network.check(name, EXPECTED)
    expect(report).toMatchObject({ verdict: 'ready', ready: true, retry_after_seconds: null, findings: [] })
    expect(report.resolvers).toMatchObject([{ outcome: 'match' }])
  })

  test.each([
    ['missing.test', 'fix', ['missing'], 1800],
    ['a.b.soamin.test', 'fix', ['missing'], 120],
    ['app.wild.test', 'fix', ['wildcard_answer'], 300],
    ['a.b.wildhigh.test', 'fix', ['other_name'], 60],
    ['app.dangling.test', 'fix', ['cname_at_name'], 300],
    ['app.nobody.test', 'fix', ['domain_not_found'], 900],
    ['partial.test', 'wait', ['partial_propagation'], 60],
    ['alllame.test', 'fix', ['lame_nameserver'], null],
    ['dead.test', 'ready_with_warning', ['some_servers_silent'], null],
    ['noglue.test', 'fix', ['no_nameservers'], null],
    ['dsleft.test', 'fix', ['dnssec_bogus'], null],
    // The answer needs TCP, which is closed; the resolver takes longer ones over UDP.
    ['tcpclosed.test', 'ready_with_warning', ['resolver_only'], null],
  ])('%s: %s %j', async (name, verdict, codes, seconds) => {
    const report = await network.check(name, EXPECTED)
    expect([report.verdict, codesOf(report), report.retry_after_seconds]).toEqual([verdict, codes, seconds])
  })

  test('a silent server is waited for, but not for long, and is never absence', async () => {
    const options = { deadline: createDeadline(4000, { monotonic: () => performance.now() }) }
    const [one, all, resolver] = await Promise.all([
      network.check('silentone.test', EXPECTED, options),
      network.check('allsilent.test', EXPECTED, options),
      network.check('one.test', EXPECTED, {
        ...options,
        resolvers: [{ address: HOSTS.silent, port: network.port }],
      }),
    ])
    expect([one.verdict, codesOf(one)]).toEqual(['ready_with_warning', ['some_servers_silent']])
    expect([all.verdict, codesOf(all)]).toEqual(['unknown', ['nameserver_unreachable']])
    expect([resolver.verdict, codesOf(resolver)]).toEqual(['unknown', ['resolver_unreachable']])
  })

  test('an authoritative server works as the resolver', async () => {
    const resolvers = [{ address: HOSTS.a, port: network.port }]
    const report = await network.check('app.sub.test', EXPECTED, { resolvers })
    expect(report).toMatchObject({ ready: true, zone: 'sub.test' })
    expect(report.nameservers).toMatchObject([{ host: 'ns-a.sub.test' }, { host: 'ns-b.sub.test' }])
  })

  test('one of two resolvers that is dead is shown, and no finding: its silence says nothing', async () => {
    const dead = { address: HOSTS.dead, port: network.port }
    const report = await network.check('one.test', EXPECTED, { resolvers: [dead, network.unbound] })
    expect([report.verdict, codesOf(report)]).toEqual(['ready', []])
    expect(report.resolvers).toMatchObject([{ outcome: 'unreachable' }, { outcome: 'match' }])
  })

  test.each([
    ['an absence', 'cachedabsence.test', 77, []],
    [
      'an old value',
      'cachedapex.test',
      222,
      [['zone-unset', 'cachedapex.test', '@', 'TXT', `"${OTHER_TOKEN}"`]],
    ],
  ])('%s in a cache is waited for as long as it stays there', async (_title, name, seconds, before) => {
    const effects = realEffects()
    const question = { name, type: 'TXT', recursionDesired: true } as const
    await ask(network.unbound, question, createDeadline(5000, effects.clock), effects)
    await network.change(name, ...before, ['zone-set', name, '@', '222', 'TXT', `"${EXPECTED}"`])
    const report = await network.check(name, EXPECTED)
    expect([report.verdict, codesOf(report)]).toEqual(['wait', ['cached']])
    expect(report.retry_after_seconds).toBeGreaterThan(seconds - 20)
    expect(report.retry_after_seconds).toBeLessThanOrEqual(seconds)
  })

  test('an interrupt ends the check at once', async () => {
    const controller = new AbortController()
    const reason = new Error('interrupted')
    setTimeout(() => controller.abort(reason), 20)
    const request = { resolvers: [network.unbound], authoritativePort: network.port, publicResolvers: false }
    const start = performance.now()
    const checks = ['allsilent.test', 'silentone.test'].map((name) =>
      checkDns({ ...request, name, expected: EXPECTED }, realEffects(controller.signal)),
    )
    for (const ended of await Promise.allSettled(checks))
      expect(ended).toMatchObject({ status: 'rejected', reason })
    expect(performance.now() - start).toBeLessThan(2000)
  })

  test('resolvers are never asked about a name that the authoritative servers do not have', async () => {
    const names = [
      'a.b.missing.test',
      'missing.test',
      'app.wild.test',
      'app.doubledsub.test',
      'app.dangling.test',
    ]
    for (const name of names) for (const expected of [EXPECTED, null]) await network.check(name, expected)
    // If the network blocks queries to the authoritative servers (here: to a closed port), for the TXT set alone.
    const blocked = { authoritativePort: network.port === 65_535 ? 20_000 : network.port + 1 }
    expect((await network.check('x.y.soamin.test', EXPECTED, blocked)).verdict).toBe('unknown')
    const asked = network.resolverQueries()
    expect(asked).toContain('test. NS')
    const absent = [
      ...names.filter((name) => name !== 'missing.test'),
      'b.missing.test',
      'gone.dangling.test',
    ]
    for (const name of [...absent, 'y.soamin.test'])
      expect(asked.filter((question) => question.startsWith(`${name}. `))).toEqual([])
    expect(asked.filter((question) => question.startsWith('x.y.soamin.test. '))).toEqual([
      'x.y.soamin.test. TXT',
    ])
    expect(asked).not.toContain('missing.test. TXT')
  })
})
