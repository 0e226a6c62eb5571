import { describe, expect, it } from 'vitest'
import { logExchanges, redactBody } from '../../src/service/exchange-log.ts'
import { createFakeContext, jsonResponse, textResponse } from '../fake-context.ts'

const REQUEST = {
  method: 'POST',
  url: new URL('http://127.0.0.1:1/oauth/token'),
  headers: {},
  timeoutMs: 1000,
} as const

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

  const ISSUED = 'rt7GhEiM29xQbZ41LmNw'

  it.each<[where: string, status: number, body: string, headers?: Record<string, string>]>([
    ['in a field of its own', 200, `{"refresh_token":"${ISSUED}"}`],
    ['behind a gateway that wraps', 200, JSON.stringify({ body: `{"refresh_token":"${ISSUED}"}` })],
    ['in camel case', 200, `{"refreshToken":"${ISSUED}"}`],
    ['under a name that nobody knows', 200, `{"rt":"${ISSUED}","x":{"${ISSUED}":1}}`],
    ['in a string that holds JSON', 200, JSON.stringify(`{"access_token":"${ISSUED}"}`)],
    ['in the message of an error', 502, `{"message":"upstream sent ${ISSUED} twice"}`],
    ['in XML', 200, `<answer><refreshToken>${ISSUED}</refreshToken></answer>`],
    ['in a list', 200, `{"tokens":["${ISSUED}"]}`],
    ['in JSON that breaks off', 200, `{"body":"{\\"refreshToken\\":\\"${ISSUED}`],
    ['in JSON that breaks off in a list', 200, `{"tokens":["${ISSUED}`],
    ['as a JSON Web Token', 200, `{"x":"${ISSUED}.eyJzdWIiOiIxMjM0In0.${ISSUED}"}`],
    ['as a short JSON Web Token', 200, '{"x":"eyJh.GhEi.LmNw12"}'],
    ['as a UUID', 200, '{"rt":"9a1b2c3d-0c5b-4d71-9c5e-7e7a3f1f0a01"}'],
    ['in a header', 200, '{}', { 'x-refresh-token': ISSUED, 'x-access-token': ISSUED }],
    ['in a header of any name', 200, '{}', { 'x-session': `id=${ISSUED}`, link: `<?${ISSUED}>` }],
  ])('the log never shows a token that was just issued: %s', async (_where, status, body, headers = {}) => {
    const context = createFakeContext({ respond: () => textResponse(status, body, headers) })
    const response = await logExchanges(context, { issuesTokens: true }).send(REQUEST)
    for await (const _piece of response.body);
    expect(context.stderr.text).not.toMatch(/GhEi|LmNw|eyJ|9a1b2c3d/)
    expect(context.stderr.text).toContain('[redacted]')
  })

  it('the log redacts fields and headers with a name for secrets, in any spelling, also in strings that hold JSON', async () => {
    const names = [
      'refreshToken',
      'Access-Token',
      'ID_TOKEN',
      'tokens',
      'apiKey',
      'clientSecret',
      'codeVerifier',
    ]
    for (const name of names) {
      const field = JSON.stringify({ [name]: 'geheim' })
      for (const body of [field, JSON.stringify({ body: field }), JSON.stringify(field), field.slice(0, -2)])
        expect(redactBody(body), body).not.toContain('geheim')
    }
    const context = createFakeContext({
      respond: () => textResponse(200, '', { 'x-refresh-token': 'geheim', 'X-Api-Key': 'geheim 1' }),
    })
    const response = await logExchanges(context).send(REQUEST)
    for await (const _piece of response.body);
    expect(context.stderr.text).not.toContain('geheim')
  })

  it('the log of the token endpoint keeps what explains a problem', async () => {
    const id = '2c0b1d34-0c5b-4d71-9c5e-7e7a3f1f0a01'
    const context = createFakeContext({
      respond: () =>
        textResponse(400, `{"error":"unsupported_grant_type","token_type":"Bearer","request_id":"${id}"}`, {
          'content-type': 'application/json; charset=utf-8',
          'x-request-id': id,
        }),
    })
    const response = await logExchanges(context, { issuesTokens: true }).send(REQUEST)
    for await (const _piece of response.body);
    const { text } = context.stderr
    expect(text).toContain(`{"error":"unsupported_grant_type","token_type":"Bearer","request_id":"${id}"}`)
    expect(text).toContain('content-type: application/json; charset=utf-8')
    expect(text).toContain(`x-request-id: ${id}`)
  })

  it('the log reads a body of any text in reasonable time', () => {
    for (const piece of ['a-', 'token', '\\', '"', 'token\\', '{"', '['])
      expect(redactBody(piece.repeat(70_000 / piece.length)).length).toBeLessThan(20_000)
  }, 3000)

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
