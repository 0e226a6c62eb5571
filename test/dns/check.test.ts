import type packet from 'dns-packet'
import { describe, expect, test } from 'vitest'
import type { Observations } from '../../src/dns/observations.ts'
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
const textsOf = ({ servers }: Observations) =>
  servers.map(({ values }) => values.map(({ bytes }) => Buffer.from(bytes).toString()))

/** What resolvers were asked about this name and those below it. */
const recursive = (asked: readonly Asked[], name: string) =>
  asked.filter((one) => one.recursionDesired && one.name.endsWith(name) && one.name !== 'com')

describe('the zone of a name is found from the registry down', () => {
  test('the report lists each zone on the way, with its name servers', async () => {
    const team = { apex: 'team.example.com', servers: { 'ns.team.example.com': ['192.0.2.8'] } }
    const { seen } = await timedObserve(fakeInternet([COM, zone(), team]), { name: 'a.team.example.com' })
    expect(seen.location.path.map(({ zone, hosts }) => [zone, ...hosts.keys()])).toEqual([
      ['com', 'a.nic.com'],
      ['example.com', ...Object.keys(SERVERS)],
      ['team.example.com', 'ns.team.example.com'],
    ])
  })

  test('a zone is found although its parent’s servers serve it too', async () => {
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

  test('a domain that the registry denies is reported as not existing', async () => {
    const { seen } = await timedObserve(fakeInternet([COM]))
    expect(seen.location).toMatchObject({
      kind: 'no_domain',
      domain: 'example.com',
      saidBy: 'com',
      negativeTtl: 60,
    })
  })

  test('a domain is reported as not existing if the root denies its top-level domain', async () => {
    const root = { apex: '.', servers: { 'a.root-servers.net': ['192.0.2.100'] } }
    const { report } = await timedCheck(fakeInternet([root, COM, zone()]), { name: 'app.example.con' })
    expect(report).toMatchObject({
      verdict: 'fix',
      findings: [{ code: 'domain_not_found', evidence: { domain: 'example.con', said_by: '.' } }],
    })
  })

  test('a new domain is found although one server of the registry doesn’t know it yet', async () => {
    const servers = { 'a.nic.com': [REGISTRY], 'b.nic.com': ['192.0.2.7'] }
    const [world, before] = [fakeInternet([{ ...COM, servers }, zone()]), fakeInternet([{ ...COM, servers }])]
    const { outcomes } = await timedObserve((asked) => (asked.server === REGISTRY ? before : world)(asked))
    expect(outcomes).toEqual(['ns1.example.com match', 'ns2.example.com match'])
  })

  test('the resolver’s NS records are used if no server of the registry answers', async () => {
    const world = fakeInternet([COM, zone()])
    const { seen, ms } = await timedObserve((asked) => (asked.server === REGISTRY ? 'silent' : world(asked)))
    expect(seen.location).toMatchObject({ kind: 'found', zone: 'example.com', parent: null })
    expect(ms).toBeLessThan(3000)
  })

  test('private DNS is found without a registry', async () => {
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
    ['denying what exists', denial(RA), 'NXDOMAIN'],
    ['denying what exists with authority', denial(AA), 'NXDOMAIN'],
  ] as const)('a resolver that is %s says nothing about the domain', async (_title, reply, answer) => {
    const { seen, ms } = await timedObserve(() => reply)
    expect(seen.location).toMatchObject({ kind: 'lost', replies: [`${RESOLVER}: ${answer}`] })
    expect(ms).toBeLessThan(10_000)
  })

  test('another resolver’s answer counts beside a denial', async () => {
    const world = fakeInternet([COM, zone()])
    const { outcomes } = await timedObserve(
      (asked) => (asked.server === '192.0.2.54' ? denial(RA) : world(asked)),
      { resolvers: ['192.0.2.54', RESOLVER] },
    )
    expect(outcomes).toEqual(['ns1.example.com match', 'ns2.example.com match'])
  })
})

describe('the servers of the zone', () => {
  test('name servers are queried at the registry’s glue, whatever addresses a resolver gives', async () => {
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

  test('name servers without glue are looked up at the resolver', async () => {
    expect((await timedObserve(fakeInternet(hosted))).outcomes).toEqual(['ns.host.net match'])
  })

  test.each(['0.0.0.0', '127.0.0.1'])(
    'are unknown, not unreachable, if a filter gives %s for them',
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

  test('name servers inside the zone can’t be found by anybody without glue', async () => {
    const { outcomes } = await timedObserve(fakeInternet([COM, zone(RECORD, { withoutGlue: true })]))
    expect(outcomes).toEqual(['ns1.example.com unreachable', 'ns2.example.com unreachable'])
  })

  test('name servers that only the zone’s own NS set names are queried too', async () => {
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
  ])('name servers that are %s say nothing about the record', async (_title, reply, outcome) => {
    const world = fakeInternet([COM, zone()])
    const { seen, outcomes, ms } = await timedObserve((asked) =>
      asked.server === TWO ? reply : world(asked),
    )
    expect(outcomes).toEqual(['ns1.example.com match', `ns2.example.com ${outcome}`])
    expect(seen.resolvers).toMatchObject([{ outcome: 'match' }])
    expect(ms).toBeLessThan(5500)
  })

  test.each([
    ['example.com', RECORD, { verdict: 'ready' }],
    [
      'app.example.com',
      RECORD,
      { findings: [{ code: 'other_name', evidence: { found_at: 'example.com' } }] },
    ],
    ['app.example.com', [], { findings: [{ code: 'missing' }] }],
  ])('name servers that leave out the AA bit are believed about %s', async (name, records, expected) => {
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
  })

  test.each([
    ['don’t prove that the record is missing', txt('example.com', 'v=spf1 -all'), 'timeout'],
    ['prove that a record in the delivered part is there', txt('example.com', 'prefix=token'), 'match'],
  ])('name servers with a truncated answer and closed TCP %s', async (_title, record, outcome) => {
    const world = fakeInternet([COM, zone([], { servers: { 'ns1.example.com': [ONE] } })])
    const { outcomes } = await timedObserve((asked) => {
      if (asked.server !== ONE || asked.type !== 'TXT') return world(asked)
      return asked.transport === 'tcp' ? 'unreachable' : { flags: AA | TC, answers: [record] }
    })
    expect(outcomes).toEqual([`ns1.example.com ${outcome}`])
  })

  test.each(['prefix=token ', ' prefix=token', 'Prefix=token', 'prefix=token\u00a0', 'prefix=toke'])(
    'don’t have the record if they have %j: every byte counts',
    async (value) => {
      const { seen } = await timedObserve(fakeInternet([COM, zone([txt('example.com', value)])]))
      expect(seen.servers.map(({ outcome }) => outcome)).toEqual(['mismatch', 'mismatch'])
    },
  )

  test('the report of a name server has its serial, TTLs, and the strings of each value', async () => {
    const split: packet.Answer = {
      type: 'TXT',
      name: 'example.com',
      ttl: 300,
      data: ['prefix=', 'token'],
    }
    const { seen } = await timedObserve(fakeInternet([COM, zone([split])]))
    expect(seen.servers[0]).toMatchObject({
      outcome: 'match',
      ttl: 300,
      soa: { serial: 9 },
      authoritative: true,
    })
    expect(seen.servers[0]?.values[0]?.strings).toHaveLength(2)
    const { seen: without } = await timedObserve(fakeInternet([COM, zone([])]))
    expect(without.servers[0]).toMatchObject({ outcome: 'absent', values: [], ttl: null, negativeTtl: 60 })
  })
})

describe('an alias at the name', () => {
  const target = (records: FakeZone['records']): FakeZone => ({
    apex: 'target.net',
    servers: { 'ns.target.net': ['192.0.2.31'] },
    records: records ?? [],
  })
  test.each<[string, FakeZone['records'], string]>([
    ['leads to the value in another zone', [txt('v.target.net', 'prefix=token')], 'match'],
    ['leads to another value', [txt('v.target.net', 'other')], 'alias'],
    ['leads to a name without TXT', [{ type: 'A', name: 'v.target.net', data: '192.0.2.99' }], 'alias'],
    ['leads to nothing', [], 'alias'],
    ['leads in a circle', [cname('v.target.net', 'app.example.com')], 'alias'],
  ])('%s', async (_title, records, outcome) => {
    const world = fakeInternet([COM, NET, zone([cname('app.example.com', 'v.target.net')]), target(records)])
    const { seen, outcomes, asked } = await timedObserve(world, { name: 'app.example.com' })
    expect(outcomes).toEqual([`ns1.example.com ${outcome}`, `ns2.example.com ${outcome}`])
    expect(seen.alias).toMatchObject({ isKnown: true, targets: expect.arrayContaining(['v.target.net']) })
    if (outcome === 'alias') expect(seen.servers[0]).toMatchObject({ alias: 'v.target.net', ttl: 77 })
    if (outcome === 'alias') expect(recursive(asked, 'v.target.net')).toEqual([])
  })

  test('an alias whose target is the value is reported as a CNAME chosen instead of TXT', async () => {
    const world = fakeInternet([COM, zone([cname('app.example.com', 'prefix=token')])])
    const { report } = await timedCheck(world, { name: 'app.example.com' })
    expect(report).toMatchObject({ verdict: 'fix', findings: [{ code: 'cname_at_name' }] })
  })

  test.each<[string, FakeReply, Partial<FakeZone>, string]>([
    ['servers that don’t answer, which isn’t absence', 'silent', {}, 'nameserver_unreachable'],
    ['a resolver in their place', { flags: RA | RCODE.REFUSED }, {}, 'nameserver_unreachable'],
    ['servers that refuse', { flags: RCODE.REFUSED }, {}, 'cname_at_name'],
    ['servers that fail', { flags: RCODE.SERVFAIL }, {}, 'cname_at_name'],
    ['servers that nobody finds', 'silent', { withoutGlue: true }, 'cname_at_name'],
  ])('leads to %s', async (_title, reply, more, code) => {
    const zones = [COM, NET, zone([cname('app.example.com', 'v.target.net')]), { ...target([]), ...more }]
    const world = fakeInternet(zones, ({ server }) => (server === '192.0.2.31' ? reply : undefined))
    const { report } = await timedCheck(world, { name: 'app.example.com' })
    const message = expect.stringContaining('app.example.com is an alias (CNAME) for v.target.net')
    expect(report.findings).toMatchObject([{ code, message }])
  })
})

describe('resolvers are asked about the name', () => {
  test('once all servers that answer have the record', async () => {
    const { seen } = await timedObserve(fakeInternet([COM, zone()]))
    expect(seen.resolvers).toMatchObject([{ outcome: 'match', resolver: { address: RESOLVER } }])
    expect(seen.otherNames).toBeNull()
  })

  test.each([
    ['no server has it', [COM, zone([])], 'example.com'],
    ['the name is deep and missing', [COM, zone([])], 'a.b.example.com'],
  ])('never if %s', async (_title, zones, name) => {
    const world = fakeInternet(zones)
    const { seen, asked } = await timedObserve(world, { name })
    expect(seen.resolvers).toEqual([])
    expect(recursive(asked, 'example.com').filter(({ name }) => !name.startsWith('ns'))).toEqual([])
  })

  test('over HTTPS as over UDP, and for the addresses of name servers as well', async () => {
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

  test('over HTTPS if they are public and port 53 is closed', async () => {
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

  test('for the TXT set alone if nothing leads to its zone', async () => {
    const name = 'a.b.example.com'
    const { asked } = await timedObserve(() => ({ flags: RA | RCODE.SERVFAIL }), { name })
    expect(new Set(asked.flatMap((one) => (one.name === name ? [one.type] : [])))).toEqual(new Set(['TXT']))
  })

  test.each([
    ['has the record', RECORD, { verdict: 'ready_with_warning', findings: [{ code: 'resolver_only' }] }],
    ['has none', [], { verdict: 'unknown', retry_after_seconds: 60 }],
  ])('if no name server can be reached: one that %s', async (_title, records, expected) => {
    const world = fakeInternet([COM, zone(records)])
    const { report, ms } = await timedCheck((one) => (one.server === RESOLVER ? world(one) : 'silent'))
    expect(report).toMatchObject(expected)
    expect(ms).toBeLessThanOrEqual(10_000)
  })

  test('never if one of two servers lacks it', async () => {
    const [world, behind] = [fakeInternet([COM, zone()]), fakeInternet([COM, zone([])])]
    const { seen, outcomes } = await timedObserve((asked) => (asked.server === TWO ? behind : world)(asked))
    expect(outcomes).toEqual(['ns1.example.com match', 'ns2.example.com absent'])
    expect(seen.resolvers).toEqual([])
  })
})

describe('records at wrong names', () => {
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
  ])('%s (%s) are found for %s', async (at, how, name) => {
    for (const expected of at === '_prefix.example.com' ? ['prefix=token'] : ['prefix=token', null]) {
      const world = fakeInternet([COM, zone([txt(at, 'prefix=token')])])
      const { seen, asked } = await timedObserve(world, { name, expected })
      expect(seen.otherNames?.misplaced).toMatchObject([{ name: at, how }])
      expect(recursive(asked, 'example.com').filter(({ name: of }) => !of.startsWith('ns'))).toEqual([])
    }
  })

  /** Names that don't exist have what the wildcard has. */
  const wild = (records: FakeZone['records'], made = (name: string) => txt(name, 'v=spf1 -all')) => {
    const world = fakeInternet([COM, zone(records)])
    return (asked: Asked): FakeReply => {
      const reply = world(asked)
      const isMissing = typeof reply === 'object' && ((reply.flags ?? 0) & 0xf) === RCODE.NXDOMAIN
      const isWild = isMissing && asked.type === 'TXT' && asked.name.endsWith('.example.com')
      return isWild ? { flags: AA, answers: [made(asked.name)] } : reply
    }
  }

  test('a wildcard that answers for the name, and for all wrong names', async () => {
    const { seen } = await timedObserve(wild([]), { name: 'app.example.com' })
    expect(seen.otherNames).toMatchObject({
      misplaced: [{ how: 'used' }, { how: 'used' }],
      wildcard: [expect.anything()],
    })
  })

  test('a wildcard that makes an alias of the name, which has none of its own', async () => {
    const world = wild([txt('web.example.com', 'v=spf1 -all')], (name) => cname(name, 'web.example.com'))
    const { report } = await timedCheck(world, { name: 'app.example.com' })
    expect(report).toMatchObject({ verdict: 'fix', findings: [{ code: 'wildcard_answer' }] })
  })

  test('a wildcard beside a record of the name’s own', async () => {
    const world = wild([txt('app.example.com', 'v=spf1 -all')])
    // A wildcard doesn't reach below a name that exists.
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

describe('something on this network that answers for all servers', () => {
  const [world, full] = [fakeInternet([COM, zone([])]), fakeInternet([COM, zone()])]
  const isOwn = (asked: Asked) => asked.server === ONE || asked.server === TWO
  const intercepted = { verdict: 'unknown', findings: [{ code: 'dns_intercepted' }] }
  test.each<[string, (asked: Asked) => FakeReply, object]>([
    ['as a recursive resolver', (asked) => world({ ...asked, server: RESOLVER }), intercepted],
    [
      'by refusing',
      (asked) => (asked.server === RESOLVER ? world(asked) : { flags: RCODE.REFUSED }),
      intercepted,
    ],
    [
      'except the registry',
      (asked) => (isOwn(asked) ? { flags: RA | RCODE.REFUSED } : world(asked)),
      intercepted,
    ],
    [
      'except the registry, where the record is right',
      (asked) => full(isOwn(asked) ? { ...asked, server: RESOLVER } : asked),
      { verdict: 'ready_with_warning', findings: [{ code: 'resolver_only' }] },
    ],
  ])('%s', async (_title, respond, expected) => {
    expect((await timedCheck(respond)).report).toMatchObject(expected)
  })
})

describe('a check takes no longer than its longest chain of queries, and asks no more than it needs', () => {
  // The resolver for `com` and its server, the registry, the TXT set, the SOA beside it, the resolver's TXT set or the other names.
  test.each([
    ['ready', RECORD, 12],
    ['missing', [], 26],
  ])('%s', async (_title, records, questions) => {
    const { ms, asked } = await timedObserve(fakeInternet([COM, zone(records)]))
    expect(ms).toBeLessThanOrEqual(6 * ROUND_MS * 1.1)
    expect(asked).toHaveLength(questions)
  })

  test('and no more than ten seconds if everything is silent or slow', async () => {
    const world = fakeInternet([COM, zone()])
    for (const isSilent of [() => true, (at: string) => at !== RESOLVER, (at: string) => at === RESOLVER]) {
      const { ms, seen } = await timedObserve((asked) => (isSilent(asked.server) ? 'silent' : world(asked)))
      expect(ms).toBeLessThanOrEqual(10_000)
      expect(seen.otherNames).toBeNull()
    }
    // Six rounds of these would take longer.
    expect((await timedObserve(world, { roundMs: 1900 })).ms).toBeLessThanOrEqual(10_000)
  })
})

describe('without an expected value', () => {
  test('what is there is shown, and no resolver asked about the name', async () => {
    const { seen, asked } = await timedObserve(fakeInternet([COM, zone()]), { expected: null })
    expect(textsOf(seen)).toEqual([['prefix=token'], ['prefix=token']])
    expect(seen.servers.map(({ outcome }) => outcome)).toEqual(['mismatch', 'mismatch'])
    expect(recursive(asked, 'example.com')).toEqual([])
  })

  test('an invalid name is said to be one', async () => {
    const asked = timedObserve(() => 'silent', { name: 'https://example.com/' })
    await expect(asked).rejects.toMatchObject({ exit: 2, hint: 'use the name alone: example.com' })
  })
})
