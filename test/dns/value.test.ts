import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  diffValues,
  findFormatFault,
  findSpecificFault,
  findValueFault,
  parseTxtValueFromUser,
} from '../../src/dns/value.ts'
import type { TxtRdata } from '../../src/dns/wire/txt-answer.ts'

const EXPECTED = 'mc-verify=Q7dX2kV9pLr4TzB8nW'
const TOKEN = 'Q7dX2kV9pLr4TzB8nW'

/** Creates a TXT value of these character-strings. */
const record = (...strings: string[]): TxtRdata => ({
  strings: strings.map((string) => Buffer.from(string)),
  bytes: Buffer.from(strings.join('')),
})
const explain = (...strings: string[]) => findValueFault(EXPECTED, record(...strings))

test.each([
  [`${EXPECTED}Z`, 'given_value_cut'],
  [`old-${EXPECTED}`, 'given_value_cut'],
  [`Array${EXPECTED}`, 'extra_text'],
  [`TXT ${EXPECTED}`, 'extra_text'],
  [`example.com. IN TXT "${EXPECTED}"`, 'extra_text'],
])('with a --value that may have been cut when copied, the TXT value %s has the fault %s', (text, fault) => {
  expect(findValueFault(EXPECTED, record(text), true)).toBe(fault)
})

test.each([
  [`"${EXPECTED}"`, 'quoted'],
  [`"mc-ve" "rify=${TOKEN}"`, 'quoted'],
  [`“${EXPECTED}”`, 'quoted'],
  [`\\"${EXPECTED}\\"`, 'quoted'],
  [`mc-verify\\=${TOKEN}`, 'quoted'],
  [`${EXPECTED} `, 'whitespace'],
  [`mc-verify= ${TOKEN}`, 'whitespace'],
  [`\u200b${EXPECTED}`, 'whitespace'],
  [EXPECTED.toUpperCase(), 'case_changed'],
  [`"${EXPECTED.toLowerCase()}"`, 'case_changed'],
  [`example.com. IN TXT "${EXPECTED}"`, 'extra_text'],
  [`v=spf1 -all ${EXPECTED}`, 'extra_text'],
  [`${EXPECTED}.example.com`, 'extra_text'],
  [`${EXPECTED}v=spf1 -all`, 'extra_text'],
  [`${EXPECTED}${EXPECTED}`, 'extra_text'],
  [TOKEN, 'prefix_or_token_only'],
  [`"${TOKEN}"`, 'prefix_or_token_only'],
  ['mc-verify=', 'prefix_or_token_only'],
  [EXPECTED.slice(0, -1), 'truncated'],
  [EXPECTED.slice(0, 14), 'truncated'],
  [EXPECTED.slice(3), 'truncated'],
  ['mc-verify=Q7dX[...]B8nW', 'truncated'],
  ['Q7dX2k...', 'truncated'],
  [`${EXPECTED}Z`, 'characters_changed'],
  [`mc–verify=${TOKEN}`, 'characters_changed'],
  [`mc-verify: ${TOKEN}`, 'characters_changed'],
  ['mc-verify=Q7dX2kV9pLr4TzВ8nW', 'characters_changed'],
  ['ｍｃ－ｖｅｒｉｆｙ＝Ｑ7dX2kV9pLr4TzB8nW', 'characters_changed'],
  [`other-verify=${TOKEN}`, 'characters_changed'],
  [`{"mc-verify": "${TOKEN}"}`, 'characters_changed'],
  [`<meta name="mc-verify" content="${TOKEN}">`, 'characters_changed'],
  ['mc-verify=another', 'stale_token'],
  ['MC-Verify=another', 'stale_token'],
  ['mc-verify=A1b2C3…', 'stale_token'],
  ['v=spf1 -all', undefined],
  ['...', undefined],
  ['other-verify=another', undefined],
  ['', undefined],
  [EXPECTED, undefined],
])('the TXT value %j, compared with mc-verify=Q7dX2kV9pLr4TzB8nW, has the fault %s', (seen, fault) => {
  expect(explain(seen)).toBe(fault)
})

test('a TXT record with the expected value and another value as its character-strings has the fault `extra_text`', () => {
  const both = record('other-verify=1234567890', EXPECTED)
  expect(findSpecificFault(EXPECTED, [both])).toEqual({
    fault: 'extra_text',
    seen: [`"other-verify=1234567890" "${EXPECTED}"`],
  })
  expect(explain(EXPECTED, 'Z1234567890')).toBe('extra_text')
  expect(explain(EXPECTED.slice(0, 9), EXPECTED.slice(9))).toBeUndefined()
})

test('of the faults of several TXT values, the most specific one is reported', () => {
  const values = ['v=spf1 -all', 'mc-verify=older', `"${EXPECTED}"`].map((value) => record(value))
  expect(findSpecificFault(EXPECTED, values)?.fault).toBe('quoted')
  expect(findSpecificFault(EXPECTED, values.slice(0, 2))?.fault).toBe('stale_token')
  expect(findSpecificFault(EXPECTED, values.slice(0, 1))).toBeUndefined()
})

test('an expected value split into records has the fault `split_records`, even if they are rotated and another value is among them', () => {
  const cuts = fc.array(fc.nat(), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(cuts, fc.nat(), (at, turn) => {
      const ends = [...new Set(at.map((cut) => 1 + (cut % (EXPECTED.length - 1))))].sort((a, b) => a - b)
      const parts = [0, ...ends].map((from, index) => EXPECTED.slice(from, ends[index]))
      const shift = turn % parts.length
      const shuffled = [...parts.slice(shift), 'v=spf1 -all', ...parts.slice(0, shift)]
      const explained = findSpecificFault(
        EXPECTED,
        shuffled.map((part) => record(part)),
      )
      expect(explained).toEqual({ fault: 'split_records', seen: parts })
    }),
  )
})

describe('TXT values of other services and claims', () => {
  const letters = (alphabet: string, length: number) =>
    fc.string({ minLength: length, maxLength: length, unit: fc.constantFrom(...alphabet) })
  const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
  const mine = letters(ALPHANUMERIC, 24).map((token) => `mailclaim-domain-verification=${token}`)
  const others = fc.oneof(
    fc.constantFrom(
      'v=spf1 include:_spf.google.com ~all',
      'v=DMARC1; p=none; rua=mailto:dmarc@example.com',
      'forward-email=user@example.com',
      'https://example.com/',
      'hello world',
      '“quoted”',
      'ключ=значение',
    ),
    letters('0123456789', 8).map((digits) => `MS=ms${digits}`),
    letters(`${ALPHANUMERIC}_-`, 43).map((token) => `google-site-verification=${token}`),
    letters(`${ALPHANUMERIC}+/`, 216).map((key) => `v=DKIM1; k=rsa; p=${key}IDAQAB`),
    letters(ALPHANUMERIC, 64).map((token) => `atlassian-domain-verification=${token}`),
    letters(ALPHANUMERIC, 24),
  )

  test('findSpecificFault and findFormatFault find no fault in TXT values of other services', () => {
    fc.assert(
      fc.property(mine, fc.array(others, { maxLength: 8 }), (expected, seen) => {
        const values = seen.map((value) => record(value))
        expect(findSpecificFault(expected, values)).toBeUndefined()
        expect(seen.map(findFormatFault).filter(Boolean)).toEqual([])
      }),
    )
  })

  test('a TXT value with the expected prefix and another random token has the fault `stale_token`, not `characters_changed`', () => {
    fc.assert(
      fc.property(mine, mine, (expected, seen) => {
        fc.pre(expected !== seen)
        expect(findValueFault(expected, record(seen))).toBe('stale_token')
      }),
    )
  })
})

test.each([
  [EXPECTED, EXPECTED],
  [` "${EXPECTED}"\n`, EXPECTED],
  [`\ufeff“${EXPECTED}”`, EXPECTED],
  ['a= b', undefined],
  [`TXT ${EXPECTED}`, undefined],
  [EXPECTED.replace('-', '\u2013'), undefined],
  ['token', undefined],
  ['prefix=', undefined],
  ['v=spf1', undefined],
  ['""', undefined],
  [`${EXPECTED}==`, `${EXPECTED}==`],
  ['a.b_c-d=0e984725-c51c-4bf4-9960-e1c80e27aba0', 'a.b_c-d=0e984725-c51c-4bf4-9960-e1c80e27aba0'],
  ['a=b+/_-', 'a=b+/_-'],
  [`mc-verify=${EXPECTED}`, undefined],
  [`prefix=${EXPECTED}`, undefined],
  [`TXT=${EXPECTED}`, undefined],
  [`mc-verify==${TOKEN}`, undefined],
  [`${EXPECTED}===`, undefined],
  [`${EXPECTED}.`, undefined],
  [`${EXPECTED}...`, undefined],
  [`example.com,${EXPECTED}`, undefined],
  [`(${EXPECTED})`, undefined],
  [`**${EXPECTED}**`, undefined],
])('the typed --value %j is parsed as %j', (given, value) => {
  expect(parseTxtValueFromUser(given)).toBe(value)
})

test('diffValues splits two values into pieces that join to the values, and separates their common start and end', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (expected, seen) => {
      const pieces = diffValues(expected, seen)
      expect(pieces.expected.map(({ text }) => text).join('')).toBe(expected)
      expect(pieces.seen.map(({ text }) => text).join('')).toBe(seen)
    }),
  )
  const { expected, seen } = diffValues('prefix=token', 'prefix=tocken')
  expect(expected.map(({ text }) => text)).toEqual(['prefix=to', '', 'ken'])
  expect(seen.map(({ text }) => text)).toEqual(['prefix=to', 'c', 'ken'])
})

test('the search for faults in a TXT value of 65,000 characters, or in 500 values, ends within the test timeout', () => {
  for (const filling of ['-', 'a', '=', '\\', '“', '.', ' ']) explain(`mc-verify=${filling.repeat(65_000)}x`)
  const long = `prefix=${'aB0_'.repeat(16_000)}`
  findSpecificFault(
    long,
    Array.from({ length: 500 }, (_, index) => record(`prefix=v${index}`)),
  )
  const parts = Array.from({ length: 200 }, () => record('a'))
  expect(findSpecificFault(`${'a'.repeat(150)}b`, parts)?.fault).not.toBe('split_records')
})
