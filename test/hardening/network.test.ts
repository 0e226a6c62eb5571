import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createSecureServer as createHttp2Server } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TlsOptions } from 'node:tls'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createDnsNetwork } from '../../src/dns/wire/network.ts'
import { needs } from '../requirements.ts'
import { createServedWorld, createWorld, type Ended, type World } from '../stories/built-program.ts'

const KEY = 'test_key_1234567890'
const GRANTS = JSON.stringify({ object: 'list', has_more: false, data: [] })

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    if ('closeAllConnections' in server) (server as ReturnType<typeof createServer>).closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/** Runs `grants list` with an API key against a base URL. */
function grants(
  world: World,
  baseUrl: string,
  env: Record<string, string> = {},
  words: string[] = [],
): Promise<Ended> {
  return world.run(['grants', 'list', '--json', '--http-timeout', '20', ...words], {
    env: { MAILCLAIM_BASE_URL: baseUrl, MAILCLAIM_API_KEY: KEY, ...env },
  })
}

const errorOf = (ended: Ended): Record<string, unknown> =>
  (JSON.parse(ended.stderr.trim().split('\n').at(-1) ?? '{}') as { error: Record<string, unknown> }).error

test('if the HTTP client cannot be loaded, `claims create` exits 7 with the hint to install mailclaim again', async () => {
  const world = createWorld()
  const preload = join(world.home, 'preload.cjs')
  writeFileSync(
    preload,
    `const { Module } = require('node:module')
     const { _load } = Module
     Module._load = (name, ...more) => {
       if (/transport-/.test(name)) throw new Error('EMFILE: too many open files')
       return _load(name, ...more)
     }`,
  )
  const ended = await world.run(['claims', 'create', 'example.com', '--json'], {
    env: { MAILCLAIM_BASE_URL: 'http://127.0.0.1:9', MAILCLAIM_API_KEY: KEY },
    nodeOptions: ['--require', preload],
  })
  expect(ended.code).toBe(7)
  expect(errorOf(ended)).toMatchObject({
    code: 'unreachable',
    message: expect.stringContaining('the HTTP client could not be loaded'),
    hint: expect.stringContaining('install it again'),
  })
})

/**
 * Starts a proxy that tunnels every CONNECT to the target's port on loopback, and records the requests.
 *
 * @param own the certificate for a proxy that is itself reached over TLS
 */
async function startProxy(own?: { key: Buffer; cert: Buffer }): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = []
  const server = own === undefined ? createServer() : createTlsServer(own)
  server.on('connect', (request, socket, head) => {
    seen.push(
      `CONNECT ${request.url} ${request.headers.authorization === undefined ? '' : 'with credential'}`.trim(),
    )
    socket.on('error', () => {})
    const target = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      target.write(head)
      socket.pipe(target).pipe(socket)
    })
    target.on('error', () => socket.destroy())
  })
  return { url: `${own === undefined ? 'http' : 'https'}://127.0.0.1:${await listen(server)}`, seen }
}

describe.runIf(needs('openssl'))('TLS', () => {
  let directory = ''
  const file = (name: string) => join(directory, name)
  const openssl = (words: string) =>
    execFileSync('openssl', words.split(' '), { cwd: directory, stdio: 'pipe' })
  const NEW_KEY = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'

  /** Creates a certificate that is signed by the private certificate authority. */
  function issue(name: string, subject: string, days: number): void {
    openssl(
      `req ${NEW_KEY} -keyout ${name}.key -out ${name}.csr -subj /CN=${name} -addext subjectAltName=${subject}`,
    )
    const authority = '-CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy'
    openssl(`x509 -req -in ${name}.csr ${authority} -out ${name}.pem -days ${days}`)
  }

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'mailclaim-tls-'))
    openssl(`req -x509 ${NEW_KEY} -keyout ca.key -out ca.pem -days 2 -subj /CN=PrivateAuthority`)
    issue('right', 'DNS:localhost,DNS:service.example,IP:127.0.0.1', 2)
    issue('other', 'DNS:other.example', 2)
    issue('old', 'DNS:localhost,IP:127.0.0.1', -1)
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  const pair = (name: string) => ({
    key: readFileSync(file(`${name}.key`)),
    cert: readFileSync(file(`${name}.pem`)),
  })

  /** Starts a TLS server. `named` is a URL with a host name that only this test's proxy can resolve. */
  async function serve(name: string, more: TlsOptions = {}) {
    const requests: string[] = []
    const server = createTlsServer({ ...pair(name), ...more }, (request, response) => {
      requests.push(`${request.method} ${request.url}`)
      response.setHeader('content-type', 'application/json').end(GRANTS)
    })
    const port = await listen(server)
    return { url: `https://localhost:${port}`, named: `https://service.example:${port}`, requests }
  }
  const trusting = () => ({ NODE_EXTRA_CA_CERTS: file('ca.pem') })

  test.each([
    [
      'from an unknown authority',
      'right',
      () => ({}),
      'not signed by a certificate authority that this machine trusts',
      'NODE_EXTRA_CA_CERTS',
    ],
    ['for another host', 'other', trusting, 'is for another host', 'check the base URL'],
    ['expired', 'old', trusting, 'has expired', "check this machine's clock"],
  ])(
    'a service whose certificate is %s gets no request, and the error names the reason',
    async (_what, name, env, why, hint) => {
      const { url, requests } = await serve(name)
      const ended = await grants(createWorld(), url, env())
      expect(ended.code).toBe(7)
      expect(errorOf(ended)).toMatchObject({
        message: expect.stringContaining(why),
        hint: expect.stringContaining(hint),
      })
      expect(ended.stderr).not.toContain(KEY)
      expect(requests).toEqual([])
    },
  )

  test('with NODE_TLS_REJECT_UNAUTHORIZED=0, `grants list` and `doctor` warn that certificates are not checked', async () => {
    const { url } = await serve('old')
    const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0' }
    const warning = /^warning: whoever answers gets the credential: .*NODE_TLS_REJECT_UNAUTHORIZED=0\)$/m
    expect(await grants(createWorld(), url, env)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(warning),
    })
    const doctor = await createWorld().run(['doctor'], { env: { ...env, MAILCLAIM_BASE_URL: url } })
    expect(doctor.stderr).toMatch(warning)
    expect(doctor.stdout).toMatch(/network\twarning\t.*its certificate is not checked/)
  })

  test('the error for an invalid proxy certificate names the proxy, not the service', async () => {
    const { named, requests } = await serve('right')
    const proxy = await startProxy(pair('other'))
    const ended = await grants(createWorld(), named, { ...trusting(), HTTPS_PROXY: proxy.url })
    expect(ended.code).toBe(7)
    expect(errorOf(ended)).toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('the certificate of the proxy is for another host'),
    })
    expect([...requests, ...proxy.seen]).toEqual([])
  })

  test('when a TLS 1.3 server demands a client certificate, the error says that the request may have been processed', async () => {
    const { url } = await serve('right', { requestCert: true, minVersion: 'TLSv1.3' })
    const env = { MAILCLAIM_BASE_URL: url, MAILCLAIM_API_KEY: KEY, ...trusting() }
    const ended = await createWorld().run(['claims', 'create', 'example.com', '--json'], { env })
    expect(ended.code).toBe(7)
    expect(errorOf(ended)).toMatchObject({
      code: 'unreachable',
      hint: expect.stringContaining('may have acted'),
    })
  })

  test.each([
    ['1.1', (relay: RequestListener) => createTlsServer(pair('right'), relay)],
    ['2.0', (relay: unknown) => createHttp2Server(pair('right'), relay as () => void)],
  ])(
    'DNS over HTTPS works through HTTPS_PROXY with a resolver that speaks only HTTP/%s',
    async (version, create) => {
      const world = await createServedWorld()
      const [address = '', port] = world.service.dns.split(':')
      const upstream = { address, port: Number(port) }
      const versions = new Set<string>()
      const server = create((request, response) => {
        versions.add(request.httpVersion)
        request.on('data', async (message: Buffer) => {
          response.setHeader('content-type', 'application/dns-message')
          const exchange = { server: upstream, message, timeoutMs: 5000, accept: () => true }
          response.end(await createDnsNetwork().udp(exchange))
        })
      })
      const resolver = `https://service.example:${await listen(server)}/dns-query`
      await world.control('PUT', 'dns/example.com/TXT', { values: ['prefix=token'] })
      const proxy = await startProxy(pair('right'))
      const line = `claims check example.com --value prefix=token --resolver ${resolver} --json`
      const ended = await world.run(line.split(' '), { env: { ...trusting(), HTTPS_PROXY: proxy.url } })
      expect(JSON.parse(ended.stdout)).toMatchObject({ resolvers: [{ address: resolver, outcome: 'match' }] })
      expect([...versions]).toEqual([version])
      expect(new Set(proxy.seen)).toEqual(new Set([`CONNECT ${new URL(resolver).host}`]))
    },
  )
})
