import { describe, expect, test } from 'vitest'
import { AA, type Asked, EDNS, type FakeReply, RA, RCODE } from './fake-dns.ts'
import { fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const REGISTRY = '192.0.2.1'
const OWN = '192.0.2.11'
const ZONES = [
  { apex: 'com', servers: { 'a.nic.com': [REGISTRY] } },
  {
    apex: 'example.com',
    servers: { 'ns.example.com': [OWN] },
    records: [txt('example.com', 'prefix=token')],
  },
]

const healthy = fakeInternet(ZONES)

async function check(odd: (asked: Asked) => FakeReply | undefined) {
  const { report, ms, asked } = await timedCheck(fakeInternet(ZONES, odd))
  expect(ms).toBeLessThanOrEqual(10_000)
  expect(asked.length).toBeLessThanOrEqual(120)
  return report
}

/** What is dropped, by how the report names it. */
const FILTERS = {
  udp: ({ transport }: Asked) => transport === 'udp',
  edns: ({ transport, edns }: Asked) => transport === 'udp' && edns !== undefined,
  do: ({ dnssecOk }: Asked) => dnssecOk,
}
const NAMES = ['udp', 'edns', 'do'] as const
/** The resolver gives up on the record, as if it waited for the server. */
const failsToResolve = ({ server, type }: Asked) => server === RESOLVER && type === 'TXT'

describe.each(NAMES)('queries that nobody answers from here (%s)', (what) => {
  const isDropped = (asked: Asked) => asked.server !== RESOLVER && FILTERS[what](asked)

  test('are this network’s fault, and nothing has to be fixed', async () => {
    const report = await check((asked) => {
      if (isDropped(asked)) return 'silent'
      return what === 'do' && failsToResolve(asked) ? 'silent' : undefined
    })
    expect(report.ready).toBe(true)
    expect(report.findings).toMatchObject([{ code: 'queries_filtered', details: { filtered: [what] } }])
    expect(report.findings[0]?.message).toMatch(/^Something on this network drops DNS queries/)
  })

  test('are still not the domain’s fault if the resolver fails as well', async () => {
    const report = await check((asked) => (isDropped(asked) || failsToResolve(asked) ? 'silent' : undefined))
    expect(report).toMatchObject({
      verdict: 'ready_with_warning',
      findings: [{ code: 'queries_filtered', severity: 'warning' }],
    })
    expect(report.findings[0]?.message).toContain('this is probably why 192.0.2.53 fails as well')
  })
})

describe.each(NAMES)('queries that only the domain’s server drops (%s)', (what) => {
  const code = what === 'udp' ? 'udp_dropped' : 'edns_dropped'

  test('are its fault, as the registry’s servers answer them', async () => {
    const report = await check((asked) =>
      (asked.server === OWN && FILTERS[what](asked)) || failsToResolve(asked) ? 'silent' : undefined,
    )
    expect(report).toMatchObject({ verdict: 'fix', findings: [{ code, severity: 'error' }] })
    expect(report.findings[0]?.message).toContain("It isn't this network")
    expect(report.findings[0]?.fix).not.toContain('another network')
  })

  test('may be this network’s fault if no registry could be asked', async () => {
    const report = await check((asked) => {
      if (asked.server === REGISTRY || failsToResolve(asked)) return 'silent'
      return asked.server === OWN && FILTERS[what](asked) ? 'silent' : undefined
    })
    expect(report.verdict).toBe('unknown')
    expect(report.findings[0]).toMatchObject({ code, severity: 'error' })
    expect(report.findings[0]?.fix).toMatch(/^Check from another network first: /)
  })
})

test('a company’s server that was given as the resolver is not taken for a registry’s', async () => {
  const company = '192.0.2.99'
  const zones = [
    { apex: 'example.com', servers: { 'ns.example.com': [company] } },
    {
      apex: 'team.example.com',
      servers: { 'ns.team.example.com': [OWN] },
      records: [txt('team.example.com', 'prefix=token')],
    },
  ]
  const { report } = await timedCheck(
    fakeInternet(zones, (asked) => (FILTERS.edns(asked) ? 'silent' : undefined)),
    { name: 'team.example.com', resolvers: [company] },
  )
  expect(report.nameservers).toMatchObject([{ outcome: 'match', address: OWN }])
  expect(report.findings).toMatchObject([{ code: 'edns_dropped', severity: 'warning' }])
})

test('a firewall for IPv6 alone is compared with registry servers over IPv6', async () => {
  const zones = [
    { apex: 'com', servers: { 'a.nic.com': [REGISTRY, '2001:db8::1'] } },
    {
      apex: 'example.com',
      servers: { 'ns.example.com': ['2001:db8::11'] },
      records: [txt('example.com', 'prefix=token')],
    },
  ]
  const { report } = await timedCheck(
    fakeInternet(zones, (asked) =>
      asked.server.includes(':') && FILTERS.edns(asked) ? 'silent' : undefined,
    ),
  )
  expect(report).toMatchObject({ verdict: 'ready', findings: [{ code: 'queries_filtered' }] })
})

describe('a server that answers queries with EDNS with', () => {
  const REJECTIONS = {
    SERVFAIL: { flags: RCODE.SERVFAIL },
    'SERVFAIL and EDNS': { flags: RCODE.SERVFAIL, additionals: [EDNS] },
    BADVERS: { flags: AA, additionals: [{ ...EDNS, extendedRcode: 1 }] },
    FORMERR: { flags: RCODE.FORMERR },
  } satisfies Record<string, FakeReply>
  const rejects = (asked: Asked, rcode: keyof typeof REJECTIONS) =>
    asked.server !== RESOLVER && asked.edns !== undefined ? REJECTIONS[rcode] : undefined

  test.each(['SERVFAIL', 'SERVFAIL and EDNS', 'BADVERS'] as const)(
    '%s is named instead of the resolver, which fails because of it',
    async (rcode) => {
      const report = await check((asked) => {
        if (failsToResolve(asked)) return { flags: RA | RCODE.SERVFAIL }
        return asked.server === OWN ? rejects(asked, rcode) : undefined
      })
      expect(report).toMatchObject({
        verdict: 'fix',
        findings: [{ code: 'edns_rejected', severity: 'error', details: { rcodes: rcode.split(' ')[0] } }],
      })
      expect(report.findings).toHaveLength(1)
    },
  )

  test('BADVERS explains an answer without records from a resolver that reads it as one', async () => {
    const report = await check((asked) => {
      if (failsToResolve(asked)) return { flags: RA }
      return asked.server === OWN ? rejects(asked, 'BADVERS') : undefined
    })
    expect(report).toMatchObject({ verdict: 'fix', findings: [{ code: 'edns_rejected' }] })
    expect(report.findings).toHaveLength(1)
  })

  test('FORMERR is a remark: resolvers ask again without', async () => {
    const report = await check((asked) => (asked.server === OWN ? rejects(asked, 'FORMERR') : undefined))
    expect(report).toMatchObject({
      verdict: 'ready',
      findings: [{ code: 'edns_rejected', severity: 'info' }],
    })
  })

  test.each(['SERVFAIL', 'BADVERS', 'FORMERR'] as const)(
    '%s is not to blame if the registry’s servers seem to do so as well',
    async (rcode) => {
      const report = await check((asked) => rejects(asked, rcode))
      expect(report).toMatchObject({
        verdict: 'ready',
        findings: [{ code: 'queries_filtered', details: { filtered: ['rejected'] } }],
      })
    },
  )

  test('SERVFAIL only once has no finding', async () => {
    let failures = 0
    const report = await check((asked) => {
      if (asked.server !== OWN || asked.type !== 'TXT' || failures > 0) return undefined
      failures += 1
      return REJECTIONS.SERVFAIL
    })
    expect(report).toMatchObject({ verdict: 'ready', findings: [] })
  })
})

describe('a server that has the record but answers without the AA bit', () => {
  const withoutAuthority = (asked: Asked, flags = 0): FakeReply | undefined => {
    const reply = healthy(asked)
    return asked.server === OWN && typeof reply !== 'string' ? { ...reply, flags } : undefined
  }

  test('is not said to lack the zone, and resolvers show whether the record is visible', async () => {
    const report = await check((asked) => withoutAuthority(asked))
    expect(report).toMatchObject({
      verdict: 'ready_with_warning',
      resolvers: [{ outcome: 'match' }],
      findings: [{ code: 'not_authoritative', severity: 'warning' }],
    })
    expect(report.findings[0]?.message).toContain('without the authoritative flag (AA)')
  })

  test('has to be fixed if the resolver does not accept its answers', async () => {
    const report = await check((asked) =>
      failsToResolve(asked) ? { flags: RA | RCODE.SERVFAIL } : withoutAuthority(asked),
    )
    expect(report).toMatchObject({
      verdict: 'fix',
      findings: [{ code: 'not_authoritative', severity: 'error' }],
    })
  })

  test('is called lame if it does not know the zone, and has only cached the record', async () => {
    const report = await check((asked) =>
      asked.server === OWN && asked.type === 'SOA' ? { flags: RA } : withoutAuthority(asked, RA),
    )
    expect(report).toMatchObject({ verdict: 'fix', findings: [{ code: 'lame_nameserver' }] })
  })
})
