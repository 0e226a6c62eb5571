import type { Observations } from '../observation/observations.ts'
import { relativeName } from '../wire/name.ts'
import type { Finding } from './finding.ts'
import { type ExplainedValue, invisibleCharacters, type ValueFault } from './value-comparison.ts'

interface Words {
  readonly message: (expected: string, seen: readonly string[]) => string
  readonly fix: (expected: string, host: string) => string
}

const q = (text: string) => `"${text}"`
const one = (seen: readonly string[]) => q(seen[0] ?? '')
const replace = (expected: string, host: string) =>
  `Replace the value of the TXT record (host ${host}) by ${expected}`

const WORDS: Readonly<Record<ValueFault, Words>> = {
  quoted: {
    message: (expected, seen) =>
      `The quotation marks are part of the stored value: expected ${expected}, seen ${seen[0]}`,
    fix: (expected) =>
      `Type the value without quotation marks or backslashes, ${expected}: the provider adds its own`,
  },
  whitespace: {
    message: (expected, seen) => {
      const extra = invisibleCharacters(seen[0] ?? '')
      const wanted = invisibleCharacters(expected).length
      const named =
        extra.length > wanted
          ? extra
              .map((c) => `${c.name} (hex ${c.hex}) at character ${c.position}`)
              .slice(0, 5)
              .join(', ')
          : 'a blank is missing'
      return `The stored value differs only in characters that cannot be seen: ${named}. Expected ${q(expected)}, seen ${one(seen)}`
    },
    fix: (expected) =>
      `Delete the value and type or paste it anew, without blanks or line breaks: ${expected}`,
  },
  split_records: {
    message: (expected, seen) =>
      `The value was cut into ${seen.length} separate TXT records: expected one record ${q(expected)}, seen ${seen.map(q).join(' and ')}`,
    fix: (expected) => `Remove these records and add one TXT record with the whole value: ${expected}`,
  },
  truncated: {
    message: (expected, seen) =>
      `The stored value is cut: expected ${expected.length} characters (${q(expected)}), seen ${(seen[0] ?? '').length} (${one(seen)})`,
    fix: replace,
  },
  case_changed: {
    message: (expected, seen) => `Upper and lower case differ: expected ${q(expected)}, seen ${one(seen)}`,
    fix: (expected) => `Enter the value exactly as given, ${expected}: case matters in it`,
  },
  stale_token: {
    message: (expected, seen) =>
      `The record holds another token: expected ${q(expected)}, seen ${one(seen)}. It may be from an older claim`,
    fix: replace,
  },
  token_only: {
    message: (expected, seen) =>
      `Only the token was entered: expected ${q(expected)}, seen ${one(seen)}. The part before "=" is missing`,
    fix: replace,
  },
  prefix_only: {
    message: (expected, seen) =>
      `Only the part before the token was entered: expected ${q(expected)}, seen ${one(seen)}`,
    fix: replace,
  },
  pasted_line: {
    message: (expected, seen) =>
      `A whole line was pasted into the value: expected ${q(expected)}, seen ${one(seen)}`,
    fix: (expected) => `Enter the value alone, ${expected}: name, TTL and type have fields of their own`,
  },
  extra_text: {
    message: (expected, seen) =>
      `There is other text in the same record: expected ${q(expected)} alone, seen ${one(seen)}`,
    fix: (expected) => `Give the value a TXT record of its own: ${expected}`,
  },
}

/** A wrong value at the right place: what was expected, what was seen, where they part, in text and in bytes. */
export function valueFinding(
  observations: Observations,
  explained: ExplainedValue,
  oldTtl: number | null,
): Finding {
  const { fault, seen } = explained
  const words = WORDS[fault]
  return {
    code: fault,
    severity: 'error',
    message: words.message(observations.expected, seen),
    fix: words.fix(observations.expected, relativeName(observations.name, observations.zone)),
    seen,
    details: { old_state_ttl: oldTtl },
  }
}
