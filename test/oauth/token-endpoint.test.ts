import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as oauth from 'oauth4webapi'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { HttpResponse } from '../../src/context.ts'
import { TransportError } from '../../src/context.ts'
import type { CliError } from '../../src/errors.ts'
import { exchangeCode, refresh } from '../../src/oauth/token-endpoint.ts'
import { createTransport } from '../../src/service/transport.ts'
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

/** What the redirect brought, as oauth4webapi wants it back. */
const callback = () =>
  oauth.validateAuthResponse(
    { issuer: 'https://api.example.com/v1' },
    { client_id: 'client-1' },
    new URLSearchParams({ code: 'the-code', state: 's' }),
    's',
  )

async function exchange(answer: () => HttpResponse | Promise<HttpResponse>, requestedScope?: string) {
  const context = createFakeContext({ respond: answer })
  const settings = await fakeSettings(context)
  const tokens = await exchangeCode(context, {
    base: BASE,
    clientId: 'client-1',
    settings,
    callback: callback(),
    redirectUri: 'http://127.0.0.1:4711/callback',
    codeVerifier: 'v'.repeat(43),
    requestedScope,
  })
  return { tokens, request: context.requests[0] }
}

async function refreshOnce(answer: () => HttpResponse | Promise<HttpResponse>, scope?: string) {
  const context = createFakeContext({ respond: answer })
  const outcome = await refresh(context, {
    base: BASE,
    clientId: 'client-1',
    settings: await fakeSettings(context),
    refreshToken: 'old-refresh',
    scope,
    grantedScope: 'emails:send domains:read',
  })
  return { outcome, requests: context.requests }
}

describe('the exchange of a code', () => {
  it('sends what the interface asks for, form-encoded, without an Authorization header', async () => {
    const { request, tokens } = await exchange(() => jsonResponse(200, WHOLE))
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
      accessToken: 'new-access',
      refreshToken: 'new-refresh',
      expiresInSeconds: 900,
      scope: 'emails:send',
    })
  })

  it.each([
    [oauthError(400, 'invalid_request'), 'invalid_request', 6, 'missing or malformed'],
    [oauthError(400, 'invalid_scope'), 'invalid_scope', 6, 'does not grant the scope'],
    [oauthError(400, 'invalid_grant'), 'invalid_grant', 4, 'used already, is older than 10 minutes'],
    [oauthError(401, 'invalid_client'), 'invalid_client', 3, 'does not know the client id'],
    [
      oauthError(400, 'unauthorized_client'),
      'unauthorized_client',
      3,
      'not registered for the authorization code grant',
    ],
    [oauthError(400, 'some_new_code'), 'some_new_code', 6, 'some_new_code'],
    [textResponse(502, '<html>'), 'service_unavailable', 7, 'HTTP 502'],
    [textResponse(200, '<html>'), 'answer_unusable', 7, 'without a JSON object'],
    [jsonResponse(200, { ...WHOLE, refresh_token: undefined }), 'answer_unusable', 7, 'no refresh_token'],
    [jsonResponse(302, WHOLE), 'answer_unusable', 7, 'HTTP 302'],
  ])('that is answered with %o ends in %s', async (answer, code, exit, words) => {
    await expect(exchange(() => answer)).rejects.toMatchObject({
      code,
      exit,
      message: expect.stringContaining(words),
    })
  })

  it('that brings no answer says that a new login is needed', async () => {
    const failing = exchange(() =>
      Promise.reject(new TransportError('reset', 'maybe', 'the connection was closed')),
    )
    await expect(failing).rejects.toMatchObject({
      code: 'token_endpoint_unreachable',
      exit: 7,
      hint: expect.stringContaining('mailclaim login'),
    })
  })

  it('keeps the words of the service, but not a secret that they quote', async () => {
    const answer = oauthError(400, 'invalid_grant', `code the-code with ${'v'.repeat(43)} is not known`)
    const error = await exchange(() => answer).catch((thrown: unknown) => thrown)
    expect((error as CliError).message).toContain('it says: code [left out] with [left out] is not known')
  })
})

describe('a token response', () => {
  it.each([
    [
      'without a scope, which then is the one that was asked for',
      { scope: undefined },
      { scope: 'asked:for' },
    ],
    ['with an empty scope', { scope: '' }, { scope: 'asked:for' }],
    ['with a scope that is null', { scope: null }, { scope: 'asked:for' }],
    [
      'without a lifetime, which then is taken to be short',
      { expires_in: undefined },
      { expiresInSeconds: 300 },
    ],
    ['with a lifetime as text', { expires_in: '600' }, { expiresInSeconds: 600 }],
    ['with a lifetime that is none', { expires_in: 'soon' }, { expiresInSeconds: 300 }],
    ['with a lifetime below zero', { expires_in: -1 }, { expiresInSeconds: 300 }],
    ['with a lifetime of a million years', { expires_in: 3e13 }, { expiresInSeconds: 366 * 24 * 3600 }],
    ['with another spelling of Bearer', { token_type: 'bEARER' }, { accessToken: 'new-access' }],
    ['without a token type', { token_type: null }, { accessToken: 'new-access' }],
    ['with fields that nobody knows', { id_token: 'x', more: {} }, { refreshToken: 'new-refresh' }],
  ])('%s is understood', async (_name, fields, expected) => {
    const { tokens } = await exchange(() => jsonResponse(200, { ...WHOLE, ...fields }), 'asked:for')
    expect(tokens).toMatchObject(expected)
  })

  it.each([201, 203])('with status %i is a success as well', async (status) => {
    const { outcome } = await refreshOnce(() => jsonResponse(status, WHOLE))
    expect(outcome.kind).toBe('success')
  })
})

describe('a refresh', () => {
  it('sends the token once, and the scope only where it is to be narrowed', async () => {
    const { requests } = await refreshOnce(() => jsonResponse(200, WHOLE))
    expect(requests).toHaveLength(1)
    expect(Object.fromEntries(new URLSearchParams(requests[0]?.body))).toEqual({
      grant_type: 'refresh_token',
      client_id: 'client-1',
      refresh_token: 'old-refresh',
    })
    const narrowed = await refreshOnce(() => jsonResponse(200, WHOLE), 'emails:send')
    expect(new URLSearchParams(narrowed.requests[0]?.body).get('scope')).toBe('emails:send')
  })

  it.each<[string, () => HttpResponse | Promise<HttpResponse>, Record<string, unknown>]>([
    [
      'invalid_grant',
      () => oauthError(400, 'invalid_grant', 'reused'),
      { kind: 'over', description: 'reused' },
    ],
    ['invalid_grant behind a 500', () => oauthError(500, 'invalid_grant'), { kind: 'unknown' }],
    ['invalid_request', () => oauthError(400, 'invalid_request'), { kind: 'not_consumed' }],
    ['invalid_scope', () => oauthError(400, 'invalid_scope'), { kind: 'not_consumed' }],
    ['invalid_client', () => oauthError(401, 'invalid_client'), { kind: 'not_consumed' }],
    ['unauthorized_client', () => oauthError(400, 'unauthorized_client'), { kind: 'not_consumed' }],
    ['an unheard-of error', () => oauthError(400, 'server_error'), { kind: 'unknown' }],
    [
      '429 with seconds',
      () => textResponse(429, '', { 'retry-after': '3' }),
      { kind: 'retry_after', afterMs: 3000 },
    ],
    [
      '503 with a date',
      () => textResponse(503, '', { 'retry-after': 'Fri, 20 Nov 2026 12:00:05 GMT' }),
      { kind: 'retry_after', afterMs: 5000 },
    ],
    ['503 with nothing', () => textResponse(503, '<h1>'), { kind: 'retry_after', afterMs: undefined }],
    [
      'a failed look-up',
      () => Promise.reject(new TransportError('lookup', 'no', 'no such host')),
      { kind: 'retry_after' },
    ],
    [
      'a wrong certificate',
      () => Promise.reject(new TransportError('tls', 'no', 'for another host')),
      { kind: 'not_consumed' },
    ],
    [
      'a time-out',
      () => Promise.reject(new TransportError('timeout', 'maybe', 'no answer')),
      { kind: 'unknown', why: 'no answer' },
    ],
    ['a bug in the transport', () => Promise.reject(new TypeError('oops')), { kind: 'unknown', why: 'oops' }],
  ])('that meets %s', async (_name, answer, expected) => {
    expect((await refreshOnce(answer)).outcome).toMatchObject(expected)
  })

  it('says nothing that the token is in', async () => {
    const { outcome } = await refreshOnce(() =>
      oauthError(400, 'invalid_grant', 'token old-refresh was reused'),
    )
    expect(JSON.stringify(outcome)).not.toContain('old-refresh')
  })

  it('is never sent in clear over a network', async () => {
    const context = createFakeContext({ respond: () => jsonResponse(200, WHOLE) })
    const outcome = await refresh(context, {
      base: new URL('http://api.example.com'),
      clientId: 'client-1',
      settings: await fakeSettings(context),
      refreshToken: 'old-refresh',
      scope: undefined,
      grantedScope: undefined,
    })
    expect(outcome.kind).not.toBe('success')
    expect(context.requests).toEqual([])
  })

  it('never goes over a connection that was used before, which may just be closing', async () => {
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
    for (let count = 0; count < 3; count++) {
      const outcome = await refresh(context, {
        base: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
        clientId: 'client-1',
        settings: await fakeSettings(context),
        refreshToken: `refresh-${count}`,
        scope: undefined,
        grantedScope: undefined,
      })
      expect(outcome.kind).toBe('success')
    }
    expect(connections.size).toBe(3)
  })
})
