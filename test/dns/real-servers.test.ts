import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { trySendQuery } from '../../src/dns/wire/ask.ts'
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
    ['a zone with an IPv6-only name server', 'six.test'],
    ['a zone signed with DNSSEC', 'signed.test'],
    ['a name below a DNAME', 'app.old.dname.test'],
    ['a zone that another zone below test delegates', 'team.outer.test'],
    ['a TXT set that needs TCP', 'large.test'],
  ])('a check of %s on Knot and Unbound has the verdict `ready`', async (_title, name) => {
    const report = await network.check(name, EXPECTED)
    expect(report).toMatchObject({ verdict: 'ready', ready: true, retry_after_seconds: null, findings: [] })
    expect(report.resolvers).toMatchObject([{ outcome: 'match' }])
  })

  test.each([
    ['a missing name in a zone with an SOA minimum of 120 s', 'missing', 120, 'a.b.soamin.test'],
    ['a name below a wildcard with another value', 'wildcard_answer', 300, 'app.wild.test'],
    ['a name that exists beside a wildcard with the value', 'other_name', 60, 'a.b.wildhigh.test'],
    ['a CNAME to a missing name', 'cname_at_name', 300, 'app.dangling.test'],
    ['a name below an unregistered domain', 'domain_not_found', 900, 'app.nobody.test'],
    ['an unsigned zone with a DS record', 'dnssec_bogus', null, 'dsleft.test'],
  ])('a check of %s on Knot and Unbound finds %s, wait: %j s', async (_title, code, seconds, name) => {
    const report = await network.check(name, EXPECTED)
    expect([report.verdict, codesOf(report), report.retry_after_seconds]).toEqual(['fix', [code], seconds])
  })

  test('a check finds the zone and the record with an authoritative server as its only resolver', async () => {
    const resolvers = [{ address: HOSTS.a, port: network.port }]
    const report = await network.check('app.sub.test', EXPECTED, { resolvers })
    expect(report).toMatchObject({ ready: true, zone: 'sub.test' })
    expect(report.nameservers).toMatchObject([{ host: 'ns-a.sub.test' }, { host: 'ns-b.sub.test' }])
  })

  test.each([
    ['a negative answer', 'cachedabsence.test', 77, []],
    [
      'an old value',
      'cachedapex.test',
      222,
      [['zone-unset', 'cachedapex.test', '@', 'TXT', `"${OTHER_TOKEN}"`]],
    ],
  ])(
    '%s in the cache of Unbound gives the verdict `wait`, with the remaining TTL as waiting time',
    async (_title, name, seconds, before) => {
      const effects = realEffects()
      const question = { name, type: 'TXT', recursionDesired: true } as const
      await trySendQuery(network.unbound, question, createDeadline(5000, effects.clock), effects)
      await network.change(name, ...before, ['zone-set', name, '@', '222', 'TXT', `"${EXPECTED}"`])
      const report = await network.check(name, EXPECTED)
      expect([report.verdict, codesOf(report)]).toEqual(['wait', ['cached']])
      expect(report.retry_after_seconds).toBeGreaterThan(seconds - 20)
      expect(report.retry_after_seconds).toBeLessThanOrEqual(seconds)
    },
  )
})
