import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { axeViolations, launchChromium } from '../chromium.ts'
import { needs } from '../requirements.ts'
import { sandboxForTest } from './start-sandbox.ts'
import { api, authorizationParameters, codeFields, control, token } from './talk.ts'

const authorizeUrl = (sandbox: Sandbox, changes: Readonly<Record<string, string>> = {}) =>
  `${sandbox.baseUrl}/oauth/authorize?${new URLSearchParams({ ...authorizationParameters(sandbox), ...changes })}`

const MARKUP = `"><img src=x onerror="document.title='ran'"><script>document.title='ran'</script>`

describe('the pages as text', () => {
  test('the pages load nothing, run nothing, and cannot be framed or stored', async () => {
    const sandbox = await sandboxForTest()
    for (const url of [
      authorizeUrl(sandbox),
      `${sandbox.baseUrl}/_sandbox/dns`,
      `${sandbox.baseUrl}/oauth/authorize`,
    ]) {
      const response = await fetch(url)
      const policy = response.headers.get('content-security-policy')
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toContain('unsafe')
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      expect(response.headers.get('cache-control')).toBe('no-store')
      const html = await response.text()
      expect(html).not.toMatch(/<script|<link|<img|\bon[a-z]+=|@import|url\(/)
    }
  })

  test('the consent page shows client, account, scopes and resource, all escaped', async () => {
    const sandbox = await sandboxForTest()
    const client = await control(sandbox, 'POST', '/clients', {
      name: MARKUP,
      scopes: ['emails:send', '<b>'],
    })
    const resource = 'https://api.example/?a=<script>'
    const response = await fetch(authorizeUrl(sandbox, { client_id: String(client.body['id']), resource }))
    const html = await response.text()
    expect(response.status).toBe(200)
    expect(html).not.toMatch(/<script|<img|<b>/)
    expect(html).toContain('&lt;script&gt;')
    for (const text of ['emails:send', 'owner@sandbox.example', 'Approve', 'Deny'])
      expect(html).toContain(text)
  })

  test('the DNS page shows the records of a zone escaped, with invisible characters made visible', async () => {
    const sandbox = await sandboxForTest()
    await control(sandbox, 'PUT', '/dns/example.com/TXT', [MARKUP, 'end\u00a0 '])
    const html = await (await fetch(`${sandbox.baseUrl}/_sandbox/dns`)).text()
    expect(html).not.toMatch(/<script|<img/)
    expect(html).toContain('&quot;end\\194\\160 &quot;')
  })
})

describe('requests from another website', () => {
  const CHANGES: readonly (readonly [string, string])[] = [
    ['POST', '/_sandbox/clock'],
    ['POST', '/_sandbox/faults'],
    ['DELETE', '/_sandbox/faults'],
    ['PUT', '/_sandbox/dns/example.com/TXT'],
    ['POST', '/_sandbox/dns'],
    ['POST', '/_sandbox/sessions'],
    ['POST', '/oauth/authorize'],
  ]

  test.each(CHANGES)('%s %s from another site is refused', async (method, path) => {
    const sandbox = await sandboxForTest()
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', origin: sandbox.baseUrl },
    ] as Record<string, string>[]) {
      const response = await fetch(`${sandbox.baseUrl}${path}`, { method, headers })
      expect([response.status, await response.json()]).toMatchObject([403, { name: 'cross_site_request' }])
    }
  })

  test.each([
    '/%5fsandbox/clock',
    '/%5Fsandbox/%63lock',
    '/_sandbox/./clock',
    '/./_sandbox/clock',
    '/x/../_sandbox/clock',
    '/x/%2e%2e/_sandbox/clock',
    '//_sandbox/clock',
    '/_sandbox//clock',
    '\\_sandbox\\clock',
    'http://HOST/_sandbox/clock',
    'http://HOST/%5fsandbox/clock',
    '/%255fsandbox/clock',
  ])('a request from another site to the path %s does not move the clock', async (path) => {
    const sandbox = await sandboxForTest()
    const { host, port } = new URL(sandbox.baseUrl)
    const response = await new Promise<IncomingMessage>((done, fail) => {
      request({
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: path.replace('HOST', host),
        headers: { 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain' },
      })
        .on('error', fail)
        .on('response', done)
        .end('{"advance_seconds":864000}')
    })
    response.resume()
    expect([400, 403, 404]).toContain(response.statusCode)
    const { body } = await control(sandbox, 'GET', '/state')
    expect(Date.parse(String(body['now'])) - Date.parse(String(body['started_at']))).toBeLessThan(3_600_000)
  })

  test.each(['evil.example', '127.0.0.1', '127.0.0.1:1', '127.0.0.1.evil.example'])(
    'a request under the host name %s is refused',
    async (host) => {
      const sandbox = await sandboxForTest()
      for (const path of ['/_sandbox/state', '/_sandbox/dns', '/oauth/authorize', '/oauth/grants']) {
        const status = await new Promise((done, fail) => {
          request(`${sandbox.baseUrl}${path}`, { headers: { host } }, (response) => {
            response.resume()
            done(response.statusCode)
          })
            .on('error', fail)
            .end()
        })
        expect(status).toBe(421)
      }
    },
  )

  test('an approval without the ticket of the page, or with a used one, is refused', async () => {
    const sandbox = await sandboxForTest()
    const html = await (await fetch(authorizeUrl(sandbox))).text()
    const ticket = /name="ticket" value="([^"]+)"/.exec(html)?.[1] ?? ''
    const approve = (value: string) =>
      fetch(`${sandbox.baseUrl}/oauth/authorize`, {
        method: 'POST',
        redirect: 'manual',
        body: new URLSearchParams({ ticket: value, decision: 'approve' }),
      })
    expect((await approve('guessed')).status).toBe(400)
    expect((await approve(ticket)).status).toBe(303)
    expect((await approve(ticket)).status).toBe(400)
  })
})

describe.runIf(needs('chromium'))('the pages in Chromium', () => {
  let browser: Browser
  let callback: Server
  let received: URL[] = []

  beforeAll(async () => {
    browser = await launchChromium()
    callback = createServer((request, response) => {
      received.push(new URL(request.url ?? '/', 'http://127.0.0.1'))
      response.end('back')
    })
    await new Promise<void>((done) => callback.listen(0, '127.0.0.1', done))
  })
  afterEach(async () => {
    received = []
    for (const context of browser.contexts()) await context.close()
  })
  afterAll(async () => {
    await browser.close()
    callback.closeAllConnections()
    callback.close()
  })

  const redirectUri = () => `http://127.0.0.1:${(callback.address() as AddressInfo).port}/callback`

  async function open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext(options)
    const page = await context.newPage()
    page.on('pageerror', (error) => expect.unreachable(String(error)))
    await page.goto(url)
    return page
  }

  async function furnished(): Promise<Sandbox> {
    const sandbox = await sandboxForTest()
    await api(sandbox, 'POST', '/domains/claim', { body: { name: 'mail.example.com' } })
    await control(sandbox, 'POST', '/claims/mail.example.com/publish', { mistake: 'stale_beside_right' })
    return sandbox
  }

  describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
    test.each([
      { page: 'consent', url: (sandbox: Sandbox) => authorizeUrl(sandbox) },
      { page: 'refusal', url: (sandbox: Sandbox) => `${sandbox.baseUrl}/oauth/authorize` },
      { page: 'DNS', url: (sandbox: Sandbox) => `${sandbox.baseUrl}/_sandbox/dns?done=published` },
    ])('the $page page has no violation that axe finds, and fits 360 pixels', async ({ url }) => {
      const sandbox = await furnished()
      const page = await open(url(sandbox), {
        colorScheme,
        viewport: { width: 360, height: 740 },
        bypassCSP: true,
      })
      expect(await axeViolations(page)).toEqual([])
      const width = await page.evaluate<number>('document.documentElement.scrollWidth')
      expect(width).toBeLessThanOrEqual(360)
    })

    test('the pages use the colors of the scheme', async () => {
      const sandbox = await sandboxForTest()
      const page = await open(authorizeUrl(sandbox), { colorScheme })
      const paper = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
      expect(paper).toBe(colorScheme === 'light' ? 'rgb(244, 246, 247)' : 'rgb(17, 19, 21)')
    })
  })

  test('Approve by keyboard alone leads back with a code that works', async () => {
    const sandbox = await sandboxForTest()
    const page = await open(authorizeUrl(sandbox, { redirect_uri: redirectUri() }))
    await page.keyboard.press('Tab')
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('Approve')
    const outline = await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')
    expect(outline).toBe('solid')
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.pathname === '/callback')
    const target = received.find((url) => url.pathname === '/callback')
    expect(target?.searchParams.get('state')).toBe('state-1')
    const fields = {
      ...codeFields(sandbox, target?.searchParams.get('code') ?? ''),
      redirect_uri: redirectUri(),
    }
    expect((await token(sandbox, 'form', fields)).status).toBe(200)
  })

  test('Deny leads back with access_denied', async () => {
    const sandbox = await sandboxForTest()
    const page = await open(authorizeUrl(sandbox, { redirect_uri: redirectUri() }))
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.waitForURL((url) => url.pathname === '/callback')
    // A browser also asks for an icon, and not always after the page.
    const callbacks = received.filter((url) => url.pathname === '/callback')
    expect(callbacks.map((url) => url.searchParams.get('error'))).toEqual(['access_denied'])
    expect(callbacks[0]?.searchParams.has('code')).toBe(false)
  })

  test('markup in the name of a client does not run', async () => {
    const sandbox = await sandboxForTest()
    const client = await control(sandbox, 'POST', '/clients', { name: MARKUP })
    const page = await open(authorizeUrl(sandbox, { client_id: String(client.body['id']) }))
    expect(await page.title()).toContain('Allow "><img')
    expect(await page.locator('img, script').count()).toBe(0)
  })

  test('a record is added and deleted by keyboard', async () => {
    const sandbox = await sandboxForTest()
    const page = await open(`${sandbox.baseUrl}/_sandbox/dns`)
    const zone = page.getByRole('region', { name: 'example.com' })
    await zone.getByLabel('Name').focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.type('prefix=Token "quoted"')
    await page.keyboard.press('Enter')
    await page.getByRole('status').waitFor()
    expect((await control(sandbox, 'GET', '/dns/example.com/TXT')).body['values']).toEqual([
      'prefix=Token "quoted"',
    ])
    await zone.getByRole('button', { name: /^Delete TXT example\.com/ }).press('Enter')
    await page.getByText('The record was deleted.').waitFor()
    expect((await control(sandbox, 'GET', '/dns/example.com/TXT')).status).toBe(404)
  })

  test('a full name in the name field becomes a doubled name, as with most providers', async () => {
    const sandbox = await sandboxForTest()
    const page = await open(`${sandbox.baseUrl}/_sandbox/dns`)
    const zone = page.getByRole('region', { name: 'example.com' })
    await zone.getByLabel('Name').fill('example.com')
    await zone.getByLabel('Value').fill('one')
    await zone.getByRole('button', { name: 'Add record' }).click()
    await page.getByRole('status').waitFor()
    expect((await control(sandbox, 'GET', '/dns/example.com.example.com/TXT')).body['values']).toEqual([
      'one',
    ])
  })

  test('a mistake is planted from the menu, and a bad record is refused with a reason', async () => {
    const sandbox = await furnished()
    const page = await open(`${sandbox.baseUrl}/_sandbox/dns`)
    await page.getByLabel(/plant a mistake/).selectOption({ label: 'Quotes typed into the value' })
    await page.getByRole('button', { name: 'Publish' }).click()
    await page.getByRole('status').waitFor()
    const { values } = (await control(sandbox, 'GET', '/dns/mail.example.com/TXT')).body as {
      values: string[]
    }
    expect(values).toEqual([expect.stringMatching(/^"sandbox-.*"$/)])

    const zone = page.getByRole('region', { name: 'example.com' })
    await zone.getByLabel('Type').selectOption('A')
    await zone.getByLabel('Value').fill('not an address')
    await zone.getByRole('button', { name: 'Add record' }).click()
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('type A')
  })
})
