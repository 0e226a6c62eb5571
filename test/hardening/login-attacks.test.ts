import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { profileFiles, readSession } from '../../src/session/session-file.ts'
import { launchChromium } from '../chromium.ts'
import { needs } from '../requirements.ts'
import { run } from '../run.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import { withEffects } from '../session/sandbox-session.ts'
import { type Client, createClient, harmfulIn } from './in-process-client.ts'

interface Login {
  readonly client: Client
  readonly sandbox: Sandbox
  /** The URL of the login's callback listener, without a query. */
  readonly callback: URL
  readonly state: string
  /** The genuine authorization response: the redirect's URL with code, state and iss. */
  readonly answer: URL
  readonly ended: Promise<number>
  readonly stderr: () => string
}

/** Starts a login in this process, up to the redirect of the approved request, which no browser has followed yet. */
async function startLogin(words: readonly string[] = []): Promise<Login> {
  const sandbox = await sandboxForTest({ autoApprove: true })
  const client = createClient(sandbox)
  let opened: (url: string) => void = () => {}
  const url = new Promise<string>((resolve) => {
    opened = resolve
  })
  const context = withEffects(client.context, {
    openBrowser: async (address) => opened(address),
    stdin: { ...client.context.stdin, isTTY: true },
  })
  const ended = run(['login', '--store', 'file', '--timeout', '3600', ...words], context)
  const redirect = await fetch(await url, { redirect: 'manual' })
  const answer = new URL(redirect.headers.get('location') ?? '')
  return {
    client,
    sandbox,
    answer,
    callback: new URL(answer.origin + answer.pathname),
    state: answer.searchParams.get('state') ?? '',
    ended,
    stderr: () => context.stderr.text,
  }
}

/** Returns path and query of the genuine callback with some parameters changed, or removed if undefined. */
function changed({ answer }: Login, changes: Readonly<Record<string, string | undefined>>): string {
  const url = new URL(answer)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) url.searchParams.delete(name)
    else url.searchParams.set(name, value)
  }
  return url.pathname + url.search
}

/** Sends a request with this exact target, which isn't normalized by a URL parser. Resolves with the status. */
function hit(
  login: Login,
  target: string,
  options: { method?: string; headers?: Record<string, string | string[]> } = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port: login.callback.port,
        path: target,
        method: options.method ?? 'GET',
        headers: options.headers ?? {},
      },
      (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      },
    )
    sent.on('error', reject)
    sent.end()
  })
}

/** Sends raw bytes to the listener; resolves with the received text when the connection is closed. */
function raw(login: Login, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(Number(login.callback.port), '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (piece) => {
      text += piece
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(text))
  })
}

/** Follows the genuine redirect, and checks that the login succeeds. */
async function expectSignedIn(login: Login): Promise<void> {
  const page = await fetch(login.answer)
  expect(page.status).toBe(200)
  expect(await page.text()).toContain('You are signed in')
  expect(await login.ended, login.stderr()).toBe(0)
  const { context } = login.client
  expect(readSession(profileFiles(context, 'default'))?.session).toMatchObject({
    kind: 'session',
    service: login.sandbox.baseUrl,
  })
  expect(harmfulIn(login.stderr())).toEqual([])
}

const q = (login: Login) => login.answer.search

describe('a waiting login', () => {
  const attacks: readonly [string, (login: Login) => Promise<unknown>, unknown][] = [
    ['a state that is not text', (l) => hit(l, changed(l, { state: '\u0000\ufffd' })), 400],
    ['the code twice', (l) => hit(l, `${changed(l, {})}&code=other`), 400],
    ['two issuers', (l) => hit(l, `${changed(l, {})}&iss=https://evil.example`), 400],
    ['an empty code', (l) => hit(l, changed(l, { code: '' })), 400],
    [
      'an issuer that only begins like the right one',
      (l) => hit(l, changed(l, { iss: `${l.sandbox.baseUrl}.evil.example` })),
      400,
    ],
    ['OPTIONS, the CORS preflight of a page', (l) => hit(l, changed(l, {}), { method: 'OPTIONS' }), 405],
    ['a path that is the same when decoded', (l) => hit(l, `/%63allback${q(l)}`), 404],
    ['a path with dots', (l) => hit(l, `/x/../callback${q(l)}`), 404],
    [
      'a Host that only begins like the right one',
      (l) => hit(l, changed(l, {}), { headers: { host: `127.0.0.1.evil.example:${l.callback.port}` } }),
      421,
    ],
    [
      'two Hosts',
      (l) =>
        raw(
          l,
          `GET ${changed(l, {})} HTTP/1.1\r\nHost: 127.0.0.1:${l.callback.port}\r\nHost: evil.example\r\n\r\n`,
        ),
      expect.stringMatching(/^HTTP\/1\.1 4\d\d/),
    ],
    [
      'no Host',
      (l) => raw(l, `GET ${changed(l, {})} HTTP/1.0\r\n\r\n`),
      expect.stringMatching(/^HTTP\/1\.1 4\d\d/),
    ],
    [
      '1,000 headers',
      (l) => raw(l, `GET / HTTP/1.1\r\n${'X: y\r\n'.repeat(1000)}\r\n`),
      expect.stringMatching(/^HTTP\/1\.1 4\d\d/),
    ],
    [
      'two requests in one body (smuggling)',
      (l) =>
        raw(
          l,
          `POST /callback HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET ${changed(l, {})} HTTP/1.1\r\nHost: 127.0.0.1:${l.callback.port}\r\n\r\n`,
        ),
      expect.stringMatching(/^HTTP\/1\.1 4\d\d/),
    ],
    ['TLS', (l) => raw(l, Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3])), expect.anything()],
    [
      'a body that never ends',
      async (l) => hit(l, '/callback', { method: 'POST', headers: { 'transfer-encoding': 'chunked' } }),
      405,
    ],
  ]

  test('the callback listener of a login rejects malformed and forged requests, and then accepts the genuine redirect', async () => {
    const login = await startLogin()
    for (const [what, attack, status] of attacks) expect(await attack(login), what).toEqual(status)
    expect(existsSync(profileFiles(login.client.context, 'default').session)).toBe(false)
    await expectSignedIn(login)
  })

  test('a login succeeds despite 50 unfinished connections and 200 forged requests to its callback listener', async () => {
    const login = await startLogin()
    const slow: Socket[] = []
    onTestFinished(() => {
      for (const socket of slow) socket.destroy()
    })
    for (let count = 0; count < 50; count++) {
      const socket = connect(Number(login.callback.port), '127.0.0.1', () => socket.write('GET /callback?co'))
      socket.on('error', () => {})
      slow.push(socket)
    }
    const wrong = await Promise.all(
      Array.from({ length: 200 }, () => hit(login, changed(login, { state: 'x' }))),
    )
    expect(new Set(wrong)).toEqual(new Set([400]))
    await expectSignedIn(login)
    // The login has ended and closed its listener, although the 50 connections are still open.
    await expect(hit(login, '/callback')).rejects.toThrow(/ECONNREFUSED|ECONNRESET/)
  })

  test('the response of the callback listener to a forged request has no CORS, cookie or server header', async () => {
    const login = await startLogin()
    const page = await fetch(`${login.callback.href}?state=x`, {
      headers: { origin: 'https://evil.example' },
    })
    for (const header of ['access-control-allow-origin', 'set-cookie', 'server', 'x-powered-by']) {
      expect(page.headers.get(header)).toBeNull()
    }
    expect(login.callback.hostname).toBe('127.0.0.1')
    await expectSignedIn(login)
  })
})

const MARKUP = [
  '<script>document.title="owned"</script>',
  '"><img src=x onerror="document.title=\'owned\'">',
  '</title><script>document.title="owned"</script>',
  '</style><svg onload="document.title=\'owned\'">',
  '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
  '<base href="https://evil.example/"><a href="x">x</a>',
  '<iframe srcdoc="<script>parent.document.title=\'owned\'</script>">',
  'javascript:document.title="owned"',
  '{{7*7}}$ {7*7}\u0000\u2028',
]

describe.runIf(needs('chromium'))('the callback page in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser.close())

  test('the callback page runs no script and loads nothing, although its parameters contain markup', async () => {
    const login = await startLogin()
    const page = await browser.newPage()
    const asked: string[] = []
    page.on('request', (one) => asked.push(one.url()))
    page.on('dialog', (dialog) => {
      asked.push(`dialog ${dialog.message()}`)
      void dialog.dismiss()
    })
    for (const markup of MARKUP) {
      const parameters = ['code', 'state', 'iss', 'error', 'error_description', 'error_uri', 'scope', markup]
      const everywhere = new URLSearchParams(parameters.map((name): [string, string] => [name, markup]))
      // The second target has the right state, so that its error page names the wrong parameter.
      const targets = [
        `?${everywhere}`,
        `${changed(login, { iss: markup }).replace(/^[^?]*/, '')}`,
        `/${encodeURIComponent(markup)}?${everywhere}`,
      ]
      for (const target of targets) {
        const before = asked.length
        await page.goto(login.callback.href + target)
        expect(await page.title()).toMatch(/ · mailclaim$/)
        expect(await page.locator('script, img, svg, iframe, base, meta[http-equiv], a, form').count()).toBe(
          0,
        )
        expect(await page.evaluate('document.title')).not.toContain('owned')
        expect(asked.slice(before).filter((url) => !url.endsWith('/favicon.ico'))).toHaveLength(1)
      }
    }
    await expectSignedIn(login)
  })
})
