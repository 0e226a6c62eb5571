import fc from 'fast-check'
import { expect, it } from 'vitest'
import { escapeTsvCell, excerpt, sanitizeLine, stringifyJson } from '../../src/terminal/sanitize.ts'

/** Matches characters that a terminal acts on, reorders text by, or hides; listed by hand, to check the Unicode classes in `src`. */
const HARMFUL =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff](?<![\ud800-\udbff][\udc00-\udfff])(?![\udc00-\udfff])/u

const CORPUS: readonly [what: string, text: string, shown: string][] = [
  ['a clipboard write (OSC 52)', 'x\x1b]52;c;ZXZpbA==\x07', 'x\\u{1b}]52;c;ZXZpbA==\\u{7}'],
  ['a deceptive hyperlink (OSC 8)', '\x1b]8;;http://evil\x1b\\ok', '\\u{1b}]8;;http://evil\\u{1b}\\ok'],
  ['a screen wipe (CSI)', '\x1b[2J\x1b[H', '\\u{1b}[2J\\u{1b}[H'],
  ['an eight-bit CSI', '\x9b31m', '\\u{9b}31m'],
  ['backspaces', 'abc\b\b\b', 'abc\\u{8}\\u{8}\\u{8}'],
  ['a carriage return', 'refused\rgranted', 'refused\\rgranted'],
  ['a second line', 'a\nerror: b', 'a\\nerror: b'],
  ['a tab', 'a\tb', 'a\\tb'],
  ['delete', 'a\x7f', 'a\\u{7f}'],
  ['bidi override', 'a\u202ecba', 'a\\u{202e}cba'],
  ['bidi isolates', '\u2066a\u2069', '\\u{2066}a\\u{2069}'],
  ['directional marks', '\u061c\u200e\u200f', '\\u{61c}\\u{200e}\\u{200f}'],
  ['zero-width characters', 'a\u200bb\u200cc\u200dd\ufeff', 'a\\u{200b}b\\u{200c}c\\u{200d}d\\u{feff}'],
  ['line and paragraph separators', 'a\u2028b\u2029', 'a\\u{2028}b\\u{2029}'],
  ['tag characters', 'a\u{e0041}', 'a\\u{e0041}'],
  ['a lone surrogate', 'a\ud800b\udc00', 'a\\u{d800}b\\u{dc00}'],
  ['a variation selector between digits', 'token=12\ufe0f3', 'token=12\\u{fe0f}3'],
  ['fillers', '\u3164\u115f', '\\u{3164}\\u{115f}'],
  ['a combining mark without a base character', '\u0338granted', '\\u{338}granted'],
]

it.each(CORPUS)('a sanitized line shows %s as visible escapes', (_what, text, shown) => {
  expect(sanitizeLine(text)).toBe(shown)
})

it.each(['plain', 'Grüße', '日本語', 'e\u0301', '👩‍💻', '❤️', '1️⃣', '👨‍👩‍👧', '👍🏽', 'C:\\new'])(
  'the harmless text %s is unchanged in a sanitized line',
  (text) => {
    expect(sanitizeLine(text)).toBe(text)
  },
)

it('a sanitized line keeps at most six combining marks per letter, since more could cover the lines above', () => {
  expect(sanitizeLine(`a${'\u0301'.repeat(50)}`).match(/\u0301/g)).toHaveLength(6)
})

it('a sanitized line has no control, bidi or invisible character, and sanitizing it again changes nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const once = sanitizeLine(text)
      expect(once).not.toMatch(HARMFUL)
      expect(sanitizeLine(once)).toBe(once)
    }),
    { numRuns: 2000 },
  )
})

it('an excerpt of an HTML page contains only the text of the page', () => {
  const page = '<html><style>p{}</style><h1>502 Bad\n Gateway</h1><script>x()</script><p>nginx</p>'
  expect(excerpt(page)).toBe('502 Bad Gateway nginx')
})

it('an excerpt of a long text ends with an ellipsis, and is sanitized', () => {
  const text = excerpt(`\x1b[31m${'é'.repeat(100_000)}`, 20)
  expect(text).not.toMatch(HARMFUL)
  expect(text.length).toBeLessThan(40)
  expect(text.endsWith('…')).toBe(true)
})

/** Reverses `escapeTsvCell`. */
function unescapeTsv(cell: string): string {
  return cell.replace(/\\(u\{([0-9a-f]+)\}|.)/g, (_all, what: string, hex: string | undefined) =>
    hex === undefined
      ? ({ n: '\n', r: '\r', t: '\t', '\\': '\\' }[what] ?? '?')
      : String.fromCodePoint(Number.parseInt(hex, 16)),
  )
}

it('an escaped TSV cell has no control, bidi or invisible character, and unescapes to the original text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const cell = escapeTsvCell(text)
      expect(cell).not.toMatch(HARMFUL)
      expect(unescapeTsv(cell)).toBe(text)
    }),
    { numRuns: 2000 },
  )
})

it('JSON output has no control, bidi or invisible character, and parses to the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false, stringUnit: 'binary' }), (value) => {
      const text = stringifyJson(value)
      expect(text).not.toMatch(HARMFUL)
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
      expect(JSON.parse(stringifyJson(value, 2))).toEqual(JSON.parse(text))
    }),
    { numRuns: 2000 },
  )
})
