import { describe, expect, test } from 'vitest'
import { causesIn, particularsIn } from '../../../src/claims/many/done-claim.ts'
import type { Particulars } from '../../../src/claims/many/general-text.ts'
import { RunTally } from '../../../src/claims/many/tally.ts'
import type { FindingCode, Severity } from '../../../src/dns/diagnosis/finding.ts'
import type { CheckReport, Verdict } from '../../../src/dns/diagnosis/report.ts'
import { findingJson } from '../../../src/dns/diagnosis/report-json.ts'
import { plainText } from '../../../src/dns/diagnosis/text.ts'
import { diagnose } from '../../../src/dns/diagnosis/verdict.ts'
import type { MisplacedRecord, ProbeResult } from '../../../src/dns/observation/observations.ts'
import {
  isDnsData,
  type Observation,
  type Observations,
  type ResolverObservation,
} from '../../../src/dns/observation/observations.ts'
import type { TxtValue } from '../../../src/dns/wire/txt-answer.ts'

const EXPECTED = 'prefix=token123'
const bytes = (text: string) => new TextEncoder().encode(text)
const txt = (text: string, ...rest: string[]): TxtValue => ({
  bytes: bytes([text, ...rest].join('')),
  strings: [text, ...rest].map(bytes),
})

const SOA = { zone: 'example.com', primary: 'ns1.example.com', serial: 1, refresh: 7200, negativeTtl: 60 }

function observation(more: Partial<Observation> = {}): Observation {
  return {
    host: 'ns1.example.com',
    server: { address: '192.0.2.1', port: 53 },
    outcome: 'absent',
    authoritative: true,
    values: [],
    ttl: null,
    // A server that doesn't serve the zone, or doesn't answer, has none.
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

const probes = (more: Partial<ProbeResult> = {}): ProbeResult => ({
  misplaced: [],
  wildcard: [],
  wildcardAlias: undefined,
  coversName: false,
  ...more,
})
const recordAt = (name: string, more: Partial<MisplacedRecord> = {}) =>
  probes({ misplaced: [{ name, how: 'other', values: [txt(EXPECTED)], alias: undefined, ...more }] })

function observations(more: Partial<Observations> = {}): Observations {
  return {
    name: 'example.com',
    expected: EXPECTED,
    zone: 'example.com',
    servers: [match()],
    parent: undefined,
    childHosts: undefined,
    alias: undefined,
    probes: probes(),
    resolvers: [],
    dnssec: undefined,
    ...more,
  }
}

function resolver(more: Partial<ResolverObservation>): ResolverObservation {
  const cache = {
    authoritative: false,
    recursionAvailable: true,
    withCheckingDisabled: undefined,
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

const ROWS: readonly (readonly [
  code: FindingCode,
  severity: Severity,
  verdict: Verdict,
  seen: Partial<Observations>,
])[] = [
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
  ['delegation_not_checked', 'warning', 'ready_with_warning', { registryUnseen: true }],
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
      probes: recordAt('www.example.com', { values: [], alias: 'prefix=token123' }),
    },
  ],
  [
    'cname_instead_of_txt',
    'error',
    'fix',
    {
      servers: [observation()],
      // The parts before and after "=" were taken for host and target.
      probes: recordAt('prefix.example.com', { values: [], alias: 'token123.example.com' }),
    },
  ],
  [
    'doubled_name',
    'error',
    'fix',
    {
      servers: [observation()],
      probes: recordAt('example.com.example.com', { how: 'doubled' }),
    },
  ],
  [
    'other_name',
    'error',
    'fix',
    {
      servers: [observation()],
      probes: recordAt('www.example.com'),
    },
  ],
  [
    'wildcard_answer',
    'error',
    'fix',
    {
      name: 'a.example.com',
      servers: [seen('v=spf1 -all')],
      probes: probes({ wildcard: [txt('v=spf1 -all')], coversName: true }),
    },
  ],
  ['wildcard_answer', 'info', 'ready', { probes: probes({ wildcard: [txt(EXPECTED)], coversName: true }) }],
  ['cname_at_name', 'error', 'fix', alias('absent')],
  ['cname_dangling', 'error', 'fix', alias('nxdomain')],
  ['cname_loop', 'error', 'fix', alias('loop')],
  ['cname_at_name', 'info', 'ready', { servers: [match({ aliases: ['web.example.com'], aliasEnd: 'txt' })] }],
  [
    'split_strings',
    'info',
    'ready',
    { servers: [match({ values: [txt(EXPECTED.slice(0, 4), EXPECTED.slice(4))] })] },
  ],
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
    { resolvers: [resolver({ outcome: 'servfail', rcode: 'SERVFAIL', withCheckingDisabled: match() })] },
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
          withCheckingDisabled: observation({ outcome: 'servfail' }),
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

test.each(ROWS)(
  '%s (%s, %s) among many domains is told in words that fit all of them',
  (_code, _severity, _verdict, more) => {
    const name = 'mail7.example.com'
    const seen = observations({ ...more, name })
    for (const place of seen.probes?.misplaced ?? [])
      Object.assign(place, { name: place.name.replace(/^example/, name) })
    for (const finding of diagnose(seen).findings) {
      const warned = { ...finding, severity: 'warning' } as const
      const report = { name, expected: EXPECTED, zone: 'example.com', nameservers: [], findings: [warned] }
      const tally = new RunTally()
      tally.add(name, { label: 'fix', item: {}, causes: causesIn(report as unknown as CheckReport) })
      const [{ message = '', fix = '' } = {}] = tally.causes()
      expect(`${message}\n${fix}`.toLowerCase()).not.toMatch(
        /mail7|token123|example\.com\b(?<!ns\d\.example\.com)/,
      )
      expect(message).not.toMatch(/expected "?VALUE"?, found "?VALUE"?/)
    }
  },
)

/** The same with other names and another value, in all that it holds. */
function elsewhere<T>(whole: T, zone: string, token: string): T {
  const rename = (text: string) =>
    text
      .replaceAll('example.com', zone)
      .replaceAll(/token123/gi, (found) => (found < 'a' ? token.toUpperCase() : token))
  const visit = (part: unknown): unknown => {
    if (typeof part === 'string') return rename(part)
    if (part instanceof Uint8Array) return bytes(rename(new TextDecoder().decode(part)))
    if (part instanceof Map) return new Map([...part].map(([key, value]) => [visit(key), visit(value)]))
    if (Array.isArray(part)) return part.map(visit)
    if (typeof part !== 'object' || part === null) return part
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, visit(value)]))
  }
  return visit(whole) as T
}

/** The findings of a code at the top of a zone and below it, each as the first of a report. */
function reportsOf(code: FindingCode, more: Partial<Observations>): CheckReport[] {
  const places = [more.name ?? 'example.com', 'mail.example.com', 'a.b.example.com']
  return places.flatMap((name, number) => {
    const seen = elsewhere(observations({ ...more, name }), `client${number}.com`, `abc${number}xyz`)
    return diagnose(seen)
      .findings.filter((finding) => finding.code === code)
      .map(
        (finding) =>
          ({
            ...seen,
            nameservers: [],
            findings: [{ ...finding, severity: finding.severity === 'info' ? 'warning' : finding.severity }],
          }) as unknown as CheckReport,
      )
  })
}

const fill = (text: string, particulars: Particulars) =>
  text.replaceAll(/\b[A-Z]+\b/g, (word) => particulars[word] ?? word)

test('the fix of each group, with what is particular to a domain put in, is the fix of each of its domains', () => {
  const reports = ROWS.flatMap(([code, , , more]) => reportsOf(code, more))
  const all = reports.map((report, number) => ({ report, key: `${number}` }))
  for (const order of [all, all.toReversed()]) {
    const tally = new RunTally()
    for (const { report, key } of order) tally.add(key, { label: 'fix', item: {}, causes: causesIn(report) })
    let members = 0
    for (const { fix = '', names } of tally.causes())
      for (const name of names) {
        const { report } = all[Number(name)] as (typeof all)[number]
        const [finding] = report.findings
        if (finding === undefined) continue
        members += 1
        expect(fill(fix, particularsIn(report, finding))).toBe(plainText(finding.fix))
      }
    expect(members).toBe(reports.length)
  }
})

test.each(ROWS.filter(([code]) => !code.startsWith('cname_at')))(
  '%s has one fix for the top of a zone and for names below it, unless what to do differs',
  (code, _severity, _verdict, more) => {
    const words = reportsOf(code, more).map((report) =>
      causesIn(report)[0]?.fix?.replace(' (or leave it empty)', ''),
    )
    expect([...new Set(words)].slice(1)).toEqual([])
  },
)

test.each(ROWS)('%s has the severity %s and leads to the verdict %s', (code, severity, verdict, more) => {
  const { verdict: given, findings } = diagnosed(observations(more))
  const finding = findings.find((candidate) => candidate.code === code)
  expect(finding?.severity).toBe(severity)
  expect(given).toBe(verdict)
  expect(finding?.message).not.toBe('')
  expect(finding?.fix).not.toBe('')
  const others = findings.filter((other) => other.severity === 'error' && other.code !== code)
  expect(others).toEqual([])
})

test.each(ROWS)(
  '%s (%s, %s) has a fix that ends with the value, if it has it, to be copied',
  (_code, _severity, _verdict, more) => {
    for (const name of ['example.com', 'mail.example.com'])
      for (const { fix } of diagnosed(observations({ name, ...more })).findings)
        if (fix.includes(EXPECTED)) expect(fix).toMatch(new RegExp(`[ :]${EXPECTED}$`))
  },
)

describe('the report', () => {
  test('has no findings if nothing is wrong', () => {
    expect(diagnosed(observations({ resolvers: [resolver({})] }))).toEqual({ verdict: 'ready', findings: [] })
  })

  test('names the expected value and the one found', () => {
    const [finding] = diagnosed(observations({ servers: [seen('prefix=older')] })).findings
    expect(finding?.message).toContain(`expected "${EXPECTED}"`)
    expect(finding?.message).toContain('found "prefix=older"')
    expect(finding?.evidence).toMatchObject({
      difference: { at: 8, expected: 'token123', seen: 'older' },
      seen_hex: Buffer.from('prefix=older').toString('hex'),
    })
  })

  test.each([
    ['a no-break space', [...bytes(EXPECTED), 0xa0], 'whitespace', 'no-break space (hex a0) at character 16'],
    ['smart quotes', [0x93, ...bytes(EXPECTED), 0x94], 'quoted', `found “${EXPECTED}”`],
    ['single smart quotes', [0x91, ...bytes(EXPECTED), 0x92], 'quoted', `found ‘${EXPECTED}’`],
    ['German quotes', [0x84, ...bytes(EXPECTED), 0x93], 'quoted', `found „${EXPECTED}“`],
    [
      'an en dash',
      bytes(EXPECTED).map((byte) => (byte === 0x3d ? 0x96 : byte)),
      'characters_changed',
      'U+2013',
    ],
  ] as const)('reads %s in Windows-1252, and shows the stored bytes', (_title, stored, code, said) => {
    const value = { bytes: Uint8Array.from(stored), strings: [Uint8Array.from(stored)] }
    const server = observation({ outcome: 'mismatch', values: [value], ttl: 300 })
    const [finding] = diagnosed(observations({ servers: [server] })).findings
    expect(finding?.code).toBe(code)
    expect(finding?.message).toContain(said)
    expect(finding?.evidence['seen_hex']).toBe(Buffer.from(stored).toString('hex'))
  })

  test('says who hosts the zone if the record may have been added elsewhere, and only then', () => {
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

  test('names the place where the value is before an older token', () => {
    const { findings } = diagnosed(
      observations({
        servers: [seen('prefix=older')],
        probes: recordAt('www.example.com'),
      }),
    )
    expect(findings.map((finding) => [finding.code, finding.severity])).toEqual([
      ['other_name', 'error'],
      ['stale_token', 'info'],
    ])
  })

  test('ends the evidence with the seconds that a cache keeps the old state', () => {
    const [finding] = diagnosed(
      observations({ resolvers: [resolver({ outcome: 'absent', negativeTtl: 42 })] }),
    ).findings
    expect(Object.entries(finding?.evidence ?? {})).toEqual([
      ['resolver', '9.9.9.9'],
      ['outcome', 'absent'],
      ['seconds_left', 42],
    ])
  })

  test('is ready with the right value next to an older one', () => {
    const servers = [match({ values: [txt('prefix=older'), txt(EXPECTED)] })]
    expect(diagnosed(observations({ servers }))).toEqual({ verdict: 'ready', findings: [] })
  })
})

describe('the fix', () => {
  test.each([
    ['sends a person to another network while this one may be what blocks TCP', 'timeout', true],
    ["is the servers' alone where they refuse TCP", 'refused', false],
  ] as const)('of a TXT answer too large for UDP %s', (_what, tcpFailure, elsewhere) => {
    const outcome = tcpFailure === 'timeout' ? 'timeout' : 'unreachable'
    const { findings } = diagnosed(observations({ servers: [observation({ outcome, tcpFailure })] }))
    const fix = findings.find(({ code }) => code === 'tcp_blocked')?.fix ?? ''
    expect(fix).toContain('Allow TCP port 53')
    expect(fix.startsWith('Check from another network first')).toBe(elsewhere)
  })

  test('of a record at the name without its underscore says what is missing', () => {
    const name = '_verify.example.com'
    const [finding] = diagnosed(
      observations({ name, servers: [observation()], probes: recordAt('verify.example.com') }),
    ).findings
    expect(finding).toMatchObject({ code: 'other_name' })
    expect(finding?.message).toContain(`instead of ${name}: the underscore is missing`)
  })

  test.each([
    ['refused', 'is closed', 'Allow TCP port 53'],
    ['closed', 'closes the connection without an answer', 'Allow TCP port 53'],
    ['other-answers', 'answers other queries than the one it was sent', 'Have TCP on these name servers'],
    ['no-route', "can't be reached from this machine", 'Check from another network first'],
  ])('of a TXT answer too large for UDP fits what TCP did: %s', (tcpFailure, said, fix) => {
    const servers = [observation({ outcome: 'unreachable', tcpFailure })]
    const finding = diagnosed(observations({ servers })).findings.find(({ code }) => code === 'tcp_blocked')
    expect(finding?.message).toContain(`and TCP port 53 ${said}`)
    expect(finding?.fix).toContain(fix)
  })

  test.each([
    ['network', false, 'check from another network'],
    ['server', true, 'Allow TCP port 53 to the name servers (required'],
  ] as const)(
    'of a TXT answer too large for UDP goes by the registry over TCP: %s',
    (place, certain, fix) => {
      const servers = [observation({ outcome: 'timeout', tcpFailure: 'timeout', tcpFilteredAt: place })]
      const { verdict, findings } = diagnosed(observations({ servers }))
      const finding = findings.find(({ code }) => code === 'tcp_blocked')
      expect(verdict).toBe(certain ? 'fix' : 'unknown')
      expect(finding?.fix).toContain(fix)
    },
  )

  test('of a value in two strings in the wrong order says so', () => {
    const [finding] = diagnosed(observations({ servers: [seen('token123prefix=')] })).findings
    expect(finding).toMatchObject({ code: 'swapped' })
    expect(finding?.message).toContain('in two parts that are in the wrong order')
  })

  test.each([
    ['192.168.1.1', '192.168.1.1 (probably the router of this network) doesn', "the router's firmware"],
    ['192.0.2.53', '192.0.2.53 doesn', 'the software of 192.0.2.53'],
  ])('of a resolver at %s that does not know TXT queries names what to update', (address, who, what) => {
    const server = { address, port: 53 }
    const resolvers = [resolver({ resolver: server, outcome: 'lame', rcode: 'NOTIMP' })]
    const [finding] = diagnosed(observations({ resolvers })).findings
    expect(finding).toMatchObject({ code: 'resolver_broken', severity: 'warning' })
    expect(finding?.message).toContain(`${who}'t support TXT queries: it answers NOTIMP`)
    expect(finding?.fix).toContain(`update ${what}`)
  })

  test('of a query that this machine could not send does not accuse the server of refusing TXT', () => {
    const soa = observation({}).soa
    const { findings } = diagnosed(
      observations({
        servers: [observation({ outcome: 'unreachable', rcode: undefined, ...(soa && { soa }) })],
      }),
    )
    expect(findings.map(({ code }) => code)).not.toContain('txt_refused')
  })

  const lame = observation({ ...second, outcome: 'refused', rcode: 'REFUSED', authoritative: false })

  test.each([
    ['a registered domain', 'example.com', 'com', 'at the registrar'],
    ['a domain of a country’s registry', 'example.co.uk', 'co.uk', 'at the registrar'],
    ['a zone below another one', 'app.example.com', 'example.com', 'in the zone example.com'],
  ])('for the delegation of %s says where to change it', (_title, zone, parent, place) => {
    const delegated = { zone, parent: { zone: parent, hosts: ['ns1.example.com'] } }
    const { findings } = diagnosed(observations({ ...delegated, servers: [match(), lame] }))
    const [finding] = findings.filter(({ code }) => code === 'lame_nameserver')
    expect(finding?.fix).toContain(`from the NS records of ${zone}, ${place} and in the zone itself`)
    const nobody = observation({ server: undefined, outcome: 'unreachable', rcode: undefined })
    const [none] = diagnosed(observations({ ...delegated, servers: [nobody] })).findings
    expect(none).toMatchObject({ code: 'no_nameservers', fix: expect.stringContaining(place) })
  })

  test.each([
    ['all of them', [lame]],
    ['all that answer', [lame, observation({ outcome: 'timeout', rcode: undefined, soa: undefined })]],
  ])('for lame name servers never is to remove %s', (_title, servers) => {
    const parent = { zone: 'com', hosts: ['ns1.example.com'] }
    const { findings } = diagnosed(observations({ parent, servers }))
    const finding = findings.find(({ code }) => code === 'lame_nameserver')
    expect(finding?.fix).toBe(
      'Set the name servers of example.com at the registrar to those of the DNS provider that has the zone, or have that server load it',
    )
  })

  test('for a copy of the zone that is behind says how long copying may take', () => {
    const servers = [
      match({ soa: { ...SOA, serial: 42 } }),
      observation({ ...second, soa: { ...SOA, serial: 41 } }),
    ]
    const [finding] = diagnosed(observations({ servers })).findings
    expect(finding?.fix).toContain('notified of changes, or else within 2 hours. If it takes longer')
    expect(finding?.evidence).toMatchObject({ seconds_left: 7200 })
  })

  test('never tells anyone to add a record to the zone of a registry', () => {
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

  test('for invalid signatures includes the zone that an alias leads to', () => {
    const failing = { outcome: 'servfail', rcode: 'SERVFAIL', values: [] } as const
    const bogus = resolver({ ...failing, withCheckingDisabled: match() })
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
      fix: expect.stringContaining('Fix the DNSSEC of example.com, or of the zone of proof.other.net: '),
    })
    const [own] = diagnosed(observations({ resolvers: [bogus] })).findings
    expect(own?.fix).toMatch(/^Fix the DNSSEC of example\.com: /)
  })

  test('for a name server without an address is preceded by saying so', () => {
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
  ])(
    'for servers without the record depends on whether their zone is older: it is %s',
    (_title, serial, other, fix) => {
      const soa = (number: number) => ({
        soa: { ...SOA, serial: number },
      })
      const servers = [match(soa(serial)), observation({ ...second, ...soa(other) })]
      expect(diagnosed(observations({ servers })).findings).toMatchObject([
        { code: 'partial_propagation', fix: expect.stringMatching(fix) },
      ])
    },
  )
})

describe('an almost right value', () => {
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
    ['mc-verify%3DQ7dX2kV9pLr4TzB8nW', 'stored as plain text but as URL encoding (%3D for "=")'],
    ['["mc-verify=Q7dX2kV9pLr4TzB8nW"]', "isn't stored as plain text but as an array: "],
    ['[mc-verify, Q7dX2kV9pLr4TzB8nW]', 'but as an array: '],
    ['{mc-verify: "Q7dX2kV9pLr4TzB8nW"}', 'but as an entry of a JSON object: '],
    ['"mc-verify":"Q7dX2kV9pLr4TzB8nW"', 'but as a key and a value in quotation marks: '],
    ['mc-verify[Q7dX2kV9pLr4TzB8nW]', 'but as an array with a key: '],
    ['https://example.com/?mc-verify=Q7dX2kV9pLr4TzB8nW', 'but as a URL: '],
    ['mc-verify=Q7dX2kV9pLr4TzB8nWmc-verify=Q7dX2kV9pLr4TzB8nW', 'holds the value more than once'],
  ])('%s is described: %s', (value, text) => {
    expect(messageFor(value)).toContain(text)
  })

  test('is not assumed of a value in another script, which is shown as it is', () => {
    const [finding] = diagnosed(observations({ servers: [seen('ключ=значение')] })).findings
    expect(finding?.message).toContain('found another TXT record: "ключ=значение"')
  })

  test('has a fix that ends with the value to copy', () => {
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

describe('servers with different answers', () => {
  const older = { soa: { ...SOA, serial: 41 } }

  test('are listed with their addresses and serials', () => {
    const [finding] = diagnosed(
      observations({ servers: [match(), observation({ ...second, ...older })] }),
    ).findings
    expect(finding?.message).toBe(
      '1 of 2 name servers have the record: ns1.example.com (192.0.2.1, serial 1); not yet: ns2.example.com (192.0.2.2, serial 41)',
    )
  })

  test('at two addresses of one host may be due to an old glue record', () => {
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

    test('are not worth waiting for, and both addresses are named', () => {
      const servers = [match(), observation({ ...second, ...older })]
      const { verdict, findings } = diagnosed(observations({ servers, staleGlue: [stale] }))
      expect(verdict).toBe('fix')
      expect(findings).toMatchObject([{ code: 'partial_propagation', severity: 'error' }])
      expect(findings[0]?.fix).toContain(
        'old address 192.0.2.2 for ns2.example.com, so change the glue (host record) at the registrar of example.com to 192.0.2.22',
      )
      expect(findings[0]?.evidence).not.toHaveProperty('seconds_left')
    })

    test('do not hide another server that lags behind', () => {
      const servers = [
        match({ soa: { ...SOA, serial: 42 } }),
        observation({ ...second, ...older }),
        observation({ ...third, ...older }),
      ]
      const { verdict, findings } = diagnosed(observations({ servers, staleGlue: [stale] }))
      expect(verdict).toBe('wait')
      expect(findings[0]?.fix).toMatch(/at the registrar of example\.com to 192\.0\.2\.22\. Wait until/)
    })
  })

  test('include the mistake in a value that is almost right', () => {
    const quoted = { ...second, outcome: 'mismatch' as const, values: [txt(`"${EXPECTED}"`)] }
    const [finding] = diagnosed(observations({ servers: [match(), observation(quoted)] })).findings
    expect(finding?.message).toContain(`, which has ""${EXPECTED}"" [quoted]`)
  })

  test('are not worth waiting for if one of them keeps a mistake in the value', () => {
    const wrong = (serial: number) =>
      observation({
        ...second,
        outcome: 'mismatch',
        values: [txt(`"${EXPECTED}"`)],
        soa: { ...SOA, serial },
      })
    const third = match({ host: 'ns3.example.com', server: { address: '192.0.2.3', port: 53 } })
    const same = diagnosed(observations({ servers: [match(), wrong(SOA.serial), third] }))
    expect(same).toMatchObject({ verdict: 'fix', findings: [{ code: 'partial_propagation' }] })
    expect(same.findings[0]?.fix).toBe(
      `Waiting won't help: correct the value at ns2.example.com: ${EXPECTED}`,
    )
    // A copy that lags behind will get the corrected value.
    const newer = match({ soa: { ...SOA, serial: SOA.serial + 1 } })
    expect(diagnosed(observations({ servers: [newer, wrong(SOA.serial)] })).verdict).toBe('wait')
  })
})

test('the message about a CNAME at the top of a zone says that it is not allowed there', () => {
  for (const end of ['absent', 'nxdomain', 'loop'] as const) {
    const [finding] = diagnosed(observations(alias(end))).findings
    expect(finding?.message).toContain("A CNAME isn't allowed at the top of a zone")
    const below = diagnosed(observations({ ...alias(end), name: 'app.example.com' })).findings
    expect(below[0]?.message).not.toContain('top of a zone')
  }
})

describe('without an expected value, an alias', () => {
  const findingOf = (end: Parameters<typeof alias>[0], more: Partial<Observations> = {}) => {
    const seen = { ...observations({ ...alias(end), ...more }), expected: null, probes: undefined }
    const [finding] = diagnose(seen).findings
    return finding === undefined ? undefined : findingJson(finding, null)
  }
  const below = { name: 'app.example.com' }

  test.each([
    ['nxdomain', 'cname_dangling'],
    ['loop', 'cname_loop'],
  ] as const)('that can never work (%s) is the same error as with one', (end, code) => {
    const finding = findingOf(end, below)
    expect(finding).toMatchObject({ code, severity: 'error' })
    expect(finding?.fix).toMatch(
      /^Remove the CNAME at app\.example\.com .*add TXT records at app\.example\.com$/,
    )
    expect(finding?.fix).not.toContain('web.example.com')
  })

  test('at the top of a zone is an error', () => {
    const finding = findingOf('txt')
    expect(finding).toMatchObject({ code: 'cname_at_name', severity: 'error' })
    expect(finding?.message).toContain("A CNAME isn't allowed at the top of a zone")
    expect(finding?.fix).toContain('Replace the CNAME at example.com')
  })

  test('is a remark anywhere else, with the advice that fits whoever runs the target', () => {
    expect(findingOf('absent', below)).toMatchObject({
      code: 'cname_at_name',
      severity: 'info',
      fix: 'Either add TXT records at web.example.com, or replace the CNAME at app.example.com with A/AAAA records and add TXT records at app.example.com',
    })
    const elsewhere = {
      targets: ['app.example.net'],
      end: 'absent',
      values: [],
      ttl: 300,
      negativeTtl: undefined,
    } as const
    expect(findingOf('absent', { ...below, alias: elsewhere })?.fix).toContain(
      'add TXT records at app.example.net, if that name is yours, or',
    )
  })

  test('whose target could not be queried leaves open what is there', () => {
    expect(findingOf('unknown', below)?.message).toContain("it's unknown which TXT records are there")
  })
})

test('the fix for a missing record at the name of a registry is to check another domain', () => {
  const registry = { name: 'co.uk', zone: 'co.uk', servers: [observation()] }
  const { findings } = diagnosed(observations(registry))
  expect(findings.map((finding) => finding.code)).toEqual(['domain_not_found'])
  expect(findings[0]?.message).toContain('only the registry can change records there')
  expect(findings[0]?.fix).toBe('Check your registered domain instead, such as example.co.uk')
})

describe('silence is not an answer:', () => {
  test('an alias that could not be followed is not "missing"', () => {
    const { verdict, findings } = diagnosed(
      observations({
        ...alias('unknown'),
        servers: [observation({ aliases: ['web.example.com'], outcome: 'timeout' })],
      }),
    )
    expect(verdict).toBe('unknown')
    expect(findings).toMatchObject([{ code: 'cname_at_name', evidence: { end: 'unknown' } }])
  })

  test('if no IPv6 address answers, this machine may be the cause', () => {
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

  test('an IPv6 address without a route is not a finding', () => {
    const unchecked = match({ server: { address: '2001:db8::1', port: 53 }, outcome: 'not_checked' })
    expect(diagnosed(observations({ servers: [match(), unchecked] }))).toEqual({
      verdict: 'ready',
      findings: [],
    })
  })

  test('name servers whose addresses could not be looked up are not "no_nameservers"', () => {
    const unknown = observation({ server: undefined, outcome: 'timeout', rcode: undefined })
    expect(diagnosed(observations({ servers: [unknown] }))).toMatchObject({
      verdict: 'unknown',
      findings: [{ code: 'nameserver_unreachable' }],
    })
  })
})

describe('the cause', () => {
  const registry = { address: '192.0.2.53', port: 53 }
  const refused = observation({
    outcome: 'refused',
    rcode: 'REFUSED',
    authoritative: false,
    recursionAvailable: true,
  })

  test('is interception if a resolver answers instead of all servers, including the registry’s', () => {
    const { verdict, findings } = diagnosed(observations({ servers: [refused], recursionAbove: [registry] }))
    expect({ verdict, codes: findings.map(({ code }) => code) }).toEqual({
      verdict: 'unknown',
      codes: ['dns_intercepted'],
    })
  })

  test('is interception of IPv4 only, which is a warning if the record is seen over IPv6', () => {
    const v6 = { server: { address: '2001:db8::1', port: 53 } }
    const seenAbove = (address: string) => ({ recursionAbove: [{ address, port: 53 }] })
    expect(
      diagnosed(observations({ servers: [refused, match(v6)], ...seenAbove('192.0.2.53') })),
    ).toMatchObject({ verdict: 'ready_with_warning', findings: [{ code: 'dns_intercepted' }] })
    expect(
      diagnosed(observations({ servers: [refused, match(v6)], ...seenAbove('2001:db8::53') })),
    ).toMatchObject({ verdict: 'ready_with_warning', findings: [{ code: 'lame_nameserver' }] })
    // An answer with authority over IPv4 shows that it isn't redirected.
    expect(
      diagnosed(observations({ servers: [refused, match(second)], ...seenAbove('192.0.2.53') })),
    ).toMatchObject({ verdict: 'ready_with_warning', findings: [{ code: 'lame_nameserver' }] })
  })

  test('is a lame server if a resolver answers instead of this server only', () => {
    const { verdict, findings } = diagnosed(observations({ servers: [refused], recursionAbove: [] }))
    expect({ verdict, codes: findings.map(({ code }) => code) }).toEqual({
      verdict: 'fix',
      codes: ['lame_nameserver'],
    })
  })

  test.each([
    ['the zone’s data, or a referral to the root', 'NOERROR'],
    ['that the name does not exist', 'NXDOMAIN'],
  ])('is a lame server if it answers like a resolver with %s', (_what, rcode) => {
    const recursive = { ...refused, outcome: 'lame' as const, rcode }
    const parent = { zone: 'com', hosts: ['ns1.example.com'] }
    expect(
      diagnosed(observations({ servers: [observation(recursive)], parent, recursionAbove: [] })),
    ).toMatchObject({ verdict: 'fix', findings: [{ code: 'lame_nameserver' }] })
    expect(
      diagnosed(observations({ servers: [observation(recursive)], parent, recursionAbove: [registry] })),
    ).toMatchObject({ verdict: 'unknown', findings: [{ code: 'dns_intercepted' }] })
  })

  test('is not the resolver if the server drops its queries', () => {
    const { findings } = diagnosed(
      observations({
        servers: [match({ dropped: 'udp' })],
        resolvers: [resolver({ outcome: 'timeout', rcode: undefined })],
      }),
    )
    expect(findings).toMatchObject([{ code: 'udp_dropped', severity: 'error' }])
  })

  test('is only a warning if a server drops queries but the resolver gets the record', () => {
    const { verdict, findings } = diagnosed(
      observations({ servers: [match({ dropped: 'edns' })], resolvers: [resolver({ outcome: 'match' })] }),
    )
    expect(verdict).toBe('ready_with_warning')
    // It may be this network that drops them.
    expect(plainText(findings[0]?.fix ?? '')).toMatch(/^Check from another network first: /)
  })
})

test('an IP address entered as a name server is explained', () => {
  const host = { host: '192.0.2.1', server: undefined, outcome: 'unreachable' as const, rcode: undefined }
  const { findings } = diagnosed(observations({ servers: [observation(host)] }))
  expect(findings).toMatchObject([{ code: 'no_nameservers' }])
  expect(findings[0]?.message).toContain('given by its name, not by its IP address')
})

describe('a name server without the dot at the end of its NS record', () => {
  const appended = 'ns1.example.net.example.com'
  const none = { server: undefined, outcome: 'unreachable' as const, rcode: undefined, authoritative: false }
  const first = (host: string, more: Partial<Observations> = {}) =>
    diagnosed(observations({ servers: [observation({ ...none, host })], ...more })).findings[0]

  test('is explained if it is the only one', () => {
    expect(first(appended, { parent: { zone: 'com', hosts: [appended] } })).toMatchObject({
      code: 'no_nameservers',
      message: expect.stringContaining(
        'The dot at the end is missing in the NS records, so example.com was appended: ns1.example.net.example.com is most likely meant to be ns1.example.net',
      ),
      fix: 'Enter the name servers with a dot at the end (ns1.example.net.) at the registrar',
      evidence: { meant: { [appended]: 'ns1.example.net' } },
    })
  })

  test('is explained next to the one in the delegation, which works', () => {
    const { verdict, findings } = diagnosed(
      observations({
        servers: [match(), observation({ ...none, host: appended })],
        parent: { zone: 'com', hosts: ['ns1.example.com'] },
        childHosts: [appended],
      }),
    )
    expect(verdict).toBe('ready_with_warning')
    expect(findings).toMatchObject([
      { code: 'nameserver_unreachable', message: expect.stringContaining('The dot at the end is missing') },
      {
        code: 'parent_child_mismatch',
        fix: expect.stringContaining('(ns1.example.net.), and make both lists'),
      },
    ])
  })

  test.each(['ns1.example.com', 'ns1.dns-a.example.com', 'ns.com.example.com.example.org'])(
    'is not assumed of %s',
    (host) => {
      expect(first(host)?.message).not.toContain('dot at the end')
    },
  )
})

describe('a value entered as the host', () => {
  const at = (name: string, more: { values?: TxtValue[]; alias?: string }) => ({
    name,
    how: 'other' as const,
    values: [],
    alias: undefined,
    ...more,
  })
  const none = { wildcard: [], wildcardAlias: undefined, coversName: false }

  test.each([
    ['as a TXT record', at('prefix=token123.example.com', { values: [txt('x')] })],
    ['as a CNAME record', at('prefix=token123.example.com', { alias: 'verify.example.net' })],
    ['without its prefix', at('token123.example.com', { values: [txt('prefix')] })],
  ])('is recognized %s', (_how, place) => {
    const [finding] = diagnosed(
      observations({ servers: [observation()], probes: { ...none, misplaced: [place] } }),
    ).findings
    expect(finding).toMatchObject({ code: 'other_name', evidence: { found_at: place.name, host_field: '@' } })
    expect(finding?.message).toContain('The value was entered as the host')
  })

  test('is not assumed where a wildcard answers', () => {
    const place = at('prefix=token123.example.com', { alias: 'web.example.com' })
    const wildcard = { name: '*.example.com', how: 'wildcard' as const, values: [], alias: 'web.example.com' }
    const [finding] = diagnosed(
      observations({ servers: [observation()], probes: { ...none, misplaced: [wildcard, place] } }),
    ).findings
    expect(finding?.code).toBe('missing')
  })
})

test('a prefix entered as the host, with the rest as the value, is recognized', () => {
  const probes = recordAt('prefix.example.com', { values: [txt('token123')] })
  const [finding] = diagnosed(observations({ servers: [observation()], probes })).findings
  expect(finding).toMatchObject({
    code: 'other_name',
    fix: 'Add a TXT record in the zone example.com: host @, value prefix=token123',
  })
})

describe('slow servers', () => {
  const failing = resolver({ outcome: 'timeout', rcode: undefined })
  const adviceAt = (...times: number[]) =>
    diagnosed(observations({ servers: times.map((ms) => match({ ms })), resolvers: [failing] })).findings[0]

  test('explain why a resolver has no answer yet', () => {
    expect(adviceAt(1300, 1400)?.message).toContain('take 1.3 seconds or more to answer')
    expect(adviceAt(1300, 1400)?.fix).not.toContain('repaired')
  })

  test('explain nothing if one of them is fast', () => {
    expect(adviceAt(1300, 20)?.fix).toContain('repaired')
  })
})

describe('a resolver without the record', () => {
  const current = { soa: SOA, nsSet: undefined, steadyTtl: false }
  const lacking = (zoneView: ResolverObservation['zoneView'], more: Partial<ResolverObservation> = {}) =>
    diagnosed(
      observations({
        childHosts: ['ns1.example.com'],
        resolvers: [resolver({ outcome: 'absent', negativeTtl: 900, zoneView, ...more })],
      }),
    )

  test('has cached the absence if its TTL is counted down', () => {
    const { verdict, findings } = lacking(current)
    expect(verdict).toBe('wait')
    expect(findings).toMatchObject([{ code: 'cached_absence', evidence: { seconds_left: 900 } }])
  })

  test.each([
    ['another primary server in the SOA record', { ...current, soa: { ...SOA, primary: 'dc1.example.com' } }],
    ['a TTL that stays the same', { ...current, steadyTtl: true }],
    [
      'name servers in a private network',
      { ...current, nsSet: { hosts: ['dc1.example.com'], ttl: 3600, isPrivate: true } },
    ],
  ])('uses split DNS if there is %s', (_what, zoneView) => {
    const { verdict, findings } = lacking(zoneView)
    expect(verdict).toBe('ready_with_warning')
    expect(findings).toMatchObject([{ code: 'split_dns' }])
    expect(findings[0]?.fix).not.toMatch(/^Wait/)
  })

  test('uses the previous name servers as long as their NS set is cached', () => {
    const zoneView = { ...current, nsSet: { hosts: ['ns.old.net'], ttl: 80_000, isPrivate: false } }
    const { verdict, findings } = lacking(zoneView)
    expect(verdict).toBe('wait')
    expect(findings).toMatchObject([{ code: 'stale_delegation', evidence: { seconds_left: 80_000 } }])
  })

  test.each([
    ['absent', 'returns', SOA],
    ['absent', 'does not return', undefined],
    ['nxdomain', 'returns', SOA],
    ['nxdomain', 'does not return', undefined],
  ] as const)(
    'is filtered if it answers %s without an SOA record and %s the zone’s',
    (outcome, _title, soa) => {
      const { verdict, findings } = lacking({ ...current, soa }, { outcome, negativeTtl: undefined })
      expect(verdict).toBe('ready_with_warning')
      expect(findings).toMatchObject([{ code: 'txt_filtered' }])
      expect(findings[0]?.evidence).not.toHaveProperty('seconds_left')
    },
  )

  test('has cached an old alias for as long as its TTL', () => {
    const old = {
      aliases: ['old.example.net'],
      aliasEnd: 'unknown' as const,
      aliasTtl: 77,
    }
    // Whether the absence at its end may be cached as well doesn't matter.
    for (const negativeTtl of [undefined, 60]) {
      const { verdict, findings } = lacking(current, { ...old, negativeTtl })
      expect(verdict).toBe('wait')
      expect(findings).toMatchObject([{ code: 'cached_absence', evidence: { seconds_left: 77 } }])
      expect(findings[0]?.message).toContain('still has the old CNAME (to old.example.net) cached')
    }
    const atTarget = { ...old, outcome: 'mismatch' as const, aliasEnd: 'txt' as const, ttl: 300 }
    expect(lacking(current, { ...atTarget, values: [txt('v=spf1 -all')] }).findings).toMatchObject([
      { code: 'cached_old_value', evidence: { seconds_left: 77 } },
    ])
  })

  test('is explained by a CNAME next to the record, which waiting does not remove', () => {
    const follows = resolver({
      outcome: 'absent',
      values: [],
      aliases: ['web.example.com'],
      aliasTtl: 300,
      zoneView: current,
    })
    const { verdict, findings } = diagnosed(
      observations({
        name: 'app.example.com',
        servers: [match({ cnameBeside: 'web.example.com' })],
        resolvers: [follows],
      }),
    )
    expect(verdict).toBe('fix')
    expect(findings).toMatchObject([
      {
        code: 'cname_at_name',
        severity: 'error',
        fix: 'Remove the CNAME at app.example.com, or replace it with A/AAAA records',
        evidence: { target: 'web.example.com', servers: ['ns1.example.com'] },
      },
    ])
  })

  test('that counts down from an absurd TTL is waited for at most as long as caches keep anything', () => {
    const { findings } = lacking(current, { negativeTtl: 2_147_483_647 })
    expect(findings[0]?.fix).toBe("Wait up to 7 days; there's nothing to change")
    expect(findings[0]?.message).toContain('that there was none, for up to 7 days')
  })

  test('may be behind a filter that makes up an SOA record, if the TTL stays the same', () => {
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
    ['no-key', /says that the zone is signed, but it isn't/, /Remove the DS record/],
    ['wrong-ds', /matches no key/, /Replace the DS record/],
    ['expired', /expired on 2023-11-14/, /sign the zone example\.com again/],
  ] as const)('%s has a message and a fix', (state, message, fix) => {
    const { verdict, findings } = diagnosed(observations({ dnssec: dnssec(state) }))
    expect(verdict).toBe('fix')
    expect(findings).toMatchObject([{ code: 'dnssec_bogus' }])
    expect(findings[0]?.message).toMatch(message)
    expect(findings[0]?.fix).toMatch(fix)
  })

  test('a wrong clock here is a warning, unless a resolver rejects the zone', () => {
    const wrongClock = { ...dnssec('expired'), wrongClock: true as const }
    const { verdict, findings } = diagnosed(observations({ dnssec: wrongClock }))
    expect(verdict).toBe('ready_with_warning')
    expect(findings).toMatchObject([{ code: 'dnssec_bogus', evidence: { reason: 'local_clock' } }])
    const rejecting = resolver({ outcome: 'servfail', withCheckingDisabled: match() })
    expect(diagnosed(observations({ dnssec: wrongClock, resolvers: [rejecting] })).verdict).toBe('fix')
  })

  test('expired signatures at one server are a warning that names it', () => {
    const invalid = [
      { server: { address: '192.0.2.2', port: 53 }, state: 'expired' as const, date: 1_700_000_000 },
    ]
    const { verdict, findings } = diagnosed(
      observations({ servers: [match(), match(second)], dnssec: { ...dnssec('ok'), invalid } }),
    )
    expect(verdict).toBe('ready_with_warning')
    expect(findings).toMatchObject([
      { code: 'dnssec_bogus', severity: 'warning', evidence: { reason: 'signature_expired' } },
    ])
    expect(findings[0]?.message).toContain('at ns2.example.com (192.0.2.2) expired on 2023-11-14')
  })

  test('a key that one of two providers does not publish is named with both servers', () => {
    const missing = { keyTag: 12345, at: match().server ?? second.server }
    const invalid = [{ server: second.server, state: 'unshared-keys' as const, date: undefined, missing }]
    const world = { servers: [match(), match(second)], dnssec: { ...dnssec('ok'), invalid } }
    const { verdict, findings } = diagnosed(observations(world))
    expect(verdict).toBe('ready_with_warning')
    const unshared = [{ key_tag: 12345, signed_by: '192.0.2.2', missing_at: '192.0.2.1' }]
    expect(findings).toMatchObject([
      { code: 'dnssec_bogus', evidence: { reason: 'unshared_keys', unshared_keys: unshared } },
    ])
    expect(findings[0]?.message).toContain(
      "key 12345 of ns2.example.com (192.0.2.2) isn't at ns1.example.com (192.0.2.1)",
    )
    expect(findings[0]?.fix).toContain('publish the keys of the others as well (RFC 8901 section 2.1)')
  })

  test('keys at one server that no DS record covers are a warning that names it, or an error if a resolver fails', () => {
    const invalid = [{ server: second.server, state: 'other-keys' as const, date: undefined }]
    const world = { servers: [match(), match(second)], dnssec: { ...dnssec('ok'), invalid } }
    const { verdict, findings } = diagnosed(observations(world))
    expect(verdict).toBe('ready_with_warning')
    expect(findings).toMatchObject([{ code: 'dnssec_bogus', evidence: { reason: 'other_keys' } }])
    expect(findings[0]?.message).toContain('at ns2.example.com (192.0.2.2) are made with keys that neither')
    const rejecting = resolver({ outcome: 'servfail', withCheckingDisabled: match() })
    expect(diagnosed(observations({ ...world, resolvers: [rejecting] })).verdict).toBe('fix')
  })

  test('a missing signature of the TXT records alone is named, and the DS record is right', () => {
    const { verdict, findings } = diagnosed(
      observations({ dnssec: { ...dnssec('ok'), unsignedTxt: true as const } }),
    )
    expect(verdict).toBe('fix')
    expect(findings).toMatchObject([{ code: 'dnssec_bogus', evidence: { reason: 'signature_missing' } }])
    expect(findings[0]?.message).toContain('The TXT records at example.com have no signature')
    expect(findings[0]?.fix).toMatch(
      /^Have the DNS provider sign the zone example\.com again; its DS record is right/,
    )
  })

  test('a resolver that rejects a zone whose DS record matches its key does not cast doubt on the DS record', () => {
    const rejecting = resolver({ outcome: 'servfail', withCheckingDisabled: match() })
    const { findings } = diagnosed(observations({ dnssec: dnssec('ok'), resolvers: [rejecting] }))
    expect(findings).toMatchObject([{ code: 'dnssec_bogus', evidence: { reason: 'rejected' } }])
    expect(findings[0]?.message).toContain('At least one DNSSEC signature of example.com is invalid')
    expect(findings[0]?.fix).not.toContain('remove the DS record')
  })

  test('a resolver that returns the record is mentioned', () => {
    const { findings } = diagnosed(
      observations({ dnssec: dnssec('wrong-ds'), resolvers: [resolver({ outcome: 'match' })] }),
    )
    expect(findings[0]?.message).toMatch(
      /^The record is there, and 9\.9\.9\.9 returns it, but validating resolvers may reject it/,
    )
  })

  test('an extended error is shown if nothing else explains the failure', () => {
    const rejecting = resolver({
      outcome: 'servfail',
      rcode: 'SERVFAIL',
      withCheckingDisabled: match(),
      extendedError: { code: 7, text: '' },
    })
    const { findings } = diagnosed(observations({ resolvers: [rejecting] }))
    expect(findings).toMatchObject([{ code: 'dnssec_bogus', evidence: { reason: 'rejected' } }])
    expect(findings[0]?.message).toContain('a signature has expired')
  })

  test('a signed zone that no resolver has validated is a remark', () => {
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

test('the fix in a company’s zone that is open to everyone is to check the registration first', () => {
  const { findings } = diagnosed(
    observations({ name: 'nobody.uk.com', zone: 'uk.com', servers: [observation({ outcome: 'nxdomain' })] }),
  )
  expect(findings[0]).toMatchObject({
    code: 'missing',
    fix: expect.stringMatching(/^Check that nobody\.uk\.com is registered/),
  })
})

test.each([EXPECTED, null])(
  'a registry whose servers only refuse is never blamed, nor is its domain: %s',
  (expected) => {
    const refused = observation({ outcome: 'refused', rcode: 'REFUSED', authoritative: false })
    const { verdict, findings } = diagnose({ ...observations({ servers: [refused], zone: 'com' }), expected })
    expect(verdict).toBe('unknown')
    expect(findings.map(({ code }) => code)).toEqual(['dns_intercepted'])
  },
)

test('a token copied from a field that hides it is called that', () => {
  const { findings } = diagnosed(observations({ servers: [seen('prefix=••••••••')] }))
  expect(findings[0]).toMatchObject({
    code: 'placeholder',
    message: expect.stringContaining('copied from a field that hides it'),
  })
})

describe('if no name server answers', () => {
  const silent = observation({ outcome: 'timeout', rcode: undefined, authoritative: false })
  const first = (more: Partial<Observations>) =>
    diagnosed(observations({ servers: [silent], ...more })).findings[0]

  test('the servers of the zone above show whether this network lets DNS out', () => {
    expect(first({ parent: { zone: 'com', hosts: ['ns1.example.com'] } })).toMatchObject({
      code: 'nameserver_unreachable',
      message: expect.stringContaining(
        "The servers of com do, so this network doesn't block all DNS queries",
      ),
      fix: expect.stringContaining('Tell the DNS provider'),
    })
  })

  test('nor a server of the registry, this network probably blocks DNS', () => {
    expect(first({ registryUnseen: true })).toMatchObject({
      message: expect.stringContaining("couldn't be asked either, so this network probably blocks DNS"),
      fix: expect.stringContaining('outbound port 53'),
    })
  })

  test('because this machine does not allow it, a firewall is named, not a missing route', () => {
    const blocked = observation({ ...silent, outcome: 'not_checked', unsent: 'blocked' })
    const finding = first({ servers: [blocked] })
    expect(finding?.message).toContain("isn't allowed to send DNS queries to the name servers of example.com")
    expect(finding?.message).not.toContain('route')
  })
})
