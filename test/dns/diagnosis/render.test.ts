import { expect, test } from 'vitest'
import { renderMarkdown } from '../../../src/dns/diagnosis/markdown.ts'
import { renderReport } from '../../../src/dns/diagnosis/render.ts'
import type { CheckReport } from '../../../src/dns/diagnosis/report.ts'
import { text } from '../../../src/dns/diagnosis/text.ts'
import { renderHtml } from '../../../src/dns/html-report/report-body.ts'
import { PLAIN_PALETTE } from '../../../src/terminal/color.ts'

const server = { outcome: 'mismatch' as const, values: ['"a=b"'], ttl: 300, ms: 2 }
const wrong: CheckReport = {
  name: 'example.com',
  expected: 'a=b',
  verdict: 'fix',
  ready: false,
  retry_after_seconds: null,
  zone: 'example.com',
  nameservers: ['192.0.2.1', '192.0.2.2'].map((address) => ({
    ...server,
    host: 'ns.example.com',
    address,
    authoritative: true,
    serial: 1,
  })),
  resolvers: [{ ...server, address: '192.0.2.53' }],
  findings: [
    {
      code: 'quoted',
      severity: 'error',
      message: text`it has quotation marks`,
      fix: text`remove them`,
      seen: ['"a=b"'],
      details: {},
    },
  ],
}

test('red is only for the verdict, and for the cause and what differs in the value', () => {
  const palette = { ...PLAIN_PALETTE, bad: (piece: string) => `<${piece}>` }
  const red = renderReport(wrong, { palette, width: 120 }).match(/<[^>]+>/g)
  expect(red).toEqual(['<Needs fixing>', '<✗ >', '<">', '<">'])
})

test.each([
  ['wait', 'Try again in 2 hours'],
  ['fix', 'Caches may keep the old state for up to 2 hours'],
] as const)('every format says the same about the time to wait with the verdict %s', (verdict, said) => {
  const report = { ...wrong, verdict, retry_after_seconds: 7200 }
  const context = { at: 0, version: '1.2.3', resolvers: [], command: 'mailclaim' }
  for (const rendered of [
    renderReport(report, { palette: PLAIN_PALETTE, width: 120 }),
    renderMarkdown(report, context),
    renderHtml(report, context),
  ]) {
    expect(rendered).toContain(said)
    expect(rendered.match(/2 hours/g)).toHaveLength(1)
  }
})
