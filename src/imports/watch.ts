import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import type { RequestOptions } from '../service/client.ts'
import {
  lastRequestFailed,
  newsOnly,
  type PollTimes,
  poll,
  retryMessage,
  type TimedOut,
  timedOutAfter,
} from '../service/polling.ts'
import { type ContactImport, IMPORT_STATUSES } from '../service/types.ts'
import { clip } from '../terminal/sanitize.ts'

/** As for a claim, in milliseconds; an import changes faster. */
export const WATCH_DELAYS = { first: 1000, max: 10_000 } as const

/** Characters of a status in a message: far more than a real one has. */
const MAX_STATUS_LENGTH = 80

/** The events of `imports watch --format jsonl`. */
export const IMPORT_EVENTS = {
  status: 'the status of the import at the start, and when it changes, unless another event says so',
  waiting: 'the counts have changed, or a minute has passed',
  warning: 'a failed poll, which is repeated, or a status that this version does not know',
  done: 'the import is completed or failed; the exit code says which',
} as const

/** What `imports watch --format jsonl` writes, one per line. */
export interface ImportEvent {
  readonly event: keyof typeof IMPORT_EVENTS
  /** ISO 8601. */
  readonly at: string
  readonly message: string
  /** The import as last seen. */
  readonly import: ContactImport
}

export interface ImportTimes extends PollTimes {
  /** The command that goes on watching. */
  readonly again: string
}

/** The import when the watch ended. */
export interface ImportResult {
  readonly import: ContactImport
  /** Why it isn't completed: `import_in_flight`, exit 8, after `timeoutMs`; `import_failed`, exit 9. */
  readonly error: CliError | undefined
}

/**
 * Watches an import until it is completed or failed. Yields each change and each problem, and once a minute that nothing
 * has changed.
 *
 * @param id names the import in messages
 * @param fetch gets the import, with these options for its requests
 * @throws CliError what `poll` throws
 */
export async function* watchImport(
  id: string,
  fetch: (options: RequestOptions) => Promise<ContactImport>,
  times: ImportTimes,
  context: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<ImportEvent, ImportResult, void> {
  const news = newsOnly(context.clock)
  let last: ContactImport | undefined
  let end: TimedOut | undefined
  const eventOf = (event: ImportEvent['event'], message: string, seen: ContactImport): ImportEvent => ({
    event,
    at: new Date(context.clock.now()).toISOString(),
    message,
    import: seen,
  })

  for await (const polled of poll(fetch, { ...times, delays: WATCH_DELAYS }, context)) {
    if (polled.kind === 'timeout') {
      end = polled
      break
    }
    if (polled.kind === 'failure') {
      const text = retryMessage(polled)
      const message = last && news(text, text)
      if (last !== undefined && message !== undefined) yield eventOf('warning', message, last)
      continue
    }
    const previous = last
    last = polled.value
    if (last.status === 'completed' || last.status === 'failed') {
      yield eventOf('done', summary(last), last)
      return { import: last, error: last.status === 'failed' ? failedError(id, last) : undefined }
    }
    const isKnown = (IMPORT_STATUSES as readonly unknown[]).includes(last.status)
    const text = isKnown ? summary(last) : `${summary(last)}: unknown status; still waiting`
    const message = news(`${last.status} ${processed(last)} ${total(last)}`, text)
    if (message === undefined) continue
    const kind = previous?.status === last.status ? 'waiting' : isKnown ? 'status' : 'warning'
    yield eventOf(kind, message, last)
  }
  // The first poll gives an import or throws.
  const seen = last as ContactImport
  return { import: seen, error: timeoutError(id, seen, times, end) }
}

function failedError(id: string, seen: ContactImport): CliError {
  const share = shareDone(seen)
  const text = `the import ${id} failed${share && `, with ${share} processed`}`
  return new CliError('import_failed', Exit.negativeEnd, text, {
    hint: 'the API gives no reason; check the import in the web application, then start a new one',
  })
}

function timeoutError(
  id: string,
  seen: ContactImport,
  { timeoutMs = 0, again }: ImportTimes,
  end: TimedOut | undefined,
): CliError {
  return new CliError(
    'import_in_flight',
    Exit.notYet,
    `${timedOutAfter(timeoutMs)}: the import ${id} is still ${statusText(seen)}${lastRequestFailed(end?.error)}`,
    { hint: `the import continues; to keep watching: ${again}` },
  )
}

/** Status and progress: "in progress, 1200 of 5000 (24%)". */
export function summary(seen: ContactImport): string {
  return [statusText(seen), shareDone(seen)].filter(Boolean).join(', ')
}

/** "1200 of 5000 (24%)"; "" if that isn't known. */
function shareDone(seen: ContactImport): string {
  const done = processed(seen)
  const all = total(seen)
  if (done === undefined || all === undefined) return ''
  const percent = all === 0 ? '' : ` (${Math.floor((Math.min(done, all) / all) * 100)}%)`
  return `${done} of ${all}${percent}`
}

export function statusText(seen: ContactImport): string {
  return seen.status ? clip(seen.status, MAX_STATUS_LENGTH).replaceAll('_', ' ') : 'without a status'
}

/** How many rows are processed. The interface doesn't say how the counts relate, so this is only an indication. */
export function processed(seen: ContactImport): number | undefined {
  const { created, updated, skipped, failed } = seen.counts ?? {}
  const counts = [created, updated, skipped, failed].filter(isCount)
  return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0)
}

export function total(seen: ContactImport): number | undefined {
  const count = seen.counts?.total
  return isCount(count) ? count : undefined
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
