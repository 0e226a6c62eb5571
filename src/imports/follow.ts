import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import type { ServiceClient } from '../service/client.ts'
import { getImport } from '../service/imports.ts'
import { drain } from '../service/polling.ts'
import type { ContactImport } from '../service/types.ts'
import type { Settings } from '../settings/settings.ts'
import { warn } from '../terminal/notices.ts'
import { writeJsonLine, writeObject } from '../terminal/output.ts'
import { type Progress, startProgress } from '../terminal/progress.ts'
import { renderBar } from '../terminal/progress-bar.ts'
import { canAnimate } from '../terminal/spinner.ts'
import { IMPORT_COLUMNS } from './columns.ts'
import { type ImportEvent, processed, spokenStatus, summary, total, watchImport } from './watch.ts'

export interface FollowImportFlags {
  /** Seconds. */
  readonly interval?: number
  /** Seconds. */
  readonly timeout?: number
}

/** On paper a line is written for every so much of the whole. */
const PLAIN_STEP = 0.1

/**
 * Watches an import and shows it: a bar on a terminal, lines elsewhere, events with `--format jsonl`; at the end the
 * import itself on stdout.
 *
 * @throws CliError `import_failed`, exit 9, and what `watchImport` throws.
 */
export async function followImport(
  id: string,
  flags: FollowImportFlags,
  client: ServiceClient,
  context: Context,
  settings: Settings,
): Promise<void> {
  const events = watchImport(
    () => getImport(client, id, { tries: 1 }),
    {
      intervalMs: flags.interval === undefined ? undefined : flags.interval * 1000,
      timeoutMs: flags.timeout === undefined ? undefined : flags.timeout * 1000,
    },
    context,
  )
  const ended =
    settings.format === 'jsonl'
      ? await drain(events, (event) => writeJsonLine(context, event))
      : await showProgress(events, context, settings)
  if (settings.format !== 'jsonl') await writeObject(context, settings, ended, IMPORT_COLUMNS)
  if (ended.status === 'failed') {
    throw new CliError('import_failed', Exit.negativeEnd, `the import failed (${summary(ended)})`, {
      hint: 'the interface gives no reason; look at the import in the web application, then start a new one',
    })
  }
  const failed = ended.counts?.failed
  if (typeof failed === 'number' && failed > 0) {
    await warn(`${failed} of the contacts could not be imported`, context, settings)
  }
}

async function showProgress(
  events: AsyncGenerator<ImportEvent, ContactImport, void>,
  context: Context,
  settings: Settings,
): Promise<ContactImport> {
  const describe = canAnimate(context) ? barOf(context) : plainLines()
  let progress: Progress | undefined
  try {
    return await drain(events, async ({ event, message, import: seen }) => {
      if (event === 'warning') {
        await progress?.end()
        progress = undefined
        return warn(message, context, settings)
      }
      const text = describe(seen, event)
      if (text === undefined) return
      if (progress === undefined) progress = await startProgress(text, context, settings)
      else await progress.update(text)
    })
  } finally {
    await progress?.end()
  }
}

/** A line for each status and each tenth of the way. */
function plainLines(): (seen: ContactImport, event: ImportEvent['event']) => string | undefined {
  let told = 0
  return (seen, event) => {
    const all = total(seen)
    const done = processed(seen)
    const fraction = all !== undefined && all > 0 && done !== undefined ? done / all : 0
    if (event === 'waiting' && fraction < told + PLAIN_STEP) return undefined
    told = Math.floor(fraction / PLAIN_STEP) * PLAIN_STEP
    return summary(seen)
  }
}

/** The bar with rate and remaining time, both as measured since the watch began. */
function barOf(context: Context): (seen: ContactImport) => string {
  let first: { done: number; at: number } | undefined
  return (seen) => {
    const all = total(seen)
    const done = processed(seen)
    // Room for the spinner in front, and for the ^C that a terminal writes behind: a broken line would stay.
    const columns = (context.stderr.columns ?? 80) - 6
    if (all === undefined || all === 0 || done === undefined) {
      return renderBar(spokenStatus(seen), undefined, [], columns)
    }
    const at = context.clock.monotonic()
    first ??= { done, at }
    const seconds = (at - first.at) / 1000
    const rate = seconds > 0 ? (done - first.done) / seconds : 0
    const details = [`${done}/${all}`]
    if (rate > 0 && done < all) details.push(`${spokenSeconds((all - done) / rate)} left`)
    if (rate > 0) details.push(`${rate >= 10 ? Math.round(rate) : rate.toFixed(1)}/s`)
    return renderBar(spokenStatus(seen), done / all, details, columns)
  }
}

function spokenSeconds(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  return `${Math.round(seconds / 3600)} h`
}
