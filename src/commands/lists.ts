import type { Context } from '../context.ts'
import { usageError } from '../errors.ts'
import { idOf, type PageFetcher, pages } from '../service/paging.ts'
import type { Settings } from '../settings/settings.ts'
import { shellQuote } from '../shell-quote.ts'
import type { Column } from '../terminal/columns.ts'
import { createListWriter } from '../terminal/list-writer.ts'
import { hint } from '../terminal/notices.ts'
import type { OptionDefinition } from './definition.ts'

export interface ListFlags {
  readonly limit?: number
  readonly all?: true
  readonly after?: string
  readonly before?: string
}

/** The options of every list of the service. @param usual what a list without them gives, for its help. */
export function listOptions(usual: string): readonly OptionDefinition[] {
  return [
    { flags: '--limit <n>', says: `how many items at most (${usual})`, parse: parseLimit },
    { flags: '--all', says: 'every item there is' },
    { flags: '--after <id>', says: 'start after this item', parse: (text) => parseCursor(text, '--after') },
    {
      flags: '--before <id>',
      says: 'only items in front of this one',
      parse: (text) => parseCursor(text, '--before'),
    },
  ]
}

/** @throws CliError exit 2 where it is not a whole number from 1. */
function parseLimit(text: string): number {
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit < 1)
    throw usageError(
      `--limit: ${JSON.stringify(text)} is not a whole number from 1 up`,
      'for everything there is: --all',
    )
  return limit
}

function parseCursor(text: string, option: string): string {
  if (text.trim() === '') throw usageError(`${option} is empty`, 'give the id of an item of the list')
  return text
}

export interface ServiceList<T> {
  readonly fetchPage: PageFetcher<T>
  /** Where neither `--limit` nor `--all` is given; undefined for everything. */
  readonly usualLimit: number | undefined
  readonly choose?: ((item: T) => boolean) | undefined
  readonly columns: readonly Column[]
  /** What a person reads where there is nothing. */
  readonly nothing: string
}

/**
 * Checks what was asked for before anything is sent.
 *
 * @throws CliError exit 2.
 */
export function requireRange(flags: ListFlags): void {
  if (flags.after !== undefined && flags.before !== undefined) {
    throw usageError(
      '--after and --before exclude each other',
      'a list goes on after one item or in front of one',
    )
  }
  if (flags.all && flags.limit !== undefined) throw usageError('--all and --limit exclude each other')
}

/** Prints a list of the service page by page, and where it is cut short, the command that goes on. */
export async function printList<T extends { readonly id?: string | null }>(
  list: ServiceList<T>,
  flags: ListFlags,
  context: Context,
  settings: Settings,
): Promise<void> {
  const { columns, nothing, fetchPage, choose } = list
  const writer = createListWriter({ context, settings, columns, nothing })
  const limit = flags.all ? undefined : (flags.limit ?? list.usualLimit)
  let hasMore = false
  let edge: string | undefined
  for await (const page of pages(fetchPage, { limit, after: flags.after, before: flags.before, choose })) {
    await writer.page(page)
    hasMore = page.hasMore
    // Forwards the last item of all, backwards the first.
    const item =
      flags.before === undefined ? page.items.at(-1) : edge === undefined ? page.items[0] : undefined
    if (item !== undefined) edge = idOf(item)
  }
  await writer.end(hasMore)
  if (hasMore && edge !== undefined) {
    const option = flags.before === undefined ? '--after' : '--before'
    await hint(
      `there are more: ${nextCommand(settings.argv, option, edge, context.platform)}`,
      context,
      settings,
    )
  }
}

/** The command that was typed, going on from another item: every other word kept, quoted for the shell. */
export function nextCommand(
  argv: readonly string[],
  option: '--after' | '--before',
  id: string,
  platform: NodeJS.Platform,
): string {
  const words: string[] = []
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    if (word === option) at++
    else if (!word.startsWith(`${option}=`)) words.push(word)
  }
  return ['mailclaim', ...words, option, id].map((word) => shellQuote(word, platform)).join(' ')
}
