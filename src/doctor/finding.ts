import { CliError, Exit, type ExitCode } from '../errors.ts'

/** Status of a check; `skipped` if it doesn't apply, or can't run because of a problem that another check reports. */
export type Status = 'ok' | 'warning' | 'problem' | 'skipped'

/** Result of one check. A `CliError` that a check throws becomes a finding with status `problem`. */
export interface Finding {
  readonly status: Status
  readonly message: string
  /** Remedy that the user can apply; null if nothing needs to be done, or nothing is known to help. */
  readonly remedy: string | null
  /** Exit code of other commands that run into this problem; 0 unless the status is `problem`. */
  readonly exit: ExitCode
}

export interface Diagnosis extends Finding {
  readonly check: string
}

export function okFinding(message: string): Finding {
  return { status: 'ok', message, remedy: null, exit: Exit.done }
}

export function skippedFinding(message: string): Finding {
  return { status: 'skipped', message, remedy: null, exit: Exit.done }
}

export function warningFinding(message: string, remedy: string | undefined): Finding {
  return { status: 'warning', message, remedy: remedy ?? null, exit: Exit.done }
}

/** Returns a finding for the error that other commands would fail with. */
export function problemFinding({ message, hint, exit }: CliError): Finding {
  return { status: 'problem', message, remedy: hint ?? null, exit }
}

/**
 * Returns the error that `doctor` ends with, with the exit code of the first problem; undefined if there is no problem.
 *
 * @param remediesShown whether the remedies are already on the screen: then the error has no hint
 */
export function problemsError(diagnoses: readonly Diagnosis[], remediesShown: boolean): CliError | undefined {
  const problems = diagnoses.filter(({ status }) => status === 'problem')
  const [first] = problems
  if (first === undefined) return undefined
  const names = problems.map(({ check }) => check).join(', ')
  return new CliError('problems_found', `problems found: ${names}`, {
    exit: first.exit,
    hint: remediesShown ? undefined : (first.remedy ?? undefined),
  })
}
