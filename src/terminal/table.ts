import Table from 'cli-table3'
import { renderCard } from './card.ts'
import type { Palette } from './color.ts'
import { type Column, columnValue, humanText, type Item, type Look, titleOf } from './columns.ts'
import { widthOf, wrap } from './width.ts'

const GAP = 2
const NARROWEST_TEXT = 8
const LONGEST_WHOLE_WORD = 20

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
    const shown = this.#columns
      .map((column, index) => ({ column, index, width: widths[index] ?? 0 }))
      .filter(({ width }) => width > 0)
    const table = new Table({
      chars: BORDERLESS,
      style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
      colWidths: shown.map(({ width }) => width),
      colAligns: shown.map(({ column }) => (column.kind === 'number' ? 'right' : 'left')),
    })
    if (heading) {
      table.push(shown.map(({ column, width }) => paintLines(titleOf(column), width, this.#palette.heading)))
    }
    items.forEach((item, at) => {
      table.push(
        shown.map(({ column, index, width }) =>
          paintLines(
            cells[at]?.[index] ?? '',
            width,
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
 * The width of each column, 0 for one that is left out; or undefined where no table fits. Ids and numbers keep what they
 * need; the widest of the others give way first, to where words would break; then optional columns go; then words break.
 */
function fitWidths(
  columns: readonly Column[],
  cells: readonly (readonly string[])[],
  terminalWidth: number,
): number[] | undefined {
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
    const needed = columns.map((_, index) => (shown[index] ? widest(index, widthOf) : 0))
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

function longestWord(text: string): number {
  return text.split(' ').reduce((longest, word) => Math.max(longest, widthOf(word)), 0)
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
