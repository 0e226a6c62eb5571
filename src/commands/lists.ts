import { CliError, Exit, InterruptedError } from '../errors.ts'
import type { PageFetcher } from '../service/lists.ts'
import type { OptionDefinition, OptionValues } from '../settings/option.ts'
import { parseCount } from '../settings/parse-value.ts'
import { commandLine } from '../shell-quote.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'

/** The options of every list of the service. @param defaultLimit how many items there are without `--limit`. */
export function listOptions(defaultLimit: string) {
  return [
    {
      flags: '--limit <n>',
      description: 'maximum number of items',
      default: defaultLimit,
      parse: (text: string, name: string) => parseCount(text, name, 1),
    },
    { flags: '--all', description: 'all items', conflicts: ['--limit'] },
    { flags: '--after <id>', description: 'start after this item', conflicts: ['--before'] },
    { flags: '--before <id>', description: 'only items before this one' },
  ] as const satisfies readonly OptionDefinition[]
}

export interface ServiceList<T> {
  readonly fetchPage: PageFetcher<T>
  /** Applies without `--limit` and `--all`; undefined for all items. */
  readonly defaultLimit: number | undefined
  readonly filter?: ((item: T) => boolean) | undefined
  readonly columns: readonly Column[]
  /** What a person reads if the list is empty. */
  readonly nothing: string
}

/** Prints a list of this machine's own, as it is read. @param nothing what a person reads if it is empty */
export async function printPages(
  pages: AsyncIterable<readonly object[]> | Iterable<readonly object[]>,
  columns: readonly Column[],
  nothing: string,
  io: Io,
): Promise<void> {
  const writer = io.list(columns, nothing)
  for await (const items of pages) await writer.page({ items })
  await writer.end(false)
}

/**
 * Prints a list of the service page by page, and if it is cut short, the command that continues it.
 *
 * @throws CliError what `pages` throws; if something is printed already, with how much, and the command for the rest
 */
export async function printList<T extends { readonly id?: string | null }>(
  list: ServiceList<T>,
  flags: OptionValues<ReturnType<typeof listOptions>>,
  io: Io,
): Promise<void> {
  const { itemId, readPages } = await import('../service/lists.ts')
  const { columns, nothing, fetchPage, filter } = list
  const { settings } = io
  const writer = io.list(columns, nothing)
  const isBackward = flags.before !== undefined
  const limit = flags.all ? undefined : (flags.limit ?? list.defaultLimit)
  let hasMore = false
  let printed = 0
  let edge: string | undefined
  try {
    const range = { limit, after: flags.after, before: flags.before, filter }
    for await (const page of readPages(fetchPage, range, io.interrupts.signal)) {
      await writer.page(page)
      printed += page.items.length
      hasMore = page.hasMore
      // The next command starts from the last item, or backwards from the first one.
      const item = isBackward ? page.items[0] : page.items.at(-1)
      if (item !== undefined) edge = itemId(item)
    }
  } catch (error) {
    if (printed === 0 || !(error instanceof CliError) || error instanceof InterruptedError) throw error
    // The rest of a JSON document is no document. A refused cursor would be refused again.
    const mayPass = error.exit === Exit.unavailable && error.code !== 'no_progress'
    const goesOn = !isBackward && settings.format !== 'json' && mayPass
    const rest = flags.limit === undefined ? {} : { '--limit': String(flags.limit - printed) }
    throw error.with({
      message: `${error.message}; the list ends after ${printed} items`,
      ...(edge !== undefined &&
        goesOn && { hint: `for the rest: ${again(io, { ...rest, '--after': edge })}` }),
    })
  }
  await writer.end(hasMore)
  if (hasMore && edge !== undefined)
    await io.hint(`there are more: ${again(io, { [isBackward ? '--before' : '--after']: edge })}`)
}

/** The command that was typed, with other values of these options: all other words are kept, quoted for the shell. */
function again({ settings, platform }: Io, values: Readonly<Record<string, string>>): string {
  const { argv } = settings
  const isOther = (word = '') => !Object.hasOwn(values, word.replace(/=.*/s, ''))
  const end = argv.indexOf('--')
  const [before, after] = end < 0 ? [argv, []] : [argv.slice(0, end), argv.slice(end)]
  const others = before.filter(
    (word, at) => isOther(word) && (isOther(before[at - 1]) || before[at - 1]?.includes('=')),
  )
  return commandLine([...others, ...Object.entries(values).flat(), ...after], platform)
}
