import { escapeCodePoint, sanitizeLine } from '../terminal/sanitize.ts'
import { decodeTxtValues, decodeUtf8OrWindows1252, type TxtRdata } from './wire/txt-answer.ts'

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

/** Fault of a TXT value; also the code of the finding that reports the fault. */
export type ValueFault = (typeof FAULTS)[number]

/** A fault of the TXT values at a name, and the value that has the fault or, for `split_records`, the values. */
export interface FaultWithValues {
  readonly fault: ValueFault
  /** The value with the fault, formatted for users; for `split_records`, the parts in the order that makes the expected value. */
  readonly seen: readonly string[]
}

/** Matches white space, control characters, and characters without a glyph, such as zero-width characters and bidi marks. */
const INVISIBLE = /[\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu
/**
 * Matches straight and typographic quotation marks, accents that look like them, and backslashes, with which some DNS providers
 * escape them.
 */
const QUOTES = /["'`´“”„‟‘’‚‛«»‹›＂＇\\]/g
/** Matches a probable verification value of some service: a prefix and a token of at least 8 characters. */
const TOKEN_LIKE = /^[\w.-]+=[\w+/~.-]{8,}=*$/
/**
 * Matches a value that can be expected, `prefix=token`, but no policy such as SPF's (`v=`). The token has the characters of base64
 * and UUIDs, none of which has a meaning in a shell.
 */
const PREFIX_AND_TOKEN = /^(?!v=)[a-z0-9][\w.-]*=[\w+/-]+={0,2}$/i

/**
 * Maximum bytes of a TXT value: RDATA has at most 65,535 bytes, with a length byte for each character-string of 255 (RFC 1035
 * sections 3.2.1 and 3.3.14).
 */
const MAX_VALUE_BYTES = 65_279
/** Maximum bytes of a compared value; longer ones are ignored. Real values are far shorter, but a hostile server can send 64 KB. */
const MAX_COMPARED_BYTES = 4096
/** Maximum number of values compared; others are ignored. Real names have a few, but a hostile server can send thousands. */
const MAX_COMPARED_VALUES = 1000

const stripInvisible = (text: string): string => text.replace(INVISIBLE, '')
/** Removes quotation marks, backslashes, white space and invisible characters from a text. */
const stripQuotes = (text: string): string => stripInvisible(text).replace(QUOTES, '')

/**
 * Returns the most specific fault of the values at a name, with the first value that has it (all parts for `split_records`);
 * undefined if no value has a fault.
 *
 * @param mayBeCut whether a user typed the expected value, which might have been truncated when copied
 */
export function findSpecificFault(
  expected: string,
  values: readonly TxtRdata[],
  mayBeCut = false,
): FaultWithValues | undefined {
  const read = values.filter(({ bytes }) => bytes.length <= MAX_COMPARED_BYTES).slice(0, MAX_COMPARED_VALUES)
  const found = read.flatMap((value): FaultWithValues[] => {
    const fault = findValueFault(expected, value, mayBeCut)
    return fault === undefined ? [] : [{ fault, seen: [formatValue(expected, value)] }]
  })
  const parts = findSplitRecords(expected, decodeTxtValues(read))
  if (parts !== undefined) found.push({ fault: 'split_records', seen: parts })
  const rank = ({ fault }: FaultWithValues) => FAULTS.indexOf(fault)
  return found.toSorted((a, b) => rank(a) - rank(b))[0]
}

/**
 * Returns the fault that explains how a value differs from the expected one; small changes are tested before large ones. Undefined
 * for the expected value itself, and for an unrelated value such as SPF or another service's proof.
 *
 * @param mayBeCut as in `findSpecificFault`
 */
export function findValueFault(expected: string, value: TxtRdata, mayBeCut = false): ValueFault | undefined {
  const seen = decodeUtf8OrWindows1252(value.bytes)
  const wanted = stripQuotes(expected)
  if (seen === expected || wanted === '') return undefined
  if (stripInvisible(seen) === stripInvisible(expected)) return 'whitespace'
  const inner = stripQuotes(seen)
  if (inner === wanted) return 'quoted'
  if (inner.toLowerCase() === wanted.toLowerCase()) return 'case_changed'
  if (mayBeCut && !/\s/.test(seen.trim()) && startsOrEndsWith(inner, wanted)) return 'given_value_cut'
  // Character-strings of a record are joined without a separator, which hides where the expected value ends. So search the text
  // with spaces between the character-strings as well.
  const apart = value.strings.map(decodeUtf8OrWindows1252).join(' ')
  if ([seen, apart, inner].some((text) => containsValue(text, wanted))) return 'extra_text'
  const { prefix, token } = splitAtEquals(wanted)
  if ([prefix, `${prefix}=`, token].includes(inner)) return 'prefix_or_token_only'
  if (isCut(wanted, inner, (prefix?.length ?? 2) + 2) || isCut(token ?? '', inner, 4)) return 'truncated'
  if (isMistyped(wanted, inner, token ?? wanted)) return 'characters_changed'
  if (token === undefined || prefix === undefined) return undefined
  // Tokens are random, so a value that contains the expected value's token (8 characters or more) is a damaged copy, not another
  // claim's value.
  if (token.length >= 8 && inner.includes(token)) return 'characters_changed'
  return inner.toLowerCase().startsWith(`${prefix.toLowerCase()}=`) ? 'stale_token' : undefined
}

/**
 * Formats a TXT value for users: its character-strings joined or, if one of several is the expected value (apart from quotation
 * marks and invisible characters), each in quotation marks, because joined text would hide their bounds.
 */
function formatValue(expected: string, { bytes, strings }: TxtRdata): string {
  const texts = strings.map(decodeUtf8OrWindows1252)
  return texts.length > 1 && texts.some((text) => stripQuotes(text) === stripQuotes(expected))
    ? texts.map((text) => `"${text}"`).join(' ')
    : decodeUtf8OrWindows1252(bytes)
}

/**
 * Splits a value at its first `=` into prefix and token; both undefined unless each has at least one character. Padding alone, as
 * at the end of base64, is no token.
 */
function splitAtEquals(value: string): { prefix?: string | undefined; token?: string | undefined } {
  const parts = /^([^=]+)=(.*[^=].*)$/s.exec(value)
  return parts === null ? {} : { prefix: parts[1], token: parts[2] }
}

/** Whether `text` contains the complete value `wanted`, and not merely as the start of a longer token. */
function containsValue(text: string, wanted: string): boolean {
  const [, ...rests] = text.split(wanted)
  // `rests`: the text after each occurrence of `wanted` in `text`. A rest that begins with token characters (letters, digits,
  // `_+/~-=`) makes the token longer, unless these characters belong to a domain name or start another value (`v=`).
  return rests.some((rest) => !/^(?:[\w+/~-]+={0,2}|={1,2})(?![\w+/~=.-])/.test(rest))
}

/** Whether `text` has the form `prefix=token`, and starts with `wanted`, or ends with `wanted` after a separator. */
const startsOrEndsWith = (text: string, wanted: string): boolean =>
  hasPrefixTokenForm(text) &&
  (text.startsWith(wanted) || (/[\W_]$/.test(text.slice(0, -wanted.length)) && text.endsWith(wanted)))

/**
 * Whether `text` is a truncated copy of `whole`: its start, its end, or both around an ellipsis. At least `least` characters and a
 * quarter of `whole` must be left; of the end without an ellipsis, 8 characters and half of `whole`.
 */
function isCut(whole: string, text: string, least: number): boolean {
  const [start = '', end] = text.split(/[[(<]?(?:…|\.{2,})[\])>]?/)
  const left = start.length + (end ?? '').length
  if (left >= whole.length || left < Math.max(least, Math.ceil(whole.length / 4))) return false
  const isEnd = text.length >= Math.max(8, whole.length / 2) && whole.endsWith(text)
  return isEnd || (whole.startsWith(start) && whole.endsWith(end ?? ''))
}

/**
 * Whether `seen` is a mistyped copy of `wanted`: apart from case and Unicode variants, they differ in one place, by at most three
 * characters and at most a sixth of the token's length. Two random tokens hardly ever differ in so little.
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

/**
 * Finds two or more TXT values that make the expected one when joined in the returned order; undefined if none are found. Takes, at
 * each position, the longest value that matches, without backtracking.
 */
function findSplitRecords(expected: string, seen: readonly string[]): string[] | undefined {
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
 * Whether a value looks like some service's verification value: a prefix and a token of at least 8 characters. Ignores quotation
 * marks, backslashes, invisible characters, all white space at both ends, and white space other than spaces inside the value.
 */
export function looksLikeVerification(value: string): boolean {
  const words = value.replace(QUOTES, '').replace(INVISIBLE, (character) => (character === ' ' ? ' ' : ''))
  return TOKEN_LIKE.test(words.trim())
}

/**
 * Returns the fault of a verification value that is evident without an expected value; undefined without such a fault, and if the
 * value doesn't look like a verification value.
 */
export function findFormatFault(value: string): 'quoted' | 'whitespace' | undefined {
  if (!looksLikeVerification(value)) return undefined
  if (stripInvisible(value) !== value) return 'whitespace'
  return stripQuotes(value) === value ? undefined : 'quoted'
}

/** Whether a value has the form of an expected value (`prefix=token`, not a policy with `v=`) and fits into a TXT record. */
export const hasPrefixTokenForm = (value: string): boolean =>
  value.length <= MAX_VALUE_BYTES && PREFIX_AND_TOKEN.test(value)

/**
 * Parses a value that a user typed: removes quotation marks, backslashes, white space and invisible characters around it. Returns
 * undefined unless `prefix=token` is left: compared with a mangled value, a correct record would be reported as wrong.
 */
export function parseTxtValueFromUser(given: string): string | undefined {
  const around = `(?:${QUOTES.source}|${INVISIBLE.source})+`
  const value = given.replace(new RegExp(`^${around}|${around}$`, 'gu'), '')
  return hasPrefixTokenForm(value) ? value : undefined
}

/** Part of a value in a comparison of two values; `differs` unless both have it in common. */
export interface DiffPiece {
  readonly text: string
  readonly differs: boolean
}

/**
 * Splits two values into three pieces each: the common start, the difference, the common end. If the value found contains the
 * expected one, the outer pieces are the difference instead, and the middle piece is common. Pieces can be empty.
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

/**
 * Escapes a piece of a compared value for one line of output. In a piece that differs, spaces become `␣`, and other space
 * characters become escapes such as `\u{a0}`.
 */
export function escapeDiffPiece({ text, differs }: DiffPiece): string {
  if (!differs) return sanitizeLine(text)
  return sanitizeLine(text.replace(/ /g, '␣').replace(/\p{Zs}/gu, escapeCodePoint))
}
