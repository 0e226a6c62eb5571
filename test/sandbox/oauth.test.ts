import { decodeJwt, decodeProtectedHeader } from 'jose'
import { describe, expect, test } from 'vitest'
import { OAUTH_CLIENTS } from '../../src/sandbox/oauth.ts'
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
  REDIRECT_URI,
  refreshFields,
  token,
} from './talk.ts'

const DAY = 86_400
const OTHER_VERIFIER = 'another-verifier-of-more-than-forty-three-characters'

type Fields = Record<string, string>
const code = async (sandbox: Sandbox, scope?: string): Promise<Fields> =>
  codeFields(sandbox, await codeFor(sandbox, { scope }))

async function signIn(sandbox: Sandbox, scope?: string) {
  const { status, body } = await token(sandbox, 'form', await code(sandbox, scope))
  expect(status).toBe(200)
  return body
}
const refresh = async (sandbox: Sandbox): Promise<Fields> =>
  refreshFields(sandbox, (await signIn(sandbox))['refresh_token'])

const newestGrant = async (sandbox: Sandbox) =>
  ((await api(sandbox, 'GET', '/oauth/grants?limit=1')).body['data'] as Record<string, unknown>[])[0]
const state = async (sandbox: Sandbox) => (await control(sandbox, 'GET', '/state')).body
const INVALID_GRANT = { status: 400, body: { error: 'invalid_grant' } }

describe('codes and tokens', () => {
  test.each(ENCODINGS)('a %s-encoded token request with an authorization code succeeds', async (encoding) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const answer = await token(sandbox, encoding, await code(sandbox, 'emails:send'))
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

  test('reuse of an authorization code gets the error invalid_grant, and does not revoke the grant', async () => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const fields = await code(sandbox)
    expect((await token(sandbox, 'form', fields)).status).toBe(200)
    expect(await token(sandbox, 'form', fields)).toMatchObject(INVALID_GRANT)
    expect(await newestGrant(sandbox)).toMatchObject({ revoked_at: null, revoked_reason: null })
  })

  test.each([
    { seconds: 599, status: 200 },
    { seconds: 600, status: 400 },
  ])('an authorization code that is $seconds s old gets status $status', async ({ seconds, status }) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const fields = await code(sandbox)
    await advance(sandbox, seconds)
    expect((await token(sandbox, 'form', fields)).status).toBe(status)
  })

  test.each([
    { days: 59.99, status: 200 },
    { days: 60, status: 400 },
  ])('a refresh with a refresh token $days days old gets status $status', async ({ days, status }) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const fields = await refresh(sandbox)
    await advance(sandbox, 59 * DAY)
    const rotated = (await token(sandbox, 'form', fields)).body['refresh_token']
    await advance(sandbox, days * DAY)
    expect((await token(sandbox, 'form', refreshFields(sandbox, rotated))).status).toBe(status)
    expect(await newestGrant(sandbox)).toMatchObject({ revoked_at: null })
  })

  test('reuse of a rotated refresh token makes the sandbox revoke the grant and all its tokens', async () => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const first = await refresh(sandbox)
    const second = (await token(sandbox, 'form', first)).body
    const bearer = String(second['access_token'])
    expect((await api(sandbox, 'GET', '/contacts/imports', { bearer })).status).toBe(200)

    expect(await token(sandbox, 'form', first)).toMatchObject(INVALID_GRANT)
    expect(await newestGrant(sandbox)).toMatchObject({
      revoked_at: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,6}\+00$/),
      revoked_reason: 'refresh_token_reuse',
    })
    expect((await api(sandbox, 'GET', '/contacts/imports', { bearer })).status).toBe(401)
    const last = refreshFields(sandbox, second['refresh_token'])
    expect(await token(sandbox, 'form', last)).toMatchObject(INVALID_GRANT)
    expect(await state(sandbox)).toMatchObject({ refreshes: 1, reuse_detections: 1, grants_revoked: 1 })
  })

  test('of twenty concurrent refreshes with one refresh token, one succeeds, and the grant is revoked', async () => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const fields = await refresh(sandbox)
    const answers = await Promise.all(Array.from({ length: 20 }, () => token(sandbox, 'form', fields)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await state(sandbox)).toMatchObject({ refreshes: 1, reuse_detections: 19, grants_revoked: 1 })
  })

  test('a token request that the sandbox refuses for its code verifier or scope leaves the code or refresh token usable', async () => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const fields = await code(sandbox)
    expect((await token(sandbox, 'form', { ...fields, code_verifier: OTHER_VERIFIER })).status).toBe(400)
    const session = await token(sandbox, 'form', fields)
    const again = refreshFields(sandbox, session.body['refresh_token'])
    expect((await token(sandbox, 'form', { ...again, scope: 'emails:destroy' })).status).toBe(400)
    expect((await token(sandbox, 'form', again)).status).toBe(200)
  })

  test('in the sandbox, a refresh with a narrower scope limits only the access token it returns: the next refresh returns the full scope', async () => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const session = await signIn(sandbox, 'emails:send domains:read')
    const fields = refreshFields(sandbox, session['refresh_token'])
    const narrow = (await token(sandbox, 'json', { ...fields, scope: 'domains:read domains:read' })).body
    expect(narrow['scope']).toBe('domains:read')
    expect(decodeJwt(String(narrow['access_token']))['scope']).toBe('domains:read')
    const whole = await token(sandbox, 'json', refreshFields(sandbox, narrow['refresh_token']))
    expect(whole.body['scope']).toBe('emails:send domains:read')
  })

  test('an access token of the sandbox expires after 900 seconds, or after the configured lifetime', async () => {
    for (const seconds of [900, 2]) {
      const sandbox = await sandboxForTest({ autoApprove: true, accessTokenSeconds: seconds })
      const session = await signIn(sandbox)
      const bearer = String(session['access_token'])
      expect(session['expires_in']).toBe(seconds)
      await advance(sandbox, seconds - 1)
      expect((await api(sandbox, 'GET', '/oauth/grants', { bearer })).status).toBe(200)
      await advance(sandbox, 2)
      expect((await api(sandbox, 'GET', '/oauth/grants', { bearer })).status).toBe(401)
    }
  })
})

type Row = [row: string, error: string, from: (sandbox: Sandbox) => Promise<Fields>, change: Fields]

const REFUSALS: readonly Row[] = [
  ...['grant_type', 'client_id', 'code', 'redirect_uri', 'code_verifier'].map(
    (name): Row => [`no ${name}`, 'invalid_request', code, { [name]: '' }],
  ),
  ['no refresh token', 'invalid_request', refresh, { refresh_token: '' }],
  ['an unknown grant type', 'invalid_request', code, { grant_type: 'password' }],
  ['a short verifier', 'invalid_request', code, { code_verifier: 'short' }],
  ['a scope beyond the grant', 'invalid_scope', refresh, { scope: 'other' }],
  ['an invalid code', 'invalid_grant', code, { code: 'no-such-code' }],
  ['the code of another client', 'invalid_grant', code, { client_id: OAUTH_CLIENTS.codeOnly.id }],
  ['an invalid token', 'invalid_grant', refresh, { refresh_token: 'none' }],
  ['another verifier', 'invalid_grant', code, { code_verifier: OTHER_VERIFIER }],
  ['another redirect URI', 'invalid_grant', code, { redirect_uri: `${REDIRECT_URI}/` }],
  ['an unknown client', 'invalid_client', code, { client_id: 'nobody' }],
  ['a disabled client', 'invalid_client', refresh, { client_id: OAUTH_CLIENTS.disabled.id }],
  [
    'a client registered for codes only',
    'unauthorized_client',
    refresh,
    { client_id: OAUTH_CLIENTS.codeOnly.id },
  ],
]

describe('errors of the token endpoint', () => {
  test.each(REFUSALS)('a token request with %s gets the error %s', async (_row, error, from, change) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const fields = { ...(await from(sandbox)), ...change }
    for (const encoding of ENCODINGS) {
      const answer = await token(sandbox, encoding, fields)
      expect(answer).toMatchObject({ status: error === 'invalid_client' ? 401 : 400, body: { error } })
      expect(answer.body['error_description']).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/)
    }
  })

  test.each([
    ['JSON that does not parse', 'application/json', '{"code":'],
    ['JSON that is not an object', 'application/json', '[]'],
    ['a field that is not a text', 'application/json', '{"code":1}'],
    ['another media type', 'text/plain', 'code=a'],
    ['a repeated field', 'application/x-www-form-urlencoded', 'code=a&code=b'],
  ])('the sandbox refuses a token request with %s as invalid_request', async (_row, type, body) => {
    const sandbox = await sandboxForTest()
    const request = { method: 'POST', headers: { 'content-type': type }, body }
    const response = await fetch(`${sandbox.baseUrl}/oauth/token`, request)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: 'invalid_request' })
  })

  test('unknown fields of a token request in JSON are ignored, even if they are not strings', async () => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const fields = { ...(await code(sandbox)), unknown: 5, nested: {} } as unknown as Fields
    expect((await token(sandbox, 'json', fields)).status).toBe(200)
  })
})

describe('the authorization endpoint', () => {
  test.each([
    ['the response type `token`', { response_type: 'token' }, 'unsupported_response_type'],
    ['no challenge', { code_challenge: undefined }, 'invalid_request'],
    ['a plain challenge', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['an unknown scope', { scope: 'everything' }, 'invalid_scope'],
    ['a relative resource', { resource: 'mail' }, 'invalid_target'],
  ])('an authorization request with %s gets a redirect with an error', async (_row, changes, error) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const target = await authorize(sandbox, changes)
    expect(target?.origin).toBe('http://127.0.0.1:41234')
    expect(Object.fromEntries(target?.searchParams ?? [])).toMatchObject({ error, state: 'state-1' })
    expect(target?.searchParams.has('code')).toBe(false)
  })

  test.each([
    ['no client', { client_id: undefined }],
    ['an unknown client', { client_id: 'nobody' }],
    ['a disabled client', { client_id: OAUTH_CLIENTS.disabled.id }],
    ['no redirect URI', { redirect_uri: undefined }],
    ['the redirect URI of a stranger', { redirect_uri: 'https://evil.example/callback' }],
    ['another path in the redirect URI', { redirect_uri: 'http://127.0.0.1:41234/other' }],
    ['a user name in the redirect URI', { redirect_uri: 'http://127.0.0.1:1@evil.example/callback' }],
    ['the redirect host 127.0.0.1.evil.example', { redirect_uri: 'http://127.0.0.1.evil.example/callback' }],
    ['the port 65536 in the redirect URI', { redirect_uri: 'http://127.0.0.1:65536/callback' }],
    ['no port in the redirect URI', { redirect_uri: 'http://127.0.0.1/callback' }],
  ])('the sandbox does not redirect an authorization request with %s', async (_row, changes) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    expect(await authorize(sandbox, changes)).toBeUndefined()
  })

  test.each([
    'http://127.0.0.1:1/callback',
    'http://127.0.0.1:65535/callback',
    'http://[::1]:8080/callback',
    'http://localhost:3000/callback',
  ])('an authorization request redirects to the URI %s with a code and `iss`', async (redirectUri) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const target = await authorize(sandbox, { redirect_uri: redirectUri })
    expect(target?.href.startsWith(`${redirectUri}?code=`)).toBe(true)
    expect(target?.searchParams.get('iss')).toBe(sandbox.baseUrl)
  })

  test('the sandbox stores a resource indicator (RFC 8707) in the grant, and issues an access token with it as the audience', async () => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const resource = 'https://api.example/mail'
    const session = await token(sandbox, 'form', codeFields(sandbox, await codeFor(sandbox, { resource })))
    expect(decodeJwt(String(session.body['access_token'])).aud).toBe(resource)
    expect(await newestGrant(sandbox)).toMatchObject({ resource, client: { name: 'mailclaim' } })
  })

  test('the authorization server metadata (RFC 8414) of the sandbox names the authorization and token endpoints', async () => {
    const { baseUrl } = await sandboxForTest()
    const metadata = await fetch(`${baseUrl}/.well-known/oauth-authorization-server`)
    expect(await metadata.json()).toMatchObject({
      issuer: baseUrl,
      authorization_endpoint: `${baseUrl}/oauth/authorize`,
      token_endpoint: `${baseUrl}/oauth/token`,
    })
  })
})
