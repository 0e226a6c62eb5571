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
  ])('the line %s contains the parameters', (line) => {
    expect(parsePastedRedirect(line)).toEqual(new URLSearchParams({ code: 'c', state: 's' }))
  })

  it.each(['a-bare-code', '', '""', 'https://app.example.com/callback'])(
    'the line %j is answered with what to paste',
    (line) => {
      expect(parsePastedRedirect(line)).toContain('paste the whole address')
    },
  )

  it.each(['"', '>', ' ', '<"'])('a line with a million times %j in it is read in one pass', (wrapping) => {
    const line = `x${wrapping.repeat(1_000_000)}x`
    // A pattern that goes back at each of them would take far longer than a test may.
    expect(parsePastedRedirect(line)).toContain('paste the whole address')
  })
})
