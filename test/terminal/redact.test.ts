import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
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
]

/** What RFC 6750 lets a token be made of, and more: any visible ASCII. */
const secrets = fc.string({
  unit: fc
    .integer({ min: 0x21, max: 0x7e })
    .filter((code) => !'\\%&'.includes(String.fromCharCode(code)))
    .map((code) => String.fromCharCode(code)),
  minLength: 8,
  maxLength: 40,
})

describe('a secret in a text', () => {
  it('a secret is removed however it is escaped, and the text around it stays', () => {
    fc.assert(
      fc.property(
        secrets,
        fc.array(fc.constantFrom(...WAYS), { minLength: 40, maxLength: 40 }),
        (secret, ways) => {
          const written = Array.from(secret, (character, at) => (ways[at] ?? String)(character)).join('')
          // A backslash that belonged to the first character may stay.
          const redacted = redact(`before "${written}" after`, [secret]).replace('\\', '')
          expect(redacted).toBe('before "[left out]" after')
        },
      ),
      { numRuns: 1000 },
    )
  })

  it('an unescaped secret is removed, whatever it looks like', () => {
    fc.assert(
      fc.property(secrets, (secret) => {
        expect(redact(`>${secret}<${secret}`, [secret], '#')).toBe('>#<#')
      }),
    )
  })

  it('a shortened secret is removed too', () => {
    expect(redact('no for re_live_0123456789abcde!', ['re_live_0123456789abcdef'], '#')).toBe('no for #!')
    expect(redact('a key begins with re_live_', ['re_live_0123456789abcdef'], '#')).toBe(
      'a key begins with re_live_',
    )
  })

  it('a secret that is not in the text changes nothing', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(redact(text, ['', 'a-secret-of-nobody'])).toBe(text)
      }),
    )
  })

  it('a hostile text is redacted in one pass', () => {
    for (const filler of ['\\', '%', '&#', 'aaaaaaab', '\\u00'])
      expect(redact(filler.repeat(1_000_000), ['aaaaaaaaaaaaaaaa'])).toHaveLength(filler.length * 1_000_000)
  })
})

/** Every unit of a text spelled in one of the ways in which services quote. */
const spelling = fc.func(fc.constantFrom('plain', 'json', 'unicode', 'UNICODE'))
const secret = fc.string({
  unit: fc
    .integer({ min: 0x21, max: 0x7e })
    .filter((code) => code !== 0x5c)
    .map((code) => String.fromCharCode(code)),
  minLength: 8,
})

function spell(unit: string, how: string): string {
  const hex = unit.charCodeAt(0).toString(16)
  if (how === 'unicode') return `\\u00${hex}`
  if (how === 'UNICODE') return `\\u00${hex.toUpperCase()}`
  if (how === 'json') return unit === '/' ? '\\/' : JSON.stringify(unit).slice(1, -1)
  return unit === '\\' ? '\\\\' : unit
}

describe('a secret in any spelling', () => {
  it('every spelling of a secret is removed, and nothing else', () => {
    fc.assert(
      fc.property(secret, spelling, fc.nat(2), (value, choose, depth) => {
        let quoted = [...value].map((unit, at) => spell(unit, choose(at))).join('')
        // JSON that is quoted in JSON.
        for (let level = 0; level < depth; level++) quoted = JSON.stringify(quoted).slice(1, -1)
        // A backslash that belonged to the first character may stay.
        expect(redact(`<${quoted}>`, [value], '#').replace(/^<\\+/, '<')).toBe('<#>')
      }),
      { numRuns: 2000 },
    )
  })

  it('a secret is removed from a form or a URL', () => {
    fc.assert(
      fc.property(secret, fc.boolean(), (value, lower) => {
        const form = new URLSearchParams({ value }).toString()
        const text = lower ? form.replace(/%../g, (byte) => byte.toLowerCase()) : form
        expect(redact(text, [value], '#')).toBe('value=#')
      }),
    )
  })

  it('a text without a secret stays as it is', () => {
    const text = 'nothing of \\u0041 or %41 or \\\\ or "x" here'
    expect(redact(text, ['secret-1', ''], '#')).toBe(text)
  })

  it('a long secret in a long text is redacted in one pass', () => {
    const long = 'aA/9'.repeat(4000)
    const text = `${'\\'.repeat(200_000)}${'a'.repeat(200_000)}${JSON.stringify(long)}`
    expect(redact(text, [long], '#')).not.toContain('aA/9')
  })
})
