import { request } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type CallbackPage, SIGNED_IN_PAGE, startCallbackServer } from '../../src/oauth/callback-server.ts'
import { parseRedirectUri } from '../../src/oauth/redirect.ts'
import { axeViolations, launchChromium } from '../chromium.ts'
import { needs } from '../requirements.ts'

const STATE = 'the-right-state'

async function listen(options: { uri?: string; page?: CallbackPage } = {}) {
  const endpoint = parseRedirectUri(options.uri)
  const received: URLSearchParams[] = []
  const server = await startCallbackServer({
    endpoint,
    state: STATE,
    receive(parameters, respond) {
      received.push(parameters)
      void respond(options.page ?? SIGNED_IN_PAGE)
      return undefined
    },
  })
  onTestFinished(() => server.close())
  const url = new URL(server.redirectUri)
  return { server, received, port: Number(url.port), url }
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

const right = (url: URL) => new URL(`${url.href}?code=abc&state=${STATE}`)

describe('the callback server', () => {
  const wrong: readonly [
    string,
    { method?: string; path?: (url: URL) => string; headers?: (url: URL) => Record<string, string> },
    number,
  ][] = [
    ['another method', { method: 'POST' }, 405],
    ['another path', { path: () => `/other?code=abc&state=${STATE}` }, 404],
    [
      'a path that only begins like the right one',
      { path: () => `/callback/x?code=abc&state=${STATE}` },
      404,
    ],
    ['an absolute-form target', { path: (url) => `${url.origin}/callback?code=abc&state=${STATE}` }, 404],
    [
      'another Host, as after DNS rebinding',
      { headers: (url) => ({ host: `evil.example:${url.port}` }) },
      421,
    ],
    ['the Host without its port', { headers: () => ({ host: '127.0.0.1' }) }, 421],
    ['a Sec-Purpose prefetch', { headers: (url) => ({ host: url.host, 'sec-purpose': 'prefetch' }) }, 503],
    ['an X-Moz prefetch', { headers: (url) => ({ host: url.host, 'x-moz': 'prefetch' }) }, 503],
    ['no state', { path: () => '/callback?code=abc' }, 400],
    ['a wrong state', { path: () => '/callback?code=abc&state=wrong' }, 400],
    ['the state twice', { path: () => `/callback?code=abc&state=${STATE}&state=${STATE}` }, 400],
  ]
  it.each(wrong)(
    'the callback server refuses a request with %s, and then accepts the right redirect',
    async (_what, attack, status) => {
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
    },
  )

  it('the callback server refuses a second redirect with another code', async () => {
    const { url, received } = await listen()
    await send(right(url))
    const second = await send(new URL(`${url.href}?code=other&state=${STATE}`))
    expect(second.status).toBe(400)
    expect(second.body).toContain('Already answered')
    expect(received).toHaveLength(1)
  })

  it('the callback server shows the "signed in" page again when the browser reloads the redirect', async () => {
    const { url, received } = await listen()
    for (const answer of [await send(right(url)), await send(right(url))])
      expect([answer.status, answer.body]).toEqual([200, expect.stringContaining(SIGNED_IN_PAGE.title)])
    expect(received).toHaveLength(1)
  })

  it("the callback page for a wrong Host header tells the user to paste the page's address into the terminal", async () => {
    const { url } = await listen()
    const { body } = await send(right(url), { headers: { host: `localhost:${url.port}` } })
    expect(body).toMatch(/Copy the address of this page, and paste it/)
  })

  it('the callback server accepts the redirect at host, port and path of a given redirect URI', async () => {
    const { server: other, port } = await listen()
    await other.close()
    const uri = `http://localhost:${port}/cb/here`
    const { server, url, received } = await listen({ uri })
    expect(server.redirectUri).toBe(uri)
    const answer = await send(new URL(`http://127.0.0.1:${url.port}/cb/here?code=abc&state=${STATE}`), {
      headers: { host: `localhost:${url.port}` },
    })
    expect(answer.status).toBe(200)
    expect(received).toHaveLength(1)
  })

  it('the callback server fails to start with `cannot_listen`, exit 1, if its port is in use', async () => {
    const { port } = await listen()
    await expect(listen({ uri: `http://127.0.0.1:${port}/callback` })).rejects.toMatchObject({
      code: 'cannot_listen',
      exit: 1,
    })
  })

  it('closing the callback server also closes the connection of an idle client', async () => {
    const { server, port } = await listen()
    const idle = connect(port, '127.0.0.1')
    await new Promise((resolve) => idle.once('connect', resolve))
    const closed = new Promise((resolve) => idle.once('close', resolve))
    idle.on('error', () => {})
    await server.close()
    await closed
  })
})

const PAGES: readonly CallbackPage[] = [
  { status: 200, title: 'You are signed in', text: 'The session is stored.' },
  {
    status: 400,
    title: 'You are not signed in',
    text: `<b>access_denied</b> & a word that no line can hold: ${'x'.repeat(300)}`,
  },
]

describe.runIf(needs('chromium'))('the page at the end of the redirect', () => {
  const cases = PAGES.flatMap((page) =>
    (['light', 'dark'] as const).map((colorScheme) => ({ page, colorScheme, title: page.title })),
  )
  it.each(cases)(
    'the callback page ($title) has a $colorScheme background in the $colorScheme color scheme, passes the axe checks and fits a width of 360 pixels',
    async (shown) => {
      const { url } = await listen({ page: shown.page })
      const browser = await launchChromium()
      onTestFinished(() => browser.close())
      const page = await browser.newPage({
        colorScheme: shown.colorScheme,
        viewport: { width: 360, height: 740 },
        bypassCSP: true,
      })
      await page.goto(right(url).href)
      expect(await page.getByRole('heading').textContent()).toBe(shown.page.title)
      expect(await page.locator('main').textContent()).toContain(shown.page.text)
      expect(await axeViolations(page)).toEqual([])
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
      const [red] =
        (await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')).match(/\d+/g) ?? []
      expect(Number(red) < 128).toBe(shown.colorScheme === 'dark')
    },
  )
})
