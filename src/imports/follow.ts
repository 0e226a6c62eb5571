import type { Context } from '../context.ts'
import type { ServiceClient } from '../service/client.ts'
import { getImport } from '../service/lists.ts'
import { drain, newsOnly, type PollFlags, pollTimes, resumable, statusFirst } from '../service/polling.ts'
import type { ContactImport } from '../service/types.ts'
import { commandLine } from '../shell-quote.ts'
import { formatDuration } from '../terminal/duration.ts'
import { note, warn } from '../terminal/notices.ts'
import { type OutputContext, type OutputSettings, writeJsonLine, writeObject } from '../terminal/output.ts'
import { type Progress, startProgress } from '../terminal/progress.ts'
import { renderBar } from '../terminal/progress-bar.ts'
import { canAnimate } from '../terminal/spinner.ts'
import { IMPORT_COLUMNS } from './columns.ts'
import {
  type ImportEvent,
  type ImportResult,
  processed,
  statusText,
  summary,
  total,
  watchImport,
} from './watch.ts'

/** Without a terminal, a line is written for each such fraction of the import. */
const LINE_STEP = 0.1

type FollowContext = OutputContext & Pick<Context, 'random' | 'interrupts' | 'platform'>

/**
 * Watches an import and shows its progress: with `--format jsonl` as events, else as a bar on a terminal or as lines, with
 * the import on stdout at the end.
 *
 * @throws CliError `import_failed`, exit 9, and `import_in_flight`, exit 8, both with the import on stdout; what
 *   `watchImport` throws
 */
export async function followImport(
  id: string,
  flags: PollFlags,
  client: ServiceClient,
  context: FollowContext,
  settings: OutputSettings,
): Promise<void> {
  const events = watchImport(
    id,
    (options) => getImport(client, id, options),
    { ...pollTimes(flags, context.clock), again: commandLine(settings.argv, context.platform) },
    context,
  )
  const watched =
    settings.format === 'jsonl'
      ? drain(statusFirst(events), (event) => writeJsonLine(context, settings, event))
      : showProgress(id, events, context, settings)
  const { import: ended, error } = await watched.catch(resumable)
  if (settings.format !== 'jsonl') await writeObject(context, settings, ended, IMPORT_COLUMNS)
  if (error !== undefined) throw error
  const failed = ended.counts?.failed
  if (typeof failed === 'number' && failed > 0) {
    await warn(`couldn't import ${failed} of the contacts`, context, settings)
  }
}

async function showProgress(
  id: string,
  events: AsyncGenerator<ImportEvent, ImportResult, void>,
  context: FollowContext,
  settings: OutputSettings,
): Promise<ImportResult> {
  const render = canAnimate(context) ? barRenderer(context) : lineRenderer(context)
  let progress: Progress | undefined
  try {
    let isNamed = false
    return await drain(events, async ({ event, message, import: seen }) => {
      if (!isNamed) await note(`Watching import ${id}`, context, settings)
      isNamed = true
      if (event === 'warning') {
        await progress?.end()
        progress = undefined
        return warn(message, context, settings)
      }
      const text = render(seen)
      if (text === undefined) return
      if (progress === undefined) progress = await startProgress(text, context, settings)
      else await progress.update(text)
    })
  } finally {
    await progress?.end()
  }
}

/** Renders a line for each new status, each tenth of the import, and once a minute. */
function lineRenderer({ clock }: Pick<Context, 'clock'>): (seen: ContactImport) => string | undefined {
  const news = newsOnly(clock)
  return (seen) => {
    const all = total(seen)
    const done = processed(seen)
    const fraction = all !== undefined && all > 0 && done !== undefined ? done / all : 0
    return news(`${seen.status} ${Math.floor(fraction / LINE_STEP)}`, summary(seen))
  }
}

/** Renders a bar with the rate and the remaining time, measured since the watch began. */
function barRenderer(context: Pick<Context, 'stderr' | 'clock'>): (seen: ContactImport) => string {
  let first: { done: number; at: number } | undefined
  return (seen) => {
    const all = total(seen)
    const done = processed(seen)
    // Leaves room for the spinner before the bar and a terminal's ^C after it: a wrapped line could not be erased.
    const columns = (context.stderr.columns ?? 80) - 6
    if (all === undefined || all === 0 || done === undefined) {
      return renderBar(statusText(seen), undefined, [], columns)
    }
    const at = context.clock.monotonic()
    first ??= { done, at }
    const seconds = (at - first.at) / 1000
    const rate = seconds > 0 ? (done - first.done) / seconds : 0
    const details = [`${done}/${all}`]
    if (rate > 0 && done < all) details.push(`${formatDuration((all - done) / rate, 'short')} left`)
    if (rate > 0) details.push(`${rate >= 10 ? Math.round(rate) : rate.toFixed(1)}/s`)
    return renderBar(statusText(seen), done / all, details, columns)
  }
}
