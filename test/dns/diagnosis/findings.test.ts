import { describe, expect, test } from 'vitest'
import type { FindingCode, Severity } from '../../../src/dns/diagnosis/finding.ts'
import type { Verdict } from '../../../src/dns/diagnosis/report.ts'
import { findingJson } from '../../../src/dns/diagnosis/report-json.ts'
import { diagnose } from '../../../src/dns/diagnosis/verdict.ts'
import {
  isDnsData,
  type Observation,
  type Observations,
  type ResolverObservation,
} from '../../../src/dns/observation/observations.ts'
import type { TxtValue } from '../../../src/dns/wire/txt-answer.ts'

const EXPECTED = 'prefix=token123'
const bytes = (text: string) => new TextEncoder().encode(text)
const txt = (text: string, strings = 1): TxtValue => ({ bytes: bytes(text), strings })

const SOA = { zone: 'example.com', primary: 'ns1.example.com', serial: 1, refresh: 7200, negativeTtl: 60 }

function observation(more: Partial<Observation> = {}): Observation {
  return {
    host: 'ns1.example.com',
    server: { address: '192.0.2.1', port: 53 },
    outcome: 'absent',
    authoritative: true,
    values: [],
    ttl: null,
    // Who serves the zone not, or says nothing, has none.
    soa: isDnsData(more.outcome ?? 'absent') ? SOA : undefined,
    negativeTtl: 60,
    ms: 10,
    size: 100,
    rcode: 'NOERROR',
    recursionAvailable: false,
    extendedError: undefined,
    tcpFailure: undefined,
    aliases: [],
    aliasEnd: undefined,
    dname: undefined,
    nsSet: undefined,
    dropped: undefined,
    ...more,
  }
}

const match = (more: Partial<Observation> = {}) =>
  observation({ outcome: 'match', values: [txt(EXPECTED)], ttl: 300, negativeTtl: undefined, ...more })
const second = { host: 'ns2.example.com', server: { address: '192.0.2.2', port: 53 } }
const seen = (...values: string[]) =>
  observation({ outcome: 'mismatch', values: values.map((value) => txt(value)), ttl: 300 })

function observations(more: Partial<Observations> = {}): Observations {
  return {
    name: 'example.com',
    expected: EXPECTED,
    zone: 'example.com',
    servers: [match()],
    parent: undefined,
    childHosts: undefined,
    alias: undefined,
    probes: { places: [], wildcard: [], wildcardAlias: undefined, coversName: false },
    resolvers: [],
    dnssec: undefined,
    ...more,
  }
}

function resolver(more: Partial<ResolverObservation>): ResolverObservation {
  const cache = {
    authoritative: false,
    recursionAvailable: true,
    unchecked: undefined,
    authenticated: false,
    zoneView: undefined,
  }
  return { ...match(), ...cache, resolver: { address: '9.9.9.9', port: 53 }, ...more }
}

/** Verdict and findings as the JSON report has them. */
function diagnosed(seen: Observations) {
  const { verdict, findings } = diagnose(seen)
  return { verdict, findings: findings.map((finding) => findingJson(finding, seen.expected)) }
}

const alias = (end: 'txt' | 'absent' | 'nxdomain' | 'loop' | 'unknown') => ({
  servers: [observation({ aliases: ['web.example.com'], aliasEnd: end })],
  alias: { targets: ['web.example.com'], end, values: [], ttl: 300, negativeTtl: undefined },
})

const ROWS: readonly (readonly [FindingCode, Severity, Verdict, Partial<Observations>])[] = [
  ['missing', 'error', 'fix', { servers: [observation()] }],
  ['missing', 'error', 'fix', { servers: [seen('v=spf1 -all')] }],
  ['missing', 'error', 'fix', { servers: [observation({ outcome: 'nxdomain' })] }],
  ['quoted', 'error', 'fix', { servers: [seen(`"${EXPECTED}"`)] }],
  ['whitespace', 'error', 'fix', { servers: [seen(`${EXPECTED}\u00a0`)] }],
  ['split_records', 'error', 'fix', { servers: [seen('token123', 'prefix=')] }],
  ['truncated', 'error', 'fix', { servers: [seen('prefix=token')] }],
  ['case_changed', 'error', 'fix', { servers: [seen('PREFIX=TOKEN123')] }],
  ['stale_token', 'error', 'fix', { servers: [seen('prefix=older')] }],
  ['token_only', 'error', 'fix', { servers: [seen('token123')] }],
  ['prefix_only', 'error', 'fix', { servers: [seen('prefix=')] }],
  ['pasted_line', 'error', 'fix', { servers: [seen(`example.com. IN TXT ${EXPECTED}`)] }],
  ['extra_text', 'error', 'fix', { servers: [seen(`${EXPECTED} and more`)] }],
  ['characters_changed', 'error', 'fix', { servers: [seen('prefix＝token123')] }],
  ['encoded', 'error', 'fix', { servers: [seen('prefix%3Dtoken123')] }],
  ['placeholder', 'error', 'fix', { servers: [seen('prefix=YOUR_TOKEN')] }],
  ['swapped', 'error', 'fix', { servers: [seen('token123=prefix')] }],
  [
    'cname_instead_of_txt',
    'error',
    'fix',
    {
      name: 'app.example.com',
      servers: [observation({ aliases: ['prefix=token123.example.com'], aliasEnd: 'nxdomain' })],
      alias: {
        targets: ['prefix=token123.example.com'],
        end: 'nxdomain',
        values: [],
        ttl: 300,
        negativeTtl: undefined,
      },
    },
  ],
  [
    'cname_instead_of_txt',
    'error',
    'fix',
    {
      servers: [observation()],
      probes: {
        places: [{ name: 'www.example.com', how: 'other', values: [], alias: 'prefix=token123' }],
        wildcard: [],
        wildcardAlias: undefined,
        coversName: false,
      },
    },
  ],
  [
    'doubled_name',
    'error',
    'fix',
    {
      servers: [observation()],
      probes: {
        places: [
          { name: 'example.com.example.com', how: 'doubled', values: [txt(EXPECTED)], alias: undefined },
        ],
        wildcard: [],
        wildcardAlias: undefined,
        coversName: false,
      },
    },
  ],
  [
    'other_name',
    'error',
    'fix',
    {
      servers: [observation()],
      probes: {
        places: [{ name: 'www.example.com', how: 'other', values: [txt(EXPECTED)], alias: undefined }],
        wildcard: [],
        wildcardAlias: undefined,
        coversName: false,
      },
    },
  ],
  [
    'wildcard_answer',
    'error',
    'fix',
    {
      name: 'a.example.com',
      servers: [seen('v=spf1 -all')],
      probes: { places: [], wildcard: [txt('v=spf1 -all')], wildcardAlias: undefined, coversName: true },
    },
  ],
  [
    'wildcard_answer',
    'info',
    'ready',
    { probes: { places: [], wildcard: [txt(EXPECTED)], wildcardAlias: undefined, coversName: true } },
  ],
  ['cname_at_name', 'error', 'fix', alias('absent')],
  ['cname_dangling', 'error', 'fix', alias('nxdomain')],
  ['cname_loop', 'error', 'fix', alias('loop')],
  ['cname_at_name', 'info', 'ready', { servers: [match({ aliases: ['web.example.com'], aliasEnd: 'txt' })] }],
  ['split_strings', 'info', 'ready', { servers: [match({ values: [txt(EXPECTED, 2)] })] }],
  ['partial_propagation', 'warning', 'wait', { servers: [match(), observation(second)] }],
  [
    'lame_nameserver',
    'warning',
    'ready_with_warning',
    { servers: [match(), observation({ ...second, outcome: 'refused', rcode: 'REFUSED' })] },
  ],
  [
    'lame_nameserver',
    'error',
    'fix',
    { servers: [observation({ outcome: 'servfail', rcode: 'SERVFAIL', authoritative: false })] },
  ],
  [
    'nameserver_unreachable',
    'warning',
    'ready_with_warning',
    { servers: [match(), observation({ ...second, outcome: 'timeout', rcode: undefined })] },
  ],
  [
    'nameserver_unreachable',
    'error',
    'unknown',
    { servers: [observation({ outcome: 'timeout', rcode: undefined })] },
  ],
  [
    'nameserver_unreachable',
    'error',
    'unknown',
    { servers: [observation({ outcome: 'not_checked', rcode: undefined })] },
  ],
  [
    'parent_child_mismatch',
    'warning',
    'ready_with_warning',
    {
      servers: [match(), match(second)],
      parent: { zone: 'com', hosts: ['ns1.example.com', 'ns2.example.com'] },
      childHosts: ['ns1.example.com'],
    },
  ],
  [
    'parent_child_mismatch',
    'error',
    'fix',
    {
      servers: [match(), observation(second)],
      parent: { zone: 'com', hosts: ['ns2.example.com'] },
      childHosts: ['ns1.example.com'],
    },
  ],
  [
    'no_nameservers',
    'error',
    'fix',
    { servers: [observation({ server: undefined, outcome: 'unreachable', rcode: undefined })] },
  ],
  ['cached_absence', 'warning', 'wait', { resolvers: [resolver({ outcome: 'absent', negativeTtl: 42 })] }],
  [
    'cached_old_value',
    'warning',
    'wait',
    { resolvers: [resolver({ outcome: 'mismatch', values: [txt('prefix=older')], ttl: 42 })] },
  ],
  [
    'dnssec_bogus',
    'error',
    'fix',
    { resolvers: [resolver({ outcome: 'servfail', rcode: 'SERVFAIL', unchecked: match() })] },
  ],
  [
    'resolver_broken',
    'warning',
    'ready_with_warning',
    {
      resolvers: [
        resolver({
          outcome: 'servfail',
          rcode: 'SERVFAIL',
          unchecked: observation({ outcome: 'servfail' }),
        }),
      ],
    },
  ],
  ['resolver_broken', 'warning', 'ready_with_warning', { resolvers: [resolver({ outcome: 'timeout' })] }],
  [
    'tcp_blocked',
    'error',
    'unknown',
    { servers: [observation({ outcome: 'timeout', tcpFailure: 'timeout' })] },
  ],
  [
    'tcp_blocked',
    'error',
    'unknown',
    {
      servers: [observation({ outcome: 'timeout', tcpFailure: 'timeout' })],
      resolvers: [resolver({ outcome: 'timeout' })],
    },
  ],
  [
    'tcp_blocked',
    'error',
    'fix',
    {
      servers: [observation({ outcome: 'timeout', tcpFailure: 'timeout' })],
      resolvers: [resolver({ outcome: 'servfail' })],
    },
  ],
  [
    'tcp_blocked',
    'error',
    'fix',
    { servers: [observation({ outcome: 'unreachable', tcpFailure: 'refused' })] },
  ],
  [
    'tcp_blocked',
    'warning',
    'ready_with_warning',
    { servers: [observation({ outcome: 'timeout', tcpFailure: 'timeout' })], resolvers: [resolver({})] },
  ],
  [
    'dns_intercepted',
    'error',
    'unknown',
    {
      servers: [
        observation({ outcome: 'lame', authoritative: false, recursionAvailable: true }),
        observation({ ...second, outcome: 'lame', authoritative: false, recursionAvailable: true }),
      ],
    },
  ],
  ['too_many_txt', 'warning', 'ready_with_warning', { servers: [match({ size: 5000 })] }],
]

test.each(ROWS)('%s is an %s, the verdict %s', (code, severity, verdict, more) => {
  const { verdict: given, findings } = diagnosed(observations(more))
  const finding = findings.find((candidate) => candidate.code === code)
  expect(finding?.severity).toBe(severity)
  expect(given).toBe(verdict)
  expect(finding?.message).not.toBe('')
  expect(finding?.fix).not.toBe('')
  const others = findings.filter((other) => other.severity === 'error' && other.code !== code)
  expect(others).toEqual([])
})

describe('what a person reads', () => {
  test('nothing where nothing is wrong', () => {
    expect(diagnosed(observations({ resolvers: [resolver({})] }))).toEqual({ verdict: 'ready', findings: [] })
  })

  test('expected and found values are in the message', () => {
    const [finding] = diagnosed(observations({ servers: [seen('prefix=older')] })).findings
    expect(finding?.message).toContain(`expected "${EXPECTED}"`)
    expect(finding?.message).toContain('found "prefix=older"')
    expect(finding?.evidence).toMatchObject({
      difference: { at: 8, expected: 'token123', seen: 'older' },
      seen_hex: Buffer.from('prefix=older').toString('hex'),
    })
  })

  test('who runs the zone, where the record may have been added elsewhere, and only there', () => {
    const hosts = { host: 'ns-42.awsdns-05.com' }
    const missing = diagnosed(observations({ servers: [observation(hosts)] })).findings
    expect(missing.at(-1)).toMatchObject({
      code: 'wrong_provider_hint',
      severity: 'info',
      evidence: { providers: ['Amazon Route 53'] },
    })
    expect(diagnosed(observations({ servers: [match(hosts)] })).findings).toEqual([])
    const quoted = diagnosed(observations({ servers: [seen(`"${EXPECTED}"`)] })).findings
    expect(quoted.map((finding) => finding.code)).toEqual(['quoted'])
  })

  test('the place where the value is comes before an older token', () => {
    const { findings } = diagnosed(
      observations({
        servers: [seen('prefix=older')],
        probes: {
          places: [{ name: 'www.example.com', how: 'other', values: [txt(EXPECTED)], alias: undefined }],
          wildcard: [],
          wildcardAlias: undefined,
          coversName: false,
        },
      }),
    )
    expect(findings.map((finding) => [finding.code, finding.severity])).toEqual([
      ['other_name', 'error'],
      ['stale_token', 'info'],
    ])
  })

  test('how long a cache still remembers, which is the last of its evidence', () => {
    const [finding] = diagnosed(
      observations({ resolvers: [resolver({ outcome: 'absent', negativeTtl: 42 })] }),
    ).findings
    expect(Object.entries(finding?.evidence ?? {})).toEqual([
      ['resolver', '9.9.9.9'],
      ['outcome', 'absent'],
      ['seconds_left', 42],
    ])
  })

  test('a right value beside an older one is ready', () => {
    const servers = [match({ values: [txt('prefix=older'), txt(EXPECTED)] })]
    expect(diagnosed(observations({ servers }))).toEqual({ verdict: 'ready', findings: [] })
  })
})

describe('the advice fits the case', () => {
  const lame = observation({ ...second, outcome: 'refused', rcode: 'REFUSED', authoritative: false })

  test.each([
    ['a registered domain', 'example.com', 'com', 'at the registrar'],
    ['a domain of a country’s registry', 'example.co.uk', 'co.uk', 'at the registrar'],
    ['a zone below another one', 'app.example.com', 'example.com', 'in the zone example.com'],
  ])('the delegation of %s is fixed where it is kept', (_says, zone, parent, place) => {
    const delegated = { zone, parent: { zone: parent, hosts: ['ns1.example.com'] } }
    const [finding] = diagnosed(observations({ ...delegated, servers: [lame] })).findings
    expect(finding?.fix).toContain(`from the NS records of ${zone}, ${place} and in the zone itself`)
    const nobody = observation({ server: undefined, outcome: 'unreachable', rcode: undefined })
    const [none] = diagnosed(observations({ ...delegated, servers: [nobody] })).findings
    expect(none).toMatchObject({ code: 'no_nameservers', fix: expect.stringContaining(place) })
  })

  test('nobody is told to add a record to the zone of a registry', () => {
    const domain = { name: 'app.example.ws', zone: 'ws' }
    const { verdict, findings } = diagnosed(observations({ ...domain, servers: [observation()] }))
    expect(verdict).toBe('fix')
    expect(findings).toMatchObject([
      { code: 'domain_not_found', evidence: { domain: 'example.ws', said_by: 'ws' } },
    ])
    expect(diagnosed(observations({ ...domain, servers: [match()] })).verdict).toBe('ready')
    const cut = diagnosed(observations({ ...domain, servers: [seen(EXPECTED.slice(0, 12))] }))
    expect(cut.findings).toMatchObject([{ code: 'truncated' }])
  })

  test('signatures that are not valid may be those of the zone where an alias leads', () => {
    const unchecked = match()
    const bogus = resolver({ outcome: 'servfail', rcode: 'SERVFAIL', values: [], unchecked })
    const led = { ...match(), aliases: ['proof.other.net'], aliasEnd: 'txt' as const }
    const path = {
      targets: led.aliases,
      end: led.aliasEnd,
      values: led.values,
      ttl: 60,
      negativeTtl: undefined,
    }
    const [finding] = diagnosed(observations({ servers: [led], alias: path, resolvers: [bogus] })).findings
    expect(finding).toMatchObject({
      code: 'dnssec_bogus',
      fix: expect.stringContaining('Repair DNSSEC of example.com, or of the zone of proof.other.net: '),
    })
    const [own] = diagnosed(observations({ resolvers: [bogus] })).findings
    expect(own?.fix).toMatch(/^Repair DNSSEC of example\.com: /)
  })

  test('a name server host without an address is said to have none', () => {
    const nobody = observation({ ...second, server: undefined, outcome: 'unreachable', rcode: undefined })
    const { findings } = diagnosed(observations({ servers: [match(), nobody] }))
    expect(findings).toMatchObject([
      { code: 'nameserver_unreachable', message: 'ns2.example.com has no address' },
    ])
  })

  test.each([
    ['older', 9, 8, /^Wait until the other name servers have copied/],
    [
      'older, across the end of the numbers',
      1,
      4_294_967_290,
      /^Wait until the other name servers have copied/,
    ],
    ['the same', 9, 9, /^Wait a few minutes/],
    ['newer', 8, 9, /have a newer version of the zone: it was removed there/],
    ['newer, across the end of the numbers', 4_294_967_290, 1, /have a newer version of the zone/],
  ])('servers without the record whose zone is %s', (_says, serial, other, fix) => {
    const soa = (number: number) => ({
      soa: { ...SOA, serial: number },
    })
    const servers = [match(soa(serial)), observation({ ...second, ...soa(other) })]
    expect(diagnosed(observations({ servers })).findings).toMatchObject([
      { code: 'partial_propagation', fix: expect.stringMatching(fix) },
    ])
  })
})

describe('a near value is described so that it can be seen', () => {
  const messageFor = (value: string, expected = 'mc-verify=Q7dX2kV9pLr4TzB8nW') =>
    diagnosed(observations({ expected, servers: [seen(value)] })).findings[0]?.message

  test.each([
    ['mc–verify=Q7dX2kV9pLr4TzB8nW', 'character 3 is "–" (U+2013, en dash) instead of "-"'],
    ['mc-verify＝Q7dX2kV9pLr4TzB8nW', 'character 10 is "＝" (U+FF1D, full-width =) instead of "="'],
    ['mc-verify=Q7dX2kV9pLr4TzВ8nW', 'character 25 is "В" (U+0412, Cyrillic letter) instead of "B"'],
    ['mc-verify: Q7dX2kV9pLr4TzB8nW', 'character 10 is ": " instead of "="'],
    ['mc-verify=Q7dX2kV9pL4TzB8nW', '"r" is missing at character 21'],
    ['mc-verify=Q7dX2kV9pLrr4TzB8nW', 'there is an extra "r" at character 22'],
    ['mc-vérify=Q7dX2kV9pLr4TzB8nW', 'character 5 is "é" (U+00E9) instead of "e"'],
    ['mc-ve\u0301rify=Q7dX2kV9pLr4TzB8nW', 'there is an extra U+0301 at character 6'],
    [
      'verification=Q7dX2kV9pLr4TzB8nW',
      'is almost right: it has "verification" instead of "mc-verify" at character 1',
    ],
    ['“mc-verify=Q7dX2kV9pLr4TzB8nW”', 'includes quotation marks'],
    ['mc-verify\\=Q7dX2kV9pLr4TzB8nW', 'includes a backslash'],
    ['mc-verify%3DQ7dX2kV9pLr4TzB8nW', 'in encoded form, URL encoding (%3D for "=")'],
    ['mc-verify=Q7dX2kV9pLr4TzB8nWmc-verify=Q7dX2kV9pLr4TzB8nW', 'holds the value more than once'],
  ])('%s: %s', (value, words) => {
    expect(messageFor(value)).toContain(words)
  })

  test('a value of another script is shown as it is written', () => {
    const [finding] = diagnosed(observations({ servers: [seen('ключ=значение')] })).findings
    expect(finding?.message).toContain('found another TXT record: "ключ=значение"')
  })

  test('what is worth copying ends the advice', () => {
    for (const value of [
      'prefix＝token123',
      'prefix%3Dtoken123',
      'token123=prefix',
      'prefix=older',
      '"prefix=token123"',
    ])
      expect(diagnosed(observations({ servers: [seen(value)] })).findings[0]?.fix).toMatch(/prefix=token123$/)
  })
})

describe('servers that differ', () => {
  const older = { soa: { ...SOA, serial: 41 } }

  test('are told by their addresses and serials', () => {
    const [finding] = diagnosed(
      observations({ servers: [match(), observation({ ...second, ...older })] }),
    ).findings
    expect(finding?.message).toBe(
      '1 of 2 name servers have the record: ns1.example.com (192.0.2.1, serial 1); not yet: ns2.example.com (192.0.2.2, serial 41)',
    )
  })

  test('at two addresses of one host may be the fault of an old glue record', () => {
    const sameHost = observation({ server: { address: '192.0.2.9', port: 53 }, ...older })
    const [finding] = diagnosed(
      observations({ servers: [match(), sameHost], parent: { zone: 'com', hosts: ['ns1.example.com'] } }),
    ).findings
    expect(finding?.code).toBe('partial_propagation')
    expect(finding?.fix).toContain('If 192.0.2.9 is an old address')
    expect(finding?.fix).toContain('update the glue record for ns1.example.com')
  })

  describe('because the registrar has an old address', () => {
    const stale = { host: 'ns2.example.com', glue: '192.0.2.2', own: ['192.0.2.22'] }
    const third = { host: 'ns3.example.com', server: { address: '192.0.2.3', port: 53 } }

    test('are no matter of waiting, and both addresses are told', () => {
      const servers = [match(), observation({ ...second, ...older })]
      const { verdict, findings } = diagnosed(observations({ servers, staleGlue: [stale] }))
      expect(verdict).toBe('fix')
      expect(findings).toMatchObject([{ code: 'partial_propagation', severity: 'error' }])
      expect(findings[0]?.fix).toContain(
        'ns2.example.com is 192.0.2.2 at the registrar (glue record) but 192.0.2.22 in the zone',
      )
      expect(findings[0]?.evidence).not.toHaveProperty('seconds_left')
    })

    test('do not hide another one that lags behind', () => {
      const servers = [
        match({ soa: { ...SOA, serial: 42 } }),
        observation({ ...second, ...older }),
        observation({ ...third, ...older }),
      ]
      const { verdict, findings } = diagnosed(observations({ servers, staleGlue: [stale] }))
      expect(verdict).toBe('wait')
      expect(findings[0]?.fix).toMatch(/update the glue record at the registrar\. Wait until/)
    })
  })

  test('because one has the value with a mistake, which is shown', () => {
    const quoted = { ...second, outcome: 'mismatch' as const, values: [txt(`"${EXPECTED}"`)] }
    const [finding] = diagnosed(observations({ servers: [match(), observation(quoted)] })).findings
    expect(finding?.message).toContain(`, which has ""${EXPECTED}"" [quoted]`)
  })
})

test('a CNAME at the top of a zone is said to be not allowed there', () => {
  for (const end of ['absent', 'nxdomain', 'loop'] as const) {
    const [finding] = diagnosed(observations(alias(end))).findings
    expect(finding?.message).toContain("A CNAME isn't allowed at the top of a zone")
    const below = diagnosed(observations({ ...alias(end), name: 'app.example.com' })).findings
    expect(below[0]?.message).not.toContain('top of a zone')
  }
})

test('nobody is told to add a record at the name of a registry', () => {
  const registry = { name: 'co.uk', zone: 'co.uk', servers: [observation()] }
  const { findings } = diagnosed(observations(registry))
  expect(findings.map((finding) => finding.code)).toEqual(['domain_not_found'])
  expect(findings[0]?.message).toContain('only the registry can change records there')
  expect(findings[0]?.fix).toBe('Check your registered domain instead, such as example.co.uk')
})

describe('silence is no answer', () => {
  test('an alias whose end nobody told is not "missing"', () => {
    const { verdict, findings } = diagnosed(
      observations({
        ...alias('unknown'),
        servers: [observation({ aliases: ['web.example.com'], outcome: 'timeout' })],
      }),
    )
    expect(verdict).toBe('unknown')
    expect(findings).toMatchObject([{ code: 'cname_at_name', evidence: { end: 'unknown' } }])
  })

  test('IPv6 that is silent everywhere is blamed on this machine', () => {
    const silent = match({
      server: { address: '2001:db8::1', port: 53 },
      outcome: 'timeout',
      values: [],
      rcode: undefined,
    })
    expect(diagnosed(observations({ servers: [match(), silent] }))).toMatchObject({
      verdict: 'ready',
      findings: [{ code: 'nameserver_unreachable', severity: 'info' }],
    })
  })

  test('IPv6 that cannot be asked is no finding', () => {
    const unchecked = match({ server: { address: '2001:db8::1', port: 53 }, outcome: 'not_checked' })
    expect(diagnosed(observations({ servers: [match(), unchecked] }))).toEqual({
      verdict: 'ready',
      findings: [],
    })
  })

  test('hosts that nobody could look up are not "no name servers"', () => {
    const unknown = observation({ server: undefined, outcome: 'timeout', rcode: undefined })
    expect(diagnosed(observations({ servers: [unknown] }))).toMatchObject({
      verdict: 'unknown',
      findings: [{ code: 'nameserver_unreachable' }],
    })
  })
})

describe('who is at fault', () => {
  const refused = observation({
    outcome: 'refused',
    rcode: 'REFUSED',
    authoritative: false,
    recursionAvailable: true,
  })

  test('a resolver in the place of all servers, the registry’s included, is an interception', () => {
    const { verdict, findings } = diagnosed(observations({ servers: [refused], recursionAbove: true }))
    expect({ verdict, codes: findings.map(({ code }) => code) }).toEqual({
      verdict: 'unknown',
      codes: ['dns_intercepted'],
    })
  })

  test('a resolver in the place of this server alone is a lame server', () => {
    const { verdict, findings } = diagnosed(observations({ servers: [refused], recursionAbove: false }))
    expect({ verdict, codes: findings.map(({ code }) => code) }).toEqual({
      verdict: 'fix',
      codes: ['lame_nameserver'],
    })
  })

  test('a resolver that fails where the server drops its questions is not broken', () => {
    const { findings } = diagnosed(
      observations({
        servers: [match({ dropped: 'udp' })],
        resolvers: [resolver({ outcome: 'timeout', rcode: undefined })],
      }),
    )
    expect(findings).toMatchObject([{ code: 'udp_dropped', severity: 'error' }])
  })

  test('a server that drops questions without harm to a resolver is a warning', () => {
    const { verdict } = diagnosed(
      observations({ servers: [match({ dropped: 'edns' })], resolvers: [resolver({ outcome: 'match' })] }),
    )
    expect(verdict).toBe('ready_with_warning')
  })
})

test('an IP address entered as a name server is said to be none', () => {
  const host = { host: '192.0.2.1', server: undefined, outcome: 'unreachable' as const, rcode: undefined }
  const { findings } = diagnosed(observations({ servers: [observation(host)] }))
  expect(findings).toMatchObject([{ code: 'no_nameservers' }])
  expect(findings[0]?.message).toContain('given by its name, not by its IP address')
})

test('the prefix as the host and the rest as the value is recognized', () => {
  const place = {
    name: 'prefix.example.com',
    how: 'other' as const,
    values: [txt('token123')],
    alias: undefined,
  }
  const probes = { places: [place], wildcard: [], wildcardAlias: undefined, coversName: false }
  const [finding] = diagnosed(observations({ servers: [observation()], probes })).findings
  expect(finding).toMatchObject({
    code: 'other_name',
    fix: 'Add a TXT record in the zone example.com: host @, value prefix=token123',
  })
})

describe('servers that are slow', () => {
  const failing = resolver({ outcome: 'timeout', rcode: undefined })
  const adviceAt = (...times: number[]) =>
    diagnosed(observations({ servers: times.map((ms) => match({ ms })), resolvers: [failing] })).findings[0]

  test('are why a resolver has no answer yet', () => {
    expect(adviceAt(1300, 1400)?.message).toContain('need 1.3 seconds or more for an answer')
    expect(adviceAt(1300, 1400)?.fix).not.toContain('repaired')
  })

  test('explain nothing beside one that is quick', () => {
    expect(adviceAt(1300, 20)?.fix).toContain('repaired')
  })
})

describe('what is no cache is not waited for', () => {
  const current = { soa: SOA, nsSet: undefined, steadyTtl: false }
  const lacking = (zoneView: ResolverObservation['zoneView'], more: Partial<ResolverObservation> = {}) =>
    diagnosed(
      observations({
        childHosts: ['ns1.example.com'],
        resolvers: [resolver({ outcome: 'absent', negativeTtl: 900, zoneView, ...more })],
      }),
    )

  test('an absence that is counted down is a cache', () => {
    const { verdict, findings } = lacking(current)
    expect(verdict).toBe('wait')
    expect(findings).toMatchObject([{ code: 'cached_absence', evidence: { seconds_left: 900 } }])
  })

  test.each([
    ['another primary server', { ...current, soa: { ...SOA, primary: 'dc1.example.com' } }],
    ['a TTL that stays the same', { ...current, steadyTtl: true }],
    [
      'name servers in a private network',
      { ...current, nsSet: { hosts: ['dc1.example.com'], ttl: 3600, isPrivate: true } },
    ],
  ])('%s is split DNS', (_what, zoneView) => {
    const { verdict, findings } = lacking(zoneView)
    expect(verdict).toBe('ready_with_warning')
    expect(findings).toMatchObject([{ code: 'split_dns' }])
    expect(findings[0]?.fix).not.toMatch(/^Wait/)
  })

  test('other name servers are those of before a move, for as long as their NS set is held', () => {
    const zoneView = { ...current, nsSet: { hosts: ['ns.old.net'], ttl: 80_000, isPrivate: false } }
    const { verdict, findings } = lacking(zoneView)
    expect(verdict).toBe('wait')
    expect(findings).toMatchObject([{ code: 'stale_delegation', evidence: { seconds_left: 80_000 } }])
  })

  test.each([
    ['absent', 'is known otherwise', SOA],
    ['absent', 'is not known either', undefined],
    ['nxdomain', 'is known otherwise', SOA],
    ['nxdomain', 'is not known either', undefined],
  ] as const)('%s without an SOA record is a filter where that of the zone %s', (outcome, _says, soa) => {
    const { verdict, findings } = lacking({ ...current, soa }, { outcome, negativeTtl: undefined })
    expect(verdict).toBe('ready_with_warning')
    expect(findings).toMatchObject([{ code: 'txt_filtered' }])
    expect(findings[0]?.evidence).not.toHaveProperty('seconds_left')
  })

  test('an alias of before is held for as long as its TTL', () => {
    const old = {
      aliases: ['old.example.net'],
      aliasEnd: 'unknown' as const,
      negativeTtl: undefined,
      ttl: 77,
    }
    const { verdict, findings } = lacking(current, old)
    expect(verdict).toBe('wait')
    expect(findings).toMatchObject([{ code: 'cached_absence', evidence: { seconds_left: 77 } }])
  })

  test('the advice for an absence whose TTL stays the same fits a filter that makes up the SOA record', () => {
    const { findings } = lacking({ ...current, steadyTtl: true })
    expect(findings[0]?.fix).toContain('allow it in the filter')
  })
})

describe('DNSSEC', () => {
  const dnssec = (state: NonNullable<Observations['dnssec']>['state']) => ({
    state,
    keyTags: [12345],
    date: state === 'expired' ? 1_700_000_000 : undefined,
  })

  test.each([
    ['no-key', /not signed/, /Remove the DS record/],
    ['wrong-ds', /matches no key/, /Replace the DS record/],
    ['expired', /expired on 2023-11-14/, /sign the zone example\.com again/],
  ] as const)('%s says what is the matter and what to do', (state, message, fix) => {
    const { verdict, findings } = diagnosed(observations({ dnssec: dnssec(state) }))
    expect(verdict).toBe('fix')
    expect(findings).toMatchObject([{ code: 'dnssec_bogus' }])
    expect(findings[0]?.message).toMatch(message)
    expect(findings[0]?.fix).toMatch(fix)
  })

  test('a single server with expired signatures is named in a warning', () => {
    const outdated = [
      { server: { address: '192.0.2.2', port: 53 }, state: 'expired' as const, date: 1_700_000_000 },
    ]
    const { verdict, findings } = diagnosed(
      observations({ servers: [match(), match(second)], dnssec: { ...dnssec('ok'), outdated } }),
    )
    expect(verdict).toBe('ready_with_warning')
    expect(findings).toMatchObject([
      { code: 'dnssec_bogus', severity: 'warning', evidence: { reason: 'signature_expired' } },
    ])
    expect(findings[0]?.message).toContain('at ns2.example.com (192.0.2.2) expired on 2023-11-14')
  })

  test('a resolver that gives the record is not overlooked', () => {
    const { findings } = diagnosed(
      observations({ dnssec: dnssec('wrong-ds'), resolvers: [resolver({ outcome: 'match' })] }),
    )
    expect(findings[0]?.message).toMatch(
      /^The record is there, and 9\.9\.9\.9 gives it, but resolvers that validate may reject it/,
    )
  })

  test('what an extended error says is passed on where nothing else shows the cause', () => {
    const rejecting = resolver({
      outcome: 'servfail',
      rcode: 'SERVFAIL',
      unchecked: match(),
      extendedError: { code: 7, text: '' },
    })
    const { findings } = diagnosed(observations({ resolvers: [rejecting] }))
    expect(findings).toMatchObject([{ code: 'dnssec_bogus', evidence: { reason: 'rejected' } }])
    expect(findings[0]?.message).toContain('a signature has expired')
  })

  test('a signed zone that nobody has validated is a remark, and one that somebody has is none', () => {
    const seenBy = (authenticated: boolean) =>
      diagnosed(
        observations({ dnssec: dnssec('ok'), resolvers: [resolver({ outcome: 'match', authenticated })] }),
      )
    expect(seenBy(false)).toMatchObject({
      verdict: 'ready',
      findings: [{ code: 'not_validated', severity: 'info' }],
    })
    expect(seenBy(true)).toMatchObject({ verdict: 'ready', findings: [] })
  })
})

test('nobody is told to add a record to the zone of a company that lets others have names', () => {
  const { findings } = diagnosed(
    observations({ name: 'nobody.uk.com', zone: 'uk.com', servers: [observation({ outcome: 'nxdomain' })] }),
  )
  expect(findings[0]).toMatchObject({
    code: 'missing',
    fix: expect.stringMatching(/^Check that nobody\.uk\.com is registered/),
  })
})
