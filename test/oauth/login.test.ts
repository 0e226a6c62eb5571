import { describe, expect, it } from 'vitest'
import { type HttpRequest, HttpTransportError } from '../../src/context.ts'
import { Exit } from '../../src/errors.ts'
import { type LoginOptions, loginInBrowser } from '../../src/oauth/login.ts'
import { parseRedirectUri } from '../../src/oauth/redirect.ts'
import type { CodeExchangeRequest } from '../../src/oauth/token-endpoint.ts'
import { createIo } from '../../src/terminal/io.ts'
import {
  createFakeClock,
  createFakeContext,
  type FakeClock,
  type FakeContextOptions,
  fakeSettings,
  jsonResponse,
  textResponse,
} from '../fake-context.ts'

const BASE = 'http://127.0.0.1:1'

/** Returns a clock whose sleeps of more than 2 seconds end only when the test calls `strike` or their signal aborts. */
function patientClock(): FakeClock & { strike(): void } {
  const clock = createFakeClock()
  let strike = () => {}
  return {
    ...clock,
    strike: () => strike(),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (ms <= 2000) return resolve()
        strike = resolve
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
      }),
  }
}

interface Begun {
  readonly metadata?: Record<string, unknown> | 'html'
  readonly exchange?: (code: CodeExchangeRequest) => Promise<string>
  readonly options?: Partial<LoginOptions>
  readonly context?: FakeContextOptions
  readonly made?: (context: ReturnType<typeof createFakeContext>) => void
}

/** Begins a login and waits for the URL of its authorization request. */
async function begin({
  metadata,
  exchange = async () => 'stored',
  options = {},
  context: more = {},
  made = () => {},
}: Begun = {}) {
  const clock = patientClock()
  const context = createFakeContext({
    clock,
    respond: () => {
      if (metadata === 'html') return textResponse(200, '<p>hello</p>')
      return metadata === undefined ? jsonResponse(404, {}) : jsonResponse(200, metadata)
    },
    ...more,
  })
  made(context)
  const ignored: string[] = []
  const received: CodeExchangeRequest[] = []
  let address = (_url: string) => {}
  const ready = new Promise<string>((resolve) => {
    address = resolve
  })
  const result = loginInBrowser(
    {
      scopes: [],
      resource: undefined,
      target: parseRedirectUri(undefined),
      openBrowser: true,
      readInput: true,
      timeoutMs: 300_000,
      authorizationEndpoint: undefined,
      issuer: undefined,
      ...options,
    },
    async (code) => {
      received.push(code)
      return exchange(code)
    },
    {
      ready: async (url) => address(url),
      browserFailed: async () => {},
      ignored: async (why) => {
        ignored.push(why)
      },
    },
    createIo(context, await fakeSettings(context)),
  ).then(async ({ result, closed }) => {
    await closed
    return result
  })
  result.catch(() => {})
  const url = new URL(await Promise.race([ready, result.then(() => '')]))
  const redirect = new URL(url.searchParams.get('redirect_uri') ?? '')
  const state = url.searchParams.get('state') ?? ''
  /** Requests the redirect URI as the browser would, with these parameters; by default, the state is right. */
  const come = async (parameters: Record<string, string>) => {
    const target = new URL(redirect)
    for (const [name, value] of Object.entries({ state, ...parameters })) target.searchParams.set(name, value)
    const response = await fetch(target)
    return { status: response.status, page: await response.text() }
  }
  return { context, clock, url, redirect, state, come, ignored, received, result }
}

describe('signing in', () => {
  it('a login opens an authorization URL with an S256 code challenge in the browser, and stops its callback server at the end', async () => {
    const { context, url, redirect, come, result, received } = await begin({
      options: { scopes: ['emails:send', 'domains:read'], resource: 'https://api.example/' },
    })
    expect(context.opened).toEqual([url.href])
    expect(url.href).toMatch(new RegExp(`^${BASE}/oauth/authorize\\?`))
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: 'code',
      client_id: 'client-1',
      code_challenge_method: 'S256',
      scope: 'emails:send domains:read',
      resource: 'https://api.example/',
    })
    expect(redirect.href).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
    expect((await come({ code: 'c1' })).page).toContain('You are signed in')
    await expect(result).resolves.toBe('stored')
    expect(received[0]).toMatchObject({ redirectUri: redirect.href, clientId: 'client-1' })
    expect(received[0]?.code).toBe('c1')
    // The URL doesn't contain the code verifier.
    expect(url.href).not.toContain(received[0]?.codeVerifier ?? '-')
    await expect(fetch(redirect)).rejects.toThrow()
  })

  it('the browser shows "signed in" only after the code exchange has stored the tokens', async () => {
    const order: string[] = []
    let store = () => {}
    const { come, result } = await begin({
      exchange: () =>
        new Promise((resolve) => {
          store = () => {
            order.push('stored')
            resolve('stored')
          }
        }),
    })
    const page = come({ code: 'c1' }).then(({ page }) => {
      order.push('page')
      return page
    })
    await expect.poll(() => store.toString()).toContain('stored')
    expect(order).toEqual([])
    store()
    expect(await page).toContain('You are signed in')
    await result
    expect(order).toEqual(['stored', 'page'])
  })

  it.each<[string, Record<string, string>, RegExp]>([
    ['another state', { state: 'x', code: 'c1' }, /./],
    ['neither code nor error', {}, /it has no code|code/],
    ['both code and error', { code: 'c1', error: 'access_denied' }, /more than one answer/],
    [
      'another issuer',
      { code: 'c1', iss: 'https://evil.example' },
      /the issuer https:\/\/evil\.example instead of http:\/\/127\.0\.0\.1:1 \(--issuer\)/,
    ],
    ['an error of another issuer', { error: 'access_denied', iss: 'https://evil.example' }, /the issuer/],
  ])('a login rejects a redirect with %s, and then accepts the right redirect', async (_what, wrong, why) => {
    const { come, ignored, received, result } = await begin()
    expect((await come(wrong)).status).toBeGreaterThanOrEqual(400)
    expect(received).toEqual([])
    if (!('state' in wrong)) expect(ignored).toEqual([expect.stringMatching(why)])
    expect((await come({ code: 'c1', iss: BASE })).page).toContain('You are signed in')
    await result
    expect(received).toHaveLength(1)
  })

  describe('metadata', () => {
    const published = {
      issuer: BASE,
      authorization_endpoint: `${BASE}/elsewhere`,
      token_endpoint: 'https://evil.example/token',
    }
    it("a login opens the authorization endpoint from the issuer's metadata", async () => {
      const { url, come, result } = await begin({ metadata: published })
      expect(url.pathname).toBe('/elsewhere')
      await come({ code: 'c1' })
      await result
    })

    it('a login rejects a redirect without `iss` if the metadata declare support for `iss` (RFC 9207)', async () => {
      const { come, ignored, result } = await begin({
        metadata: { ...published, authorization_response_iss_parameter_supported: true },
      })
      expect((await come({ code: 'c1' })).status).toBe(400)
      expect(ignored).toHaveLength(1)
      await come({ code: 'c1', iss: BASE })
      await expect(result).resolves.toBe('stored')
    })

    it.each<[string, Begun['metadata']]>([
      ['absent', undefined],
      ['HTML', 'html'],
      ['of another issuer', { ...published, issuer: 'https://evil.example' }],
      ['malformed', { issuer: 7 }],
    ])('a login opens the default authorization endpoint if the metadata are %s', async (_what, metadata) => {
      const { url, come, result } = await begin(metadata === undefined ? {} : { metadata })
      expect(url.pathname).toBe('/oauth/authorize')
      await come({ code: 'c1' })
      await result
    })

    it.each([
      'https://user:pass@api.example/authorize',
      'javascript:alert(1)',
      'http://api.example/authorize',
    ])('the authorization endpoint %s in metadata ends the login with exit 3', async (endpoint) => {
      const issuer = 'https://api.example'
      const begun = begin({ metadata: { issuer, authorization_endpoint: endpoint }, options: { issuer } })
      await expect(begun).rejects.toMatchObject({ code: 'authorization_endpoint_unusable', exit: 3 })
    })

    it.each([301, 302, 303, 307, 308])(
      'a login ends with exit 7 before the browser opens if the metadata URL and the token endpoint redirect with status %i',
      async (status) => {
        const respond = ({ url }: HttpRequest) =>
          textResponse(status, '', { location: `https://api.example.com${url.pathname}` })
        await expect(begin({ context: { respond } })).rejects.toMatchObject({
          code: 'redirected',
          exit: 7,
          message: expect.stringContaining(`(${status}) to https://api.example.com/oauth/token`),
          hint: expect.stringContaining('base URL'),
        })
      },
    )

    it('a login whose metadata request is redirected opens the default authorization endpoint if GET /oauth/token is not redirected', async () => {
      const respond = ({ url }: HttpRequest) =>
        url.pathname === '/oauth/token'
          ? textResponse(405, '')
          : textResponse(302, '', { location: '/login' })
      const { url, come, result } = await begin({ context: { respond } })
      expect(url.pathname).toBe('/oauth/authorize')
      await come({ code: 'c' })
      await result
    })

    it.each([
      ['connect', /check the base URL and the network/],
      ['untrusted', /NODE_EXTRA_CA_CERTS/],
      ['dated', /clock/],
      ['proxy', /HTTPS_PROXY/],
    ] as const)(
      'a login whose metadata request fails with the error kind `%s` fails before the browser opens, with a hint that matches %s',
      async (kind, hint) => {
        const respond = () => {
          throw new HttpTransportError(kind, 'no', 'the cause')
        }
        await expect(begin({ context: { respond } })).rejects.toMatchObject({
          code: 'unreachable',
          exit: 7,
          message: expect.stringContaining('the cause'),
          hint: expect.stringMatching(hint),
        })
      },
    )
  })

  describe('with --issuer', () => {
    const issuer = 'https://auth.example/tenant'
    const metadata = { issuer, authorization_endpoint: 'https://auth.example/page?x=1' }
    /** Returns a function that responds as the authorization server at `issuer` does, with metadata at `path` only. */
    const publishedAt =
      (path: string, body: Record<string, unknown> = metadata) =>
      ({ url }: HttpRequest) =>
        url.href === `https://auth.example${path}` ? jsonResponse(200, body) : jsonResponse(404, {})
    const RFC8414 = '/.well-known/oauth-authorization-server/tenant'

    it('a login with --issuer opens the authorization endpoint of that issuer, and rejects redirects from other issuers', async () => {
      const { context, url, come, ignored, received, result } = await begin({
        options: { issuer },
        context: { respond: publishedAt(RFC8414) },
      })
      expect(context.requests.map(({ url }) => url.origin)).not.toContain(BASE)
      expect(url.origin + url.pathname).toBe('https://auth.example/page')
      expect(url.searchParams.get('x')).toBe('1')
      for (const iss of [BASE, 'https://auth.example', 'https://auth.example/tenant/more'])
        expect((await come({ code: 'c1', iss })).status).toBe(400)
      expect(ignored).toHaveLength(3)
      await come({ code: 'c1', iss: issuer })
      await result
      // The code is exchanged at the base URL, not at the issuer.
      expect(received[0]?.base.href).toBe(`${BASE}/`)
    })
  })

  it('the timeout error of a login whose only redirect came from another issuer names both issuers', async () => {
    const { clock, come, result } = await begin()
    await come({ code: 'c1', iss: 'https://auth.example' })
    clock.strike()
    await expect(result).rejects.toMatchObject({
      code: 'login_timeout',
      message: expect.stringContaining(`the issuer https://auth.example instead of ${BASE} (--issuer)`),
    })
  })

  it.each([
    ['access_denied', Exit.notSignedIn],
    ['login_required', Exit.notSignedIn],
    ['invalid_scope', Exit.refused],
    ['unauthorized_client', Exit.notConfigured],
    ['temporarily_unavailable', Exit.unavailable],
    ['something_new', Exit.refused],
  ])('a redirect with the error %s ends the login with exit %i', async (error, exit) => {
    const { come, result } = await begin()
    expect((await come({ error, error_description: 'because' })).page).toContain('You are not signed in')
    await expect(result).rejects.toMatchObject({
      shownCode: error,
      exit,
      message: expect.stringContaining('because'),
    })
  })

  it('a login without a redirect before its timeout fails with `login_timeout`, exit 4', async () => {
    const { clock, result } = await begin()
    clock.strike()
    await expect(result).rejects.toMatchObject({
      code: 'login_timeout',
      exit: Exit.notSignedIn,
      message: 'timed out after 5 minutes waiting for approval in the browser',
    })
  })

  it('an interrupt ends a login with exit 130 and stops the callback server', async () => {
    const { context, redirect, result } = await begin()
    context.interrupt()
    await expect(result).rejects.toMatchObject({ exit: 130 })
    await expect(fetch(redirect)).rejects.toThrow()
  })

  it('a login rejects a pasted code alone and a pasted redirect with another state, and then accepts a pasted address or query', async () => {
    for (const shape of [
      (query: string) => `http://127.0.0.1:7/callback?${query}`,
      (query: string) => `"?${query}"`,
    ]) {
      const { context, clock, state, ignored, received, result } = await begin()
      const paste = async (text: string) => {
        context.stdin.stream.write(text)
        await new Promise((resolve) => setImmediate(resolve))
        clock.ring()
      }
      await paste('code-only\n')
      await paste(`${shape(`code=c1&state=other`)}\n`)
      expect(ignored).toEqual([
        expect.stringContaining('the whole address'),
        expect.stringContaining('another sign-in'),
      ])
      await paste(`${shape(`code=c1&state=${state}`)}\n`)
      await expect(result).resolves.toBe('stored')
      expect(received[0]?.code).toBe('c1')
    }
  })

  it('a login with `readInput: false` ignores a redirect on standard input', async () => {
    const { context, state, come, received, result } = await begin({ options: { readInput: false } })
    context.stdin.stream.write(`?code=pasted&state=${state}\n`)
    await come({ code: 'c1' })
    await result
    expect(received.map(({ code }) => code)).toEqual(['c1'])
  })
})
