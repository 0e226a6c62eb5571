import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type HttpRequest, type HttpResponse, HttpTransportError } from '../../src/context.ts'
import { noResponseError } from '../../src/service/problems.ts'
import { bypassesProxy, type ProxySettings, proxyUrlFor } from '../../src/service/proxy.ts'
import { createTransport } from '../../src/service/transport.ts'
import { toHttpTransportError } from '../../src/service/transport-errors.ts'

/** Starts a server on loopback, and ends it with its connections when the test ends. */
async function start(server: Server): Promise<URL> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
}

const listen = (listener: RequestListener) => start(createServer(listener))
/** Starts a TCP server whose `connection` callback can send anything. */
const listenRaw = (connection: (socket: Socket) => void) => start(createTcpServer(connection))

function transport(proxies: ProxySettings = {}) {
  const created = createTransport(proxies)
  onTestFinished(() => created.close())
  return created
}

const get = (url: URL, more: Partial<HttpRequest> = {}): HttpRequest => ({
  method: 'GET',
  url,
  headers: {},
  timeoutMs: 5000,
  ...more,
})

/** Returns the text of a complete response. @throws the error that cut the body off */
function text({ text: whole, brokenBy }: HttpResponse): string {
  if (brokenBy !== undefined) throw brokenBy
  return whole
}

async function failureOf(work: Promise<unknown>): Promise<HttpTransportError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(HttpTransportError)
  return error as HttpTransportError
}

describe('an exchange', () => {
  it('an HTTP request is sent with method, path, headers and body, and its response is read', async () => {
    let seen: unknown
    const url = await listen((request, response) => {
      let body = ''
      request.on('data', (piece) => {
        body += piece
      })
      request.on('end', () => {
        seen = { method: request.method, url: request.url, type: request.headers['content-type'], body }
        response.writeHead(201, { 'X-One': ['a', 'b'] }).end('done')
      })
    })
    const response = await transport().send(
      get(new URL('/a/b?c=d', url), {
        method: 'POST',
        body: '{"x":1}',
        headers: { 'content-type': 'application/json' },
      }),
    )
    expect(response.status).toBe(201)
    expect(response.headers['x-one']).toBe('a, b')
    expect(text(response)).toBe('done')
    expect(seen).toEqual({ method: 'POST', url: '/a/b?c=d', type: 'application/json', body: '{"x":1}' })
  })

  it('the HTTP transport sends consecutive requests over one connection', async () => {
    const ports = new Set<number | undefined>()
    const url = await listen((request, response) => {
      ports.add(request.socket.remotePort)
      response.end('x'.repeat(100_000))
    })
    const http = transport()
    for (let count = 0; count < 5; count++) expect(text(await http.send(get(url)))).toHaveLength(100_000)
    expect(ports.size).toBe(1)
  })

  it('a connection on which data arrived after the response is not reused', async () => {
    const sockets: Socket[] = []
    const url = await listenRaw((socket) => {
      sockets.push(socket)
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nasked'))
    })
    const http = transport()
    const response = await http.send(get(url))
    // Half of another response arrives before the first response is read and its connection is released.
    const gone = new Promise((resolve) => sockets[0]?.once('close', resolve))
    sockets[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nun')
    await gone
    expect(text(response)).toBe('asked')
    expect(text(await http.send(get(url)))).toBe('asked')
    expect(sockets).toHaveLength(2)
  }, 2000)

  it('a POST does not reuse a connection that the server closed after its response', async () => {
    let connections = 0
    const url = await listenRaw((socket) => {
      connections++
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'))
    })
    const http = transport()
    for (let count = 0; count < 5; count++)
      expect(text(await http.send(get(url, { method: 'POST', body: 'x' })))).toBe('ok')
    expect(connections).toBe(5)
  })

  it('a POST on a reused connection that breaks fails as possibly sent, and is not sent again', async () => {
    let requests = 0
    const url = await listenRaw((socket) =>
      socket.on('data', () => {
        if (requests++ === 0) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
        else socket.resetAndDestroy()
      }),
    )
    const http = transport()
    expect(text(await http.send(get(url)))).toBe('ok')
    const failure = await failureOf(http.send(get(url, { method: 'POST', body: 'x' })))
    expect(failure).toMatchObject({ kind: 'reset', sent: 'maybe' })
    expect(requests).toBe(2)
  })

  it('a response header named __proto__ is read, and repeated headers are joined', async () => {
    const url = await listenRaw((socket) =>
      socket.once('data', () =>
        socket.write(
          'HTTP/1.1 200 OK\r\n__proto__: a\r\nConstructor: b\r\nx: 1\r\nX: 2\r\ncontent-length: 2\r\n\r\nok',
        ),
      ),
    )
    const response = await transport().send(get(url))
    expect(Object.entries(response.headers)).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
      ['x', '1, 2'],
      ['content-length', '2'],
    ])
    expect(text(response)).toBe('ok')
  })

  it('a response after 103 Early Hints is read', async () => {
    const url = await listenRaw((socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(3))
        setImmediate(() => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'))
      }),
    )
    expect(text(await transport().send(get(url)))).toBe('ok')
  })

  it.each([301, 302, 303, 307, 308])('the transport follows no redirect with status %i', async (status) => {
    let hits = 0
    const url = await listen((_request, response) => {
      hits++
      response.writeHead(status, { location: '/elsewhere' }).end()
    })
    expect((await transport().send(get(url))).status).toBe(status)
    expect(hits).toBe(1)
  })
})

it('a response body is cut off after 8 MiB with an error, and the text until then is kept', async () => {
  const piece = '{'.repeat(64 * 1024)
  let written = 0
  const url = await listen((request, response) => {
    expect(request.headers['accept-encoding']).toBe('identity')
    const more = () => {
      while (written < 64 * 1024 * 1024) {
        written += piece.length
        if (!response.write(piece)) return
      }
    }
    response.on('drain', more)
    more()
  })
  const response = await transport().send(get(url))
  expect(response.brokenBy).toMatchObject({
    code: 'unexpected_answer',
    message: expect.stringContaining('larger than 8 MiB'),
  })
  expect(new Set(response.text)).toEqual(new Set('{'))
  expect(written).toBeLessThan(64 * 1024 * 1024)
})

describe('an error', () => {
  it.each([
    [
      new RangeError('WebAssembly.Instance(): Out of memory: Cannot allocate Wasm memory'),
      'memory',
      'ulimit -v',
    ],
    [
      new Error('x', {
        cause: Object.assign(new Error('connect EMFILE'), { code: 'EMFILE', syscall: 'connect' }),
      }),
      'descriptors',
      'ulimit -n',
    ],
  ])('the error "%s" gets the kind `%s`, whose hint contains %s', (error, kind, remedy) => {
    const failure = toHttpTransportError(error, 'no')
    expect(failure.kind).toBe(kind)
    const url = new URL('https://api.example.com')
    expect(noResponseError(failure, url, 'GET').hint).toContain(remedy)
  })

  it("an https request to a plain HTTP server fails unsent, with the message that the server doesn't speak TLS", async () => {
    const plain = await listen((_request, response) => response.end('not TLS'))
    const failure = await failureOf(transport().send(get(new URL(`https://127.0.0.1:${plain.port}/`))))
    expect(failure).toMatchObject({
      ...{ kind: 'tls', sent: 'no' },
      message: expect.stringContaining("doesn't speak TLS"),
    })
  })

  it('a request whose response is not HTTP fails with the error kind `protocol`', async () => {
    const url = await listenRaw((socket) => socket.once('data', () => socket.end('SSH-2.0-OpenSSH_9\r\n')))
    expect(await failureOf(transport().send(get(url)))).toMatchObject({ kind: 'protocol', sent: 'maybe' })
  })

  it.each(['101 Switching Protocols', '099 Odd', '000 None'])(
    'a request whose response has the status %s fails with the error kind `protocol`',
    async (status) => {
      const url = await listenRaw((socket) =>
        socket.once('data', () => socket.write(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`)),
      )
      expect(await failureOf(transport().send(get(url)))).toMatchObject({ kind: 'protocol', sent: 'maybe' })
    },
  )

  it.each<[string, (socket: Socket) => void]>([
    ['at once', (socket) => socket.destroy()],
    ['with a reset', (socket) => socket.once('data', () => socket.resetAndDestroy())],
    ['with a FIN', (socket) => socket.once('data', () => socket.end())],
    [
      'with an alert',
      (socket) => socket.once('data', () => socket.write(Buffer.from([21, 3, 3, 0, 2, 2, 40]))),
    ],
  ])('a request whose TLS handshake the server ends %s fails without being sent', async (_how, end) => {
    const { port } = await listenRaw(end)
    const failure = await failureOf(
      transport().send(get(new URL(`https://127.0.0.1:${port}/`), { method: 'POST', body: 'x' })),
    )
    expect(failure.sent).toBe('no')
  })

  it('a request fails with the error kind `reset` if the server closes the connection without a response', async () => {
    const url = await listenRaw((socket) => socket.once('data', () => socket.end()))
    expect(await failureOf(transport().send(get(url)))).toMatchObject({ kind: 'reset', sent: 'maybe' })
  })
})

describe('the time limit', () => {
  it('a request without a response fails at its timeout', async () => {
    const url = await listen(() => {})
    const failure = await failureOf(transport().send(get(url, { timeoutMs: 50 })))
    expect(failure).toMatchObject({ kind: 'timeout', sent: 'maybe' })
  })

  it('an endless response body is cut off at the timeout, and the text until then is kept', async () => {
    const url = await listen((_request, response: ServerResponse) => {
      response.writeHead(200)
      const drip = setInterval(() => response.write('x'), 5)
      response.on('close', () => clearInterval(drip))
    })
    const { text: read, brokenBy } = await transport().send(get(url, { timeoutMs: 100 }))
    expect(read).toMatch(/^x+$/)
    expect(brokenBy).toMatchObject({ kind: 'timeout', sent: 'maybe' })
  })
})

describe('a process suspended beyond its time limit', () => {
  /** Blocks this process, as if it were suspended. */
  const stop = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

  /** Starts a server in another thread that responds to each request with `pieces`, 20 ms apart. */
  async function otherThread(pieces: readonly string[]): Promise<URL> {
    const script = `
      const { parentPort, workerData } = require('node:worker_threads')
      require('node:net').createServer((socket) => {
        socket.on('error', () => {})
        socket.once('data', () => workerData.forEach((piece, at) => setTimeout(() => socket.write(piece), 20 * at)))
      }).listen(0, '127.0.0.1', function () { parentPort.postMessage(this.address().port) })`
    const worker = new Worker(script, { eval: true, workerData: pieces })
    onTestFinished(async () => void (await worker.terminate()))
    const [port] = await once(worker, 'message')
    return new URL(`http://127.0.0.1:${port}/`)
  }

  /** Sends a request, and once the request is written, blocks this process for longer than the time limit. */
  async function stopped(
    url: URL,
    timeoutMs: number,
    more: Partial<HttpRequest> = {},
  ): Promise<HttpResponse> {
    const http = transport()
    let response = Promise.reject<HttpResponse>(new Error('not sent'))
    response.catch(() => {})
    await new Promise<void>((resolve) => {
      // The request is written when this callback returns, before `setImmediate` runs.
      const beforeSend = () => void setImmediate(resolve)
      response = http.send(get(url, { timeoutMs, beforeSend, ...more }))
    })
    stop(timeoutMs + 200)
    return response
  }

  it('a request whose process is suspended beyond the timeout gets a response that arrived during the suspension', async () => {
    const url = await otherThread(['HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n', 'late'])
    expect(text(await stopped(url, 100, { method: 'POST', body: 'x' }))).toBe('late')
  })

  it('a request whose process is suspended beyond the timeout fails with the error kind `timeout` if no response arrived', async () => {
    const url = await otherThread([])
    expect(await failureOf(stopped(url, 100))).toMatchObject({ kind: 'timeout', sent: 'maybe' })
  })
})

describe('a truncated body', () => {
  const chunk = (body: Buffer | string) =>
    Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), Buffer.from(body), Buffer.from('\r\n')])

  it.each<[string, string, Buffer]>([
    ['before its length is reached', 'content-length: 99', Buffer.from('{"whole":true}')],
    ['before its last chunk', 'transfer-encoding: chunked', chunk('{"whole":true}')],
  ])('the text of a response body that ends %s is kept', async (_where, headers, body) => {
    const url = await listenRaw((socket) =>
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\n`)
        socket.end(body)
      }),
    )
    const { text: read, brokenBy } = await transport().send(get(url))
    expect(read).toBe('{"whole":true}')
    expect(brokenBy).toMatchObject({ kind: 'reset', sent: 'maybe' })
  })
})

describe('a signal', () => {
  it('an abort signal cancels an HTTP request, unsent or while the response body arrives', async () => {
    const abandon = new AbortController()
    const url = await listen((_request, response) => {
      response.writeHead(200)
      response.write('half', () => abandon.abort())
    })
    const late = await failureOf(
      transport()
        .send(get(url, { signal: abandon.signal }))
        .then(text),
    )
    expect(late).toMatchObject({ kind: 'aborted', sent: 'maybe' })
    const early = await failureOf(transport().send(get(url, { signal: abandon.signal })))
    expect(early).toMatchObject({ kind: 'aborted', sent: 'no' })
  })
})

describe('beforeSend', () => {
  const refused = new Error('not now')
  const refuse = () => {
    throw refused
  }

  it('`beforeSend` is called once, before the server receives the first byte of the request', async () => {
    const events: string[] = []
    const url = await listenRaw((socket) => {
      events.push('connected')
      socket.once('data', (piece) => {
        events.push(`${piece}`.split('\r\n', 1)[0] ?? '')
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      })
    })
    const http = transport()
    const beforeSend = () => void events.push('before')
    expect(text(await http.send(get(url, { method: 'POST', body: 'x', beforeSend })))).toBe('ok')
    // Sort, because the server may notice the connection only after `beforeSend` is called.
    expect(events.toSorted()).toEqual(['POST / HTTP/1.1', 'before', 'connected'])
    expect(events.at(-1)).toBe('POST / HTTP/1.1')
  })

  it.each([true, undefined])(
    'a request whose `beforeSend` throws sends nothing (freshConnection: %s)',
    async (fresh) => {
      const received: Buffer[] = []
      const url = await listenRaw((socket) => socket.on('data', (piece) => received.push(piece)))
      const http = transport()
      const failure = await failureOf(
        http.send(
          get(url, {
            method: 'POST',
            body: 'x',
            beforeSend: refuse,
            ...(fresh ? { freshConnection: fresh } : {}),
          }),
        ),
      )
      expect(failure).toMatchObject({ sent: 'no', cause: refused })
      await http.close()
      expect(received).toEqual([])
    },
  )

  it.each([true, undefined])(
    'a request whose `beforeSend` throws leaves no connection open (freshConnection: %s)',
    async (fresh) => {
      const gone: Promise<unknown>[] = []
      const url = await listenRaw((socket) => {
        gone.push(new Promise((resolve) => socket.once('close', resolve)))
        socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'))
        socket.resume()
      })
      const http = transport()
      const request = get(url, fresh ? { freshConnection: fresh } : {})
      await failureOf(http.send({ ...request, beforeSend: refuse }))
      expect(text(await http.send(request))).toBe('ok')
      await gone[0]
      expect(gone).toHaveLength(2)
    },
  )

  it.each([
    ['connect', 'http://127.0.0.1:1/', /connection refused/],
    ['lookup', 'http://no-such-host.invalid/', /resolve/],
  ])(
    'a request that fails with the error kind `%s` (URL %s) sends nothing and does not call `beforeSend`',
    async (kind, address, message) => {
      const beforeSend = () => expect.fail('called')
      const failure = await failureOf(transport().send(get(new URL(address), { beforeSend })))
      expect(failure).toMatchObject({ kind, sent: 'no', message: expect.stringMatching(message) })
    },
  )

  it('`beforeSend` is not called for a request that was canceled while connecting', async () => {
    const abandon = new AbortController()
    const url = await listen((_request, response) => response.end('ok'))
    const http = transport()
    const calls: string[] = []
    const beforeSend = () => void calls.push('called')
    const sending = failureOf(http.send(get(url, { signal: abandon.signal, beforeSend })))
    abandon.abort()
    expect(await sending).toMatchObject({ kind: 'aborted', sent: 'no' })
    expect(text(await http.send(get(url)))).toBe('ok')
    expect(calls).toEqual([])
  })
})

describe('closing', () => {
  it('closing the HTTP transport cancels requests in progress, and later requests fail unsent', async () => {
    const requests: string[] = []
    let asked: () => void
    const arrived = new Promise<void>((resolve) => {
      asked = resolve
    })
    const url = await listen((request) => {
      requests.push(`${request.url}`)
      asked()
    })
    const http = transport()
    const waiting = failureOf(http.send(get(url)))
    await arrived
    // This request has no connection yet when the transport closes.
    const begun = failureOf(http.send(get(new URL('/late', url))))
    await http.close()
    expect(await waiting).toMatchObject({ kind: 'aborted', sent: 'maybe' })
    expect(await begun).toMatchObject({ kind: 'aborted', sent: 'no' })
    expect(await failureOf(http.send(get(url)))).toMatchObject({ kind: 'aborted', sent: 'no' })
    expect(requests).toEqual(['/'])
  })
})

describe('NO_PROXY', () => {
  it.each([
    ['https://api.example.com/', 'api.example.com', true],
    ['https://api.example.com/', 'example.com', true],
    ['https://api.example.com/', '.example.com', true],
    ['https://api.example.com/', '*.example.com', true],
    ['https://api.example.com/', 'EXAMPLE.com', true],
    ['https://api.example.com/', 'other.example, example.com', true],
    ['https://api.example.com/', 'other.example example.com', true],
    ['https://api.example.com/', '*', true],
    ['https://10.1.2.3/', '192.168.0.0/16,10.0.0.0/8', true],
    ['https://11.1.2.3/', '10.0.0.0/8', false],
    ['https://[2001:db8::1]/', '2001:db8::/32', true],
    ['https://[2001:db9::1]/', '[2001:db8::]/32', false],
    ['https://10.1.2.3/', '10.1.2.3/33,10.1.2.3/x,::/0', false],
    ['https://badexample.com/', 'example.com', false],
    ['https://example.com/', 'api.example.com', false],
    ['https://api.example.com/', ' , ', false],
    ['https://[::1]:8443/', '[::1]', true],
    ['https://[2001:db8::1]/', '2001:DB8::1', true],
  ])('bypassesProxy for a request to %s with NO_PROXY %j returns %s', (url, noProxy, past) => {
    expect(bypassesProxy(new URL(url), noProxy)).toBe(past)
  })
})

describe('a proxy', () => {
  /**
   * Starts a proxy that records the targets of tunnels (RFC 9110 section 9.3.6) and opens them to loopback, or sends `answer`
   * instead.
   */
  async function proxyServer(answer?: string) {
    const tunnels: string[] = []
    const credentials: { authorization?: string; 'proxy-authorization'?: string }[] = []
    const server = createServer((request, response) => {
      tunnels.push(request.url ?? '')
      response.end('by proxy')
    })
    server.on('connect', (request, socket) => {
      tunnels.push(request.url ?? '')
      const { authorization, 'proxy-authorization': shown } = request.headers
      credentials.push({
        ...(authorization === undefined ? {} : { authorization }),
        ...(shown === undefined ? {} : { 'proxy-authorization': shown }),
      })
      if (answer !== undefined) return socket.end(answer)
      const onward = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
        onward.pipe(socket)
        socket.pipe(onward)
      })
      onward.on('error', () => socket.destroy())
      socket.on('error', () => onward.destroy())
    })
    return { url: (await start(server)).origin, tunnels, credentials }
  }

  /** Returns a loopback server's URL with a host name that isn't loopback; the test proxy connects to loopback all the same. */
  const named = ({ port }: URL, host = 'service.example') => new URL(`http://${host}:${port}/`)

  it('a request to a host in NO_PROXY is sent directly', async () => {
    const url = await listen((_request, response) => response.end('direct'))
    const proxy = await proxyServer()
    const proxies = { httpsProxy: proxy.url, noProxy: 'example.com,0.0.0.0' }
    expect(text(await transport(proxies).send(get(named(url, '0.0.0.0'))))).toBe('direct')
    expect(proxy.tunnels).toEqual([])
  })

  it.each(['127.0.0.1', '127.255.0.9', 'localhost', 'LOCALHOST', '[::1]'])(
    'a request to the loopback host %s bypasses the proxy',
    (host) => {
      const proxies = { httpsProxy: 'http://proxy.example:3128' }
      expect(proxyUrlFor(new URL(`http://${host}:2379/`), proxies)).toBeUndefined()
      expect(proxyUrlFor(new URL(`https://${host}/`), proxies)).toBeUndefined()
    },
  )

  it.each([
    ['me:p%40ss@', 'me:p@ss'],
    ['me@', 'me:'],
  ])('the credentials %s of a proxy URL are sent to the proxy only', async (given, user) => {
    const shown: (string | undefined)[] = []
    const server = await listen((request, response) => {
      shown.push(request.headers['proxy-authorization'])
      response.end('direct')
    })
    const proxy = await proxyServer()
    // A proxy URL without a scheme is http.
    const httpsProxy = proxy.url.replace('http://', given)
    expect(text(await transport({ httpsProxy }).send(get(named(server))))).toBe('direct')
    expect(proxy.credentials).toEqual([
      { 'proxy-authorization': `Basic ${Buffer.from(user).toString('base64')}` },
    ])
    expect(shown).toEqual([undefined])
  })

  it('a `beforeSend` that throws is called when the proxy tunnel is open, and nothing is sent through the tunnel', async () => {
    const received: Buffer[] = []
    const url = await listenRaw((socket) => socket.on('data', (piece) => received.push(piece)))
    const proxy = await proxyServer()
    const http = transport({ httpsProxy: proxy.url })
    let tunnels = 0
    const beforeSend = () => {
      tunnels = proxy.tunnels.length
      throw new Error('not now')
    }
    const failure = await failureOf(http.send(get(named(url), { method: 'POST', body: 'x', beforeSend })))
    expect({ sent: failure.sent, tunnels }).toEqual({ sent: 'no', tunnels: 1 })
    await http.close()
    expect(received).toEqual([])
  })

  const toService = (more: Partial<HttpRequest> = {}) =>
    get(new URL('https://service.example:1/'), { method: 'POST', body: 'x', ...more })

  it.each<[string, (socket: Socket) => void]>([
    ['closes at once', (socket) => socket.destroy()],
    ['resets', (socket) => socket.once('data', () => socket.resetAndDestroy())],
    ['closes without a response', (socket) => socket.once('data', () => socket.end())],
    ['does not speak HTTP', (socket) => socket.once('data', () => socket.write('SSH-2.0-OpenSSH_9\r\n'))],
    ['breaks off', (socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nx: y'))],
    [
      'closes after opening the tunnel',
      (socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\n')),
    ],
    [
      'answers for the service',
      (socket) => socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n')),
    ],
  ])('a request via a proxy that %s before the TLS handshake is not sent', async (_what, speak) => {
    const proxy = await listenRaw(speak)
    const failure = await failureOf(transport({ httpsProxy: proxy.href }).send(toService()))
    expect(failure.sent).toBe('no')
  })

  it('a request through a silent proxy fails at its timeout, with nothing sent to the service', async () => {
    const silent = await listenRaw(() => {})
    const http = transport({ httpsProxy: silent.href })
    const failure = await failureOf(http.send(toService({ timeoutMs: 50 })))
    expect(failure).toMatchObject({ kind: 'timeout', sent: 'no' })
  })

  it('a request that the proxy answers with 407 fails with the error kind `proxy`, and nothing is sent to the service', async () => {
    const proxy = await proxyServer('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
    const failure = await failureOf(transport({ httpsProxy: proxy.url }).send(toService()))
    expect(failure).toMatchObject({ kind: 'proxy', sent: 'no' })
  })

  it.each([':::', 'socks5://proxy.example', 'http://me:%@proxy.example', 'http://proxy.example/path'])(
    'the unusable proxy URL %s gives an error of the kind `proxy`, without a cause that could quote the password',
    async (httpsProxy) => {
      const failure = await failureOf(transport({ httpsProxy }).send(toService()))
      expect(failure).toMatchObject({ kind: 'proxy', sent: 'no' })
      expect(failure).not.toHaveProperty('cause')
    },
  )
})
