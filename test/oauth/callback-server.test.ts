import { request } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startCallbackServer } from '../../src/oauth/callback-server.ts'
import { redirectTarget } from '../../src/oauth/redirect-uri.ts'

const STATE = 'the-right-state'

async function listen(
  options: { uri?: string; validate?: (parameters: URLSearchParams) => string | undefined } = {},
) {
  const target = redirectTarget(options.uri, undefined)
  if (target.listen === undefined) throw new Error('not a loopback target')
  const received: URLSearchParams[] = []
  const server = await startCallbackServer({
    target: { ...target, listen: target.listen },
    state: STATE,
    random: { bytes: (length) => new Uint8Array(length).fill(1), fraction: () => 0 },
    validate: async (parameters) => {
      const why = options.validate?.(parameters)
      return why === undefined ? { valid: parameters } : { page: { status: 400, title: 'Wrong', text: why } }
    },
    received: (parameters, respond) => {
      received.push(parameters)
      void respond({ status: 200, title: 'You are signed in', text: 'done' })
    },
  })
  onTestFinished(() => server.close())
  return {
    server,
    received,
    port: Number(new URL(server.redirectUri).port),
    url: new URL(server.redirectUri),
  }
}

interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: string
}

function send(
  url: URL,
  options: { method?: string; path?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: url.hostname.replace(/[[\]]/g, ''),
        port: url.port,
        method: options.method ?? 'GET',
        path: options.path ?? `${url.pathname}${url.search}`,
        headers: options.headers ?? {},
      },
      (response) => {
        let body = ''
        response.on('data', (piece) => {
          body += piece
        })
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        )
      },
    )
    sent.on('error', reject)
    sent.end()
  })
}

/** Writes bytes as they are and reads whatever comes back until the server closes. */
function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.on('data', (piece) => {
      answer += piece
    })
    socket.on('error', () => resolve(answer))
    socket.on('close', () => resolve(answer))
  })
}

const right = (url: URL) => new URL(`${url.href}?code=abc&state=${STATE}`)

describe('the listener for the redirect', () => {
  it('the listener accepts the redirect with the right state', async () => {
    const { url, received } = await listen()
    const answer = await send(right(url))
    expect(answer.status).toBe(200)
    expect(answer.body).toContain('You are signed in')
    expect(received.map((callback) => callback.get('code'))).toEqual(['abc'])
  })

  it('the page tells the browser to run, load, frame, store and leak nothing', async () => {
    const { url } = await listen()
    const { headers } = await send(right(url))
    expect(headers['content-security-policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/)
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
    })
  })

  const wrong: readonly [
    string,
    { method?: string; path?: (url: URL) => string; headers?: (url: URL) => Record<string, string> },
    number,
  ][] = [
    ['another method', { method: 'POST' }, 405],
    ['a HEAD request, which is not a browser that arrives', { method: 'HEAD' }, 405],
    ['another path', { path: () => `/other?code=abc&state=${STATE}` }, 404],
    [
      'a path that only begins like the right one',
      { path: () => `/callback/x?code=abc&state=${STATE}` },
      404,
    ],
    ['a path with two slashes', { path: () => `//callback?code=abc&state=${STATE}` }, 404],
    ['an absolute-form target', { path: (url) => `${url.origin}/callback?code=abc&state=${STATE}` }, 404],
    [
      'another Host, as after DNS rebinding',
      { headers: (url) => ({ host: `evil.example:${url.port}` }) },
      421,
    ],
    ['the Host without its port', { headers: () => ({ host: '127.0.0.1' }) }, 421],
    [
      'localhost where the address was registered',
      { headers: (url) => ({ host: `localhost:${url.port}` }) },
      421,
    ],
    ['no state', { path: () => '/callback?code=abc' }, 400],
    ['an empty state', { path: () => '/callback?code=abc&state=' }, 400],
    ['a wrong state', { path: () => '/callback?code=abc&state=wrong' }, 400],
    ['an error with a wrong state', { path: () => '/callback?error=access_denied&state=wrong' }, 400],
    ['the state twice', { path: () => `/callback?code=abc&state=${STATE}&state=${STATE}` }, 400],
  ]
  it.each(wrong)('the listener refuses %s and still accepts the right one', async (_what, attack, status) => {
    const { url, received } = await listen()
    const answer = await send(right(url), {
      ...(attack.method === undefined ? {} : { method: attack.method }),
      ...(attack.path === undefined ? {} : { path: attack.path(url) }),
      ...(attack.headers === undefined ? {} : { headers: attack.headers(url) }),
    })
    expect(answer.status).toBe(status)
    expect(received).toHaveLength(0)
    expect((await send(right(url))).status).toBe(200)
    expect(received).toHaveLength(1)
  })

  it('the listener checks the state before it validates anything else', async () => {
    const validated: string[] = []
    const { url } = await listen({
      validate: (parameters) => void validated.push(parameters.toString()) as undefined,
    })
    await send(url, { path: '/callback?code=abc&state=wrong&iss=x' })
    expect(validated).toEqual([])
  })

  it('the listener keeps waiting after an answer that is not valid', async () => {
    const { url, received } = await listen({
      validate: (parameters) => (parameters.has('iss') ? 'wrong issuer <b>' : undefined),
    })
    const refused = await send(url, { path: `/callback?code=abc&state=${STATE}&iss=evil` })
    expect(refused.status).toBe(400)
    expect(refused.body).toContain('wrong issuer &lt;b&gt;')
    expect((await send(right(url))).status).toBe(200)
    expect(received).toHaveLength(1)
  })

  it('the listener accepts only the first right answer', async () => {
    const { url, received } = await listen()
    await send(right(url))
    const second = await send(new URL(`${url.href}?code=other&state=${STATE}`))
    expect(second.status).toBe(400)
    expect(second.body).toContain('Already answered')
    expect(received).toHaveLength(1)
  })

  it('the listener survives a request line of 100 kB, garbage, and a client that never finishes', async () => {
    const { url, port, received } = await listen()
    expect(await sendRaw(port, `GET /callback?${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 (431|400)/,
    )
    expect(await sendRaw(port, '\x16\x03\x01\x02\x00 not http\r\n\r\n')).toMatch(/^HTTP\/1\.1 400/)
    const slow = connect(port, '127.0.0.1')
    onTestFinished(() => void slow.destroy())
    slow.write('GET /callback?co')
    expect((await send(right(url))).status).toBe(200)
    expect(received).toHaveLength(1)
  })

  it('the listener finds the right answer among 200 connections at once', async () => {
    const { url, received } = await listen()
    const noise = Array.from({ length: 200 }, () => send(url, { path: '/callback?code=x&state=wrong' }))
    const good = send(right(url))
    expect((await good).status).toBe(200)
    expect(new Set((await Promise.all(noise)).map((answer) => answer.status))).toEqual(new Set([400]))
    expect(received).toHaveLength(1)
  })

  it('the listener uses the host, path and query of the registration', async () => {
    const { server, url, received } = await listen({ uri: 'http://localhost/cb/here' })
    expect(server.redirectUri).toMatch(/^http:\/\/localhost:\d+\/cb\/here$/)
    const answer = await send(new URL(`http://127.0.0.1:${url.port}/cb/here?code=abc&state=${STATE}`), {
      headers: { host: `localhost:${url.port}` },
    })
    expect(answer.status).toBe(200)
    expect(received).toHaveLength(1)
  })

  it('a port that is taken is named', async () => {
    const { port } = await listen()
    await expect(listen({ uri: `http://127.0.0.1:${port}/callback` })).rejects.toMatchObject({
      code: 'port_in_use',
      exit: 1,
    })
  })

  it('the listener closes although a client keeps a connection open', async () => {
    const { server, port } = await listen()
    const idle = connect(port, '127.0.0.1')
    await new Promise((resolve) => idle.once('connect', resolve))
    const closed = new Promise((resolve) => idle.once('close', resolve))
    idle.on('error', () => {})
    await server.close()
    await closed
  })
})
