import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { Settings } from '../../settings/settings.ts'
import { commandLine } from '../../shell-quote.ts'
import { domainsOf, formatCount, leftOut } from './summary.ts'
import { isWarning, type RunTally } from './tally.ts'

/** What of a run is not done, and what a second run does about it. */
export interface Remainder {
  /** Of a domain: `aren't ready`. */
  readonly notDone: string
  /** Whether a second run skips what is done. */
  readonly resumes: boolean
  /** Whether a second run starts new claims of domains whose claim has ended. */
  readonly restarts?: boolean
}

/**
 * The error of a run that a person has interrupted.
 *
 * @param reason why, as the signal says
 * @param total how many domains there are, if that is known
 */
export function interrupted(
  reason: unknown,
  tally: RunTally,
  { resumes }: Remainder,
  total: number | undefined,
): unknown {
  if (!(reason instanceof CliError)) return reason
  const left = leftOut(tally, total)
  const rest = left ? `, with ${formatCount(left)} not done` : ''
  return new CliError(reason.code, reason.exit, `${reason.message} after ${domainsOf(tally.done)}${rest}`, {
    hint: `nothing is lost; to continue, run the same command again${resumes ? ': what is done is not done again' : ''}`,
  })
}

const AGAIN = 'run the same command again for the rest: what is done is not done again'

/** Where a run stood that ended early: "150 done, 2 failed, 48 not finished". */
function standOf(tally: RunTally, total: number | undefined): string {
  const left = leftOut(tally, total)
  return [
    `${formatCount(tally.done - tally.failed)} done`,
    tally.failed > 0 ? `${formatCount(tally.failed)} failed` : '',
    left === undefined ? 'the rest not finished' : left > 0 ? `${formatCount(left)} not finished` : '',
  ]
    .filter(Boolean)
    .join(', ')
}

/** A reason that holds for all domains. @param total how many there are, if that is known */
export function stoppedBy(
  { code, exit, message, hint, status }: CliError,
  tally: RunTally,
  { resumes }: Remainder,
  total: number | undefined,
): CliError {
  const hints = [hint, resumes ? `then ${AGAIN}` : undefined]
  return new CliError(code, exit, `${message} (${standOf(tally, total)})`, {
    hint: hints.filter(Boolean).join('\n') || undefined,
    status,
  })
}

const SINGULAR: Readonly<Record<string, string>> = {
  "aren't": "isn't",
  "don't": "doesn't",
  "weren't": "wasn't",
  have: 'has',
}

/** What such an error says beside the counts. */
export interface RunEnding {
  /** Whether it ended early. */
  readonly isCut: boolean
  /** How many domains there are, if that is known. */
  readonly total: number | undefined
  /** The values that the list had for domains that aren't done, by domain; the first ones. */
  readonly given: ReadonlyMap<string, string>
}

/** The error of a run of which not all domains are done, with what to do next. */
export function notAllDone(
  tally: RunTally,
  { notDone, resumes, restarts, isCut, total, given }: Remainder & RunEnding,
  { platform }: Pick<Context, 'platform'>,
  settings: Settings,
): CliError {
  const { failed, done, problems, ended } = tally
  const left = isCut ? (leftOut(tally, total) ?? 0) : 0
  const predicate = failed === 1 ? notDone.replace(/^\S+/, (verb) => SINGULAR[verb] ?? verb) : notDone
  const parts = [
    failed > 0 ? `${formatCount(failed)} of ${domainsOf(done + left)} ${predicate}` : '',
    problems > 0
      ? `${formatCount(problems)} ${problems === 1 ? 'line' : 'lines'} of the list can't be used`
      : '',
    isCut ? `stopped early: ${standOf(tally, total)}` : '',
  ]
  const [name = ''] = tally.causes().find((cause) => !isWarning(cause))?.names ?? []
  const value = given.get(name)
  const check = ['claims', 'check', name, ...(value === undefined ? [] : ['--value', value])]
  const hasLines = ['tsv', 'csv', 'json', 'jsonl'].includes(settings.format)
  // Only with time does a second run get further than the first one did.
  const isStuck = isCut && tally.unfinished === 0
  const hints = [
    settings.quiet === true ? tally.firstProblems.join('\n') : '',
    isStuck ? `to go on with the rest: the same command without --fail-fast` : '',
    resumes && tally.unfinished > 0 ? AGAIN : '',
    restarts && ended > 0
      ? `${formatCount(ended)} ended or ${ended === 1 ? 'is' : 'are'} gone: running this again starts new claims with new records`
      : '',
    failed > 0 && !resumes && name
      ? `more about one: ${commandLine(check, platform)}${hasLines ? '' : '; a line for each: --format tsv'}`
      : '',
  ]
  return new CliError('domains_failed', tally.exit, parts.filter(Boolean).join('; '), {
    hint: hints.filter(Boolean).join('\n') || undefined,
    unusable: problems > 0 ? tally.unusable : undefined,
  })
}
