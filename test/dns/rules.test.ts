import { describe, expect, test } from 'vitest'
import type {
  DnsObservations,
  FoundZone,
  OtherNameWithTxt,
  ResolverObservation,
  ServerObservation,
  TxtOutcome,
  TxtRecordsAtOtherNames,
} from '../../src/dns/observations.ts'
import { exitErrorOf } from '../../src/dns/report.ts'
import { createCheckReport } from '../../src/dns/rules.ts'
import type { TxtRdata } from '../../src/dns/wire/txt-answer.ts'
import { FINDING_TEXTS, type FindingCode, getDefaultSeverity, verdictOf } from '../../src/dns/words.ts'

const EXPECTED = 'prefix=token123'

const txt = (...strings: string[]): TxtRdata => ({
  strings: strings.map((string) => Buffer.from(string)),
  bytes: Buffer.from(strings.join('')),
})

const soa = (serial: number) => ({ zone: 'example.com', serial, negativeTtl: 60 })

/** Creates the observation of a name server; by default, its answer that the name has no TXT record. */
function server(more: Partial<ServerObservation> = {}): ServerObservation {
  return {
    ...{ host: 'ns1.example.com', address: '192.0.2.1', outcome: 'absent', authoritative: true },
    ...{ values: [], ttl: null, negativeTtl: 60, alias: null, ms: 10 },
    ...{ isImplausible: false, isResolver: false, soa: soa(1), nsSet: [] },
    ...more,
  }
}
const with_ = (...values: string[]) =>
  server({ outcome: 'mismatch', values: values.map((value) => txt(value)), ttl: 300, negativeTtl: null })
const MATCH = server({ outcome: 'match', values: [txt(EXPECTED)], ttl: 300, negativeTtl: null })
const SILENT = server({ outcome: 'timeout', negativeTtl: null, isImplausible: null, ms: null, soa: null })
const REFUSED = server({ outcome: 'refused', negativeTtl: null, isImplausible: true, soa: null })
const second = { host: 'ns2.example.com', address: '192.0.2.2' }

function resolver(outcome: TxtOutcome, more: Partial<ResolverObservation> = {}): ResolverObservation {
  return {
    ...{ resolver: { address: '9.9.9.9', port: 53 }, outcome, authoritative: false, values: [], ttl: null },
    ...{ negativeTtl: null, alias: null, ms: 5 },
    ...{ failsValidation: false, explanation: null, cached: null },
    ...more,
  }
}

const at = (name: string, kind: OtherNameWithTxt['kind'], value = EXPECTED): TxtRecordsAtOtherNames => ({
  candidates: [{ name, kind, values: [txt(value)] }],
  wildcard: null,
})
const wildcard = (value: string): TxtRecordsAtOtherNames => ({
  candidates: [],
  wildcard: [txt(value)],
})

/** Creates the location of a found zone; `hosts`: name servers in the registry's delegation. */
const found = (zone: string, hosts: readonly string[] = [], more: Partial<FoundZone> = {}): FoundZone => ({
  ...{ kind: 'found', zone, hosts: new Map(hosts.map((host) => [host, []])), path: [] },
  registry: [{ address: REGISTRY.address, isImplausible: false }],
  parent: hosts.length === 0 ? null : REGISTRY,
  ...more,
})
const REGISTRY = { address: '192.0.2.9', port: 53 }
const lost = (...replies: string[]) => ({ kind: 'lost', replies, path: [] }) as const
const inZone = (hosts: string[]) => found('example.com', hosts)

function observe(more: Partial<DnsObservations> = {}): DnsObservations {
  return {
    ...{ name: 'example.com', expected: EXPECTED, servers: [MATCH], alias: null, resolvers: [] },
    location: found('example.com'),
    ...{
      mayBeCut: false,
      mayBeLocal: false,
      isOverdue: false,
      otherNames: null,
      dnssec: null,
      limitReached: false,
    },
    ...more,
  }
}
const check = (more: Partial<DnsObservations> = {}) => createCheckReport(observe(more))
const codes = (more: Partial<DnsObservations>) => check(more).findings.map(({ code }) => code)

const alias = { targets: ['web.example.net'], isKnown: true }
const aliased = server({ outcome: 'alias', alias: 'web.example.net', negativeTtl: null, ttl: 300 })
const dnssec = (state: 'ok' | 'no_key' | 'wrong_ds' | 'expired') => ({
  ...{ state, keyTags: [12345], keys: ['key'] },
})
const rejectsNow = resolver('servfail', {
  ...{ failsValidation: true, explanation: 'signature not yet valid', cached: { texts: ['key'], ttl: 500 } },
})
const rejects = resolver('servfail', { failsValidation: true, cached: { texts: ['old key'], ttl: 500 } })

const ROWS: readonly (readonly [code: FindingCode, seen: Partial<DnsObservations>])[] = [
  [
    'domain_not_found',
    {
      location: { kind: 'no_domain', domain: 'example.com', deniedBy: 'com', negativeTtl: 900, path: [] },
      servers: [],
    },
  ],
  ['domain_not_found', { location: found('com'), servers: [server()] }],
  ['missing', { name: 'co.uk', location: found('co.uk'), servers: [server()] }],
  ['no_nameservers', { servers: [{ ...SILENT, address: null, outcome: 'unreachable' }] }],
  ['missing', { servers: [server()] }],
  ['missing', { servers: [with_('v=spf1 -all')] }],
  ['missing', { name: 'mail.corp', location: found('corp'), servers: [server()] }],
  ['doubled_name', { servers: [server()], otherNames: at('example.com.example.com', 'doubled') }],
  ['other_name', { servers: [server()], otherNames: at('www.example.com', 'wrong') }],
  ['other_name', { servers: [with_('prefix=older')], otherNames: at('@.example.com', 'wrong') }],
  ['cname_at_name', { name: 'a.example.com', servers: [aliased], alias }],
  ['wildcard_answer', { name: 'a.example.com', servers: [with_('other')], otherNames: wildcard('other') }],
  ['quoted', { servers: [with_(`"${EXPECTED}"`)] }],
  ['quoted', { servers: [with_(`"${EXPECTED}"`)], otherNames: at('www.example.com', 'wrong') }],
  ['whitespace', { servers: [with_(`${EXPECTED}\u00a0`)] }],
  ['case_changed', { servers: [with_('PREFIX=TOKEN123')] }],
  ['truncated', { servers: [with_('prefix=token')] }],
  ['extra_text', { servers: [with_(`v=spf1 -all ${EXPECTED}`)] }],
  ['split_records', { servers: [with_('token123', 'prefix=')] }],
  ['prefix_or_token_only', { servers: [with_('token123')] }],
  ['characters_changed', { servers: [with_('prefix:token123')] }],
  ['stale_token', { servers: [with_('prefix=older')] }],
  ['lame_nameserver', { servers: [REFUSED] }],
  ['nameserver_unreachable', { servers: [SILENT] }],
  ['nameserver_unreachable', { servers: [SILENT, { ...REFUSED, ...second }] }],
  [
    'nameserver_unreachable',
    { servers: [{ ...SILENT, alias: 'web.example.net' }], alias: { ...alias, isKnown: false } },
  ],
  [
    'parent_child_mismatch',
    { servers: [{ ...MATCH, nsSet: ['ns1.example.com'] }, server({ ...second, nsSet: [second.host] })] },
  ],
  ['dnssec_bogus', { dnssec: dnssec('no_key') }],
  ['dnssec_bogus', { dnssec: dnssec('expired') }],
  ['dnssec_bogus', { resolvers: [rejects] }],
  ['dnssec_bogus', { dnssec: dnssec('ok'), resolvers: [rejectsNow] }],
  ['partial_propagation', { servers: [{ ...MATCH, soa: soa(2) }, server(second)] }],
  ['cached', { resolvers: [resolver('absent', { negativeTtl: 45 })] }],
  ['cached', { resolvers: [resolver('mismatch', { values: [txt('prefix=older')], ttl: 45 })] }],
  ['cached', { dnssec: dnssec('ok'), resolvers: [rejects] }],
  [
    'dns_intercepted',
    {
      servers: [REFUSED],
      location: found('example.com', [], { registry: [{ address: REGISTRY.address, isImplausible: true }] }),
    },
  ],
  ['resolver_only', { servers: [SILENT], resolvers: [resolver('match')] }],
  ['characters_changed', { servers: [with_(`${EXPECTED}4567`)] }],
  ['given_value_cut', { mayBeCut: true, servers: [with_(`${EXPECTED}4567`)] }],
  ['resolver_unreachable', { location: lost('9.9.9.9: timeout'), servers: [] }],
  ['limit_reached', { location: lost(), servers: [], limitReached: true }],
  ['some_servers_lame', { servers: [MATCH, { ...REFUSED, ...second }] }],
  ['some_servers_silent', { servers: [MATCH, { ...SILENT, ...second }] }],
  ['resolver_differs', { resolvers: [resolver('refused')] }],
  ['resolver_differs', { resolvers: [resolver('absent')] }],
  ['resolver_differs', { resolvers: [resolver('absent', { negativeTtl: 45, authoritative: true })] }],
]

test.each(ROWS)('the finding %s comes first in example report %# and sets its verdict', (code, seen) => {
  const { verdict, ready, findings } = check(seen)
  expect(findings[0]).toMatchObject({ code, severity: getDefaultSeverity(code) })
  expect({ verdict, ready }).toEqual({
    verdict: verdictOf(code),
    ready: verdictOf(code) === 'ready_with_warning',
  })
  for (const { message, fix } of findings)
    expect(`${message} ${fix}`).not.toMatch(/[{}]|unknown|undefined|null/)
})

test('the table of example observations contains every finding code', () => {
  const missing = Object.keys(FINDING_TEXTS).filter((code) => !ROWS.some(([tried]) => tried === code))
  expect(missing).toEqual([])
})

test.each([
  ['of a record that all servers have', {}],
  [
    'with resolvers that don’t answer',
    { resolvers: [resolver('match'), resolver('timeout'), resolver('unreachable')] },
  ],
  ['of a signed zone', { dnssec: dnssec('ok') }],
  [
    'without IPv6',
    { servers: [MATCH, { ...SILENT, outcome: 'not_checked' as const, address: '2001:db8::1' }] },
  ],
  ['with an IPv6 that drops packets', { servers: [MATCH, { ...SILENT, address: '2001:db8::1' }] }],
  ['of a record behind an alias', { servers: [{ ...MATCH, alias: 'web.example.net' }] }],
  [
    'of a zone with other name servers than the registry has',
    { location: inZone(['ns1.example.com', 'old']) },
  ],
])('a check %s gives the verdict `ready` without findings', (_what, seen) => {
  expect(check(seen)).toMatchObject({ verdict: 'ready', findings: [], retry_after_seconds: null })
})

test('retry_after_seconds of a report is the longest wait that a finding names or, if none does and the verdict is fix, the TTL or negative TTL, each limited to 1 to 86,400', () => {
  const { retry_after_seconds, findings } = check({ servers: [{ ...MATCH, soa: soa(2) }, server(second)] })
  expect(retry_after_seconds).toBe(60)
  expect(findings[0]?.fix).toContain('check again in 60 seconds')
  expect(check({ dnssec: dnssec('ok'), resolvers: [rejects] }).retry_after_seconds).toBe(500)
  expect(check({ servers: [server()] }).retry_after_seconds).toBe(60)
  expect(check({ servers: [with_('other')] }).retry_after_seconds).toBe(300)
  expect(check({ servers: [server({ negativeTtl: 0 })] }).retry_after_seconds).toBe(1)
  const nowhere = { kind: 'no_domain', domain: 'example.com', deniedBy: 'com', path: [] } as const
  const location = { ...nowhere, negativeTtl: 200_000 }
  expect(check({ location, servers: [] }).retry_after_seconds).toBe(86_400)
})

test('no finding’s fix asks users to replace another TXT value, or names a value other than the expected one', () => {
  for (const [, seen] of ROWS)
    for (const { fix } of check(seen).findings) {
      expect(fix).not.toMatch(/older|v=spf1|PREFIX|instead|replace the (TXT|value)/)
      if (fix.includes('value ')) expect(fix).not.toMatch(/prefix=(?!token123)/)
    }
})

test('the fix for a missing record names the host relative to the zone', () => {
  const [first] = check({ name: '_m.a.example.com', servers: [server()] }).findings
  expect(first?.fix).toBe(
    'add a TXT record in the zone example.com, in the panel with the name servers ns1.example.com, ' +
      'beside any others: host _m.a, value prefix=token123',
  )
})

test('the fix for a missing record names the DNS provider if the name servers are of a known provider', () => {
  const { findings } = check({ servers: [server({ host: 'ada.ns.cloudflare.com' })] })
  const words =
    'in the zone example.com at Cloudflare, in the panel with the name servers ada.ns.cloudflare.com, beside'
  expect(findings).toMatchObject([{ code: 'missing', fix: expect.stringContaining(words) }])
})

test.each<[string, OtherNameWithTxt['kind'], string, FindingCode[], string]>([
  ['www.example.com', 'wrong', EXPECTED, ['other_name'], `: "${EXPECTED}"`],
  ['www.example.com', 'wrong', `${EXPECTED} `, ['other_name', 'whitespace'], `: "${EXPECTED} "`],
  ['example.com.example.com', 'doubled', 'prefix=older', ['doubled_name', 'stale_token'], ': "prefix=older"'],
])(
  'a record at the wrong name %s (%s) with the value %j has a finding for the name, and a second one if the value is wrong',
  (name, kind, value, expected, end) => {
    const { findings } = check({ servers: [server()], otherNames: at(name, kind, value) })
    expect(findings.map(({ code }) => code)).toEqual(expected)
    expect(findings[0]?.message).toMatch(/^a TXT record is at /)
    expect(findings[0]?.message.endsWith(end)).toBe(true)
    expect(findings[0]?.evidence).toMatchObject({ found_at: name, values: [value] })
    expect(findings[0]?.fix.includes(`, and as its value ${EXPECTED}`)).toBe(value !== EXPECTED)
  },
)

test('the message of the finding `partial_propagation` mentions the SOA serial only if it is the same with and without the record', () => {
  const younger = check({ servers: [{ ...MATCH, soa: soa(2) }, server(second)] })
  expect(younger.findings[0]?.message).not.toContain('serial')
  const [first] = check({ servers: [MATCH, server(second)] }).findings
  expect(first).toMatchObject({ code: 'partial_propagation', evidence: { serial: 1 } })
  expect(first?.message).toMatch(/; both have serial 1, so it may not come by itself$/)
})

test('of two wrong names with TXT records, the one with the expected value is reported, not the one with another claim’s token', () => {
  const candidates = [
    ...at('example.com.example.com', 'doubled', 'prefix=older').candidates,
    ...at('www.example.com', 'wrong').candidates,
  ]
  expect(codes({ servers: [server()], otherNames: { candidates, wildcard: null } })).toEqual(['other_name'])
})

test.each([
  [
    'web.example.net',
    'replace the CNAME with the TXT record and any address records, or add it at the target',
  ],
  [EXPECTED, 'replace the CNAME with the TXT record that was meant: its target is the value'],
])('the fix for a CNAME with the target %s contains: %s', (target, fix) => {
  const alias = { targets: [target], isKnown: true }
  const { findings } = check({ name: 'a.example.com', servers: [{ ...aliased, alias: target }], alias })
  expect(findings).toMatchObject([{ code: 'cname_at_name', fix: expect.stringContaining(fix) }])
})

test('each list of name servers in a message has at most two servers, and names a server with several addresses once, without address', () => {
  const [v4, v6] = [{ address: '192.0.2.7' }, { address: '2001:db8::7' }]
  const hosts = ['ns1.example.com', 'ns2.example.com', 'ns3.example.com', 'ns4.example.com']
  const [one, ...others] = hosts.map((host) => ({ ...MATCH, host }))
  const servers = [
    ...others.flatMap((server) => [
      { ...server, ...v4 },
      { ...server, ...v6 },
    ]),
    { ...server(), ...one, outcome: 'absent' as const, ...v6 },
  ]
  expect(check({ servers }).findings[0]?.message).toBe(
    'name servers that lack the record: ns1.example.com (2001:db8::7); ' +
      'that have it: ns2.example.com, ns3.example.com and 1 more; ' +
      'both have serial 1, so it may not come by itself',
  )
})

test('a resolver that fails validation because of old keys gives the finding `dnssec_bogus`, not `cached`, if the zone’s DNSSEC state is unknown or `expired`', () => {
  expect(codes({ resolvers: [rejects] })).toEqual(['dnssec_bogus'])
  expect(codes({ resolvers: [rejects], dnssec: dnssec('expired') })).toEqual(['dnssec_bogus'])
})

test('findings are sorted by the severity of their verdicts, and the error for a record that is not ready has the message of the first finding', () => {
  const servers = [server(), { ...SILENT, ...second }]
  expect(codes({ servers, dnssec: dnssec('no_key') })).toEqual([
    'missing',
    'dnssec_bogus',
    'some_servers_silent',
  ])
  const cache = resolver('absent', { negativeTtl: 45 })
  const report = check({ servers: [MATCH, { ...SILENT, ...second }], resolvers: [cache] })
  expect(report.findings.map(({ code }) => code)).toEqual(['cached', 'some_servers_silent'])
  expect(exitErrorOf(report)?.message).toBe(report.findings[0]?.message)
})

describe('what a resolver still caches', () => {
  const OLD_NS = { texts: ['ns.old.example.net'], ttl: 900 }
  test.each<[string, Partial<ResolverObservation>, number]>([
    ['a negative answer', { negativeTtl: 45 }, 45],
    [
      'a negative answer and the current NS set',
      { negativeTtl: 45, cached: { texts: ['ns1.example.com'], ttl: 900 } },
      45,
    ],
    ['the NS set from before a move', { negativeTtl: 45, cached: OLD_NS }, 900],
    ['a CNAME that was removed', { negativeTtl: 45, alias: 'web.example.net', ttl: 858 }, 858],
  ])('a resolver that caches %s gives the finding `cached` with the TTL left', (_what, more, seconds) => {
    const report = check({ resolvers: [resolver('absent', more)] })
    expect(report).toMatchObject({
      verdict: 'wait',
      findings: [{ code: 'cached' }],
      retry_after_seconds: seconds,
    })
  })

  test('after the wait that the finding `cached` names, a resolver without the record gives `resolver_differs` or, if it fails DNSSEC validation, `dnssec_bogus`', () => {
    const resolvers = [resolver('absent', { negativeTtl: 45, cached: OLD_NS })]
    expect(codes({ isOverdue: true, resolvers })).toEqual(['resolver_differs'])
    expect(codes({ isOverdue: true, dnssec: dnssec('ok'), resolvers: [rejects] })).toEqual(['dnssec_bogus'])
  })
})

describe('who has to act', () => {
  const path = ['com', 'example.com', 'sub.example.com'].map((zone) => ({ zone, hosts: new Map() }))
  const sub = (more: Partial<DnsObservations>) => ({
    ...more,
    location: found('sub.example.com', ['ns1.example.com'], { path }),
  })
  const nowhere = { ...SILENT, ...second, address: null, outcome: 'unreachable' as const }
  const [old, young] = [server(), { ...MATCH, ...second }]
  test.each<[FindingCode, Partial<DnsObservations>, string]>([
    [
      'lame_nameserver',
      { servers: [REFUSED] },
      'add or repair example.com or, if the servers are of an earlier one, correct them at the registrar',
    ],
    ['lame_nameserver', sub({ servers: [REFUSED] }), 'correct them in the zone example.com'],
    [
      'some_servers_lame',
      { servers: [MATCH, { ...REFUSED, ...second }], location: inZone([MATCH.host]) },
      'remove them in the zone example.com',
    ],
    [
      'some_servers_lame',
      { servers: [MATCH, { ...REFUSED, ...second }], location: inZone([MATCH.host, second.host]) },
      'add or repair example.com there or, if they are of an earlier one, remove them at the registrar',
    ],
    ['no_nameservers', sub({ servers: [nowhere] }), 'correct their names in the zone example.com'],
    ['some_servers_silent', { servers: [MATCH, nowhere] }, 'correct their names at the registrar'],
    [
      'some_servers_silent',
      { servers: [MATCH, { ...SILENT, ...second }] },
      'have the DNS provider repair them',
    ],
    ['dnssec_bogus', { dnssec: dnssec('no_key') }, 'first remove the DS record at the registrar'],
    ['dnssec_bogus', { dnssec: dnssec('wrong_ds') }, 'first remove the DS record at the registrar'],
    ['dnssec_bogus', { dnssec: dnssec('expired') }, 'have the DNS provider sign the zone again'],
    [
      'dnssec_bogus',
      { dnssec: { ...dnssec('ok'), state: 'unsigned', keys: ['old key'] }, resolvers: [rejects] },
      'have whoever signs the zone above sign it again',
    ],
    [
      'parent_child_mismatch',
      { servers: [old, young], location: inZone([second.host]) },
      'remove ns1.example.com (192.0.2.1) from the NS records in the zone',
    ],
    [
      'parent_child_mismatch',
      { servers: [old, young], location: inZone(['ns1.example.com']) },
      'add the record there too or, if they are of an earlier provider, remove ns1.example.com (192.0.2.1) at the registrar',
    ],
    [
      'parent_child_mismatch',
      {
        servers: [
          { ...old, nsSet: [old.host] },
          { ...young, nsSet: [young.host] },
        ],
        location: inZone([old.host, young.host]),
      },
      'if they are of an earlier provider, remove ns1.example.com (192.0.2.1) at the registrar',
    ],
    [
      'missing',
      { servers: [server({ host: 'ns1.sedoparking.com' })] },
      'the domain is parked (ns1.sedoparking.com): renew it if it has expired',
    ],
    [
      'missing',
      { servers: [server({ host: 'failed-whois-verification.namecheap.com' })] },
      'renew it, or confirm its contact address, at the registrar first',
    ],
  ])('the fix for the finding %s with the observations %j contains: %s', (code, seen, fix) => {
    expect(check(seen).findings).toContainEqual(
      expect.objectContaining({ code, fix: expect.stringContaining(fix) }),
    )
  })
})

test.each<[Partial<DnsObservations>, string]>([
  [{ servers: [SILENT] }, 'no name server answers for example.com'],
  [
    { servers: [{ ...SILENT, outcome: 'not_checked' }] },
    'the name servers of example.com have no address that this network can reach',
  ],
  [
    { dnssec: dnssec('ok'), resolvers: [rejectsNow] },
    'a resolver rejects its signatures: signature not yet valid',
  ],
  [
    { name: 'xn--mnchen-3ya.example', servers: [server()] },
    "the TXT record isn't at münchen.example; TXT values there: none",
  ],
  [
    { servers: [with_(...Array.from({ length: 6 }, (_, n) => `foreign-${n} ${'x'.repeat(250)}`))] },
    "the TXT record isn't at example.com; TXT values there: 6",
  ],
])('the first message for the observations %j contains: %s', (seen, message) => {
  expect(check(seen).findings[0]?.message).toContain(message)
})

/** An IPv6 address: many networks intercept queries over IPv4 only. */
const V6 = { address: '2001:db8::2' }
const RESOLVES = server({
  ...{ outcome: 'lame', isImplausible: true, isResolver: true, authoritative: false, soa: null },
})

test.each<[string, boolean | null, readonly ServerObservation[], readonly FindingCode[]]>([
  ['IPv6 shows the record', true, [REFUSED, { ...MATCH, ...V6 }], []],
  ['IPv6 shows that the record is missing', true, [REFUSED, { ...server(), ...V6 }], ['missing']],
  ['IPv6 is silent', true, [REFUSED, { ...SILENT, ...V6 }], ['dns_intercepted']],
  ['a resolver responds in place of all', true, [RESOLVES], ['dns_intercepted']],
  ['the registry responds', false, [REFUSED], ['lame_nameserver']],
  ['the registry is genuine', false, [RESOLVES, { ...RESOLVES, outcome: 'refused' }], ['dns_intercepted']],
  ['the registry is genuine, and IPv6 works', false, [RESOLVES, { ...MATCH, ...V6 }], []],
  ['one server refuses, and one is a resolver', false, [RESOLVES, REFUSED], ['lame_nameserver']],
  ['one server of two is a resolver', false, [RESOLVES, { ...MATCH, ...second }], ['some_servers_lame']],
  ['no registry responds over IPv4', null, [REFUSED], ['dns_intercepted']],
  ['over IPv4, no registry responds, but a server', null, [REFUSED, MATCH], ['some_servers_lame']],
])('interception over IPv4 is told from broken servers if %s', (_what, isImplausible, servers, expected) => {
  const registry = [
    ...(isImplausible === null ? [] : [{ address: REGISTRY.address, isImplausible }]),
    { address: '2001:db8::9', isImplausible: false },
  ]
  expect(codes({ servers, location: found('example.com', [], { registry }) })).toEqual(expected)
})

test.each<[string, boolean, readonly ServerObservation[], readonly FindingCode[]]>([
  ['one interceptor responds over both', true, [RESOLVES, { ...RESOLVES, ...V6 }], ['dns_intercepted']],
  ['each family has its own interceptor', true, [REFUSED, { ...RESOLVES, ...V6 }], ['dns_intercepted']],
  ['IPv4 is intercepted, the zone has only IPv6', true, [{ ...RESOLVES, ...V6 }], ['dns_intercepted']],
  ['only IPv6 is intercepted', false, [MATCH, { ...RESOLVES, ...V6 }], []],
  ['IPv6 is intercepted, and IPv4 lacks the record', false, [server(), { ...REFUSED, ...V6 }], ['missing']],
  ['IPv6 lacks the record', false, [MATCH, { ...server(second), ...V6 }], ['partial_propagation']],
  ['no server serves the zone', false, [REFUSED, { ...REFUSED, ...V6 }], ['lame_nameserver']],
])('interception is judged separately for IPv4 and IPv6 if %s', (_what, isImplausible, servers, expected) => {
  const registry = [{ address: REGISTRY.address, isImplausible }]
  expect(codes({ servers, location: found('example.com', [], { registry }) })).toEqual(expected)
})

const SHOWS = resolver('match', { values: [txt(EXPECTED)], ttl: 45 })
const SHOWS_CUT = resolver('mismatch', { values: [txt('prefix=tok')], ttl: 45 })
const SHOWS_NONE = resolver('absent', { negativeTtl: 45 })
test.each<[string, readonly ResolverObservation[], string, readonly FindingCode[], number | null]>([
  ['shows the record', [SHOWS, SHOWS_NONE], 'ready_with_warning', ['resolver_only'], null],
  ['shows a cut value', [SHOWS_CUT], 'fix', ['truncated', 'nameserver_unreachable'], 45],
  ['shows no record', [SHOWS_NONE], 'unknown', ['nameserver_unreachable'], 45],
  [
    'shows another service’s value',
    [with_('v=spf1')].map((one) => ({ ...SHOWS, ...one, authoritative: false })),
    'unknown',
    ['nameserver_unreachable'],
    300,
  ],
  ['fails', [rejects], 'unknown', ['nameserver_unreachable'], null],
])(
  'if no name server responds, verdict and findings follow from a resolver that %s',
  (_what, resolvers, verdict, expected, seconds) => {
    const { findings, ...report } = check({ servers: [SILENT], resolvers })
    expect(findings.map(({ code }) => code)).toEqual(expected)
    expect(report).toMatchObject({ verdict, retry_after_seconds: seconds })
    const lost_ = check({ location: lost(), servers: [], resolvers })
    expect([lost_.verdict, lost_.retry_after_seconds]).toEqual([verdict, seconds])
  },
)

describe('a check without a value', () => {
  const PROOF = 'service-verify=0123456789'
  test.each<[string, Partial<DnsObservations>, FindingCode[]]>([
    ['is silent about a record', { servers: [with_(PROOF)] }, []],
    ['is silent about a policy in quotation marks', { servers: [with_('"v=spf1 -all"')] }, []],
    ['warns of stored quotation marks', { servers: [with_(`"${PROOF}"`)] }, ['quoted']],
    ['warns of invisible characters', { servers: [with_(`${PROOF}\u200b`)] }, ['whitespace']],
    [
      'warns of a doubled name',
      { servers: [server()], otherNames: at('example.com.example.com', 'doubled', PROOF) },
      ['doubled_name'],
    ],
    [
      'warns of the record at www',
      { servers: [server()], otherNames: at('www.example.com', 'wrong', PROOF) },
      ['other_name'],
    ],
    [
      'is silent about a policy at www',
      { servers: [server()], otherNames: at('www.example.com', 'wrong', 'v=spf1 -all') },
      [],
    ],
    [
      'warns of a CNAME whose target is the value',
      { servers: [{ ...aliased, alias: PROOF }], alias: { targets: [PROOF.toLowerCase()], isKnown: true } },
      ['cname_at_name'],
    ],
    ['is silent about another CNAME', { servers: [aliased], alias }, []],
    [
      'is silent about a record at the parent name',
      { servers: [server()], otherNames: at('example.com', 'used', PROOF) },
      [],
    ],
  ])('a check without an expected value %s', (_what, seen, expected) => {
    const report = check({ expected: null, ...seen })
    expect(report.findings.map(({ code }) => code)).toEqual(expected)
    expect(report.findings.every(({ severity }) => severity === 'warning')).toBe(true)
    expect(report).toMatchObject({ verdict: 'unknown', retry_after_seconds: null })
    expect(exitErrorOf(report)).toBeUndefined()
  })
})

test.each<[FindingCode, number, string]>([
  ['missing', 8, 'record_not_visible'],
  ['partial_propagation', 8, 'record_not_visible'],
  ['nameserver_unreachable', 7, 'dns_unavailable'],
])(
  'exitErrorOf returns, for the first finding %s, exit code %i and the error code `%s`',
  (code, exit, name) => {
    const report = check(ROWS.find(([tried]) => tried === code)?.[1])
    const [first] = report.findings
    expect(exitErrorOf(report)).toMatchObject({ exit, code: name, message: first?.message, hint: first?.fix })
    expect(exitErrorOf(report, true)?.hint).toBeUndefined()
  },
)

test('messages and fixes of findings have at most 100 characters without their placeholders, begin in lower case, with a placeholder or with DNSSEC, and end without a full stop', () => {
  for (const [code, { message, fix }] of Object.entries(FINDING_TEXTS))
    for (const words of [message, fix]) {
      const own = words.replace(/\{\w+(:\w+)?\}|[[\]]/g, '')
      expect(own.length, `${code}: ${own}`).toBeLessThanOrEqual(100)
      expect(words, code).toMatch(/^(?:[a-z{]|DNSSEC)/)
      expect(words, code).not.toMatch(/[.!]$/)
    }
})
