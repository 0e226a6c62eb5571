import { CliError, Exit, type ExitCode } from '../errors.ts'

/** Status of a check; `skipped` if it doesn't apply, or can't run because of a problem that another check reports. */
export type CheckStatus = 'ok' | 'warning' | 'problem' | 'skipped'

/** Result of one check. A `CliError` that a check throws becomes a finding with status `problem`. */
export interface CheckResult {
  readonly status: CheckStatus
  readonly message: string
  /** Remedy that the user can apply; null if nothing needs to be done, or nothing is known to help. */
  readonly remedy: string | null
  /** Exit code of other commands that run into this problem; 0 unless the status is `problem`. */
  readonly exit: ExitCode
}

export interface NamedCheckResult extends CheckResult {
  readonly check: string
}

export function okResult(message: string): CheckResult {
  return { status: 'ok', message, remedy: null, exit: Exit.done }
}

export function skippedResult(message: string): CheckResult {
  return { status: 'skipped', message, remedy: null, exit: Exit.done }
}

export function warningResult(message: string, remedy: string | undefined): CheckResult {
  return { status: 'warning', message, remedy: remedy ?? null, exit: Exit.done }
}

/** Returns a finding for the error that other commands would fail with. */
export function problemResult({ message, hint, exit }: CliError): CheckResult {
  return { status: 'problem', message, remedy: hint ?? null, exit }
}

/**
 * Returns the error that `doctor` ends with, with the exit code of the first problem; undefined if there is no problem.
 *
 * @param areRemediesShown whether the remedies are already on the screen: then the error has no hint
 */
export function summarizeProblems(
  results: readonly NamedCheckResult[],
  areRemediesShown: boolean,
): CliError | undefined {
  const problems = results.filter(({ status }) => status === 'problem')
  const [first] = problems
  if (first === undefined) return undefined
  const names = problems.map(({ check }) => check).join(', ')
  return new CliError('problems_found', `problems found: ${names}`, {
    exit: first.exit,
    hint: areRemediesShown ? undefined : (first.remedy ?? undefined),
  })
}
