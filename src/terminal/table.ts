import { renderCard } from './card.ts'
import type { Paint, Palette } from './color.ts'
import { type Column, columnValue, humanText, type Item, type Look, titleOf } from './columns.ts'
import type { Ruler } from './ruler.ts'

const GAP = 2
const NARROWEST_TEXT = 8
const LONGEST_WHOLE_WORD = 20

/** A page as it will be shown. */
export interface TablePage {
  readonly items: readonly Item[]
  readonly cells: readonly (readonly string[])[]
  /** Everything that has to be measured. */
  readonly texts: readonly string[]
}

/**
 * Renders a list page by page. The first page decides the widths; the others keep them, so that nothing waits for the
 * last page. Where not even the narrowest table fits the terminal, every item is a card.
 */
export class TableRenderer {
  readonly #columns: readonly Column[]
  readonly #palette: Palette
  readonly #look: Look
  readonly #terminalWidth: number
  #widths: readonly number[] | 'cards' | undefined
  #printed = false

  /** @param terminalWidth in columns; infinite where lines may be as long as they like */
  constructor(columns: readonly Column[], palette: Palette, look: Look, terminalWidth: number) {
    this.#columns = columns
    this.#palette = palette
    this.#look = look
    this.#terminalWidth = terminalWidth
  }

  /** The texts of a page, for which a ruler has to be found. */
  read(items: readonly Item[]): TablePage {
    const cells = items.map((item) =>
      this.#columns.map((column) => humanText(column, columnValue(column, item), this.#look)),
    )
    return { items, cells, texts: [...this.#columns.map(titleOf), ...cells.flat()] }
  }

  /** @returns whole lines; nothing for an empty page */
  render({ items, cells }: TablePage, ruler: Ruler): string {
    if (items.length === 0 || this.#columns.length === 0) return ''
    let heading = !this.#printed
    if (
      this.#widths === undefined ||
      (this.#widths !== 'cards' && !this.#idsFit(cells, this.#widths, ruler))
    ) {
      this.#widths = fitWidths(this.#columns, cells, this.#terminalWidth, ruler) ?? 'cards'
      heading = true
    }
    const text =
      this.#widths === 'cards'
        ? this.#cards(items, ruler)
        : this.#table(items, cells, this.#widths, heading, ruler)
    this.#printed = true
    return text
  }

  #cards(items: readonly Item[], ruler: Ruler): string {
    const cards = items.map((item) =>
      renderCard(item, this.#columns, this.#terminalWidth, this.#palette, this.#look, ruler),
    )
    return (this.#printed ? '\n' : '') + cards.join('\n')
  }

  #idsFit(cells: readonly (readonly string[])[], widths: readonly number[], ruler: Ruler): boolean {
    return this.#columns.every(
      (column, index) =>
        column.kind !== 'id' || cells.every((row) => ruler.widthOf(row[index] ?? '') <= (widths[index] ?? 0)),
    )
  }

  #table(
    items: readonly Item[],
    cells: readonly (readonly string[])[],
    widths: readonly number[],
    heading: boolean,
    ruler: Ruler,
  ): string {
    const shown = this.#columns
      .map((column, index) => ({ column, index, width: widths[index] ?? 0 }))
      .filter(({ width }) => width > 0)
    const row = (texts: readonly string[], paintOf: (column: Column) => Paint | undefined): string => {
      const wrapped = shown.map(({ index, width }) => ruler.wrap(texts[index] ?? '', width))
      const paints = shown.map(({ column }) => paintOf(column))
      const height = Math.max(...wrapped.map((pieces) => pieces.length))
      let lines = ''
      for (let line = 0; line < height; line++) {
        const pieces = shown.map(({ column, width }, at) => {
          const piece = wrapped[at]?.[line] ?? ''
          const blank = ' '.repeat(Math.max(0, width - ruler.widthOf(piece)))
          const painted = paints[at]?.(piece) ?? piece
          return column.kind === 'number' ? blank + painted : painted + blank
        })
        lines += `${withoutTrailingSpaces(pieces.join(' '.repeat(GAP)))}\n`
      }
      return lines
    }
    const head = heading ? row(this.#columns.map(titleOf), () => this.#palette.heading) : ''
    const rows = items.map((item, at) =>
      row(cells[at] ?? [], (column) => column.paint?.(columnValue(column, item), this.#palette)),
    )
    return head + rows.join('')
  }
}

/**
 * The width of each column, 0 for one that is left out; or undefined where no table fits. Ids and numbers keep what they
 * need; the widest of the others give way first, to where words would break; then optional columns go; then words break.
 */
function fitWidths(
  columns: readonly Column[],
  cells: readonly (readonly string[])[],
  terminalWidth: number,
  ruler: Ruler,
): number[] | undefined {
  const longestWord = (text: string) =>
    text.split(' ').reduce((most, word) => Math.max(most, ruler.widthOf(word)), 0)
  const widest = (index: number, measure: (text: string) => number) =>
    cells.reduce(
      (most, row) => Math.max(most, measure(row[index] ?? '')),
      measure(titleOf(columns[index] as Column)),
    )
  const attempts = [
    { without: false, longest: LONGEST_WHOLE_WORD },
    { without: true, longest: LONGEST_WHOLE_WORD },
    { without: true, longest: NARROWEST_TEXT },
  ]
  for (const { without, longest } of attempts) {
    const shown = columns.map((column) => !(without && column.optional))
    const needed = columns.map((_, index) => (shown[index] ? widest(index, ruler.widthOf) : 0))
    const least = columns.map(({ kind }, index) =>
      kind === 'id' || kind === 'number'
        ? (needed[index] ?? 0)
        : Math.min(needed[index] ?? 0, longest, widest(index, longestWord)),
    )
    const gaps = GAP * (shown.filter((yes) => yes).length - 1)
    const fitted = shrink(needed, least, terminalWidth - gaps)
    if (fitted !== undefined) return fitted
  }
  return undefined
}

/** Takes from the widest until the sum is `room`; undefined where that would go below the least. */
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
