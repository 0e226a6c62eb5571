import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createVirtualClock, formatPostgresTimestamp } from '../../src/sandbox/clock.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { sandboxForTest } from './start-sandbox.ts'
import { api, codeFields, codeFor, control, refreshFields, token } from './talk.ts'

const PATH = '/contacts/imports?limit=2'
const fault = (sandbox: Sandbox, body: object) => control(sandbox, 'POST', '/faults', body)
const get = (sandbox: Sandbox, init: RequestInit = {}) =>
  fetch(`${sandbox.baseUrl}${PATH}`, { headers: { authorization: `Bearer ${sandbox.apiKey}` }, ...init })

/** Sends a raw HTTP request; resolves with the text received, and whether the connection was closed or reset. */
function raw(sandbox: Sandbox): Promise<{ text: string; end: 'closed' | 'reset' }> {
  const { hostname, port, host } = new URL(sandbox.baseUrl)
  return new Promise((done) => {
    let text = ''
    let end: 'closed' | 'reset' = 'closed'
    const socket = connect(Number(port), hostname)
    socket.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    socket.on('error', () => {
      end = 'reset'
    })
    socket.on('close', () => done({ text, end }))
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${sandbox.apiKey}\r\n\r\n`)
  })
}

describe('the fault', () => {
  test('the sandbox fault "status" responds with the given status, headers and body', async () => {
    const sandbox = await sandboxForTest()
    const headers = { 'Retry-After': '7' }
    await fault(sandbox, { kind: 'status', status: 429, headers, body: { message: 'slow' } })
    const response = await get(sandbox)
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7'])
    expect(await response.json()).toEqual({ message: 'slow' })
  })

  test('with the fault "reset", the sandbox resets the connection without sending a byte', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'reset' })
    expect(await raw(sandbox)).toEqual({ text: '', end: 'reset' })
  })

  test('with the fault "drop", the sandbox closes the connection without a response', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'drop' })
    expect(await raw(sandbox)).toEqual({ text: '', end: 'closed' })
  })

  test('with the fault "truncate", the sandbox sends the headers and half of the body', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'truncate' })
    const [head = '', body = ''] = (await raw(sandbox)).text.split('\r\n\r\n')
    expect(body.length).toBe(Math.floor(Number(/content-length: (\d+)/i.exec(head)?.[1]) / 2))
    await expect(get(sandbox).then((response) => response.text())).rejects.toThrow()
  })

  test('the fault "merge" overwrites headers and fields of the response, and fields of each list item', async () => {
    const sandbox = await sandboxForTest()
    const more = {
      headers: { 'content-type': 'text/html' },
      fields: { has_more: 'yes' },
      item_fields: { id: 7 },
    }
    await fault(sandbox, { kind: 'merge', ...more })
    const response = await get(sandbox)
    expect(response.headers.get('content-type')).toBe('text/html')
    expect(await response.json()).toMatchObject({
      object: 'list',
      has_more: 'yes',
      data: [{ id: 7 }, { id: 7 }],
    })
  })

  test('the fault "delay" delays a successful response by `before_ms` and `after_ms`', async () => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'delay', before_ms: 40, after_ms: 40 })
    const started = performance.now()
    expect((await get(sandbox)).status).toBe(200)
    expect(performance.now() - started).toBeGreaterThan(75)
  })

  test.each([
    [{ kind: 'status', status: 200 }, 0],
    [{ kind: 'status', status: 500, after: true }, 1],
    [{ kind: 'reset' }, 0],
    [{ kind: 'reset', after: true }, 1],
    [{ kind: 'drop' }, 1],
    [{ kind: 'truncate' }, 1],
    [{ kind: 'merge', fields: { refresh_token: null } }, 1],
    [{ kind: 'delay', after_ms: 600_000 }, 1],
    [{ kind: 'delay', before_ms: 600_000 }, 0],
  ])('a token refresh request that meets the fault %j takes effect %i times', async (kind, refreshes) => {
    const sandbox = await sandboxForTest({ autoApprove: true })
    const session = (await token(sandbox, 'form', codeFields(sandbox, await codeFor(sandbox)))).body
    const fields = refreshFields(sandbox, session['refresh_token'])
    await fault(sandbox, { ...kind, path: '/oauth/token' })
    const body = new URLSearchParams(fields)
    const signal = AbortSignal.timeout(100)
    await fetch(`${sandbox.baseUrl}/oauth/token`, { method: 'POST', body, signal }).catch(() => {})
    expect((await control(sandbox, 'GET', '/state')).body['refreshes']).toBe(refreshes)
    await control(sandbox, 'DELETE', '/faults')
    expect((await token(sandbox, 'form', fields)).status).toBe(refreshes === 0 ? 200 : 400)
  })

  test('a sandbox fault lets `skip` matching requests pass, and applies to the next `count` ones', async () => {
    const sandbox = await sandboxForTest()
    const unavailable = { kind: 'status', status: 503 }
    await fault(sandbox, { ...unavailable, path: '/contacts/*', skip: 1, count: 2 })
    const found: number[] = []
    for (let n = 0; n < 5; n += 1) found.push((await get(sandbox)).status)
    expect(found).toEqual([200, 503, 503, 200, 200])
    await fault(sandbox, { ...unavailable, path: '/domains/*/claim' })
    const answers = [
      await api(sandbox, 'GET', '/domains/x/claim'),
      await api(sandbox, 'POST', '/domains/x/claim/verify'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([503, 404])
    await fault(sandbox, unavailable)
    expect((await control(sandbox, 'DELETE', '/faults')).status).toBe(204)
    expect((await get(sandbox)).status).toBe(200)
  })

  test.each([
    ['/contacts/imports', true],
    ['*', true],
    ['/*/imports', true],
    ['*imports', true],
    ['/con*/im*s', true],
    ['/contacts/imports*', true],
    ['/contacts', false],
    ['*/contacts', false],
    ['/contacts/imports*s', false],
    ['/x*', false],
    ['*tacts*con*', false],
    ['/contacts.imports', false],
  ])('a fault with the path %s applies to /contacts/imports: %s', async (path, isHit) => {
    const sandbox = await sandboxForTest()
    await fault(sandbox, { kind: 'status', status: 418, path })
    expect((await get(sandbox)).status).toBe(isHit ? 418 : 200)
  })

  test.each([
    {},
    { kind: 'earthquake' },
    { kind: 'status', status: 99 },
    { kind: 'delay', before_ms: -1 },
    { kind: 'reset', path: 5 },
    { kind: 'merge', fields: [] },
    { kind: 'status', headers: { 'x-a': 'b\r\nset-cookie: c' } },
    { kind: 'status', headers: { 'x a': 'b' } },
    { kind: 'merge', headers: { 'x-a': '\u2026' } },
  ])('a control request to set the malformed fault %j gets status 422', async (body) => {
    expect((await fault(await sandboxForTest(), body)).status).toBe(422)
  })
})

describe('the virtual clock', () => {
  const clockOf = () => {
    const errors: unknown[] = []
    return { errors, clock: createVirtualClock((error) => void errors.push(error)) }
  }

  test('a jump of the virtual clock runs the due timers in order, also timers that another timer has scheduled', async () => {
    const { clock, errors } = clockOf()
    const start = clock.now()
    const ran: string[] = []
    clock.schedule(start + 300_000, () => void ran.push('third'))
    clock.schedule(start + 100_000, async (due) => {
      await new Promise((resolve) => setImmediate(resolve))
      ran.push('first')
      clock.schedule(due + 100_000, () => void ran.push('second'))
      throw new Error('of the first')
    })
    clock.schedule(start + 150_000, () => void ran.push('called off'))()
    clock.schedule(start + 2_000_000, () => void ran.push('later'))
    await clock.advance(1_000_000)
    expect(ran).toEqual(['first', 'second', 'third'])
    expect(clock.now() - start).toBeGreaterThanOrEqual(1_000_000)
    expect(errors.map(String)).toEqual(['Error: of the first'])
    clock.close()
    await clock.advance(10_000_000)
    expect(ran).toHaveLength(3)
  })

  test('a timer of the virtual clock fires when real time reaches its due time', async () => {
    const { clock } = clockOf()
    const started = clock.now()
    const due = await new Promise<number>((done) => clock.schedule(started + 20, done))
    expect([due - started, clock.now() - started >= 20]).toEqual([20, true])
  })
})

test('timestamps of the sandbox have the documented format and millisecond precision', () => {
  for (const ms of [0, 1, 999, 1_700_000_000_000, 1_700_000_000_123, 4_000_000_000_010]) {
    const text = formatPostgresTimestamp(ms)
    expect(text).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,6}\+00$/)
    expect(Math.floor(Number(`0${/\.\d+/.exec(text)?.[0]}`) * 1000 + 1e-9)).toBe(ms % 1000)
  }
})
