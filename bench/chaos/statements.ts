import type { Run } from './run-mailclaim.ts'

/** Facts about a run, observed from outside, to check the messages of the program against. */
export interface Observed {
  /** Number of bytes of token requests that the service has received. */
  readonly bytes: number
  /** Number of token requests that the service has processed; each issued a new refresh token. */
  readonly processed: number
  /** Whether the next command, which runs without a fault, succeeds; undefined if that doesn't matter. */
  readonly nextWorks?: boolean
}

interface Statement {
  readonly pattern: RegExp
  readonly holds: (observed: Observed) => boolean
}

/** Patterns of the program's statements about a session, each with the check whether the facts agree. Add each new wording here. */
const STATEMENTS: readonly Statement[] = [
  { pattern: /nothing (?:was|has been|had been) sent/i, holds: ({ bytes }) => bytes === 0 },
  {
    pattern: /session is (?:untouched|unchanged)|session .{0,40}still works/i,
    holds: ({ nextWorks }) => nextWorks !== false,
  },
  {
    pattern: /cannot continue|"code":"(?:session_over|refresh_token_lost|not_signed_in)"/i,
    holds: ({ nextWorks }) => nextWorks !== true,
  },
  {
    // Matches "was sent" as a fact, but neither "may have been sent" nor "whether it was sent".
    pattern: /(?<!\b(?:nothing|not|may|might|could|whether|if)\b[^.:;]*)\b(?:was|has been|had been) sent\b/i,
    holds: ({ bytes }) => bytes > 0,
  },
  { pattern: /cut off before it sent/i, holds: ({ bytes }) => bytes === 0 },
  {
    pattern: /could not be stored/i,
    holds: ({ processed, nextWorks }) => processed > 0 && nextWorks !== true,
  },
  {
    pattern: /the service (?:has )?renewed|"code":"refresh_token_lost"/i,
    holds: ({ processed }) => processed > 0,
  },
]

/** Returns the statements in a run's messages that the observed facts contradict. */
export function findUntruths(run: Run, observed: Observed): string[] {
  const said = STATEMENTS.flatMap(({ pattern, holds }) => {
    const words = pattern.exec(run.stderr)?.[0]
    return words === undefined || holds(observed) ? [] : [words]
  })
  return said.map((words) => `untrue: ${JSON.stringify(words)} (${endingOf(run)})`)
}

/** Returns the first malfunction of a run, if any: a hang, crash, reported bug or stack trace. @param killed ignores a crash */
export function findMalfunctions(run: Run, killed = false): string[] {
  if (run.hung) return ['hung']
  if (typeof run.code === 'string' && !killed) return [`crashed: ${run.code}`]
  if (/this is a bug in/.test(run.stderr)) return ['called itself a bug']
  if (/^\s+at .+:\d+:\d+\)?$/m.test(run.stderr)) return ['printed a stack trace']
  return []
}

/** Returns exit code and error code of a run, for the printed table. */
export function endingOf(run: Run): string {
  return run.error === undefined ? `exit ${run.code}` : `exit ${run.code} ${run.error.code}`
}
