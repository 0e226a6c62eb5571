import { escapeCodePoint, sanitizeLine } from '../terminal/sanitize.ts'
import { decodeValue, decodeValues, type TxtValue } from './wire/txt-answer.ts'

/** What may be wrong with a TXT value; the most telling comes first. */
const FAULTS = [
  'quoted',
  'whitespace',
  'split_records',
  'extra_text',
  'case_changed',
  'prefix_or_token_only',
  'given_value_cut',
  'truncated',
  'characters_changed',
  'stale_token',
] as const

export type ValueFault = (typeof FAULTS)[number]

export interface ExplainedValue {
  readonly fault: ValueFault
  /** The wrong values: one, or the parts of `split_records` in order. */
  readonly seen: readonly string[]
}

/** White space, control characters, zero-width characters, bidi marks, byte order mark. */
const INVISIBLE = /[\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu
/** As typed, as a word processor makes them, and the backslashes that some providers put in front. */
const QUOTES = /["'`´“”„‟‘’‚‛«»‹›＂＇\\]/g
/** A value and a name of this form belong to somebody's verification. */
const PREFIX_AND_TOKEN = /^[\w.-]+=[\w+/~.-]{8,}=*$/
/**
 * One prefix and one token, but no policy such as SPF's. A token is base64, hexadecimal or a UUID, so none of the characters
 * means anything to a shell.
 */
const COMPLETE = /^(?!v=)[a-z0-9][\w.-]*=[\w+/-]+={0,2}$/i

/**
 * The most bytes in a value: the data of a record has at most 65,535, with a length byte for each character-string
 * (RFC 1035 sections 3.2.1 and 3.3.14).
 */
const MAX_VALUE_BYTES = 65_279
/** In bytes, and in records: people's values are shorter and fewer, a hostile server's needn't be. */
const MAX_LENGTH = 4096
const MAX_VALUES = 1000

const stripInvisible = (text: string): string => text.replace(INVISIBLE, '')
const stripQuotes = (text: string): string => stripInvisible(text).replace(QUOTES, '')

/**
 * What is wrong with the value that comes closest to the expected one; undefined if none has to do with it.
 *
 * @param isGiven whether a person gave the expected value, and may have cut it
 */
export function explainValues(
  expected: string,
  values: readonly TxtValue[],
  isGiven = false,
): ExplainedValue | undefined {
  const read = values.filter(({ bytes }) => bytes.length <= MAX_LENGTH).slice(0, MAX_VALUES)
  const found = read.flatMap((value): ExplainedValue[] => {
    const fault = explainValue(expected, value, isGiven)
    return fault === undefined ? [] : [{ fault, seen: [shownValue(expected, value)] }]
  })
  const parts = splitRecords(expected, decodeValues(read))
  if (parts !== undefined) found.push({ fault: 'split_records', seen: parts })
  const rank = ({ fault }: ExplainedValue) => FAULTS.indexOf(fault)
  return found.toSorted((a, b) => rank(a) - rank(b))[0]
}

/**
 * What is wrong with one value: undoes one thing after the other until it is the expected one. Undefined for the expected
 * value itself, and for one that has nothing to do with it (SPF, another service's proof).
 */
export function explainValue(expected: string, value: TxtValue, isGiven = false): ValueFault | undefined {
  const seen = decodeValue(value.bytes)
  const wanted = stripQuotes(expected)
  if (seen === expected || wanted === '') return undefined
  if (stripInvisible(seen) === stripInvisible(expected)) return 'whitespace'
  const inner = stripQuotes(seen)
  if (inner === wanted) return 'quoted'
  if (inner.toLowerCase() === wanted.toLowerCase()) return 'case_changed'
  if (isGiven && !/\s/.test(seen.trim()) && isPartOf(inner, wanted)) return 'given_value_cut'
  // Two strings of a record are no more one word than two records are.
  const apart = value.strings.map(decodeValue).join(' ')
  if ([seen, apart, inner].some((text) => holdsWhole(text, wanted))) return 'extra_text'
  const { prefix, token } = splitAtEquals(wanted)
  if ([prefix, `${prefix}=`, token].includes(inner)) return 'prefix_or_token_only'
  if (isCut(wanted, inner, (prefix?.length ?? 2) + 2) || isCut(token ?? '', inner, 4)) return 'truncated'
  if (isMistyped(wanted, inner, token ?? wanted)) return 'characters_changed'
  if (token === undefined || prefix === undefined) return undefined
  // No other service's proof has the same long token, so what is around it is wrong.
  if (token.length >= 8 && inner.includes(token)) return 'characters_changed'
  return inner.toLowerCase().startsWith(`${prefix.toLowerCase()}=`) ? 'stale_token' : undefined
}

/** The value for people. Its strings are kept apart if one of them is the expected value: joined, they'd make no sense. */
function shownValue(expected: string, { bytes, strings }: TxtValue): string {
  const texts = strings.map(decodeValue)
  return texts.length > 1 && texts.some((text) => stripQuotes(text) === stripQuotes(expected))
    ? texts.map((text) => `"${text}"`).join(' ')
    : decodeValue(bytes)
}

/** What is before and after the first `=`; neither if the value has another form, such as base64 with its padding. */
function splitAtEquals(value: string): { prefix?: string | undefined; token?: string | undefined } {
  const parts = /^([^=]+)=(.*[^=].*)$/s.exec(value)
  return parts === null ? {} : { prefix: parts[1], token: parts[2] }
}

/** Whether the value is somewhere in the text, and not only as the beginning of a longer token. */
function holdsWhole(text: string, wanted: string): boolean {
  const [, ...rests] = text.split(wanted)
  // A domain and the start of another value don't belong to the token.
  return rests.some((rest) => !/^(?:[\w+/~-]+={0,2}|={1,2})(?![\w+/~=.-])/.test(rest))
}

/** Whether the value is only the beginning of a longer one of the same form, or its end from a separator on. */
const isPartOf = (text: string, wanted: string): boolean =>
  isCompleteValue(text) &&
  (text.startsWith(wanted) || (/[\W_]$/.test(text.slice(0, -wanted.length)) && text.endsWith(wanted)))

/** Whether the text is what is left of the value: its start, its end, or both around an ellipsis. */
function isCut(whole: string, text: string, least: number): boolean {
  const [start = '', end] = text.split(/[[(<]?(?:…|\.{2,})[\])>]?/)
  const left = start.length + (end ?? '').length
  if (left >= whole.length || left < Math.max(least, Math.ceil(whole.length / 4))) return false
  const isEnd = text.length >= Math.max(8, whole.length / 2) && whole.endsWith(text)
  return isEnd || (whole.startsWith(start) && whole.endsWith(end ?? ''))
}

/** Whether few characters differ, side by side; two tokens of the same service differ in more. */
function isMistyped(wanted: string, seen: string, token: string): boolean {
  if (Math.abs(wanted.length - seen.length) > 8) return false
  const plain = (text: string) => Array.from(text.normalize('NFKC').toLowerCase())
  const [a, b] = [plain(wanted), plain(seen)]
  const { start, end } = commonEnds(a, b)
  return Math.max(a.length, b.length) - start - end <= Math.min(3, Math.floor(token.length / 6))
}

/** How many characters are the same at the start, and how many of the others at the end. */
function commonEnds(a: readonly string[], b: readonly string[]): { start: number; end: number } {
  const least = Math.min(a.length, b.length)
  let start = 0
  while (start < least && a[start] === b[start]) start += 1
  let end = 0
  while (end < least - start && a.at(-1 - end) === b.at(-1 - end)) end += 1
  return { start, end }
}

/** Two or more records that together make the value: of those that come next, the longest. */
function splitRecords(expected: string, seen: readonly string[]): string[] | undefined {
  const left = seen.filter((part) => part !== '').toSorted((a, b) => b.length - a.length)
  const parts: string[] = []
  for (let rest = expected; rest !== ''; rest = rest.slice(parts.at(-1)?.length)) {
    const next = left.findIndex((part) => part !== expected && rest.startsWith(part))
    if (next < 0) return undefined
    parts.push(...left.splice(next, 1))
  }
  return parts.length >= 2 ? parts : undefined
}

/** Whether a value that nobody expected looks like one that a service asked for: one word of a prefix and a token. */
export function isTokenValue(value: string): boolean {
  const words = value.replace(QUOTES, '').replace(INVISIBLE, (character) => (character === ' ' ? ' ' : ''))
  return PREFIX_AND_TOKEN.test(words.trim())
}

/** What is surely wrong with a service's value, whatever it should be. */
export function obviousFault(value: string): 'quoted' | 'whitespace' | undefined {
  if (!isTokenValue(value)) return undefined
  if (stripInvisible(value) !== value) return 'whitespace'
  return stripQuotes(value) === value ? undefined : 'quoted'
}

/** Whether a value is one that somebody may add to DNS, look for there, or hand to a command. */
export const isCompleteValue = (value: string): boolean =>
  value.length <= MAX_VALUE_BYTES && COMPLETE.test(value)

/**
 * The value that a person gave, without the spaces and quotation marks around it; undefined if it isn't one prefix and one
 * token: whoever compares with a mangled value is told to break the right record.
 */
export function readGivenValue(given: string): string | undefined {
  const around = `(?:${QUOTES.source}|${INVISIBLE.source})+`
  const value = given.replace(new RegExp(`^${around}|${around}$`, 'gu'), '')
  return isCompleteValue(value) ? value : undefined
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
export function comparedPieces(expected: string, seen: string): { expected: Piece[]; seen: Piece[] } {
  const [wanted, got] = [Array.from(expected), Array.from(seen)]
  const at = seen.indexOf(expected)
  const isInside = at >= 0
  const start = isInside ? Array.from(seen.slice(0, at)).length : commonEnds(wanted, got).start
  const end = isInside ? got.length - start - wanted.length : commonEnds(wanted, got).end
  const cut = (all: readonly string[], from: number, to: number) =>
    [all.slice(0, from), all.slice(from, to), all.slice(to)].map(
      (part, index): Piece => ({ text: part.join(''), differs: (index === 1) !== isInside }),
    )
  return {
    expected: isInside ? cut(wanted, 0, wanted.length) : cut(wanted, start, wanted.length - end),
    seen: cut(got, start, got.length - end),
  }
}

/** A piece for one line, with the invisible characters of a difference made visible: `␣`, `\u{200b}`. */
export function readablePiece({ text, differs }: Piece): string {
  if (!differs) return sanitizeLine(text)
  return sanitizeLine(text.replace(/ /g, '␣').replace(/\p{Zs}/gu, escapeCodePoint))
}
