import { expect, it } from 'vitest'
import { isWorthVerifying } from '../../src/claims/precheck.ts'
import type { Finding } from '../../src/dns/diagnosis/finding.ts'
import type { Verdict } from '../../src/dns/diagnosis/report.ts'

const finding = (code: Finding['code']): Finding => ({
  code,
  severity: 'warning',
  message: '',
  fix: '',
  details: {},
})

it.each<{
  when: string
  verdict?: Verdict
  findings: Finding['code'][]
  isLongLag?: true
  expected: boolean
}>([
  { when: 'a local resolver has cached the absence', findings: ['cached_absence'], expected: true },
  { when: 'a local resolver has cached the old value', findings: ['cached_old_value'], expected: true },
  {
    when: 'a local resolver still queries the previous servers',
    findings: ['stale_delegation'],
    expected: true,
  },
  { when: 'some name servers lag', findings: ['partial_propagation'], expected: false },
  {
    when: 'some name servers lag and a resolver has cached the absence',
    findings: ['partial_propagation', 'cached_absence'],
    expected: false,
  },
  {
    when: 'some name servers still lag after a long wait',
    findings: ['partial_propagation'],
    isLongLag: true,
    expected: true,
  },
  {
    when: 'the record needs fixing, even after a long wait',
    verdict: 'fix',
    findings: ['quoted'],
    isLongLag: true,
    expected: false,
  },
])(
  'a claim is worth verifying when $when: $expected',
  ({ verdict = 'wait', findings, isLongLag, expected }) => {
    expect(isWorthVerifying({ verdict, findings: findings.map(finding) }, isLongLag === true)).toBe(expected)
  },
)
