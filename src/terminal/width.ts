import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

/** UTF-16 units of a text that is wrapped as one. */
const LONGEST_PIECE = 1000

const ASCII = /^[\x20-\x7e]*$/

/** How many columns of a terminal a clean line takes: wide characters and emoji take two, marks none. */
export function widthOf(line: string): number {
  return ASCII.test(line) ? line.length : stringWidth(line)
}

/** Breaks a clean line at words where possible, else within them, so that no piece is wider than `width`. */
export function wrap(line: string, width: number): string[] {
  if (widthOf(line) <= width) return [line]
  return pieces(line).flatMap((piece) =>
    wrapAnsi(piece, Math.max(1, width), { hard: true, wordWrap: true }).split('\n'),
  )
}

/** The library's time grows with the square of a text: a long one is broken in pieces first. */
function pieces(line: string): string[] {
  const found: string[] = []
  for (let at = 0; at < line.length; ) {
    let end = at + LONGEST_PIECE
    // Not between the two halves of a character.
    if (/^[\udc00-\udfff]/.test(line.slice(end, end + 1))) end++
    found.push(line.slice(at, end))
    at = end
  }
  return found
}

/** The beginning of a clean line that is no wider than `width`, with an ellipsis where something was cut off. */
export function truncate(line: string, width: number): string {
  if (widthOf(line) <= width) return line
  let kept = ''
  let used = 0
  for (const { segment } of new Intl.Segmenter().segment(line)) {
    used += widthOf(segment)
    if (used > width - 1) break
    kept += segment
  }
  return `${kept}…`
}
