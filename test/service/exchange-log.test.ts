import { describe, expect, it } from 'vitest'
import { logExchanges, redactBody } from '../../src/service/exchange-log.ts'
import { createFakeContext, jsonResponse, textResponse } from '../fake-context.ts'

describe('the exchange log', () => {
  it('the log redacts the secrets of a token request and its response', async () => {
    const context = createFakeContext({
      respond: () =>
        jsonResponse(200, {
          access_token: 'geheim-a',
          token_type: 'Bearer',
          expires_in: 900,
          refresh_token: 'geheim-b',
          scope: 'emails:send',
        }),
    })
    const response = await logExchanges(context).send({
      method: 'POST',
      url: new URL('http://127.0.0.1:1/oauth/token?code=geheim-c&x=1'),
      headers: { 'content-type': 'application/x-www-form-urlencoded', Authorization: 'Basic geheim-d' },
      body: 'grant_type=authorization_code&client_id=client-1&code=geheim-e&code_verifier=geheim-f&refresh_token=geheim-g',
      timeoutMs: 1000,
    })
    for await (const _piece of response.body);
    const { text } = context.stderr
    expect(text).not.toContain('geheim')
    expect(text).toContain('client_id=client-1')
    expect(text).toContain('"scope":"emails:send"')
    expect(text).toContain('"expires_in":900')
  })

  it('secrets are redacted in text that is not JSON and in truncated JSON', () => {
    expect(redactBody('{"refresh_token": "geheim", "x": 1')).not.toContain('geheim')
    expect(redactBody('code=geheim&state=geheim')).not.toContain('geheim')
    expect(redactBody('<p>token: geheim</p>')).not.toContain('geheim')
  })

  it.each([
    ['in JSON that escapes', '{"message":"bad token rt\\/geheim\\u002b12345"}'],
    ['in an address', 'https://a.example/?x=rt%2Fgeheim%2b12345'],
    ['in markup', '<p>rt&#x2F;geheim&#43;12345</p>'],
    ['where the body is cut', `${' x'.repeat(2040)} rt/geheim+12345`],
    ['in a body of megabytes', `rt/geheim+12345 \x1b[2J${'x'.repeat(2 * 1024 * 1024)}`],
  ])(
    'the log redacts a sent secret that is quoted %s, and shows no control character',
    async (_where, body) => {
      const context = createFakeContext({
        respond: () => textResponse(400, body, { location: '/?t=rt%2Fgeheim%2B12345' }),
      })
      const response = await logExchanges(context).send({
        method: 'GET',
        url: new URL('http://127.0.0.1:1/'),
        headers: { authorization: 'Bearer rt/geheim+12345' },
        timeoutMs: 1000,
      })
      for await (const _piece of response.body);
      expect(context.stderr.text).not.toMatch(/rt\/|geh|\x1b/)
      expect(context.stderr.text.length).toBeLessThan(10_000)
    },
  )

  it('the log passes the body on unchanged', async () => {
    const context = createFakeContext({ respond: () => jsonResponse(200, { a: 'ä' }) })
    const response = await logExchanges(context).send({
      method: 'GET',
      url: new URL('http://127.0.0.1:1/'),
      headers: {},
      timeoutMs: 1000,
    })
    let text = ''
    for await (const piece of response.body) text += Buffer.from(piece).toString()
    expect(text).toBe('{"a":"ä"}')
  })
})
