import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type HttpRequest, type HttpResponse, HttpTransportError } from '../../src/context.ts'
import { CliError } from '../../src/errors.ts'
import { createOrGetClaim, fetchLatestClaim, requestClaimVerification } from '../../src/service/claims.ts'
import { type CredentialProvider, createServiceClient } from '../../src/service/client.ts'
import { createContactImportFetcher, createGrantFetcher, getContactImport } from '../../src/service/lists.ts'
import { createLoggingTransport } from '../../src/service/log.ts'
import type { Credential } from '../../src/service/types.ts'
import { createIo } from '../../src/terminal/io.ts'
import {
  createFakeContext,
  type FakeContextOptions,
  fakeSettings,
  jsonResponse,
  textResponse,
} from '../fake-context.ts'

type Answer = HttpResponse | HttpTransportError | (() => HttpResponse)

/** Creates a client that gets these responses in turn, repeating the last. */
async function clientWith(
  answers: readonly Answer[],
  options: {
    authorizer?: CredentialProvider
    verbose?: true
    http?: FakeContextOptions['http']
    key?: string
  } = {},
) {
  const left = [...answers]
  const context = createFakeContext({
    ...(options.http === undefined ? {} : { http: options.http }),
    respond: () => {
      const next = left.length > 1 ? left.shift() : left[0]
      if (next instanceof HttpTransportError) throw next
      return typeof next === 'function' ? next() : (next as HttpResponse)
    },
  })
  const settings = await fakeSettings(context)
  const authorizer = options.authorizer ?? {
    credential: async () =>
      ({ kind: 'api_key', value: options.key ?? 'key-1', description: 'the API key' }) as const,
    replaceRefused: async () => undefined,
  }
  const http = options.verbose ? createLoggingTransport(context) : context.http
  return { context, client: createServiceClient({ ...createIo(context, settings), http }, authorizer) }
}

const failed = (work: Promise<unknown>): Promise<CliError> =>
  work.then(
    () => expect.fail('it should have failed'),
    (error: unknown) => {
      expect(error).toBeInstanceOf(CliError)
      return error as CliError
    },
  )
const good = { object: 'contact_import', id: 'i-1', status: 'queued' }
const ok = () => jsonResponse(200, good)

describe('a request', () => {
  it('a request for a contact import has the credential, a User-Agent, the percent-encoded import id in its path and a timeout of 30 seconds', async () => {
    const { context, client } = await clientWith([ok()])
    await getContactImport(client, 'a/b ?').catch(() => {})
    const [request] = context.requests as [HttpRequest]
    expect(request.url.href).toBe('http://127.0.0.1:1/contacts/imports/a%2Fb%20%3F')
    expect(request.headers['authorization']).toBe('Bearer key-1')
    expect(request.headers['user-agent']).toMatch(/^mailclaim\/0\.0\.0-test \(node .+; linux\)$/)
    expect(request.timeoutMs).toBe(30_000)
  })

  it('a list request has only the query parameters that are set', async () => {
    const { context, client } = await clientWith([() => jsonResponse(200, { has_more: false, data: [] })])
    await createContactImportFetcher(client, 'failed')({ limit: 7, after: 'x&y' })
    await createGrantFetcher(client)({ limit: 100 })
    expect(context.requests.map((request) => request.url.pathname + request.url.search)).toEqual([
      '/contacts/imports?limit=7&after=x%26y&status=failed',
      '/oauth/grants?limit=100',
    ])
  })

  it("a request is sent with the caller's abort signal or, without one, the interrupt signal", async () => {
    const { context, client } = await clientWith([() => jsonResponse(200, { has_more: false, data: [] })])
    const { signal } = new AbortController()
    await createGrantFetcher(client)({ limit: 100 }, signal)
    await createGrantFetcher(client)({ limit: 100 })
    expect(context.requests.map((request) => request.signal)).toEqual([signal, context.interrupts.signal])
    expect(context.requests[0]?.signal).toBe(signal)
  })

  it('a response of 4 MB that is not JSON causes an error that quotes the beginning of the response', async () => {
    const { client } = await clientWith([textResponse(200, '%2F\\'.repeat(1e6))])
    expect((await failed(getContactImport(client, 'i-1'))).message).toContain('not a JSON object: %2F')
  })

  it('a response with another contact import than the requested one fails with an error that names both ids', async () => {
    const { client } = await clientWith([ok])
    expect(await failed(getContactImport(client, 'i-2'))).toMatchObject({
      code: 'unexpected_answer',
      exit: 7,
      message: 'unexpected response: asked for import "i-2", got "i-1"',
    })
    expect(await getContactImport(client, ' I-1 ')).toEqual(good)
    const without = await clientWith([jsonResponse(200, { status: 'queued' })])
    expect(await getContactImport(without.client, 'i-2')).toEqual({ status: 'queued' })
  })

  it('the POST of requestClaimVerification has no body', async () => {
    const { context, client } = await clientWith([() => jsonResponse(200, { status: 'pending' })])
    await requestClaimVerification(client, 'd-1')
    expect(context.requests[0]).toMatchObject({ method: 'POST' })
    expect(context.requests[0]).not.toHaveProperty('body')
  })

  it.each(['', '  ', '.', '..'])(
    'the id %j, which would change the path of the URL, is a usage error, and nothing is sent',
    async (id) => {
      const { client, context } = await clientWith([ok()])
      expect((await failed(getContactImport(client, id))).exit).toBe(2)
      expect((await failed(fetchLatestClaim(client, id))).exit).toBe(2)
      expect(context.requests).toHaveLength(0)
    },
  )

  it('getContactImport keeps unknown fields, an unknown status, and the order of the fields in the response', async () => {
    const body = {
      zeta: 1,
      object: 'contact_import',
      id: 'i-1',
      new_field: { a: [null] },
      status: 'unheard_of',
    }
    const { client } = await clientWith([() => jsonResponse(200, body)])
    expect(JSON.stringify(await getContactImport(client, 'i-1'))).toBe(JSON.stringify(body))
  })

  it('createOrGetClaim reports status 201 as a new claim, and status 200 as an existing claim', async () => {
    const { client } = await clientWith([
      jsonResponse(201, { status: 'pending' }),
      jsonResponse(200, { status: 'pending' }),
    ])
    expect((await createOrGetClaim(client, { name: 'example.com' })).created).toBe(true)
    expect((await createOrGetClaim(client, { name: 'example.com' })).created).toBe(false)
  })
})

describe('retries', () => {
  const reset = new HttpTransportError('reset', 'maybe', 'reset')
  const refusedConnection = new HttpTransportError('connect', 'no', 'refused')
  const limited = jsonResponse(429, {}, { 'retry-after': '7' })
  const busy = (headers = {}) => jsonResponse(503, {}, headers)

  it.each<[string, Answer[]]>([
    ['a connection reset', [reset, ok()]],
    ['a refused connection', [refusedConnection, ok()]],
    ['a timeout', [new HttpTransportError('timeout', 'maybe', 'late'), ok()]],
    ['a 500', [jsonResponse(500, {}), ok()]],
    ['a 502 of a proxy', [textResponse(502, '<html>'), ok()]],
    ['three failures', [busy(), reset, busy(), ok()]],
  ])('a GET is retried and succeeds after %s', async (_what, answers) => {
    const { client, context } = await clientWith(answers)
    expect(await getContactImport(client, 'i-1')).toEqual(good)
    expect(context.requests).toHaveLength(answers.length)
  })

  it('a GET to a service that never responds fails after 45 seconds, retries included', async () => {
    const { client, context } = await clientWith([
      () => {
        const { timeoutMs } = context.requests.at(-1) as HttpRequest
        context.clock.advance(timeoutMs)
        throw new HttpTransportError('timeout', 'maybe', 'late')
      },
    ])
    const error = await failed(getContactImport(client, 'i-1'))
    expect(error.exit).toBe(7)
    expect(context.requests.map(({ timeoutMs }) => timeoutMs)).toEqual([30_000, 14_500])
    expect(context.clock.monotonic()).toBe(45_000)
  })

  it('the default time limit of a request does not count the delays that Retry-After asks for', async () => {
    const slow = jsonResponse(503, {}, { 'retry-after': '40' })
    const { client, context } = await clientWith([slow, slow, ok()])
    expect(await getContactImport(client, 'i-1')).toEqual(good)
    expect(context.clock.slept).toEqual([40_000, 40_000])
  })

  it('stderr names the host of a request that waits for its response, unless the request has `maxAttempts: 1`', async () => {
    const { client, context } = await clientWith([], {
      http: {
        send: async () => {
          await new Promise((resolve) => setImmediate(resolve))
          context.clock.ring()
          return ok()
        },
        close: async () => {},
      },
    })
    await getContactImport(client, 'i-1')
    expect(context.stderr.text).toBe('Waiting for 127.0.0.1:1 …\n')
    await fetchLatestClaim(client, 'd-1', { maxAttempts: 1 })
    expect(context.stderr.text).toBe('Waiting for 127.0.0.1:1 …\n')
  })

  it('a GET is sent at most four times, with delays that double from 500 ms', async () => {
    const { client, context } = await clientWith([busy()])
    expect((await failed(getContactImport(client, 'i-1'))).exit).toBe(7)
    expect(context.requests).toHaveLength(4)
    expect(context.clock.slept).toEqual([500, 1000, 2000])
  })

  it('the delay before a retry follows Retry-After, in seconds or as a date', async () => {
    const first = await clientWith([limited, ok()])
    await getContactImport(first.client, 'i-1')
    expect(first.context.clock.slept).toEqual([7000])

    const date = new Date(Date.parse('2026-11-20T12:00:30Z')).toUTCString()
    const second = await clientWith([busy({ 'retry-after': date }), ok()])
    await getContactImport(second.client, 'i-1')
    expect(second.context.clock.slept).toEqual([30_000])
  })

  it.each(['99999999', '9'.repeat(400), '1e400', 'Fri, 31 Dec 9999 23:59:59 GMT'])(
    'a request that gets a 429 with Retry-After: %s fails without a delay of more than 8 seconds',
    async (value) => {
      const { client, context } = await clientWith([jsonResponse(429, {}, { 'retry-after': value })])
      const failure = await failed(getContactImport(client, 'i-1'))
      expect(failure).toMatchObject({
        exit: 7,
        code: 'rate_limited',
        hint: expect.stringMatching(
          /^(try again in a while|the service asks to wait (\d+ years|more than a year); try again then)$/,
        ),
      })
      for (const pause of context.clock.slept) expect(pause).toBeLessThanOrEqual(8000)
    },
  )

  it('`timeoutMs` of a request limits all attempts and the delays between them', async () => {
    const late = new HttpTransportError('timeout', 'maybe', 'late')
    const { client, context } = await clientWith([late, late, ok()])
    expect((await failed(getContactImport(client, 'i-1', { timeoutMs: 1200 }))).code).toBe('timeout')
    expect(context.requests.map(({ timeoutMs }) => timeoutMs)).toEqual([1200, 700])
    const asked = await clientWith([jsonResponse(429, {}, { 'retry-after': '20' }), ok()])
    const failure = await failed(getContactImport(asked.client, 'i-1', { timeoutMs: 10_000 }))
    expect(failure.hint).toBe('the service asks to wait 20 seconds; try again then')
    expect(asked.context.clock.slept).toEqual([])
  })

  it.each<[string, Answer]>([
    ['a 500', jsonResponse(500, {})],
    ['a 503', busy()],
    ['a connection reset', reset],
  ])(
    'the error of createOrGetClaim after %s says that the service may have acted on the request',
    async (_what, answer) => {
      const { client } = await clientWith([answer])
      expect(await failed(createOrGetClaim(client, { name: 'example.com' }))).toMatchObject({
        exit: 7,
        hint: expect.stringContaining('the service may have acted on the request'),
      })
    },
  )

  it.each(['soon', '-5', '', '0x10'])('an invalid Retry-After header %j is ignored', async (value) => {
    const { client, context } = await clientWith([jsonResponse(429, {}, { 'retry-after': value }), ok()])
    await getContactImport(client, 'i-1')
    expect(context.clock.slept).toEqual([500])
  })

  it.each<[string, number, Answer]>([
    ['a refused connection', 2, refusedConnection],
    ['a 429 with Retry-After', 2, limited],
    ['a 503 with Retry-After', 2, busy({ 'retry-after': '1' })],
    ['a 429 without Retry-After', 1, jsonResponse(429, {})],
    ['a 500 with Retry-After', 1, jsonResponse(500, {}, { 'retry-after': '1' })],
    ['a connection reset', 1, reset],
    ['a timeout', 1, new HttpTransportError('timeout', 'maybe', 'late')],
    ['a cancellation', 1, new HttpTransportError('aborted', 'no', 'abandoned')],
  ])('a POST whose first attempt ends with %s is sent %i time(s)', async (_what, requests, first) => {
    const { client, context } = await clientWith([first, jsonResponse(201, { status: 'pending' })])
    await createOrGetClaim(client, { name: 'example.com' }).catch(() => {})
    expect(context.requests).toHaveLength(requests)
  })

  it('an interrupt during the delay before a retry of a GET ends the request with exit 130', async () => {
    const { client, context } = await clientWith([busy()])
    context.clock.sleep = async (_ms, signal) => {
      context.interrupt()
      signal?.throwIfAborted()
    }
    expect((await failed(getContactImport(client, 'i-1'))).exit).toBe(130)
    expect(context.requests).toHaveLength(1)
  })
})

describe('a refused credential', () => {
  const token = (value: string) =>
    ({ kind: 'access_token', value, description: 'the access token of profile work' }) as const
  const refusal = () => jsonResponse(401, { name: 'invalid_access', message: 'token expired' })
  const authorizerWith = (next: Credential | undefined) => {
    const refused: Credential[] = []
    return {
      refused_: refused,
      credential: async () => token('old'),
      replaceRefused: async (credential: Credential) => {
        refused.push(credential)
        return next
      },
    }
  }

  it('a credential that is refused with 401 is renewed once, and the request is sent again', async () => {
    const authorizer = authorizerWith(token('new'))
    const { client, context } = await clientWith([refusal, ok()], { authorizer })
    await getContactImport(client, 'i-1')
    expect(context.requests.map((request) => request.headers['authorization'])).toEqual([
      'Bearer old',
      'Bearer new',
    ])
    expect(authorizer.refused_).toHaveLength(1)
  })

  it('a request fails with exit 4 if the renewed credential is refused too', async () => {
    const authorizer = authorizerWith(token('new'))
    const { client, context } = await clientWith([refusal], { authorizer })
    const failure = await failed(getContactImport(client, 'i-1'))
    expect(failure).toMatchObject({ exit: 4, status: 401 })
    expect(context.requests).toHaveLength(2)
    expect(authorizer.refused_).toHaveLength(1)
  })

  it.each([
    ['an expired JWT', -300, ', an access token that expired 5 min ago: '],
    ['a valid JWT', 300, ', an access token that expires in 5 min: '],
    ['a JWT without exp', undefined, ': '],
    ['not a JWT', 300, ': '],
  ])('the error for a refused API key tells the expiry of a JWT only: %s', async (what, seconds, told) => {
    const claims = JSON.stringify({
      exp: Date.parse('2026-11-20T12:00:00Z') / 1000 + (seconds ?? Number.NaN),
    })
    const encoded = Buffer.from(claims).toString('base64url')
    const key = what === 'not a JWT' ? `e30.${encoded}` : `e30.${encoded}.c2ln`
    const { client } = await clientWith([refusal], { key })
    const hint = told === ': ' ? 'check the API key' : expect.stringContaining('mailclaim auth token')
    expect(await failed(getContactImport(client, 'i-1'))).toMatchObject({
      message: `the service refused the API key (401)${told}token expired (invalid_access)`,
      hint,
    })
  })

  it.each(['before the request', 'after a 401'] as const)(
    'a slow renewal of the credential (%s) does not shorten the timeout of the request',
    async (when) => {
      const answers = when === 'before the request' ? [ok()] : [refusal(), ok()]
      const renewed = async (value: string, isSlow: boolean) => {
        if (isSlow) context.clock.advance(60_000)
        return token(value)
      }
      const { client, context } = await clientWith(answers, {
        authorizer: {
          credential: () => renewed('old', when === 'before the request'),
          replaceRefused: () => renewed('new', true),
        },
      })
      await getContactImport(client, 'i-1', { timeoutMs: 10_000 })
      expect(context.requests.at(-1)).toMatchObject({ timeoutMs: 10_000 })
    },
  )

  it("the error for a refused credential that cannot be renewed names the credential and quotes the service's reason, but not the credential's value", async () => {
    const { client } = await clientWith([refusal], { authorizer: authorizerWith(undefined) })
    const failure = await failed(getContactImport(client, 'i-1'))
    expect(failure.message).toContain('the access token of profile work')
    expect(failure.message).toContain('token expired')
    expect(failure.message).not.toContain('old')
  })
})

describe('the hint after a refusal', () => {
  it.each<[string, string | undefined, unknown]>([
    ['no reason', 'the API key may lack a scope or belong to another team', {}],
    ['a reason', undefined, { name: 'claim_not_allowed', message: 'The domain is yours.' }],
  ])('the error for a 403 response with %s has the hint %j', async (_what, hint, body) => {
    const { client } = await clientWith([jsonResponse(403, body)])
    expect((await failed(createOrGetClaim(client, { name: 'example.com' }))).hint).toBe(hint)
  })

  it('the hint after a 404 is to check the base URL, and the id if the path has one, unless the service explains the 404 of a POST', async () => {
    const answered = async (response: HttpResponse) => (await clientWith([response])).client
    const hint = 'check the id and its team, and that http://127.0.0.1:1 is the base URL of the service'
    const ofNoId = 'check that http://127.0.0.1:1 is the base URL of the service'
    const page = await answered(textResponse(404, '<h1>404 Not Found</h1>nginx'))
    expect(await failed(createOrGetClaim(page, { name: 'a.test' }))).toMatchObject({ hint: ofNoId, exit: 5 })
    expect((await failed(getContactImport(page, 'i-1'))).hint).toBe(hint)
    const explained = () => answered(jsonResponse(404, { message: 'Not here' }))
    expect((await failed(getContactImport(await explained(), 'i-1'))).hint).toBe(hint)
    expect((await failed(createOrGetClaim(await explained(), { name: 'example.com' }))).hint).toBeUndefined()
  })

  it.each([408, 425])(
    'a request that always gets the status %i fails with exit 7, after 4 attempts as a GET or 1 as a POST',
    async (status) => {
      const { client, context } = await clientWith([jsonResponse(status, {})])
      expect(await failed(getContactImport(client, 'i-1'))).toMatchObject({
        exit: 7,
        hint: 'try again in a while',
      })
      expect(context.requests).toHaveLength(4)
      const once = await clientWith([jsonResponse(status, {})])
      expect((await failed(createOrGetClaim(once.client, { name: 'example.com' }))).exit).toBe(7)
      expect(once.context.requests).toHaveLength(1)
    },
  )
})

describe('a response', () => {
  it.each<[string, number, HttpResponse, RegExp]>([
    ['a 403', 6, jsonResponse(403, { message: 'scope missing' }), /does not allow.*scope missing/],
    [
      'a 404',
      5,
      jsonResponse(404, { statusCode: 404, name: 'not_found', message: 'No such import' }),
      /not found.*No such import/,
    ],
    ['a 400', 6, jsonResponse(400, { name: 'validation_error', message: 'bad limit' }), /bad limit/],
    [
      'a 422 with a nested error',
      6,
      jsonResponse(422, { error: { code: 'x', message: 'nested' } }),
      /nested/,
    ],
    ['a 409 without a body', 6, textResponse(409, ''), /409\)$/],
    ['a 400 with a list of texts', 6, jsonResponse(400, { errors: ['a\x1b[31m', 'b'] }), /: a.*; b$/],
    [
      'a 400 with a name and a list of errors',
      6,
      jsonResponse(400, { name: 'invalid', errors: [{}] }),
      /: invalid$/,
    ],
    ['a 200 that is an error', 7, jsonResponse(200, { error: { message: 'no' } }), /none of the fields id/],
    ['a redirect', 7, textResponse(302, '', { location: 'http://evil.example/\x1b[31m' }), /redirect/],
    [
      'a redirect with a secret in its query',
      7,
      textResponse(302, '', { location: 'https://a:b@x.example/?session=s3cr3t' }),
      /to https:..…@x\.example\/\?…,/,
    ],
    ['an empty 200', 7, textResponse(200, ''), /empty/],
    [
      'a 200 that is a page',
      7,
      textResponse(200, '<h1>Welcome to the \x1b[31mWiFi</h1>'),
      /not a JSON object: Welcome to the/,
    ],
    ['a 200 that is a list', 7, jsonResponse(200, []), /not a JSON object: \[\]/],
    ['a 200 that is compressed', 7, textResponse(200, '\u001f\ufffd\b\0\0'), /compressed with gzip$/],
    ['a 200 in another encoding', 7, textResponse(200, '\ufffd', { 'content-encoding': 'br' }), /with br$/],
    ['a 200 that is an image', 7, textResponse(200, 'GIF89a\u0001\0'), /: it is binary data$/],
    [
      'a count of the wrong type',
      7,
      jsonResponse(200, { id: 'i-1', counts: { total: '5' } }),
      /"total" of the counts of the import should be a number, but is a string/,
    ],
  ])(
    'a GET that gets %s fails with exit %i and a message without control characters',
    async (_what, exit, response, message) => {
      const { client } = await clientWith([response])
      const failure = await failed(getContactImport(client, 'i-1'))
      expect(failure.exit).toBe(exit)
      expect(failure.message).toMatch(message)
      expect(failure.message + failure.hint).not.toMatch(/[\x00-\x1f\x7f-\x9f]/)
    },
  )

  it('a response with null, missing or unknown fields, or with a number as `record.ttl`, is accepted', async () => {
    const bodies = [
      { id: 'i-1', counts: { total: null, added: '5' } },
      { id: 'c-1', record: { ttl: 300 } },
    ]
    const { client } = await clientWith(bodies.map((body) => jsonResponse(200, body)))
    expect([await getContactImport(client, 'i-1'), await fetchLatestClaim(client, 'd-1')]).toEqual(bodies)
  })

  describe('with the credential', () => {
    const key = 're_Ab+Cd/12345678'
    const written: readonly (readonly [string, string])[] = [
      ['unchanged', key],
      ['with JSON escapes', 're_Ab\\u002bCd\\/1234\\u0035678'],
      ['percent-encoded', encodeURIComponent(key)],
      ['with HTML entities', 're_Ab&#43;Cd&#x2F;12345678'],
    ]
    const answers: readonly (readonly [string, (quoted: string) => HttpResponse])[] = [
      ['a refusal', (quoted) => textResponse(422, `{"name":"bad","message":"bad key ${quoted} sent"}`)],
      ['a refusal with a list of errors', (quoted) => textResponse(422, `{"errors":[{"key":"${quoted}"}]}`)],
      ['a refusal with a name alone', (quoted) => textResponse(422, `{"name":"${quoted}"}`)],
      ['a page', (quoted) => textResponse(502, `<h1>Bad gateway</h1> Authorization: ${quoted}`)],
      ['a long message', (quoted) => textResponse(422, `{"message":"${'x'.repeat(290)}${quoted}"}`)],
      ['a 200 that is not JSON', (quoted) => textResponse(200, `you sent ${quoted}`)],
      ['a redirect', (quoted) => textResponse(302, '', { location: `https://x.example/?t=${quoted}` })],
      [
        'a long redirect',
        (quoted) => textResponse(302, '', { location: `https://x.example/?${'x'.repeat(275)}${quoted}` }),
      ],
    ]
    const cases = answers.flatMap(([what, answer]) =>
      written.map(([how, quoted]) => [what, how, () => answer(quoted)] as const),
    )

    it.each(cases)(
      'the error for %s hides the credential that the response quotes (%s)',
      async (_what, _how, answer) => {
        const { client } = await clientWith([answer], { key })
        const failure = await failed(getContactImport(client, 'i-1'))
        expect(JSON.stringify(failure)).not.toMatch(/re_Ab|1234/)
      },
    )
  })

  it.each<[string, object]>([
    ['an error', { error: { code: 'nope', message: 'not eligible' } }],
    ['a claim inside another object', { data: { name: 'example.com', status: 'pending' } }],
    ['an empty object', {}],
    ['nulls', { name: null, domain_id: null, status: null, record: null }],
  ])('a 200 response with %s instead of a claim fails with `unexpected_answer`', async (_what, body) => {
    const { client } = await clientWith([() => jsonResponse(200, body)])
    for (const ask of [
      () => createOrGetClaim(client, { name: 'example.com' }),
      () => fetchLatestClaim(client, 'd-1'),
      () => requestClaimVerification(client, 'd-1'),
    ])
      expect(await failed(ask())).toMatchObject({
        code: 'unexpected_answer',
        exit: 7,
        message: 'unexpected response: the claim has none of the fields name, domain_id, status, record',
      })
  })

  it('a request that gets JSON of any shape resolves, or rejects with a CliError', async () => {
    const shape = fc.oneof(
      fc.jsonValue(),
      fc.record(
        {
          object: fc.jsonValue(),
          has_more: fc.jsonValue(),
          data: fc.oneof(fc.jsonValue(), fc.array(fc.jsonValue())),
        },
        { requiredKeys: [] },
      ),
      fc.record(
        {
          id: fc.jsonValue(),
          status: fc.jsonValue(),
          record: fc.jsonValue(),
          name: fc.jsonValue(),
          message: fc.jsonValue(),
        },
        { requiredKeys: [] },
      ),
    )
    await fc.assert(
      fc.asyncProperty(shape, fc.constantFrom(200, 201, 400, 403, 404, 422), async (body, status) => {
        const { client } = await answering(() => jsonResponse(status, body))
        for (const ask of [
          () => getContactImport(client, 'i-1'),
          () => fetchLatestClaim(client, 'd-1'),
          () => createOrGetClaim(client, { name: 'example.com' }),
          () => createContactImportFetcher(client)({ limit: 10 }),
        ]) {
          const failure = await ask().then(
            () => undefined,
            (error: unknown) => error,
          )
          if (failure !== undefined) expect(failure).toBeInstanceOf(CliError)
        }
      }),
      { numRuns: 1000 },
    )
  })
})

/** Client and context that all calls of `answering` share, so that many runs are fast. */
let shared: Awaited<ReturnType<typeof clientWith>> | undefined
let respond: () => HttpResponse = ok
async function answering(next: () => HttpResponse) {
  respond = next
  shared ??= await clientWith([], {
    http: { send: async () => respond(), close: async () => {} },
  })
  return shared
}

it('--verbose logs method, URL, status, time and harmless headers, but no body and no secret', async () => {
  const body = { id: 'i-1', access_token: 'geheim-1', note: '\x1b[31m' }
  const headers = {
    'set-cookie': 'geheim-2',
    'x-session': 'geheim-3',
    location: 'https://user:geheim-5@x.example/a?code=geheim-4',
    server: 'x\x1b[2J',
    'content-type': 'application/json; for=Bearer+key-1',
  }
  const { client, context } = await clientWith([jsonResponse(200, body, headers)], { verbose: true })
  context.clock.advance(70_000)
  expect(await getContactImport(client, 'i-1')).toEqual(body)
  const { text } = context.stderr
  expect(text).toMatch(
    /^> GET http:\/\/127\.0\.0\.1:1\/contacts\/imports\/i-1\n> accept: application\/json\n/,
  )
  expect(text).toMatch(/^< 200 \(0 ms\)$/m)
  expect(text).toMatch(/^< location: https:\/\/…@x\.example\/a\?…$/m)
  expect(text).not.toMatch(/geheim|key-1|authorization|\x1b/)
})
