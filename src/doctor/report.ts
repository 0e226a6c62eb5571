import { CliError, Exit, type ExitCode } from '../errors.ts'

/** `skipped`: the check couldn't run, for a reason that another result gives, or doesn't apply. */
export type Status = 'ok' | 'warning' | 'problem' | 'skipped'

/** The result of one check. */
export interface Result {
  readonly check: string
  readonly status: Status
  readonly message: string
  /** What to do about it; null if there is nothing to do. */
  readonly remedy: string | null
}

/** A result with the exit code of a command that has this problem. */
export interface Diagnosis extends Result {
  readonly exit: ExitCode
}

export function ok(check: string, message: string): Diagnosis {
  return { check, status: 'ok', message, remedy: null, exit: Exit.done }
}

export function skipped(check: string, message: string): Diagnosis {
  return { check, status: 'skipped', message, remedy: null, exit: Exit.done }
}

export function warning(check: string, message: string, remedy: string): Diagnosis {
  return { check, status: 'warning', message, remedy, exit: Exit.done }
}

/** @param error the error that other commands would end with */
export function problem(check: string, error: CliError): Diagnosis {
  return { check, status: 'problem', message: error.message, remedy: error.hint ?? null, exit: error.exit }
}

/**
 * The error of the command, undefined if there is no problem; the first problem decides the exit code.
 *
 * @param areShown whether people have just read the remedies
 */
export function problemsError(diagnoses: readonly Diagnosis[], areShown: boolean): CliError | undefined {
  const problems = diagnoses.filter(({ status }) => status === 'problem')
  const [first] = problems
  if (first === undefined) return undefined
  const names = problems.map(({ check }) => check).join(', ')
  return new CliError(
    'problems_found',
    first.exit,
    `${problems.length === 1 ? 'a problem' : `${problems.length} problems`} found: ${names}`,
    { hint: areShown ? undefined : (first.remedy ?? undefined) },
  )
}
