import { escapeCodePoint, sanitizeLine } from '../terminal/sanitize.ts'
import { decodeValue, decodeValues, type TxtValue } from './wire/txt-answer.ts'

/** Faults of a TXT value, the most specific first: if several values are wrong, the first fault in this order is reported. */
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

/** Fault of a TXT value, and the code of the finding that reports it. */
export type ValueFault = (typeof FAULTS)[number]

/** A fault, with the values at the name that show it. */
export interface ValueExplanation {
  readonly fault: ValueFault
  /** The wrong values: a single one or, for `split_records`, the parts in order. */
  readonly seen: readonly string[]
}

/** White space, control characters, zero-width characters, bidi marks, byte order mark. */
const INVISIBLE = /[\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu
/** Straight and typographic quotation marks, and the backslashes with which some providers escape them. */
const QUOTES = /["'`´“”„‟‘’‚‛«»‹›＂＇\\]/g
/** Form of a service's verification value: one prefix and one token of at least 8 characters. */
const PREFIX_AND_TOKEN = /^[\w.-]+=[\w+/~.-]{8,}=*$/
/**
 * Form of a value that this program accepts: one prefix and one token, but no policy such as SPF's (`v=`). Tokens are base64,
 * hexadecimal or UUIDs, so no character has a meaning in a shell.
 */
const COMPLETE = /^(?!v=)[a-z0-9][\w.-]*=[\w+/-]+={0,2}$/i

/**
 * Maximum bytes of a TXT value: RDATA has at most 65,535 bytes, with a length byte for each character-string of 255 (RFC 1035
 * sections 3.2.1 and 3.3.14).
 */
const MAX_VALUE_BYTES = 65_279
/** Maximum bytes of a value that is compared: real values are far shorter, but a hostile server can send 64 KB. */
const MAX_COMPARED_BYTES = 4096
/** Maximum number of values that are compared: real names have a few, but a hostile server can send thousands. */
const MAX_COMPARED_VALUES = 1000

/** Removes invisible characters from a text. */
const stripInvisible = (text: string): string => text.replace(INVISIBLE, '')
/** Removes quotation marks, backslashes and invisible characters from a text. */
const stripQuotes = (text: string): string => stripInvisible(text).replace(QUOTES, '')

/**
 * Returns the most specific fault of the values at a name; undefined if none of the values resembles the expected one.
 *
 * @param isGiven whether a user typed the expected value, and might have truncated it while copying
 */
export function explainValues(
  expected: string,
  values: readonly TxtValue[],
  isGiven = false,
): ValueExplanation | undefined {
  const read = values.filter(({ bytes }) => bytes.length <= MAX_COMPARED_BYTES).slice(0, MAX_COMPARED_VALUES)
  const found = read.flatMap((value): ValueExplanation[] => {
    const fault = findFault(expected, value, isGiven)
    return fault === undefined ? [] : [{ fault, seen: [shownValue(expected, value)] }]
  })
  const parts = splitRecords(expected, decodeValues(read))
  if (parts !== undefined) found.push({ fault: 'split_records', seen: parts })
  const rank = ({ fault }: ValueExplanation) => FAULTS.indexOf(fault)
  return found.toSorted((a, b) => rank(a) - rank(b))[0]
}

/**
 * Returns the fault of one value, found by undoing one change after the other until the value equals the expected one. Undefined
 * for the expected value itself, and for an unrelated value (SPF, another service's proof).
 */
export function findFault(expected: string, value: TxtValue, isGiven = false): ValueFault | undefined {
  const seen = decodeValue(value.bytes)
  const wanted = stripQuotes(expected)
  if (seen === expected || wanted === '') return undefined
  if (stripInvisible(seen) === stripInvisible(expected)) return 'whitespace'
  const inner = stripQuotes(seen)
  if (inner === wanted) return 'quoted'
  if (inner.toLowerCase() === wanted.toLowerCase()) return 'case_changed'
  if (isGiven && !/\s/.test(seen.trim()) && isPartOf(inner, wanted)) return 'given_value_cut'
  // Character-strings of a record are joined without a separator, which hides where the value begins. So compare them with a
  // space between as well.
  const apart = value.strings.map(decodeValue).join(' ')
  if ([seen, apart, inner].some((text) => holdsWhole(text, wanted))) return 'extra_text'
  const { prefix, token } = splitAtEquals(wanted)
  if ([prefix, `${prefix}=`, token].includes(inner)) return 'prefix_or_token_only'
  if (isCut(wanted, inner, (prefix?.length ?? 2) + 2) || isCut(token ?? '', inner, 4)) return 'truncated'
  if (isMistyped(wanted, inner, token ?? wanted)) return 'characters_changed'
  if (token === undefined || prefix === undefined) return undefined
  // Tokens are random, so a value with the same long token is a damaged copy and not another claim's.
  if (token.length >= 8 && inner.includes(token)) return 'characters_changed'
  return inner.toLowerCase().startsWith(`${prefix.toLowerCase()}=`) ? 'stale_token' : undefined
}

/**
 * Formats a value for users. Its character-strings are quoted one by one if one of them is the expected value, which the joined
 * text would hide.
 */
function shownValue(expected: string, { bytes, strings }: TxtValue): string {
  const texts = strings.map(decodeValue)
  return texts.length > 1 && texts.some((text) => stripQuotes(text) === stripQuotes(expected))
    ? texts.map((text) => `"${text}"`).join(' ')
    : decodeValue(bytes)
}

/** Splits a value at its first `=` into prefix and token; both undefined for another form, such as base64 with its padding. */
function splitAtEquals(value: string): { prefix?: string | undefined; token?: string | undefined } {
  const parts = /^([^=]+)=(.*[^=].*)$/s.exec(value)
  return parts === null ? {} : { prefix: parts[1], token: parts[2] }
}

/** Whether a text contains the complete value, but not merely as the start of a longer token. */
function holdsWhole(text: string, wanted: string): boolean {
  const [, ...rests] = text.split(wanted)
  // Characters directly behind the value make its token longer, unless they are a domain name (`.example.com`) or start another
  // value (`v=`).
  return rests.some((rest) => !/^(?:[\w+/~-]+={0,2}|={1,2})(?![\w+/~=.-])/.test(rest))
}

/** Whether `text` is a complete value that starts with `wanted`, or ends with `wanted` after a separator. */
const isPartOf = (text: string, wanted: string): boolean =>
  isPrefixAndToken(text) &&
  (text.startsWith(wanted) || (/[\W_]$/.test(text.slice(0, -wanted.length)) && text.endsWith(wanted)))

/**
 * Whether `text` is a truncated copy of a value with at least `least` characters: its start, its end, or both around an ellipsis.
 */
function isCut(whole: string, text: string, least: number): boolean {
  const [start = '', end] = text.split(/[[(<]?(?:…|\.{2,})[\])>]?/)
  const left = start.length + (end ?? '').length
  if (left >= whole.length || left < Math.max(least, Math.ceil(whole.length / 4))) return false
  const isEnd = text.length >= Math.max(8, whole.length / 2) && whole.endsWith(text)
  return isEnd || (whole.startsWith(start) && whole.endsWith(end ?? ''))
}

/**
 * Whether one value is a mistyped copy of the other: they differ in a few adjacent characters, while two tokens of one service
 * differ in more.
 */
function isMistyped(wanted: string, seen: string, token: string): boolean {
  if (Math.abs(wanted.length - seen.length) > 8) return false
  const plain = (text: string) => Array.from(text.normalize('NFKC').toLowerCase())
  const [a, b] = [plain(wanted), plain(seen)]
  const { start, end } = commonEnds(a, b)
  return Math.max(a.length, b.length) - start - end <= Math.min(3, Math.floor(token.length / 6))
}

/** Returns the lengths of the common start and the common end of two texts; the two parts don't overlap. */
function commonEnds(a: readonly string[], b: readonly string[]): { start: number; end: number } {
  const least = Math.min(a.length, b.length)
  let start = 0
  while (start < least && a[start] === b[start]) start += 1
  let end = 0
  while (end < least - start && a.at(-1 - end) === b.at(-1 - end)) end += 1
  return { start, end }
}

/** Finds at least two TXT values that make the expected one when joined in the returned order; undefined if there are none. */
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

/**
 * Whether a value looks like a service's verification value: one prefix and one token, apart from quotation marks and invisible
 * characters.
 */
export function looksLikeToken(value: string): boolean {
  const words = value.replace(QUOTES, '').replace(INVISIBLE, (character) => (character === ' ' ? ' ' : ''))
  return PREFIX_AND_TOKEN.test(words.trim())
}

/**
 * Returns the fault that a service's verification value shows even if no value is expected; undefined for other values, and
 * without such a fault.
 */
export function findFormatFault(value: string): 'quoted' | 'whitespace' | undefined {
  if (!looksLikeToken(value)) return undefined
  if (stripInvisible(value) !== value) return 'whitespace'
  return stripQuotes(value) === value ? undefined : 'quoted'
}

/** Whether a value is one prefix and one token, so that it may be added to DNS, checked there, and passed to a command. */
export const isPrefixAndToken = (value: string): boolean =>
  value.length <= MAX_VALUE_BYTES && COMPLETE.test(value)

/**
 * Reads a value that a user typed, without surrounding spaces and quotation marks. Returns undefined unless it is one prefix and
 * one token: compared with a mangled value, a correct record would be reported as wrong.
 */
export function parseGivenValue(given: string): string | undefined {
  const around = `(?:${QUOTES.source}|${INVISIBLE.source})+`
  const value = given.replace(new RegExp(`^${around}|${around}$`, 'gu'), '')
  return isPrefixAndToken(value) ? value : undefined
}

/** Part of a value in a comparison: equal in both values, or different. */
export interface DiffPiece {
  readonly text: string
  readonly differs: boolean
}

/**
 * Splits both values into three pieces, the middle one with the difference. If the value found contains the expected one, the outer
 * pieces differ instead.
 */
export function diffValues(expected: string, seen: string): { expected: DiffPiece[]; seen: DiffPiece[] } {
  const [wanted, got] = [Array.from(expected), Array.from(seen)]
  const at = seen.indexOf(expected)
  const isInside = at >= 0
  const start = isInside ? Array.from(seen.slice(0, at)).length : commonEnds(wanted, got).start
  const end = isInside ? got.length - start - wanted.length : commonEnds(wanted, got).end
  const cut = (all: readonly string[], from: number, to: number) =>
    [all.slice(0, from), all.slice(from, to), all.slice(to)].map(
      (part, index): DiffPiece => ({ text: part.join(''), differs: (index === 1) !== isInside }),
    )
  return {
    expected: isInside ? cut(wanted, 0, wanted.length) : cut(wanted, start, wanted.length - end),
    seen: cut(got, start, got.length - end),
  }
}

/** Formats a piece for one line, with invisible characters in a difference as `␣` or `\u{200b}`. */
export function formatDiffPiece({ text, differs }: DiffPiece): string {
  if (!differs) return sanitizeLine(text)
  return sanitizeLine(text.replace(/ /g, '␣').replace(/\p{Zs}/gu, escapeCodePoint))
}
