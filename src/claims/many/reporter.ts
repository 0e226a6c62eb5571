import type { Context } from '../../context.ts'
import type { CliError, UnusableLine } from '../../errors.ts'
import { isProgramFormat, type Settings } from '../../settings/settings.ts'
import { commandLine } from '../../shell-quote.ts'
import type { Column } from '../../terminal/columns.ts'
import { createListWriter } from '../../terminal/list-writer.ts'
import { note, warn } from '../../terminal/notices.ts'
import { renderContext } from '../../terminal/output.ts'
import { sanitizeLine, sanitizeLines } from '../../terminal/sanitize.ts'
import { canAnimate } from '../../terminal/spinner.ts'
import { createTurns } from '../../turns.ts'
import { CAUSE_COLUMNS, causeBlocks, headline, legend, summaryLines, wrapCounts } from './summary.ts'
import { type Done, problemText, type RunTally } from './tally.ts'

/** How the domains of a run are reported. */
export interface Report {
  /** The command's words: `claims check`. */
  readonly command: string
  readonly columns: readonly Column[]
  /** Whether people at a terminal see a row for each domain: it holds something to copy. */
  readonly rowsForPeople: boolean
  /** Whether a domain mostly waits: then far more of them than `jobs` can be in progress. */
  readonly waits: boolean
  /** What programs get of a domain if there is nothing but an error; the name alone by default. */
  readonly emptyItem?: (domain: string, error: CliError) => object
  /** If a line of `--format jsonl` is an event, as it is for one domain: the last one of a domain without a claim. */
  readonly lastEvent?: string
  /** Whether something else than rows is printed: `Done.text`. */
  readonly isText?: boolean
  /** The words of a command line that say which domains these are. */
  readonly selection?: readonly string[]
}

/** How far a run got: one that was cut short or interrupted left some domains out. */
export type RunEnd = 'whole' | 'cut short' | 'interrupted'

export interface Reporter {
  done(domain: string, done: Done): Promise<void>
  problem(problem: UnusableLine): Promise<void>
  /** Something on stderr that stays. */
  say(text: string): Promise<void>
  /** Text on stderr as it is, even with `--quiet`. */
  print(text: string): Promise<void>
  end(run: RunEnd): Promise<void>
  /** Removes what moves; nothing else is printed. */
  abandon(): void
}

/** Some CI systems end a job that is silent for long. */
const HEARTBEAT_MS = 60_000
/** Columns of a terminal that is too narrow for the table of causes. */
const NARROW = 90
/** Different warnings that are shown. */
const MAX_WARNINGS = 10

/**
 * Creates the reporter for the chosen format: a row, a line or a text for each domain as it ends, on a terminal a live
 * summary, and at the end what went wrong by cause.
 */
export async function createReporter(
  report: Report,
  tally: RunTally,
  { total, heldUp }: { readonly total: number | undefined; readonly heldUp: () => string | undefined },
  context: Context,
  settings: Settings,
): Promise<Reporter> {
  const { stdout } = context
  const forPeople = isForPeople(context, settings)
  const hasRows = !isReport(settings) && report.isText !== true && (!forPeople || report.rowsForPeople)
  const { columns } = report
  const rows = createListWriter({ context, settings, columns, nothing: undefined })
  const live =
    settings.quiet || !canAnimate(context)
      ? undefined
      : await import('./live-view.ts').then(({ startLiveView }) =>
          startLiveView(tally, { total, waits: report.waits, heldUp }, context, settings),
        )
  const inTurn = createTurns(1)
  const write = (work: () => Promise<void>) => inTurn(() => live?.above(work) ?? work())
  const warnings = new Set<string>()
  let stopHeartbeat = () => {}
  let lastCauses = ''
  const beat = () => {
    stopHeartbeat = context.clock.alarm(HEARTBEAT_MS, () => {
      const [counts, ...causes] = summaryLines(tally)
      const isNews = causes.join() !== lastCauses
      lastCauses = causes.join()
      const held = heldUp()
      const why = held === undefined ? '' : `; waiting for the service: ${held}`
      void note([`so far: ${counts}${why}`, ...(isNews ? causes : [])].join('\n'), context, settings)
      beat()
    })
  }
  if (live === undefined) beat()
  const stopMoving = () => {
    live?.end()
    stopHeartbeat()
  }

  return {
    async done(domain, done) {
      tally.add(domain, done)
      const { text, warning } = done
      if (report.isText && text !== undefined) await write(() => stdout.write(text))
      // People read in the summary what went wrong.
      if (hasRows && !(forPeople && done.error !== undefined)) {
        const item = done.error === undefined ? done.item : { ...done.item, ...done.error.toJSON() }
        await write(() =>
          rows.page({ items: [item] }),
        )
      }
      if (warning === undefined || warnings.size > MAX_WARNINGS || warnings.has(warning)) return
      warnings.add(warning)
      const isRest = warnings.size > MAX_WARNINGS
      await write(() => warn(isRest ? 'there are more such warnings' : warning, context, settings))
    },
    async problem(problem) {
      tally.problem(problem)
      // Editors and CI look for FILE:LINE at the start of a message, and programs that read JSON for the label of a warning.
      const hasLabel = problem.where === undefined || isProgramFormat(settings)
      await write(() => (hasLabel ? warn : note)(problemText(problem), context, settings))
    },
    // In one piece, so that a value can be copied: the terminal wraps it without a line break.
    say: (text) =>
      write(async () => {
        if (!settings.quiet) await context.stderr.write(`${sanitizeLines(text)}\n`)
      }),
    print: (text) => write(() => context.stderr.write(text)),
    async end(run) {
      stopMoving()
      // An unfinished JSON document must not be taken for a complete one.
      if (hasRows && !(run === 'interrupted' && settings.format === 'json')) await rows.end(run !== 'whole')
      if (run === 'whole' || tally.done + tally.steps.size + tally.problems > 0)
        await summarize(report, tally, context, settings)
    },
    abandon: stopMoving,
  }
}

async function summarize(
  { rowsForPeople, selection = [] }: Report,
  tally: RunTally,
  context: Context,
  settings: Settings,
): Promise<void> {
  const { stdout } = context
  // Standard input can't be read again.
  const same = selection.map((word) => (word === '-' ? 'FILE' : word))
  const check = commandLine(['claims', 'check', ...same, '--format', 'markdown'], context.platform)
  const more = legend(tally, sanitizeLine(check))
  if (!isForPeople(context, settings)) {
    // The rows that are there name each domain.
    const lines = [...summaryLines(tally), ...(more?.includes('\n') ? [`  ${more.replace('\n', ' ')}`] : [])]
    return note(lines.join('\n'), context, settings)
  }
  const [{ TableRenderer }, rendering] = await Promise.all([
    import('../../terminal/table.ts'),
    renderContext(context, settings),
  ])
  const causes =
    rendering.width < NARROW
      ? causeBlocks(tally, rendering)
      : new TableRenderer(CAUSE_COLUMNS, rendering).render(tally.causes()).trimEnd()
  const start = rowsForPeople && tally.done > 0 ? '\n' : ''
  const counts = wrapCounts(headline(tally), rendering.width).join('\n')
  // The terminal wraps a command without a line break, so that it can be copied.
  const table = [causes, more?.split('\n').map(rendering.palette.faint).join('\n')]
  await stdout.write([`${start}${counts}\n`, ...table.filter(Boolean).map((text) => `${text}\n`)].join('\n'))
}

/** Whether one report of all domains is printed, at the end. */
export function isReport({ format }: Pick<Settings, 'format'>): boolean {
  return format === 'markdown' || format === 'html'
}

function isForPeople({ stdout }: Pick<Context, 'stdout'>, { format }: Pick<Settings, 'format'>): boolean {
  return format === 'table' && stdout.isTTY
}
