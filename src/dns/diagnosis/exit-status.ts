import { CliError, Exit } from '../../errors.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { hasLooked } from './labels.ts'
import type { CheckReport } from './report.ts'
import { plainText } from './text.ts'

/**
 * The error with which a command ends after this report; undefined if the record is ready, or if none was expected and the
 * name servers answered. `record_not_visible` (exit 8) if
 * something needs fixing or waiting for, `dns_unavailable` (exit 7) if DNS couldn't be queried, `invalid_name` (exit 2).
 *
 * @param findingsShown whether the findings have just been printed, so the error doesn't repeat them.
 */
export function exitErrorOf(report: CheckReport, findingsShown = false): CliError | undefined {
  if (report.ready || hasLooked(report)) return undefined
  const [first] = report.findings
  const message = findingsShown || first === undefined ? summary(report) : plainText(first.message)
  // The fix may quote a value from DNS or from the service.
  const options = {
    hint: findingsShown || first === undefined ? undefined : sanitizeLine(plainText(first.fix)),
  }
  if (first?.code === 'invalid_name') return new CliError('invalid_name', Exit.usage, message, options)
  if (report.verdict === 'unknown') return new CliError('dns_unavailable', Exit.unavailable, message, options)
  return new CliError('record_not_visible', Exit.notYet, message, options)
}

function summary({ name, expected, verdict }: CheckReport): string {
  if (expected === null)
    return `couldn't see the TXT records of ${name}${verdict === 'unknown' ? ": couldn't query DNS" : ''}`
  if (verdict === 'unknown') return `can't tell whether the record is ready at ${name}: couldn't query DNS`
  return `the record isn't ready at ${name}${verdict === 'wait' ? ' yet' : ''}`
}
