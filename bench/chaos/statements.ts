import type { Run } from './run-mailclaim.ts'

/** What is known of a run of the program from outside, to hold its words against. */
export interface Facts {
  /** Bytes of the request with the refresh token that left during the run in question. */
  readonly bytes: number
  /** How often the service rotated the refresh token until now. */
  readonly processed: number
  /** Whether the next plain command works; undefined where that is not known or not the question. */
  readonly nextWorks?: boolean
}

interface Statement {
  readonly says: RegExp
  readonly holds: (facts: Facts) => boolean
}

/**
 * Everything that the program says of a session and that can be checked. Words, for a code covers several statements:
 * a new wording belongs here as well.
 */
const STATEMENTS: readonly Statement[] = [
  { says: /nothing (?:was|has been|had been) sent/i, holds: ({ bytes }) => bytes === 0 },
  {
    says: /session is (?:untouched|unchanged)|session .{0,40}still works/i,
    holds: ({ nextWorks }) => nextWorks !== false,
  },
  {
    says: /cannot continue|"code":"(?:session_over|refresh_token_lost|not_signed_in)"/i,
    holds: ({ nextWorks }) => nextWorks !== true,
  },
  {
    // As a fact: neither "may have been sent" nor "whether it was sent".
    says: /(?<!\b(?:nothing|not|may|might|could|whether|if)\b[^.:;]*)\b(?:was|has been|had been) sent\b/i,
    holds: ({ bytes }) => bytes > 0,
  },
  {
    says: /the service (?:has )?renewed|"code":"refresh_token_lost"/i,
    holds: ({ processed }) => processed > 0,
  },
]

/** What a run said that is not so. */
export function untruths(run: Run, facts: Facts): string[] {
  const said = STATEMENTS.flatMap(({ says, holds }) => {
    const words = says.exec(run.stderr)?.[0]
    return words === undefined || holds(facts) ? [] : [words]
  })
  return said.map((words) => `untrue: ${JSON.stringify(words)} (${endingOf(run)})`)
}

/** A run that hung, crashed or called itself a bug. */
export function malfunctions(run: Run, killed = false): string[] {
  if (run.hung) return ['hung']
  if (typeof run.code === 'string' && !killed) return [`crashed: ${run.code}`]
  if (/this is a bug in/.test(run.stderr)) return ['called itself a bug']
  if (/^\s+at .+:\d+:\d+\)?$/m.test(run.stderr)) return ['printed a stack trace']
  return []
}

/** Exit and error code, for messages. */
export function endingOf(run: Run): string {
  return run.error === undefined ? `exit ${run.code}` : `exit ${run.code} ${run.error.code}`
}
