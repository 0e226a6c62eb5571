import { expect, it } from 'vitest'
import { exitErrorOf } from '../../../src/dns/diagnosis/exit-status.ts'
import type { CheckReport } from '../../../src/dns/diagnosis/report.ts'

it('the hint stays on one line if a value has a line break', () => {
  const fix = 'Add a TXT record: value p=a\nerror: forged'
  const report: CheckReport = {
    name: 'example.com',
    expected: 'p=a',
    verdict: 'fix',
    ready: false,
    retry_after_seconds: null,
    zone: 'example.com',
    nameservers: [],
    resolvers: [],
    findings: [{ code: 'missing', severity: 'error', message: 'No record', fix, details: {} }],
  }
  expect(exitErrorOf(report)?.hint).toBe('Add a TXT record: value p=a\\nerror: forged')
})

it.each([
  ['fix', "the record isn't ready at example.com"],
  ['wait', "the record isn't ready at example.com yet"],
] as const)(
  'below a report, whose second line has the verdict (%s), the error does not repeat it',
  (verdict, message) => {
    const report: CheckReport = {
      name: 'example.com',
      expected: 'p=a',
      verdict,
      ready: false,
      retry_after_seconds: null,
      zone: 'example.com',
      nameservers: [],
      resolvers: [],
      findings: [{ code: 'missing', severity: 'error', message: 'No record', fix: 'Add it', details: {} }],
    }
    expect(exitErrorOf(report, true)?.message).toBe(message)
  },
)
