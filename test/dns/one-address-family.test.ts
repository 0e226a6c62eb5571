import { describe, expect, test } from 'vitest'
import type { Asked, FakeReply } from './fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const RESOLVERS = { IPv4: RESOLVER, IPv6: '2001:db8::53' } as const
const isV6 = (address: string) => address.includes(':')

/** As many as the registry of `com` has. */
const REGISTRY = Object.fromEntries(
  Array.from({ length: 13 }, (_, at) => [`r${at}.nic.com`, [`192.0.2.${100 + at}`, `2001:db8::${100 + at}`]]),
)

/** Checks on a machine that has only this address family, or neither. */
async function checkWith(
  family: 'IPv4' | 'IPv6' | undefined,
  servers: FakeZone['servers'],
  records: FakeZone['records'] = [txt('example.com', 'prefix=token')],
) {
  const world = fakeInternet([
    { apex: 'com', servers: REGISTRY },
    { apex: 'example.com', servers, records },
  ])
  const resolver = RESOLVERS[family ?? 'IPv4']
  const respond = (asked: Asked): FakeReply => {
    if (asked.server === resolver) return world({ ...asked, server: RESOLVER })
    const isRouted = family !== undefined && isV6(asked.server) === (family === 'IPv6')
    return isRouted ? world(asked) : 'no-route'
  }
  return (await timedCheck(respond, { resolvers: [resolver] })).report
}

const V4 = { 'ns1.example.com': ['192.0.2.2'] }
const V6 = { 'ns2.example.com': ['2001:db8::2'] }
const BOTH = { 'ns.example.com': ['192.0.2.2', '2001:db8::2'] }

describe.each([
  ['IPv4', V6, 'IPv6'],
  ['IPv6', V4, 'IPv4'],
] as const)('on a machine with only %s', (family, otherServers, other) => {
  test.each([
    ['both', BOTH],
    ['one of each', { ...V4, ...V6 }],
  ])('a healthy domain whose servers have %s is ready', async (_title, servers) => {
    const report = await checkWith(family, servers)
    expect(report).toMatchObject({ verdict: 'ready', findings: [] })
    for (const { address, outcome } of report.nameservers)
      expect(outcome).toBe(isV6(address ?? '') === (family === 'IPv6') ? 'match' : 'not_checked')
  })

  test(`nothing is known about a domain whose servers have only ${other}`, async () => {
    expect(await checkWith(family, otherServers)).toMatchObject({
      verdict: 'unknown',
      findings: [
        {
          code: 'nameserver_unreachable',
          message: `The name servers of example.com have only ${other} addresses, and this machine has no ${other} route: nothing could be checked`,
          fix: `Check from a machine with ${other}`,
        },
      ],
    })
  })
})

test('on a machine without a route to any name server, its own network is the first thing to check', async () => {
  expect(await checkWith(undefined, BOTH)).toMatchObject({
    verdict: 'unknown',
    findings: [
      {
        code: 'nameserver_unreachable',
        message: expect.stringContaining('This machine has no route to any name server of example.com'),
        fix: expect.stringContaining("Check this machine's network connection"),
      },
    ],
  })
})

test('on a machine whose firewall blocks queries to the name servers, the firewall is named', async () => {
  const world = fakeInternet([
    { apex: 'com', servers: REGISTRY },
    { apex: 'example.com', servers: BOTH },
  ])
  const { report } = await timedCheck((asked) => (asked.server === RESOLVER ? world(asked) : 'blocked'))
  expect(report).toMatchObject({
    verdict: 'unknown',
    findings: [{ code: 'nameserver_unreachable', message: expect.stringContaining('a firewall on it') }],
  })
})

test('on a machine whose firewall blocks DNS over UDP, the check goes over TCP', async () => {
  const world = fakeInternet([
    { apex: 'com', servers: REGISTRY },
    { apex: 'example.com', servers: BOTH, records: [txt('example.com', 'prefix=token')] },
  ])
  const { report } = await timedCheck((asked) => (asked.transport === 'udp' ? 'blocked' : world(asked)))
  expect(report).toMatchObject({ verdict: 'ready', findings: [] })
})
