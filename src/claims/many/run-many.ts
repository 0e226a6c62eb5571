import { setFlagsFromString } from 'node:v8'
import type { Context, Output } from '../../context.ts'
import { registeredDomainOf } from '../../dns/resolution/registry.ts'
import { rememberAnswers } from '../../dns/resolution/remember-answers.ts'
import { linkedAbort } from '../../dns/wire/linked-abort.ts'
import { shareNetwork } from '../../dns/wire/shared-network.ts'
import { CliError, Exit, InterruptedError } from '../../errors.ts'
import type { ServiceClient } from '../../service/client.ts'
import { paceRequests } from '../../service/pace-requests.ts'
import { connect } from '../../session/connect.ts'
import type { Settings } from '../../settings/settings.ts'
import { commandLine } from '../../shell-quote.ts'
import { createTurns, type Turns } from '../../turns.ts'
import { runPool } from './pool.ts'
import { createReporter, isReport, type Report } from './reporter.ts'
import type { Subject, SubjectReading } from './subjects.ts'
import { domainsOf, formatCount } from './summary.ts'
import { type Done, type Progress, RunTally, STARTING } from './tally.ts'

/** The work on each domain of a run. */
export interface ManyWork extends Report {
  /**
   * Does for one domain what the command does, without printing anything.
   *
   * @throws CliError if there is nothing to show beside the error
   */
  readonly perform: (subject: Subject, run: OneRun) => Promise<Done>
  /** What of a domain that isn't done: `aren't ready`. */
  readonly notDone: string
  /** Whether a second run starts new claims of domains whose claim has ended. */
  readonly restarts?: boolean
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
  const reporter = await createReporter(work, tally, { total, heldUp: http.heldUp }, context, settings)
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
        const isEnd = error instanceof CliError && /^publish_/.test(error.code)
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
      throw interrupted(context.interrupts.signal.reason, tally, work)
    }
    if (!(error instanceof FirstFailure) && error !== fatal) {
      reporter.abandon()
      throw error
    }
  } finally {
    stop.end()
  }
  await reporter.end(isCut ? 'cut short' : 'whole')
  if (fatal !== undefined) throw stoppedBy(fatal, standOf(tally, total), work)
  const cut = isCut ? { stand: standOf(tally, total), total } : undefined
  if (tally.exit !== Exit.done) throw notAllDone(tally, { ...work, cut, given }, context, settings)
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

function shareContext(context: Context, jobs: number, signal: AbortSignal): Context {
  const { clock, dns, interrupts } = context
  return {
    ...context,
    dns: rememberAnswers(shareNetwork(dns, clock, { checks: jobs, zoneOf: registeredDomainOf }), clock),
    interrupts: { ...interrupts, signal },
  }
}

/** Requests of which those that change something get their answer although the run stops: otherwise nobody would know of it. */
function answered({ http, interrupts }: Pick<Context, 'http' | 'interrupts'>): Context['http'] {
  return {
    close: () => http.close(),
    send(request) {
      const { method, signal } = request
      return http.send(
        method === 'GET' || signal === undefined ? request : { ...request, signal: interrupts.signal },
      )
    },
  }
}

/**
 * Programs that change DNS, of which none begins once the run stops. Those that run then are waited for, unless a person
 * interrupts them: a change that is stopped halfway is worse than a late one.
 */
function keepPrograms(
  { programs, interrupts }: Pick<Context, 'programs' | 'interrupts'>,
  stop: AbortSignal,
): Context['programs'] & { running(): number } {
  let running = 0
  return {
    ...programs,
    running: () => running,
    async run(request) {
      stop.throwIfAborted()
      running += 1
      try {
        return await programs.run({ ...request, signal: interrupts.signal })
      } finally {
        running -= 1
      }
    },
  }
}

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

function interrupted(reason: unknown, tally: RunTally, work: ManyWork): unknown {
  if (!(reason instanceof CliError)) return reason
  const hint = `to continue, run the same command again`
  if (!work.resumes)
    return new CliError(reason.code, reason.exit, `${reason.message} after ${domainsOf(tally.done)}`, {
      hint: `nothing is lost; ${hint}`,
    })
  let open = 0
  for (const [step, count] of tally.steps) if (step !== STARTING) open += count
  const claims = open === 0 ? '' : `, with ${formatCount(open)} ${open === 1 ? 'claim' : 'claims'} still open`
  return new CliError(reason.code, reason.exit, `${reason.message} after ${domainsOf(tally.done)}${claims}`, {
    hint: `nothing is lost; ${hint}: what is done is not done again`,
  })
}

const AGAIN = 'run the same command again for the rest: what is done is not done again'

/** Where a run stood that ended early: "150 done, 2 failed, 48 not finished". */
function standOf(tally: RunTally, total: number | undefined): string {
  const left = total === undefined ? undefined : total - tally.done - tally.problems - tally.repeated
  return [
    `${formatCount(tally.done - tally.failed)} done`,
    tally.failed > 0 ? `${formatCount(tally.failed)} failed` : '',
    left === undefined ? 'the rest not finished' : left > 0 ? `${formatCount(left)} not finished` : '',
  ]
    .filter(Boolean)
    .join(', ')
}

/** A reason that holds for all domains. */
function stoppedBy(
  { code, exit, message, hint, status }: CliError,
  stand: string,
  { resumes }: ManyWork,
): CliError {
  const hints = [hint, resumes ? `then ${AGAIN}` : undefined]
  return new CliError(code, exit, `${message} (${stand})`, {
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

interface RunEnding {
  /** Where it stood, if it ended early. */
  readonly cut: { readonly stand: string; readonly total: number | undefined } | undefined
  /** The values that the list had for domains that aren't done, by domain; the first ones. */
  readonly given: ReadonlyMap<string, string>
}

function notAllDone(
  tally: RunTally,
  { notDone, resumes, restarts, cut, given }: ManyWork & RunEnding,
  { platform }: Pick<Context, 'platform'>,
  settings: Settings,
): CliError {
  const { failed, done, problems, ended } = tally
  const predicate = failed === 1 ? notDone.replace(/^\S+/, (verb) => SINGULAR[verb] ?? verb) : notDone
  const parts = [
    failed > 0 ? `${formatCount(failed)} of ${domainsOf(cut?.total ?? done)} ${predicate}` : '',
    problems > 0
      ? `${formatCount(problems)} ${problems === 1 ? 'line' : 'lines'} of the list can't be used`
      : '',
    cut === undefined ? '' : `stopped early: ${cut.stand}`,
  ]
  const [name = ''] = tally.causes()[0]?.names ?? []
  const value = given.get(name)
  const check = ['claims', 'check', name, ...(value === undefined ? [] : ['--value', value])]
  const hasLines = ['tsv', 'csv', 'json', 'jsonl'].includes(settings.format)
  // Only with time does a second run get further than the first one did.
  const isStuck = cut !== undefined && tally.unfinished === 0
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
