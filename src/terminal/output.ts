import type { Context } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { colorLevel, createPalette, type Palette } from './color.ts'
import {
  type Column,
  chooseColumns,
  columnValue,
  type Item,
  jsonLinesOf,
  jsonOf,
  plainText,
  type RenderContext,
} from './columns.ts'
import { hint } from './notices.ts'
import { escapeTsv } from './sanitize.ts'

/** What decides how data is written to stdout. */
type OutputContext = Pick<Context, 'stdout' | 'stderr' | 'environment' | 'clock'>
type OutputSettings = Pick<Settings, 'format' | 'formatGiven' | 'fields' | 'quiet' | 'silent' | 'colorOption'>

/** Spaces per level of JSON on a terminal; elsewhere JSON is one line. */
const INDENT = 2

/** The palette for people's output on stdout. */
export function stdoutPalette(
  { environment, stdout }: Pick<OutputContext, 'environment' | 'stdout'>,
  { colorOption }: Pick<OutputSettings, 'colorOption'>,
): Promise<Palette> {
  return createPalette(colorLevel(environment, colorOption, stdout))
}

/** How items are shown on stdout: on a terminal, in its width and with relative times. */
async function renderContext(context: OutputContext, settings: OutputSettings): Promise<RenderContext> {
  const { stdout, clock } = context
  return {
    palette: await stdoutPalette(context, settings),
    width: stdout.columns ?? Number.POSITIVE_INFINITY,
    now: stdout.isTTY ? clock.now() : undefined,
  }
}

/** One document on stdout: indented on a terminal, one line elsewhere. */
export async function writeJson({ stdout }: Pick<Context, 'stdout'>, value: unknown): Promise<void> {
  await stdout.write(`${jsonOf(value, stdout.isTTY ? INDENT : undefined)}\n`)
}

/** Whether a person at a terminal reads on stderr what was done, and needs no table of it. */
export function isToldOnStderr({ format, formatGiven, fields }: OutputSettings): boolean {
  return format === 'table' && !formatGiven && fields === undefined
}

/**
 * Writes one object in the chosen format: a detail view for people, a heading and a record in TSV, the service's own object in
 * JSON. A detail view ends with the fields that no column covers, so nothing the service adds stays hidden.
 */
export async function writeObject(
  context: OutputContext,
  settings: OutputSettings,
  item: Item,
  columns: readonly Column[],
): Promise<void> {
  const { stdout } = context
  if (settings.format === 'json') return writeJson(context, item)
  if (settings.format === 'jsonl') return stdout.write(jsonLinesOf([item]))
  if (settings.format === 'tsv') {
    const shown = chooseColumns(columns, settings.fields, 'programs')
    return stdout.write(headingLine(shown) + recordLine(item, shown))
  }
  const shown = [...chooseColumns(columns, settings.fields, 'people')]
  if (settings.fields === undefined) shown.push(...uncovered(item, columns))
  const [{ renderDetailView }, rendering] = await Promise.all([
    import('./detail-view.ts'),
    renderContext(context, settings),
  ])
  await stdout.write(renderDetailView(item, shown, rendering))
}

function uncovered(item: Item, columns: readonly Column[]): Column[] {
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
function recordLine(item: Item, columns: readonly Column[]): string {
  return `${columns.map((column) => escapeTsv(plainText(columnValue(column, item)))).join('\t')}\n`
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

interface ListWriterOptions {
  readonly context: OutputContext
  readonly settings: OutputSettings
  readonly columns: readonly Column[]
  /** What a person reads on stderr if the list is empty: "no grants". */
  readonly nothing: string | undefined
}

/** A writer for the chosen format. A page is written as it comes, so `has_more` of JSON follows `data`. */
export function createListWriter(options: ListWriterOptions): ListWriter {
  const { context, settings, columns } = options
  const { stdout } = context
  switch (settings.format) {
    case 'json':
      return jsonWriter(context)
    case 'jsonl':
      return { page: ({ items }) => stdout.write(jsonLinesOf(items)), end: async () => {} }
    case 'tsv': {
      const shown = chooseColumns(columns, settings.fields, 'programs')
      let heading = headingLine(shown)
      const page: ListWriter['page'] = async ({ items }) => {
        await stdout.write(heading + items.map((item) => recordLine(item, shown)).join(''))
        heading = ''
      }
      return { page, end: () => page({ items: [] }) }
    }
    default:
      return tableWriter(options)
  }
}

function tableWriter({ context, settings, columns, nothing }: ListWriterOptions): ListWriter {
  const loading = (async () => {
    const [{ TableRenderer }, rendering] = await Promise.all([
      import('./table.ts'),
      renderContext(context, settings),
    ])
    return new TableRenderer(chooseColumns(columns, settings.fields, 'people'), rendering)
  })()
  loading.catch(() => {})
  let count = 0
  return {
    async page({ items }) {
      count += items.length
      await context.stdout.write((await loading).render(items))
    },
    async end() {
      if (count === 0 && nothing !== undefined && !settings.quiet) await context.stderr.write(`${nothing}\n`)
      const leftOut = (await loading).leftOut.map(({ field }) => field)
      if (leftOut.length > 0)
        await hint(`for ${leftOut.join(', ')}, use --fields or a wider window`, context, settings)
    },
  }
}

function jsonWriter({ stdout }: Pick<Context, 'stdout'>): ListWriter {
  const [indent, line, inner] = stdout.isTTY ? [INDENT, '\n  ', '\n    '] : [undefined, '', '']
  const colon = indent === undefined ? ':' : ': '
  let isOpen = false
  let count = 0
  const head = ({ data: _data, has_more: _more, ...others }: Record<string, unknown> = {}) => {
    if (isOpen) return ''
    isOpen = true
    const text = jsonOf({ object: 'list', ...others }, indent)
    return `${text.slice(0, indent === undefined ? -1 : -2)},${line}"data"${colon}[`
  }
  return {
    async page({ items, envelope }) {
      const texts = items.map((item) => inner + jsonOf(item, indent).replaceAll('\n', inner))
      const text = head(envelope as Record<string, unknown>) + (count > 0 && items.length > 0 ? ',' : '')
      count += items.length
      await stdout.write(text + texts.join(','))
    },
    async end(hasMore) {
      const close = indent === undefined ? '}\n' : '\n}\n'
      await stdout.write(`${head()}${count === 0 ? '' : line}],${line}"has_more"${colon}${hasMore}${close}`)
    },
  }
}
