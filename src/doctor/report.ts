import { CliError, Exit, type ExitCode } from '../errors.ts'

/** `skipped`: the check couldn't run, for a reason that another result gives, or doesn't apply. */
export type Status = 'ok' | 'warning' | 'problem' | 'skipped'

/** The result of one check, with the exit code of a command that has this problem. */
export interface Diagnosis {
  readonly check: string
  readonly status: Status
  readonly message: string
  /** What to do about it; null if there is nothing to do. */
  readonly remedy: string | null
  readonly exit: ExitCode
}

export function ok(check: string, message: string): Diagnosis {
  return { check, status: 'ok', message, remedy: null, exit: Exit.done }
}

export function skipped(check: string, message: string): Diagnosis {
  return { check, status: 'skipped', message, remedy: null, exit: Exit.done }
}

export function warning(check: string, message: string, remedy: string | undefined): Diagnosis {
  return { check, status: 'warning', message, remedy: remedy ?? null, exit: Exit.done }
}

/** @param error the error that other commands would end with */
export function problem(check: string, error: CliError): Diagnosis {
  return { check, status: 'problem', message: error.message, remedy: error.hint ?? null, exit: error.exit }
}

/** A problem, or only a warning while an API key is used, which needs neither sessions nor files. */
export function problemWithoutKey(check: string, error: CliError, hasKey: boolean): Diagnosis {
  return hasKey
    ? warning(check, `${error.message}; MAILCLAIM_API_KEY works without it`, error.hint)
    : problem(check, error)
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
  return new CliError('problems_found', `problems found: ${names}`, {
    exit: first.exit,
    hint: areShown ? undefined : (first.remedy ?? undefined),
  })
}

/** What a check failed with; anything else that is thrown is a bug. */
export function asCliError(error: unknown): CliError {
  if (error instanceof CliError) return error
  throw error
}
