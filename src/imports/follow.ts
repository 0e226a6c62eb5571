import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import type { ServiceClient } from '../service/client.ts'
import { getImport } from '../service/imports.ts'
import { drain, type PollFlags, pollTimes } from '../service/polling.ts'
import type { ContactImport } from '../service/types.ts'
import { formatDuration } from '../terminal/duration.ts'
import { warn } from '../terminal/notices.ts'
import { type OutputContext, type OutputSettings, writeJsonLine, writeObject } from '../terminal/output.ts'
import { type Progress, startProgress } from '../terminal/progress.ts'
import { renderBar } from '../terminal/progress-bar.ts'
import { canAnimate } from '../terminal/spinner.ts'
import { IMPORT_COLUMNS } from './columns.ts'
import { type ImportEvent, processed, statusText, summary, total, watchImport } from './watch.ts'

/** Without a terminal, a line is written for each such fraction of the import. */
const LINE_STEP = 0.1

type FollowContext = OutputContext & Pick<Context, 'random' | 'interrupts'>

/**
 * Watches an import and shows its progress: with `--format jsonl` as events, else as a bar on a terminal or as lines, with
 * the import on stdout at the end.
 *
 * @throws CliError `import_failed`, exit 9, and what `watchImport` throws
 */
export async function followImport(
  id: string,
  flags: PollFlags,
  client: ServiceClient,
  context: FollowContext,
  settings: OutputSettings,
): Promise<void> {
  const events = watchImport(() => getImport(client, id, { maxAttempts: 1 }), pollTimes(flags), context)
  const ended =
    settings.format === 'jsonl'
      ? await drain(events, (event) => writeJsonLine(context, settings, event))
      : await showProgress(events, context, settings)
  if (settings.format !== 'jsonl') await writeObject(context, settings, ended, IMPORT_COLUMNS)
  if (ended.status === 'failed') {
    throw new CliError('import_failed', Exit.negativeEnd, `the import failed (${summary(ended)})`, {
      hint: 'the API gives no reason; check the import in the web application, then start a new one',
    })
  }
  const failed = ended.counts?.failed
  if (typeof failed === 'number' && failed > 0) {
    await warn(`couldn't import ${failed} of the contacts`, context, settings)
  }
}

async function showProgress(
  events: AsyncGenerator<ImportEvent, ContactImport, void>,
  context: FollowContext,
  settings: OutputSettings,
): Promise<ContactImport> {
  const render = canAnimate(context) ? barRenderer(context) : lineRenderer()
  let progress: Progress | undefined
  try {
    return await drain(events, async ({ event, message, import: seen }) => {
      if (event === 'warning') {
        await progress?.end()
        progress = undefined
        return warn(message, context, settings)
      }
      const text = render(seen, event)
      if (text === undefined) return
      if (progress === undefined) progress = await startProgress(text, context, settings)
      else await progress.update(text)
    })
  } finally {
    await progress?.end()
  }
}

/** Renders a line for each new status and each tenth of the import. */
function lineRenderer(): (seen: ContactImport, event: ImportEvent['event']) => string | undefined {
  let shown = 0
  return (seen, event) => {
    const all = total(seen)
    const done = processed(seen)
    const fraction = all !== undefined && all > 0 && done !== undefined ? done / all : 0
    if (event === 'waiting' && fraction < shown + LINE_STEP) return undefined
    shown = Math.floor(fraction / LINE_STEP) * LINE_STEP
    return summary(seen)
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
