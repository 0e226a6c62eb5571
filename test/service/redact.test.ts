import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { redact } from '../../src/service/redact.ts'

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
]

/** What RFC 6750 lets a token be made of, and more: any visible ASCII. */
const secrets = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 8,
  maxLength: 40,
})

describe('a secret in a text', () => {
  it('is left out however its characters are written, and what is around it stays', () => {
    fc.assert(
      fc.property(
        secrets,
        fc.array(fc.constantFrom(...WAYS), { minLength: 40, maxLength: 40 }),
        (secret, ways) => {
          // A backslash in front of an unescaped one would mean another text.
          const written = Array.from(secret, (character, at) => {
            const way = ways[at] ?? String
            return way(character) === '\\' ? '\\\\' : way(character)
          }).join('')
          expect(redact(`before "${written}" after`, [secret])).toBe('before "[left out]" after')
        },
      ),
      { numRuns: 1000 },
    )
  })

  it('is left out as it is, whatever it looks like', () => {
    fc.assert(
      fc.property(secrets, (secret) => {
        expect(redact(`>${secret}<${secret}`, [secret], '#')).toBe('>#<#')
      }),
    )
  })

  it('that is not there changes nothing', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(redact(text, ['', 'a-secret-of-nobody'])).toBe(text)
      }),
    )
  })

  it('of a hostile text costs little time', () => {
    const began = performance.now()
    for (const filler of ['\\', '%', '&#', 'aaaaaaab', '\\u00'])
      redact(filler.repeat(64 * 1024), ['aaaaaaaaaaaaaaaa'])
    expect(performance.now() - began).toBeLessThan(2000)
  })
})
