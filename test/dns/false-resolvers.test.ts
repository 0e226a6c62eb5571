import type { Answer } from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { plainText } from '../../src/dns/diagnosis/text.ts'
import { AA, type Asked, type FakeReply, RA, RCODE } from './fake-dns.ts'
import { fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const ROOT_SOA: Answer = {
  type: 'SOA',
  name: '.',
  ttl: 900,
  data: { mname: 'ns.corp', rname: 'it.corp', serial: 1, refresh: 7200, minimum: 900 },
}
const denial = (flags: number, authorities: Answer[] = []): FakeReply => ({
  flags: flags | RCODE.NXDOMAIN,
  authorities,
})

const DENIALS = [
  ['with a root zone of its own', denial(RA | AA, [ROOT_SOA])],
  ['that says so of its own root without recursion', denial(AA, [ROOT_SOA])],
  ['without an SOA record', denial(RA)],
  ['with authority, but without an SOA record', denial(AA)],
  ['with neither', denial(0)],
] as const

describe('a resolver that denies everything', () => {
  test.each(DENIALS)('%s says nothing about the domain', async (_title, reply) => {
    const { report } = await timedCheck(() => reply)
    expect(report).toMatchObject({
      verdict: 'unknown',
      zone: null,
      findings: [
        {
          code: 'resolver_broken',
          message:
            "Couldn't find the name servers of example.com: 192.0.2.53 denies names that exist (com NS gives NXDOMAIN), like a private root or a filter. The record itself may be fine",
        },
      ],
    })
  })

  test.each(DENIALS)('%s does not hide what another one knows', async (_title, reply) => {
    const other = '192.0.2.54'
    const world = fakeInternet([
      { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
      {
        apex: 'example.com',
        servers: { 'ns.example.com': ['192.0.2.2'] },
        records: [txt('example.com', 'prefix=token')],
      },
    ])
    const respond = (asked: Asked) =>
      asked.server === RESOLVER
        ? reply
        : world(asked.server === other ? { ...asked, server: RESOLVER } : asked)
    const { report } = await timedCheck(respond, { resolvers: [RESOLVER, other] })
    expect(report.nameservers).toMatchObject([{ host: 'ns.example.com', outcome: 'match' }])
    expect(report.ready).toBe(true)
  })

  test.each([
    ['a recursive resolver', RA],
    ['an authoritative server', AA],
  ])('is believed about a private top-level domain: %s', async (_title, flags) => {
    const { report } = await timedCheck(() => denial(flags, [ROOT_SOA]), { name: 'shop.corp' })
    expect(report).toMatchObject({
      verdict: 'fix',
      findings: [{ code: 'domain_not_found', details: { domain: 'shop.corp', said_by: 'resolver' } }],
    })
    expect(report.findings[0]?.message).toBe(
      "The domain shop.corp doesn't exist: the resolver answers NXDOMAIN",
    )
  })
})

test.each([
  ['nothing but addresses', []],
  ['with the SOA record of its own root', [ROOT_SOA]],
] as const)('a portal that answers everything itself, %s, says nothing about the record', async (_, soa) => {
  const { report } = await timedCheck(({ name, type }) => ({
    flags: AA,
    ...(type === 'A'
      ? { answers: [{ name, type, ttl: 60, data: '192.0.2.80' }] }
      : { authorities: [...soa] }),
  }))
  expect(report).toMatchObject({ verdict: 'unknown', findings: [{ code: 'resolver_broken' }] })
})

test.each([
  // A router, the stub resolvers of a machine and of a container, and one that serves only some networks.
  ...['192.168.1.1', '127.0.0.53', '127.0.0.11', '203.0.113.53', '2001:db8::53'].map(
    (address): [string, RegExp] => [
      address,
      /^Use a resolver that works: --resolver 9\.9\.9\.9\. If that one gives no usable answer either,/,
    ],
  ),
  ['9.9.9.9', /^Something on this network most likely answers instead, so another resolver won't help:/],
])('the advice on a portal that answers for %s is something a person can do', async (address, start) => {
  const { report } = await timedCheck(() => ({ flags: RA }), { resolvers: [address] })
  const fix = plainText(report.findings[0]?.fix ?? '')
  expect(fix).toMatch(start)
  expect(fix).toContain('sign in on the web page of this network')
  expect(fix).toContain('turn off any VPN')
  expect(fix).toContain('check from another network')
  if (address === '9.9.9.9') expect(fix).not.toContain('--resolver')
})

test.each(['example.com', 'app.example.com'])(
  'a relay that answers for all servers is noticed, even if it does not offer recursion: %s',
  async (name) => {
    const world = fakeInternet([
      { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
      { apex: 'example.com', servers: { 'ns.example.com': ['192.0.2.2'] } },
    ])
    const { report } = await timedCheck(
      (asked) => {
        const reply = world({ ...asked, server: RESOLVER })
        return asked.server === RESOLVER || typeof reply === 'string'
          ? reply
          : { ...reply, flags: (reply.flags ?? 0) & ~RA }
      },
      { name },
    )
    expect(report).toMatchObject({ verdict: 'unknown', findings: [{ code: 'dns_intercepted' }] })
  },
)

/** As dnsmasq does with its option `filterwin2k`, in front of a resolver that refuses queries without recursion. */
test.each([
  ['refuses with recursion available', RA],
  ['refuses without', 0],
])('a forwarder in place of all servers that denies SOA records and %s is noticed', async (_title, flags) => {
  const world = fakeInternet([
    { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
    {
      apex: 'example.com',
      servers: { 'ns.example.com': ['192.0.2.2'] },
      records: [txt('example.com', 'prefix=token')],
    },
  ])
  const respond = (asked: Asked): FakeReply => {
    if (asked.type === 'SOA') return { flags: RA | AA }
    return asked.recursionDesired ? world({ ...asked, server: RESOLVER }) : { flags: flags | RCODE.REFUSED }
  }
  for (const expected of ['prefix=token', null]) {
    const { report } = await timedCheck(respond, { expected })
    expect(report).toMatchObject({
      verdict: 'unknown',
      zone: 'example.com',
      findings: [{ code: 'dns_intercepted' }],
    })
  }
})

test('a referral counts more than an empty answer with authority', async () => {
  const world = fakeInternet([
    { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'], 'b.nic.com': ['192.0.2.3'] } },
    {
      apex: 'example.com',
      servers: { 'ns.example.com': ['192.0.2.2'] },
      records: [txt('example.com', 'prefix=token')],
    },
  ])
  const { report } = await timedCheck((asked) =>
    asked.server === '192.0.2.1' ? { flags: AA } : world(asked),
  )
  expect(report).toMatchObject({ verdict: 'ready', zone: 'example.com' })
})
