import { INVISIBLE } from './characters.ts'
import { valuesSeen } from './labels.ts'
import type { CheckReport } from './report.ts'
import { quote, text } from './text.ts'
import { explainValue, QUOTES } from './value-comparison.ts'

/** The value that a person gave, or why it can't be one. */
export type GivenValue =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly problem: string; readonly fix: string }

const COMPLETE = 'give the complete TXT value, such as prefix=token'

/**
 * Reads a value that a person pasted from a ticket, a chat, or a zone file. What can't belong to it is removed: invisible
 * characters, and spaces and quotation marks around it. What isn't a whole value is refused, because the customer would be
 * told to publish it. The service's values have the form `prefix=token`.
 */
export function readGivenValue(given: string): GivenValue {
  const refuse = (problem: string, fix = COMPLETE): GivenValue => ({ ok: false, problem, fix })
  const value = withoutQuotes(given.replace(INVISIBLE, (character) => (character === ' ' ? ' ' : '')))
  if (value === '') return refuse('is empty')
  const line = given.replace(/\s+/g, ' ').trim()
  if (LABEL.test(line) || RECORD_LINE.test(line)) {
    const pieces = line.replace(LABEL, '').split(/[\s"'`]+/)
    const only = pieces.findLast((piece) => /^[^=]+=+[^=]/.test(piece))
    return refuse(
      'holds a whole record line or a field label',
      only === undefined ? COMPLETE : `give only the value: ${only}`,
    )
  }
  if (/…|\.{3}/.test(value)) return refuse('is shortened: there is an ellipsis in it')
  if (!/^[^=]+=+[^=]/.test(value)) return refuse("isn't a complete value: a prefix, = and a token")
  return { ok: true, value }
}

/** A label in front of the value. An `=` belongs to the value unless another one follows. */
const LABEL =
  /^["'`]?(?:value|content|record|data|text|txt|host|name|type)["'`]?\s*(?::|=(?=\s*["'`]?[^=]+=[^=]))\s*/i
const RECORD_LINE = /(?:^|[\s"'(])(?:IN|TXT)\s/i

function withoutQuotes(value: string): string {
  const isQuote = (character = ' ') => QUOTES.includes(character)
  let inner = value.trim()
  while (inner.length > 1 && isQuote(inner.at(0)) && isQuote(inner.at(-1))) inner = inner.slice(1, -1).trim()
  return inner
}

/**
 * The report on a value that a person gave: if DNS has a value that looks complete, and the one given is a piece of it or
 * looks like a damaged copy, the first finding says that, instead of how to change the record.
 */
export function doubtGivenValue(report: CheckReport): CheckReport {
  const { expected, nameservers, findings } = report
  if (expected === null || nameservers.some(({ outcome }) => outcome === 'match')) return report
  const found = valuesSeen(report).find((value) => isDamaged(expected, value))
  if (found === undefined) return report
  return {
    ...report,
    findings: [
      {
        code: 'doubtful_value',
        severity: 'error',
        message: text`The value given may be incomplete or wrong: expected ${quote(expected)}, but ${quote(found)} in DNS looks like the whole value`,
        fix: text`Compare both with the value that the service shows for the claim. If that is ${quote(found)}, the record is right: check for it instead. Change the record only if the claim really has ${quote(expected)}`,
        seen: [found],
        details: {},
      },
      ...findings.filter(({ code, seen }) => seen === undefined && code !== 'missing'),
    ],
  }
}

const WHOLE = /^[\w.-]+=[\w.+/~-]*[\w+/~-]={0,2}$/
/** What may be cut off a value, unlike a domain or another value that was added to it. */
const CUT_OFF = /^[\w+/~-]*={0,2}$/

/** Whether the value given is a piece or a damaged copy of a whole one. */
function isDamaged(given: string, whole: string): boolean {
  if (!WHOLE.test(whole)) return false
  const around = whole.split(given)
  if (around.length === 2) return whole !== given && around.every((piece) => CUT_OFF.test(piece))
  const fault = explainValue(whole, given)
  if (fault === undefined || fault === 'stale_token' || fault === 'placeholder') return false
  // If both look whole, either may have the typo.
  return fault === 'encoded' || !WHOLE.test(given) || isRecased(given, whole)
}

/** Whether the letters of the value given were lowered, raised or capitalized on the way, as forms and phones do. */
function isRecased(given: string, whole: string): boolean {
  if (given === whole || given.toLowerCase() !== whole.toLowerCase()) return false
  const isCapitalized = given.slice(1) === whole.slice(1) && given[0] !== given[0]?.toLowerCase()
  return isCapitalized || (isOneCase(given) && !isOneCase(whole))
}

/** Whether the token, after the prefix, has letters of one case only. */
function isOneCase(value: string): boolean {
  const token = value.slice(value.indexOf('=') + 1)
  return token === token.toLowerCase() || token === token.toUpperCase()
}
