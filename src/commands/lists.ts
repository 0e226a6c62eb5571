import type { Context } from '../context.ts'
import { CliError, InterruptedError } from '../errors.ts'
import { idOf, type PageFetcher, pages } from '../service/paging.ts'
import { parseCount } from '../settings/parse-value.ts'
import type { Settings } from '../settings/settings.ts'
import { commandWith } from '../settings/suggested-commands.ts'
import type { Column } from '../terminal/columns.ts'
import { createListWriter } from '../terminal/list-writer.ts'
import { hint } from '../terminal/notices.ts'
import type { OutputContext, OutputSettings } from '../terminal/output.ts'
import type { OptionDefinition } from './definition.ts'

export interface ListFlags {
  readonly limit?: number
  readonly all?: true
  readonly after?: string
  readonly before?: string
}

/** The options of every list of the service. @param defaultLimit how many items there are without `--limit`. */
export function listOptions(defaultLimit: string): readonly OptionDefinition[] {
  return [
    {
      flags: '--limit <n>',
      description: 'maximum number of items',
      default: defaultLimit,
      parse: (text) => parseCount(text, '--limit', 1, 'for all items: --all'),
    },
    { flags: '--all', description: 'all items', conflicts: ['--limit'] },
    { flags: '--after <id>', description: 'start after this item', conflicts: ['--before'] },
    { flags: '--before <id>', description: 'only items before this one' },
  ]
}

export interface ServiceList<T> {
  readonly fetchPage: PageFetcher<T>
  /** Applies without `--limit` and `--all`; undefined for all items. */
  readonly defaultLimit: number | undefined
  readonly choose?: ((item: T) => boolean) | undefined
  readonly columns: readonly Column[]
  /** What a person reads if the list is empty. */
  readonly nothing: string
}

/** Prints a list that is complete. @param nothing what a person reads if it is empty. */
export async function printItems(
  items: readonly object[],
  columns: readonly Column[],
  nothing: string,
  context: OutputContext,
  settings: OutputSettings,
): Promise<void> {
  await printPages([items], columns, nothing, context, settings)
}

/** As `printItems`, while the items are still being read. */
export async function printPages(
  pages: AsyncIterable<readonly object[]> | Iterable<readonly object[]>,
  columns: readonly Column[],
  nothing: string,
  context: OutputContext,
  settings: OutputSettings,
): Promise<void> {
  const writer = createListWriter({ context, settings, columns, nothing })
  const envelope = { object: 'list', has_more: false, data: [] }
  for await (const items of pages) await writer.page({ items, envelope, finalHasMore: false })
  await writer.end(false)
}

/**
 * Prints a list of the service page by page, and if it is cut short, the command that continues it.
 *
 * @throws CliError what `pages` throws; if something is printed already, with how much, and the command for the rest
 */
export async function printList<T extends { readonly id?: string | null }>(
  list: ServiceList<T>,
  flags: ListFlags,
  context: Context,
  settings: Settings,
): Promise<void> {
  const { columns, nothing, fetchPage, choose } = list
  const writer = createListWriter({ context, settings, columns, nothing })
  const limit = flags.all ? undefined : (flags.limit ?? list.defaultLimit)
  let hasMore = false
  let printed = 0
  let edge: string | undefined
  const range = { limit, after: flags.after, before: flags.before, choose }
  try {
    for await (const page of pages(fetchPage, range, context.interrupts.signal)) {
      await writer.page(page)
      printed += page.items.length
      hasMore = page.hasMore
      // The next command starts from the last item, or backwards from the first one.
      const item =
        flags.before === undefined ? page.items.at(-1) : edge === undefined ? page.items[0] : undefined
      if (item !== undefined) edge = idOf(item)
    }
  } catch (error) {
    if (printed === 0 || !(error instanceof CliError) || error instanceof InterruptedError) throw error
    const { code, exit, message, hint } = error
    const rest = flags.limit === undefined ? {} : { '--limit': String(flags.limit - printed) }
    // The rest of a JSON document is no document, and after a list that doesn't go on there is none.
    const again =
      edge === undefined || flags.before !== undefined || settings.format === 'json' || code === 'no_progress'
        ? undefined
        : `for the rest: ${commandWith(settings.argv, { ...rest, '--after': edge }, context.platform)}`
    throw new CliError(code, exit, `${message}; the list isn't whole: it ends after ${printed} items`, {
      ...error,
      hint: [hint, again].filter(Boolean).join('\n') || undefined,
      cause: error,
    })
  }
  await writer.end(hasMore)
  if (hasMore && edge !== undefined) {
    const option = flags.before === undefined ? '--after' : '--before'
    await hint(
      `there are more: ${commandWith(settings.argv, { [option]: edge }, context.platform)}`,
      context,
      // A program has to learn it too.
      { ...settings, quiet: settings.quiet === true },
    )
  }
}
