import { type Column, chooseColumns, type Item, jsonLinesOf, jsonOf } from './columns.ts'
import { requireFields } from './fields.ts'
import { hint } from './notices.ts'
import {
  headingLine,
  jsonItem,
  type OutputContext,
  type OutputSettings,
  recordLine,
  renderContext,
  separatedStyle,
} from './output.ts'

/** A page as it comes from the service. */
export interface WrittenPage {
  readonly items: readonly Item[]
  /** The service's own envelope, for JSON. */
  readonly envelope: object
  /** The `has_more` of the whole output, if it is already certain. */
  readonly finalHasMore: boolean | undefined
}

/** Writes a list page by page. When `page` settles, the page is on stdout. */
export interface ListWriter {
  page(page: WrittenPage): Promise<void>
  /** Completes the output. Not called after a failure, so that nobody takes an unfinished JSON document for a complete one. */
  end(hasMore: boolean): Promise<void>
}

export interface ListWriterOptions {
  readonly context: OutputContext
  readonly settings: OutputSettings
  readonly columns: readonly Column[]
  /** What a person reads on stderr if the list is empty: "no grants". */
  readonly nothing: string | undefined
  /** Whether items come one by one; else page by page. */
  readonly isOneByOne?: boolean
}

/**
 * A writer for the chosen format. JSON is one document, `{"object":"list","has_more":…,"data":[…]}` plus whatever else
 * the service's envelope holds. `has_more` keeps its place if its final value is certain with the first page (a single
 * page, or the whole list). Otherwise it follows `data`, because waiting for it would stop the streaming.
 *
 * A field of `--fields` that is neither listed nor in the first page is a usage error, exit 2.
 */
export function createListWriter(options: ListWriterOptions): ListWriter {
  const { settings } = options
  const writer = createFormatWriter(options)
  let isChecked = false
  // The first page decides, because afterwards something is printed.
  const check = (items: readonly Item[]) => {
    if (!isChecked) requireFields(items, settings)
    isChecked = true
  }
  return {
    async page(page) {
      check(page.items)
      await writer.page(page)
    },
    async end(hasMore) {
      check([])
      await writer.end(hasMore)
    },
  }
}

function createFormatWriter(options: ListWriterOptions): ListWriter {
  const { format } = options.settings
  if (format === 'json') return jsonWriter(options)
  if (format === 'jsonl') return jsonLinesWriter(options)
  if (format === 'csv' || format === 'tsv') return separatedWriter(options, format)
  return tableWriter(options)
}

function jsonLinesWriter({ context, settings }: ListWriterOptions): ListWriter {
  return {
    async page({ items }) {
      if (items.length === 0) return
      await context.stdout.write(jsonLinesOf(items.map((item) => jsonItem(item, settings))))
    },
    async end() {},
  }
}

function separatedWriter(
  { context, settings, columns }: ListWriterOptions,
  format: 'csv' | 'tsv',
): ListWriter {
  const shown = chooseColumns(columns, settings.fields, 'programs')
  const style = separatedStyle(context, settings, format)
  let heading = headingLine(shown, style)
  return {
    async page({ items }) {
      await context.stdout.write(heading + items.map((item) => recordLine(item, shown, style)).join(''))
      heading = ''
    },
    async end() {
      if (heading !== '') await context.stdout.write(heading)
    },
  }
}

function tableWriter({
  context,
  settings,
  columns,
  nothing,
  isOneByOne = false,
}: ListWriterOptions): ListWriter {
  const renderer = (async () => {
    const [{ TableRenderer }, rendering] = await Promise.all([
      import('./table.ts'),
      renderContext(context, settings),
    ])
    return new TableRenderer(chooseColumns(columns, settings.fields, 'people'), rendering, isOneByOne)
  })()
  renderer.catch(() => {})
  let count = 0
  return {
    async page({ items }) {
      count += items.length
      const text = (await renderer).render(items)
      if (text !== '') await context.stdout.write(text)
    },
    async end() {
      if (count === 0 && nothing !== undefined && !settings.quiet) await context.stderr.write(`${nothing}\n`)
      const leftOut = (await renderer).leftOut.map(({ field }) => field)
      if (leftOut.length > 0) {
        await hint(
          `not shown, for lack of space: ${leftOut.join(', ')}; --fields or a wider window shows ${leftOut.length === 1 ? 'it' : 'them'}`,
          context,
          settings,
        )
      }
    },
  }
}

function jsonWriter({ context, settings }: ListWriterOptions): ListWriter {
  const { stdout } = context
  const style = stdout.isTTY
    ? { open: '{\n  ', field: ',\n  ', colon: ': ', close: '\n  ]', end: '\n}\n', indent: 2 }
    : { open: '{', field: ',', colon: ':', close: ']', end: '}\n', indent: undefined }
  const json = (value: unknown) =>
    style.indent === undefined ? jsonOf(value) : jsonOf(value, style.indent).replaceAll('\n', '\n  ')
  const field = (name: string, value: unknown) => `${jsonOf(name)}${style.colon}${json(value)}`

  let written: Set<string> | undefined
  let items = 0
  let lastEnvelope: Record<string, unknown> = {}

  const head = (envelope: Record<string, unknown>, hasMore: boolean | undefined) => {
    const keys = Object.keys(envelope)
    const front = keys.includes('data') ? keys.slice(0, keys.indexOf('data')) : keys
    if (!keys.includes('object')) front.unshift('object')
    if (!keys.includes('has_more')) front.push('has_more')
    const fields = front
      .filter((key) => key !== 'has_more' || hasMore !== undefined)
      .map((key) =>
        field(key, key === 'has_more' ? hasMore : (envelope[key] ?? (key === 'object' ? 'list' : null))),
      )
    written = new Set([...front.filter((key) => key !== 'has_more' || hasMore !== undefined), 'data'])
    return `${style.open}${[...fields, `${jsonOf('data')}${style.colon}[`].join(style.field)}`
  }

  return {
    async page({ items: page, envelope, finalHasMore }) {
      lastEnvelope = envelope as Record<string, unknown>
      let text = written === undefined ? head(lastEnvelope, finalHasMore) : ''
      if (page.length > 0) {
        // The whole page at once, without its own brackets.
        const list = json(page.map((item) => jsonItem(item, settings)))
        text += (items === 0 ? '' : ',') + list.slice(1, -style.close.length)
        items += page.length
      }
      if (text !== '') await stdout.write(text)
    },
    async end(hasMore) {
      let text = written === undefined ? head(lastEnvelope, hasMore) : ''
      text += items === 0 ? ']' : style.close
      const rest = Object.keys(lastEnvelope).filter((key) => !written?.has(key) && key !== 'has_more')
      for (const key of rest) text += style.field + field(key, lastEnvelope[key])
      if (!written?.has('has_more')) text += style.field + field('has_more', hasMore)
      await stdout.write(text + style.end)
    },
  }
}
