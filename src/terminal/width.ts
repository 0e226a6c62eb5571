import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

const ASCII = /^[\x20-\x7e]*$/

/** How many columns of a terminal a clean line takes: wide characters and emoji take two, marks none. */
export function widthOf(line: string): number {
  return ASCII.test(line) ? line.length : stringWidth(line)
}

/** Breaks a clean line at words where possible, else within them, so that no piece is wider than `width`. */
export function wrap(line: string, width: number): string[] {
  if (widthOf(line) <= width) return [line]
  return wrapAnsi(line, Math.max(1, width), { hard: true, wordWrap: true }).split('\n')
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
