/** Measures and breaks clean lines for a terminal. */
export interface Ruler {
  /** How many columns a line takes. */
  widthOf(line: string): number
  /** Breaks a line at words where possible, else within them, so that no piece is wider than `width`. */
  wrap(line: string, width: number): string[]
}

/** ASCII, and the dash and ellipsis that the program writes itself: one column each. */
const SIMPLE = /^[\x20-\x7e–…]*$/

/**
 * The ruler for these texts. Knowing the width of every script and emoji takes longer to load than a page takes to come
 * over the network, so it is loaded only for a text that needs it.
 */
export async function rulerFor(texts: readonly string[]): Promise<Ruler> {
  return texts.every((text) => SIMPLE.test(text)) ? simpleRuler : import('./width.ts')
}

export const simpleRuler: Ruler = {
  widthOf: (line) => line.length,
  wrap(line, width) {
    const room = Math.max(1, width)
    if (line.length <= room) return [line]
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
  },
}
