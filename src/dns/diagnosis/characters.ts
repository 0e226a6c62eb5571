import { sanitizeLine } from '../../terminal/sanitize.ts'
import { quote, type Text, text } from './text.ts'

// White space in Unicode's sense, control characters, soft hyphen, zero-width, bidi marks, byte order mark.
export const INVISIBLE = /[\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu

/** The text without invisible characters. */
export const withoutInvisible = (text: string): string => text.replace(INVISIBLE, '')

/**
 * The invisible characters, their positions, counted from 1, and their bytes.
 *
 * @param stored the bytes of the text in UTF-8 or in an encoding of one byte for each character.
 */
export function invisibleCharacters(
  text: string,
  stored: Uint8Array = Buffer.from(text),
): { position: number; hex: string; name: string }[] {
  const characters = Array.from(text)
  const isSingleByte = stored.length === characters.length
  return characters.flatMap((character, index) =>
    character.match(INVISIBLE) === null
      ? []
      : [
          {
            position: index + 1,
            hex: Buffer.from(isSingleByte ? stored.subarray(index, index + 1) : character).toString('hex'),
            name: characterName(character) ?? codePoint(character),
          },
        ],
  )
}

/** Letters of other scripts, each followed by the Latin letter it looks like. */
const LOOK_ALIKES: ReadonlyMap<string, string> = new Map(
  (
    'АAВBЕEЅSІIЈJКKМMНHОOРPСCТTУYХXԌGԚQԜWаaвbеeѕsіiјjкkмmнhоoрpсcтtуyхxһhԁdԛqԝwӏlҮYүy' +
    'ΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXαaβbεeιiκkνvοoρpτtυuχxγyωwϲcϳj' +
    'ՕOօoՍUսuհhոnցgıiɡgɑaɩiłlŁLøoØOđdĐD'
  )
    .match(/../gu)
    ?.map((pair): [string, string] => [pair.charAt(0), pair.charAt(1)]),
)

/**
 * What a text looks like to somebody who types it: without accents, ligatures, full-width forms, case, and invisible
 * characters; with one dash, one separator, and one letter for those that are hard to tell apart (O and 0; I, l, and 1).
 * Texts with the same appearance are misreadings of each other.
 */
export function appearance(text: string): string {
  const ascii = /^[\x21-\x7e]*$/.test(text) ? text : asciiLookAlike(text)
  return ascii
    .replaceAll('_', '-')
    .replaceAll(':', '=')
    .toLowerCase()
    .replaceAll('0', 'o')
    .replace(/[1i|]/g, 'l')
}

function asciiLookAlike(text: string): string {
  return Array.from(withoutInvisible(text.normalize('NFKD')), (c) => LOOK_ALIKES.get(c) ?? c)
    .join('')
    .replace(/\p{M}/gu, '')
    .replace(/[\p{Pd}\u2212\u2043\u00ac]/gu, '-')
    .replace(/[\u2236\ua78a\ua789]/gu, '=')
    .replace(/[\u3002\u00b7]/gu, '.')
    .replace(/[\u2044\u2215]/gu, '/')
}

/** A difference: other characters, missing ones (`seen` is empty), or extra ones. Positions count from 1. */
export interface CharacterChange {
  readonly position: number
  readonly expected: string
  readonly seen: string
}

/** The characters that differ, one by one if the differing parts are equally long. */
export function changedCharacters(expected: string, seen: string): CharacterChange[] {
  const parts = difference(expected, seen)
  const from = Array.from(parts.start).length + 1
  const wanted = Array.from(parts.expected)
  const got = Array.from(parts.seen)
  if (wanted.length !== got.length) return [{ position: from, expected: parts.expected, seen: parts.seen }]
  return wanted.flatMap((character, index) =>
    character === got[index] ? [] : [{ position: from + index, expected: character, seen: got[index] ?? '' }],
  )
}

/** What two values share at the start and at the end, and what is in between in each. */
export function difference(
  expected: string,
  seen: string,
): { start: string; expected: string; seen: string; end: string } {
  const wanted = Array.from(expected)
  const got = Array.from(seen)
  let start = 0
  while (start < wanted.length && start < got.length && wanted[start] === got[start]) start += 1
  let end = 0
  while (
    end < wanted.length - start &&
    end < got.length - start &&
    wanted[wanted.length - 1 - end] === got[got.length - 1 - end]
  )
    end += 1
  return {
    start: got.slice(0, start).join(''),
    expected: wanted.slice(start, wanted.length - end).join(''),
    seen: got.slice(start, got.length - end).join(''),
    end: end === 0 ? '' : got.slice(got.length - end).join(''),
  }
}

/** A part of a value: the same in both values, or not. */
export interface Piece {
  readonly text: string
  readonly differs: boolean
}

/**
 * Both values in three pieces, with the difference in the middle. If the value seen contains the expected one, the difference
 * is around it instead.
 */
export function comparedPieces(
  expected: string,
  seen: string,
): { expected: readonly Piece[]; seen: readonly Piece[] } {
  const pieces = (outer: boolean, ...texts: readonly string[]) =>
    texts.map((text, index): Piece => ({ text, differs: (index === 1) !== outer }))
  const at = seen.indexOf(expected)
  if (at >= 0)
    return {
      expected: pieces(true, '', expected, ''),
      seen: pieces(true, seen.slice(0, at), expected, seen.slice(at + expected.length)),
    }
  const parts = difference(expected, seen)
  return {
    expected: pieces(false, parts.start, parts.expected, parts.end),
    seen: pieces(false, parts.start, parts.seen, parts.end),
  }
}

/** A piece for one line, with the spaces in a difference made visible. */
export function readablePiece({ text, differs }: Piece): string {
  const clean = sanitizeLine(text)
  return differs ? clean.replace(/\p{White_Space}/gu, '␣') : clean
}

/**
 * Whether the Levenshtein distance is at most `max`. Only the cells of the matrix that could stay within the limit are
 * filled, so the time grows linearly with the length.
 */
export function isWithinEdits(a: string, b: string, max: number): boolean {
  const [short, long] = a.length <= b.length ? [a, b] : [b, a]
  if (long.length - short.length > max) return false
  let row = new Map<number, number>()
  for (let column = 0; column <= max; column += 1) row.set(column, column)
  for (let line = 1; line <= short.length; line += 1) {
    const next = new Map<number, number>()
    for (let column = Math.max(0, line - max); column <= Math.min(long.length, line + max); column += 1) {
      const replaced = (row.get(column - 1) ?? max + 1) + (short[line - 1] === long[column - 1] ? 0 : 1)
      const removed = (row.get(column) ?? max + 1) + 1
      const added = (next.get(column - 1) ?? max + 1) + 1
      next.set(column, Math.min(replaced, removed, added))
    }
    if (Math.min(...next.values()) > max) return false
    row = next
  }
  return (row.get(long.length) ?? max + 1) <= max
}

/** `"–" (U+2013, en dash)`: some characters in quotation marks, with the names of unusual ones. */
export function describeCharacters(seen: string): Text {
  const characters = Array.from(seen)
  const odd = characters.filter((c) => !/^[\x21-\x7e]$/.test(c) && (c !== ' ' || characters.length === 1))
  const names = odd.slice(0, 3).map((c) => [codePoint(c), characterName(c)].filter(Boolean).join(', '))
  // A combining mark would combine with the quotation mark.
  if (/^\p{M}/u.test(seen)) return names.join('; ')
  return names.length === 0 ? [quote(seen)] : text`${quote(seen)} (${names.join('; ')})`
}

/** `U+2013`, as Unicode writes it. */
export function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

function characterName(character: string): string | undefined {
  const code = character.codePointAt(0) ?? 0
  if (code >= 0xff01 && code <= 0xff5e) return `full-width ${String.fromCharCode(code - 0xfee0)}`
  const script = SCRIPTS.find(([pattern]) => pattern.test(character))
  return NAMES.get(code) ?? (script === undefined ? undefined : `${script[1]} letter`)
}

const SCRIPTS: readonly (readonly [RegExp, string])[] = [
  [/\p{Script=Cyrillic}/u, 'Cyrillic'],
  [/\p{Script=Greek}/u, 'Greek'],
  [/\p{Script=Armenian}/u, 'Armenian'],
]

const NAMES: ReadonlyMap<number, string> = new Map([
  [0x09, 'tab'],
  [0x0a, 'line feed'],
  [0x0d, 'carriage return'],
  [0x20, 'space'],
  [0xa0, 'no-break space'],
  [0xad, 'soft hyphen'],
  [0x200b, 'zero-width space'],
  [0x200c, 'zero-width non-joiner'],
  [0x200d, 'zero-width joiner'],
  [0x200e, 'left-to-right mark'],
  [0x200f, 'right-to-left mark'],
  [0x2010, 'hyphen'],
  [0x2011, 'non-breaking hyphen'],
  [0x2012, 'figure dash'],
  [0x2013, 'en dash'],
  [0x2014, 'em dash'],
  [0x2015, 'horizontal bar'],
  [0x2018, 'left single quotation mark'],
  [0x2019, 'right single quotation mark'],
  [0x201c, 'left double quotation mark'],
  [0x201d, 'right double quotation mark'],
  [0x2026, 'ellipsis'],
  [0x202f, 'narrow no-break space'],
  [0x2060, 'word joiner'],
  [0x2212, 'minus sign'],
  [0x2236, 'ratio sign'],
  [0x3000, 'ideographic space'],
  [0xfb01, 'ligature fi'],
  [0xfb02, 'ligature fl'],
  [0xfe63, 'small hyphen-minus'],
  [0xfeff, 'byte order mark'],
])
