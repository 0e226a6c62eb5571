import { type Column, DASH, humanText, type Item, paintOf, type RenderContext, titleOf } from './columns.ts'
import { indent, widthOf, wrap } from './measure.ts'

const GAP = 2
const NARROWEST_VALUE = 16

/**
 * One item, a field per line: its name in front, long values wrapped beside it. An id, or a value that would be squeezed,
 * goes on the next line instead, where it can be copied whole. An optional field that is empty is left out.
 *
 * @returns lines, each ending in a line feed
 */
export function renderDetailView(item: Item, columns: readonly Column[], context: RenderContext): string {
  const { palette, width } = context
  const shown = columns.filter((column) => !column.optional || humanText(column, item, context) !== DASH)
  const label = Math.max(0, ...shown.map((column) => widthOf(titleOf(column)))) + GAP
  const room = width - label
  return shown
    .flatMap((column) => {
      const title = titleOf(column)
      const text = humanText(column, item, context)
      const paint = paintOf(column, item, context)
      const isId = column.kind === 'id'
      if (widthOf(text) > room && (isId || room < NARROWEST_VALUE)) {
        const pieces = isId ? [text] : wrap(text, width - GAP)
        return [palette.faint(title), ...pieces.map((piece) => paint(indent(piece, GAP, width)))]
      }
      const [first = '', ...rest] = wrap(text, room)
      const head = palette.faint(title) + ' '.repeat(label - widthOf(title))
      return [head + paint(first), ...rest.map((piece) => ' '.repeat(label) + paint(piece))]
    })
    .map((line) => `${line}\n`)
    .join('')
}
