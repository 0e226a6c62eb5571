import Table from 'cli-table3'
import type { Paint } from './color.ts'
import { type Column, columnValue, humanText, type Item, type RenderContext, titleOf } from './columns.ts'
import { renderDetailView } from './detail-view.ts'
import { widthOf, wrap } from './measure.ts'

const GAP = 2
const NARROWEST_TEXT = 8
const LONGEST_WHOLE_WORD = 20

/**
 * Renders a list page by page. The first page decides the widths, so that nothing waits for the last page. The others keep
 * them unless a word would break, or, where lines may have any length, wrap. If not even the narrowest table fits the
 * terminal, every item is a detail view.
 */
export class TableRenderer {
  readonly #columns: readonly Column[]
  readonly #context: RenderContext
  readonly #isOneByOne: boolean
  /** Of everything rendered so far. */
  readonly #measures: ColumnMeasure[]
  #widths: readonly number[] | 'too narrow' | undefined
  #printed = false

  /** @param isOneByOne whether pages are single rows: the heading doesn't come again where columns become wider */
  constructor(columns: readonly Column[], context: RenderContext, isOneByOne = false) {
    this.#columns = columns
    this.#context = context
    this.#isOneByOne = isOneByOne
    this.#measures = columns.map((column) => measureColumn(column, [titleOf(column)]))
  }

  /** The columns that the terminal has no room for. */
  get leftOut(): readonly Column[] {
    const widths = this.#widths
    return Array.isArray(widths) ? this.#columns.filter((_, index) => widths[index] === 0) : []
  }

  /** @returns whole lines; nothing for an empty page */
  render(items: readonly Item[]): string {
    if (items.length === 0 || this.#columns.length === 0) return ''
    const cells = items.map((item) => this.#columns.map((column) => humanText(column, item, this.#context)))
    const before = this.#widths
    if (before !== 'too narrow' && !this.#fits(cells, before))
      this.#widths = fitWidths(this.#columns, this.#measures, this.#context.width)
    const changed = String(this.#widths) !== String(before)
    const heading = !this.#printed || (changed && !this.#isOneByOne)
    const text =
      this.#widths === 'too narrow'
        ? this.#detailViews(items)
        : this.#table(items, cells, this.#widths ?? [], heading)
    this.#printed = true
    return text
  }

  #detailViews(items: readonly Item[]): string {
    const views = items.map((item) => renderDetailView(item, this.#columns, this.#context))
    return (this.#printed ? '\n' : '') + views.join('\n')
  }

  /** Measures a page. @returns whether it can keep the widths, because nothing breaks that fits in one piece */
  #fits(cells: readonly (readonly string[])[], widths: readonly number[] | undefined): boolean {
    const page = this.#columns.map((column, index) =>
      measureColumn(
        column,
        cells.map((row) => row[index] ?? ''),
      ),
    )
    page.forEach(({ whole, unbroken }, index) => {
      const all = this.#measures[index] as ColumnMeasure
      all.whole = Math.max(all.whole, whole)
      all.unbroken = Math.max(all.unbroken, unbroken)
    })
    if (widths === undefined) return false
    const least = this.#context.width === Number.POSITIVE_INFINITY ? 'whole' : 'unbroken'
    return page.every((measure, index) => widths[index] === 0 || measure[least] <= (widths[index] ?? 0))
  }

  #table(
    items: readonly Item[],
    cells: readonly (readonly string[])[],
    widths: readonly number[],
    heading: boolean,
  ): string {
    const { palette } = this.#context
    const shown = this.#columns
      .map((column, index) => ({ column, index, width: widths[index] ?? 0 }))
      .filter(({ width }) => width > 0)
    /** The lines of one row, each with a piece for each column. */
    const wrapRow = (texts: readonly string[], paintOf: (column: Column) => Paint | undefined) => {
      const wrapped = shown.map(({ column, index, width }) => {
        const paint = paintOf(column)
        const pieces = wrap(texts[index] ?? '', width)
        return paint === undefined ? pieces : pieces.map(paint)
      })
      const height = Math.max(...wrapped.map((pieces) => pieces.length))
      return Array.from({ length: height }, (_, line) => wrapped.map((pieces) => pieces[line] ?? ''))
    }
    const head = heading ? wrapRow(this.#columns.map(titleOf), () => palette.heading) : []
    const rows = items.flatMap((item, at) =>
      wrapRow(cells[at] ?? [], (column) => column.paint?.(columnValue(column, item), palette)),
    )
    return layOut(
      [...head, ...rows],
      shown.map(({ width }) => width),
      shown.map(({ column }) => (column.kind === 'number' ? 'right' : 'left')),
    )
  }
}

/**
 * Lines that the library gets at once, as the lines of one row. A cell of its own for each would take twice the time, and
 * the time for one cell grows with the square of its lines.
 */
const LINES_AT_ONCE = 8
const BORDERLESS = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '' },
  middle: ' '.repeat(GAP),
}

function layOut(
  lines: readonly string[][],
  widths: readonly number[],
  colAligns: ('left' | 'right')[],
): string {
  let text = ''
  for (let at = 0; at < lines.length; at += LINES_AT_ONCE) {
    const table = new Table({
      chars: BORDERLESS,
      style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
      colWidths: [...widths],
      colAligns,
      // Never shown, since every piece fits. For a debug message the library cuts each cell down to 10 columns, a character
      // at a time, unless this mark alone takes them.
      truncate: ' '.repeat(10),
    })
    const block = lines.slice(at, at + LINES_AT_ONCE)
    table.push(widths.map((_, column) => block.map((pieces) => pieces[column]).join('\n')))
    text += `${table.toString().split('\n').map(withoutTrailingSpaces).join('\n')}\n`
  }
  return text
}

/** In columns of a terminal. */
interface ColumnMeasure {
  /** What the longest cell needs. */
  whole: number
  /** What it needs at least for nothing to break but between words; an id, a number or a time not even there. */
  unbroken: number
}

function measureColumn({ kind = 'text' }: Column, texts: readonly string[]): ColumnMeasure {
  const widest = (pieces: readonly string[]) =>
    pieces.reduce((most, piece) => Math.max(most, widthOf(piece)), 0)
  const whole = widest(texts)
  return { whole, unbroken: kind === 'text' ? widest(texts.flatMap((text) => text.split(' '))) : whole }
}

/**
 * The width of each column, 0 for one that is left out. Ids, numbers and times keep what they need. The widest of the others
 * give way first, until words would break; then optional columns go, the last one first; then words break.
 */
function fitWidths(
  columns: readonly Column[],
  measures: readonly ColumnMeasure[],
  terminalWidth: number,
): number[] | 'too narrow' {
  const optional = columns.flatMap((column, index) => (column.optional ? [index] : []))
  const attempts = [
    ...[...optional, columns.length].reverse().map((end) => ({ end, longest: LONGEST_WHOLE_WORD })),
    { end: 0, longest: NARROWEST_TEXT },
  ]
  for (const { end, longest } of attempts) {
    const shown = columns.map((column, index) => !column.optional || index < end)
    const needed = measures.map(({ whole }, index) => (shown[index] ? whole : 0))
    const least = measures.map(({ unbroken }, index) => {
      const kind = columns[index]?.kind ?? 'text'
      return Math.min(needed[index] ?? 0, kind === 'text' ? Math.min(longest, unbroken) : unbroken)
    })
    const gaps = GAP * (shown.filter((yes) => yes).length - 1)
    const fitted = shrink(needed, least, terminalWidth - gaps)
    if (fitted !== undefined) return fitted
  }
  return 'too narrow'
}

/** Takes columns from the widest until the sum is `room`; undefined if that would go below the least. */
function shrink(needed: readonly number[], least: readonly number[], room: number): number[] | undefined {
  const widths = [...needed]
  let excess = sum(widths) - room
  while (excess > 0) {
    let widest = -1
    widths.forEach((width, index) => {
      if (width > (least[index] ?? 0) && width > (widths[widest] ?? 0)) widest = index
    })
    if (widest < 0) return undefined
    widths[widest] = (widths[widest] ?? 0) - 1
    excess--
  }
  return widths
}

/** A pattern for the end of a line takes time that grows with the square of the spaces within it. */
function withoutTrailingSpaces(line: string): string {
  let end = line.length
  while (line[end - 1] === ' ') end--
  return line.slice(0, end)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
