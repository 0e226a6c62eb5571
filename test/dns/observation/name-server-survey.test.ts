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
  maxQueries = Number.POSITIVE_INFINITY,
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
  const effects = { ...context.effects, dns: limitQueries(context.effects.dns, maxQueries) }
  const running = surveyNameServers(located, question, { ...context, effects })
  await running.done
  const seen = running.seen()
  return { seen, outcomes: seen.map(({ outcome }) => outcome), asked, childHosts: running.childHosts() }
}

const toServers = (asked: readonly Asked[], address: string) => asked.filter((one) => one.server === address)

describe('the name server survey', () => {
  test('asks each server once for the TXT set, the SOA record, and the NS set', async () => {
    const { outcomes, asked, childHosts } = await survey(hosts(3))
    expect(outcomes).toEqual(['match', 'match', 'match'])
    expect(childHosts).toEqual(Object.keys(hosts(3)))
    expect(
      toServers(asked, '192.0.2.11')
        .map(({ type }) => type)
        .sort(),
    ).toEqual(['NS', 'SOA', 'TXT'])
  })

  test('sends at most five queries to a silent server', async () => {
    const { outcomes, asked } = await survey(hosts(2), ({ server }) =>
      server === '192.0.2.12' ? 'silent' : undefined,
    )
    expect(outcomes).toContain('timeout')
    expect(toServers(asked, '192.0.2.12').length).toBeLessThanOrEqual(5)
  })

  test('notices a server that only answers without EDNS', async () => {
    const { seen } = await survey(hosts(1), ({ server, edns }) =>
      server === '192.0.2.11' && edns !== undefined ? 'silent' : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'match', dropped: 'edns', soa: { zone: 'shop.com' } }])
  })

  test('notices a server that only answers over TCP', async () => {
    const { seen } = await survey(hosts(1), ({ server, transport }) =>
      server === '192.0.2.11' && transport === 'udp' ? 'silent' : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'match', dropped: 'udp', soa: { zone: 'shop.com' } }])
  })

  test('does not blame a server for a lost datagram', async () => {
    let lost = 0
    const { seen } = await survey(hosts(1), ({ server, type }) =>
      server === '192.0.2.11' && type === 'TXT' && ++lost === 1 ? 'silent' : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'match', dropped: undefined }])
  })

  test('does not blame a server for six lost datagrams in a row', async () => {
    let lost = 0
    const { seen } = await survey(hosts(1), ({ server, transport }) =>
      server === '192.0.2.11' && transport === 'udp' && ++lost <= 6 ? 'silent' : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'match', dropped: undefined }])
  })

  test('keeps the SOA record of a server that refuses TXT queries', async () => {
    const { seen } = await survey(hosts(1), ({ server, type }) =>
      server === '192.0.2.11' && type === 'TXT' ? { flags: RCODE.REFUSED } : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'refused', soa: { zone: 'shop.com' } }])
  })

  test('reports a host that resolvers fail to look up as without an address if the registry answered', async () => {
    const { seen } = await survey({ 'ns1.shop.com': [] }, ({ server, type }) =>
      server === '192.0.2.53' && type !== 'NS' ? { flags: 0x80 | RCODE.SERVFAIL } : undefined,
    )
    expect(seen).toMatchObject([{ outcome: 'unreachable', server: undefined }])
  })

  test('never reports a server as silent that it could not query within the limit', async () => {
    const { outcomes } = await survey(hosts(20), undefined, 50)
    expect(outcomes).toContain('match')
    expect(outcomes).toContain('not_checked')
    expect(outcomes).not.toContain('timeout')
  })
})
