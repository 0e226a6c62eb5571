import { setFlagsFromString } from 'node:v8'
import type { Context, Output } from '../../context.ts'
import { linkedAbort } from '../../dns/wire/linked-abort.ts'
import { CliError, Exit, InterruptedError } from '../../errors.ts'
import type { ServiceClient } from '../../service/client.ts'
import { paceRequests } from '../../service/pace.ts'
import { connect } from '../../session/connect.ts'
import type { Settings } from '../../settings/settings.ts'
import { createTurns, type Turns } from '../../turns.ts'
import { runPool } from './pool.ts'
import { createReporter, isReport, type Report } from './reporter.ts'
import { interrupted, notAllDone, type Remainder, stoppedBy } from './run-errors.ts'
import { answered, keepPrograms, shareContext } from './shared-effects.ts'
import type { Subject, SubjectReading } from './subjects.ts'
import { type Done, type Progress, RunTally } from './tally.ts'

/** The work on each domain of a run. */
export interface ManyWork extends Report, Remainder {
  /**
   * Does for one domain what the command does, without printing anything.
   *
   * @throws CliError if there is nothing to show beside the error
   */
  readonly perform: (subject: Subject, run: OneRun) => Promise<Done>
}

/** What the work on one domain uses, most of it shared with the others. */
export interface OneRun {
  readonly context: Context
  /** Quiet: the summary says what is worth saying. */
  readonly settings: Settings
  /** @throws CliError exit 3 without a usable base URL */
  readonly client: () => ServiceClient
  /** At most as many at once as there are jobs: for work beside requests and DNS checks. */
  readonly inTurn: Turns
  /** Says on stderr what can't wait for the end of the work on this domain. */
  readonly say: (text: string) => Promise<void>
  /** Notes what the work on this domain does now, for the summary. */
  readonly progress: (progress: Progress) => void
}

export interface ManyOptions {
  readonly jobs: number
  readonly failFast: boolean
  /** How many domains there are, if that is known. */
  readonly total: number | undefined
}

/** Values of a list that are kept for a hint. */
const MAX_GIVEN = 1000
/** Domains in progress if their work is mostly waiting. */
const MAX_WAITING = 2000
/**
 * By how much memory may grow before it is cleaned up, beyond what is in use. What a check leaves behind lives long enough
 * for V8 to take it for lasting: with its own setting, a long run would use half as much memory again.
 */
const HEAP_GROWTH_PERCENT = 50

/**
 * Does the same work for many domains, and reports each as it ends and all of them at the end. They share one connection to
 * the service with its rate limit, one credential, and what DNS says about the zones above them. A domain that fails doesn't
 * stop the others, unless all of them would fail for the same reason: without a credential or an address of the service, or
 * with a renewal of the session that has no known outcome when the time is up.
 *
 * @throws CliError with the most severe exit code if not all are done
 */
export async function runMany(
  work: ManyWork,
  subjects: AsyncIterator<SubjectReading, void>,
  { jobs, failFast, total }: ManyOptions,
  context: Context,
  settings: Settings,
): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`)
  const tally = new RunTally({ isWhole: isReport(settings) })
  const http = paceRequests(answered(context), context.clock, { concurrent: jobs })
  const reporter = await createReporter(work, tally, { total, heldUp: () => undefined }, context, settings)
  const stop = linkedAbort(context.interrupts.signal)
  let fatal: CliError | undefined
  const given = new Map<string, string>()
  // What is printed in between must not break the view that is redrawn.
  const stderr: Output = { isTTY: false, columns: undefined, write: (text) => reporter.print(text) }
  const programs = keepPrograms(context, stop.signal)
  const shared = shareContext({ ...context, http, stderr, programs }, jobs, stop.signal)
  let client: ServiceClient | undefined
  const quiet = { ...settings, quiet: true }
  const run: Omit<OneRun, 'progress'> = {
    context: shared,
    settings: quiet,
    client: () => {
      client ??= connect(shared, quiet)
      return client
    },
    inTurn: createTurns(jobs),
    say: (text) => reporter.say(text),
  }

  const one = async (reading: SubjectReading) => {
    if (reading.kind === 'repeated') {
      tally.repeated += 1
    } else if (reading.kind === 'problem') {
      await reporter.problem({ where: reading.where, why: reading.why })
      if (failFast) throw new FirstFailure()
    } else {
      const { domain, value } = reading.subject
      tally.begin(domain)
      const progress = (now: Progress) => tally.progress(domain, now)
      const done = await work.perform(reading.subject, { ...run, progress }).catch((error: unknown) => {
        // What was begun and not finished is neither done nor failed, unless a program ended, which is waited for.
        const isEnd = error instanceof CliError && error.code.startsWith('publish_')
        if ((stop.signal.aborted && !isEnd) || error instanceof InterruptedError) throw error
        return failed(domain, error, work, context, settings)
      })
      const reason = done.error && commonReason(done.error)
      if (reason !== undefined) {
        fatal ??= reason
        throw fatal
      }
      if (value !== undefined && done.error !== undefined && given.size < MAX_GIVEN) given.set(domain, value)
      await reporter.done(domain, done)
      if (failFast && done.error !== undefined) throw new FirstFailure()
    }
  }
  const oneOrStop = (reading: SubjectReading) =>
    one(reading).catch(async (error: unknown) => {
      const isFirst = !stop.signal.aborted
      stop.end()
      const running = programs.running()
      if (isFirst && running > 0)
        await reporter.say(
          `stopping: waiting for ${running === 1 ? '1 program' : `${running} programs`} to end`,
        )
      throw error
    })
  let isCut = false
  try {
    await runPool(subjects, work.waits ? Math.max(jobs, MAX_WAITING) : jobs, oneOrStop, stop.signal)
  } catch (error) {
    isCut = true
    if (context.interrupts.signal.aborted) {
      await reporter.end('interrupted')
      throw interrupted(context.interrupts.signal.reason, tally, work, total)
    }
    if (!(error instanceof FirstFailure) && error !== fatal) {
      reporter.abandon()
      throw error
    }
  } finally {
    stop.end()
  }
  await reporter.end(isCut ? 'cut short' : 'whole')
  if (fatal !== undefined) throw stoppedBy(fatal, tally, work, total)
  if (tally.exit !== Exit.done) throw notAllDone(tally, { ...work, isCut, total, given }, context, settings)
}

/** The error, or its cause, if all domains have it in common. */
function commonReason(error: CliError): CliError | undefined {
  const { exit, cause } = error
  if (exit === Exit.notConfigured || exit === Exit.notSignedIn) return error
  // The time is up, and the next run would be refused the session: what the run needs first is a person who signs in.
  return cause instanceof CliError && cause.code === 'refresh_unknown' ? cause : undefined
}

/** Ends a run at its first failure. */
class FirstFailure extends Error {}

/** A failure that leaves nothing else to show. */
function failed(
  domain: string,
  error: unknown,
  { lastEvent, emptyItem }: ManyWork,
  { clock }: Pick<Context, 'clock'>,
  { format }: Pick<Settings, 'format'>,
): Done {
  const expected =
    error instanceof CliError
      ? error
      : new CliError(
          'bug',
          Exit.bug,
          `this is a bug in mailclaim: ${error instanceof Error ? error.message : error}`,
        )
  const claim = { name: domain }
  const at = new Date(clock.now()).toISOString()
  const item =
    lastEvent !== undefined && format === 'jsonl'
      ? { event: lastEvent, at, message: expected.message, claim }
      : (emptyItem?.(domain, expected) ?? claim)
  return { label: labelOf(expected), item, error: expected }
}

/** What is counted if there is nothing but an error: the status of a claim that has ended is in its code. */
function labelOf({ code, exit }: CliError): string {
  if (exit === Exit.negativeEnd) return code.replace(/^claim_/, '')
  return exit === Exit.refused ? 'refused' : 'error'
}
