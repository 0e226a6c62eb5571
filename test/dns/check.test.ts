import type packet from 'dns-packet'
import { describe, expect, test } from 'vitest'
import type { DnsObservations } from '../../src/dns/observations.ts'
import { AA, type Asked, type FakeReply, RA, RCODE, TC } from './fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { ROUND_MS, timedCheck, timedObserve } from './timed-check.ts'

const REGISTRY = '192.0.2.1'
const COM: FakeZone = { apex: 'com', servers: { 'a.nic.com': [REGISTRY] } }
const NET: FakeZone = { apex: 'net', servers: { 'a.nic.net': ['192.0.2.9'] } }
const ONE = '192.0.2.2'
const TWO = '192.0.2.3'
const SERVERS = { 'ns1.example.com': [ONE], 'ns2.example.com': [TWO] }
const RECORD = [txt('example.com', 'prefix=token')]
const zone = (records: FakeZone['records'] = RECORD, more: Partial<FakeZone> = {}): FakeZone => ({
  apex: 'example.com',
  servers: SERVERS,
  records: records ?? [],
  ...more,
})
const cname = (name: string, data: string): packet.Answer => ({ type: 'CNAME', name, ttl: 77, data })
const textsOf = ({ servers }: DnsObservations) =>
  servers.map(({ values }) => values.map(({ bytes }) => Buffer.from(bytes).toString()))

/** Returns the recursive queries for this name and names below it. */
const recursive = (asked: readonly Asked[], name: string) =>
  asked.filter((one) => one.recursionDesired && one.name.endsWith(name) && one.name !== 'com')

describe('the search for the zone of a name', () => {
  test('the path to a found zone lists each zone from the top-level domain down, with its name servers', async () => {
    const team = { apex: 'team.example.com', servers: { 'ns.team.example.com': ['192.0.2.8'] } }
    const { seen } = await timedObserve(fakeInternet([COM, zone(), team]), { name: 'a.team.example.com' })
    expect(seen.location.path.map(({ zone, hosts }) => [zone, ...hosts.keys()])).toEqual([
      ['com', 'a.nic.com'],
      ['example.com', ...Object.keys(SERVERS)],
      ['team.example.com', 'ns.team.example.com'],
    ])
  })

  test('a check finds a zone on the same name servers as its parent zone, which send no referral', async () => {
    const child = {
      apex: 'sub.example.com',
      servers: SERVERS,
      records: [txt('a.sub.example.com', 'prefix=token')],
    }
    const { seen, outcomes } = await timedObserve(fakeInternet([COM, zone(), child]), {
      name: 'a.sub.example.com',
    })
    expect(seen.location).toMatchObject({ kind: 'found', zone: 'sub.example.com' })
    expect(outcomes).toEqual(['ns1.example.com match', 'ns2.example.com match'])
  })

  test('the zone search for a domain that the registry denies returns `no_domain` with the negative TTL of the denial', async () => {
    const { seen } = await timedObserve(fakeInternet([COM]))
    const denied = { kind: 'no_domain', domain: 'example.com', deniedBy: 'com', negativeTtl: 60 }
    expect(seen.location).toMatchObject(denied)
  })

  test('a check of a name below a nonexistent top-level domain gives the finding `domain_not_found`', async () => {
    const root = { apex: '.', servers: { 'a.root-servers.net': ['192.0.2.100'] } }
    const { report } = await timedCheck(fakeInternet([root, COM, zone()]), { name: 'app.example.con' })
    expect(report).toMatchObject({
      verdict: 'fix',
      findings: [{ code: 'domain_not_found', evidence: { domain: 'example.con', said_by: '.' } }],
    })
  })

  test('a check finds a new domain even if one of two registry servers still denies it', async () => {
    const servers = { 'a.nic.com': [REGISTRY], 'b.nic.com': ['192.0.2.7'] }
    const [world, before] = [fakeInternet([{ ...COM, servers }, zone()]), fakeInternet([{ ...COM, servers }])]
    const { outcomes } = await timedObserve((asked) => (asked.server === REGISTRY ? before : world)(asked))
    expect(outcomes).toEqual(['ns1.example.com match', 'ns2.example.com match'])
  })

  test('if no registry server responds, a check finds the zone by the NS records of a resolver within three seconds', async () => {
    const world = fakeInternet([COM, zone()])
    const { seen, ms } = await timedObserve((asked) => (asked.server === REGISTRY ? 'silent' : world(asked)))
    expect(seen.location).toMatchObject({ kind: 'found', zone: 'example.com', parent: null })
    expect(ms).toBeLessThan(3000)
  })

  test('a check finds a zone below a private top-level domain by NS records that a resolver returns', async () => {
    const corp = {
      apex: 'shop.corp',
      servers: { 'dc.shop.corp': ['10.0.0.2'] },
      records: [txt('a.shop.corp', 'prefix=token')],
    }
    const { outcomes } = await timedObserve(fakeInternet([corp]), { name: 'a.shop.corp' })
    expect(outcomes).toEqual(['dc.shop.corp match'])
  })

  const denial = (flags: number): FakeReply => ({ flags: flags | RCODE.NXDOMAIN })
  test.each([
    ['silent', 'silent', 'no answer'],
    ['refusing', { flags: RCODE.REFUSED }, 'REFUSED'],
    ['failing', { flags: RA | RCODE.SERVFAIL }, 'SERVFAIL'],
    ['denying every name', denial(RA), 'NXDOMAIN'],
    ['denying every name with authority', denial(AA), 'NXDOMAIN'],
  ] as const)('a resolver that is %s does not prove a domain nonexistent', async (_title, reply, answer) => {
    const { seen, ms } = await timedObserve(() => reply)
    expect(seen.location).toMatchObject({ kind: 'lost', replies: [`${RESOLVER}: ${answer}`] })
    expect(ms).toBeLessThan(10_000)
  })

  test('a check finds the zone of a domain if one resolver returns its NS records and another returns NXDOMAIN for every name', async () => {
    const world = fakeInternet([COM, zone()])
    const { outcomes } = await timedObserve(
      (asked) => (asked.server === '192.0.2.54' ? denial(RA) : world(asked)),
      { resolvers: ['192.0.2.54', RESOLVER] },
    )
    expect(outcomes).toEqual(['ns1.example.com match', 'ns2.example.com match'])
  })
})

describe('the servers of the zone', () => {
  test('name servers are queried at the glue addresses from the registry, even if a resolver returns other addresses', async () => {
    const world = fakeInternet([COM, zone()])
    const { seen, asked } = await timedObserve((one) =>
      one.server === RESOLVER && one.type === 'A' && one.name.endsWith('example.com')
        ? { flags: RA, answers: [{ type: 'A', name: one.name, ttl: 60, data: '10.9.9.9' }] }
        : world(one),
    )
    expect(seen.servers.map(({ address }) => address)).toEqual([ONE, TWO])
    expect(asked.map(({ server }) => server)).not.toContain('10.9.9.9')
  })

  const hosted = [
    COM,
    NET,
    { apex: 'host.net', servers: { 'ns.host.net': ['192.0.2.21'] } },
    zone(RECORD, { servers: { 'ns.host.net': ['192.0.2.21'] }, withoutGlue: true }),
  ]

  test('the addresses of name servers without glue are looked up at the resolver', async () => {
    expect((await timedObserve(fakeInternet(hosted))).outcomes).toEqual(['ns.host.net match'])
  })

  test.each(['0.0.0.0', '127.0.0.1'])(
    'a name server whose address a DNS filter replaces with %s has the outcome `timeout`',
    async (data) => {
      const world = fakeInternet(hosted)
      const { outcomes, asked } = await timedObserve((one) =>
        one.server === RESOLVER && one.name === 'ns.host.net'
          ? { flags: RA, answers: one.type === 'A' ? [{ type: 'A', name: one.name, ttl: 60, data }] : [] }
          : world(one),
      )
      expect(outcomes).toEqual(['ns.host.net timeout'])
      expect(asked.map(({ server }) => server)).not.toContain(data)
    },
  )

  test('name servers inside their own zone have the outcome `unreachable` if the delegation has no glue', async () => {
    const { outcomes } = await timedObserve(fakeInternet([COM, zone(RECORD, { withoutGlue: true })]))
    expect(outcomes).toEqual(['ns1.example.com unreachable', 'ns2.example.com unreachable'])
  })

  test('a check also queries name servers that are in the NS set of the zone, but not in the delegation', async () => {
    const child = zone(RECORD, { servers: { ...SERVERS, 'ns3.example.com': ['192.0.2.4'] } })
    const [above, below] = [fakeInternet([COM, zone()]), fakeInternet([COM, child])]
    const { outcomes, seen } = await timedObserve((asked) =>
      (asked.server === REGISTRY ? above : below)(asked),
    )
    expect(outcomes).toContain('ns3.example.com match')
    expect(seen.location).toMatchObject({ parent: { address: REGISTRY } })
    expect(seen.servers[0]?.nsSet).toContain('ns3.example.com')
  })

  test.each<[string, FakeReply, string]>([
    ['silent', 'silent', 'timeout'],
    ['closed', 'unreachable', 'unreachable'],
    ['not routed from here', 'not_checked', 'not_checked'],
    ['refusing', { flags: RCODE.REFUSED }, 'refused'],
    ['failing', { flags: RCODE.SERVFAIL }, 'servfail'],
    ['answering with recursion instead of authority', { flags: RA, answers: RECORD }, 'lame'],
    ['denying without authority', { flags: RA | RCODE.NXDOMAIN }, 'lame'],
    ['referring upwards', { authorities: [{ type: 'NS', name: 'com', ttl: 60, data: 'a.nic.com' }] }, 'lame'],
  ])('a name server that is %s does not count as lacking the record', async (_title, reply, outcome) => {
    const world = fakeInternet([COM, zone()])
    const { seen, outcomes, ms } = await timedObserve((asked) =>
      asked.server === TWO ? reply : world(asked),
    )
    expect(outcomes).toEqual(['ns1.example.com match', `ns2.example.com ${outcome}`])
    expect(seen.resolvers).toMatchObject([{ outcome: 'match' }])
    expect(ms).toBeLessThan(5500)
  })

  test.each([
    [
      'app.example.com',
      RECORD,
      { findings: [{ code: 'other_name', evidence: { found_at: 'example.com' } }] },
    ],
    ['app.example.com', [], { findings: [{ code: 'missing' }] }],
  ])(
    'a check of the name %s in a zone with the records %j accepts responses without the AA bit',
    async (name, records, expected) => {
      const world = fakeInternet([COM, zone(records)])
      const { report } = await timedCheck(
        (asked) => {
          const reply = world(asked)
          const isOwn = asked.server === ONE || asked.server === TWO
          return isOwn && typeof reply === 'object' ? { ...reply, flags: (reply.flags ?? 0) & ~AA } : reply
        },
        { name },
      )
      expect(report).toMatchObject(expected)
    },
  )

  test('a truncated response that contains the record gives the outcome `match` even if TCP is closed', async () => {
    const record = txt('example.com', 'prefix=token')
    const world = fakeInternet([COM, zone([], { servers: { 'ns1.example.com': [ONE] } })])
    const { outcomes } = await timedObserve((asked) => {
      if (asked.server !== ONE || asked.type !== 'TXT') return world(asked)
      return asked.transport === 'tcp' ? 'unreachable' : { flags: AA | TC, answers: [record] }
    })
    expect(outcomes).toEqual(['ns1.example.com match'])
  })

  test.each(['prefix=token ', ' prefix=token', 'Prefix=token', 'prefix=token\u00a0', 'prefix=toke'])(
    'the value %j at the name servers has the outcome `mismatch` for the expected value `prefix=token`',
    async (value) => {
      const { seen } = await timedObserve(fakeInternet([COM, zone([txt('example.com', value)])]))
      expect(seen.servers.map(({ outcome }) => outcome)).toEqual(['mismatch', 'mismatch'])
    },
  )

  test('the observation of a name server has the SOA serial, the TTL or negative TTL, and each character-string of a value', async () => {
    const split: packet.Answer = { type: 'TXT', name: 'example.com', ttl: 300, data: ['prefix=', 'token'] }
    const { seen } = await timedObserve(fakeInternet([COM, zone([split])]))
    const expected = { outcome: 'match', ttl: 300, soa: { serial: 9 }, authoritative: true }
    expect(seen.servers[0]).toMatchObject(expected)
    expect(seen.servers[0]?.values[0]?.strings).toHaveLength(2)
    const { seen: without } = await timedObserve(fakeInternet([COM, zone([])]))
    expect(without.servers[0]).toMatchObject({ outcome: 'absent', values: [], ttl: null, negativeTtl: 60 })
  })
})

describe('a CNAME at the name', () => {
  const target = (records: FakeZone['records']): FakeZone => ({
    apex: 'target.net',
    servers: { 'ns.target.net': ['192.0.2.31'] },
    records: records ?? [],
  })
  test.each<[string, string, FakeZone['records']]>([
    ['leads to the value in another zone', 'match', [txt('v.target.net', 'prefix=token')]],
    ['leads to another value', 'alias', [txt('v.target.net', 'other')]],
    ['leads to a name without TXT', 'alias', [{ type: 'A', name: 'v.target.net', data: '192.0.2.99' }]],
    ['leads to a nonexistent name', 'alias', []],
    ['leads in a circle', 'alias', [cname('v.target.net', 'app.example.com')]],
  ])('a CNAME chain that %s gives the outcome `%s`', async (_title, outcome, records) => {
    const world = fakeInternet([COM, NET, zone([cname('app.example.com', 'v.target.net')]), target(records)])
    const { seen, outcomes, asked } = await timedObserve(world, { name: 'app.example.com' })
    expect(outcomes).toEqual([`ns1.example.com ${outcome}`, `ns2.example.com ${outcome}`])
    expect(seen.alias).toMatchObject({ isKnown: true, targets: expect.arrayContaining(['v.target.net']) })
    if (outcome === 'alias') expect(seen.servers[0]).toMatchObject({ alias: 'v.target.net', ttl: 77 })
    if (outcome === 'alias') expect(recursive(asked, 'v.target.net')).toEqual([])
  })

  test.each<[string, FakeReply, Partial<FakeZone>, string]>([
    ['silent servers', 'silent', {}, 'nameserver_unreachable'],
    ['a resolver in place of its servers', { flags: RA | RCODE.REFUSED }, {}, 'nameserver_unreachable'],
    ['servers that refuse', { flags: RCODE.REFUSED }, {}, 'cname_at_name'],
    ['servers that fail', { flags: RCODE.SERVFAIL }, {}, 'cname_at_name'],
    ['servers without addresses', 'silent', { withoutGlue: true }, 'cname_at_name'],
  ])('a CNAME to a target with %s is named in the only finding', async (_title, reply, more, code) => {
    const zones = [COM, NET, zone([cname('app.example.com', 'v.target.net')]), { ...target([]), ...more }]
    const world = fakeInternet(zones, ({ server }) => (server === '192.0.2.31' ? reply : undefined))
    const { report } = await timedCheck(world, { name: 'app.example.com' })
    const message = expect.stringContaining('app.example.com is an alias (CNAME) for v.target.net')
    expect(report.findings).toMatchObject([{ code, message }])
  })
})

test('if all name servers have the record, a check also queries the resolver, but no names other than the checked name', async () => {
  const { seen } = await timedObserve(fakeInternet([COM, zone()]))
  expect(seen.resolvers).toMatchObject([{ outcome: 'match', resolver: { address: RESOLVER } }])
  expect(seen.otherNames).toBeNull()
})

test.each([
  ['no name server has the record', [COM, zone([])], 'example.com'],
  ['it is two labels below the zone, and no name server has it', [COM, zone([])], 'a.b.example.com'],
])('a check sends no recursive query for the name if %s', async (_title, zones, name) => {
  const world = fakeInternet(zones)
  const { seen, asked } = await timedObserve(world, { name })
  expect(seen.resolvers).toEqual([])
  expect(recursive(asked, 'example.com').filter(({ name }) => !name.startsWith('ns'))).toEqual([])
})

test('a check with a URL as its only resolver sends all recursive queries over HTTPS', async () => {
  const https = 'https://dns.example/dns-query'
  const { report, asked } = await timedCheck(fakeInternet([COM, zone()]), { resolvers: [https] })
  expect(report).toMatchObject({ verdict: 'ready', resolvers: [{ address: https, outcome: 'match' }] })
  const toResolvers = asked.filter(({ recursionDesired }) => recursionDesired)
  expect(toResolvers.map(({ server, type, name }) => [server, type, name])).toEqual([
    [https, 'NS', 'com'],
    [https, 'A', 'a.nic.com'],
    [https, 'AAAA', 'a.nic.com'],
    [https, 'TXT', 'example.com'],
  ])
  const { report: broken } = await timedCheck(() => 'silent', { resolvers: [https] })
  expect(broken.findings).toMatchObject([
    { code: 'resolver_unreachable', evidence: { replies: [`${https}: silent`] } },
  ])
})

test('public resolvers are queried over HTTPS if port 53 is closed', async () => {
  const closed = (one: Asked) => (one.transport === 'https' ? undefined : 'silent')
  const { report, asked, ms } = await timedCheck(fakeInternet([COM, zone()], closed), {
    publicResolvers: true,
  })
  expect(report).toMatchObject({
    verdict: 'ready_with_warning',
    resolvers: [{ address: RESOLVER }, ...Array(3).fill({ outcome: 'match' })],
  })
  const servers = asked.flatMap(({ transport, server }) => (transport === 'https' ? server : []))
  expect(new Set(servers.map((url) => new URL(url).host))).toEqual(
    new Set(['cloudflare-dns.com', 'dns.google', 'dns.quad9.net']),
  )
  expect(ms).toBeLessThan(10_000)
})

test('if a check finds no zone, all its queries for the checked name are of type TXT', async () => {
  const name = 'a.b.example.com'
  const { asked } = await timedObserve(() => ({ flags: RA | RCODE.SERVFAIL }), { name })
  expect(new Set(asked.flatMap((one) => (one.name === name ? [one.type] : [])))).toEqual(new Set(['TXT']))
})

test('a check queries no resolver for the record if one of two name servers lacks the record', async () => {
  const [world, behind] = [fakeInternet([COM, zone()]), fakeInternet([COM, zone([])])]
  const { seen, outcomes } = await timedObserve((asked) => (asked.server === TWO ? behind : world)(asked))
  expect(outcomes).toEqual(['ns1.example.com match', 'ns2.example.com absent'])
  expect(seen.resolvers).toEqual([])
})

describe('records at other names', () => {
  test.each([
    ['example.com.example.com', 'doubled', 'example.com'],
    ['app.example.com.app.example.com', 'doubled', 'app.example.com'],
    ['app.app.example.com', 'wrong', 'app.example.com'],
    ['www.example.com', 'wrong', 'example.com'],
    ['@.example.com', 'wrong', 'app.example.com'],
    ['example.com', 'used', 'app.example.com'],
    ['example.com', 'used', 'a.b.c.example.com'],
    ['_prefix.example.com', 'wrong', 'example.com'],
    ['mc.example.com', 'wrong', '_mc.example.com'],
    ['_dmarc.example.com', 'wrong', 'example.com'],
    ['*.example.com', 'used', 'example.com'],
  ])('a TXT record at the other name %s is found (kind `%s`) by a check of %s', async (at, kind, name) => {
    for (const expected of at === '_prefix.example.com' ? ['prefix=token'] : ['prefix=token', null]) {
      const world = fakeInternet([COM, zone([txt(at, 'prefix=token')])])
      const { seen, asked } = await timedObserve(world, { name, expected })
      expect(seen.otherNames?.candidates).toMatchObject([{ name: at, kind }])
      expect(recursive(asked, 'example.com').filter(({ name: of }) => !of.startsWith('ns'))).toEqual([])
    }
  })

  /** Creates a world in which a wildcard's TXT record answers for all nonexistent names below example.com. */
  const wild = (records: FakeZone['records']) => {
    const world = fakeInternet([COM, zone(records)])
    return (asked: Asked): FakeReply => {
      const reply = world(asked)
      const isMissing = typeof reply === 'object' && ((reply.flags ?? 0) & 0xf) === RCODE.NXDOMAIN
      const isWild = isMissing && asked.type === 'TXT' && asked.name.endsWith('.example.com')
      return isWild ? { flags: AA, answers: [txt(asked.name, 'v=spf1 -all')] } : reply
    }
  }

  test('a name with the TXT set of a wildcard is a candidate for a misplaced record only if it can rightly have other TXT records (kind `used`), as a wildcard itself can', async () => {
    const { seen } = await timedObserve(wild([]), { name: 'app.example.com' })
    expect(seen.otherNames).toMatchObject({
      candidates: [{ kind: 'used' }, { kind: 'used' }],
      wildcard: [expect.anything()],
    })
  })

  test('a check reports no wildcard that covers its name if the name has a TXT record', async () => {
    const world = wild([txt('app.example.com', 'v=spf1 -all')])
    // A wildcard doesn't cover names below an existing name (RFC 4592 section 3.3.1).
    const { seen } = await timedObserve(
      (asked) =>
        asked.name.endsWith('.app.example.com') && asked.server !== RESOLVER
          ? { flags: AA | RCODE.NXDOMAIN }
          : world(asked),
      { name: 'app.example.com' },
    )
    expect(seen.otherNames?.wildcard).toBeNull()
  })
})

// Round trips: NS of `com`; addresses of its servers; the referral; TXT; SOA and NS of the zone; the resolver or the other names.
test.each([
  ['visible', RECORD, 12],
  ['missing', [], 26],
])('a check takes at most six round trips if the record is %s', async (_title, records, questions) => {
  const { ms, asked } = await timedObserve(fakeInternet([COM, zone(records)]))
  expect(ms).toBeLessThanOrEqual(6 * ROUND_MS * 1.1)
  expect(asked).toHaveLength(questions)
})

test('a check takes at most ten seconds even if servers are silent or slow', async () => {
  const world = fakeInternet([COM, zone()])
  for (const isSilent of [() => true, (at: string) => at !== RESOLVER, (at: string) => at === RESOLVER]) {
    const { ms, seen } = await timedObserve((asked) => (isSilent(asked.server) ? 'silent' : world(asked)))
    expect(ms).toBeLessThanOrEqual(10_000)
    expect(seen.otherNames).toBeNull()
  }
  // Six rounds of 1.9 s would take longer than ten seconds.
  expect((await timedObserve(world, { roundMs: 1900 })).ms).toBeLessThanOrEqual(10_000)
})

test('a check without an expected value reads the TXT values without a recursive query for the name', async () => {
  const { seen, asked } = await timedObserve(fakeInternet([COM, zone()]), { expected: null })
  expect(textsOf(seen)).toEqual([['prefix=token'], ['prefix=token']])
  expect(seen.servers.map(({ outcome }) => outcome)).toEqual(['mismatch', 'mismatch'])
  expect(recursive(asked, 'example.com')).toEqual([])
})
