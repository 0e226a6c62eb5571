import type { Palette } from './color.ts'
import { type Column, columnValue, humanText, type Item, type Look, titleOf } from './columns.ts'
import type { Ruler } from './ruler.ts'

const GAP = 2
const NARROWEST_VALUE = 16

/**
 * One item as a card: a field a line, its name in front, long values wrapped beside it. An id, or a value that would be
 * squeezed, goes on a line of its own instead, where it can be copied whole.
 *
 * @param columns the terminal's width
 * @returns lines, each ending in a line feed
 */
export function renderCard(
  item: Item,
  shown: readonly Column[],
  columns: number,
  palette: Palette,
  look: Look,
  { widthOf, wrap }: Ruler,
): string {
  const titles = shown.map(titleOf)
  const label = Math.max(0, ...titles.map(widthOf)) + GAP
  const room = columns - label
  const lines: string[] = []
  shown.forEach((column, index) => {
    const title = titles[index] ?? ''
    const value = columnValue(column, item)
    const text = humanText(column, value, look)
    const paint = column.paint?.(value, palette) ?? ((piece: string) => piece)
    const head = palette.faint(title) + ' '.repeat(label - widthOf(title))
    const fits = widthOf(text) <= room
    if (fits || (column.kind !== 'id' && room >= NARROWEST_VALUE)) {
      const [first = '', ...rest] = fits ? [text] : wrap(text, room)
      lines.push(head + paint(first), ...rest.map((piece) => ' '.repeat(label) + paint(piece)))
    } else {
      lines.push(palette.faint(title))
      const indent = widthOf(text) + GAP <= columns || column.kind !== 'id' ? GAP : 0
      const pieces = column.kind === 'id' ? [text] : wrap(text, columns - indent)
      lines.push(...pieces.map((piece) => ' '.repeat(indent) + paint(piece)))
    }
  })
  return lines.map((line) => `${line}\n`).join('')
}

/** The texts of a card, for which a ruler has to be found. */
export function cardTexts(item: Item, shown: readonly Column[], look: Look): string[] {
  return shown.flatMap((column) => [titleOf(column), humanText(column, columnValue(column, item), look)])
}
