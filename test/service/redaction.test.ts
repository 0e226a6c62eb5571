import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { redactSecrets } from '../../src/service/redaction.ts'

/** Every unit of a text spelled in one of the ways in which services quote. */
const spelling = fc.func(fc.constantFrom('plain', 'json', 'unicode', 'UNICODE'))
const secret = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 8,
})

function spell(unit: string, how: string): string {
  const hex = unit.charCodeAt(0).toString(16)
  if (how === 'unicode') return `\\u00${hex}`
  if (how === 'UNICODE') return `\\u00${hex.toUpperCase()}`
  if (how === 'json') return unit === '/' ? '\\/' : JSON.stringify(unit).slice(1, -1)
  return unit === '\\' ? '\\\\' : unit
}

describe('redaction', () => {
  it('takes a secret out however it is spelled, and leaves everything else', () => {
    fc.assert(
      fc.property(secret, spelling, fc.nat(2), (value, choose, depth) => {
        let quoted = [...value].map((unit, at) => spell(unit, choose(at))).join('')
        // JSON that is quoted in JSON.
        for (let level = 0; level < depth; level++) quoted = JSON.stringify(quoted).slice(1, -1)
        expect(redactSecrets(`<${quoted}>`, [value], '#')).toBe('<#>')
      }),
      { numRuns: 2000 },
    )
  })

  it('takes a secret out of a form or an address', () => {
    fc.assert(
      fc.property(secret, fc.boolean(), (value, lower) => {
        const form = new URLSearchParams({ value }).toString()
        const text = lower ? form.replace(/%../g, (byte) => byte.toLowerCase()) : form
        expect(redactSecrets(text, [value], '#')).toBe('value=#')
      }),
    )
  })

  it('leaves a text alone that quotes no secret', () => {
    const text = 'nothing of \\u0041 or %41 or \\\\ or "x" here'
    expect(redactSecrets(text, ['secret-1', ''], '#')).toBe(text)
  })

  it('is quick with a long secret in a long text', () => {
    const long = 'aA/9'.repeat(4000)
    const text = `${'\\'.repeat(200_000)}${'a'.repeat(200_000)}${JSON.stringify(long)}`
    const started = performance.now()
    expect(redactSecrets(text, [long], '#')).not.toContain('aA/9')
    expect(performance.now() - started).toBeLessThan(5000)
  })
})
