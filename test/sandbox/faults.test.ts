import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { sandboxForTest } from './start-sandbox.ts'
import { api, codeFields, codeFor, control, refreshFields, token } from './talk.ts'

const PATH = '/contacts/imports?limit=2'
const fault = (sandbox: Sandbox, body: object) => control(sandbox, 'POST', '/faults', body)

/** The bytes that a raw HTTP exchange gives, and how the connection ended. */
function raw(sandbox: Sandbox, path = PATH): Promise<{ bytes: Buffer; end: 'closed' | 'reset' }> {
  const { hostname, port, host } = new URL(sandbox.baseUrl)
  return new Promise((done) => {
    const pieces: Buffer[] = []
    const socket = connect(Number(port), hostname)
    let end: 'closed' | 'reset' = 'closed'
    socket.on('data', (piece) => pieces.push(piece))
    socket.on('error', () => {
      end = 'reset'
    })
    socket.on('close', () => done({ bytes: Buffer.concat(pieces), end }))
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${sandbox.apiKey}\r\nConnection: close\r\n\r\n`,
    )
  })
}

const get = (sandbox: Sandbox, init: RequestInit = {}) =>
  fetch(`${sandbox.baseUrl}${PATH}`, { headers: { authorization: `Bearer ${sandbox.apiKey}` }, ...init })

async function refreshesOf(sandbox: Sandbox) {
  return (await control(sandbox, 'GET', '/state')).body['refreshes']
}

describe('kinds of faults', () => {
  test('the fault status answers with any status, headers and body', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, {
      kind: 'status',
      status: 429,
      headers: { 'Retry-After': '7' },
      body: { message: 'slow' },
    })
    const response = await get(sandbox)
    expect([response.status, response.headers.get('retry-after'), await response.json()]).toEqual([
      429,
      '7',
      { message: 'slow' },
    ])
  })

  test('the fault delay sends the right answer later', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'delay', before_ms: 40, after_ms: 40 })
    const started = performance.now()
    expect((await get(sandbox)).status).toBe(200)
    expect(performance.now() - started).toBeGreaterThan(75)
  })

  test('the fault hang sends no answer', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'hang' })
    await expect(get(sandbox, { signal: AbortSignal.timeout(100) })).rejects.toThrow()
  })

  test('the fault reset sends not one byte of an answer', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'reset' })
    expect(await raw(sandbox)).toEqual({ bytes: Buffer.alloc(0), end: 'reset' })
  })

  test('the fault truncate sends all headers and half a body', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'truncate' })
    const text = (await raw(sandbox)).bytes.toString('utf8')
    const [head = '', body = ''] = text.split('\r\n\r\n')
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
    expect(body.length).toBe(Math.floor(length / 2))
    await expect(get(sandbox).then((response) => response.text())).rejects.toThrow()
  })

  test('the faults garbage, not_json and empty are 200 with the content type of JSON, but not JSON', async () => {
    for (const kind of ['garbage', 'not_json', 'empty']) {
      const sandbox = await sandboxForTest()
      await fault(sandbox, { kind })
      const response = await get(sandbox)
      expect([response.status, response.headers.get('content-type')]).toEqual([
        200,
        'application/json; charset=utf-8',
      ])
      await expect(response.json()).rejects.toThrow()
    }
  })

  test('the fault not_http sends bytes that are not HTTP', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'not_http' })
    const { bytes } = await raw(sandbox)
    expect(bytes.length).toBeGreaterThan(0)
    expect(bytes.toString('latin1')).not.toContain('HTTP/')
  })

  test('the fault content_type sends the right answer with another content type', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'content_type', content_type: 'text/html' })
    const response = await get(sandbox)
    expect(response.headers.get('content-type')).toBe('text/html')
    expect(await response.json()).toMatchObject({ object: 'list' })
  })

  test('the fault drip sends the right answer byte by byte', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'drip', interval_ms: 1 })
    const pieces: number[] = []
    const response = await get(sandbox)
    for await (const piece of response.body ?? []) pieces.push((piece as Uint8Array).length)
    expect(pieces.length).toBeGreaterThan(20)
    expect(pieces.reduce((sum, size) => sum + size, 0)).toBe(Number(response.headers.get('content-length')))
  })

  test('the fault flood sends the given number of bytes, and stops when the reader is gone', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'flood', bytes: 3_000_000, count: 1 })
    expect((await (await get(sandbox)).arrayBuffer()).byteLength).toBeGreaterThanOrEqual(3_000_000)
    await fault(sandbox, { kind: 'flood', bytes: 1e12 })
    const cut = new AbortController()
    const response = await get(sandbox, { signal: cut.signal })
    await response.body?.getReader().read()
    cut.abort()
  })

  test('the fault redirect redirects to any address, with the given status', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'redirect', url: 'http://127.0.0.1:9/steal', status: 302 })
    const response = await get(sandbox, { redirect: 'manual' })
    expect([response.status, response.headers.get('location')]).toEqual([302, 'http://127.0.0.1:9/steal'])
  })

  test('the fault gzip_bomb sends little that unpacks to much', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'gzip_bomb', bytes: 50_000_000 })
    expect((await raw(sandbox)).bytes.length).toBeLessThan(100_000)
    expect((await (await get(sandbox)).arrayBuffer()).byteLength).toBeGreaterThanOrEqual(50_000_000)
  })

  test('the fault merge changes fields of the answer and of the items of a list', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, {
      kind: 'merge',
      fields: { has_more: 'maybe', extra: 1 },
      item_fields: { status: null },
    })
    const { body } = await api(sandbox, 'GET', PATH)
    expect(body).toMatchObject({ object: 'list', has_more: 'maybe', extra: 1 })
    expect((body['data'] as { status: unknown }[]).map(({ status }) => status)).toEqual([null, null])
  })
})

describe('whether a request is processed before its fault', () => {
  test.each([
    { what: 'drop', body: { kind: 'drop' }, refreshes: 1 },
    { what: 'truncate', body: { kind: 'truncate' }, refreshes: 1 },
    { what: 'reset', body: { kind: 'reset' }, refreshes: 0 },
    { what: 'reset after processing', body: { kind: 'reset', after: true }, refreshes: 1 },
    { what: 'status', body: { kind: 'status', status: 502 }, refreshes: 0 },
    { what: 'status after processing', body: { kind: 'status', status: 502, after: true }, refreshes: 1 },
    { what: 'garbage after processing', body: { kind: 'garbage', after: true }, refreshes: 1 },
  ])('a refresh that meets $what counts as $refreshes', async ({ body, refreshes }) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const session = await token(sandbox, 'form', codeFields(sandbox, await codeFor(sandbox)))
    await fault(sandbox, { ...body, path: '/oauth/token', count: 1 })
    const again = refreshFields(sandbox, session.body['refresh_token'])
    await token(sandbox, 'form', again).catch(() => {})
    expect(await refreshesOf(sandbox)).toBe(refreshes)
    expect((await token(sandbox, 'form', again)).status).toBe(refreshes === 0 ? 200 : 400)
  })
})

describe('when a fault applies', () => {
  const statuses = async (sandbox: Sandbox, count: number) => {
    const found: number[] = []
    for (let n = 0; n < count; n += 1) found.push((await api(sandbox, 'GET', PATH)).status)
    return found
  }
  const UNAVAILABLE = { kind: 'status', status: 503, body: {} }

  test('a fault applies `count` times after `skip` requests', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { ...UNAVAILABLE, skip: 1, count: 2 })
    expect(await statuses(sandbox, 5)).toEqual([200, 503, 503, 200, 200])
    expect((await control(sandbox, 'GET', '/state')).body['faults']).toEqual({ active: 0, struck: 2 })
  })

  test('a fault applies only if method and path match; * matches any text', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { ...UNAVAILABLE, method: 'POST', path: '/contacts/imports' })
    await fault(sandbox, { ...UNAVAILABLE, path: '/domains/*/claim' })
    expect(await statuses(sandbox, 1)).toEqual([200])
    expect((await api(sandbox, 'GET', '/domains/x/claim')).status).toBe(503)
    expect((await api(sandbox, 'POST', '/domains/x/claim/verify')).status).toBe(404)
  })

  test('a fault with a probability applies at random, the same way for the same seed', async () => {
    const runs = await Promise.all(
      [7, 7, 8].map(async (seed) => {
        const sandbox = await sandboxForTest()
        await fault(sandbox, { ...UNAVAILABLE, probability: 0.5, seed })
        return statuses(sandbox, 40)
      }),
    )
    expect(runs[0]).toEqual(runs[1])
    expect(runs[0]).not.toEqual(runs[2])
    const struck = runs[0]?.filter((status) => status === 503).length ?? 0
    expect(struck).toBeGreaterThan(8)
    expect(struck).toBeLessThan(32)
  })

  test('faults never apply to the control plane, nor after they are cleared', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, UNAVAILABLE)
    expect((await control(sandbox, 'GET', '/faults')).status).toBe(200)
    expect((await control(sandbox, 'DELETE', '/faults')).status).toBe(204)
    expect(await statuses(sandbox, 1)).toEqual([200])
  })

  test.each([
    {},
    { kind: 'earthquake' },
    { kind: 'status', status: 99 },
    { kind: 'delay', before_ms: -1 },
    { kind: 'redirect', url: 5 },
    { kind: 'merge', fields: [] },
  ])('the fault %j is refused', async (body) => {
    const sandbox = await sandboxForTest()
    expect((await fault(sandbox, body)).status).toBe(422)
  })
})

test('requests are logged with their kind of credential and fault, and without secrets', async () => {
  const sandbox = await sandboxForTest()
  const session = await control(sandbox, 'POST', '/sessions', {})
  await fault(sandbox, { kind: 'status', status: 500, count: 1 })
  await api(sandbox, 'GET', PATH)
  await api(sandbox, 'GET', PATH, { bearer: String(session.body['access_token']) })
  await api(sandbox, 'GET', '/oauth/grants', { bearer: null })
  const { body } = await control(sandbox, 'GET', '/requests')
  expect(body['requests']).toMatchObject([
    { method: 'GET', path: '/contacts/imports', credential: 'api_key', status: 500, fault: 'status' },
    { path: '/contacts/imports', query: 'limit=2', credential: 'access_token', status: 200, fault: null },
    { path: '/oauth/grants', credential: 'none', status: 401 },
  ])
  const text = JSON.stringify(body)
  expect(text).not.toContain(sandbox.apiKey)
  expect(text).not.toContain(String(session.body['access_token']))
})

test('a body of more than 256 KiB is refused, also when it comes in chunks', async () => {
  const sandbox = await sandboxForTest()
  const body = Buffer.alloc(300_000, ' ')
  const headers = { authorization: `Bearer ${sandbox.apiKey}` }
  const whole = await fetch(`${sandbox.baseUrl}/domains/claim`, { method: 'POST', headers, body })
  expect(whole.status).toBe(413)
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(64 * 1024))
    },
  })
  const init = { method: 'POST', headers, body: stream, duplex: 'half' } as RequestInit
  const chunked = await fetch(`${sandbox.baseUrl}/domains/claim`, init).then(
    ({ status }) => status,
    () => 'closed',
  )
  expect([413, 'closed']).toContain(chunked)
})

test('a small body in chunks is read', async () => {
  const sandbox = await sandboxForTest()
  const stream = new Blob(['{"name":', '"example.com"}']).stream()
  const headers = { authorization: `Bearer ${sandbox.apiKey}` }
  const init = { method: 'POST', headers, body: stream, duplex: 'half' } as RequestInit
  expect((await fetch(`${sandbox.baseUrl}/domains/claim`, init)).status).toBe(201)
})
