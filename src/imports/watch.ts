import { CliError } from '../errors.ts'
import type { ServiceClient } from '../service/client.ts'
import { followResource, showEvents } from '../service/follow.ts'
import { getContactImport } from '../service/lists.ts'
import type { ContactImport } from '../service/types.ts'
import type { Io } from '../terminal/io.ts'
import { canAnimateStderr } from '../terminal/progress.ts'
import { clip } from '../terminal/sanitize.ts'
import type { Deadline } from '../timeout.ts'
import { IMPORT_COLUMNS } from './columns.ts'

/** First and maximum delay between polls, in milliseconds; shorter than for claims, because imports change faster. */
const DELAYS = { firstMs: 1000, maxMs: 10_000 } as const
/** Maximum characters of an import's status in a message, so that an odd response can't flood the terminal. */
const MAX_STATUS_LENGTH = 80

/**
 * Polls an import until it is completed or failed, or until the deadline. Prints its events in jsonl, otherwise the import at the
 * end.
 *
 * @throws CliError `import_failed`, exit 9, and at the deadline `import_in_flight`, exit 8, both after printing; CliError as
 *   `followResource`
 */
export async function watchImport(
  id: string,
  deadline: Deadline,
  client: ServiceClient,
  io: Io,
): Promise<void> {
  const isEvents = io.settings.format === 'jsonl'
  const events = followResource<ContactImport>(
    {
      deadline,
      delays: DELAYS,
      fetch: (options) => getContactImport(client, id, options),
      describe(latest) {
        const { status } = latest
        const text = formatSummary(latest)
        const isEnd = status === 'completed' || status === 'failed'
        return {
          status: `${status}`,
          details: `${countProcessed(latest)} ${countTotal(latest)}`,
          text,
          ...(isEnd && { end: { error: status === 'failed' ? failedError(id, text) : undefined } }),
        }
      },
      timeout: () => ({
        code: 'import_in_flight',
        what: `the import ${id}`,
        hint: `it continues; to keep watching: mailclaim imports watch ${id}`,
      }),
    },
    io,
  )
  const { value, error } = await showEvents(events, async ({ event, value: latest, text, error: cause }) => {
    if (isEvents) return io.writeEvent(event, { import: latest, ...cause?.toJSON() })
    if (event === 'warning') return io.warn(text)
    await io.progress.update(`${canAnimateStderr(io) ? formatBar(latest) : 'import: '}${text}`)
  }).finally(() => io.progress.end())
  if (!isEvents) await io.write(value, IMPORT_COLUMNS)
  if (error !== undefined) throw error
  const failed = value.counts?.failed
  if (typeof failed === 'number' && failed > 0) await io.warn(`couldn't import ${failed} of the contacts`)
}

function failedError(id: string, text: string): CliError {
  return new CliError('import_failed', `the import ${id} failed (${text})`, {
    hint: 'the API gives no reason; check the import in the web application, then start a new one',
  })
}

const BAR_WIDTH = 30

/** Returns a progress bar and two spaces; an empty string if the total or the processed contacts are unknown, or the total is 0. */
function formatBar(latest: ContactImport): string {
  const [all, done] = [countTotal(latest), countProcessed(latest)]
  if (!all || done === undefined) return ''
  const full = Math.floor(Math.min(1, done / all) * BAR_WIDTH)
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}  `
}

/** Returns status and progress, such as "in progress, 1200 of 5000 (24%)"; just the status if a number is unknown. */
function formatSummary(latest: ContactImport): string {
  const [all, done] = [countTotal(latest), countProcessed(latest)]
  if (done === undefined || all === undefined) return formatStatus(latest)
  const percent = all === 0 ? '' : ` (${Math.floor((Math.min(done, all) / all) * 100)}%)`
  return `${formatStatus(latest)}, ${done} of ${all}${percent}`
}

const formatStatus = ({ status }: ContactImport): string =>
  status ? clip(status, MAX_STATUS_LENGTH).replaceAll('_', ' ') : 'without a status'

/**
 * Returns the number of processed contacts; undefined if the service sent no counts. An estimate: the API doesn't say whether a
 * contact can be in several of the counts that are added.
 */
function countProcessed(latest: ContactImport): number | undefined {
  const { created, updated, skipped, failed } = latest.counts ?? {}
  const counts = [created, updated, skipped, failed].filter(isCount)
  return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0)
}

const countTotal = ({ counts }: ContactImport): number | undefined =>
  isCount(counts?.total) ? counts.total : undefined

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
