import type { Observation, Observations } from '../observation/observations.ts'
import { relativeName } from '../wire/name.ts'
import { decodeValue } from '../wire/txt-answer.ts'
import {
  type CharacterChange,
  changedCharacters,
  codePoint,
  describeCharacters,
  invisibleCharacters,
} from './characters.ts'
import type { Finding } from './finding.ts'
import { isMasked } from './placeholder.ts'
import { join, plainText, quote, type Text, text, unquoted } from './text.ts'
import { type ExplainedValue, encodingOf, isRotated, type ValueFault } from './value-comparison.ts'

/** Characters that a message lists; the evidence lists all of them. */
const NAMED_CHARACTERS = 4
/** Parts of a split value that a message lists; the evidence lists all of them. */
const NAMED_PARTS = 10
/** Longer pieces are easier to read in the comparison below the message. */
const NAMED_PIECE = 12

/** @param seen the first wrong value; the only one, except for `split_records`. */
interface ValueTexts {
  readonly message: (expected: string, seen: string, all: readonly string[], stored?: Uint8Array) => Text
  /** Ends with the value, which makes it easy to copy. */
  readonly fix: (expected: string, seen: string, host: string) => Text
}

const compared = (expected: string, seen: string) => text`expected ${quote(expected)}, found ${quote(seen)}`
/** There may be several TXT records at the name. */
const changeTo = (expected: string, seen: string, host: string) =>
  text`Change the TXT record ${quote(seen)} (host ${host}) to ${unquoted(expected)}`

const TEXTS: Readonly<Record<ValueFault, ValueTexts>> = {
  quoted: {
    message: (expected, seen) =>
      text`The stored value includes ${quotingMarks(expected, seen)}: expected ${unquoted(expected)}, found ${unquoted(seen)}`,
    fix: (expected) =>
      text`Enter the value without quotation marks or backslashes; the provider adds any it needs: ${unquoted(expected)}`,
  },
  whitespace: {
    message: (expected, seen, _, stored) =>
      text`The stored value differs only in characters you can't see: ${invisibleDifference(expected, seen, stored)}. Expected ${quote(expected)}, found ${quote(seen)}`,
    fix: (expected) =>
      text`Delete the value and enter it again as plain text, without spaces or line breaks: ${unquoted(expected)}`,
  },
  split_records: {
    message: (expected, _, all) =>
      text`The value is split across ${all.length} TXT records: expected one record ${quote(expected)}, found ${join(all.slice(0, NAMED_PARTS).map(quote), ' and ')}${all.length > NAMED_PARTS ? ` and ${all.length - NAMED_PARTS} more` : ''}`,
    fix: (expected) =>
      text`Delete these records and add one TXT record with the whole value: ${unquoted(expected)}`,
  },
  truncated: {
    message: (expected, seen) =>
      text`The stored value is truncated: expected ${expected.length} characters (${quote(expected)}), found ${seen.length} (${quote(seen)})`,
    fix: changeTo,
  },
  case_changed: {
    message: (expected, seen) => text`Uppercase and lowercase letters differ: ${compared(expected, seen)}`,
    fix: (expected) => text`Enter the value exactly as given; it's case-sensitive: ${unquoted(expected)}`,
  },
  characters_changed: {
    message: (expected, seen) =>
      text`The stored value is almost right: ${changesText(changedCharacters(expected, seen))}. Expected ${quote(expected)}, found ${quote(seen)}`,
    fix: (expected) => text`Delete the value, then copy and paste it as plain text: ${unquoted(expected)}`,
  },
  encoded: {
    message: (expected, seen) =>
      text`The value isn't stored as plain text but as ${encodingOf(expected, seen) ?? 'something else'}: ${compared(expected, seen)}`,
    fix: (expected) => text`Enter the value as plain text, not encoded or escaped: ${unquoted(expected)}`,
  },
  swapped: {
    message: (expected, seen) =>
      isRotated(expected, seen)
        ? text`The value is in two parts that are in the wrong order: ${compared(expected, seen)}`
        : text`The parts before and after ${quote('=')} are swapped: ${compared(expected, seen)}`,
    fix: changeTo,
  },
  placeholder: {
    message: (expected, seen) =>
      text`The record holds ${isMasked(seen) ? 'a token that was copied from a field that hides it' : 'a placeholder from the instructions'} instead of the actual value: ${compared(expected, seen)}`,
    fix: changeTo,
  },
  stale_token: {
    message: (expected, seen) =>
      text`The record holds a different token: ${compared(expected, seen)}. It may be left over from an earlier claim`,
    fix: changeTo,
  },
  token_only: {
    message: (expected, seen) =>
      text`The part of the value before the token is missing: ${compared(expected, seen)}`,
    fix: changeTo,
  },
  prefix_only: {
    message: (expected, seen) => text`The token is missing from the value: ${compared(expected, seen)}`,
    fix: changeTo,
  },
  pasted_line: {
    message: (expected, seen) =>
      text`The value field holds a whole record line or a field label: ${compared(expected, seen)}`,
    fix: (expected) =>
      text`Enter only the value; the name, TTL, and type have their own fields: ${unquoted(expected)}`,
  },
  extra_text: {
    message: (expected, seen) =>
      isRepeated(expected, seen)
        ? text`The record holds the value more than once: ${compared(expected, seen)}`
        : text`The record holds other text besides the value: ${compared(expected, seen)}`,
    fix: (expected) => text`Put the value alone in a TXT record: ${unquoted(expected)}`,
  },
}

/** A wrong value at the right name. */
export function valueFinding(
  observations: Pick<Observations, 'name' | 'expected' | 'zone'> & {
    readonly servers: readonly Pick<Observation, 'values'>[]
  },
  explained: ExplainedValue,
  oldTtl: number | null,
): Finding {
  const { expected, name, zone } = observations
  const { fault, seen } = explained
  const [first = ''] = seen
  const texts = TEXTS[fault]
  const values = observations.servers.flatMap((server) => server.values)
  const stored = values.find(({ bytes }) => decodeValue(bytes) === first)?.bytes
  return {
    code: fault,
    severity: 'error',
    message: texts.message(expected, first, seen, stored),
    fix: texts.fix(expected, first, relativeName(name, zone)),
    seen,
    stored,
    details: {
      ...(fault === 'characters_changed' ? { characters: characterEvidence(expected, first) } : {}),
      ...(fault === 'encoded' ? { encoding: plainText(encodingOf(expected, first) ?? '') } : {}),
      old_state_ttl: oldTtl,
    },
  }
}

function quotingMarks(expected: string, seen: string): string {
  const added = Array.from(seen).filter((character) => !expected.includes(character))
  const hasBackslash = added.includes('\\')
  if (hasBackslash && added.every((character) => character === '\\')) return 'a backslash'
  return hasBackslash ? 'quotation marks and backslashes' : 'quotation marks'
}

function invisibleDifference(expected: string, seen: string, stored: Uint8Array | undefined): string {
  const extra = invisibleCharacters(seen, stored)
  if (extra.length <= invisibleCharacters(expected).length) return 'a space is missing'
  return extra
    .slice(0, NAMED_CHARACTERS)
    .map((c) => `${c.name} (hex ${c.hex}) at character ${c.position}`)
    .join(', ')
}

const isRepeated = (expected: string, seen: string) =>
  seen.split(expected).length > 2 && /^\W*$/.test(seen.replaceAll(expected, ''))

/** `character 3 is "–" (U+2013, en dash) instead of "-"`, and so on for each of a few. */
function changesText(changes: readonly CharacterChange[]): Text {
  const named = changes.slice(0, NAMED_CHARACTERS).map(({ position, expected, seen }) => {
    if (expected.length > NAMED_PIECE || seen.length > NAMED_PIECE)
      return `it differs from character ${position} on`
    if (seen === '') return text`${describeCharacters(expected)} is missing at character ${position}`
    if (expected === '') return text`there is an extra ${describeCharacters(seen)} at character ${position}`
    const instead = text`${describeCharacters(seen)} instead of ${describeCharacters(expected)}`
    return Array.from(expected).length === 1
      ? text`character ${position} is ${instead}`
      : text`it has ${instead} at character ${position}`
  })
  const more = changes.length - named.length
  return more > 0 ? text`${join(named, ', ')}, and ${more} more` : join(named, ', ')
}

function characterEvidence(expected: string, seen: string) {
  const codePoints = (text: string) => Array.from(text, codePoint)
  return changedCharacters(expected, seen).map((change) => ({
    ...change,
    expected_code_points: codePoints(change.expected),
    seen_code_points: codePoints(change.seen),
  }))
}
