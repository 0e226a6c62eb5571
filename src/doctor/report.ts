import { CliError, Exit, type ExitCode } from '../errors.ts'

/** `skipped`: it could not be looked at, for a reason that another line gives, or does not matter here. */
export type Status = 'ok' | 'warning' | 'problem' | 'skipped'

/** What one look at the set-up found. */
export interface Result {
  readonly check: string
  readonly status: Status
  readonly message: string
  /** What to do about it; null where nothing is to be done. */
  readonly remedy: string | null
}

/** A result that also knows with which code a command would end on it. */
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

/** What stops commands, as the error that they would end with. */
export function problem(check: string, error: CliError): Diagnosis {
  return { check, status: 'problem', message: error.message, remedy: error.hint ?? null, exit: error.exit }
}

/** The error that ends the command where there is a problem: the first one decides the exit code. */
export function failureOf(diagnoses: readonly Diagnosis[]): CliError | undefined {
  const problems = diagnoses.filter(({ status }) => status === 'problem')
  const [first] = problems
  if (first === undefined) return undefined
  const names = problems.map(({ check }) => check).join(', ')
  return new CliError(
    'problems_found',
    first.exit,
    `${problems.length === 1 ? 'a problem' : `${problems.length} problems`} found: ${names}`,
    {
      hint: first.remedy ?? undefined,
    },
  )
}
