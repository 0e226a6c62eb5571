import { INVISIBLE, withoutInvisible } from './characters.ts'
import { decodings, fromUtf16 } from './encodings.ts'
import type { Finding } from './finding.ts'
import { valueFinding } from './findings-value.ts'
import { valuesSeen } from './labels.ts'
import type { CheckReport } from './report.ts'
import { quote, text } from './text.ts'
import { explainValue, QUOTES, unquote } from './value-comparison.ts'

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

/** What is said about the value given instead. */
const REPLACED: readonly Finding['code'][] = ['missing', 'wildcard_answer', 'wrong_provider_hint']

/**
 * The report on a value that a person gave: if DNS has a value that looks complete, and the one given is a piece of it or
 * looks like a damaged copy, the first finding says that, instead of how to change the record. The second one says what is
 * wrong with the record even if its value is the right one, such as quotation marks. If both look whole, either may have the
 * typo: the finding stays, and its fix begins with a look at the claim.
 */
export function doubtGivenValue(report: CheckReport): CheckReport {
  const { expected, nameservers, findings } = report
  if (expected === null || nameservers.some(({ outcome }) => outcome === 'match')) return report
  for (const seen of valuesSeen(report)) {
    const whole = wholeValueIn(seen, expected)
    if (whole === undefined) continue
    const others = findings.filter(({ code, seen }) => seen === undefined && !REPLACED.includes(code))
    const fault = faultBeside(report, expected, whole, seen)
    return { ...report, findings: [doubtful(expected, whole, fault), ...(fault ? [fault] : []), ...others] }
  }
  return { ...report, findings: findings.map(compareFirst) }
}

const TYPOS: readonly Finding['code'][] = ['characters_changed', 'case_changed']

/** The finding, with a fix that doesn't take the value given for the right one. */
function compareFirst(finding: Finding): Finding {
  const [seen, ...others] = finding.seen ?? []
  if (!TYPOS.includes(finding.code) || seen === undefined || others.length > 0) return finding
  const fix = text`Compare both with the value that the service shows for the claim. If that is ${quote(seen)}, the record is right: check for it instead. If it is the value given: ${finding.fix}`
  return { ...finding, fix }
}

function doubtful(expected: string, whole: string, fault: Finding | undefined): Finding {
  const ifRight =
    fault === undefined
      ? text`If that is ${quote(whole)}, the record is right: check for it instead`
      : fault.code === 'case_changed'
        ? 'Check for that value instead: uppercase and lowercase letters differ as well'
        : text`If that is ${quote(whole)}, check for it instead: only what is around it in the record is wrong [${fault.code}]`
  return {
    code: 'doubtful_value',
    severity: 'error',
    message: text`The value given may be incomplete or wrong: expected ${quote(expected)}, but ${quote(whole)} in DNS looks like the whole value`,
    fix: text`Compare both with the value that the service shows for the claim. ${ifRight}. Change the record to the value given only if the claim really has ${quote(expected)}`,
    seen: [whole],
    details: {},
  }
}

/** What is wrong with the record even if it's the value given that is incomplete; undefined if nothing is. */
function faultBeside(
  { name, zone, nameservers, findings }: CheckReport,
  expected: string,
  whole: string,
  seen: string,
): Finding | undefined {
  if (isOnlyRecased(expected, whole))
    // Nobody knows the case of the letters that aren't in the value given.
    return {
      code: 'case_changed',
      severity: 'error',
      message: text`Uppercase and lowercase letters differ from the value given, too: ${quote(seen)}`,
      fix: "Enter the value exactly as the service shows it; it's case-sensitive",
      details: { seen },
    }
  const fault = explainValue(whole, seen, name)
  if (fault === undefined) return undefined
  const stored = findings.find((finding) => finding.seen?.[0] === seen)?.stored
  const servers = stored === undefined ? [] : [{ values: [{ bytes: stored, strings: [stored] }] }]
  const ttl = nameservers.find(({ values }) => values.includes(seen))?.ttl ?? null
  const observations = { name, zone: zone ?? name, expected: whole, servers }
  return { ...valueFinding(observations, { fault, seen: [seen] }, ttl), expected: whole }
}

/** Whether the value given is in the whole one only if uppercase and lowercase letters are the same. */
function isOnlyRecased(given: string, whole: string): boolean {
  return (
    !whole.includes(given) && whole.toLowerCase().includes(given.toLowerCase()) && whole.length > given.length
  )
}

/**
 * The complete value in what is stored, without the quotation marks, spaces, line, label or encoding around it, if the value
 * given is a piece or a damaged copy of it. Undefined if there is none, or more than one.
 */
function wholeValueIn(seen: string, given: string): string | undefined {
  const bare = withoutInvisible(seen)
  const spaced = seen.replace(INVISIBLE, (character) => (/[ \t\xa0]/.test(character) ? ' ' : ''))
  const decoded = decodings(unquote(bare)).map(({ text }) => withoutInvisible(unquote(text)))
  for (const text of [spaced, bare, fromUtf16(seen) ?? '', ...decoded]) {
    const parts = [text, unquote(text), ...text.split(BETWEEN)]
    const pieces = new Set(parts.map((piece) => piece.replace(LABEL, '')))
    if (pieces.has(given)) return undefined
    const [value, ...others] = [...pieces].filter((piece) => isDamaged(given, piece))
    if (value !== undefined) return others.length === 0 ? value : undefined
  }
  return undefined
}

/** What separates a value from what was pasted or added around it. */
const BETWEEN = new RegExp(`[\\s\\\\,;:(){}${QUOTES}]+`)

const WHOLE = /^[\w.-]+=[\w.+/~-]*[\w+/~-]={0,2}$/
/** What may be cut off a value, unlike a domain or another value that was added to it. */
const CUT_OFF = /^[\w+/~-]*={0,2}$/

/** Whether the value given is a piece or a damaged copy of a whole one. */
function isDamaged(given: string, whole: string): boolean {
  if (!WHOLE.test(whole)) return false
  const around = whole.toLowerCase().split(given.toLowerCase())
  if (around.length === 2 && whole.length > given.length) return around.every((piece) => CUT_OFF.test(piece))
  const fault = explainValue(whole, given)
  if (fault === undefined || fault === 'stale_token' || fault === 'placeholder') return false
  // If both look whole, either may have the typo.
  return fault === 'encoded' || !WHOLE.test(given) || isRecased(given, whole) || hasOtherPrefix(given, whole)
}

/** Whether only the prefix differs: a person typed it, since the token was copied. */
function hasOtherPrefix(given: string, whole: string): boolean {
  const [prefix, other] = [given, whole].map((value) => value.slice(0, value.indexOf('=')))
  return (
    prefix?.toLowerCase() !== other?.toLowerCase() &&
    given.slice(prefix?.length) === whole.slice(other?.length)
  )
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
