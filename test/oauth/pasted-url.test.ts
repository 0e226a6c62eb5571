import { describe, expect, it } from 'vitest'
import { parsePastedRedirect } from '../../src/oauth/pasted-url.ts'

const REDIRECT = 'http://127.0.0.1:4711/callback?code=c&state=s'

describe('a pasted line', () => {
  it.each([
    REDIRECT,
    `"${REDIRECT}"`,
    `<${REDIRECT}>`,
    `  '${REDIRECT}' `,
    '?code=c&state=s',
    'code=c&state=s',
  ])('%s holds the parameters', (line) => {
    const pasted = parsePastedRedirect(line)
    expect('parameters' in pasted && Object.fromEntries(pasted.parameters)).toEqual({
      code: 'c',
      state: 's',
    })
  })

  it.each(['a-bare-code', '', '""', 'https://app.example.com/callback'])('%j is wrong', (line) => {
    expect(parsePastedRedirect(line)).toEqual({ wrong: expect.stringContaining('paste the whole address') })
  })

  it.each(['"', '>', ' ', '<"'])('of nothing but %j is read in no time', (wrapping) => {
    const line = `x${wrapping.repeat(120_000)}x`
    const began = performance.now()
    expect(parsePastedRedirect(line)).toHaveProperty('wrong')
    // A pattern took ten seconds for it.
    expect(performance.now() - began).toBeLessThan(1000)
  })
})
