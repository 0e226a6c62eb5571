import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { command } from '../../src/commands/login.ts'
import { Exit } from '../../src/errors.ts'
import { profileFiles, readSession } from '../../src/session/session-file.ts'
import { readConfig } from '../../src/settings/config.ts'
import { type GivenOptions, resolveSettings, type Settings } from '../../src/settings/settings.ts'
import { createIo } from '../../src/terminal/io.ts'
import {
  createFakeContext,
  type FakeContext,
  type FakeContextOptions,
  fakeSettings,
  jsonResponse,
} from '../fake-context.ts'
import { createClient } from '../hardening/in-process-client.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'

/** Options of `login`, including those of settings. */
type Options = Parameters<typeof command.run>[0]['options'] & GivenOptions

const TOKENS = {
  access_token: 'access-1',
  refresh_token: 'refresh-1',
  token_type: 'Bearer',
  expires_in: 900,
  scope: 'emails:send',
}

/** Creates a context with a terminal, a service that accepts every code, and a clock that skips only short sleeps. */
function contextWith(
  options: FakeContextOptions = {},
  token: () => [number, unknown] = () => [200, TOKENS],
): FakeContext {
  const context = createFakeContext({
    respond: (request) => {
      const [status, body] = request.url.pathname === '/oauth/token' ? token() : [404, {}]
      return jsonResponse(status, body)
    },
    ...options,
  })
  const clock = {
    ...context.clock,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        if (ms <= 2000) resolve()
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
      }),
  }
  return {
    ...context,
    stdin: { ...context.stdin, isTTY: true },
    clock: Object.assign(Object.create(context.clock), clock),
  } as FakeContext
}

/** Runs `login` with these options. @param given settings; default: from the options */
async function start(context: FakeContext, options: Options, given?: Settings): Promise<void> {
  const settings = given ?? (await fakeSettings(context, options))
  await command.run({ arguments: [], options }, createIo(context, settings))
}

/** Runs `login`, and requests the redirect URI as the browser does after the approval. */
async function signIn(context: FakeContext, options: Options = { store: 'file' }, given?: Settings) {
  const ended = start(context, options, given)
  ended.catch(() => {})
  await expect.poll(() => context.stderr.text).toMatch(/oauth\/authorize\S+\s/)
  const asked = new URL(/http:\S+authorize\S+/.exec(context.stderr.text)?.[0] ?? '').searchParams
  const redirect = new URL(asked.get('redirect_uri') ?? '')
  redirect.search = new URLSearchParams({ code: 'code-1', state: asked.get('state') ?? '' }).toString()
  const page = await (await fetch(redirect)).text()
  return { ended, asked, page }
}

describe('login', () => {
  it('login exchanges the code with the redirect URI of the authorization request, and stores base URL and client id in the profile', async () => {
    const context = contextWith()
    const { ended, asked, page } = await signIn(context, { store: 'file', scope: ['emails:send'] })
    await ended
    expect(page).toContain('You are signed in')
    const exchange = context.requests.find(({ url }) => url.pathname === '/oauth/token')
    expect(new URLSearchParams(exchange?.body).get('redirect_uri')).toBe(asked.get('redirect_uri'))
    expect(asked.get('scope')).toBe('emails:send')
    expect((await readConfig(context)).profiles['default']).toMatchObject({
      base_url: 'http://127.0.0.1:1',
      client_id: 'client-1',
    })
    expect(context.stderr.text).toContain('Signed in at http://127.0.0.1:1 as profile default')
    expect(context.stderr.text).not.toMatch(/access-1|refresh-1|code-1/)
  })

  it('login opens the browser, except with --no-browser, and except over SSH without BROWSER', async () => {
    const usual = contextWith()
    await (await signIn(usual)).ended
    expect(usual.opened).toHaveLength(1)
    const told = contextWith()
    await (await signIn(told, { store: 'file', browser: false })).ended
    const ssh = contextWith({ environment: { ssh: true } })
    await (await signIn(ssh)).ended
    expect([...told.opened, ...ssh.opened]).toEqual([])
  })

  it('login fails with the OAuth error of a refused exchange, shows a failure page in the browser, and saves no settings', async () => {
    const context = contextWith({}, () => [400, { error: 'invalid_grant', error_description: 'PKCE' }])
    const { ended, page } = await signIn(context)
    await expect(ended).rejects.toMatchObject({ code: 'invalid_grant', exit: Exit.notSignedIn })
    expect(page).toContain('You are not signed in')
    expect((await readConfig(context)).profiles).toEqual({})
  })

  it('login with an unusable credential store fails before it opens the browser or sends a request', async () => {
    const context = contextWith()
    const keychain = context.keychain as { trouble?: string }
    keychain.trouble = 'no_keychain'
    await expect(start(context, { store: 'keychain' })).rejects.toMatchObject({
      exit: Exit.notSignedIn,
      hint: expect.stringContaining('--store file'),
    })
    expect(context.opened).toEqual([])
    expect(context.requests).toEqual([])
  })

  it.each<[string, Options, RegExp]>([
    ['a scope with a quote', { scope: ['a"b'] }, /--scope/],
    ['an empty scope', { scope: [''] }, /--scope/],
    ['a redirect URI that is not an address', { redirectUri: 'callback' }, /--redirect-uri/],
    ['a resource that is not an address', { resource: 'mail' }, /resource/],
  ])('login rejects %s with exit 2, before it sends a request', async (_what, options, says) => {
    const context = contextWith()
    const started = start(context, { store: 'file', ...options })
    await expect(started).rejects.toMatchObject({ exit: Exit.usage, message: expect.stringMatching(says) })
    expect(context.requests).toEqual([])
  })

  it('`login` succeeds with a warning if the configuration file cannot be written', async () => {
    const context = contextWith()
    const settings = await fakeSettings(context, { store: 'file' })
    mkdirSync(dirname(context.directories.config), { recursive: true })
    writeFileSync(context.directories.config, '')
    await (await signIn(context, { store: 'file' }, settings)).ended
    expect(readSession(profileFiles(context, 'default'))?.session).toMatchObject({ kind: 'session' })
    expect(context.stderr.text).toContain(
      'warning: what this login was given could not be saved for later commands: ',
    )
    expect(context.stderr.text).toContain('Signed in at http://127.0.0.1:1 as profile default')
  })

  it('mailclaim login prompts for missing settings, validates the answers, and mentions the sandbox', async () => {
    const asked: string[] = []
    const context = contextWith({
      terminal: { columns: 80 },
      prompts: {
        input: async ({ message, validate }) => {
          asked.push(message)
          if (!message.includes('Base URL')) return 'client-9'
          expect(validate?.('http://mail.example')).toMatch(/encrypted/)
          expect(validate?.('localhost:39411')).not.toBe(true)
          expect(validate?.('https://mail.example')).toBe(true)
          expect(validate?.('mail.example')).toBe(true)
          return 'mail.example'
        },
      },
    })
    const ended = start(context, {}, await resolveSettings({ store: 'file' }, [], context))
    ended.catch(() => {})
    await expect.poll(() => context.stderr.text).toMatch(/https:..mail.example.*client_id=client-9/)
    expect(asked).toHaveLength(2)
    expect(context.stderr.text).toContain('mailclaim sandbox')
    context.interrupt()
    await expect(ended).rejects.toMatchObject({ exit: 130 })
  })

  it.each([
    ['base URL', { baseUrl: 'localhost:39411' }, 'base_url_unusable'],
    ['client id', { clientId: 'ü' }, 'usage'],
  ])('`login` with an invalid %s fails before it prompts', async (_what, given, code) => {
    const input = async (): Promise<never> => expect.unreachable('asked')
    const context = contextWith({ terminal: { columns: 80 }, prompts: { input } })
    const settings = await resolveSettings({ store: 'file', ...given }, [], context)
    await expect(start(context, {}, settings)).rejects.toMatchObject({ code })
  })

  it.each<[string, Options, FakeContextOptions?]>([
    ['with --no-input', { input: false }],
    ['with --no-input, even with --json', { input: false, json: true }],
    ['with --no-input, even with --no-browser', { input: false, browser: false }],
    ['with MAILCLAIM_NO_INPUT=1', {}, { environment: { settings: { no_input: '1' } } }],
    ['with CI', {}, { environment: { ci: true } }],
    ['without a terminal', {}],
  ])('login %s exits 2 with a hint at API keys, and opens no browser', async (what, options, world) => {
    const context = what.endsWith('a terminal') ? createFakeContext() : contextWith(world)
    const given = { profile: 'work', store: 'file', ...options } as const
    await expect(start(context, given)).rejects.toMatchObject({
      exit: Exit.usage,
      hint: expect.stringMatching(/MAILCLAIM_API_KEY.*keeper.*login --with-api-key/),
    })
    expect(context.opened).toEqual([])
    expect(context.requests).toEqual([])
  })

  it('login --with-api-key --no-input reads the key from a pipe', async () => {
    const context = createFakeContext({ respond: () => jsonResponse(200, {}) })
    context.stdin.stream.end('key_0123456789\n')
    await start(context, { store: 'file', input: false, withApiKey: true })
    expect(context.stderr.text).toContain('API key for http')
  })

  it.each(['json', 'jsonl'])(
    'login --format %s prints the authorization URL as a line of JSON, opens no browser, and then prints the result',
    async (format) => {
      const context = contextWith({ terminal: { columns: 80 } })
      const { ended, asked } = await signIn(context, { store: 'file', format })
      await ended
      expect(context.opened).toEqual([])
      const [first = '', ...rest] = context.stdout.text.split('\n')
      const event = JSON.parse(first)
      expect(Object.keys(event)).toEqual(['event', 'at', 'url'])
      expect(event).toMatchObject({ event: 'authorization', at: '2026-11-20T12:00:00.000Z' })
      expect(new URL(event.url).searchParams.get('state')).toBe(asked.get('state'))
      expect(JSON.parse(rest.join('\n'))).toMatchObject({ profile: 'default', kind: 'oauth', store: 'file' })
    },
  )

  it('login --json accepts the redirect URL with code and state from a pipe on stdin', async () => {
    const context = { ...contextWith(), stdin: createFakeContext().stdin }
    const ended = start(context, { store: 'file', json: true })
    await expect.poll(() => context.stdout.text).toContain('\n')
    expect(context.stderr.text).toBe('')
    const { url } = JSON.parse(context.stdout.text)
    const asked = new URL(url).searchParams
    context.stdin.stream.write(`${asked.get('redirect_uri')}?code=code-1&state=${asked.get('state')}\n`)
    await expect
      .poll(() => {
        context.clock.ring()
        return context.stdout.text
      })
      .toContain('oauth')
    await ended
    const [, result = ''] = context.stdout.text.split('\n')
    expect(JSON.parse(result)).toMatchObject({ kind: 'oauth', store: 'file' })
    expect(context.stderr.text).toBe('')
  })

  describe('on a machine without a keychain', () => {
    /** Creates a context in which the keychain fails and no store is chosen; `questions` collects the prompts. */
    async function without(trouble: string, options: FakeContextOptions, answer?: boolean) {
      const questions: { message: string; default: boolean }[] = []
      const context = contextWith({
        ...options,
        prompts: {
          confirm: async (question) => {
            if (answer === undefined) throw new Error('the test did not expect a question')
            questions.push(question)
            return answer
          },
        },
      })
      ;(context.keychain as { trouble?: string }).trouble = trouble
      return { context, questions }
    }
    const terminal = { columns: 80 }

    it.each(['no_keychain', 'no_module'])(
      'login with the keychain error `%s` offers on a terminal to keep the session in a file, and the default answer is no',
      async (trouble) => {
        const { context, questions } = await without(trouble, { terminal }, true)
        await (await signIn(context, {})).ended
        expect(questions).toEqual([
          { message: 'Keep the secret in a file that only you can read instead?', default: false },
        ])
        expect(readSession(profileFiles(context, 'default'))?.session).toMatchObject({ store: 'file' })
        expect((await readConfig(context)).profiles['default']).toMatchObject({ store: 'file' })
      },
    )

    it('`login` exits 4 and hints at --store file if the user declines to keep the session in a file', async () => {
      const { context } = await without('no_keychain', { terminal }, false)
      await expect(start(context, {})).rejects.toMatchObject({
        code: 'store_unavailable',
        exit: Exit.notSignedIn,
        hint: expect.stringContaining('mailclaim login --store file'),
      })
      expect(context.opened).toEqual([])
    })

    it.each<[string, string, FakeContextOptions, Options]>([
      ['without a terminal', 'no_keychain', {}, { browser: false }],
      ['with --json', 'no_keychain', { terminal }, { json: true }],
      ['if the keychain was chosen', 'no_keychain', { terminal }, { store: 'keychain' }],
      ['if the keychain does not answer', 'timeout', { terminal }, {}],
    ])('login does not prompt, but hints at --store file, %s', async (_what, trouble, options, given) => {
      const { context } = await without(trouble, options)
      await expect(start(context, { profile: 'work', ...given })).rejects.toMatchObject({
        exit: Exit.notSignedIn,
        hint: expect.stringContaining('mailclaim login --profile work --store file'),
      })
    })
  })

  it.each([
    ['base_url', {}, 'set MAILCLAIM_BASE_URL, or sign in: mailclaim login --base-url URL'],
    ['base_url', { profile: 'work' }, '… mailclaim login --base-url URL --profile work'],
    [
      'client_id',
      { baseUrl: 'https://api.example.com' },
      'set MAILCLAIM_CLIENT_ID, or sign in: mailclaim login --client-id ID',
    ],
  ])(
    'login without a terminal exits 3 if the setting %s is missing, and hints at its option (options given: %j)',
    async (key, given, hint) => {
      const context = createFakeContext()
      const settings = await resolveSettings(given, [], context)
      await expect(start(context, { browser: false }, settings)).rejects.toMatchObject({
        code: `${key}_missing`,
        exit: Exit.notConfigured,
        hint: expect.stringContaining(hint.replace('… ', '')),
      })
    },
  )

  describe('the scopes that are granted', () => {
    it.each([
      ['with all requested scopes granted prints no warning', ['b:c', 'a:b'], 'a:b b:c', []],
      ['with granted scopes separated by commas prints no warning', ['b:c', 'a:b'], 'a:b,b:c', []],
      ['with a granted scope that contains a comma prints no warning', ['a,b', 'c'], 'c a,b', []],
      [
        'with fewer scopes granted than requested warns of the missing ones',
        ['a:b', 'b:c', 'c:d'],
        'b:c x:y',
        ['warning: requested but not granted: a:b c:d'],
      ],
      ['without the OpenID scopes granted prints no warning', ['openid', 'a:b', 'offline_access'], 'a:b', []],
      ['without requested scopes prints no warning', [], 'a:b', []],
      ['without a scope in the token response (RFC 6749) prints no warning', ['a:b'], null, []],
    ])('login %s', async (_what, scope, granted, said) => {
      const context = contextWith({}, () => [200, { ...TOKENS, scope: granted }])
      await (await signIn(context, { store: 'file', ...(scope.length > 0 && { scope }) })).ended
      const lines = context.stderr.text.split('\n').filter((line) => /granted/i.test(line))
      expect(lines).toEqual(said)
    })
  })

  describe('at a service whose issuer is not its base URL', () => {
    /** Creates a sandbox with two names: the IP address in its issuer, `localhost` in its base URL. */
    async function twoNames() {
      const sandbox = await sandboxForTest({ autoApprove: true })
      const baseUrl = sandbox.baseUrl.replace('127.0.0.1', 'localhost')
      const client = createClient(sandbox, { baseUrl })
      const logIn = (...words: string[]) => client.run(['login', '--timeout', '3600', ...words])
      return { sandbox, baseUrl, client, logIn }
    }

    it('login --issuer stores the issuer in the profile, and the base URL, not the issuer, as the service of the session', async () => {
      const { sandbox, baseUrl, client, logIn } = await twoNames()
      expect(await logIn('--issuer', `${sandbox.baseUrl}/`)).toMatchObject({ code: 0 })
      const { context } = client
      expect(readSession(profileFiles(context, 'default'))?.session).toMatchObject({ service: baseUrl })
      expect((await readConfig(context)).profiles['default']).toMatchObject({
        base_url: baseUrl,
        issuer: sandbox.baseUrl,
      })
      expect(await client.run(['auth', 'refresh'])).toMatchObject({ code: 0 })
      expect(await logIn()).toMatchObject({ code: 0 })
    })

    it.each([
      ['with the browser', ['--timeout', '3600']],
      ['with an API key', ['--with-api-key']],
    ])('login (%s) at another base URL removes the former issuer from the profile', async (_how, words) => {
      const { sandbox, baseUrl, client } = await twoNames()
      await client.run(['config', 'set', 'base-url', baseUrl])
      await client.run(['config', 'set', 'issuer', sandbox.baseUrl])
      await client.run(['config', 'set', 'authorization-endpoint', `${sandbox.baseUrl}/elsewhere`])
      const other = await sandboxForTest({ autoApprove: true })
      client.context.stdin.stream.end(other.apiKey)
      const ended = await client.run([
        ...['login', '--base-url', other.baseUrl, '--client-id', other.clientId],
        ...words,
      ])
      expect(ended).toMatchObject({ code: 0 })
      const profile = (await readConfig(client.context)).profiles['default']
      expect(profile).toEqual({ base_url: other.baseUrl, client_id: other.clientId, store: 'file' })
    })

    it('login keeps the authorization endpoint of the profile if the base URL differs only by a trailing slash', async () => {
      const { sandbox, baseUrl, client, logIn } = await twoNames()
      await client.run(['config', 'set', 'base-url', baseUrl])
      await client.run(['config', 'set', 'authorization-endpoint', `${baseUrl}/oauth/authorize`])
      expect(await logIn('--base-url', `${baseUrl}/`, '--issuer', sandbox.baseUrl)).toMatchObject({ code: 0 })
      expect((await readConfig(client.context)).profiles['default']).toMatchObject({
        base_url: baseUrl,
        issuer: sandbox.baseUrl,
        authorization_endpoint: `${baseUrl}/oauth/authorize`,
      })
    })
  })

  describe('--with-api-key', () => {
    /** Runs `login --with-api-key` with a key from a pipe, at a service that responds with this status. */
    async function pipeKey(status: number) {
      const context = createFakeContext({
        respond: () => jsonResponse(status, { message: 'no', name: 'said_no' }),
      })
      context.stdin.stream.end('key_0123456789\n')
      const error = await start(context, { store: 'file', withApiKey: true }).catch(
        (caught: unknown) => caught,
      )
      const stored = readSession(profileFiles(context, 'default'))?.session
      const profiles = (await readConfig(context)).profiles
      expect(context.stderr.text + String(error)).not.toContain('key_0123456789')
      return { context, error, stored, profiles }
    }

    it('login --with-api-key reads the key from a pipe without its line break, tests it with a request, and stores it', async () => {
      const { context, error, stored } = await pipeKey(200)
      expect(error).toBeUndefined()
      expect(
        context.requests.map(({ method, url, headers }) => [method, url.pathname, headers['authorization']]),
      ).toEqual([['GET', '/oauth/grants', 'Bearer key_0123456789']])
      expect(stored).toMatchObject({ kind: 'api_key', store: 'file' })
      expect(context.stderr.text).toContain('API key for http')
    })

    it.each([
      [401, { code: 'credential_refused', exit: Exit.notSignedIn }],
      [503, { exit: Exit.unavailable }],
    ])('login --with-api-key stores no key if the test request gets status %i', async (status, expected) => {
      const { error, stored, profiles } = await pipeKey(status)
      expect(error).toMatchObject(expected)
      expect(stored).toBeUndefined()
      expect(profiles).toEqual({})
    })

    it('login --with-api-key stores a key for which the test request gets status 403, with a warning', async () => {
      const { context, error, stored } = await pipeKey(403)
      expect(error).toBeUndefined()
      expect(stored).toMatchObject({ kind: 'api_key' })
      expect(context.stderr.text).toMatch(/^warning: the service knows the API key, but: /m)
    })

    it.each([
      ['', 'there is no API key on standard input: it is empty'],
      ['two words\n', "isn't one line"],
      ['"key_0123456789"\n', 'quotation marks'],
      ['$KEY\n', 'the name of a variable'],
      ['\u0024{KEY}\n', 'the name of a variable'],
      ['%KEY%\n', 'the name of a variable'],
      ['***\n', 'it is a placeholder'],
      ['undefined\n', 'it is a placeholder'],
      ['YOUR_API_KEY\n', 'it is a placeholder'],
      ['changeme\n', 'it is a placeholder'],
      ['MAILCLAIM_API_KEY=key_0123456789\n', 'NAME=value'],
      ['key_0123456789\\n\n', 'characters'],
      ['k\0e\0y\0\n', 'UTF-8'],
      ['two\nlines\n', 'that is not an API key'],
    ])('`login --with-api-key` rejects the input %j with exit 2', async (text, message) => {
      const context = createFakeContext()
      context.stdin.stream.end(text)
      const started = start(context, { store: 'file', withApiKey: true })
      await expect(started).rejects.toMatchObject({
        exit: Exit.usage,
        message: expect.stringContaining(message),
      })
      await expect(started).rejects.not.toThrow('key_0123456789')
      expect(context.requests).toEqual([])
    })
  })
})
