import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { axeViolations, launchChromium } from '../chromium.ts'
import { needs } from '../requirements.ts'
import { sandboxForTest } from './start-sandbox.ts'
import { advance, api, authorizationParameters, codeFields, control, token } from './talk.ts'

const authorizeUrl = (sandbox: Sandbox, changes: Readonly<Record<string, string>> = {}) =>
  `${sandbox.baseUrl}/oauth/authorize?${new URLSearchParams({ ...authorizationParameters(sandbox), ...changes })}`

test('the headers of the sandbox pages forbid loading resources, running scripts, framing and caching', async () => {
  const sandbox = await sandboxForTest()
  const resource = 'https://api.example/?a="><script>'
  for (const url of [
    authorizeUrl(sandbox, { resource }),
    `${sandbox.baseUrl}/oauth/authorize`,
    `${sandbox.baseUrl}/_sandbox/dns`,
  ]) {
    const response = await fetch(url)
    const policy = response.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await response.text()).not.toMatch(/<script|<link|<img|\bon[a-z]+=|@import|url\(/)
  }
})

/** Sends a request with any Host and Origin header, which `fetch` doesn't allow. */
function rawRequest(
  sandbox: Sandbox,
  options: { path: string; method?: string; headers: object },
): Promise<number> {
  const { port, host } = new URL(sandbox.baseUrl)
  const headers = { host, ...options.headers }
  return new Promise((done, fail) => {
    request({ host: '127.0.0.1', port, ...options, headers }, (response) => {
      response.resume()
      done(response.statusCode ?? 0)
    })
      .on('error', fail)
      .end(options.method === 'POST' ? '{"advance_seconds":864000}' : undefined)
  })
}

describe('requests from another website', () => {
  const FORM = 'application/x-www-form-urlencoded'

  test.each([
    { origin: 'https://evil.example', 'content-type': FORM },
    { origin: 'null', 'content-type': 'text/plain' },
    { 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain' },
    { 'sec-fetch-site': 'cross-site' },
  ])('the sandbox rejects a cross-site POST (headers %j), and its clock does not move', async (headers) => {
    const sandbox = await sandboxForTest()
    const before = Date.now()
    const paths = ['clock', 'faults', 'dns', 'sessions', 'claims/x/outcome'].map(
      (name) => `/_sandbox/${name}`,
    )
    for (const path of [...paths, '/oauth/authorize'])
      expect(await rawRequest(sandbox, { method: 'POST', path, headers })).toBe(403)
    for (const path of [
      '/%5fsandbox/clock',
      '/%5Fsandbox/%63lock',
      '/x/%2e%2e/_sandbox/clock',
      '//_sandbox/clock',
      '\\_sandbox\\clock',
      `${sandbox.baseUrl}/%5fsandbox/clock`,
    ])
      expect([400, 403, 404]).toContain(await rawRequest(sandbox, { method: 'POST', path, headers }))
    const { now } = (await control(sandbox, 'GET', '/state')).body
    expect(Date.parse(`${String(now)}:00`) - before).toBeLessThan(3_600_000)
  })

  test.each(['evil.example', '127.0.0.1', '127.0.0.1:1', '127.0.0.1.evil.example'])(
    'the sandbox answers a request with the Host header %s with status 421',
    async (host) => {
      const sandbox = await sandboxForTest()
      for (const path of [
        '/_sandbox/state',
        '/_sandbox/dns',
        '/oauth/authorize',
        '/oauth/grants',
        '/oauth/token',
      ])
        expect(await rawRequest(sandbox, { path, headers: { host } })).toBe(421)
    },
  )

  test('the sandbox refuses an approval whose consent page ticket is guessed, used or ten minutes old with status 400', async () => {
    const sandbox = await sandboxForTest()
    const ticketOf = async () =>
      /name="ticket" value="([^"]+)"/.exec(await (await fetch(authorizeUrl(sandbox))).text())?.[1]
    const approve = async (ticket = '') => {
      const body = new URLSearchParams({ ticket, decision: 'approve' })
      return (await fetch(`${sandbox.baseUrl}/oauth/authorize`, { method: 'POST', redirect: 'manual', body }))
        .status
    }
    const [ticket, late] = [await ticketOf(), await ticketOf()]
    expect([await approve('guessed'), await approve(ticket), await approve(ticket)]).toEqual([400, 303, 400])
    await advance(sandbox, 600)
    expect(await approve(late)).toBe(400)
  })
})

describe.runIf(needs('chromium'))('the pages in Chromium', () => {
  let browser: Browser
  let callback: Server
  beforeAll(async () => {
    browser = await launchChromium()
    callback = createServer((_request, response) => response.end('back'))
    await new Promise<void>((done) => callback.listen(0, '127.0.0.1', done))
  })
  afterAll(async () => {
    await browser.close()
    callback.closeAllConnections()
    callback.close()
  })

  const redirectUri = () => `http://127.0.0.1:${(callback.address() as AddressInfo).port}/callback`

  async function open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
    const page = await (await browser.newContext(options)).newPage()
    page.on('pageerror', (error) => expect.unreachable(String(error)))
    await page.goto(url)
    return page
  }

  async function withClaim(): Promise<Sandbox> {
    const sandbox = await sandboxForTest()
    await api(sandbox, 'POST', '/domains/claim', { body: { name: 'mail.example.com' } })
    return sandbox
  }

  test.each([
    ['consent', 'light', authorizeUrl],
    ['consent', 'dark', authorizeUrl],
    ['refusal', 'light', ({ baseUrl }: Sandbox) => `${baseUrl}/oauth/authorize`],
    ['DNS', 'light', ({ baseUrl }: Sandbox) => `${baseUrl}/_sandbox/dns?done`],
    ['DNS', 'dark', ({ baseUrl }: Sandbox) => `${baseUrl}/_sandbox/dns?done`],
  ] as const)(
    'the %s page in %s mode has no accessibility violation (axe), and fits into 360 pixels',
    async (_page, colorScheme, url) => {
      const sandbox = await withClaim()
      const page = await open(url(sandbox), {
        colorScheme,
        viewport: { width: 360, height: 740 },
        bypassCSP: true,
      })
      expect(await axeViolations(page)).toEqual([])
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
      const paper = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
      expect(paper).toBe(colorScheme === 'light' ? 'rgb(244, 246, 247)' : 'rgb(17, 19, 21)')
    },
  )

  test('the Approve button of the consent page works by keyboard, and redirects with a valid code', async () => {
    const sandbox = await sandboxForTest()
    const page = await open(authorizeUrl(sandbox, { redirect_uri: redirectUri() }))
    await page.keyboard.press('Tab')
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('Approve')
    expect(await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid')
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.pathname === '/callback')
    const { searchParams } = new URL(page.url())
    expect(searchParams.get('state')).toBe('state-1')
    const fields = { ...codeFields(sandbox, searchParams.get('code') ?? ''), redirect_uri: redirectUri() }
    expect((await token(sandbox, 'form', fields)).status).toBe(200)
  })

  test('the Deny button on the consent page of the sandbox redirects with the error access_denied', async () => {
    const sandbox = await sandboxForTest()
    const page = await open(authorizeUrl(sandbox, { redirect_uri: redirectUri() }))
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.waitForURL((url) => url.pathname === '/callback')
    const { searchParams } = new URL(page.url())
    expect([searchParams.get('error'), searchParams.has('code')]).toEqual(['access_denied', false])
  })

  test('the form of the sandbox page /_sandbox/dns publishes a TXT record at the name of a claim', async () => {
    const sandbox = await withClaim()
    const page = await open(`${sandbox.baseUrl}/_sandbox/dns`)
    await page.getByLabel(/plant a mistake/).selectOption({ label: 'Quotation marks typed into the value' })
    await page.getByRole('button', { name: 'Publish' }).click()
    await page.getByRole('status').waitFor()
    expect((await control(sandbox, 'DELETE', '/dns/mail.example.com/TXT')).status).toBe(204)
  })
})
