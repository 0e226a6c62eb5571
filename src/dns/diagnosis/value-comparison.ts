import { appearance, isWithinEdits, withoutInvisible } from './characters.ts'
import { decodings, fromUtf16 } from './encodings.ts'
import { isPlaceholder } from './placeholder.ts'
import type { Text } from './text.ts'

/** The most telling explanation comes first. */
const FAULTS = [
  'quoted',
  'whitespace',
  'split_records',
  'pasted_line',
  'extra_text',
  'case_changed',
  'encoded',
  'characters_changed',
  'swapped',
  'token_only',
  'truncated',
  'prefix_only',
  'placeholder',
  'stale_token',
] as const

/** What is wrong with a TXT value that is related to the expected one. */
export type ValueFault = (typeof FAULTS)[number]

export interface ExplainedValue {
  readonly fault: ValueFault
  /** The wrong values: one, or the parts of `split_records` in order. */
  readonly seen: readonly string[]
}

/** Several times what any real name has. */
const MAX_EXPLAINED = 500
/** In characters: what one answer can hold. */
const MAX_EXPLAINED_LENGTH = 65_536

export const QUOTES = `"'\`´“”„‟‘’‚‛«»‹›＂＇`

/** Removes quotation marks and a provider's backslashes, layer by layer. */
export function unquote(text: string): string {
  let inner = text
  for (let layer = 0; layer < 4; layer += 1) {
    const stripped = inner.replace(/^\\(?=["'])/, '').replace(/\\(["'])$/, '$1')
    const first = stripped.at(0) ?? ''
    const last = stripped.at(-1) ?? ''
    const opens = QUOTES.includes(first) && first !== ''
    const closes = QUOTES.includes(last) && last !== '' && stripped.length > (opens ? 1 : 0)
    if (!opens && !closes) break
    inner = stripped.slice(opens ? 1 : 0, closes ? -1 : undefined)
  }
  return inner
}

/** The expected value and what it is compared as. It may be long, and is compared with thousands of values. */
interface Expected extends Halves {
  readonly text: string
  /** Without invisible characters. */
  readonly wanted: string
  readonly lowerCase: string
  /** The appearances of the value, of its parts, and of the value with its parts swapped. */
  readonly looks: {
    readonly value: string
    readonly prefix: string | undefined
    readonly token: string | undefined
    readonly swapped: readonly string[]
  }
}

function expectedForms(text: string): Expected {
  const wanted = withoutInvisible(text)
  const { prefix, token } = halves(wanted)
  const separators = prefix === undefined ? [] : ['=', '', '.', '-', ',', ';', '/']
  return {
    text,
    wanted,
    prefix,
    token,
    lowerCase: wanted.toLowerCase(),
    looks: {
      value: appearance(wanted),
      prefix: prefix === undefined ? undefined : appearance(prefix),
      token: token === undefined ? undefined : appearance(token),
      swapped: separators.map((between) => appearance(`${token}${between}${prefix}`)),
    },
  }
}

/**
 * What is wrong with one value; undefined for the expected value itself, and for an unrelated one (SPF, another service's
 * proof).
 *
 * @param name the record's name, which people paste along with the value.
 */
export function explainValue(expected: string, seen: string, name?: string): ValueFault | undefined {
  return explain(expectedForms(expected), seen, name)
}

function explain(forms: Expected, seen: string, name: string | undefined): ValueFault | undefined {
  const { text: expected, wanted, prefix, token } = forms
  if (seen === expected) return undefined
  if (isQuoted(expected, seen)) return 'quoted'
  const bare = withoutInvisible(seen)
  if (bare === wanted) return fromUtf16(seen) === undefined ? 'whitespace' : 'encoded'
  if (isQuoted(wanted, bare) || isQuoted(wanted, bare.replace(/\\/g, ''))) return 'quoted'
  if (wanted === '') return undefined
  const inner = withoutInvisible(unquote(bare))
  if (inner.toLowerCase() === forms.lowerCase) return 'case_changed'
  // Before other text: quotation marks and line breaks may be encoded around a value that is not.
  if (findEncoding(wanted, seen) !== undefined) return 'encoded'
  const [part, stored] = seen.includes(expected) ? [expected, seen] : [wanted, bare]
  if (stored.includes(part) && !isCutOff(part, stored))
    return isPastedLine(expected, seen, name) ? 'pasted_line' : 'extra_text'
  if (bare.replace(/\\/g, '') === wanted) return 'quoted'

  if (token !== undefined && inner === token) return 'token_only'
  if (prefix !== undefined && (inner === prefix || inner === `${prefix}=`)) return 'prefix_only'
  const enough = Math.max(prefix === undefined ? 4 : prefix.length + 2, Math.ceil(wanted.length / 4))
  if (inner.length >= enough && inner.length < wanted.length && wanted.startsWith(inner)) return 'truncated'
  if (inner.length >= Math.max(8, wanted.length / 2) && wanted.endsWith(inner))
    // Provider forms drop a leading underscore, and nobody cuts off just that.
    return /^[\W_]+$/.test(wanted.slice(0, -inner.length)) ? 'characters_changed' : 'truncated'
  if (isAbbreviated(wanted, inner, enough)) return 'truncated'
  if (token !== undefined && isAbbreviated(token, inner, Math.max(4, Math.ceil(token.length / 4))))
    return 'truncated'
  if (isRotated(wanted, inner)) return 'swapped'
  return explainLikeness(forms, inner)
}

/** Whether the text was cut once, and its end is before its start, like two strings of a record in the wrong order. */
export function isRotated(whole: string, seen: string): boolean {
  return seen.length === whole.length && seen !== whole && (whole + whole).includes(seen)
}

/** Whether an ellipsis replaces part of the text, as in a shortened display, and at least `enough` characters are left. */
function isAbbreviated(whole: string, seen: string, enough: number): boolean {
  const parts = /^(.*?)[[(<]?(?:[…⋯]|\.{2,})[\])>]?(.*)$/s.exec(seen)
  const [, start = '', end = ''] = parts ?? []
  const left = start.length + end.length
  return left >= enough && left < whole.length && whole.startsWith(start) && whole.endsWith(end)
}

/** A value that looks like the expected one, or has its prefix. */
function explainLikeness(expected: Expected, inner: string): ValueFault | undefined {
  const { wanted, prefix, token } = expected
  // Limited, because a much longer value is different anyway.
  const looks = appearance(inner.slice(0, 4 * wanted.length + 64))
  const start = prefix === undefined ? undefined : `${expected.looks.prefix}=`
  const hasPrefix = start !== undefined && looks.startsWith(start)
  if (expected.looks.swapped.includes(looks)) return 'swapped'
  if (looks === expected.looks.value) return 'characters_changed'
  if (prefix !== undefined && (looks === start || `${looks}=` === start)) return 'prefix_only'
  if (looks === expected.looks.token) return 'token_only'
  if (isWithinEdits(looks, expected.looks.value, mostTypos(token ?? wanted))) return 'characters_changed'
  if (isPlaceholder(hasPrefix ? inner.slice((prefix?.length ?? 0) + 1) : inner, hasPrefix))
    return 'placeholder'
  // No other service's proof has the same long token, so the text in front of it is wrong.
  if (token !== undefined && token.length >= 8 && /[=:;, -]/.test(inner.at(-token.length - 1) ?? ''))
    if (inner.endsWith(token)) return 'characters_changed'
  return hasPrefix ? 'stale_token' : undefined
}

interface Halves {
  readonly prefix?: string | undefined
  readonly token?: string | undefined
}

/** What is before and after the first `=`; neither if the value has another form, such as base64 with its padding. */
function halves(value: string): Halves {
  const parts = /^([^=]+)=(.*[^=].*)$/s.exec(value)
  return parts?.[1] === undefined || parts[2] === undefined ? {} : { prefix: parts[1], token: parts[2] }
}

/** Two tokens of the same service that differ by at most this much are the same token, mistyped. */
function mostTypos(token: string): number {
  return Math.min(3, Math.floor(token.length / 6))
}

/** The encoding in which the expected value was stored; undefined if the value seen is something else. */
export function encodingOf(expected: string, seen: string): Text | undefined {
  return findEncoding(withoutInvisible(expected), seen)
}

function findEncoding(wanted: string, seen: string): Text | undefined {
  const inner = withoutInvisible(unquote(seen))
  if (withoutInvisible(fromUtf16(seen) ?? '') === wanted) return 'UTF-16 (two bytes for each character)'
  const found = decodings(inner).find(({ text }) => withoutInvisible(unquote(text)) === wanted)
  return found?.encoding
}

/** Only what is around the value counts: quotation marks inside it belong to it. */
function isQuoted(expected: string, seen: string): boolean {
  if (seen === expected || seen.length <= expected.length) return false
  const at = seen.indexOf(expected)
  const around = at < 0 ? undefined : seen.slice(0, at) + seen.slice(at + expected.length)
  if (around !== undefined && around !== '' && [...around].every((c) => QUOTES.includes(c) || c === '\\'))
    return true
  // Several quoted strings, as in zone files, stored as one.
  return [seen, seen.replace(/"\s*"/g, '')].some((text) => unquote(text) === expected)
}

/** Whether the expected text, wherever it is, ends in the middle of a longer token. */
function isCutOff(wanted: string, seen: string): boolean {
  const [, ...rests] = seen.split(wanted)
  // A domain and the start of another value don't belong to the token.
  return rests.every((rest) => /^(?:[\w+/~-]+={0,2}|={1,2})(?![\w+/~=.-])/.test(rest))
}

/** A whole zone-file line, the name, or a "TXT=" or "value:" label, went into the value field. */
function isPastedLine(expected: string, seen: string, name: string | undefined): boolean {
  const at = seen.indexOf(expected)
  const before = at < 0 ? seen : seen.slice(0, at)
  const around = at < 0 ? '' : before + seen.slice(at + expected.length)
  return (
    (name !== undefined &&
      around
        .replace(/[\s"'=:,;]/g, '')
        .replace(/\.$/, '')
        .toLowerCase() === name) ||
    /(?:^|[\s"'(])(?:IN|TXT|SPF)(?:[\s"'=:]+|$)/i.test(before) ||
    /^[\s{["']*(?:value|content|record|data|text|txt|host|name|type)["']?\s*[:=]/i.test(before)
  )
}

/**
 * Explains a set of values without the expected one: one explanation for each fault, the best first. Of more than
 * `MAX_EXPLAINED` values or `MAX_EXPLAINED_LENGTH` characters, only the first are explained.
 */
export function explainValues(expected: string, seen: readonly string[], name?: string): ExplainedValue[] {
  const found: ExplainedValue[] = []
  const parts = splitRecords(expected, seen)
  if (parts !== undefined) found.push({ fault: 'split_records', seen: parts })
  const forms = expectedForms(expected)
  let length = 0
  for (const value of seen.slice(0, MAX_EXPLAINED)) {
    length += value.length
    if (length > MAX_EXPLAINED_LENGTH) break
    const fault = explain(forms, value, name)
    if (fault !== undefined && !found.some((other) => other.fault === fault))
      found.push({ fault, seen: [value] })
  }
  return found.sort((a, b) => FAULTS.indexOf(a.fault) - FAULTS.indexOf(b.fault))
}

/** Two or more records that together, in some order, make the value. */
export function splitRecords(expected: string, seen: readonly string[]): string[] | undefined {
  let steps = 0
  const search = (rest: string, left: readonly string[]): string[] | undefined => {
    if (rest === '') return []
    for (const [index, part] of left.entries()) {
      // A hostile set of records would take exponential time.
      steps += 1
      if (steps > 5000) return undefined
      if (part === '' || !rest.startsWith(part)) continue
      const others = search(rest.slice(part.length), left.toSpliced(index, 1))
      if (others !== undefined) return [part, ...others]
    }
    return undefined
  }
  const parts = search(
    expected,
    seen.filter((part) => part !== expected),
  )
  return parts !== undefined && parts.length >= 2 ? parts : undefined
}
