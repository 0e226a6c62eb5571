import stringWidth from 'fast-string-width'
import { wrapAnsi } from 'fast-wrap-ansi'

/** Returns the width of a sanitized line in terminal columns: two for wide characters and emoji, none for combining marks. */
export function displayWidth(line: string): number {
  return stringWidth(line)
}

/**
 * Wraps a sanitized line at spaces, and within words that are wider than `width` columns.
 *
 * @param breakWords false keeps long words whole, so that they can be copied
 */
export function wrapLine(line: string, width: number, breakWords = true): string[] {
  if (displayWidth(line) <= width) return [line]
  return wrapAnsi(line, Math.max(1, width), { hard: breakWords }).split('\n')
}

/**
 * Wraps a message at spaces, never within words. If the message is wider than `width` columns, a command at its end, as in `text:
 * mailclaim …`, gets a line of its own, so that it can be copied.
 */
export function wrapMessageKeepingCommand(text: string, width: number): string[] {
  const [, words = text, ...command] =
    displayWidth(text) <= width ? [] : (/^(.*:) (mailclaim .*)$/.exec(text) ?? [])
  return [...wrapLine(words, width, false), ...command]
}

/**
 * Indents a piece of a wrapped line, except a piece that only fits the terminal without indentation, so that a copied command
 * contains no line break. A piece that begins with a label (`error:`) or a special character (`::error::`) is indented in any case:
 * it could pass for a message of this program or for a command to a CI system.
 *
 * @param indent terminal columns to indent by
 * @param terminalWidth in columns
 */
export function indentPiece(piece: string, indent: number, terminalWidth: number): string {
  const columnsLeft = terminalWidth - displayWidth(piece)
  const isMoved = columnsLeft >= 0 && columnsLeft < indent && !/^(\w+:|\W)/.test(piece)
  return isMoved ? piece : ' '.repeat(indent) + piece
}
