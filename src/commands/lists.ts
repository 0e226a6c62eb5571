import { CliError, Exit, InterruptedError } from '../errors.ts'
import type { ServiceClient } from '../service/client.ts'
import type { PageFetcher } from '../service/lists.ts'
import type { OptionDefinition, OptionValues } from '../settings/option.ts'
import { parseInteger } from '../settings/parse-value.ts'
import { mailclaimCommand } from '../shell-quote.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'

/** Returns the paging options of commands that print a list of the service. @param defaultLimit default of `--limit`, for help */
export function createPagingOptions(defaultLimit: string) {
  return [
    {
      flags: '--limit <n>',
      description: 'maximum number of items',
      default: defaultLimit,
      parse: (text: string, name: string) => parseInteger(text, name, 1),
    },
    { flags: '--all', description: 'all items', conflicts: ['--limit'] },
    { flags: '--after <id>', description: 'start after this item', conflicts: ['--before'] },
    { flags: '--before <id>', description: 'only items before this one' },
  ] as const satisfies readonly OptionDefinition[]
}

/** A list that a command prints from the service: how to request its pages, which items to print, and their columns. */
export interface ServiceListDefinition<T> {
  /** Creates the function that requests a page of the list from the service. */
  readonly fetcher: (lists: typeof import('../service/lists.ts'), client: ServiceClient) => PageFetcher<T>
  /** Maximum number of items if neither `--limit` nor `--all` is given; undefined for all items. */
  readonly defaultLimit?: number
  /** Whether to print an item; undefined to print every item. `--limit` counts the printed items. */
  readonly filter?: ((item: T) => boolean) | undefined
  readonly columns: readonly Column[]
  /** Text on stderr for an empty table. */
  readonly ifEmpty: string
}

/**
 * Prints a list that the service doesn't page, such as the profiles, or the claims of the ledger.
 *
 * @param pages parts of the list; each is printed as soon as it is complete
 * @param ifEmpty text on stderr for an empty table
 */
export async function printLocalList(
  pages: AsyncIterable<readonly object[]> | Iterable<readonly object[]>,
  columns: readonly Column[],
  ifEmpty: string,
  io: Io,
): Promise<void> {
  const writer = io.list(columns, ifEmpty)
  for await (const items of pages) await writer.page({ items })
  await writer.end(false)
}

/**
 * Prints a list that the service returns, each page as it arrives. If the service has more items, prints a hint with the command
 * that prints the next ones.
 *
 * @throws CliError as `readListPages`; the message tells the number of printed items, if any, except for an interrupt
 */
export async function printServiceList<T extends { readonly id?: string | null }>(
  list: ServiceListDefinition<T>,
  flags: OptionValues<ReturnType<typeof createPagingOptions>>,
  io: Io,
): Promise<void> {
  const [lists, { openClient }] = await Promise.all([
    import('../service/lists.ts'),
    import('../session/client.ts'),
  ])
  const { columns, ifEmpty, fetcher, filter } = list
  const { settings } = io
  const writer = io.list(columns, ifEmpty)
  const isBackward = flags.before !== undefined
  const limit = flags.all ? undefined : (flags.limit ?? list.defaultLimit)
  let hasMore = false
  let printed = 0
  let cursor: string | undefined
  try {
    const selection = { limit, after: flags.after, before: flags.before, filter }
    const fetchPage = fetcher(lists, openClient(io))
    for await (const page of lists.readListPages(fetchPage, selection, io.interrupts.signal)) {
      await writer.page(page)
      printed += page.items.length
      hasMore = page.hasMore
      // The cursor of the next page is the id of this page's last item or, with `--before`, of its first item.
      const item = isBackward ? page.items[0] : page.items.at(-1)
      if (item !== undefined) cursor = lists.readItemId(item)
    }
  } catch (error) {
    if (printed === 0 || !(error instanceof CliError) || error instanceof InterruptedError) throw error
    const mayPass = error.exit === Exit.unavailable && error.code !== 'no_progress'
    // Suggest no command for the remaining items with `--format json` (two outputs don't form one document), with `--before`, or
    // for an error that would recur, such as a refused cursor.
    const canContinue = !isBackward && settings.format !== 'json' && mayPass
    const rest = flags.limit === undefined ? {} : { '--limit': String(flags.limit - printed) }
    throw error.with({
      message: `${error.message}; the list ends after ${printed} items`,
      ...(cursor !== undefined &&
        canContinue && { hint: `for the rest: ${repeatCommand(io, { ...rest, '--after': cursor })}` }),
    })
  }
  await writer.end(hasMore)
  if (hasMore && cursor !== undefined)
    await io.hint(`there are more: ${repeatCommand(io, { [isBackward ? '--before' : '--after']: cursor })}`)
}

/**
 * Returns the typed command line, quoted for the shell, with the options of `values` added or replaced. @param values option values
 * by flag
 */
function repeatCommand({ settings, platform }: Io, values: Readonly<Record<string, string>>): string {
  const { argv } = settings
  const isOther = (word = '') => !Object.hasOwn(values, word.replace(/=.*/s, ''))
  const end = argv.indexOf('--')
  const [before, after] = end < 0 ? [argv, []] : [argv.slice(0, end), argv.slice(end)]
  const others = before.filter(
    (word, at) => isOther(word) && (isOther(before[at - 1]) || before[at - 1]?.includes('=')),
  )
  return mailclaimCommand([...others, ...Object.entries(values).flat(), ...after], platform)
}
