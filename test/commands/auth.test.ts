import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { run } from '../../src/cli.ts'
import type { KeychainAnswer, KeychainRequest } from '../../src/context.ts'
import { InterruptedError } from '../../src/errors.ts'
import { sessionPaths } from '../../src/session/paths.ts'
import { storeApiKey } from '../../src/session/replace.ts'
import { withLock } from '../../src/storage/lock.ts'
import {
  createFakeClock,
  createFakeKeychain,
  type FakeClock,
  type FakeContextOptions,
  type FakeKeychain,
} from '../fake-context.ts'
import { createSandboxSession, type SandboxSession, withEffects } from '../session/sandbox-session.ts'

/** Runs the program in a world and says what it printed. */
async function mailclaim(world: SandboxSession, ...words: string[]) {
  const { stdout, stderr } = world.context
  const before = { stdout: stdout.text.length, stderr: stderr.text.length }
  const base = world.base.href.replace(/\/$/, '')
  const exit = await run([...words, '--base-url', base, '--client-id', world.clientId], world.context)
  return { exit, stdout: stdout.text.slice(before.stdout), stderr: stderr.text.slice(before.stderr) }
}

async function signedIn(options: FakeContextOptions = {}, store: 'file' | 'keychain' = 'file') {
  const world = await createSandboxSession(options)
  await world.signIn(store)
  return world
}

const interrupt = async (world: SandboxSession) => {
  world.expire()
  await world.fault({ kind: 'drop', count: 1 })
  await mailclaim(world, 'auth', 'token')
}

describe('auth token', () => {
  it('auth token prints the access token and nothing else', async () => {
    const { exit, stdout, stderr } = await mailclaim(await signedIn(), 'auth', 'token')
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' })
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  })

  it('auth token prints the API key if one is active', async () => {
    const world = await createSandboxSession({ environment: { apiKey: 'key-1' } })
    expect(await mailclaim(world, 'auth', 'token')).toEqual({ exit: 0, stdout: 'key-1\n', stderr: '' })
  })

  it('auth token says how to sign in if nobody is signed in', async () => {
    const world = await createSandboxSession()
    const { exit, stdout, stderr } = await mailclaim(world, 'auth', 'token')
    expect({ exit, stdout }).toEqual({ exit: 4, stdout: '' })
    // The address and the client id were given as options.
    expect(stderr).toMatch(
      /^error: profile default is not signed in\nhint: run mailclaim login --base-url http:\S+ --client-id \S+, or set MAILCLAIM_API_KEY\n$/,
    )
  })
})

describe('auth status', () => {
  const state = async (world: SandboxSession) => {
    const { exit, stdout } = await mailclaim(world, 'auth', 'status', '--json')
    const { state, message, refresh_by } = JSON.parse(stdout)
    return { exit, state, message, refresh_by }
  }

  it('auth status succeeds with a stored API key on a system without locks', async () => {
    const world = await createSandboxSession()
    await storeApiKey(world.context, world.settings, { value: 'key-1', base: world.base, store: 'file' })
    const { lock } = sessionPaths(world.context, 'default')
    rmSync(lock, { force: true })
    symlinkSync('nowhere', lock)
    expect(await state(world)).toMatchObject({ exit: 0, state: 'fine', message: null, refresh_by: null })
  })

  it('auth status shows a person who is signed in, until when, and where the secret is', async () => {
    const world = await signedIn({ terminal: { columns: 100 } })
    const { exit, stdout } = await mailclaim(world, 'auth', 'status')
    expect(exit).toBe(0)
    expect(
      stdout
        .replace(/127\.0\.0\.1:\d+/, '127.0.0.1:PORT')
        .replace(/\/\S*(profiles)\/default\/secret\.\w+/, '/STATE/$1/default/secret.ID'),
    ).toMatchInlineSnapshot(`
      "[2mProfile[22m            default
      [2mState[22m              [32mactive[39m
      [2mUsing[22m              session
      [2mService[22m            http://127.0.0.1:PORT
      [2mClient[22m             4f1c7b52-6f0e-4a53-9d2b-5c0a1de5c001
      [2mScope[22m              emails:send contacts:read contacts:write domains:read domains:write grants:read
      [2mStore[22m              a file
      [2mSecret at[22m          /STATE/profiles/default/secret.ID.json
      [2mSigned in[22m          just now
      [2mRenewed[22m            just now
      [2mExpires if unused[22m  in 60 days
      [2mAccess token[22m       valid for 15 minutes
      "
    `)
  })

  it('auth status reports each state by its name and its exit code', async () => {
    const world = await createSandboxSession()
    expect(await state(world)).toMatchObject({ state: 'none', exit: 4 })
    await world.signIn()
    expect(await state(world)).toMatchObject({
      state: 'fine',
      exit: 0,
      message: null,
      refresh_by: expect.any(String),
    })
    world.expire()
    expect(await state(world)).toMatchObject({ state: 'needs_refresh', exit: 0, message: null })
    await interrupt(world)
    expect(await state(world)).toMatchObject({
      state: 'interrupted',
      exit: 4,
      message: expect.stringContaining('has no known outcome'),
    })
    await mailclaim(world, 'auth', 'refresh', '--retry-interrupted')
    expect(await state(world)).toMatchObject({
      state: 'ended',
      exit: 4,
      message: expect.stringContaining('whose answer was lost'),
      refresh_by: null,
    })
    await world.signIn()
    world.expire()
    world.context.clock.advance(61 * 24 * 3600_000)
    expect(await state(world)).toMatchObject({
      state: 'expired',
      exit: 4,
      message: expect.stringContaining('60 days'),
    })
    rmSync(world.paths.accessToken)
    expect(await state(world)).toMatchObject({
      state: 'needs_refresh',
      exit: 0,
      message: expect.stringContaining('may have expired'),
    })
    writeFileSync(world.paths.session, '')
    expect(await state(world)).toMatchObject({
      state: 'unusable',
      exit: 4,
      message: expect.stringContaining(world.paths.session),
    })
  })

  it('auth status says only what is known while another command has the lock, for whatever reason', async () => {
    const world = await signedIn()
    const locked = () => withLock(world.paths.lock, world.context, { deadlineMs: 10 }, () => state(world))
    expect(await locked()).toMatchObject({ exit: 0, state: 'fine', message: null })
    world.expire()
    expect(await locked()).toMatchObject({ exit: 0, state: 'needs_refresh', message: null })
    await interrupt(world)
    expect(await locked()).toMatchObject({ exit: 4, state: 'interrupted' })
  })

  it('auth status sees on a read-only disk that another command has sent the refresh token', async () => {
    const world = await signedIn()
    world.expire()
    const { http } = world.context
    const seen: unknown[] = []
    const sending = withEffects(world.context, {
      http: {
        ...http,
        async send(request) {
          const response = await http.send(request)
          if (request.url.pathname !== '/oauth/token') return response
          const lock = readFileSync(world.paths.lock)
          // No lock can be taken here, as on a read-only disk.
          rmSync(world.paths.lock)
          symlinkSync('nowhere', world.paths.lock)
          seen.push(await state(world))
          rmSync(world.paths.lock)
          writeFileSync(world.paths.lock, lock)
          return response
        },
      },
    })
    await mailclaim({ ...world, context: sending }, 'auth', 'token')
    expect(seen).toMatchObject([{ exit: 0, state: 'refreshing', message: null }])
  })

  it('auth status and the refresh say that the token is sent once more if on-interrupted is set to retry', async () => {
    const world = await signedIn()
    await mailclaim(world, 'config', 'set', 'on-interrupted', 'retry')
    world.expire()
    await world.fault({ kind: 'drop', count: 1 })
    const { stderr } = await mailclaim(world, 'auth', 'token')
    const { message } = await state(world)
    for (const text of [stderr, message]) {
      expect(text).toContain('sends it once more, because on-interrupted is set to retry')
      expect(text).not.toContain('not sent again')
    }
  })

  it('auth status distinguishes a locked or missing store from a profile that is not signed in', async () => {
    const keychain = createFakeKeychain()
    const world = await signedIn({ keychain }, 'keychain')
    keychain.trouble = 'locked'
    expect(await state(world)).toMatchObject({
      state: 'store_unavailable',
      exit: 4,
      message: expect.stringContaining('locked, or the secret of this session is missing'),
    })
  })

  it.each([
    ['service', '--base-url', 'MAILCLAIM_BASE_URL', 'base_url', 'base-url', 'http://127.0.0.1:9'],
    ['client', '--client-id', 'MAILCLAIM_CLIENT_ID', 'client_id', 'client-id', 'another'],
  ] as const)(
    'auth status says that the session belongs to another %s, and how to go on by where its setting comes from',
    async (what, option, variable, setting, name, value) => {
      const world = await signedIn()
      const own = what === 'service' ? world.base.origin : world.clientId
      const status = async (words: readonly string[], context = world.context) => {
        const before = { stdout: context.stdout.text.length, stderr: context.stderr.text.length }
        expect(await run(['auth', 'status', '--fields', 'state', ...words], context)).toBe(4)
        expect(context.stdout.text.slice(before.stdout)).toBe(`state\nother_${what}\n`)
        return context.stderr.text.slice(before.stderr)
      }
      const hints = (login: string, back: string) =>
        `hint: to sign in to that ${what} instead: ${login} (with --profile NAME, this session stays)\nto use this session: ${back}\n`

      expect(await status([option, value])).toContain(
        hints(`mailclaim login ${option} ${value}`, `leave out ${option}`),
      )
      const environment = { ...world.context.environment, settings: { [setting]: value } }
      expect(await status([], withEffects(world.context, { environment }))).toContain(
        hints('mailclaim login', `unset ${variable}`),
      )
      await run(['config', 'set', name, value], world.context)
      expect(await status([])).toContain(hints('mailclaim login', `mailclaim config set ${name} ${own}`))
    },
  )

  it('auth status says that the API key of the environment is active', async () => {
    const world = await createSandboxSession({ environment: { apiKey: 'key-1' } })
    const { exit, stdout } = await mailclaim(world, 'auth', 'status', '--json')
    expect(exit).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      in_force: 'MAILCLAIM_API_KEY',
      state: 'none',
      base_url: world.settings.baseUrl?.value,
    })
    expect(stdout).not.toContain('key-1')
  })

  it('auth status does not show a password in the base URL, even with an active API key', async () => {
    const world = await createSandboxSession({ environment: { apiKey: 'key-1' } })
    await run(['auth', 'status', '--json', '--base-url', 'https://me:secret@api.example.com'], world.context)
    expect(JSON.parse(world.context.stdout.text)).toMatchObject({ base_url: null })
  })

  it('auth status ends with 4 if the API key of the environment is unusable, as every command then does', async () => {
    const world = await signedIn({ environment: { apiKey: 'a b' } })
    const { exit, stdout, stderr } = await mailclaim(world, 'auth', 'status', '--json')
    expect(exit).toBe(4)
    expect(JSON.parse(stdout)).toMatchObject({
      in_force: 'MAILCLAIM_API_KEY',
      message: expect.stringContaining('MAILCLAIM_API_KEY is not an API key'),
    })
    expect(JSON.parse(stderr).error).toMatchObject({ code: 'api_key_unusable', exit: 4 })
    expect(await mailclaim(world, 'auth', 'token')).toMatchObject({ exit: 4 })
  })

  it('auth status sends a request only with --online', async () => {
    const world = await signedIn()
    const online = async () => await mailclaim(world, 'auth', 'status', '--online', '--json')
    expect(JSON.parse((await online()).stdout)).toMatchObject({ online: 'accepted' })
    await world.fault({ path: '/oauth/grants', kind: 'status', status: 403 })
    const { exit, stdout } = await online()
    expect(exit).toBe(6)
    expect(JSON.parse(stdout)).toMatchObject({ online: 'forbidden', state: 'fine' })
  })
})

describe('auth refresh', () => {
  it('auth refresh --scope narrows the access token, and the next refresh restores the full scope', async () => {
    const world = await signedIn()
    const narrowed = await mailclaim(world, 'auth', 'refresh', '--scope', 'emails:send', '--json')
    expect(JSON.parse(narrowed.stdout)).toMatchObject({
      scope: 'emails:send',
      narrowed: true,
      expires_in: 900,
    })
    const whole = await mailclaim(world, 'auth', 'refresh', '--json')
    expect(JSON.parse(whole.stdout).scope.split(' ').length).toBeGreaterThan(1)
  })

  it('auth refresh says that the active API key needs no renewal', async () => {
    const world = await createSandboxSession({ environment: { apiKey: 'key-1' } })
    const { exit, stderr } = await mailclaim(world, 'auth', 'refresh')
    expect(exit).toBe(4)
    expect(stderr).toMatch(
      /^error: profile default is not signed in\nhint: commands use the API key in MAILCLAIM_API_KEY, which needs no renewal; for a session beside it, run mailclaim login/,
    )
  })

  it.each(['', ' ', '\t'])(
    'auth refresh --scope %j asks for nothing, rather than for everything',
    async (scope) => {
      const world = await signedIn()
      const { exit, stdout, stderr } = await mailclaim(world, 'auth', 'refresh', '--scope', scope)
      expect({ exit, stdout }).toEqual({ exit: 2, stdout: '' })
      expect(stderr).toMatch(/names no scope|--scope is empty/)
      expect(await world.counts()).toMatchObject({ refreshes: 0 })
    },
  )

  it('auth refresh says that a token is narrowed only if it has less than was granted', async () => {
    const world = await signedIn()
    const refresh = async (...words: string[]) =>
      JSON.parse((await mailclaim(world, 'auth', 'refresh', '--json', ...words)).stdout)
    const whole: string = (await refresh()).scope
    const reversed = whole.split(' ').reverse().join(' ')
    expect(await refresh('--scope', whole)).toMatchObject({ narrowed: false })
    expect(await refresh('--scope', reversed)).toMatchObject({ narrowed: false })
    expect(await refresh('--scope', `${whole} ${whole}`)).toMatchObject({ narrowed: false })
    expect(await refresh('--scope', 'emails:send', '--scope', 'emails:send')).toMatchObject({
      narrowed: true,
    })
    const { stdout } = await mailclaim(world, 'auth', 'status', '--json')
    expect(JSON.parse(stdout).access_token).toMatchObject({ narrowed: true })
  })

  it('a comma is part of a scope', async () => {
    const world = await signedIn()
    const { exit, stderr } = await mailclaim(world, 'auth', 'refresh', '--scope', 'emails:send,contacts:read')
    expect(exit).toBe(6)
    expect(stderr).toContain('emails:send,contacts:read')
  })

  it('auth refresh does not use an interrupted token unless --retry-interrupted is given', async () => {
    const world = await signedIn()
    await interrupt(world)
    expect((await mailclaim(world, 'auth', 'refresh')).exit).toBe(4)
    expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
  })
})

describe('logout', () => {
  it('logout removes the session and says that this does not revoke the grant', async () => {
    const world = await signedIn()
    const { exit, stderr, stdout } = await mailclaim(world, 'logout')
    expect({ exit, stdout }).toEqual({
      exit: 0,
      stdout: 'profile\twas_signed_in\tkept\ndefault\ttrue\t\n',
    })
    expect(stderr).toMatchInlineSnapshot(`
      "Profile default is signed out: its tokens were removed from this machine.
      Signing out does not revoke the grant at the service. If it is still active, revoke it there, among the connected apps of your account.
      "
    `)
    expect(await mailclaim(world, 'logout')).toMatchObject({
      exit: 0,
      stderr: 'Profile default was not signed in.\n',
    })
  })

  it('logout ends with 4 and says so if a locked keychain keeps the secret', async () => {
    const keychain = createFakeKeychain()
    const world = await signedIn({ keychain }, 'keychain')
    keychain.trouble = 'locked'
    const locked = await mailclaim(world, 'logout')
    expect(locked.exit).toBe(4)
    expect(locked.stderr).toContain('may still hold a secret of profile default')
    keychain.trouble = 'none'
    expect(await mailclaim(world, 'logout', '--all', '--json')).toMatchObject({ exit: 0 })
    expect(keychain.items.size).toBe(0)
  })

  /** A keychain that answers nothing, and takes as long as it may. */
  function silent(clock: FakeClock): FakeKeychain {
    const keychain = createFakeKeychain()
    const { call } = keychain
    return Object.assign(keychain, {
      async call(request: KeychainRequest) {
        if (keychain.trouble !== 'timeout') return call.call(keychain, request)
        await Promise.resolve()
        clock.ring()
        clock.advance(request.timeoutMs)
        return { ok: false, reason: 'timeout', detail: `${request.timeoutMs / 1000} s` } as const
      },
    })
  }

  it('logout says that it waits for a keychain that does not answer, and gives it 15 seconds in all', async () => {
    const clock = createFakeClock()
    const keychain = silent(clock)
    const world = await signedIn({ keychain, clock }, 'keychain')
    const others = ['0123456789ab', 'ba9876543210'].map((id) => ({ account: `default https://a.test ${id}` }))
    const noted = JSON.parse(readFileSync(world.paths.superseded, 'utf8')) as { keychain: unknown[] }
    writeFileSync(
      world.paths.superseded,
      JSON.stringify({ ...noted, keychain: [...noted.keychain, ...others] }),
    )
    keychain.trouble = 'timeout'
    const start = clock.monotonic()
    const { exit, stderr } = await mailclaim(world, 'logout')
    expect(clock.monotonic() - start).toBe(15_000)
    expect(exit).toBe(4)
    expect(stderr).toMatch(/^Waiting for the keychain …\n/)
    expect(stderr.match(/may still hold a secret/g)).toHaveLength(3)
    keychain.trouble = 'none'
    expect(await mailclaim(world, 'logout')).toMatchObject({ exit: 0 })
    expect(keychain.items.size).toBe(0)
  })

  it('Ctrl-C ends the wait for the keychain with 130, and the next logout removes what it holds', async () => {
    const stop = new AbortController()
    const keychain = createFakeKeychain()
    const world = await signedIn({ keychain }, 'keychain')
    const { call } = keychain
    const waiting = (request: KeychainRequest) => {
      if (request.operation !== 'delete') return call.call(keychain, request)
      return new Promise<KeychainAnswer>((resolve) => {
        request.signal?.addEventListener('abort', () => resolve({ ok: false, reason: 'timeout', detail: '' }))
        stop.abort(new InterruptedError('SIGINT'))
      })
    }
    const interrupts = { signal: stop.signal, shield: <T>(work: () => Promise<T>) => work() }
    const context = withEffects(world.context, { interrupts, keychain: { call: waiting } })
    const { exit, stderr } = await mailclaim({ ...world, context }, 'logout')
    expect({ exit, stderr }).toEqual({
      exit: 130,
      stderr: expect.stringContaining('the keychain may still hold a secret of profile default'),
    })
    expect(await mailclaim(world, 'auth', 'token')).toMatchObject({ exit: 4 })
    expect(await mailclaim(world, 'logout')).toMatchObject({ exit: 0 })
    expect(keychain.items.size).toBe(0)
  })

  it.each(['accessToken', 'superseded', 'session', 'lock'] as const)(
    'logout forgets everything else if a directory is in the place of a file (%s)',
    async (name) => {
      const keychain = createFakeKeychain()
      const world = await signedIn({ keychain }, 'keychain')
      await world.signIn('file')
      const path = world.paths[name]
      rmSync(path, { force: true })
      mkdirSync(path)
      const { exit, stderr } = await mailclaim(world, 'logout')
      const left = name === 'accessToken' || name === 'superseded'
      expect(exit).toBe(left ? 4 : 0)
      if (left) expect(stderr).toContain(`may still hold a secret of profile default (${path})`)
      expect(readdirSync(world.paths.directory).filter((file) => /^(secret|journal)/.test(file))).toEqual([])
      expect(keychain.items.size).toBe(0)
      expect((await mailclaim(world, 'auth', 'token')).stdout).toBe('')
    },
  )
})

describe('auth rekey', () => {
  it('auth rekey fails if the profile keeps its session elsewhere, so that no script takes an old key for replaced', async () => {
    const { exit, stdout, stderr } = await mailclaim(await signedIn(), 'auth', 'rekey', '--json')
    expect({ exit, stdout }).toEqual({ exit: 3, stdout: '' })
    expect(JSON.parse(stderr).error).toMatchObject({
      code: 'store_not_configured',
      message: expect.stringContaining('profile default'),
      hint: expect.stringContaining('MAILCLAIM_STORE=etcd'),
    })
  })
})

describe('auth list and auth switch', () => {
  it('auth list shows the profiles that are signed in, and auth switch chooses the current one', async () => {
    const world = await signedIn()
    const { stdout } = await mailclaim(world, 'auth', 'list', '--json', '--profile', 'work')
    expect(JSON.parse(stdout).data).toEqual([
      { profile: 'default', current: false, credential: 'session', store: 'file', base_url: null },
      { profile: 'work', current: true, credential: 'none', store: null, base_url: null },
    ])
    expect(await mailclaim(world, 'auth', 'switch', 'work')).toMatchObject({ exit: 5 })
    expect(await mailclaim(world, 'auth', 'switch', 'default')).toMatchObject({ exit: 0 })
    expect(await mailclaim(world, 'auth', 'switch', '../x')).toMatchObject({ exit: 2 })
  })

  it('auth switch warns of an API key and of a profile in the environment, which override it', async () => {
    const key = await signedIn({ environment: { apiKey: 'key-1' } })
    expect(await mailclaim(key, 'auth', 'switch', 'default')).toMatchObject({
      exit: 0,
      stderr:
        'Using profile default from now on.\nwarning: MAILCLAIM_API_KEY is set, and commands keep using it\n',
    })
    const profile = await signedIn({ environment: { settings: { profile: 'work' } } })
    // A program reads the result, and warnings on standard error.
    expect(await mailclaim(profile, 'auth', 'switch', 'default', '--json')).toMatchObject({
      exit: 0,
      stderr: 'warning: MAILCLAIM_PROFILE is set to another profile and overrides this\n',
    })
  })

  it.each(['..', 'a/b', '.hidden', 'UPPER', 'con', 'x'.repeat(65), ''])(
    'take %j for no profile',
    async (name) => {
      const world = await createSandboxSession()
      expect(await mailclaim(world, 'auth', 'token', `--profile=${name}`)).toMatchObject({ exit: 2 })
    },
  )
})
