import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  difference,
  explainValue,
  explainValues,
  invisibleCharacters,
  splitRecords,
} from '../../../src/dns/diagnosis/value-comparison.ts'
import { decodeValue } from '../../../src/dns/wire/txt-answer.ts'

const EXPECTED = 'mc-verify=Q7dX2kV9pLr4TzB8nW'

describe('a wrong value is told by what is wrong with it', () => {
  test.each([
    [`"${EXPECTED}"`, 'quoted'],
    [`'${EXPECTED}'`, 'quoted'],
    [`“${EXPECTED}”`, 'quoted'],
    [`\\"${EXPECTED}\\"`, 'quoted'],
    [`"${EXPECTED}`, 'quoted'],
    [`" ${EXPECTED}"`, 'quoted'],
    [`""${EXPECTED}""`, 'quoted'],
    [`${EXPECTED} `, 'whitespace'],
    [`\t${EXPECTED}`, 'whitespace'],
    [`mc-verify= ${EXPECTED.slice(10)}`, 'whitespace'],
    [`\u200b${EXPECTED}`, 'whitespace'],
    [`${EXPECTED}\n`, 'whitespace'],
    [EXPECTED.toUpperCase(), 'case_changed'],
    [`"${EXPECTED.toLowerCase()}"`, 'case_changed'],
    [`example.com. IN TXT "${EXPECTED}"`, 'pasted_line'],
    [`@ 3600 IN TXT ${EXPECTED}`, 'pasted_line'],
    [`TXT=${EXPECTED}`, 'pasted_line'],
    [`TXT: ${EXPECTED}`, 'pasted_line'],
    [`Value: ${EXPECTED}`, 'pasted_line'],
    [`v=spf1 -all ${EXPECTED}`, 'extra_text'],
    [`${EXPECTED};`, 'extra_text'],
    [EXPECTED.slice(10), 'token_only'],
    [`"${EXPECTED.slice(10)}"`, 'token_only'],
    ['mc-verify=', 'prefix_only'],
    ['mc-verify', 'prefix_only'],
    [EXPECTED.slice(0, -1), 'truncated'],
    [EXPECTED.slice(0, 14), 'truncated'],
    [EXPECTED.slice(3), 'truncated'],
    ['mc-verify=another', 'stale_token'],
    ['MC-Verify=another', 'stale_token'],
    ['v=spf1 -all', undefined],
    ['other-verify=another', undefined],
    ['', undefined],
    [EXPECTED, undefined],
  ])('%j is %s', (seen, fault) => {
    expect(explainValue(EXPECTED, seen)).toBe(fault)
  })

  test('the best explanation of several comes first', () => {
    const found = explainValues(EXPECTED, ['v=spf1 -all', 'mc-verify=older', `"${EXPECTED}"`])
    expect(found.map((explained) => explained.fault)).toEqual(['quoted', 'stale_token'])
  })
})

/** Values as services make them, and any other text without what the mistakes themselves put in. */
const token = fc.string({ minLength: 8, maxLength: 300, unit: fc.constantFrom(...'abcXYZ0189-_.+/') })
const value = fc
  .tuple(fc.stringMatching(/^[a-z][a-z-]{1,15}[a-z]$/), token)
  .map(([prefix, rest]) => `${prefix}=${rest}`)
const anyText = fc.string({ minLength: 1, maxLength: 300, unit: 'grapheme' })

describe('any value survives a mistake being named', () => {
  test('quoting', () => {
    fc.assert(
      fc.property(anyText, fc.constantFrom('"', "'", '“', '`'), (expected, mark) => {
        expect(explainValue(expected, `${mark}${expected}${mark === '“' ? '”' : mark}`)).toBe('quoted')
      }),
      { numRuns: 2000 },
    )
  })

  test('padding with what cannot be seen', () => {
    const blank = fc.constantFrom(' ', '\t', '\n', '\u00a0', '\u200b', '\ufeff', '\u3000', '\u00ad')
    fc.assert(
      fc.property(value, blank, fc.nat(), (expected, character, place) => {
        const at = place % (expected.length + 1)
        const seen = expected.slice(0, at) + character + expected.slice(at)
        expect(explainValue(expected, seen)).toBe('whitespace')
        expect(invisibleCharacters(seen)).toMatchObject([{ position: at + 1 }])
      }),
      { numRuns: 2000 },
    )
  })

  test('splitting into records, in any order and among others', () => {
    fc.assert(
      fc.property(
        value,
        fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
        fc.nat(),
        (expected, cuts, turn) => {
          const places = [...new Set(cuts.map((cut) => 1 + (cut % (expected.length - 1))))].sort(
            (a, b) => a - b,
          )
          const parts = [0, ...places].map((from, index) =>
            expected.slice(from, places[index] ?? expected.length),
          )
          const shuffled = [
            ...parts.slice(turn % parts.length),
            'v=spf1 -all',
            ...parts.slice(0, turn % parts.length),
          ]
          expect(splitRecords(expected, shuffled)?.join('')).toBe(expected)
          expect(explainValues(expected, shuffled)[0]?.fault).toBe('split_records')
        },
      ),
      { numRuns: 2000 },
    )
  })

  test('cutting, as long as enough is left to know it by', () => {
    fc.assert(
      fc.property(value, fc.double({ min: 0.5, max: 0.99, noNaN: true }), (expected, share) => {
        const seen = expected.slice(
          0,
          Math.max(expected.indexOf('=') + 2, Math.floor(expected.length * share)),
        )
        fc.pre(seen.length < expected.length)
        expect(explainValue(expected, seen)).toBe('truncated')
      }),
      { numRuns: 2000 },
    )
  })

  test('nothing is ever said of the value itself, and nothing throws', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.array(fc.string({ unit: 'binary' })),
        (expected, seen) => {
          expect(explainValue(expected, expected)).toBeUndefined()
          explainValues(expected, seen)
        },
      ),
      { numRuns: 2000 },
    )
  })

  test('the difference and what is around it make the value again', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (expected, seen) => {
        const parts = difference(expected, seen)
        expect(parts.start + parts.expected + parts.end).toBe(expected)
        expect(parts.start + parts.seen + parts.end).toBe(seen)
      }),
    )
  })

  test('no byte is lost on the way to text', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = decodeValue(bytes)
        const back = [Buffer.from(text, 'utf8'), Buffer.from(text, 'latin1')]
        expect(back.some((candidate) => candidate.equals(bytes))).toBe(true)
      }),
    )
  })
})

test('many records that look like parts do not take for ever', () => {
  const seen = Array.from({ length: 200 }, () => 'a')
  expect(splitRecords(`${'a'.repeat(150)}b`, seen)).toBeUndefined()
})
