import stringWidth from 'string-width'

/** ASCII, the program's own signs, and letters of Latin, Greek and Cyrillic: a column each. */
const NARROW = '\\x20-\\x7e–…→✔○\\u2801-\\u28ff\\u00a1-\\u00ac\\u00ae-\\u02ff\\u0370-\\u0482\\u048a-\\u052f'
/** Kana, Chinese characters and Korean syllables: two columns each. */
const WIDE = '\\u3041-\\u3096\\u30a1-\\u30fa\\u4e00-\\u9fff\\uac00-\\ud7a3'
const WIDE_ONES = new RegExp(`[${WIDE}]`, 'g')
const SIMPLE = new RegExp(`^[${NARROW}${WIDE}]*$`)
/** Everything else, with the characters on both sides, which may combine with it. */
const COMPLEX = new RegExp(`[${NARROW}${WIDE}]?(?:[^${NARROW}${WIDE}]+[${NARROW}${WIDE}]?)+`, 'g')
/** The most frequent case is found out first. */
const ASCII = /^[\x20-\x7e]*$/

/**
 * How many columns of a terminal a clean line takes: wide characters and emoji take two, combining marks none. Only what
 * may combine is measured by the library, and each such part once, because that takes 25 ms to load and 0.1 ms for a line.
 */
export function widthOf(line: string): number {
  if (ASCII.test(line)) return line.length
  let width = simpleWidth(line)
  for (const [part] of line.matchAll(COMPLEX)) width += complexWidth(part) - simpleWidth(part)
  return width
}

/** Widths that were measured; an emoji or a letter often comes again. */
const known = new Map<string, number>()
const MOST_KNOWN = 1000
const LONGEST_KNOWN = 30

function complexWidth(part: string): number {
  let width = known.get(part)
  if (width === undefined) {
    width = 0
    for (const piece of part.length > LONGEST_PIECE ? charactersOf(part) : [part]) width += stringWidth(piece)
    if (known.size >= MOST_KNOWN) known.clear()
    if (part.length <= LONGEST_KNOWN) known.set(part, width)
  }
  return width
}

function simpleWidth(text: string): number {
  return text.length + (text.match(WIDE_ONES)?.length ?? 0)
}

/**
 * Breaks a clean line at words where possible, else within them, so that no piece is wider than `width`. A word that is too
 * long for any line begins on a line of its own, where it is easier to copy.
 */
export function wrap(line: string, width: number): string[] {
  if (widthOf(line) <= width) return [line]
  const room = Math.max(1, width)
  const lines: string[] = []
  let current = ''
  for (const word of line.split(' ').filter((part) => part !== '')) {
    const longer = current === '' ? word : `${current} ${word}`
    if (widthOf(longer) <= room) {
      current = longer
      continue
    }
    if (current !== '') lines.push(current)
    const broken = breakWord(word, room)
    current = broken.pop() ?? ''
    lines.push(...broken)
  }
  return current === '' ? lines : [...lines, current]
}

/** A character that is wider than the room has a line of its own. */
function breakWord(word: string, room: number): string[] {
  const lines: string[] = []
  let current = ''
  let used = 0
  for (const character of charactersOf(word)) {
    const width = widthOf(character)
    if (current !== '' && used + width > room) {
      lines.push(current)
      current = ''
      used = 0
    }
    current += character
    used += width
  }
  return [...lines, current]
}

/** UTF-16 units of a text that is taken apart at once: the time for that grows with the square of its length. */
const LONGEST_PIECE = 1000

/** As a person counts them (Unicode Standard Annex #29). */
function* charactersOf(text: string): Generator<string, void, void> {
  if (SIMPLE.test(text)) {
    yield* text
    return
  }
  for (let at = 0; at < text.length; ) {
    let end = at + LONGEST_PIECE
    // Not between the two halves of a character.
    if (/^[\udc00-\udfff]/.test(text.slice(end, end + 1))) end++
    for (const { segment } of new Intl.Segmenter().segment(text.slice(at, end))) yield segment
    at = end
  }
}

/** The beginning of a clean line that is no wider than `width`, with an ellipsis if something was cut off. */
export function truncate(line: string, width: number): string {
  if (widthOf(line) <= width) return line
  let kept = ''
  let used = 0
  for (const character of charactersOf(line)) {
    used += widthOf(character)
    if (used > width - 1) break
    kept += character
  }
  return `${kept}…`
}
