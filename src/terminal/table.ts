import Table from 'cli-table3'
import { renderCard } from './card.ts'
import type { Palette } from './color.ts'
import { type Column, columnValue, humanText, type Item, type Look, titleOf } from './columns.ts'
import { widthOf, wrap } from './width.ts'

const GAP = 2
const NARROWEST_TEXT = 8

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

  /** @returns whole lines; nothing for an empty page */
  render(items: readonly Item[]): string {
    if (items.length === 0 || this.#columns.length === 0) return ''
    const cells = items.map((item) =>
      this.#columns.map((column) => humanText(column, columnValue(column, item), this.#look)),
    )
    let heading = !this.#printed
    if (this.#widths === undefined || (this.#widths !== 'cards' && !this.#idsFit(cells, this.#widths))) {
      this.#widths = fitWidths(this.#columns, cells, this.#terminalWidth) ?? 'cards'
      heading = true
    }
    const text =
      this.#widths === 'cards' ? this.#cards(items) : this.#table(items, cells, this.#widths, heading)
    this.#printed = true
    return text
  }

  #cards(items: readonly Item[]): string {
    const cards = items.map((item) =>
      renderCard(item, this.#columns, this.#terminalWidth, this.#palette, this.#look),
    )
    return (this.#printed ? '\n' : '') + cards.join('\n')
  }

  #idsFit(cells: readonly (readonly string[])[], widths: readonly number[]): boolean {
    return this.#columns.every(
      (column, index) =>
        column.kind !== 'id' || cells.every((row) => widthOf(row[index] ?? '') <= (widths[index] ?? 0)),
    )
  }

  #table(
    items: readonly Item[],
    cells: readonly (readonly string[])[],
    widths: readonly number[],
    heading: boolean,
  ): string {
    const standIns = new StandIns()
    const paintLines = (text: string, width: number, paint: ((piece: string) => string) | undefined) =>
      wrap(text, width)
        .map((line) => (paint === undefined ? standIns.put(line) : paint(standIns.put(line))))
        .join('\n')
    const table = new Table({
      chars: BORDERLESS,
      style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
      colWidths: [...widths],
      colAligns: this.#columns.map((column) => (column.kind === 'number' ? 'right' : 'left')),
    })
    if (heading) {
      table.push(
        this.#columns.map((column, index) =>
          paintLines(titleOf(column), widths[index] ?? 1, this.#palette.heading),
        ),
      )
    }
    items.forEach((item, at) => {
      table.push(
        this.#columns.map((column, index) =>
          paintLines(
            cells[at]?.[index] ?? '',
            widths[index] ?? 1,
            column.paint?.(columnValue(column, item), this.#palette),
          ),
        ),
      )
    })
    return `${standIns.restore(table.toString()).replaceAll(/ +$/gm, '')}\n`
  }
}

const BORDERLESS = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: ' '.repeat(GAP),
}

/**
 * The width of each column, or undefined where no table fits. Ids and numbers keep what they need; the widest of the
 * others give way first.
 */
function fitWidths(
  columns: readonly Column[],
  cells: readonly (readonly string[])[],
  terminalWidth: number,
): number[] | undefined {
  const widths = columns.map((column, index) =>
    cells.reduce((widest, row) => Math.max(widest, widthOf(row[index] ?? '')), widthOf(titleOf(column))),
  )
  const least = columns.map((column, index) =>
    column.kind === 'id' || column.kind === 'number'
      ? (widths[index] ?? 0)
      : Math.min(widths[index] ?? 0, Math.max(NARROWEST_TEXT, longestWord(titleOf(column)))),
  )
  let excess = sum(widths) + GAP * (columns.length - 1) - terminalWidth
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

function longestWord(title: string): number {
  return Math.max(...title.split(' ').map(widthOf))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

const FIRST = 0xe000
const LAST = 0xf8fe
const FILLER = '\uf8ff'

/**
 * The table library measures text with a list of emoji from 2019 and would misplace what came later. While it lays the
 * table out, every character beyond ASCII is stood in for by private-use characters, one for each column it takes.
 */
class StandIns {
  readonly #segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })
  readonly #codes = new Map<string, string>()
  readonly #texts = new Map<string, string>()

  put(line: string): string {
    if (/^[\x20-\x7e]*$/.test(line)) return line
    let replaced = ''
    for (const { segment } of this.#segmenter.segment(line)) {
      const width = widthOf(segment)
      replaced += /^[\x20-\x7e]$/.test(segment) || width === 0 ? segment : this.#codeOf(segment, width)
    }
    return replaced
  }

  restore(text: string): string {
    if (this.#texts.size === 0) return text
    return text.replaceAll(/[\ue000-\uf8fe]\uf8ff*/g, (code) => this.#texts.get(code) ?? code)
  }

  #codeOf(segment: string, width: number): string {
    const known = this.#codes.get(segment)
    if (known !== undefined) return known
    const place = FIRST + this.#codes.size
    if (place > LAST) return segment
    const code = String.fromCharCode(place) + FILLER.repeat(width - 1)
    this.#codes.set(segment, code)
    this.#texts.set(code, segment)
    return code
  }
}
