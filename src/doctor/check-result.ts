import { CliError, Exit, type ExitCode } from '../errors.ts'

/**
 * Status of a check of `doctor`. `warning`: commands may still work; `problem`: commands that need the checked part fail;
 * `skipped`: the check doesn't apply or isn't possible.
 */
export type CheckStatus = 'ok' | 'warning' | 'problem' | 'skipped'

/** Result of one check of `doctor`. */
export interface CheckResult {
  readonly status: CheckStatus
  readonly message: string
  /** Remedy for the user to apply; null if none is needed or known. */
  readonly remedy: string | null
  /** Exit code of other commands that meet this problem; 0 unless the status is `problem`. */
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

/** Converts the error of a check into a result with status `problem`. */
export function problemResult({ message, hint, exit }: CliError): CheckResult {
  return { status: 'problem', message, remedy: hint ?? null, exit }
}

/**
 * Creates the error that `doctor` ends with: it names the checks with a problem, and has the exit code of the first. Returns
 * undefined without a problem.
 *
 * @param areRemediesShown whether the remedies were printed; otherwise the first one becomes the error's hint
 */
export function createErrorIfProblems(
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
