import Table from 'cli-table3'
import { type Column, DASH, humanText, type Item, paintOf, type RenderContext, titleOf } from './columns.ts'
import { renderDetailView } from './detail-view.ts'
import { widthOf, wrap } from './measure.ts'

const GAP = 2
/** Text is broken within words before it gets a narrower column. */
const NARROWEST_TEXT = 8
/** An optional column goes before a longer word than this would have to break. */
const LONGEST_WORD = 20

/**
 * Renders a list page by page. The first page decides the widths, so that nothing waits for the last one; a later page gets
 * others only if something doesn't fit that must not break, or there is room left. If not even the narrowest table fits the
 * terminal, every item is a detail view.
 */
export class TableRenderer {
  readonly #columns: readonly Column[]
  readonly #context: RenderContext
  /** What the longest cell so far needs. */
  readonly #longest: number[]
  /** Of each column, 0 for one that the terminal has no room for; undefined for detail views. */
  #widths: number[] | undefined
  /** Columns with something to show. */
  readonly #filled = new Set<number>()
  #printed = false

  constructor(columns: readonly Column[], context: RenderContext) {
    this.#columns = columns
    this.#context = context
    this.#longest = columns.map((column) => widthOf(titleOf(column)))
  }

  /** The columns that the terminal has no room for, and that would show something. */
  get leftOut(): readonly Column[] {
    return this.#columns.filter((_, index) => this.#widths?.[index] === 0 && this.#filled.has(index))
  }

  /** @returns whole lines; nothing for an empty page */
  render(items: readonly Item[]): string {
    if (items.length === 0 || this.#columns.length === 0) return ''
    const cells = items.map((item) => this.#columns.map((column) => humanText(column, item, this.#context)))
    for (const row of cells)
      row.forEach((text, index) => {
        this.#longest[index] = Math.max(this.#longest[index] ?? 0, widthOf(text))
        if (text !== DASH) this.#filled.add(index)
      })
    const isFirst = !this.#printed
    this.#printed = true
    if (isFirst || (this.#widths !== undefined && !this.#fits(this.#widths)))
      this.#widths = fitWidths(this.#columns, this.#longest, cells, this.#context.width)
    return this.#widths === undefined
      ? (isFirst ? '' : '\n') +
          items.map((item) => renderDetailView(item, this.#columns, this.#context)).join('\n')
      : this.#table(items, cells, this.#widths, isFirst)
  }

  /** Whether a page can keep the widths: everything has room, or is text, and no column could be wider. */
  #fits(widths: readonly number[]): boolean {
    const used = widths.reduce((sum, width) => sum + width + (width > 0 ? GAP : 0), -GAP)
    return this.#columns.every(
      ({ kind = 'text' }, index) =>
        widths[index] === 0 ||
        (this.#longest[index] ?? 0) <= (widths[index] ?? 0) ||
        (kind === 'text' && used >= this.#context.width),
    )
  }

  #table(
    items: readonly Item[],
    cells: readonly (readonly string[])[],
    widths: readonly number[],
    withHeading: boolean,
  ): string {
    const { palette } = this.#context
    const shown = this.#columns.flatMap((column, index) => {
      const width = widths[index] ?? 0
      return width === 0 ? [] : { column, index, width }
    })
    const table = new Table({
      chars: NO_BORDERS,
      style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
      colWidths: shown.map(({ width }) => width),
      // For a debug message the library cuts each cell to 10 columns, a character at a time, unless this mark takes them.
      truncate: ' '.repeat(10),
      colAligns: shown.map(({ column }) => (column.kind === 'number' ? 'right' : 'left')),
    })
    const cell = (text: string, width: number, paint = (piece: string) => piece) =>
      wrap(text, width).map(paint).join('\n')
    if (withHeading)
      table.push(shown.map(({ column, width }) => cell(titleOf(column), width, palette.heading)))
    items.forEach((item, row) => {
      table.push(
        shown.map(({ column, index, width }) =>
          cell(cells[row]?.[index] ?? '', width, paintOf(column, item, this.#context)),
        ),
      )
    })
    return table
      .toString()
      .split('\n')
      .map((line) => `${line.trimEnd()}\n`)
      .join('')
  }
}

const NO_BORDERS = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '' },
  middle: ' '.repeat(GAP),
}

/**
 * The width of each column, 0 for one that is left out; undefined if the terminal is too narrow. Ids, numbers and times keep
 * what they need. The widest of the others give way first, until words would break; then optional columns go, the last one
 * first; then words break.
 */
function fitWidths(
  columns: readonly Column[],
  longest: readonly number[],
  cells: readonly (readonly string[])[],
  terminalWidth: number,
): number[] | undefined {
  const words = columns.map((column, index) =>
    Math.max(
      ...[titleOf(column), ...cells.map((row) => row[index] ?? '')].flatMap((text) =>
        text.split(' ').map(widthOf),
      ),
    ),
  )
  const optional = columns.flatMap((column, index) => (column.optional ? [index] : [])).reverse()
  const attempts = [
    ...[columns.length, ...optional].map((end) => ({ end, word: LONGEST_WORD })),
    { end: 0, word: NARROWEST_TEXT },
  ]
  for (const { end, word } of attempts) {
    const needed = columns.map(({ optional }, index) =>
      optional && index >= end ? 0 : (longest[index] ?? 0),
    )
    const least = needed.map((width, index) =>
      (columns[index]?.kind ?? 'text') === 'text' ? Math.min(width, word, words[index] ?? 0) : width,
    )
    const gaps = GAP * (needed.filter((width) => width > 0).length - 1)
    const fitted = shrink(needed, least, terminalWidth - gaps)
    if (fitted !== undefined) return fitted
  }
  return undefined
}

/** Takes columns from the widest until the sum is `room`; undefined if that would go below the least. */
function shrink(needed: readonly number[], least: readonly number[], room: number): number[] | undefined {
  const widths = [...needed]
  let excess = widths.reduce((sum, width) => sum + width, 0) - room
  for (; excess > 0; excess--) {
    let widest = -1
    widths.forEach((width, index) => {
      if (width > (least[index] ?? 0) && width > (widths[widest] ?? 0)) widest = index
    })
    if (widest < 0) return undefined
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}
