import fc from 'fast-check'
import { expect, it } from 'vitest'
import { redact } from '../../src/terminal/redact.ts'

const hex = (character: string) => (character.codePointAt(0) ?? 0).toString(16)
const WAYS: readonly ((character: string) => string)[] = [
  (character) => character,
  (character) => (/["\\/]/.test(character) ? `\\${character}` : character),
  (character) => `\\u${hex(character).padStart(4, '0')}`,
  (character) => `\\u${hex(character).padStart(4, '0').toUpperCase()}`,
  (character) => `%${hex(character).padStart(2, '0')}`,
  (character) => `%${hex(character).toUpperCase().padStart(2, '0')}`,
  (character) => `&#x${hex(character)};`,
  (character) => `&#${character.codePointAt(0)};`,
  (character) => `\\x${hex(character).padStart(2, '0')}`,
  (character) => `\0${character}`,
]

/** Generates secrets of visible ASCII characters except `\`, `%` and `&`, which begin escapes. */
const secrets = fc.string({
  unit: fc
    .integer({ min: 0x21, max: 0x7e })
    .filter((code) => !'\\%&'.includes(String.fromCharCode(code)))
    .map((code) => String.fromCharCode(code)),
  minLength: 8,
  maxLength: 40,
})

it('a secret with any mix of JSON, JavaScript, percent and numeric HTML escapes is redacted, and the text around it is kept', () => {
  fc.assert(
    fc.property(
      secrets,
      fc.array(fc.constantFrom(...WAYS), { minLength: 40, maxLength: 40 }),
      (secret, ways) => {
        const written = Array.from(secret, (character, at) => (ways[at] ?? String)(character)).join('')
        // A backslash that escapes the secret's first character may be left.
        const redacted = redact(`before "${written}" after`, [secret]).replace('\\', '')
        expect(redacted).toBe('before "[left out]" after')
      },
    ),
    { numRuns: 1000 },
  )
})

it('`redact` replaces every unescaped occurrence of a secret in a text', () => {
  fc.assert(
    fc.property(secrets, (secret) => {
      expect(redact(`>${secret}<${secret}`, [secret], '#')).toBe('>#<#')
    }),
  )
})

it('a secret without its last character is redacted, and a text with only the common prefix of secrets is kept', () => {
  expect(redact('no for re_live_0123456789abcde!', ['re_live_0123456789abcdef'], '#')).toBe('no for #!')
  expect(redact('a key begins with re_live_', ['re_live_0123456789abcdef'], '#')).toBe(
    'a key begins with re_live_',
  )
})

it('a percent-encoded secret of up to 300,000 characters is redacted', () => {
  for (const length of [2500, 10_000, 300_000]) {
    const secret = Array.from({ length }, (_, at) => String.fromCharCode(0x30 + ((at * at) % 70))).join('')
    expect(redact(`say "${encodeURIComponent(secret)}" ${'.'.repeat(length)}`, [secret], '#')).toBe(
      `say "#" ${'.'.repeat(length)}`,
    )
  }
})

it('redaction changes no text that lacks the secret, and ignores an empty secret', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(redact(text, ['', 'a-secret-of-nobody'])).toBe(text)
    }),
  )
})

it('redact keeps the length of a text of 200,000 incomplete escapes or near matches of a secret, and ends within the test timeout', () => {
  for (const filler of ['\\', '%', '&#', 'aaaaaaab', '\\u00'])
    expect(redact(filler.repeat(200_000), ['aaaaaaaaaaaaaaaa'])).toHaveLength(filler.length * 200_000)
})
