import { ABSENT, type Column, getCellPaint, getCellText, getTitle, type RenderContext } from './columns.ts'
import { displayWidth, indentPiece, wrapLine } from './measure.ts'

/** Number of terminal columns between titles and values, and before a value that stands below its title. */
const GAP = 2
/** Minimum number of terminal columns for wrapping a value beside its title; with fewer, such a value starts below its title. */
const MIN_VALUE_WIDTH = 16

/**
 * Lays out one item with a field per line: the title, then the value, wrapped beside it, or below it if the terminal is narrow. Ids
 * aren't wrapped. Optional fields without a value are left out.
 *
 * @returns lines, each with a line feed
 */
export function renderDetailView(item: object, columns: readonly Column[], context: RenderContext): string {
  const { palette, width } = context
  const shown = columns.filter((column) => !column.optional || getCellText(column, item, context) !== ABSENT)
  const label = Math.max(0, ...shown.map((column) => displayWidth(getTitle(column)))) + GAP
  const room = width - label
  return shown
    .flatMap((column) => {
      const title = getTitle(column)
      const text = getCellText(column, item, context)
      const paint = getCellPaint(column, item, context)
      const isId = column.kind === 'id'
      if (displayWidth(text) > room && (isId || room < MIN_VALUE_WIDTH)) {
        const pieces = isId ? [text] : wrapLine(text, width - GAP)
        return [palette.faint(title), ...pieces.map((piece) => paint(indentPiece(piece, GAP, width)))]
      }
      const [first = '', ...rest] = wrapLine(text, room)
      const head = palette.faint(title) + ' '.repeat(label - displayWidth(title))
      return [head + paint(first), ...rest.map((piece) => ' '.repeat(label) + paint(piece))]
    })
    .map((line) => `${line}\n`)
    .join('')
}
