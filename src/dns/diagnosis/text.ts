/** A value in a text. Those that end a fix aren't quoted, so that they are easy to copy. */
export interface Value {
  readonly value: string
  readonly isQuoted: boolean
}

/** A sentence. The values in it are kept apart, because they may hold anything, and each format quotes them differently. */
export type Text = string | readonly (string | Value)[]

/** In characters. Verification values have fewer than a hundred, and a message that quotes 64 kilobytes can't be read. */
const LONGEST_VALUE_SHOWN = 1000

/** A value in quotation marks, shortened if nobody could read it. */
export const quote = (value: string): Value => ({
  value: shorten(value, LONGEST_VALUE_SHOWN),
  isQuoted: true,
})

/** A value without quotation marks. */
export const unquoted = (value: string): Value => ({ ...quote(value), isQuoted: false })

/** Template literals with values and other texts in them. */
export function text(strings: readonly string[], ...inserted: readonly (Text | Value | number)[]): Text {
  return strings.flatMap((string, index) => [string, ...partsOf(inserted[index] ?? '')])
}

/** The plain strings and the values of a text, in order. */
export function partsOf(part: Text | Value | number): readonly (string | Value)[] {
  if (typeof part === 'number') return [String(part)]
  return typeof part === 'string' || 'value' in part ? [part] : part
}

/** The texts with a separator between them. */
export function join(texts: readonly (Text | Value)[], separator: string): Text {
  return texts.flatMap((part, index) => (index === 0 ? partsOf(part) : [separator, ...partsOf(part)]))
}

/** The text for a terminal and for scripts, with its values in quotation marks. */
export function plainText(whole: Text): string {
  return partsOf(whole)
    .map((part) => (typeof part === 'string' ? part : part.isQuoted ? `"${part.value}"` : part.value))
    .join('')
}

/** A full stop, unless it would follow a value and be copied with it. */
export function fullStopOf(sentence: Text): '.' | '' {
  const end = partsOf(sentence).findLast((part) => part !== '')
  return typeof end === 'object' && !end.isQuoted ? '' : '.'
}

/** The text in at most `length` characters. */
export function shorten(whole: string, length: number): string {
  return whole.length > length ? `${whole.slice(0, length - 1)}…` : whole
}

/** Capitalizes the first letter, unless the text starts with a domain name. */
export function capitalize(sentence: string): string {
  if (/^\S*\.\S/.test(sentence)) return sentence
  return sentence.charAt(0).toUpperCase() + sentence.slice(1)
}
