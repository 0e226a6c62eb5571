import { describe, expect, it } from 'vitest'
import { classifyRedirect } from '../../src/oauth/authorization.ts'
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

describe('a pasted address that is not the answer', () => {
  const issuer = 'https://api.example.com'
  const why = (line: string) =>
    classifyRedirect(
      { issuer, authorization_response_iss_parameter_supported: true },
      'client-1',
      parsePastedRedirect(line) as URLSearchParams,
      's',
      'mailclaim login',
    )

  it('the address of the consent page is recognized as the page before the approval', () => {
    const page = `${issuer}/oauth/authorize?response_type=code&client_id=client-1&state=s&code_challenge=x`
    expect(why(page)).toEqual({
      kind: 'unusable',
      why: 'it is the page before the approval: approve there, then copy the address that the browser ends up at',
    })
  })

  it('an address that was cut off before the issuer is said to be cut off', () => {
    expect(why(REDIRECT)).toEqual({
      kind: 'unusable',
      why: 'its issuer ("iss") is missing, as if the address was cut off: copy the whole address',
    })
    expect(why(`${REDIRECT}&iss=${issuer}`)).toMatchObject({ kind: 'code' })
  })
})
