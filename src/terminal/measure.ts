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

/** The beginning of a clean line that is no wider than `width`, with an ellipsis if something was cut off. */
export function truncate(line: string, width: number): string {
  if (widthOf(line) <= width) return line
  return `${wrapAnsi(line, Math.max(1, width - 1), { hard: true, wordWrap: false }).split('\n')[0]}…`
}
