import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { changedCharacters, difference, invisibleCharacters } from '../../../src/dns/diagnosis/characters.ts'
import { plainText } from '../../../src/dns/diagnosis/text.ts'
import {
  encodingOf,
  explainValue,
  explainValues,
  splitRecords,
} from '../../../src/dns/diagnosis/value-comparison.ts'
import { decodeValue } from '../../../src/dns/wire/txt-answer.ts'

const EXPECTED = 'mc-verify=Q7dX2kV9pLr4TzB8nW'

describe('the explanation of a wrong value', () => {
  test.each([
    [`"${EXPECTED}"`, 'quoted'],
    [`'${EXPECTED}'`, 'quoted'],
    [`"${EXPECTED.slice(0, 5)}" "${EXPECTED.slice(5)}"`, 'quoted'],
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
    [`${EXPECTED}.example.com`, 'extra_text'],
    [`${EXPECTED}v=spf1 -all`, 'extra_text'],
    [`${EXPECTED}Z`, 'characters_changed'],
    [`"${EXPECTED}Zx"`, 'characters_changed'],
    [`${EXPECTED}=`, 'characters_changed'],
    [`${EXPECTED}WithManyMore`, 'stale_token'],
    [`${EXPECTED}Z ${EXPECTED}`, 'extra_text'],
    [EXPECTED.slice(10), 'token_only'],
    [`"${EXPECTED.slice(10)}"`, 'token_only'],
    ['mc-verify=', 'prefix_only'],
    ['mc-verify', 'prefix_only'],
    [EXPECTED.slice(0, -1), 'truncated'],
    [EXPECTED.slice(0, 14), 'truncated'],
    [EXPECTED.slice(3), 'truncated'],
    ['mc-verify=Q7dX2kV9…', 'truncated'],
    ['mc-verify=Q7dX2kV9...', 'truncated'],
    ['"mc-verify=Q7…"', 'truncated'],
    ['mc-verify=Q7dX…B8nW', 'truncated'],
    ['mc-verify=Q7dX...B8nW', 'truncated'],
    ['mc-verify=Q7dX[…]B8nW', 'truncated'],
    ['…2kV9pLr4TzB8nW', 'truncated'],
    ['Q7dX2k...', 'truncated'],
    ['mc-verify=A1b2C3…', 'stale_token'],
    ['mc-verify=A1b2...B8nW', 'stale_token'],
    ['...', undefined],
    ['mc-verify=another', 'stale_token'],
    ['MC-Verify=another', 'stale_token'],
    ['mc–verify=Q7dX2kV9pLr4TzB8nW', 'characters_changed'],
    ['mc\u2011verify=Q7dX2kV9pLr4TzB8nW', 'characters_changed'],
    ['mc_verify=Q7dX2kV9pLr4TzB8nW', 'characters_changed'],
    ['mcverify=Q7dX2kV9pLr4TzB8nW', 'characters_changed'],
    ['mc-verify＝Q7dX2kV9pLr4TzB8nW', 'characters_changed'],
    ['mc-verify:Q7dX2kV9pLr4TzB8nW', 'characters_changed'],
    ['mc-verify: Q7dX2kV9pLr4TzB8nW', 'characters_changed'],
    ['mc-verify Q7dX2kV9pLr4TzB8nW', 'characters_changed'],
    ['mc-verify=Q7dX2kV9pLr4TzВ8nW', 'characters_changed'],
    ['mc-verify=Q7dX2kV9qLr4TzB8nW', 'characters_changed'],
    ['mc-verify=Q7dX2kV9pLr4TzB8nnW', 'characters_changed'],
    ['mc-verify=Q7dX2kV9pLr4TzB8Wn', 'characters_changed'],
    ['mc-veriﬁcation=Q7dX2kV9pLr4TzB8nW', 'characters_changed'],
    ['“mc–verify=Q7dX2kV9pLr4TzB8nW”', 'characters_changed'],
    ['mc-verify\\=Q7dX2kV9pLr4TzB8nW', 'quoted'],
    ['mc-verify%3DQ7dX2kV9pLr4TzB8nW', 'encoded'],
    ['mc-verify%3dQ7dX2kV9pLr4TzB8nW', 'encoded'],
    ['mc-verify&#61;Q7dX2kV9pLr4TzB8nW', 'encoded'],
    ['mc-verify&#x3D;Q7dX2kV9pLr4TzB8nW', 'encoded'],
    ['mc-verify&equals;Q7dX2kV9pLr4TzB8nW', 'encoded'],
    ['&quot;mc-verify&#61;Q7dX2kV9pLr4TzB8nW&quot;', 'encoded'],
    [`&quot;${EXPECTED}&quot;`, 'encoded'],
    [`&#34;${EXPECTED}&#34;`, 'encoded'],
    [`&ldquo;${EXPECTED}&rdquo;`, 'encoded'],
    [`%22${EXPECTED}%22`, 'encoded'],
    [`%E2%80%9C${EXPECTED}%E2%80%9D`, 'encoded'],
    [`${EXPECTED}%0A`, 'encoded'],
    [`${EXPECTED}&nbsp;`, 'encoded'],
    [`${EXPECTED}\\n`, 'encoded'],
    [`"${EXPECTED}\\r\\n"`, 'encoded'],
    [`<p>${EXPECTED}</p>`, 'encoded'],
    [`${EXPECTED}<br />`, 'encoded'],
    [`v=spf1 -all ${EXPECTED}\\n`, 'extra_text'],
    ['mc-verify\\061Q7dX2kV9pLr4TzB8nW', 'encoded'],
    ['mc-verify\\u003dQ7dX2kV9pLr4TzB8nW', 'encoded'],
    ['mc-verify=3DQ7dX2kV9pLr4TzB8nW', 'encoded'],
    [Buffer.from(EXPECTED).toString('base64'), 'encoded'],
    [`=?utf-8?q?${EXPECTED.replace('=', '=3D')}?=`, 'encoded'],
    [`=?UTF-8?Q?${EXPECTED}?=`, 'encoded'],
    [`=?utf-8?b?${Buffer.from(EXPECTED).toString('base64')}?=`, 'encoded'],
    [decodeValue(Buffer.from(EXPECTED, 'utf16le')), 'encoded'],
    [decodeValue(Buffer.from(`\ufeff${EXPECTED}`, 'utf16le')), 'encoded'],
    [decodeValue(Buffer.from(EXPECTED, 'utf16le').swap16()), 'encoded'],
    [decodeValue(Buffer.from(`\ufeff${EXPECTED}`, 'utf16le').swap16()), 'encoded'],
    [Buffer.from(EXPECTED).toString('hex'), 'encoded'],
    [`0x${Buffer.from(EXPECTED).toString('hex').toUpperCase()}`, 'encoded'],
    ['<meta name="mc-verify" content="Q7dX2kV9pLr4TzB8nW">', 'encoded'],
    ["<meta content='Q7dX2kV9pLr4TzB8nW' name='mc-verify' />", 'encoded'],
    ['{"mc-verify": "Q7dX2kV9pLr4TzB8nW"}', 'encoded'],
    [`["${EXPECTED}"]`, 'encoded'],
    [`[${EXPECTED}]`, 'encoded'],
    ["{'mc-verify': 'Q7dX2kV9pLr4TzB8nW'}", 'encoded'],
    ['[{"mc-verify":"Q7dX2kV9pLr4TzB8nW"}]', 'encoded'],
    ['["mc-verify", "Q7dX2kV9pLr4TzB8nW"]', 'encoded'],
    ['mc-verify=["Q7dX2kV9pLr4TzB8nW"]', 'encoded'],
    ['mc-verify["Q7dX2kV9pLr4TzB8nW"]', 'encoded'],
    ['mc-verify[]=Q7dX2kV9pLr4TzB8nW', 'encoded'],
    ['"mc-verify": "Q7dX2kV9pLr4TzB8nW"', 'encoded'],
    ["'mc-verify' => 'Q7dX2kV9pLr4TzB8nW'", 'encoded'],
    [`https://${EXPECTED}`, 'encoded'],
    [`https://www.example.com/verify?${EXPECTED}&from=mail#top`, 'encoded'],
    ['https://example.com/mc-verify/Q7dX2kV9pLr4TzB8nW/', 'encoded'],
    ['{"value":"mc-verify=Q7dX2kV9pLr4TzB8nW"}', 'pasted_line'],
    ['https://example.com/?other=Q1', undefined],
    ['{"other":"value"}', undefined],
    ['Q7dX2kV9pLr4TzB8nW=mc-verify', 'swapped'],
    ['Q7dX2kV9pLr4TzB8nW: mc-verify', 'swapped'],
    ['"Q7dX2kV9pLr4TzB8nW=mc-verify"', 'swapped'],
    ['Q7dX2kV9pLr4TzB8nW.mc-verify', 'swapped'],
    ['Q7dX2kV9pLr4TzB8nW-mc-verify', 'swapped'],
    ['Q7dX2kV9pLr4TzB8nWmc-verify=', 'swapped'],
    ['kV9pLr4TzB8nWmc-verify=Q7dX2', 'swapped'],
    ['mc-verify.Q7dX2kV9pLr4TzB8nW', 'characters_changed'],
    ['mc-verify=YOUR_TOKEN', 'placeholder'],
    ['mc-verify=<token>', 'placeholder'],
    ['mc-verify=<your token here>', 'placeholder'],
    ['mc-verify={{token}}', 'placeholder'],
    ['mc-verify=$TOKEN', 'placeholder'],
    ['mc-verify=xxxxxxxx', 'placeholder'],
    ['mc-verify=...', 'placeholder'],
    ['mc-verify=••••••••', 'placeholder'],
    ['mc-verify=********', 'placeholder'],
    ['mc-verify=••••••••1b2c', 'placeholder'],
    ['••••••••', 'placeholder'],
    ['********', 'placeholder'],
    ['<your-verification-code>', 'placeholder'],
    ['prefix=token', 'placeholder'],
    ['mc–verify=', 'prefix_only'],
    ['MC_verify=another', 'stale_token'],
    [`example.com ${EXPECTED}`, 'pasted_line'],
    [`example.com. ${EXPECTED}`, 'pasted_line'],
    [`${EXPECTED}${EXPECTED}`, 'extra_text'],
    ['v=spf1 -all', undefined],
    ['token', undefined],
    ['example.com', undefined],
    ['<html>', undefined],
    ['[a]', undefined],
    ['other-verify=another', undefined],
    ['', undefined],
    [EXPECTED, undefined],
  ])('for %j is %s', (seen, fault) => {
    expect(explainValue(EXPECTED, seen, 'example.com')).toBe(fault)
  })

  test.each([
    [`&quot;${EXPECTED}&quot;`, 'HTML (&quot; for a quotation mark)'],
    ['mc-verify&#61;Q7dX2kV9pLr4TzB8nW', 'HTML (&#61; for "=")'],
    ['mc&#45;verify&equals;Q7dX2kV9pLr4TzB8nW', 'HTML (&#45; for "-")'],
    [`${EXPECTED}&nbsp;`, 'HTML (&nbsp; for an invisible character)'],
    ['mc%2Dverify%3DQ7dX2kV9pLr4TzB8nW', 'URL encoding (%2D for "-")'],
    ['mc-verify\\061Q7dX2kV9pLr4TzB8nW', 'escape sequences (\\061 for "=")'],
    [`<p>${EXPECTED}</p>`, 'HTML tags'],
    [`%22${EXPECTED}%22`, 'URL encoding (%22 for a quotation mark)'],
    [`${EXPECTED}\\n`, 'escape sequences (\\n for a line break)'],
  ])('for %j names the encoding', (seen, encoding) => {
    expect(plainText(encodingOf(EXPECTED, seen) ?? '')).toBe(encoding)
  })

  test('for a lost underscore at the start is that character, not a truncated value', () => {
    const expected = `_${EXPECTED}`
    expect(explainValue(expected, EXPECTED)).toBe('characters_changed')
    expect(changedCharacters(expected, EXPECTED)).toEqual([{ position: 1, expected: '_', seen: '' }])
  })

  test('for base64 without its padding is "truncated"', () => {
    expect(explainValue('cGF5bG9hZA==', 'cGF5bG9hZA')).toBe('truncated')
    expect(explainValue('mc-verify=cGF5bG9hZA==', 'mc-verify=cGF5bG9hZA=')).toBe('truncated')
  })

  test('is the first of several', () => {
    const found = explainValues(EXPECTED, ['v=spf1 -all', 'mc-verify=older', `"${EXPECTED}"`])
    expect(found.map((explained) => explained.fault)).toEqual(['quoted', 'stale_token'])
  })
})

/** Values as services make them, and other texts. */
const token = fc.string({ minLength: 8, maxLength: 300, unit: fc.constantFrom(...'abcXYZ0189-_.+/') })
const value = fc
  .tuple(fc.stringMatching(/^[a-z][a-z-]{1,15}[a-z]$/), token)
  .map(([prefix, rest]) => `${prefix}=${rest}`)
const anyText = fc.string({ minLength: 1, maxLength: 300, unit: 'grapheme' })

describe('for any value, the check recognizes', () => {
  test('quotation marks', () => {
    fc.assert(
      fc.property(anyText, fc.constantFrom('"', "'", '“', '`'), (expected, mark) => {
        expect(explainValue(expected, `${mark}${expected}${mark === '“' ? '”' : mark}`)).toBe('quoted')
      }),
      { numRuns: 2000 },
    )
  })

  test('invisible characters', () => {
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

  test('a value split into records, in any order and among others', () => {
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

  test('a truncated value, as long as enough is left', () => {
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

  /** A value with a hyphen and a token long enough to recognize even if some characters differ. */
  const long = fc
    .tuple(
      fc.stringMatching(/^[a-z]{2,8}-[a-z]{2,8}$/),
      fc.string({ minLength: 24, maxLength: 64, unit: fc.constantFrom(...'abcdefXYZ23456789') }),
    )
    .map(([prefix, rest]) => `${prefix}=${rest}`)
  const pick = (...texts: string[]) => fc.constantFrom(...texts)
  const replaceAt = (text: string, at: number, length: number, by: string) =>
    text.slice(0, at) + by + text.slice(at + length)

  test.each<[string, string, fc.Arbitrary<(value: string, at: number) => string>]>([
    [
      'another dash',
      'characters_changed',
      pick(...'‐‑‒–—―−_－﹣').map((dash) => (value) => value.replace('-', dash)),
    ],
    [
      'another separator',
      'characters_changed',
      pick('＝', ':', ': ', '：', ' ', '', '==', ' : ').map((sign) => (value) => value.replace('=', sign)),
    ],
    [
      'full-width forms',
      'characters_changed',
      fc.constant((value) => value.replace(/[!-~]/g, (c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0))),
    ],
    [
      'letters of another script',
      'characters_changed',
      pick('aа', 'eе', 'cс', 'XХ', 'YУ', 'ZΖ').map((pair) => (value) => {
        const [letter = '', alike = ''] = pair
        return value.replaceAll(letter, alike)
      }),
    ],
    ['a missing character', 'characters_changed', fc.constant((value, at) => replaceAt(value, at, 1, ''))],
    [
      'one character twice',
      'characters_changed',
      fc.constant((value, at) => replaceAt(value, at, 0, value[at] ?? '')),
    ],
    [
      'another character',
      'characters_changed',
      pick('#', 'q', '$').map((c) => (value, at) => replaceAt(value, at, 1, c)),
    ],
    [
      'two swapped characters',
      'characters_changed',
      fc.constant((value, at) => replaceAt(value, at, 2, `${value[at + 1]}${value[at]}`)),
    ],
    [
      'another prefix',
      'characters_changed',
      pick('verify', 'token', 'txt-code').map(
        (prefix) => (value) => prefix + value.slice(value.indexOf('=')),
      ),
    ],
    [
      'an encoding',
      'encoded',
      pick('%3D', '%3d', '&#61;', '&#x3d;', '&equals;', '\\061', '\\u003d', '\\x3d', '=3D').map(
        (sign) => (value) => value.replace('=', () => sign),
      ),
    ],
    [
      'encoded marks around it',
      'encoded',
      pick('&quot;', '&#34;', '&#x22;', '%22', '\\n', '\\r\\n', '%0D%0A', '&nbsp;').map(
        (mark) => (value) => `${mark}${value}${mark}`,
      ),
    ],
    ['base64', 'encoded', fc.constant((value) => Buffer.from(value).toString('base64'))],
    ['backslashes', 'quoted', fc.constant((value) => value.replace(/[=-]/g, '\\$&'))],
    [
      'swapped halves',
      'swapped',
      pick('=', ':', ': ', ' ', '.', '-', ', ').map(
        (sign) => (value) => value.split('=').reverse().join(sign),
      ),
    ],
    [
      'a placeholder',
      'placeholder',
      pick(
        'YOUR_TOKEN',
        '<token>',
        '<your token>',
        '[TOKEN]',
        '{token}',
        'xxxxx',
        'your-token-here',
        '$TOKEN',
      ).map((text) => (value) => value.replace(/=.*/, () => `=${text}`)),
    ],
    [
      'the name before the value',
      'pasted_line',
      pick('example.com ', 'example.com. ', 'Example.com: ').map((name) => (value) => name + value),
    ],
    ['a byte order mark', 'whitespace', fc.constant((value) => `\ufeff${value}`)],
  ])('%s: %s', (_what, fault, mutation) => {
    fc.assert(
      fc.property(long, mutation, fc.nat(), (expected, mutate, place) => {
        // Not at the ends, where it would be a truncated value.
        const seen = mutate(expected, 1 + (place % (expected.length - 3)))
        fc.pre(seen.toLowerCase() !== expected.toLowerCase())
        // A doubled or missing letter among equal ones at an end is extra text, or a truncated value.
        if (fault === 'characters_changed')
          fc.pre(
            ![expected.startsWith(seen), expected.endsWith(seen), seen.includes(expected)].includes(true),
          )
        expect(explainValue(expected, seen, 'example.com')).toBe(fault)
      }),
    )
  })

  test('nothing wrong with the value itself, and never throws', () => {
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

  test('the difference between two values', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (expected, seen) => {
        const parts = difference(expected, seen)
        expect(parts.start + parts.expected + parts.end).toBe(expected)
        expect(parts.start + parts.seen + parts.end).toBe(seen)
      }),
    )
  })

  test('every byte of a value in its text', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = decodeValue(bytes)
        const isUtf8 = Buffer.from(text).equals(bytes)
        const single = new Map(
          Array.from({ length: 256 }, (_, byte) => [decodeValue(Uint8Array.of(byte, 0xff)).charAt(0), byte]),
        )
        const back = Uint8Array.from(text, (character) => single.get(character) ?? 0)
        expect(isUtf8 || Buffer.from(back).equals(bytes)).toBe(true)
      }),
    )
  })
})

describe('the check never reports as a mistake', () => {
  const letters = (alphabet: string, length: number) =>
    fc.string({ minLength: length, maxLength: length, unit: fc.constantFrom(...alphabet) })
  const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
  const HEX = '0123456789abcdef'
  const mine = fc
    .tuple(
      fc.constantFrom('mc-verify', 'mailclaim-domain-verification', 'sandbox-domain-verification', 'claim'),
      letters(ALPHANUMERIC, 24),
    )
    .map(([prefix, token]) => `${prefix}=${token}`)
  const others = fc.oneof(
    fc.constantFrom(
      'v=spf1 include:_spf.google.com ~all',
      'v=spf1 -all',
      'v=DMARC1; p=none; rua=mailto:dmarc@example.com',
      'v=STSv1; id=20240101000000Z;',
      'v=TLSRPTv1; rua=mailto:tls@example.com',
      'v=BIMI1; l=https://example.com/logo.svg',
      'forward-email=user@example.com',
      'example.com',
      'https://example.com/',
      'test',
      'hello world',
      '$Id: zone 42 $',
      '“quoted”',
      'ключ=значение',
    ),
    letters('0123456789', 8).map((digits) => `MS=ms${digits}`),
    letters(`${ALPHANUMERIC}_-`, 43).map((token) => `google-site-verification=${token}`),
    letters(`${ALPHANUMERIC}+/`, 216).map((key) => `v=DKIM1; k=rsa; p=${key}IDAQAB`),
    letters(HEX, 30).map((token) => `facebook-domain-verification=${token}`),
    letters(ALPHANUMERIC, 16).map((token) => `apple-domain-verification=${token}`),
    letters(ALPHANUMERIC, 64).map((token) => `atlassian-domain-verification=${token}`),
    letters(ALPHANUMERIC, 24).map((token) => `another-verify=${token}`),
    letters(ALPHANUMERIC, 24).map((token) => `mc=${token}`),
    fc.uuid().map((id) => `docusign=${id}`),
    letters(HEX, 32),
    letters(`${ALPHANUMERIC}_-`, 43),
    letters(ALPHANUMERIC, 24),
  )

  test('proofs of other services, policies, keys, tokens of the same length', () => {
    fc.assert(
      fc.property(mine, fc.array(others, { maxLength: 8 }), (expected, seen) => {
        expect(explainValues(expected, seen, 'example.com')).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })

  test('a different token of the same service as a typo', () => {
    fc.assert(
      fc.property(mine, letters(ALPHANUMERIC, 24), (expected, token) => {
        const seen = `${expected.slice(0, expected.indexOf('='))}=${token}`
        expect(explainValue(expected, seen)).toBe('stale_token')
      }),
      { numRuns: 2000 },
    )
  })
})

test('a value as long as an answer can be is compared within two seconds', () => {
  const start = performance.now()
  for (const filling of ['-', 'a', '%3D', '=', '\\', '“', '<', ' '])
    explainValue(EXPECTED, `mc-verify=${filling.repeat(65_000 / filling.length)}x`, 'example.com')
  expect(performance.now() - start).toBeLessThan(2000)
})

test('many records that look like parts of a value do not take forever', () => {
  const seen = Array.from({ length: 200 }, () => 'a')
  expect(splitRecords(`${'a'.repeat(150)}b`, seen)).toBeUndefined()
})

test('a value as long as a record can be is compared with thousands of others within a second', () => {
  const expected = `prefix=${'aB0_'.repeat(16_000)}`
  const seen = Array.from({ length: 3000 }, (_, index) => `prefix=v${index}`)
  const start = performance.now()
  expect(explainValues(expected, seen, 'example.com')[0]?.fault).toBe('stale_token')
  expect(performance.now() - start).toBeLessThan(1000)
})
