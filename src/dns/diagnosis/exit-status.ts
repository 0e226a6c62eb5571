import { CliError, Exit } from '../../errors.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { VERDICT_LABELS } from './labels.ts'
import type { CheckReport } from './report.ts'

/**
 * How a command ends after this report: undefined when the record is ready. The report itself has been printed by then.
 * `record_not_visible` (exit 8) for what has to be fixed or waited for, `dns_unavailable` (exit 7) where DNS said nothing,
 * `invalid_name` (exit 2).
 *
 * @param told whether a person has just read the findings: then they are not said again.
 */
export function exitErrorOf(report: CheckReport, told = false): CliError | undefined {
  if (report.ready) return undefined
  const [first] = report.findings
  const message = told || first === undefined ? conclusion(report) : first.message
  // On one line: a value from DNS or from the service is quoted in it.
  const options = { hint: told || first === undefined ? undefined : sanitizeLine(first.fix) }
  if (first?.code === 'invalid_name') return new CliError('invalid_name', Exit.usage, message, options)
  if (report.verdict === 'unknown') return new CliError('dns_unavailable', Exit.unavailable, message, options)
  return new CliError('record_not_visible', Exit.notYet, message, options)
}

function conclusion({ name, verdict }: CheckReport): string {
  if (verdict === 'unknown') return `can't tell whether the record is ready at ${name}: couldn't query DNS`
  if (verdict === 'wait') return `the record at ${name} isn't visible everywhere yet`
  return `the record isn't ready at ${name}: ${VERDICT_LABELS[verdict]}`
}
