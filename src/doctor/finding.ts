import { CliError, Exit, type ExitCode } from '../errors.ts'

/** `skipped`: the check couldn't run, for a reason that another result gives, or doesn't apply. */
export type Status = 'ok' | 'warning' | 'problem' | 'skipped'

/** What a check found, with the exit code of a command that has this problem. A CliError that it throws is a problem too. */
export interface Finding {
  readonly status: Status
  readonly message: string
  /** What to do about it; null if there is nothing to do. */
  readonly remedy: string | null
  readonly exit: ExitCode
}

export interface Diagnosis extends Finding {
  readonly check: string
}

export function ok(message: string): Finding {
  return { status: 'ok', message, remedy: null, exit: Exit.done }
}

export function skipped(message: string): Finding {
  return { status: 'skipped', message, remedy: null, exit: Exit.done }
}

export function warning(message: string, remedy: string | undefined): Finding {
  return { status: 'warning', message, remedy: remedy ?? null, exit: Exit.done }
}

/** @param error the error that other commands would end with */
export function problem({ message, hint, exit }: CliError): Finding {
  return { status: 'problem', message, remedy: hint ?? null, exit }
}

/**
 * The error of the command, undefined if there is no problem; the first problem decides the exit code.
 *
 * @param remediesShown whether people have just read the remedies
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
