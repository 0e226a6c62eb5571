import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseTimestampMs } from '../../src/service/timestamps.ts'

describe('a timestamp', () => {
  it.each([
    ['2026-11-20 12:34:56.123456+00', '2026-11-20T12:34:56.123Z'],
    ['2026-11-20 12:34:56+00', '2026-11-20T12:34:56.000Z'],
    ['2026-11-20 12:34:56.123456789123+00', '2026-11-20T12:34:56.123Z'],
    ['2026-11-20 12:34:56.5+05:30', '2026-11-20T07:04:56.500Z'],
    ['2026-11-20 12:34:56-08', '2026-11-20T20:34:56.000Z'],
    ['2026-11-20 12:34:56-0830', '2026-11-20T21:04:56.000Z'],
    ['2026-11-20T12:34:56.123Z', '2026-11-20T12:34:56.123Z'],
    ['2026-11-20T12:34:56', '2026-11-20T12:34:56.000Z'],
    ['2026-11-20', '2026-11-20T00:00:00.000Z'],
    ['2024-02-29 00:00:00+00', '2024-02-29T00:00:00.000Z'],
  ])('the timestamp %s is parsed as %s', (text, iso) => {
    expect(new Date(parseTimestampMs(text) ?? Number.NaN).toISOString()).toBe(iso)
  })

  it.each([
    '',
    'yesterday',
    '2026-02-29 00:00:00+00',
    '2026-13-01 00:00:00+00',
    '2026-00-10',
    '2026-11-20 25:00:00+00',
    '2026-11-20 12:60:00+00',
    '2026-11-20 12:34:56+00 and more',
    1763640000,
    null,
    undefined,
    {},
  ])('parseTimestampMs returns undefined for the invalid value %j', (value) => {
    expect(parseTimestampMs(value)).toBeUndefined()
  })

  it('a timestamp with up to 9 fraction digits and an offset from UTC is parsed to the millisecond', () => {
    const moment = fc.date({ min: new Date('0100-01-01'), max: new Date('9999-12-30'), noInvalidDate: true })
    const offset = fc.integer({ min: -23 * 60, max: 23 * 60 })
    fc.assert(
      fc.property(moment, offset, fc.stringMatching(/^\d{0,9}$/), (date, minutes, digits) => {
        const local = new Date(date.getTime() + minutes * 60_000).toISOString().slice(0, 19).replace('T', ' ')
        const sign = minutes < 0 ? '-' : '+'
        const two = (number: number) => String(number).padStart(2, '0')
        const zone = `${sign}${two(Math.trunc(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`
        const fraction = digits === '' ? '' : `.${digits}`
        const expected = Math.floor(date.getTime() / 1000) * 1000 + Number(digits.slice(0, 3).padEnd(3, '0'))
        expect(parseTimestampMs(`${local}${fraction}${zone}`)).toBe(expected)
      }),
      { numRuns: 2000 },
    )
  })
})
