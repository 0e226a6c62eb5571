import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { poll } from '../service/polling.ts'
import { type ContactImport, IMPORT_STATUSES } from '../service/types.ts'
import { clip } from '../terminal/sanitize.ts'

/** An import moves faster than a claim: the pauses grow from one second to ten, in milliseconds. */
const PAUSES = { firstMs: 1000, maxMs: 10_000 } as const

/** Characters of a status that a message shows: it is one word, unless the service is broken. */
const LONGEST_STATUS = 80

export interface ImportWatchOptions {
  /** A fixed pause between two questions, in milliseconds; undefined: growing. */
  readonly intervalMs: number | undefined
  readonly timeoutMs: number | undefined
}

/** What `imports watch --format jsonl` writes, a line each: `waiting` is for counts that changed. */
export interface ImportEvent {
  readonly event: 'status' | 'waiting' | 'warning' | 'done'
  /** ISO 8601. */
  readonly at: string
  readonly message: string
  /** The import as it was last seen. */
  readonly import: ContactImport
}

/**
 * Follows an import until it is completed or failed. Yields every change and every problem, and returns it as it ended.
 *
 * @param fetch asks for the import.
 * @throws CliError `import_in_flight`, exit 8, when `timeoutMs` is over; what `poll` throws.
 */
export async function* watchImport(
  fetch: () => Promise<ContactImport>,
  options: ImportWatchOptions,
  context: Context,
): AsyncGenerator<ImportEvent, ContactImport, void> {
  const pauses =
    options.intervalMs === undefined ? PAUSES : { firstMs: options.intervalMs, maxMs: options.intervalMs }
  let last: ContactImport | undefined
  const event = (kind: ImportEvent['event'], message: string, seen: ContactImport): ImportEvent => ({
    event: kind,
    at: new Date(context.clock.now()).toISOString(),
    message,
    import: seen,
  })

  for await (const answer of poll(fetch, { ...pauses, timeoutMs: options.timeoutMs }, context)) {
    if (answer.kind === 'timeout') break
    if (answer.kind === 'problem') {
      const seconds = Math.ceil(answer.nextMs / 1000)
      if (last !== undefined)
        yield event('warning', `${answer.error.message}; asking again in ${seconds} s`, last)
      continue
    }
    const before = last
    last = answer.value
    if (last.status === 'completed' || last.status === 'failed') {
      yield event('done', summary(last), last)
      return last
    }
    if (before === undefined || before.status !== last.status) {
      const known = (IMPORT_STATUSES as readonly unknown[]).includes(last.status)
      yield known
        ? event('status', summary(last), last)
        : event('warning', `${summary(last)}: a status that this program does not know; waiting on`, last)
    } else if (processed(before) !== processed(last) || total(before) !== total(last)) {
      yield event('waiting', summary(last), last)
    }
  }
  throw new CliError(
    'import_in_flight',
    Exit.notYet,
    last === undefined ? 'the time ran out' : `the import is still ${spokenStatus(last)}; the time ran out`,
    { hint: 'it goes on by itself; follow it again with: mailclaim imports watch' },
  )
}

/** How far it has come: "in progress, 1200 of 5000 (24%)". */
export function summary(seen: ContactImport): string {
  const done = processed(seen)
  const all = total(seen)
  if (done === undefined || all === undefined) return spokenStatus(seen)
  const percent = all === 0 ? '' : ` (${Math.floor((Math.min(done, all) / all) * 100)}%)`
  return `${spokenStatus(seen)}, ${done} of ${all}${percent}`
}

export function spokenStatus(seen: ContactImport): string {
  return seen.status ? clip(seen.status, LONGEST_STATUS).replaceAll('_', ' ') : 'without a status'
}

/** The rows that have an outcome. How the counts relate is not stated, so this is a measure of progress, not a sum. */
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
