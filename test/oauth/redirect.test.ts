import { describe, expect, it } from 'vitest'
import { classifyRedirect } from '../../src/oauth/authorization.ts'
import { parsePastedRedirect, redirectTarget } from '../../src/oauth/redirect.ts'

describe('the redirect URI', () => {
  it.each([
    [undefined, ['127.0.0.1'], 0, '/callback'],
    ['http://127.0.0.1:8765/cb?x=1', ['127.0.0.1'], 8765, '/cb'],
    ['http://127.0.0.1:80', ['127.0.0.1'], 80, '/'],
    ['http://[::1]:8765/cb', ['::1'], 8765, '/cb'],
    ['http://localhost:8765/', ['127.0.0.1', '::1'], 8765, '/'],
  ])('%s listens on %s', (uri, hosts, port, path) => {
    expect(redirectTarget(uri)).toEqual({ uri, listen: { hosts, port, path } })
  })

  // A name below localhost is asked in DNS on many machines.
  it.each(['https://app.example.com/cb', 'http://app.localhost/cb'])('%s has no listener', (uri) => {
    expect(redirectTarget(uri)).toEqual({ uri, listen: undefined })
  })

  it.each([
    'nonsense',
    'myapp://callback',
    'http://127.0.0.1:1/cb#part',
    'http://user@127.0.0.1:1/cb',
    'http://127.0.0.1/cb',
    'http://127.0.0.1:0/cb',
  ])('%s is a usage error', (uri) => {
    expect(() => redirectTarget(uri)).toThrow(expect.objectContaining({ exit: 2 }))
  })
})

const REDIRECT = 'http://127.0.0.1:4711/callback?code=c&state=s'

describe('a pasted line', () => {
  it.each([REDIRECT, `"${REDIRECT}"`, `  <${REDIRECT}> `, '?code=c&state=s', 'code=c&state=s'])(
    'the line %s contains the parameters',
    (line) => {
      expect(parsePastedRedirect(line)).toEqual(new URLSearchParams({ code: 'c', state: 's' }))
    },
  )

  it.each(['a-bare-code', '', '""', 'https://app.example.com/callback', `x${'"'.repeat(1_000_000)}x`])(
    'the line %j is answered with what to paste',
    (line) => {
      expect(parsePastedRedirect(line)).toContain('paste the whole address')
    },
  )
})

it.each([
  [
    'https://api.example.com/oauth/authorize?response_type=code&state=s',
    'it is the page before the approval',
  ],
  [REDIRECT, 'its issuer ("iss") is missing, as if the address was cut off'],
])('the pasted address %s is not the answer, and why is said', (line, why) => {
  const server = { issuer: 'https://api.example.com', authorization_response_iss_parameter_supported: true }
  const parameters = parsePastedRedirect(line) as URLSearchParams
  expect(classifyRedirect(server, 'client-1', parameters, 's', 'mailclaim login')).toMatchObject({
    kind: 'unusable',
    why: expect.stringContaining(why),
  })
})
