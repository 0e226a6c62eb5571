import type { Answer } from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { renderMarkdown } from '../../src/dns/diagnosis/markdown.ts'
import { renderReport } from '../../src/dns/diagnosis/render.ts'
import { plainText } from '../../src/dns/diagnosis/text.ts'
import { PLAIN_PALETTE } from '../../src/terminal/color.ts'
import { AA, type Asked, type FakeReply, RA, RCODE, smallWorld, TC } from './fake-dns.ts'
import { fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const healthy = smallWorld(() => ['prefix=token'])

/** Checks from these resolvers; a server in `lateMs` answers that many milliseconds later. */
async function check(
  respond: (asked: Asked) => FakeReply,
  resolver: string | readonly string[] = '192.0.2.53',
  name = 'example.com',
  lateMs: Readonly<Record<string, number>> = {},
) {
  const roundMs = (server: string) => lateMs[server] ?? 0
  return (await timedCheck(respond, { name, resolvers: [resolver].flat(), roundMs })).report
}

test('addresses of other hosts in the additional section do not count as those of the host', async () => {
  const report = await check((asked) => {
    const reply = healthy(asked)
    if (asked.server !== '192.0.2.53' || asked.type !== 'A' || typeof reply === 'string') return reply
    return { ...reply, additionals: [{ name: 'ns.elsewhere.com', type: 'A', ttl: 60, data: '192.0.2.9' }] }
  })
  expect(report).toMatchObject({ verdict: 'ready', findings: [] })
  expect(report.nameservers.map((server) => server.address)).toEqual(['192.0.2.2'])
})

test.each([
  ['REFUSED', RCODE.REFUSED],
  ['SERVFAIL', RCODE.SERVFAIL],
])(
  'a resolver that answers %s does not count as a name server: the verdict is unknown',
  async (rcode, flags) => {
    const report = await check(() => ({ flags }))
    expect(report).toMatchObject({ verdict: 'unknown', zone: null, nameservers: [] })
    expect(report.findings).toMatchObject([
      {
        code: 'resolver_broken',
        message: `Couldn't find the name servers of example.com: 192.0.2.53 answers ${rcode}. The record itself may be fine`,
        details: { replies: [{ answer: rcode }, {}] },
      },
    ])
  },
)

test('an authoritative server given as the resolver works even if it refuses names above its zone', async () => {
  const report = await check((asked) => {
    const isOwn = asked.name === 'example.com' || asked.name.endsWith('.example.com')
    if (!isOwn) return { flags: RCODE.REFUSED }
    if (asked.name === 'ns.example.com' && asked.type === 'A')
      return { flags: AA, answers: [{ name: asked.name, type: 'A', ttl: 60, data: '192.0.2.2' }] }
    return healthy(asked)
  }, '192.0.2.2')
  expect(report).toMatchObject({ verdict: 'ready', zone: 'example.com', findings: [] })
})

test('a resolver without recursion that does not follow an alias has not cached an absence', async () => {
  const respond = (ra: number) => (asked: Asked) => {
    if (asked.name === 'v.example.com' && (asked.server === '192.0.2.2' || asked.type === 'TXT'))
      return {
        flags: asked.server === '192.0.2.2' ? AA : ra,
        answers: [{ name: asked.name, type: 'CNAME', ttl: 60, data: 'example.com' }],
      } satisfies FakeReply
    return healthy(asked)
  }
  expect(await check(respond(0), '192.0.2.53', 'v.example.com')).toMatchObject({
    verdict: 'ready',
    resolvers: [{ outcome: 'not_checked' }],
  })
  expect(await check(respond(RA), '192.0.2.53', 'v.example.com')).toMatchObject({
    verdict: 'ready_with_warning',
    findings: [{ code: 'txt_filtered' }, { code: 'cname_at_name' }],
  })
})

test('a truncated answer is read from a larger datagram if TCP is closed', async () => {
  const stale = smallWorld(() => ['prefix=older'])
  const report = await check((asked) => {
    if (asked.server !== '192.0.2.2') return stale(asked)
    if (asked.transport === 'tcp') return 'refused'
    return asked.type === 'TXT' && (asked.edns ?? 0) < 4096 ? { flags: AA | TC } : stale(asked)
  })
  expect(report.nameservers).toMatchObject([{ outcome: 'mismatch', values: ['prefix=older'] }])
  expect(report).toMatchObject({
    verdict: 'fix',
    findings: [
      { code: 'stale_token', severity: 'error' },
      { code: 'tcp_blocked', severity: 'warning' },
      { code: 'wrong_provider_hint', severity: 'info' },
    ],
  })
})

const soaData = (name: string) => ({
  mname: name === '.' ? 'a' : `a.${name}`,
  rname: name === '.' ? 'h' : `h.${name}`,
  serial: 1,
  refresh: 7200,
  minimum: 900,
})
const soa = (name: string): Answer => ({ name, type: 'SOA', ttl: 900, data: soaData(name) })

test.each([
  ['answers NXDOMAIN', { flags: RA | RCODE.NXDOMAIN, authorities: [soa('.')] }],
  ['refuses', { flags: RCODE.REFUSED }],
] satisfies [string, FakeReply][])(
  'a resolver that %s first does not win over one that knows the domain, as in a VPN',
  async (_title, reply) => {
    const report = await check(
      (asked) => (asked.server === '192.0.2.99' ? reply : healthy(asked)),
      ['192.0.2.99', '192.0.2.53'],
      'example.com',
      { '192.0.2.53': 80 },
    )
    expect(report.zone).toBe('example.com')
    expect(report.nameservers).toMatchObject([{ outcome: 'match', address: '192.0.2.2' }])
  },
)

test('a name server that only the slower of two resolvers knows is found', async () => {
  const report = await check(
    (asked) => {
      if (asked.server === '192.0.2.99')
        return asked.name === 'ns.example.com' ? { flags: RA | RCODE.NXDOMAIN } : 'silent'
      const reply = healthy(asked)
      // Without glue, as if the host were in another zone.
      return asked.server === '192.0.2.1' && typeof reply !== 'string' ? { ...reply, additionals: [] } : reply
    },
    ['192.0.2.99', '192.0.2.53'],
    'example.com',
    { '192.0.2.53': 80 },
  )
  expect(report.nameservers).toMatchObject([{ outcome: 'match', address: '192.0.2.2' }])
})

test('a resolver that fails once and then answers does not mean invalid signatures', async () => {
  let failures = 0
  const report = await check((asked) => {
    const isPlain = asked.server === '192.0.2.53' && asked.type === 'TXT' && !asked.checkingDisabled
    if (isPlain && failures < 1) {
      failures += 1
      return { flags: RA | RCODE.SERVFAIL }
    }
    return healthy(asked)
  })
  expect(report).toMatchObject({ verdict: 'ready', findings: [], resolvers: [{ outcome: 'match' }] })
})

test.each([
  ['jp', 'nosuch.co.jp'],
  ['com', 'nosuch.com'],
])('what the registry of %s does not know is the domain %s, not just a part of it', async (top, domain) => {
  const report = await check(
    ({ server, name, type }) => {
      if (server === '192.0.2.1') return { flags: AA | RCODE.NXDOMAIN, authorities: [soa(top)] }
      if (name !== top || type !== 'NS') return { flags: RA }
      return {
        flags: RA,
        answers: [{ name: top, type: 'NS', ttl: 60, data: `a.${top}` }],
        additionals: [{ name: `a.${top}`, type: 'A', ttl: 60, data: '192.0.2.1' }],
      }
    },
    '192.0.2.53',
    `app.${domain}`,
  )
  expect(report.findings).toMatchObject([{ code: 'domain_not_found', details: { domain, said_by: top } }])
})

test.each(['com', '.'])(
  'a delegated server that answers NXDOMAIN from the zone %s above is lame, and the domain exists',
  async (above) => {
    const report = await check((asked) =>
      asked.server === '192.0.2.2'
        ? { flags: AA | RCODE.NXDOMAIN, authorities: [soa(above)] }
        : healthy(asked),
    )
    expect(report).toMatchObject({
      verdict: 'fix',
      zone: 'example.com',
      findings: [
        { code: 'lame_nameserver', message: expect.stringContaining('NXDOMAIN from a zone above it') },
      ],
    })
  },
)

test('a server that drops queries for signatures is reported, not the resolver that fails because of it', async () => {
  const report = await check((asked) => {
    if (asked.server === '192.0.2.2' && asked.dnssecOk) return 'silent'
    return asked.server === '192.0.2.53' && asked.type === 'TXT' ? 'silent' : healthy(asked)
  })
  expect(report.findings).toMatchObject([
    { code: 'edns_dropped', details: { dropped: 'do', servers: [{ host: 'ns.example.com' }] } },
  ])
})

/** The name server gives its referral to the root; `others` is what the servers above it offer. */
const openRecursion =
  (others: 'registry' | 'recursion') =>
  (asked: Asked): FakeReply => {
    const upward: FakeReply = {
      flags: RA,
      authorities: [{ name: '.', type: 'NS', ttl: 60, data: 'a.root-servers.net' }],
    }
    if (asked.server === '192.0.2.2') return upward
    if (asked.server === '192.0.2.53' && asked.name === 'example.com' && asked.type === 'NS')
      return { flags: RA, answers: [{ name: 'example.com', type: 'NS', ttl: 60, data: 'ns.example.com' }] }
    return asked.server === '192.0.2.1' && others === 'recursion' ? upward : healthy(asked)
  }

test('a server without the zone that offers recursion to everyone is lame', async () => {
  expect(await check(openRecursion('registry'))).toMatchObject({
    verdict: 'fix',
    findings: [{ code: 'lame_nameserver' }],
  })
})

test('if the registry’s servers seem to offer recursion as well, DNS is intercepted', async () => {
  expect(await check(openRecursion('recursion'))).toMatchObject({
    verdict: 'unknown',
    findings: [{ code: 'dns_intercepted' }],
  })
})

test('a referral with recursion on offer, instead of the registry’s own, comes from an interceptor', async () => {
  const report = await check((asked) => {
    const reply = healthy(asked)
    if (asked.server === '192.0.2.1' && typeof reply !== 'string') return { ...reply, flags: RA }
    return asked.server === '192.0.2.2' && typeof reply !== 'string' ? { ...reply, flags: RA } : reply
  })
  expect(report).toMatchObject({ verdict: 'unknown', findings: [{ code: 'dns_intercepted' }] })
})

test('a router that redirects only IPv4 to a resolver does not make the domain’s servers lame', async () => {
  const world = fakeInternet([
    { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1', '2001:db8::1'] } },
    {
      apex: 'example.com',
      servers: { 'ns.example.com': ['192.0.2.11'] },
      records: [txt('example.com', 'prefix=token')],
    },
  ])
  const redirected = ({ server }: Asked) => server !== RESOLVER && !server.includes(':')
  const report = await check((asked) => (redirected(asked) ? { flags: RA | RCODE.REFUSED } : world(asked)))
  expect(report).toMatchObject({ verdict: 'unknown', findings: [{ code: 'dns_intercepted' }] })
  expect(await check(world)).toMatchObject({ verdict: 'ready', findings: [] })
})

describe('a CNAME next to the record', () => {
  const cname: Answer = { name: 'example.com', type: 'CNAME', ttl: 3600, data: 'web.example.com' }
  let left = 900
  /** The resolver has cached the CNAME, and that its target has no TXT records. */
  const world =
    (atServer: (type: string) => boolean) =>
    (asked: Asked): FakeReply => {
      const { server, name, type } = asked
      const reply = healthy(asked)
      if (name !== 'example.com' || typeof reply === 'string') return reply
      if (server === '192.0.2.53' && type === 'TXT') {
        left -= 1
        const authorities = [{ ...soa('example.com'), ttl: left } as Answer]
        return { flags: RA, answers: [cname], authorities }
      }
      return server === '192.0.2.2' && atServer(type)
        ? { flags: AA, answers: [cname, ...(reply.answers ?? [])] }
        : reply
    }

  test.each([
    ['in the same answer', (type: string) => type === 'TXT'],
    ['that only other queries show', (type: string) => type === 'A' || type === 'CNAME'],
  ])('%s has to be removed: waiting does not help', async (_title, atServer) => {
    expect(await check(world(atServer))).toMatchObject({
      verdict: 'fix',
      findings: [
        { code: 'cname_at_name', details: { target: 'web.example.com', servers: ['ns.example.com'] } },
      ],
    })
  })

  test('that the server no longer has is waited for, as long as the CNAME is cached', async () => {
    expect(await check(world(() => false))).toMatchObject({
      verdict: 'wait',
      retry_after_seconds: 3600,
      findings: [{ code: 'cached_absence' }],
    })
  })
})

test.each([2_147_483_647, 604_800])('a script is never told to wait for %i seconds', async (ttl) => {
  const empty = smallWorld(() => [])
  const report = await check((asked) => {
    const reply = empty(asked)
    if (asked.type !== 'TXT' || typeof reply === 'string') return reply
    const record = { ...soa('example.com'), ttl, data: { ...soaData('example.com'), minimum: ttl } }
    return { ...reply, authorities: [record as Answer] }
  })
  expect(report).toMatchObject({ verdict: 'fix', retry_after_seconds: 86_400 })
})

test('the registry’s glue is compared with the address in the zone', async () => {
  const hosts = [
    ['ns1.example.com', '192.0.2.2'],
    ['ns2.example.com', '192.0.2.3'],
  ] as const
  const ns = hosts.map(([data]): Answer => ({ name: 'example.com', type: 'NS', ttl: 60, data }))
  const glue = hosts.map(([name, data]): Answer => ({ name, type: 'A', ttl: 60, data }))
  const old = smallWorld(() => [])
  const report = await check((asked) => {
    const { server, name, type } = asked
    if (server === '192.0.2.1') return { authorities: ns, additionals: glue }
    if (server === '192.0.2.53' && type === 'A')
      return { flags: RA, answers: glue.filter((a) => a.name === name) }
    if (type === 'NS' && name === 'example.com') return { flags: AA, answers: ns }
    if (server === '192.0.2.3') return old({ ...asked, server: '192.0.2.2' })
    if (server === '192.0.2.2' && type === 'A')
      return {
        flags: AA,
        answers: [{ name, type, ttl: 60, data: name.startsWith('ns1') ? '192.0.2.2' : '192.0.2.22' }],
      }
    return healthy(asked)
  })
  expect(report).toMatchObject({
    verdict: 'fix',
    findings: [
      {
        code: 'partial_propagation',
        details: { stale_glue: [{ host: 'ns2.example.com', glue: '192.0.2.3', own: ['192.0.2.22'] }] },
      },
    ],
  })
})

test('an alias is followed through a zone with a dead name server', async () => {
  const delegation: FakeReply = {
    authorities: ['ns1', 'ns2'].map((host) => ({
      name: 'other.com',
      type: 'NS',
      ttl: 60,
      data: `${host}.other.com`,
    })),
    additionals: [
      { name: 'ns1.other.com', type: 'A', ttl: 60, data: '192.0.2.8' },
      { name: 'ns2.other.com', type: 'A', ttl: 60, data: '192.0.2.9' },
    ],
  }
  const report = await check(
    (asked) => {
      const { server, name, type } = asked
      if (server === '192.0.2.8') return 'silent'
      if (server === '192.0.2.2' && name === 'v.example.com')
        return { flags: AA, answers: [{ name, type: 'CNAME', ttl: 60, data: 'proof.other.com' }] }
      if (server === '192.0.2.1' && name === 'proof.other.com') return delegation
      if (server === '192.0.2.9')
        return type === 'TXT'
          ? { flags: AA, answers: [{ name, type: 'TXT', ttl: 60, data: 'prefix=token' }] }
          : { flags: AA, authorities: [soa('other.com')] }
      return healthy(asked)
    },
    '192.0.2.53',
    'v.example.com',
  )
  expect(report).toMatchObject({ verdict: 'ready', nameservers: [{ outcome: 'match' }] })
})

test('servers are listed by name, not by who answers first', async () => {
  const empty = smallWorld(() => [])
  const hosts = [
    ['ns.example.com', '192.0.2.2'],
    ['ns2.example.com', '192.0.2.3'],
  ] as const
  const ns = hosts.map(([data]): Answer => ({ name: 'example.com', type: 'NS', ttl: 60, data }))
  const additionals = hosts.map(([name, data]): Answer => ({ name, type: 'A', ttl: 60, data }))
  const report = await check(
    (asked) => {
      if (asked.server === '192.0.2.1') return { authorities: ns, additionals }
      if (asked.type === 'NS' && asked.name === 'example.com') return { flags: AA, answers: ns }
      return empty(asked.server === '192.0.2.3' ? { ...asked, server: '192.0.2.2' } : asked)
    },
    '192.0.2.53',
    'example.com',
    { '192.0.2.2': 80 },
  )
  const names = hosts.map(([name]) => name)
  expect(report.nameservers.map((server) => server.host)).toEqual(names)
  expect(report.findings.at(-1)?.details['nameservers']).toEqual(names)
})

test('a dozen aliases in a row are not a loop', async () => {
  const report = await check(
    (asked) => {
      const at = /^v(\d+)\.example\.com$/.exec(asked.name)
      if (asked.server !== '192.0.2.2' || at === null) return healthy(asked)
      const to = Number(at[1]) < 12 ? `v${Number(at[1]) + 1}.example.com` : 'example.com'
      return { flags: AA, answers: [{ name: asked.name, type: 'CNAME', ttl: 60, data: to }] }
    },
    '192.0.2.53',
    'v1.example.com',
  )
  expect(report).toMatchObject({ verdict: 'ready', nameservers: [{ outcome: 'match' }] })
})

test('an absence with a TTL of 0 is not reported as cached', async () => {
  const empty = smallWorld(() => [])
  const report = await check((asked) => {
    const reply = empty(asked)
    if (asked.type !== 'TXT' || typeof reply === 'string') return reply
    return { ...reply, authorities: [{ ...soa('example.com'), ttl: 0 }] as Answer[] }
  })
  expect(report).toMatchObject({ verdict: 'fix', retry_after_seconds: 0 })
  expect(renderReport(report, { palette: PLAIN_PALETTE, width: 80 })).not.toMatch(/Caches|0 seconds/)
  expect(renderMarkdown(report, { at: 0, version: '1', resolvers: [] })).not.toMatch(/Caches|0 seconds/)
})

test.each([
  ['lacks the record', { flags: AA | RA, authorities: [soa('example.com')] }],
  ['lacks the name', { flags: AA | RA | RCODE.NXDOMAIN, authorities: [soa('example.com')] }],
  [
    'has another record',
    { flags: AA | RA, answers: [{ name: 'example.com', type: 'TXT', ttl: 60, data: 'inside' }] },
  ],
] satisfies [string, FakeReply][])(
  'a resolver with its own copy of the zone, which %s, is not worth waiting for',
  async (_title, reply) => {
    const report = await check((asked) =>
      asked.server === '192.0.2.53' && asked.type === 'TXT' ? reply : healthy(asked),
    )
    expect(report).toMatchObject({
      verdict: 'ready_with_warning',
      retry_after_seconds: null,
      findings: [{ code: 'split_dns', details: { authoritative: true } }],
    })
  },
)

test.each([
  ['removes TXT records from answers', { flags: RA }],
  ['blocks the name', { flags: RA | RCODE.NXDOMAIN }],
] satisfies [string, FakeReply][])('a resolver that %s is not worth waiting for', async (_title, reply) => {
  const report = await check((asked) =>
    asked.server === '192.0.2.53' && asked.type === 'TXT' ? reply : healthy(asked),
  )
  expect(report).toMatchObject({
    verdict: 'ready_with_warning',
    retry_after_seconds: null,
    findings: [{ code: 'txt_filtered' }],
  })
})

test('one lost datagram does not hide that a part of the zone is delegated', async () => {
  let lost = 0
  const report = await check(
    (asked) => {
      const { server, name, type, transport } = asked
      const isPart = name === 'app.example.com'
      if (server === '192.0.2.2' && isPart) {
        if (lost === 0 && transport === 'udp') {
          lost += 1
          return 'silent'
        }
        return {
          authorities: [{ name, type: 'NS', ttl: 60, data: 'ns.app.example.com' }],
          additionals: [{ name: 'ns.app.example.com', type: 'A', ttl: 60, data: '192.0.2.7' }],
        }
      }
      if (server === '192.0.2.53' && name === 'ns.app.example.com' && type === 'A')
        return { flags: RA, answers: [{ name, type, ttl: 60, data: '192.0.2.7' }] }
      if (server !== '192.0.2.7') return healthy(asked)
      if (type === 'TXT' && isPart)
        return { flags: AA, answers: [{ name, type, ttl: 60, data: 'prefix=token' }] }
      if (type === 'NS') return { flags: AA, answers: [{ name, type, ttl: 60, data: 'ns.app.example.com' }] }
      if (type === 'SOA' && isPart) return { flags: AA, answers: [soa(name)] }
      return { flags: AA, authorities: [soa('app.example.com')] }
    },
    '192.0.2.53',
    'app.example.com',
  )
  expect(report).toMatchObject({ verdict: 'ready', zone: 'app.example.com', findings: [] })
})

describe('endless aliases:', () => {
  /** The zone example.com, with these records as the answer for every name below `shop.example.com`. */
  const shop =
    (answers: (name: string) => Answer[]) =>
    (asked: Asked): FakeReply => {
      const isBelow = asked.server === '192.0.2.2' && asked.name.endsWith('.shop.example.com')
      return isBelow ? { flags: AA, answers: answers(asked.name) } : healthy(asked)
    }

  test.each([
    ['eu.shop.example.com', 'app.shop.example.com → app.eu.shop.example.com → …'],
    ['shop.example.com', 'app.shop.example.com → app.shop.example.com → …'],
  ])('a DNAME that points below itself, to %s, is explained', async (target, chain) => {
    const dname: Answer = { name: 'shop.example.com', type: 'DNAME', ttl: 60, data: target }
    const report = await check(
      shop(() => [dname]),
      '192.0.2.53',
      'app.shop.example.com',
    )
    expect(report.verdict).toBe('fix')
    expect(report.findings).toMatchObject([{ code: 'cname_loop', details: { dname: 'shop.example.com' } }])
    expect(report.findings[0]?.message).toBe(
      `app.shop.example.com is an alias (through the DNAME at shop.example.com) that leads back below shop.example.com, where the same DNAME applies again, endlessly: ${chain}`,
    )
    expect(plainText(report.findings[0]?.fix ?? '')).toContain('Remove the DNAME at shop.example.com')
  })

  test('two DNAMEs that lengthen the name in turn are a loop', async () => {
    const report = await check(
      shop(() => [
        { name: 'shop.example.com', type: 'DNAME', ttl: 60, data: 'a.store.example.com' },
        { name: 'store.example.com', type: 'DNAME', ttl: 60, data: 'b.shop.example.com' },
      ]),
      '192.0.2.53',
      'app.shop.example.com',
    )
    expect(report.findings).toMatchObject([{ code: 'cname_loop' }])
    expect(report.findings[0]?.message).toContain('that never ends')
  })

  test('a chain of ever new names ends after as many as resolvers follow', async () => {
    const next = (name: string): Answer => ({ name, type: 'CNAME', ttl: 60, data: `1${name}` })
    const report = await check(
      shop((name) => [next(name)]),
      '192.0.2.53',
      'app.shop.example.com',
    )
    expect(report.findings).toMatchObject([{ code: 'cname_loop' }])
    expect(report.findings[0]?.message).toContain('that never ends')
  })

  test('an alias for a name longer than DNS allows (YXDOMAIN) is dangling', async () => {
    const target = `${Array(3).fill('x'.repeat(60)).join('.')}.example.com`
    const dname: Answer = { name: 'shop.example.com', type: 'DNAME', ttl: 60, data: target }
    const report = await check(
      (asked) => {
        const reply = shop(() => [dname])(asked)
        return typeof reply !== 'string' && reply.answers?.[0] === dname ? { ...reply, flags: AA | 6 } : reply
      },
      '192.0.2.53',
      `${'y'.repeat(63)}.shop.example.com`,
    )
    expect(report.verdict).toBe('fix')
    expect(report.findings).toMatchObject([
      {
        code: 'cname_dangling',
        message: expect.stringContaining("a name of 258 characters, which can't exist"),
      },
    ])
  })
})

test('name servers that all fail may recover by themselves, so the registrar is not the first place to go', async () => {
  const report = await check((asked) => {
    const isOwn = asked.server === '192.0.2.2' || asked.server === '192.0.2.3'
    return isOwn ? { flags: RCODE.SERVFAIL } : healthy(asked)
  })
  expect(report.findings[0]).toMatchObject({
    code: 'lame_nameserver',
    fix: expect.stringMatching(
      /^Ask the DNS provider why .* for .*; an outage passes by itself, so check again/,
    ),
  })
})
