import { describe, expect, it } from 'vitest'
import { logExchanges, redactBody } from '../../src/service/exchange-log.ts'
import { createFakeContext, jsonResponse } from '../fake-context.ts'

describe('the log of exchanges', () => {
  it('leaves out what a token request and its answer hold', async () => {
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

  it('leaves secrets out of what is no JSON, and of JSON that was cut', () => {
    expect(redactBody('{"refresh_token": "geheim", "x": 1')).not.toContain('geheim')
    expect(redactBody('code=geheim&state=geheim')).not.toContain('geheim')
    expect(redactBody('<p>token: geheim</p>')).not.toContain('geheim')
  })

  it('gives the body on unchanged', async () => {
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
