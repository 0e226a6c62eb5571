import { type Column, columnValue, humanText, type Item, type RenderContext, titleOf } from './columns.ts'
import { widthOf, wrap } from './measure.ts'

const GAP = 2
const NARROWEST_VALUE = 16

/**
 * One item, a field per line: its name in front, long values wrapped beside it. An id, or a value that would be squeezed,
 * goes on the next line instead, where it can be copied whole.
 *
 * @returns lines, each ending in a line feed
 */
export function renderDetailView(item: Item, shown: readonly Column[], context: RenderContext): string {
  const { palette, width } = context
  const titles = shown.map(titleOf)
  const label = Math.max(0, ...titles.map(widthOf)) + GAP
  const room = width - label
  const lines: string[] = []
  shown.forEach((column, index) => {
    const title = titles[index] ?? ''
    const value = columnValue(column, item)
    const text = humanText(column, item, context)
    const paint = column.paint?.(value, palette) ?? ((piece: string) => piece)
    const fits = widthOf(text) <= room
    if (fits || (column.kind !== 'id' && room >= NARROWEST_VALUE)) {
      const head = palette.faint(title) + ' '.repeat(label - widthOf(title))
      const [first = '', ...rest] = fits ? [text] : wrap(text, room)
      lines.push(head + paint(first), ...rest.map((piece) => ' '.repeat(label) + paint(piece)))
    } else {
      const indent = widthOf(text) + GAP <= width || column.kind !== 'id' ? GAP : 0
      const pieces = column.kind === 'id' ? [text] : wrap(text, width - indent)
      lines.push(palette.faint(title), ...pieces.map((piece) => ' '.repeat(indent) + paint(piece)))
    }
  })
  return lines.map((line) => `${line}\n`).join('')
}
