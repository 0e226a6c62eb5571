import { difference, invisibleCharacters } from './characters.ts'
import type { Finding } from './finding.ts'
import type { CheckReport, CheckReportJson, FindingJson } from './report.ts'
import { plainText } from './text.ts'

/** The report for scripts. */
export function reportJson({ path: _, findings, ...report }: CheckReport): CheckReportJson {
  return { ...report, findings: findings.map((finding) => findingJson(finding, report.expected)) }
}

/** @param expected the whole TXT value, to compare with what was seen. */
export function findingJson(finding: Finding, expected: string | null): FindingJson {
  const { code, severity, message, fix, seen, stored, secondsLeft, details } = finding
  const wanted = finding.expected ?? expected
  const evidence = {
    ...(seen === undefined || wanted === null ? {} : comparison(wanted, seen, stored)),
    ...details,
    ...(secondsLeft === undefined ? {} : { seconds_left: secondsLeft }),
  }
  return { code, severity, message: plainText(message), fix: plainText(fix), evidence }
}

/** What was expected, what was seen, and where they differ, in text and in bytes. */
function comparison(expected: string, seen: readonly string[], stored: Uint8Array | undefined) {
  const [first = ''] = seen
  const parts = difference(expected, first)
  const bytes = Buffer.from(stored ?? first)
  const invisible = invisibleCharacters(first, bytes)
  return {
    expected,
    seen: seen.length === 1 ? first : [...seen],
    difference: {
      at: Array.from(parts.start).length + 1,
      expected: parts.expected,
      seen: parts.seen,
    },
    seen_hex: bytes.toString('hex'),
    ...(invisible.length > 0 ? { invisible } : {}),
  }
}
