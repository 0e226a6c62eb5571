import type { Context, OutputStream } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { createPalette, usesColor } from './color.ts'
import { type Column, chooseColumns, formatCellValue, getColumnValue, type RenderContext } from './columns.ts'
import { escapeTsvCell, stringifyJson } from './sanitize.ts'

/** The part of a command's `Io` that the output formats use. */
export interface OutputContext extends Pick<Context, 'stdout' | 'environment' | 'clock'> {
  readonly settings: Settings
  /** Writes each text to stderr as one line, wrapped on a terminal. Does nothing with `--quiet` or a JSON format. */
  say(...lines: readonly string[]): Promise<void>
  /** Suggests a next step on stderr, unless `--quiet`. */
  hint(text: string): Promise<void>
}

/** Returns the colors and width of an output (by default stdout), and the current time, for the layout of items. */
export async function createRenderContext(
  { environment, settings, clock, stdout }: OutputContext,
  output: OutputStream = stdout,
): Promise<RenderContext> {
  const palette = await createPalette(usesColor(environment, settings.colorOption, output))
  return { palette, width: output.columns ?? Number.POSITIVE_INFINITY, now: clock.now() }
}

/** Whether the command may choose its own layout for people: the format is `table`, and `--fields` isn't given. */
export function hasOwnLayout({ format, fields }: Settings): boolean {
  return format === 'table' && fields === undefined
}

/**
 * Writes one object to stdout in the chosen format; in JSON unchanged. Without `--fields`, a detail view also shows fields that
 * have no column, such as new ones of the service.
 */
export async function writeObject(
  item: object,
  columns: readonly Column[],
  io: OutputContext,
): Promise<void> {
  const { stdout, settings, clock } = io
  if (settings.format === 'json')
    return stdout.write(`${stringifyJson(item, stdout.isTTY ? 2 : undefined)}\n`)
  if (settings.format === 'jsonl') return stdout.write(`${stringifyJson(item)}\n`)
  if (settings.format === 'tsv') {
    const shown = chooseColumns(columns, settings.fields, 'programs')
    return stdout.write(tsvHeader(shown) + tsvRecord(item, shown, clock.now()))
  }
  const shown = [...chooseColumns(columns, settings.fields, 'people')]
  if (settings.fields === undefined) shown.push(...uncoveredColumns(item, columns))
  const { renderDetailView } = await import('./detail-view.ts')
  await stdout.write(renderDetailView(item, shown, await createRenderContext(io)))
}

/** Returns plain columns for the item's top-level fields, except `object`, that no column of the command belongs to. */
function uncoveredColumns(item: object, columns: readonly Column[]): Column[] {
  const covered = new Set(columns.map((column) => column.field.split('.', 1)[0]))
  return Object.keys(item)
    .filter((key) => key !== 'object' && !covered.has(key))
    .map((key) => ({ field: key, value: (whole) => (whole as Record<string, unknown>)[key] }))
}

function tsvHeader(columns: readonly Column[]): string {
  return `${columns.map(({ field }) => escapeTsvCell(field)).join('\t')}\n`
}

function tsvRecord(item: object, columns: readonly Column[], now: number): string {
  return `${columns.map((column) => escapeTsvCell(formatCellValue(getColumnValue(column, item, now)))).join('\t')}\n`
}

/** Writer of a list, page by page, in the chosen format. */
export interface ListWriter {
  /** Writes one page to stdout. JSON also gets the fields of the first page's `envelope`, except `data` and `has_more`. */
  page(page: { readonly items: readonly object[]; readonly envelope?: object }): Promise<void>
  /** Completes the output. Must not be called after a failure, so that an incomplete JSON document stays invalid. */
  end(hasMore: boolean): Promise<void>
}

/**
 * Creates a list writer for the chosen format. Pages are written as they arrive, so `has_more` follows `data` in JSON.
 *
 * @param ifEmpty text on stderr if a table is empty, such as "There are no grants."
 */
export function createListWriter(
  columns: readonly Column[],
  ifEmpty: string | undefined,
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
      let heading = tsvHeader(shown)
      const page: ListWriter['page'] = async ({ items }) => {
        await stdout.write(heading + items.map((item) => tsvRecord(item, shown, clock.now())).join(''))
        heading = ''
      }
      return { page, end: () => page({ items: [] }) }
    }
    default:
      return tableWriter(chooseColumns(columns, settings.fields, 'people'), ifEmpty, io)
  }
}

/** Maximum number of rows laid out together: layout takes quadratic time, and a service may send pages of any size. */
const MAX_ROWS = 1000

function tableWriter(columns: readonly Column[], ifEmpty: string | undefined, io: OutputContext): ListWriter {
  const loading = (async () => {
    const [{ createPagedTable }, context] = await Promise.all([import('./table.ts'), createRenderContext(io)])
    return createPagedTable(columns, context)
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
      if (count === 0 && ifEmpty !== undefined) await io.say(ifEmpty)
      const hidden = (await loading).hiddenColumns().map(({ field }) => field)
      // Omit the hint about hidden columns if the list is incomplete: the caller then prints a hint on how to continue.
      if (hidden.length > 0 && !hasMore)
        await io.hint(`for ${hidden.join(', ')}, use --fields or a wider window`)
    },
  }
}

/** Creates a list writer for one JSON document: on a terminal with one item per line, elsewhere on a single line. */
function jsonWriter(stdout: OutputStream): ListWriter {
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
