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
