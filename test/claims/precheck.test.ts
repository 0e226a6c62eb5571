import { expect, it } from 'vitest'
import { isWorthAsking } from '../../src/claims/precheck.ts'
import type { Finding } from '../../src/dns/diagnosis/finding.ts'
import type { Verdict } from '../../src/dns/diagnosis/report.ts'

const finding = (code: Finding['code']): Finding => ({
  code,
  severity: 'warning',
  message: '',
  fix: '',
  details: {},
})

it.each<[string, Verdict, Finding['code'][], boolean, boolean]>([
  ['a resolver here has cached that there was none', 'wait', ['cached_absence'], false, true],
  ['a resolver here has the old value cached', 'wait', ['cached_old_value'], false, true],
  ['a resolver here asks the servers from before a move', 'wait', ['stale_delegation'], false, true],
  ['some name servers lag', 'wait', ['partial_propagation'], false, false],
  [
    'some name servers lag, and a resolver has cached an absence',
    'wait',
    ['partial_propagation', 'cached_absence'],
    false,
    false,
  ],
  ['some name servers still lag after a long wait', 'wait', ['partial_propagation'], true, true],
  ['a mistake has to be fixed, however long ago it was made', 'fix', ['quoted'], true, false],
])(
  'asks the service where %s: %s with %j, waited long %s: %s',
  (_what, verdict, codes, isLongSince, asks) => {
    expect(isWorthAsking({ verdict, findings: codes.map(finding) }, isLongSince)).toBe(asks)
  },
)
