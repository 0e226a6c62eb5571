import { CliError, Exit } from '../errors.ts'
import type { CheckReport } from './report.ts'

/**
 * How a command ends after this report: undefined when the record is ready. The report itself has been printed by then.
 * `record_not_visible` (exit 8) for what has to be fixed or waited for, `dns_unavailable` (exit 7) where DNS said nothing,
 * `invalid_name` (exit 2).
 */
export function failureOf(report: CheckReport): CliError | undefined {
  if (report.ready) return undefined
  const [first] = report.findings
  const message = first?.message ?? `the record is not visible at ${report.name}`
  const options = { hint: first?.fix }
  if (first?.code === 'invalid_name') return new CliError('invalid_name', Exit.usage, message, options)
  if (report.verdict === 'unknown') return new CliError('dns_unavailable', Exit.unavailable, message, options)
  return new CliError('record_not_visible', Exit.notYet, message, options)
}
