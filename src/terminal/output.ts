import type { Context, Output } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { createPalette, hasColor } from './color.ts'
import {
  type Column,
  cellText,
  chooseColumns,
  columnValue,
  type Item,
  type RenderContext,
} from './columns.ts'
import { escapeTsv, stringifyJson } from './sanitize.ts'

/** What the formats need of a command's `Io`. */
export interface OutputContext extends Pick<Context, 'stdout' | 'environment' | 'clock'> {
  readonly settings: Settings
  /** Writes what happens to stderr, each text as one line; nothing with `--quiet` or where a program reads. */
  say(...lines: readonly string[]): Promise<void>
  /** Suggests a next step, on stderr; nothing with `--quiet`. */
  hint(text: string): Promise<void>
}

/** How items are shown on stdout: on a terminal, in its width and with relative times. */
export async function createRenderContext(
  { environment, settings, clock, stdout }: OutputContext,
  output: Output = stdout,
): Promise<RenderContext> {
  const palette = await createPalette(hasColor(environment, settings.colorOption, output))
  return { palette, width: output.columns ?? Number.POSITIVE_INFINITY, now: clock.now() }
}

/** Whether a person reads on stderr what was done, and needs no table of it. */
export function isForPeople({ format, fields }: Settings): boolean {
  return format === 'table' && fields === undefined
}

/**
 * Writes one object in the chosen format: a detail view for people, a heading and a record in TSV, the service's own object in
 * JSON. A detail view ends with the fields that no column covers, so nothing the service adds stays hidden.
 */
export async function writeObject(item: Item, columns: readonly Column[], io: OutputContext): Promise<void> {
  const { stdout, settings, clock } = io
  if (settings.format === 'json')
    return stdout.write(`${stringifyJson(item, stdout.isTTY ? 2 : undefined)}\n`)
  if (settings.format === 'jsonl') return stdout.write(`${stringifyJson(item)}\n`)
  if (settings.format === 'tsv') {
    const shown = chooseColumns(columns, settings.fields, 'programs')
    return stdout.write(headingLine(shown) + recordLine(item, shown, clock.now()))
  }
  const shown = [...chooseColumns(columns, settings.fields, 'people')]
  if (settings.fields === undefined) shown.push(...uncoveredColumns(item, columns))
  const { renderDetailView } = await import('./detail-view.ts')
  await stdout.write(renderDetailView(item, shown, await createRenderContext(io)))
}

function uncoveredColumns(item: Item, columns: readonly Column[]): Column[] {
  const covered = new Set(columns.map((column) => column.field.split('.', 1)[0]))
  return Object.keys(item)
    .filter((key) => key !== 'object' && !covered.has(key))
    .map((key) => ({ field: key, value: (whole) => (whole as Record<string, unknown>)[key] }))
}

/** The line of headings in TSV. */
function headingLine(columns: readonly Column[]): string {
  return `${columns.map(({ field }) => escapeTsv(field)).join('\t')}\n`
}

/** One record of TSV, including its line end. */
function recordLine(item: Item, columns: readonly Column[], now: number): string {
  return `${columns.map((column) => escapeTsv(cellText(columnValue(column, item, now)))).join('\t')}\n`
}

/** Writes a list page by page, in the chosen format. */
export interface ListWriter {
  /**
   * When it settles, the page is on stdout.
   *
   * @param page its items; and the service's envelope, of which JSON shows what it has besides them
   */
  page(page: { readonly items: readonly Item[]; readonly envelope?: object }): Promise<void>
  /** Completes the output. Not called after a failure, so that nobody takes an unfinished JSON document for a complete one. */
  end(hasMore: boolean): Promise<void>
}

/**
 * A writer for the chosen format. A page is written as it comes, so `has_more` of JSON follows `data`.
 *
 * @param nothing what a person reads on stderr if the list is empty: "no grants"
 */
export function createListWriter(
  columns: readonly Column[],
  nothing: string | undefined,
  io: OutputContext,
): ListWriter {
  const { stdout, settings, clock } = io
  switch (settings.format) {
    case 'json':
      return jsonWriter(stdout)
    case 'jsonl':
      return {
        page: ({ items }) => stdout.write(items.map((item) => `${stringifyJson(item)}\n`).join('')),
        end: async () => {},
      }
    case 'tsv': {
      const shown = chooseColumns(columns, settings.fields, 'programs')
      let heading = headingLine(shown)
      const page: ListWriter['page'] = async ({ items }) => {
        await stdout.write(heading + items.map((item) => recordLine(item, shown, clock.now())).join(''))
        heading = ''
      }
      return { page, end: () => page({ items: [] }) }
    }
    default:
      return tableWriter(chooseColumns(columns, settings.fields, 'people'), nothing, io)
  }
}

/** Items that are laid out together: a service may send any number, and the time grows with their square. */
const MAX_ROWS = 1000

function tableWriter(columns: readonly Column[], nothing: string | undefined, io: OutputContext): ListWriter {
  const loading = (async () => {
    const [{ createTable }, rendering] = await Promise.all([import('./table.ts'), createRenderContext(io)])
    return createTable(columns, rendering)
  })()
  loading.catch(() => {})
  let count = 0
  return {
    async page({ items }) {
      count += items.length
      for (let at = 0; at < items.length; at += MAX_ROWS)
        await io.stdout.write((await loading).render(items.slice(at, at + MAX_ROWS)))
    },
    async end(hasMore) {
      if (count === 0 && nothing !== undefined) await io.say(nothing)
      const hidden = (await loading).hiddenColumns().map(({ field }) => field)
      // How to go on is the hint of a list that isn't complete.
      if (hidden.length > 0 && !hasMore)
        await io.hint(`for ${hidden.join(', ')}, use --fields or a wider window`)
    },
  }
}

/** One document: on a terminal an item a line, elsewhere all on one. */
function jsonWriter(stdout: Output): ListWriter {
  const line = stdout.isTTY ? '\n' : ''
  let isOpen = false
  let count = 0
  const head = (envelope: object = {}) => {
    if (isOpen) return ''
    isOpen = true
    const { data: _data, has_more: _more, ...others } = envelope as Record<string, unknown>
    return `${stringifyJson({ object: 'list', ...others }).slice(0, -1)},"data":[`
  }
  return {
    async page({ items, envelope }) {
      const texts = items.map((item) => `${count++ > 0 ? ',' : ''}${line}${stringifyJson(item)}`)
      await stdout.write(head(envelope) + texts.join(''))
    },
    async end(hasMore) {
      await stdout.write(`${head()}${line}],"has_more":${hasMore}}\n`)
    },
  }
}
