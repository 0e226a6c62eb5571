import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { type PollTimes, poll, retryMessage } from '../service/polling.ts'
import { type ContactImport, IMPORT_STATUSES } from '../service/types.ts'
import { clip } from '../terminal/sanitize.ts'

/** Milliseconds between polls: an import changes faster than a claim. */
const DELAYS = { first: 1000, max: 10_000 } as const

/** Characters of a status in a message: far more than a real one has. */
const MAX_STATUS_LENGTH = 80

/** What `imports watch --format jsonl` writes, one per line; `waiting` means that the counts changed. */
export interface ImportEvent {
  readonly event: 'status' | 'waiting' | 'warning' | 'done'
  /** ISO 8601. */
  readonly at: string
  readonly message: string
  /** The import as last seen. */
  readonly import: ContactImport
}

/**
 * Watches an import until it is completed or failed. Yields each change and each problem, and returns the import at its
 * end.
 *
 * @param fetch gets the import
 * @throws CliError `import_in_flight`, exit 8, after `timeoutMs`; what `poll` throws
 */
export async function* watchImport(
  fetch: () => Promise<ContactImport>,
  times: PollTimes,
  context: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<ImportEvent, ContactImport, void> {
  let last: ContactImport | undefined
  const eventOf = (event: ImportEvent['event'], message: string, seen: ContactImport): ImportEvent => ({
    event,
    at: new Date(context.clock.now()).toISOString(),
    message,
    import: seen,
  })

  for await (const polled of poll(fetch, { ...times, delays: DELAYS }, context)) {
    if (polled.kind === 'timeout') break
    if (polled.kind === 'failure') {
      if (last !== undefined) yield eventOf('warning', retryMessage(polled), last)
      continue
    }
    const previous = last
    last = polled.value
    if (last.status === 'completed' || last.status === 'failed') {
      yield eventOf('done', summary(last), last)
      return last
    }
    if (previous === undefined || previous.status !== last.status) {
      const isKnown = (IMPORT_STATUSES as readonly unknown[]).includes(last.status)
      yield isKnown
        ? eventOf('status', summary(last), last)
        : eventOf('warning', `${summary(last)}: unknown status; still waiting`, last)
    } else if (processed(previous) !== processed(last) || total(previous) !== total(last)) {
      yield eventOf('waiting', summary(last), last)
    }
  }
  throw new CliError(
    'import_in_flight',
    Exit.notYet,
    last === undefined ? 'timed out' : `timed out: the import is still ${statusText(last)}`,
    { hint: 'the import continues; to keep watching: mailclaim imports watch' },
  )
}

/** Status and progress: "in progress, 1200 of 5000 (24%)". */
export function summary(seen: ContactImport): string {
  const done = processed(seen)
  const all = total(seen)
  if (done === undefined || all === undefined) return statusText(seen)
  const percent = all === 0 ? '' : ` (${Math.floor((Math.min(done, all) / all) * 100)}%)`
  return `${statusText(seen)}, ${done} of ${all}${percent}`
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
