import fc from 'fast-check'
import stringWidth from 'string-width'
import { expect, test } from 'vitest'
import { truncate, widthOf, wrap } from '../../src/terminal/measure.ts'

/** Characters of many scripts, some of which combine with their neighbors, in any order. */
const PIECES = [
  ...['a', 'Z', '9', ' ', '-', '#', '*', 'é', 'ß', 'Ω', 'Я', 'ң', '中', 'あ', 'ア', '한', '…', '✔'],
  ...[
    '\u0301',
    '\u200d',
    '\ufe0f',
    '\u20e3',
    '🚀',
    '👩',
    '💻',
    '🇩',
    '🇪',
    '👍',
    '\u{1f3fd}',
    '\u1100',
    '\u1161',
    '\u11a8',
  ],
  ...['ก', 'ำ', 'नि', 'क्ष', '\u0600', 'ﷺ', '\u0483', '\u00ad', '𝒳', '㊗', '「', '\u3099', 'ᄀ', '\u200b'],
]
const text = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: 'grapheme', maxLength: 3 })), {
    maxLength: 25,
  })
  .map((pieces) => pieces.join('').replace(/\p{Cc}/gu, ''))

test('a text is as wide as the library says, though most of it is only counted', () => {
  fc.assert(
    fc.property(text, (line) => {
      expect(widthOf(line)).toBe(stringWidth(line))
    }),
    { numRuns: 3000 },
  )
})

test('each character that is only counted is as wide as the library says, alone and between letters', () => {
  for (let code = 0x20; code <= 0xd7a3; code++) {
    const character = String.fromCharCode(code)
    if (/\p{Cc}/u.test(character)) continue
    expect([code, widthOf(character)]).toEqual([code, stringWidth(character)])
    expect([code, widthOf(`a${character}b`)]).toEqual([code, stringWidth(`a${character}b`)])
  }
}, 30_000)

test('a wrapped text loses nothing but spaces, and no piece is too wide', () => {
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 20 }), (line, width) => {
      const pieces = wrap(line, width)
      expect(pieces.join('').replaceAll(' ', '')).toBe(line.replaceAll(' ', ''))
      // A character can be wider than the column.
      for (const piece of pieces)
        if ([...new Intl.Segmenter().segment(piece)].length > 1)
          expect(widthOf(piece)).toBeLessThanOrEqual(width)
    }),
    { numRuns: 2000 },
  )
})

test('a truncated text fits, and is a beginning', () => {
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 20 }), (line, width) => {
      const shown = truncate(line, width)
      if (shown === line) return
      expect(line.startsWith(shown.slice(0, -1))).toBe(true)
      expect(widthOf(shown)).toBeLessThanOrEqual(width)
    }),
  )
})

test('a word that is too long for any line begins on a line of its own', () => {
  expect(wrap('the value mailclaim-verification=abcdef', 20)).toEqual([
    'the value',
    'mailclaim-verificati',
    'on=abcdef',
  ])
})

test('a word of many thousands of emoji is broken in time that grows with its length', () => {
  const pieces = wrap('é\u0301🚀'.repeat(20_000), 80)
  expect(pieces.length).toBeGreaterThan(700)
}, 20_000)
