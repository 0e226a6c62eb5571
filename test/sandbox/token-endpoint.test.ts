import { decodeJwt, decodeProtectedHeader } from 'jose'
import { describe, expect, test } from 'vitest'
import { createAccessTokens } from '../../src/sandbox/access-tokens.ts'
import { SEEDED_CLIENTS } from '../../src/sandbox/clients.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { sandboxForTest } from './start-sandbox.ts'
import {
  advance,
  api,
  authorize,
  codeFields,
  codeFor,
  control,
  ENCODINGS,
  type Encoding,
  REDIRECT_URI,
  refreshFields,
  token,
} from './talk.ts'

const DAY = 86_400

async function signIn(sandbox: Sandbox, encoding: Encoding = 'form', scope?: string) {
  const { status, body } = await token(
    sandbox,
    encoding,
    codeFields(sandbox, await codeFor(sandbox, { scope })),
  )
  expect(status).toBe(200)
  return body
}

async function grantOf(sandbox: Sandbox) {
  const { body } = await api(sandbox, 'GET', '/oauth/grants?limit=1')
  return (body['data'] as Record<string, unknown>[])[0]
}

describe.each(ENCODINGS)(
  'the states of codes and refresh tokens, asked in %s (interface 3.1)',
  (encoding) => {
    test('an unused code is exchanged for an access token and a refresh token', async () => {
      const sandbox = await sandboxForTest({ autoApprove: true })
      const answer = await token(
        sandbox,
        encoding,
        codeFields(sandbox, await codeFor(sandbox, { scope: 'emails:send' })),
      )
      expect(answer.status).toBe(200)
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(Object.keys(answer.body)).toEqual([
        'access_token',
        'token_type',
        'expires_in',
        'refresh_token',
        'scope',
      ])
      expect(answer.body).toMatchObject({ token_type: 'Bearer', expires_in: 900, scope: 'emails:send' })
      expect(decodeProtectedHeader(String(answer.body['access_token'])).alg).toBe('ES256')
      const { iat = 0, exp = 0 } = decodeJwt(String(answer.body['access_token']))
      expect([900, 901]).toContain(exp - iat)
    })

    test('a redeemed code fails with invalid_grant and the grant stays as it is', async () => {
      const sandbox = await sandboxForTest({ autoApprove: true })
      const fields = codeFields(sandbox, await codeFor(sandbox))
      expect((await token(sandbox, encoding, fields)).status).toBe(200)
      expect(await token(sandbox, encoding, fields)).toMatchObject({
        status: 400,
        body: { error: 'invalid_grant' },
      })
      expect(await grantOf(sandbox)).toMatchObject({ revoked_at: null, revoked_reason: null })
    })

    test.each([
      { seconds: 599, status: 200 },
      { seconds: 600, status: 400 },
    ])('a code that is $seconds seconds old gives $status', async ({ seconds, status }) => {
      const sandbox = await sandboxForTest({ autoApprove: true })
      const fields = codeFields(sandbox, await codeFor(sandbox))
      await advance(sandbox, seconds)
      const answer = await token(sandbox, encoding, fields)
      expect(answer.status).toBe(status)
      if (status === 400) expect(answer.body['error']).toBe('invalid_grant')
    })

    test('a current refresh token is rotated: new tokens, and the old one is no longer valid', async () => {
      const sandbox = await sandboxForTest({ autoApprove: true })
      const first = await signIn(sandbox, encoding)
      const second = await token(sandbox, encoding, refreshFields(sandbox, first['refresh_token']))
      expect(second.status).toBe(200)
      expect(second.body['refresh_token']).not.toBe(first['refresh_token'])
      expect(second.body['access_token']).not.toBe(first['access_token'])
      const third = await token(sandbox, encoding, refreshFields(sandbox, second.body['refresh_token']))
      expect(third.status).toBe(200)
    })

    test.each([
      { days: 59.99, status: 200 },
      { days: 60, status: 400 },
    ])('a refresh token that was issued $days days ago gives $status', async ({ days, status }) => {
      const sandbox = await sandboxForTest({ autoApprove: true })
      const first = await signIn(sandbox, encoding)
      await advance(sandbox, 59 * DAY)
      const second = await token(sandbox, encoding, refreshFields(sandbox, first['refresh_token']))
      await advance(sandbox, days * DAY)
      const third = await token(sandbox, encoding, refreshFields(sandbox, second.body['refresh_token']))
      expect(third.status).toBe(status)
      if (status === 400) {
        expect(third.body['error']).toBe('invalid_grant')
        expect(await grantOf(sandbox)).toMatchObject({ revoked_at: null })
      }
    })

    test('a rotated refresh token that comes back revokes the grant and ends its access tokens', async () => {
      const sandbox = await sandboxForTest({ autoApprove: true })
      const first = await signIn(sandbox, encoding)
      const second = (await token(sandbox, encoding, refreshFields(sandbox, first['refresh_token']))).body
      const bearer = String(second['access_token'])
      expect((await api(sandbox, 'GET', '/contacts/imports', { bearer })).status).toBe(200)

      expect(await token(sandbox, encoding, refreshFields(sandbox, first['refresh_token']))).toMatchObject({
        status: 400,
        body: { error: 'invalid_grant' },
      })
      expect(await grantOf(sandbox)).toMatchObject({
        revoked_at: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,6}\+00$/),
        revoked_reason: 'refresh_token_reuse',
      })
      expect((await api(sandbox, 'GET', '/contacts/imports', { bearer })).status).toBe(401)
      expect(await token(sandbox, encoding, refreshFields(sandbox, second['refresh_token']))).toMatchObject({
        status: 400,
        body: { error: 'invalid_grant' },
      })
      expect((await control(sandbox, 'GET', '/state')).body).toMatchObject({
        refreshes: 1,
        reuse_detections: 1,
        grants_revoked: 1,
        grants: { issued: 1, active: 0, revoked: 1 },
      })
    })

    test('of twenty refreshes at once with one token one wins, and the grant is revoked', async () => {
      const sandbox = await sandboxForTest({ autoApprove: true })
      const first = await signIn(sandbox, encoding)
      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          token(sandbox, encoding, refreshFields(sandbox, first['refresh_token'])),
        ),
      )
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
      expect((await control(sandbox, 'GET', '/state')).body).toMatchObject({
        refreshes: 1,
        reuse_detections: 19,
      })
    })
  },
)

interface Refusal {
  readonly row: string
  readonly status: number
  readonly error: string
  fields(sandbox: Sandbox): Promise<Record<string, string>>
}

const without = (fields: Record<string, string>, name: string) =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name))

const code = async (sandbox: Sandbox) => codeFields(sandbox, await codeFor(sandbox))
const refresh = async (sandbox: Sandbox) => refreshFields(sandbox, (await signIn(sandbox))['refresh_token'])
const OTHER_VERIFIER = 'another-verifier-of-more-than-forty-three-characters'

const REFUSALS: readonly Refusal[] = [
  ...['grant_type', 'client_id', 'code', 'redirect_uri', 'code_verifier'].map((name) => ({
    row: `a code exchange without ${name}`,
    status: 400,
    error: 'invalid_request',
    fields: async (sandbox: Sandbox) => without(await code(sandbox), name),
  })),
  ...['grant_type', 'client_id', 'refresh_token'].map((name) => ({
    row: `a refresh without ${name}`,
    status: 400,
    error: 'invalid_request',
    fields: async (sandbox: Sandbox) => without(await refresh(sandbox), name),
  })),
  {
    row: 'an empty field',
    status: 400,
    error: 'invalid_request',
    fields: async (sandbox) => ({ ...(await code(sandbox)), code: '' }),
  },
  {
    row: 'an unknown grant type',
    status: 400,
    error: 'invalid_request',
    fields: async (sandbox) => ({ ...(await code(sandbox)), grant_type: 'password' }),
  },
  {
    row: 'a verifier that is too short',
    status: 400,
    error: 'invalid_request',
    fields: async (sandbox) => ({ ...(await code(sandbox)), code_verifier: 'short' }),
  },
  {
    row: 'a scope that the grant does not have',
    status: 400,
    error: 'invalid_scope',
    fields: async (sandbox) => {
      const session = await signIn(sandbox, 'form', 'emails:send')
      return { ...refreshFields(sandbox, session['refresh_token']), scope: 'emails:send domains:write' }
    },
  },
  {
    row: 'an invalid code',
    status: 400,
    error: 'invalid_grant',
    fields: async (sandbox) => ({ ...(await code(sandbox)), code: 'no-such-code' }),
  },
  {
    row: 'the code of another client',
    status: 400,
    error: 'invalid_grant',
    fields: async (sandbox) => ({ ...(await code(sandbox)), client_id: SEEDED_CLIENTS.codeOnly.id }),
  },
  {
    row: 'an invalid refresh token',
    status: 400,
    error: 'invalid_grant',
    fields: async (sandbox) => refreshFields(sandbox, 'no-such-token'),
  },
  {
    row: 'a verifier that does not match',
    status: 400,
    error: 'invalid_grant',
    fields: async (sandbox) => ({ ...(await code(sandbox)), code_verifier: OTHER_VERIFIER }),
  },
  {
    row: 'another redirect URI',
    status: 400,
    error: 'invalid_grant',
    fields: async (sandbox) => ({ ...(await code(sandbox)), redirect_uri: `${REDIRECT_URI}/` }),
  },
  {
    row: 'an unknown client',
    status: 401,
    error: 'invalid_client',
    fields: async (sandbox) => ({ ...(await code(sandbox)), client_id: 'nobody' }),
  },
  {
    row: 'a disabled client',
    status: 401,
    error: 'invalid_client',
    fields: async (sandbox) => ({ ...(await refresh(sandbox)), client_id: SEEDED_CLIENTS.disabled.id }),
  },
  {
    row: 'a code exchange by a client for refreshes only',
    status: 400,
    error: 'unauthorized_client',
    fields: async (sandbox) => ({ ...(await code(sandbox)), client_id: SEEDED_CLIENTS.refreshOnly.id }),
  },
  {
    row: 'a refresh by a client for codes only',
    status: 400,
    error: 'unauthorized_client',
    fields: async (sandbox) => ({ ...(await refresh(sandbox)), client_id: SEEDED_CLIENTS.codeOnly.id }),
  },
]

describe.each(ENCODINGS)('errors of the token endpoint, asked in %s (interface 7.1)', (encoding) => {
  test.each(REFUSALS)('the refusal of $row is $status $error', async ({ fields, status, error }) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const answer = await token(sandbox, encoding, await fields(sandbox))
    expect(answer).toMatchObject({ status, body: { error } })
    expect(answer.body['error_description']).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/)
  })
})

test.each([
  { what: 'JSON that does not parse', type: 'application/json', body: '{"grant_type":' },
  { what: 'JSON that is not an object', type: 'application/json', body: '[]' },
  { what: 'a field that is not a string', type: 'application/json', body: '{"grant_type":1}' },
  { what: 'a repeated field', type: 'application/x-www-form-urlencoded', body: 'code=a&code=b' },
  { what: 'another media type', type: 'text/plain', body: 'grant_type=refresh_token' },
])('$what is an invalid_request', async ({ type, body }) => {
  const sandbox = await sandboxForTest()
  const response = await fetch(`${sandbox.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': type },
    body,
  })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: 'invalid_request' })
})

test('a token request may have parameters that nobody knows, whatever they hold', async () => {
  const sandbox = await sandboxForTest({ autoApprove: true })
  const fields = { ...(await code(sandbox)), unknown: 5, nested: { list: [] } } as unknown as Record<
    string,
    string
  >
  expect((await token(sandbox, 'json', fields)).status).toBe(200)
})

test.each([
  ['another method', 405, { method: 'GET' }],
  ['a body of 300 kB', 413, { method: 'POST', body: new URLSearchParams({ code: 'x'.repeat(300_000) }) }],
])(
  '%s is refused with an error code, like everything at the token endpoint',
  async (_what, status, request) => {
    const sandbox = await sandboxForTest()
    const response = await fetch(`${sandbox.baseUrl}/oauth/token`, request)
    expect(response.status).toBe(status)
    if (status === 405) expect(response.headers.get('allow')).toBe('POST')
    expect(await response.json()).toMatchObject({
      error: 'invalid_request',
      error_description: expect.stringMatching(/./),
    })
  },
)

test('a scope that is asked for twice is granted once', async () => {
  const sandbox = await sandboxForTest({ autoApprove: true })
  const session = await signIn(sandbox, 'form', 'emails:send domains:read')
  const fields = { ...refreshFields(sandbox, session['refresh_token']), scope: 'emails:send emails:send' }
  expect((await token(sandbox, 'form', fields)).body).toMatchObject({ scope: 'emails:send' })
})

test('an access token is valid for its whole lifetime, at whatever fraction of a second it was issued', async () => {
  const tokens = await createAccessTokens('http://127.0.0.1:1')
  for (const fraction of [0, 1, 499, 999]) {
    const now = 1_700_000_000_000 + fraction
    const what = {
      grantId: 'g',
      clientId: 'c',
      scope: 's',
      id: `${fraction}`,
      audience: 'a',
      now,
      seconds: 900,
    }
    const bearer = await tokens.sign(what)
    expect(await tokens.read(bearer, now + 899_999)).toMatchObject({ grantId: 'g' })
    expect(await tokens.read(bearer, now + 901_000)).toBeUndefined()
  }
})

test('a refused exchange uses up neither the code nor the refresh token', async () => {
  const sandbox = await sandboxForTest({ autoApprove: true })
  const fields = await code(sandbox)
  expect((await token(sandbox, 'form', { ...fields, code_verifier: OTHER_VERIFIER })).status).toBe(400)
  const session = await token(sandbox, 'form', fields)
  expect(session.status).toBe(200)
  const again = refreshFields(sandbox, session.body['refresh_token'])
  expect((await token(sandbox, 'form', { ...again, scope: 'emails:destroy' })).status).toBe(400)
  expect((await token(sandbox, 'form', again)).status).toBe(200)
})

test('a narrower scope applies to one access token only; the next refresh has the full scope', async () => {
  const sandbox = await sandboxForTest({ autoApprove: true })
  const session = await signIn(sandbox, 'form', 'emails:send domains:read')
  const narrow = await token(sandbox, 'json', {
    ...refreshFields(sandbox, session['refresh_token']),
    scope: 'domains:read',
  })
  expect(narrow.body['scope']).toBe('domains:read')
  expect(decodeJwt(String(narrow.body['access_token']))['scope']).toBe('domains:read')
  const whole = await token(sandbox, 'json', refreshFields(sandbox, narrow.body['refresh_token']))
  expect(whole.body['scope']).toBe('emails:send domains:read')
})

test('an access token is valid for 900 seconds, or as configured', async () => {
  const usual = await sandboxForTest({ autoApprove: true })
  const bearer = String((await signIn(usual))['access_token'])
  await advance(usual, 890)
  expect((await api(usual, 'GET', '/oauth/grants', { bearer })).status).toBe(200)
  await advance(usual, 11)
  expect((await api(usual, 'GET', '/oauth/grants', { bearer })).status).toBe(401)

  const short = await sandboxForTest({ autoApprove: true, accessTokenSeconds: 2 })
  const session = await signIn(short)
  expect(session['expires_in']).toBe(2)
  await advance(short, 3)
  expect((await api(short, 'GET', '/oauth/grants', { bearer: String(session['access_token']) })).status).toBe(
    401,
  )
})

test('metadata and iss are on by default and can be turned off', async () => {
  const usual = await sandboxForTest({ autoApprove: true })
  const metadata = await fetch(`${usual.baseUrl}/.well-known/oauth-authorization-server`)
  expect(await metadata.json()).toMatchObject({
    issuer: usual.baseUrl,
    token_endpoint: `${usual.baseUrl}/oauth/token`,
    authorization_response_iss_parameter_supported: true,
  })
  expect((await authorize(usual))?.searchParams.get('iss')).toBe(usual.baseUrl)

  const bare = await sandboxForTest({ autoApprove: true, metadata: false, iss: false })
  expect((await fetch(`${bare.baseUrl}/.well-known/oauth-authorization-server`)).status).toBe(404)
  expect((await authorize(bare))?.searchParams.has('iss')).toBe(false)
})

describe('the authorization endpoint', () => {
  test.each([
    { what: 'no response type', changes: { response_type: undefined }, error: 'invalid_request' },
    {
      what: 'another response type',
      changes: { response_type: 'token' },
      error: 'unsupported_response_type',
    },
    { what: 'no challenge', changes: { code_challenge: undefined }, error: 'invalid_request' },
    { what: 'a plain challenge', changes: { code_challenge_method: 'plain' }, error: 'invalid_request' },
    { what: 'no challenge method', changes: { code_challenge_method: undefined }, error: 'invalid_request' },
    { what: 'an unknown scope', changes: { scope: 'everything' }, error: 'invalid_scope' },
    { what: 'a relative resource', changes: { resource: 'mail' }, error: 'invalid_target' },
    {
      what: 'a client for refreshes only',
      changes: { client_id: SEEDED_CLIENTS.refreshOnly.id },
      error: 'unauthorized_client',
    },
  ])('the authorization endpoint reports $what to the client', async ({ changes, error }) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const target = await authorize(sandbox, changes)
    expect(target?.origin).toBe('http://127.0.0.1:41234')
    expect(target?.searchParams.get('error')).toBe(error)
    expect(target?.searchParams.get('state')).toBe('state-1')
    expect(target?.searchParams.has('code')).toBe(false)
  })

  test.each([
    { what: 'no client', changes: { client_id: undefined } },
    { what: 'an unknown client', changes: { client_id: 'nobody' } },
    { what: 'a disabled client', changes: { client_id: SEEDED_CLIENTS.disabled.id } },
    { what: 'no redirect URI', changes: { redirect_uri: undefined } },
    { what: 'the redirect URI of a stranger', changes: { redirect_uri: 'https://evil.example/callback' } },
    { what: 'another path', changes: { redirect_uri: 'http://127.0.0.1:41234/other' } },
    {
      what: 'a user name before the host',
      changes: { redirect_uri: 'http://127.0.0.1:1@evil.example/callback' },
    },
    {
      what: 'a host that only begins like loopback',
      changes: { redirect_uri: 'http://127.0.0.1.evil.example/callback' },
    },
    {
      what: 'another port than the registered one',
      changes: {
        client_id: SEEDED_CLIENTS.fixedRedirect.id,
        redirect_uri: 'http://127.0.0.1:47822/callback',
      },
    },
  ])('the authorization endpoint does not redirect for $what', async ({ changes }) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    expect(await authorize(sandbox, changes)).toBeUndefined()
  })

  test.each([
    'http://127.0.0.1:1/callback',
    'http://127.0.0.1:65535/callback',
    'http://[::1]:8080/callback',
    'http://localhost:3000/callback',
  ])(
    'the authorization endpoint accepts %s for the usual client, at any port (RFC 8252, section 7.3)',
    async (redirectUri) => {
      const sandbox = await sandboxForTest({ autoApprove: true })
      const target = await authorize(sandbox, { redirect_uri: redirectUri })
      expect(target?.href.startsWith(`${redirectUri}?code=`)).toBe(true)
    },
  )

  test('the authorization endpoint keeps the resource with the grant and puts it into the access token', async () => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const resource = 'https://api.example/mail'
    const session = await token(sandbox, 'form', codeFields(sandbox, await codeFor(sandbox, { resource })))
    expect(decodeJwt(String(session.body['access_token'])).aud).toBe(resource)
    expect(await grantOf(sandbox)).toMatchObject({ resource, client: { name: 'mailclaim' } })
  })
})
