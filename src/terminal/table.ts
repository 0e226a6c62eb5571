import Table from 'cli-table3'
import { renderCard } from './card.ts'
import type { Palette } from './color.ts'
import { type Column, columnValue, humanText, type Item, type Look, titleOf } from './columns.ts'
import { isSimple, type Ruler } from './ruler.ts'

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
    const standIns = new StandIns(ruler)
    const paintLines = (text: string, width: number, paint: ((piece: string) => string) | undefined) =>
      ruler
        .wrap(text, width)
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
  readonly #ruler: Ruler
  #segmenter: Intl.Segmenter | undefined
  readonly #codes = new Map<string, string>()
  readonly #texts = new Map<string, string>()

  constructor(ruler: Ruler) {
    this.#ruler = ruler
  }

  put(line: string): string {
    if (isSimple(line)) return line
    this.#segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
    let replaced = ''
    for (const { segment } of this.#segmenter.segment(line)) {
      const width = this.#ruler.widthOf(segment)
      replaced += isSimple(segment) || width === 0 ? segment : this.#codeOf(segment, width)
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
