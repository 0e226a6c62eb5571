import { describe, expect, test } from 'vitest'
import { renderMarkdown } from '../../src/dns/diagnosis/markdown.ts'
import { renderReport } from '../../src/dns/diagnosis/render.ts'
import { plainText } from '../../src/dns/diagnosis/text.ts'
import { PLAIN_PALETTE } from '../../src/terminal/color.ts'
import { AA, type Asked, type FakeReply } from './fake-dns.ts'
import { fakeInternet, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const soa = (mname: string, serial: number) =>
  ({
    type: 'SOA',
    name: 'example.com',
    ttl: 60,
    data: { mname, rname: 'h.test', serial, refresh: 7200, retry: 900, expire: 86_400, minimum: 60 },
  }) as const

/** Two name servers; what the second one answers for example.com is up to `odd`. */
const world = (odd: (asked: Asked) => FakeReply | undefined) =>
  fakeInternet(
    [
      { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
      {
        apex: 'example.com',
        servers: { 'ns1.example.com': ['192.0.2.2'], 'ns2.example.com': ['192.0.2.3'] },
        records: [txt('example.com', 'new=1'), txt('example.com', 'same=1')],
      },
    ],
    (asked) => (asked.server === '192.0.2.3' && asked.name === 'example.com' ? odd(asked) : undefined),
  )

const older =
  (mname: string, serial: number) =>
  ({ name, type }: Asked): FakeReply | undefined => {
    if (type === 'SOA') return { flags: AA, answers: [soa(mname, serial)] }
    return type === 'TXT' ? { flags: AA, answers: [txt(name, 'old=1'), txt(name, 'same=1')] } : undefined
  }

const look = async (odd: (asked: Asked) => FakeReply | undefined) =>
  (await timedCheck(world(odd), { expected: null })).report

describe('name servers with different TXT records, without an expected value', () => {
  test('are listed with what each has, newest version of the zone first, and no place to edit is named', async () => {
    const { findings } = await look(older('ns1.example.com', 3))
    expect(findings.map(({ code, severity }) => `${severity} ${code}`)).toEqual([
      'warning partial_propagation',
    ])
    expect(plainText(findings[0]?.message ?? '')).toBe(
      'The name servers of example.com have different TXT records at example.com: "new=1", "same=1" at ns1.example.com (192.0.2.2, serial 9); "old=1", "same=1" at ns2.example.com (192.0.2.3, serial 3)',
    )
    expect(findings[0]?.fix).toMatch(
      /^Wait until the other name servers have copied the zone: .* within 2 hours\./,
    )
  })

  test('do not copy the zone from each other if their SOA records name different primaries', async () => {
    const { findings } = await look(older('ns.other.example', 3))
    expect(findings[0]?.fix).toContain("don't copy the zone from each other")
  })

  test('are shown with a note above the values, in a terminal and in Markdown', async () => {
    const report = await look(older('ns1.example.com', 3))
    expect(renderReport(report, { palette: PLAIN_PALETTE, width: 100 })).toContain(
      'Not all name servers have these:\n  new=1',
    )
    const markdown = renderMarkdown(report, { at: 0, version: '1', resolvers: [] })
    expect(markdown).toContain('- **TXT records (not all name servers have these):** `new=1`')
  })

  test('include one that a stale glue record leads to', async () => {
    const internet = world(older('ns1.example.com', 3))
    const { report } = await timedCheck(
      (asked) =>
        asked.server === '192.0.2.2' && asked.name === 'ns2.example.com' && asked.type === 'A'
          ? { flags: AA, answers: [{ type: 'A', name: asked.name, ttl: 60, data: '192.0.2.2' }] }
          : internet(asked),
      { expected: null },
    )
    expect(report.findings[0]).toMatchObject({
      code: 'partial_propagation',
      details: { stale_glue: [{ host: 'ns2.example.com', glue: '192.0.2.3', own: ['192.0.2.2'] }] },
    })
    expect(report.findings[0]?.fix).toContain('at the registrar of example.com to 192.0.2.2')
  })

  test('are no finding if all have the same records', async () => {
    const report = await look(() => undefined)
    expect(report.findings.map(({ code }) => code)).toEqual(['wrong_provider_hint'])
    expect(renderReport(report, { palette: PLAIN_PALETTE, width: 100 })).not.toContain('Not all')
  })
})

test('nobody is named as the host of a zone if no name server answers for it', async () => {
  const { report } = await timedCheck(
    (asked) =>
      ['192.0.2.2', '192.0.2.3'].includes(asked.server) ? { flags: 5 } : world(() => undefined)(asked),
    { expected: null },
  )
  expect(report.findings.map(({ code }) => code)).toEqual(['lame_nameserver'])
})
