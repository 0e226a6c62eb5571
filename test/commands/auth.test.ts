import { describe, expect, it } from 'vitest'
import type { KeychainRequest, KeychainResult } from '../../src/context.ts'
import { InterruptedError } from '../../src/errors.ts'
import { createFakeKeychain, type FakeContextOptions } from '../fake-context.ts'
import { run } from '../run.ts'
import {
  changeSession,
  createSandboxSession,
  type SandboxSession,
  withEffects,
} from '../session/sandbox-session.ts'

/** Runs mailclaim in a world, and returns its exit code and output. */
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

it('auth token prints the access token and nothing else', async () => {
  const { exit, stdout, stderr } = await mailclaim(await signedIn(), 'auth', 'token')
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' })
  expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
})

it('auth token prints the key in MAILCLAIM_API_KEY with a single line break, even if the variable ends with one', async () => {
  const world = await createSandboxSession({ environment: { apiKey: 'key-1\n' } })
  expect(await mailclaim(world, 'auth', 'token')).toEqual({ exit: 0, stdout: 'key-1\n', stderr: '' })
})

it('auth token exits 4 with a hint on how to sign in if no profile is signed in', async () => {
  const world = await createSandboxSession()
  const { exit, stdout, stderr } = await mailclaim(world, 'auth', 'token')
  expect({ exit, stdout }).toEqual({ exit: 4, stdout: '' })
  expect(stderr).toMatch(
    /^error: profile default is not signed in\nhint: set MAILCLAIM_API_KEY, or sign in: mailclaim login.*\n$/,
  )
})

it('auth token of a profile that is not signed in hints at the profile that is signed in', async () => {
  const world = await signedIn()
  await mailclaim(world, 'config', 'set', 'http-timeout', '5', '--profile', 'work')
  const { exit, stderr } = await mailclaim(world, 'auth', 'token', '--profile', 'work')
  expect(exit).toBe(4)
  expect(stderr).toMatch(/not signed in\nhint: .*\(default\): mailclaim auth switch default\n$/)
})

it('`auth token --scope` prints an access token limited to that scope, and a later `auth token` prints a token with all scopes', async () => {
  const world = await signedIn()
  const before = world.session()
  const { exit, stdout } = await mailclaim(world, 'auth', 'token', '--scope', 'emails:send')
  const [, payload = ''] = stdout.split('.')
  expect(exit).toBe(0)
  expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({ scope: 'emails:send' })
  // The rotated refresh token is kept, the narrower access token isn't.
  expect(world.session()).toMatchObject({ generation: 2 })
  expect(world.session().refreshToken).not.toBe(before.refreshToken)
  const whole = await mailclaim(world, 'auth', 'token')
  expect(whole.stdout).not.toBe(stdout)
  expect(world.session().access?.scope?.split(' ').length).toBeGreaterThan(1)
  expect(await world.counts()).toMatchObject({ refreshes: 2, reuse_detections: 0 })
})

it('`auth token --min-lifetime` renews an access token with less time left, but only warns if that token is at most a minute old', async () => {
  const world = await signedIn()
  const token = async (...words: string[]) => {
    const { stdout, stderr } = await mailclaim(world, 'auth', 'token', '--json', ...words)
    const { refreshes } = await world.counts()
    return { expires: JSON.parse(stdout).expires_at, refreshes, stderr }
  }
  world.context.clock.advance(200_000)
  const first = { expires: '2026-11-20T12:15:00.000Z', refreshes: 0, stderr: '' }
  expect([await token(), await token('--min-lifetime', '700')]).toEqual([first, first])
  const second = { expires: '2026-11-20T12:18:20.000Z', refreshes: 1, stderr: '' }
  expect(await token('--min-lifetime', '701')).toEqual(second)
  // A new token would hardly be valid for longer, so no renewal is requested.
  world.context.clock.advance(60_000)
  const stderr = 'warning: the access token is valid for 840 seconds: the service gives no more\n'
  expect(await token('--min-lifetime', '3600')).toEqual({ ...second, stderr })
  world.context.clock.advance(1000)
  expect(await token('--min-lifetime', '3600')).toMatchObject({ refreshes: 2 })
})

it.each([
  ['an API key', ['--scope', 'emails:send'], 2],
  ['an empty scope', ['--scope', ' '], 2],
])('auth token --scope with %s exits 2', async (what, words, exit) => {
  const world = await signedIn(what === 'an API key' ? { environment: { apiKey: 'key-1' } } : {})
  expect(await mailclaim(world, 'auth', 'token', ...words)).toMatchObject({ exit, stdout: '' })
  expect(await world.counts()).toMatchObject({ refreshes: 0 })
})

describe('auth status', () => {
  const state = async (world: SandboxSession) => {
    const { exit, stdout } = await mailclaim(world, 'auth', 'status', '--json')
    const { state, message, in_force } = JSON.parse(stdout)
    return { exit, state, message, in_force }
  }

  it('auth status on a terminal shows service, scope, store and expiry of the session', async () => {
    const world = await signedIn({ terminal: { columns: 100 } })
    const { exit, stdout } = await mailclaim(world, 'auth', 'status')
    expect(exit).toBe(0)
    expect(
      stdout.replace(/127\.0\.0\.1:\d+/, '127.0.0.1:PORT').replace(/\x1b\[\d+m/g, ''),
    ).toMatchInlineSnapshot(`
      "Profile            default
      State              active
      Using              session
      Service            http://127.0.0.1:PORT
      Client id          4f1c7b52-6f0e-4a53-9d2b-5c0a1de5c001
      Scope              emails:send contacts:read contacts:write domains:read domains:write grants:read
      Store              a file that only you can read
      Access token       valid for 15 minutes
      Expires if unused  in 60 days
      Signed in          just now
      "
    `)
  })

  it('auth status --json names the state of the session, and exits 0 for a usable session, 4 for an unusable or missing one', async () => {
    const world = await createSandboxSession()
    expect(await state(world)).toMatchObject({ state: 'none', exit: 4, in_force: null })
    await world.signIn()
    expect(await state(world)).toMatchObject({ state: 'active', exit: 0, message: null, in_force: 'session' })
    world.expire()
    expect(await state(world)).toMatchObject({ state: 'needs_refresh', exit: 0, message: null })
    await interrupt(world)
    expect(await state(world)).toMatchObject({
      state: 'interrupted',
      exit: 4,
      message: expect.stringContaining('may have been sent'),
    })
    await mailclaim(world, 'auth', 'refresh', '--retry-interrupted')
    expect(await state(world)).toMatchObject({ state: 'ended', exit: 4 })
    changeSession(world.files, { profile: 'work' } as never)
    expect(await state(world)).toMatchObject({ state: 'elsewhere', exit: 4 })
  })

  it('`auth status` with a locked keychain reports the state `store_unavailable`, and exits 4', async () => {
    const keychain = createFakeKeychain()
    const world = await signedIn({ keychain }, 'keychain')
    keychain.trouble = 'locked'
    expect(await state(world)).toMatchObject({
      state: 'store_unavailable',
      exit: 4,
      message: expect.stringContaining('locked, or the secret of profile default is missing'),
    })
  })

  it('auth status during a concurrent login reports the state `active` once that login ends, `refreshing` while the login holds the lock, and `store_unavailable` if the login released the lock without writing the session file', async () => {
    const keychain = createFakeKeychain()
    const world = await signedIn({ keychain }, 'keychain')
    const { disk, lock } = world.files
    const { call } = keychain
    const meanwhile = (login: () => Promise<unknown>) => {
      keychain.call = async (request) => {
        keychain.call = call
        await login()
        return call.call(keychain, request)
      }
    }
    meanwhile(() => world.signIn('keychain'))
    expect(await state(world)).toMatchObject({ state: 'active', exit: 0 })

    const ofTheLogin = 'ffffffffffff.1@1:rt'
    const [account = ''] = keychain.items.keys()
    const holder = await disk.lock(lock)
    meanwhile(async () => keychain.items.set(account, ofTheLogin))
    expect(await state(world)).toMatchObject({ state: 'refreshing', exit: 0 })
    disk.close(holder ?? -1)
    expect(await state(world)).toMatchObject({ state: 'store_unavailable', exit: 4 })
  })

  it('auth status and auth list show the store `file` after the keychain refused the new token', async () => {
    const keychain = createFakeKeychain()
    const world = await signedIn({ keychain }, 'keychain')
    const shown = async (command: string) =>
      JSON.parse((await mailclaim(world, 'auth', command, '--json')).stdout)
    expect(await shown('status')).toMatchObject({ store: 'keychain' })
    const { call } = keychain
    keychain.call = async (request) =>
      request.operation === 'set'
        ? { ok: false, reason: 'refused', detail: '' }
        : call.call(keychain, request)
    expect(await mailclaim(world, 'auth', 'refresh')).toMatchObject({
      exit: 0,
      stderr: expect.stringContaining('is in a file that only you can read'),
    })
    expect(await shown('status')).toMatchObject({ store: 'file' })
    expect(await shown('list')).toMatchObject({ data: [{ store: 'file' }] })
  })

  it.each([
    ['service', '--base-url', 'http://127.0.0.1:9'],
    ['client', '--client-id', 'another'],
  ] as const)('auth status says that the session belongs to another %s', async (what, option, value) => {
    const world = await signedIn()
    expect(await run(['auth', 'status', '--json', option, value], world.context)).toBe(4)
    expect(JSON.parse(world.context.stdout.text)).toMatchObject({ state: 'elsewhere' })
    expect(world.context.stderr.text).toContain(`belongs to the ${what}`)
  })

  it('auth status shows MAILCLAIM_API_KEY as the credential in force, without the key', async () => {
    const world = await createSandboxSession({ environment: { apiKey: 'key-1' } })
    const { exit, stdout } = await mailclaim(world, 'auth', 'status', '--json')
    expect(exit).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      in_force: 'MAILCLAIM_API_KEY',
      state: 'active',
      base_url: world.settings.chosen.base_url?.value,
    })
    expect(stdout).not.toContain('key-1')
  })

  it('auth status and auth token say on stderr that the access token in MAILCLAIM_API_KEY has expired', async () => {
    const exp = Date.UTC(2026, 10, 20, 11, 50) / 1000
    const claims = Buffer.from(JSON.stringify({ exp })).toString('base64url')
    const world = await createSandboxSession({ environment: { apiKey: `e30.${claims}.c2ln` } })
    const status = await mailclaim(world, 'auth', 'status', '--json')
    expect({ exit: status.exit, ...JSON.parse(status.stdout) }).toMatchObject({ exit: 4, state: 'unusable' })
    expect(status.stderr).toContain('the access token in MAILCLAIM_API_KEY expired 10 min ago')
    const token = await mailclaim(world, 'auth', 'token', '--json')
    expect(JSON.parse(token.stdout).expires_at).toBe('2026-11-20T11:50:00.000Z')
    expect(token.stderr).toBe('warning: the access token has expired\n')
  })

  it('auth status with MAILCLAIM_API_KEY does not show a password in the base URL', async () => {
    const world = await createSandboxSession({ environment: { apiKey: 'key-1' } })
    await run(['auth', 'status', '--json', '--base-url', 'https://me:secret@api.example.com'], world.context)
    expect(world.context.stdout.text + world.context.stderr.text).not.toContain('secret')
  })

  it('auth status and auth token exit 4 if MAILCLAIM_API_KEY is malformed', async () => {
    const world = await signedIn({ environment: { apiKey: 'a b' } })
    const { exit, stderr } = await mailclaim(world, 'auth', 'status', '--json')
    expect(exit).toBe(4)
    expect(JSON.parse(stderr).error).toMatchObject({ code: 'credential_refused', exit: 4 })
    expect(await mailclaim(world, 'auth', 'token')).toMatchObject({ exit: 4 })
  })

  it('auth status --online shows `accepted` for an accepted token, and `forbidden` with exit 6 after a status 403', async () => {
    const world = await signedIn()
    const online = async () => await mailclaim(world, 'auth', 'status', '--online', '--json')
    expect(JSON.parse((await online()).stdout)).toMatchObject({ online: 'accepted' })
    await world.fault({ path: '/oauth/grants', kind: 'status', status: 403 })
    const { exit, stdout } = await online()
    expect(exit).toBe(6)
    expect(JSON.parse(stdout)).toMatchObject({ online: 'forbidden', state: 'active' })
  })
})

it('`logout` removes the session and says that this does not revoke the grant', async () => {
  const world = await signedIn()
  const { exit, stderr, stdout } = await mailclaim(world, 'logout')
  expect({ exit, stdout }).toEqual({ exit: 0, stdout: 'profile\twas_signed_in\ndefault\ttrue\n' })
  expect(stderr).toMatchInlineSnapshot(`
    "Profile default is signed out: its tokens were removed from this machine.
    The grant at the service stays active until it is revoked there.
    "
  `)
  expect(await mailclaim(world, 'logout')).toMatchObject({
    exit: 0,
    stderr: 'Profile default was not signed in.\n',
  })
})

it('logout of an unknown profile exits 2, and keeps the session of the default profile', async () => {
  const world = await signedIn()
  expect(await mailclaim(world, 'logout', '--profile', 'defualt')).toMatchObject({
    exit: 2,
    stdout: '',
    stderr: 'error: there is no profile defualt\nhint: use one of these, or sign in: default\n',
  })
  expect(world.session()).toBeDefined()
})

it('logout with a locked keychain exits 4, and the next logout, with the keychain unlocked, deletes the keychain item', async () => {
  const keychain = createFakeKeychain()
  const world = await signedIn({ keychain }, 'keychain')
  keychain.trouble = 'locked'
  const locked = await mailclaim(world, 'logout')
  expect(locked.exit).toBe(4)
  expect(locked.stderr).toContain('may still hold a secret of profile default')
  expect(locked.stderr).toContain('hint: once the keychain answers, this removes it: mailclaim logout\n')
  keychain.trouble = 'none'
  expect(await mailclaim(world, 'logout')).toMatchObject({ exit: 0 })
  expect(keychain.items.size).toBe(0)
})

it('logout of a session in a file exits 0 on a machine without a keychain', async () => {
  const keychain = createFakeKeychain()
  const world = await signedIn({ keychain })
  keychain.trouble = 'no_keychain'
  expect(await mailclaim(world, 'logout')).toMatchObject({ exit: 0 })
})

it('Ctrl-C while logout waits for the keychain exits 130, and the next logout removes the secret from the keychain', async () => {
  const stop = new AbortController()
  const keychain = createFakeKeychain()
  const world = await signedIn({ keychain }, 'keychain')
  const { call } = keychain
  const waiting = (request: KeychainRequest) => {
    if (request.operation !== 'delete') return call.call(keychain, request)
    return new Promise<KeychainResult>((resolve) => {
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

it.each([
  ['auth', 'status'],
  ['auth', 'refresh'],
  ['grants', 'list'],
])('Ctrl-C ends mailclaim %s %s with exit 130 while it waits for the keychain', async (...words) => {
  const stop = new AbortController()
  const keychain = createFakeKeychain()
  const world = await signedIn({ keychain }, 'keychain')
  world.expire()
  const waiting = async (): Promise<KeychainResult> => {
    stop.abort(new InterruptedError('SIGINT'))
    return { ok: false, reason: 'timeout', detail: '' }
  }
  const interrupts = { signal: stop.signal, shield: <T>(work: () => Promise<T>) => work() }
  const context = withEffects(world.context, { interrupts, keychain: { call: waiting } })
  const ended = await mailclaim({ ...world, context }, ...words)
  expect(ended).toEqual({ exit: 130, stdout: '', stderr: 'error: interrupted\n' })
  expect(await world.counts()).toMatchObject({ refreshes: 0 })
})

it('auth list also shows an unknown profile given with --profile, but auth switch to this profile exits 2', async () => {
  const world = await signedIn()
  const { stdout } = await mailclaim(world, 'auth', 'list', '--json', '--profile', 'work')
  expect(JSON.parse(stdout).data).toEqual([
    { profile: 'default', current: false, credential: 'session', store: 'file', base_url: null },
    { profile: 'work', current: true, credential: 'none', store: null, base_url: null },
  ])
  expect(await mailclaim(world, 'auth', 'switch', 'work')).toMatchObject({ exit: 2 })
  expect(await mailclaim(world, 'auth', 'switch', 'default')).toMatchObject({ exit: 0 })
  expect(await mailclaim(world, 'auth', 'switch', '../x')).toMatchObject({ exit: 2 })
})

it('auth token with an unknown profile exits 2 with the names of known profiles, unless MAILCLAIM_API_KEY is set', async () => {
  const world = await signedIn()
  expect(await mailclaim(world, 'auth', 'token', '--profile', 'wrok')).toMatchObject({
    exit: 2,
    stderr: 'error: there is no profile wrok\nhint: use one of these, or sign in: default\n',
  })
  const environment = { ...world.context.environment, apiKey: 'key-1' }
  const withKey = { ...world, context: withEffects(world.context, { environment }) }
  expect(await mailclaim(withKey, 'auth', 'token', '--profile', 'wrok')).toMatchObject({ exit: 0 })
})

it('auth switch warns if MAILCLAIM_API_KEY is set, or MAILCLAIM_PROFILE to another profile', async () => {
  const key = await signedIn({ environment: { apiKey: 'key-1' } })
  expect(await mailclaim(key, 'auth', 'switch', 'default')).toMatchObject({
    exit: 0,
    stderr:
      'Using profile default from now on.\nwarning: MAILCLAIM_API_KEY is set, and commands keep using it\n',
  })
  const profile = await signedIn({ environment: { settings: { profile: 'work' } } })
  // With --json, stderr has only the warning.
  expect(await mailclaim(profile, 'auth', 'switch', 'default', '--json')).toMatchObject({
    exit: 0,
    stderr: 'warning: MAILCLAIM_PROFILE is set to another profile and overrides this\n',
  })
})

it.each(['..', 'a/b', '.hidden', 'UPPER', 'con', 'x'.repeat(65), ''])(
  'auth token rejects the profile name %j with exit 2',
  async (name) => {
    const world = await createSandboxSession()
    expect(await mailclaim(world, 'auth', 'token', `--profile=${name}`)).toMatchObject({ exit: 2 })
  },
)
