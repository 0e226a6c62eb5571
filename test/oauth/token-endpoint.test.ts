import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { HttpResponse } from '../../src/context.ts'
import { HttpTransportError } from '../../src/context.ts'
import { CliError } from '../../src/errors.ts'
import { exchangeCode, sendRefreshToken } from '../../src/oauth/token-endpoint.ts'
import { createLoggingTransport } from '../../src/service/log.ts'
import { createTransport } from '../../src/service/transport.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, fakeSettings, jsonResponse, textResponse } from '../fake-context.ts'

const BASE = new URL('https://api.example.com/v1')
const WHOLE = {
  access_token: 'new-access',
  token_type: 'Bearer',
  expires_in: 900,
  refresh_token: 'new-refresh',
  scope: 'emails:send',
}
const oauthError = (status: number, error: string, description?: string) =>
  jsonResponse(status, { error, ...(description === undefined ? {} : { error_description: description }) })

type Respond = () => HttpResponse | Promise<HttpResponse>

async function exchange(answer: Respond, requestedScope?: string) {
  const context = createFakeContext({ respond: answer })
  const tokens = await exchangeCode(createIo(context, await fakeSettings(context)), {
    base: BASE,
    clientId: 'client-1',
    code: 'the-code',
    redirectUri: 'http://127.0.0.1:4711/callback',
    codeVerifier: 'v'.repeat(43),
    requestedScope,
  })
  return { tokens, request: context.requests[0], clock: context.clock }
}

const REQUEST = {
  base: BASE,
  clientId: 'client-1',
  refreshToken: 'old-refresh',
  scope: undefined,
  grantedScope: 'emails:send domains:read',
}

async function refreshOnce(answer: Respond, more: Partial<Parameters<typeof sendRefreshToken>[1]> = {}) {
  const context = createFakeContext({ respond: answer })
  const io = createIo(context, await fakeSettings(context))
  return { outcome: await sendRefreshToken(io, { ...REQUEST, ...more }), requests: context.requests }
}

/** Returns a text with each character as a JSON escape. */
const escaped = (text: string) =>
  [...text].map((c) => (c === '/' ? '\\/' : `\\u00${c.charCodeAt(0).toString(16)}`)).join('')

describe('the exchange of a code', () => {
  it('a code exchange sends a form-encoded request with the code verifier and without an Authorization header', async () => {
    const { request, tokens, clock } = await exchange(() => jsonResponse(200, WHOLE))
    expect(request?.url.href).toBe('https://api.example.com/v1/oauth/token')
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
      grant_type: 'authorization_code',
      client_id: 'client-1',
      code: 'the-code',
      redirect_uri: 'http://127.0.0.1:4711/callback',
      code_verifier: 'v'.repeat(43),
    })
    expect(request?.headers).toMatchObject({
      'content-type': expect.stringContaining('x-www-form-urlencoded'),
    })
    expect(request?.headers).not.toHaveProperty('authorization')
    expect(tokens).toEqual({
      access: {
        value: 'new-access',
        scope: 'emails:send',
        expiresAt: clock.now() + 900_000,
        lifetimeSeconds: 900,
      },
      refreshToken: 'new-refresh',
    })
  })

  it.each([
    [oauthError(400, 'invalid_scope'), 'invalid_scope', 6, 'will not grant it'],
    [oauthError(403, 'access_denied'), 'access_denied', 6, 'the service refused it'],
    [oauthError(400, 'invalid_grant'), 'invalid_grant', 4, 'used already, is too old'],
    [oauthError(401, 'invalid_client'), 'invalid_client', 3, 'does not know the client id'],
    [oauthError(400, 'unauthorized_client'), 'unauthorized_client', 3, 'not registered for this'],
    [oauthError(400, 'some_new_code'), 'some_new_code', 6, 'some_new_code'],
    [textResponse(502, '<html>'), 'service_unavailable', 7, 'HTTP 502'],
    [
      textResponse(200, '{"access_token":"a","token_type":"Bearer","refr'),
      'service_unavailable',
      7,
      'HTTP 200',
    ],
    [textResponse(200, '<html>'), 'service_unavailable', 7, 'not a JSON object'],
    ...[301, 302, 303, 307, 308].map((status): [HttpResponse, string, number, string] => [
      textResponse(status, '', { location: 'https://api.example.com/oauth/token?a=b' }),
      'redirected',
      7,
      `redirect (${status}) to https://api.example.com/oauth/token?…, which`,
    ]),
  ])('a code exchange with the response %j fails with %s, exit %i', async (answer, code, exit, words) => {
    await expect(exchange(() => answer)).rejects.toMatchObject({
      shownCode: code,
      exit,
      message: expect.stringContaining(words),
    })
  })

  it('a code exchange whose connection closes without a response fails with `service_unavailable` and a hint to sign in again', async () => {
    const failing = exchange(() =>
      Promise.reject(new HttpTransportError('reset', 'maybe', 'the connection was closed')),
    )
    await expect(failing).rejects.toMatchObject({
      code: 'service_unavailable',
      exit: 7,
      hint: expect.stringContaining('sign in again'),
    })
  })

  it('a code exchange whose response has no refresh token fails with a hint to register the client for refresh tokens', async () => {
    const answer = () => jsonResponse(200, { ...WHOLE, refresh_token: null })
    await expect(exchange(answer)).rejects.toMatchObject({
      code: 'no_refresh_token',
      exit: 6,
      hint: expect.stringMatching(/^have .* registered for the refresh token grant.*offline_access$/),
    })
  })

  it("the error of a code exchange quotes the service's message, but neither the code nor the code verifier", async () => {
    const answer = oauthError(400, 'invalid_grant', `code the-code with ${'v'.repeat(43)} is not known`)
    await expect(exchange(() => answer)).rejects.toThrow(
      'code [left out] with [left out] is not known (invalid_grant)',
    )
  })
})

describe('a token response', () => {
  it.each([
    [{ scope: undefined }, { scope: 'asked:for' }],
    [{ scope: '' }, { scope: 'asked:for' }],
    [{ expires_in: undefined }, { lifetimeSeconds: 300 }],
    [{ expires_in: '600' }, { lifetimeSeconds: 600 }],
    [{ expires_in: { toString: 1 } }, { lifetimeSeconds: 300 }],
    [{ expires_in: 3e13 }, { lifetimeSeconds: 366 * 24 * 3600 }],
    [{ token_type: 'bEARER' }, { value: 'new-access' }],
    [{ token_type: null }, { value: 'new-access' }],
    [{ id_token: 'x', more: {} }, { value: 'new-access' }],
  ])('a token response with the fields %o gives an access token with %o', async (fields, access) => {
    const { tokens } = await exchange(() => jsonResponse(200, { ...WHOLE, ...fields }), 'asked:for')
    expect(tokens).toMatchObject({ refreshToken: 'new-refresh', access })
  })

  it.each([201, 203])('a complete token response with status %i is accepted', async (status) => {
    const { outcome } = await refreshOnce(() => jsonResponse(status, WHOLE))
    expect(outcome.kind).toBe('success')
  })
})

describe('a refresh', () => {
  it('a refresh sends `scope` only to narrow the scope, and a response without `scope` grants the narrowed scope', async () => {
    const { requests } = await refreshOnce(() => jsonResponse(200, WHOLE))
    expect(requests).toHaveLength(1)
    expect(Object.fromEntries(new URLSearchParams(requests[0]?.body))).toEqual({
      grant_type: 'refresh_token',
      client_id: 'client-1',
      refresh_token: 'old-refresh',
    })
    const unnamed = () => jsonResponse(200, { ...WHOLE, scope: undefined })
    const narrowed = await refreshOnce(unnamed, { scope: 'domains:read' })
    expect(new URLSearchParams(narrowed.requests[0]?.body).get('scope')).toBe('domains:read')
    expect(narrowed.outcome).toMatchObject({ access: { scope: 'domains:read' } })
  })

  const outcomes: readonly [string, Respond, Record<string, unknown>][] = [
    [
      'invalid_grant',
      () => oauthError(400, 'invalid_grant', 'reused'),
      { kind: 'over', description: 'reused (invalid_grant)' },
    ],
    ['invalid_grant with status 500', () => oauthError(500, 'invalid_grant'), { kind: 'unknown' }],
    ['invalid_scope', () => oauthError(400, 'invalid_scope'), { kind: 'unused', isTransient: false }],
    ...['unsupported_grant_type', 'invalid_target', 'temporarily_unavailable', 'Not Found'].map(
      (error): [string, () => HttpResponse, Record<string, unknown>] => [
        `the OAuth error ${error}`,
        () => oauthError(400, error, 'refresh is off'),
        {
          kind: 'unused',
          isTransient: false,
          error: expect.objectContaining({
            message: expect.stringContaining(`refresh is off (${error})`),
          }),
        },
      ],
    ),
    [
      'a 4xx whose error is an object',
      () => jsonResponse(400, { error: { name: 'x' } }),
      { kind: 'unknown' },
    ],
    ['429 with an OAuth error, but no Retry-After', () => oauthError(429, 'slow_down'), { kind: 'unknown' }],
    ...[408, 421, 425, 499].map((status): [string, () => HttpResponse, Record<string, unknown>] => [
      `${status} with a JSON error, as proxies send it`,
      () => jsonResponse(status, { error: 'timeout' }),
      { kind: 'unknown' },
    ]),
    [
      '404 with a JSON error that is not a code',
      () => jsonResponse(404, { error: 'Not Found' }),
      { kind: 'unknown' },
    ],
    [
      '503 with Retry-After as a date',
      () => textResponse(503, '', { 'retry-after': 'Fri, 20 Nov 2026 12:00:05 GMT' }),
      { kind: 'unused', isTransient: true, error: { retryAfterMs: 5000 } },
    ],
    [
      '503 with Retry-After in seconds and a JSON message',
      () => textResponse(503, '{"name":"maintenance","message":"back soon"}', { 'retry-after': '3' }),
      { kind: 'unused', isTransient: true, error: { retryAfterMs: 3000 } },
    ],
    [
      '503 with Retry-After and the page of a cache that lost its connection to the service',
      () =>
        textResponse(503, '<html><h1>Error 503 Backend fetch failed</h1>', {
          'retry-after': '5',
          server: 'Varnish',
          via: '1.1 cache (Varnish/7.1)',
        }),
      { kind: 'unknown', why: expect.stringContaining('Backend fetch failed') },
    ],
    [
      '503 with Retry-After and an empty page',
      () => textResponse(503, '', { 'retry-after': '5', 'content-type': 'text/html' }),
      { kind: 'unknown' },
    ],
    [
      '429 with Retry-After and the page of a proxy',
      () => textResponse(429, '<html><h1>Too Many Requests</h1>', { 'retry-after': '5' }),
      { kind: 'unused', isTransient: true, error: { retryAfterMs: 5000 } },
    ],
    ...[429, 503].flatMap((status) =>
      [{}, { 'retry-after': 'soon' }, { 'retry-after': '' }].map(
        (headers: Record<string, string>): [string, () => HttpResponse, Record<string, unknown>] => [
          `${status} of a proxy with the headers ${JSON.stringify(headers)}`,
          () => textResponse(status, 'upstream connect error', headers),
          { kind: 'unknown', why: `HTTP ${status}: upstream connect error` },
        ],
      ),
    ),
    [
      '503 with an OAuth error',
      () => oauthError(503, 'temporarily_unavailable', 'later'),
      { kind: 'unknown', why: 'HTTP 503: later (temporarily_unavailable)' },
    ],
    [
      'a redirect',
      () => textResponse(308, '', { location: 'https://api.example.com/oauth/token' }),
      {
        kind: 'unknown',
        why: 'POST /oauth/token was answered with a redirect (308) to https://api.example.com/oauth/token, which is not followed',
      },
    ],
    [
      'a compressed success',
      () => textResponse(200, '\u001f\ufffd\b\0access_token'),
      { kind: 'unknown', why: 'HTTP 200: it is compressed with gzip; it is not a JSON object' },
    ],
    [
      'an access token but no refresh token',
      () => jsonResponse(200, { ...WHOLE, refresh_token: undefined }),
      { kind: 'unknown', why: 'HTTP 200; it has no refresh_token' },
    ],
    [
      'a response that breaks off within the access token',
      () => textResponse(200, '{"access_token":"half-of-a-tok'),
      { kind: 'unknown', why: 'HTTP 200; it is not a JSON object' },
    ],
    [
      'an error of beforeSend',
      () =>
        Promise.reject(
          new HttpTransportError('aborted', 'no', 'stopped', new CliError('cannot_write', 'disk full')),
        ),
      { kind: 'unused', isTransient: false, error: expect.objectContaining({ code: 'cannot_write' }) },
    ],
    [
      'a failed host lookup',
      () => Promise.reject(new HttpTransportError('lookup', 'no', 'no such host')),
      { kind: 'unused', isTransient: true },
    ],
    [
      'a wrong certificate',
      () => Promise.reject(new HttpTransportError('tls', 'no', 'for another host')),
      { kind: 'unused', isTransient: false },
    ],
    [
      'a timeout',
      () => Promise.reject(new HttpTransportError('timeout', 'maybe', 'no answer')),
      { kind: 'unknown', why: 'no answer' },
    ],
    ['a bug in the transport', () => Promise.reject(new TypeError('oops')), { kind: 'unknown', why: 'oops' }],
  ]
  it.each(outcomes.map(([name, respond, expected]) => [name, expected['kind'], respond, expected] as const))(
    'a refresh that ends with %s has the outcome `%s`',
    async (_name, _kind, respond, expected) => {
      expect((await refreshOnce(respond)).outcome).toMatchObject(expected)
    },
  )

  it.each<[string, Record<string, unknown>]>([
    ['no access token', { access_token: undefined }],
    ['an access token with a line break', { access_token: 'a\nb' }],
    ['a token of another type', { token_type: 'DPoP' }],
    ['a type that is no text', { token_type: { toString: 1 } }],
  ])('a refresh returns the new refresh token of a response with %s', async (_what, fields) => {
    const { outcome } = await refreshOnce(() => jsonResponse(200, { ...WHOLE, ...fields }))
    expect(outcome).toEqual({
      kind: 'success',
      refreshToken: 'new-refresh',
      access: undefined,
      defect: expect.stringMatching(/access_token|token_type/),
    })
  })

  it.each([
    ['XML', () => textResponse(200, '<r><refresh_token>rtNEW_abcdefghijk0123</refresh_token></r>')],
    [
      'an escaped quotation of a gateway',
      () => jsonResponse(500, { message: '{\\"refresh_token\\":\\"rtNEW_abcdefghijk0123\\"}' }),
    ],
    ['plain text', () => oauthError(400, 'invalid_request', 'the next one is rtNEW_abcdefghijk0123')],
    ...['\0', '\u200b', '\ufffd', '\\u0000'].map((between): [string, () => HttpResponse] => [
      `letters with ${JSON.stringify(between)} between them`,
      () => oauthError(400, 'invalid_request', [...'the next: rtNEW_abcdefghijk0123'].join(between)),
    ]),
    ...[(hex: string) => `\\u00${hex}`, (hex: string) => `\\x${hex}`, (hex: string) => `%${hex}`].map(
      (written): [string, () => HttpResponse] => [
        `letters such as ${written('72')}`,
        () =>
          oauthError(
            400,
            'x',
            `next: ${[...'rtNEW_0123456789a'].map((c) => written(c.charCodeAt(0).toString(16))).join('')}`,
          ),
      ],
    ),
  ])('no message of a refresh contains a token that the service sent as %s', async (_where, answer) => {
    const { outcome } = await refreshOnce(answer)
    const said = 'error' in outcome ? outcome.error.message : JSON.stringify(outcome)
    expect(said).toMatch(/\[(left out|redacted)\]/)
    expect(said.replace(/[\0\u200b\ufffd]|\\u0000|\\u200b/g, '')).not.toMatch(/rtNEW|[%xu0]4e/)
  })

  it.each(['utf16le', 'utf16be'])('a token response in %s is reported as binary data', async (encoding) => {
    const bytes = Buffer.from(`\ufeff${JSON.stringify(WHOLE)}`, 'utf16le')
    const text = new TextDecoder().decode(encoding === 'utf16be' ? bytes.swap16() : bytes)
    const { outcome } = await refreshOnce(() => textResponse(200, text))
    expect(outcome).toEqual({ kind: 'unknown', why: 'HTTP 200: it is binary data; it is not a JSON object' })
  })

  it("the reason for the outcome `unknown` of a refresh quotes the service's message, including the request id", async () => {
    const id = '1b4e28ba-2fa1-11d2-883f-0016d3cca427'
    const { outcome } = await refreshOnce(() =>
      jsonResponse(500, { message: `upstream_temporarily_unavailable, request ${id}` }),
    )
    expect(outcome).toMatchObject({ why: `HTTP 500: upstream_temporarily_unavailable, request ${id}` })
  })

  describe('with a truncated response', () => {
    const cutAfter = (text: string, status = 200, headers = {}): HttpResponse => ({
      ...textResponse(status, text, headers),
      brokenBy: new HttpTransportError('reset', 'maybe', 'the connection was closed'),
    })

    it('a refresh succeeds if its response breaks off after a complete JSON object', async () => {
      const { outcome } = await refreshOnce(() => cutAfter(JSON.stringify(WHOLE)))
      expect(outcome).toMatchObject({ kind: 'success', refreshToken: 'new-refresh' })
    })

    it('a refresh succeeds if its response breaks off after both tokens', async () => {
      for (const left of ['}', ',"scope":"emails:send"}']) {
        const text = JSON.stringify({ ...WHOLE, scope: 'emails:send' })
          .replace(/,"scope":"emails:send"\}$/, left)
          .replace(/\}$/, '')
        const { outcome } = await refreshOnce(() => cutAfter(text))
        expect(outcome).toMatchObject({ kind: 'success', refreshToken: 'new-refresh' })
      }
    })

    it.each(['"note":"a\\\\x"', '"note":"a\nb"', '"count":007'])(
      'a refresh takes the new refresh token from a response with invalid JSON in another field: %s',
      async (pair) => {
        const text = JSON.stringify(WHOLE).replace('{', `{${pair},`)
        for (const response of [textResponse(200, text), cutAfter(text.slice(0, -1))]) {
          const { outcome } = await refreshOnce(() => response)
          expect(outcome).toMatchObject({ kind: 'success', refreshToken: 'new-refresh' })
        }
      },
    )

    it.each([
      ['an object', '"previous":{"refresh_token":"nested"}'],
      ['an array', '"all":[{"refresh_token":"nested"},{"a":"}"}]'],
      ['a text', '"note":"{\\"refresh_token\\":\\"nested\\"}"'],
    ])(
      'a refresh takes the refresh token at the top level of a truncated response, not one inside %s',
      async (_in, pair) => {
        const text = JSON.stringify(WHOLE).slice(0, -1)
        for (const whole of [`${text},${pair},`, text.replace('{', `{${pair},`)])
          expect((await refreshOnce(() => cutAfter(whole))).outcome).toMatchObject({
            kind: 'success',
            refreshToken: 'new-refresh',
          })
        const alone = `{"access_token":"new-access",${pair},"refresh_to`
        expect((await refreshOnce(() => cutAfter(alone))).outcome.kind).toBe('unknown')
      },
    )

    it('a refresh whose response breaks off within the refresh token has the outcome `unknown`, whose reason quotes no token', async () => {
      const { refresh_token, ...rest } = WHOLE
      const text = JSON.stringify({ ...rest, refresh_token })
      const { outcome } = await refreshOnce(() => cutAfter(text.slice(0, -3)))
      expect(outcome).toMatchObject({
        kind: 'unknown',
        why: expect.stringContaining('connection was closed'),
      })
      expect((outcome as { why: string }).why).not.toContain('new-')
    })

    it('a refresh has the outcome `unused` after a 401 response with the error `invalid_client`, even if the connection then breaks', async () => {
      const refusal = cutAfter('{"error":"invalid_client"}', 401)
      expect((await refreshOnce(() => refusal)).outcome).toMatchObject({ kind: 'unused', isTransient: false })
    })

    it.each([
      ['an HTML 503 without a body', '', 503, 'text/html'],
      ['a JSON 503 without a body', '', 503, 'application/json'],
      ['a 503 with half a JSON object', '{"message":"wa', 503, 'application/json'],
      ['a 429 with a complete JSON object', '{"message":"wait"}', 429, 'application/json'],
      ['a 503 with a complete JSON object', '{}', 503, 'application/json'],
    ])('a truncated refresh response gives the outcome `unknown`: %s', async (_what, text, status, type) => {
      const answer = cutAfter(text, status, { 'retry-after': '1', 'content-type': type })
      expect((await refreshOnce(() => answer)).outcome.kind).toBe('unknown')
    })
  })

  it('a refresh request has the timeout of --http-timeout, but at least 30 seconds', async () => {
    const context = createFakeContext({ respond: () => jsonResponse(200, WHOLE) })
    const beforeSend = () => {}
    for (const httpTimeout of ['1', '45']) {
      const settings = await fakeSettings(context, { httpTimeout })
      await sendRefreshToken(createIo(context, settings), { ...REQUEST, beforeSend })
    }
    expect(context.requests.map(({ timeoutMs }) => timeoutMs)).toEqual([30_000, 45_000])
    expect(context.requests[0]?.beforeSend).toBe(beforeSend)
  })

  it.each<[string, (token: string) => HttpResponse]>([
    ['unchanged', (token) => oauthError(400, 'invalid_grant', `token ${token} was reused`)],
    [
      'with escapes',
      (token) => textResponse(400, `{"error":"x","error_description":"token ${escaped(token)} was reused"}`),
    ],
    ['in JSON in JSON', (token) => oauthError(400, 'x', JSON.stringify({ token }).replaceAll('/', '\\/'))],
    [
      'in an address',
      (token) => textResponse(502, `<p>/token?refresh_token=${encodeURIComponent(token)}</p>`),
    ],
    ['in the name of the error', (token) => oauthError(400, token)],
    ['far into a long text', (token) => textResponse(500, `${'x'.repeat(150)}${token}`)],
    ['in a text with escapes', (token) => textResponse(500, `no: ${escaped(token)}`)],
    ['in the message of a success', (token) => jsonResponse(200, { message: `took ${token}` })],
  ])('a refresh token that the service quotes %s is in no message and no log', async (_how, answer) => {
    const token = 'old/refresh+"quoted"=\\token'
    for (const verbose of [false, true]) {
      const context = createFakeContext({ respond: () => answer(token) })
      const http = verbose ? createLoggingTransport(context) : context.http
      const outcome = await sendRefreshToken(createIo({ ...context, http }, await fakeSettings(context)), {
        ...REQUEST,
        refreshToken: token,
      })
      const output = `${JSON.stringify(outcome)} ${'error' in outcome ? outcome.error.message : ''} ${context.stderr.text}`
      const plain = output
        .replace(/\\+u(?<hex>[\da-f]{4})|%(?<byte>[\da-f]{2})/gi, (_match, hex?: string, byte?: string) =>
          String.fromCharCode(Number.parseInt(hex ?? byte ?? '', 16)),
        )
        .replaceAll('\\', '')
      expect(plain).not.toContain('old/refresh')
    }
  })

  it('a refresh at a service on another machine over http, not https, fails and sends nothing', async () => {
    const base = new URL('http://api.example.com')
    const { outcome, requests } = await refreshOnce(() => jsonResponse(200, WHOLE), { base })
    expect(outcome.kind).not.toBe('success')
    expect(requests).toEqual([])
  })

  it('each refresh request opens a new connection', async () => {
    const connections = new Set<unknown>()
    const server = createServer((request, response) => {
      connections.add(request.socket)
      response.setHeader('content-type', 'application/json').end(JSON.stringify(WHOLE))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const http = createTransport({})
    onTestFinished(async () => {
      await http.close()
      server.close()
    })
    const context = createFakeContext({ http })
    const base = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const io = createIo(context, await fakeSettings(context))
    for (let count = 0; count < 2; count++)
      expect((await sendRefreshToken(io, { ...REQUEST, base })).kind).toBe('success')
    expect(connections.size).toBe(2)
  })
})
