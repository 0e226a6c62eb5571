import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readGivenValue } from '../../../src/dns/diagnosis/given-value.ts'

const word = fc.stringMatching(/^[\w-]{1,20}$/)
const whole = fc
  .tuple(word, fc.stringMatching(/^[\w+/-]{1,40}={0,2}$/))
  .map(([prefix, token]) => `${prefix}=${token}`)
const around = fc.constantFrom('', ' ', '\n', '\u200b', '\ufeff', '\u00a0')
const quotes = fc.constantFrom(['', ''], ['"', '"'], ["'", "'"], ['`', '`'], ['“', '”'], ['«', '»'])

describe('a value that a person gave', () => {
  test('is found in any quotation marks, spaces and invisible characters around it', () => {
    fc.assert(
      fc.property(whole, around, quotes, around, (value, before, [open, close], after) => {
        expect(readGivenValue(`${before}${open}${before}${value}${after}${close}${after}`)).toEqual({
          ok: true,
          value,
        })
      }),
    )
  })

  test('is refused behind a label or in a line of a zone file, with the value to give instead', () => {
    const lead = fc.constantFrom(
      'TXT ',
      'IN TXT ',
      'value: ',
      'Value=',
      'TXT = ',
      'example.com.\t300\tIN\tTXT\t',
    )
    fc.assert(
      fc.property(lead, whole, fc.constantFrom('', '"'), (label, value, quote) => {
        const read = readGivenValue(`${label}${quote}${value}${quote}`)
        expect(read).toMatchObject({ ok: false, fix: `give only the value: ${value}` })
      }),
    )
  })

  test('is read quickly and without a deep recursion, however long it is', () => {
    const start = performance.now()
    expect(readGivenValue('"'.repeat(65_000))).toMatchObject({ ok: false })
    expect(readGivenValue(`TXT ${'x'.repeat(65_000)}`)).toMatchObject({ ok: false })
    expect(performance.now() - start).toBeLessThan(1000)
  })

  test('never makes the reader throw, and is never without a prefix and a token', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (given) => {
        const read = readGivenValue(given)
        if (read.ok) expect(read.value).toMatch(/^[^=]+=+[^=]/)
        else expect(read.fix).not.toBe('')
      }),
    )
  })
})
