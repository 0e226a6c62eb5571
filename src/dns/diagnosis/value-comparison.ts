import type { FindingCode } from './finding.ts'

/** What is wrong with a TXT value that is not the expected one but has to do with it. */
export type ValueFault = Extract<
  FindingCode,
  | 'quoted'
  | 'whitespace'
  | 'split_records'
  | 'truncated'
  | 'case_changed'
  | 'stale_token'
  | 'token_only'
  | 'prefix_only'
  | 'pasted_line'
  | 'extra_text'
>

export interface ExplainedValue {
  readonly fault: ValueFault
  /** The values concerned: one, or the parts of `split_records` in their order. */
  readonly seen: readonly string[]
}

// White space in Unicode's sense, control characters, soft hyphen, zero-width, bidi marks, byte order mark.
const INVISIBLE = /[\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu
const QUOTES = `"'\`´“”„‟‘’‚‛«»‹›＂＇`

const visible = (text: string) => text.replace(INVISIBLE, '')

/** Takes quotation marks and a provider's backslashes off, layer by layer. */
function unquote(text: string): string {
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

/**
 * Names what is wrong with one value, given that it is not the expected one; undefined for a value that has nothing
 * to do with it (SPF, another service's proof).
 */
export function explainValue(expected: string, seen: string): ValueFault | undefined {
  if (seen === expected) return undefined
  if (isQuoted(expected, seen)) return 'quoted'
  const bare = visible(seen)
  const wanted = visible(expected)
  if (bare === wanted) return 'whitespace'
  if (isQuoted(wanted, bare) || isQuoted(wanted, bare.replace(/\\/g, ''))) return 'quoted'
  if (wanted === '') return undefined
  const inner = visible(unquote(bare))
  if (inner.toLowerCase() === wanted.toLowerCase()) return 'case_changed'
  if (seen.includes(expected) || bare.includes(wanted))
    return isPastedLine(expected, seen) ? 'pasted_line' : 'extra_text'

  const equals = wanted.indexOf('=')
  const prefix = equals > 0 ? wanted.slice(0, equals) : undefined
  const token = equals > 0 ? wanted.slice(equals + 1) : undefined
  if (token !== undefined && token !== '' && inner === token) return 'token_only'
  if (prefix !== undefined && (inner === prefix || inner === `${prefix}=`)) return 'prefix_only'
  const enough = Math.max(prefix === undefined ? 4 : prefix.length + 2, Math.ceil(wanted.length / 4))
  if (inner.length >= enough && inner.length < wanted.length && wanted.startsWith(inner)) return 'truncated'
  if (inner.length >= Math.max(8, wanted.length / 2) && wanted.endsWith(inner)) return 'truncated'
  if (prefix !== undefined && inner.toLowerCase().startsWith(`${prefix.toLowerCase()}=`)) return 'stale_token'
  return undefined
}

/** Quotation marks that belong to the value itself stay: only what is around it counts. */
function isQuoted(expected: string, seen: string): boolean {
  if (seen === expected || seen.length <= expected.length) return false
  const at = seen.indexOf(expected)
  const around = at < 0 ? undefined : seen.slice(0, at) + seen.slice(at + expected.length)
  if (around !== undefined && around !== '' && [...around].every((c) => QUOTES.includes(c) || c === '\\'))
    return true
  return unquote(seen) === expected
}

/** A whole zone-file line, or a "TXT=" or "value:" label, went into the value field. */
function isPastedLine(expected: string, seen: string): boolean {
  const at = seen.indexOf(expected)
  const before = at < 0 ? seen : seen.slice(0, at)
  return (
    /(?:^|[\s"'(])(?:IN|TXT|SPF)(?:[\s"'=:]+|$)/i.test(before) ||
    /^\s*["']?(?:value|content|record|data|text|txt|host|name|type)\s*[:=]/i.test(before)
  )
}

/** The most telling explanation comes first. */
const ORDER: readonly ValueFault[] = [
  'quoted',
  'whitespace',
  'split_records',
  'pasted_line',
  'extra_text',
  'case_changed',
  'token_only',
  'truncated',
  'prefix_only',
  'stale_token',
]

/** Explains a set of values, none of which is the expected one; the best explanation first, one for each fault. */
export function explainValues(expected: string, seen: readonly string[]): ExplainedValue[] {
  const found: ExplainedValue[] = []
  const parts = splitRecords(expected, seen)
  if (parts !== undefined) found.push({ fault: 'split_records', seen: parts })
  for (const value of seen) {
    const fault = explainValue(expected, value)
    if (fault !== undefined && !found.some((other) => other.fault === fault))
      found.push({ fault, seen: [value] })
  }
  return found.sort((a, b) => ORDER.indexOf(a.fault) - ORDER.indexOf(b.fault))
}

/** Two or more records that only together, in some order, make the value. */
export function splitRecords(expected: string, seen: readonly string[]): string[] | undefined {
  let steps = 0
  const search = (rest: string, left: readonly string[]): string[] | undefined => {
    if (rest === '') return []
    for (const [index, part] of left.entries()) {
      // A hostile set of records could make this exponential.
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

/** Where two values part: what is the same at the start and at the end, and the piece between in each. */
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

/** The characters that cannot be seen, by code point and the place (from 1) where they are. */
export function invisibleCharacters(text: string): { position: number; hex: string; name: string }[] {
  return Array.from(text).flatMap((character, index) => {
    if (character.match(INVISIBLE) === null) return []
    const code = character.codePointAt(0) ?? 0
    return [
      {
        position: index + 1,
        hex: Buffer.from(character).toString('hex'),
        name: INVISIBLE_NAMES.get(code) ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`,
      },
    ]
  })
}

const INVISIBLE_NAMES: ReadonlyMap<number, string> = new Map([
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
  [0x202f, 'narrow no-break space'],
  [0x2060, 'word joiner'],
  [0x3000, 'ideographic space'],
  [0xfeff, 'byte order mark'],
])
