import { describe, expect, test } from 'vitest'
import { surveyNameServers } from '../../../src/dns/observation/name-server-survey.ts'
import { limitQueries } from '../../../src/dns/wire/query-limit.ts'
import { type Asked, type FakeReply, RCODE } from '../fake-dns.ts'
import { type FakeZone, fakeInternet, txt } from '../fake-internet.ts'
import { timedContext } from '../timed-check.ts'

const hosts = (count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`ns${index + 1}.shop.com`, [`192.0.2.${index + 11}`]]),
  )

async function survey(
  servers: FakeZone['servers'],
  odd?: (asked: Asked) => FakeReply | undefined,
  most = Number.POSITIVE_INFINITY,
) {
  const zones = [
    { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
    { apex: 'shop.com', servers, records: [txt('shop.com', 'prefix=token')] },
  ]
  const { context, asked } = timedContext(fakeInternet(zones, odd))
  const located = {
    kind: 'located',
    delegation: { zone: 'shop.com', hosts: new Map(Object.keys(servers).map((host) => [host, []])) },
    soa: undefined,
    parent: { zone: 'com', hosts: Object.keys(servers), server: { address: '192.0.2.1', port: 53 } },
    verified: true,
  } as const
  const question = { name: 'shop.com', expected: 'prefix=token', serverMs: 4700 }
  const effects = { ...context.effects, dns: limitQueries(context.effects.dns, most) }
  const running = surveyNameServers(located, question, { ...context, effects })
  await running.done
  const seen = running.seen()
  return { seen, outcomes: seen.map(({ outcome }) => outcome), asked, childHosts: running.childHosts() }
}

const toServers = (asked: readonly Asked[], address: string) => asked.filter((one) => one.server === address)

describe('the survey of the name servers', () => {
  test('asks each server for the TXT set, the SOA record and the NS set, once', async () => {
    const { outcomes, asked, childHosts } = await survey(hosts(3))
    expect(outcomes).toEqual(['match', 'match', 'match'])
    expect(childHosts).toEqual(Object.keys(hosts(3)))
    expect(
      toServers(asked, '192.0.2.11')
        .map(({ type }) => type)
        .sort(),
    ).toEqual(['NS', 'SOA', 'TXT'])
  })

  test('spends five questions at most on a server that is silent', async () => {
    const { outcomes, asked } = await survey(hosts(2), ({ server }) =>
      server === '192.0.2.12' ? 'silent' : undefined,
    )
    expect(outcomes).toContain('timeout')
    expect(toServers(asked, '192.0.2.12').length).toBeLessThanOrEqual(5)
  })

  test('sees that a server answers without EDNS alone', async () => {
    const { seen } = await survey(hosts(1), ({ server, edns }) =>
      server === '192.0.2.11' && edns !== undefined ? 'silent' : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'match', dropped: 'edns', soa: { zone: 'shop.com' } }])
  })

  test('sees that a server answers over TCP alone', async () => {
    const { seen } = await survey(hosts(1), ({ server, transport }) =>
      server === '192.0.2.11' && transport === 'udp' ? 'silent' : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'match', dropped: 'udp', soa: { zone: 'shop.com' } }])
  })

  test('takes a lost datagram for a lost datagram', async () => {
    let lost = 0
    const { seen } = await survey(hosts(1), ({ server, type }) =>
      server === '192.0.2.11' && type === 'TXT' && ++lost === 1 ? 'silent' : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'match', dropped: undefined }])
  })

  test('takes a path that loses six datagrams in a row for a bad path', async () => {
    let lost = 0
    const { seen } = await survey(hosts(1), ({ server, transport }) =>
      server === '192.0.2.11' && transport === 'udp' && ++lost <= 6 ? 'silent' : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'match', dropped: undefined }])
  })

  test('knows a server of the zone that refuses TXT questions by its SOA record', async () => {
    const { seen } = await survey(hosts(1), ({ server, type }) =>
      server === '192.0.2.11' && type === 'TXT' ? { flags: RCODE.REFUSED } : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'refused', soa: { zone: 'shop.com' } }])
  })

  test('takes a host that resolvers fail to look up for one without an address, where the registry answered', async () => {
    const { seen } = await survey({ 'ns1.shop.com': [] }, ({ server, type }) =>
      server === '192.0.2.53' && type !== 'NS' ? { flags: 0x80 | RCODE.SERVFAIL } : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'unreachable', server: undefined }])
  })

  test('calls nobody silent whom it could not ask any more', async () => {
    const { outcomes } = await survey(hosts(20), undefined, 50)
    expect(outcomes).toContain('match')
    expect(outcomes).toContain('not_checked')
    expect(outcomes).not.toContain('timeout')
  })
})
