import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

/** ASCII and the program's own signs: a column each. They need no library, which takes 25 ms to load. */
const SIMPLE = /^[\x20-\x7e–…→✔○\u2801-\u28ff]*$/
/** UTF-16 units of a text that is wrapped at once. */
const LONGEST_PIECE = 1000

/** How many columns of a terminal a clean line takes: wide characters and emoji take two, combining marks none. */
export function widthOf(line: string): number {
  return SIMPLE.test(line) ? line.length : stringWidth(line)
}

/** Breaks a clean line at words where possible, else within them, so that no piece is wider than `width`. */
export function wrap(line: string, width: number): string[] {
  if (widthOf(line) <= width) return [line]
  const room = Math.max(1, width)
  if (SIMPLE.test(line)) return wrapSimple(line, room)
  return pieces(line).flatMap((piece) => wrapAnsi(piece, room, { hard: true, wordWrap: true }).split('\n'))
}

/** Unlike the library, begins a word that is too long for any line on a line of its own, where it is easier to copy. */
function wrapSimple(line: string, room: number): string[] {
  const lines: string[] = []
  let current = ''
  for (let word of line.split(' ').filter((part) => part !== '')) {
    if (current !== '' && current.length + 1 + word.length <= room) {
      current += ` ${word}`
      continue
    }
    if (current !== '') lines.push(current)
    for (; word.length > room; word = word.slice(room)) lines.push(word.slice(0, room))
    current = word
  }
  return current === '' ? lines : [...lines, current]
}

/** The library's time grows with the square of a text's length, so a long text is cut into pieces first. */
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

/** The beginning of a clean line that is no wider than `width`, with an ellipsis if something was cut off. */
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
