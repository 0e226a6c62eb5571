import stringWidth from 'fast-string-width'
import { wrapAnsi } from 'fast-wrap-ansi'

/** How many columns of a terminal a clean line takes: wide characters and emoji take two, combining marks none. */
export function widthOf(line: string): number {
  return stringWidth(line)
}

/**
 * Breaks a clean line at words where possible, else within them, so that no piece is wider than `width`; a character that is
 * wider has a line of its own.
 *
 * @param hard false: a word that is too long stays in one piece, so that it can be copied
 */
export function wrap(line: string, width: number, hard = true): string[] {
  return widthOf(line) <= width ? [line] : wrapAnsi(line, Math.max(1, width), { hard }).split('\n')
}

/**
 * Wraps a hint at words, without breaking words. A command at the end (`words: mailclaim …`) is for pasting: it has a line of its own if
 * the hint is too wide.
 */
export function wrapHint(text: string, width: number): string[] {
  const [, words = text, ...command] =
    widthOf(text) <= width ? [] : (/^(.*:) (mailclaim .*)$/.exec(text) ?? [])
  return [...wrap(words, width, false), ...command]
}

/**
 * Indents a piece of a wrapped line. A value or a command that fits the terminal only without the indent starts at the left edge:
 * otherwise the terminal would break the piece, and a copy of it would have a line break. What starts like a label of this program
 * (`error:`) or a command of a CI system (`::error::`) is always indented.
 */
export function indent(piece: string, columns: number, width: number): string {
  const columnsLeft = width - widthOf(piece)
  const isMoved = columnsLeft >= 0 && columnsLeft < columns && !/^(\w+:|\W)/.test(piece)
  return isMoved ? piece : ' '.repeat(columns) + piece
}
