import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Context } from '../../src/context.ts'
import { createAuthorizer, currentCredential } from '../../src/session/authorizer.ts'
import { describeSession } from '../../src/session/describe.ts'
import { forgetSession } from '../../src/session/forget.ts'
import { profilesWithSession } from '../../src/session/profiles.ts'
import { proveStore } from '../../src/session/prove-store.ts'
import { readRecord } from '../../src/session/record.ts'
import { renew } from '../../src/session/refresh.ts'
import { replaceSession, storeApiKey } from '../../src/session/replace.ts'
import { createFakeClock, createFakeKeychain } from '../fake-context.ts'
import { realClock } from './processes.ts'
import { createSandboxSession, filesOf, type SandboxSession, withEffects } from './sandbox-session.ts'

const names = (world: SandboxSession) => Object.keys(filesOf(world.paths.directory))

async function newSession(world: SandboxSession, store: 'keychain' | 'file') {
  return {
    base: world.base,
    clientId: world.clientId,
    scope: undefined,
    resource: undefined,
    tokens: await world.newTokens(),
    store,
  }
}

describe('a login over an existing session', () => {
  it.each(['file', 'keychain'] as const)(
    'a login over a session (%s) leaves the new one and no copy of the old one',
    async (store) => {
      const keychain = createFakeKeychain()
      const world = await createSandboxSession({ keychain })
      await world.signIn(store)
      const before = await currentCredential(world.context, world.settings)
      await world.signIn(store)
      expect((await currentCredential(world.context, world.settings)).value).not.toBe(before.value)
      await renew(world.context, world.settings, { reason: 'asked' })

      expect(keychain.items.size).toBe(store === 'keychain' ? 1 : 0)
      expect(names(world).filter((name) => name.startsWith('secret.'))).toHaveLength(store === 'file' ? 1 : 0)
      expect(names(world).includes('superseded.json')).toBe(store === 'keychain')
      expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
    },
  )

  it.each([
    ['file', 'keychain'],
    ['keychain', 'file'],
  ] as const)('a login moves the session from %s to %s', async (from, to) => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn(from)
    await world.signIn(to)
    expect(keychain.items.size).toBe(to === 'keychain' ? 1 : 0)
    expect(names(world).filter((name) => name.startsWith('secret.'))).toHaveLength(to === 'file' ? 1 : 0)
    await renew(world.context, world.settings, { reason: 'asked' })
  })

  it('a login that cannot store its session keeps the old one whole', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('file')
    keychain.trouble = 'no_bus'
    const replacing = replaceSession(world.context, world.settings, await newSession(world, 'keychain'))
    await expect(replacing).rejects.toMatchObject({ code: 'keychain_no_bus', exit: 4 })
    await renew(world.context, world.settings, { reason: 'asked' })
    expect((await describeSession(world.context, world.settings)).state).toBe('fine')
  })

  it('two logins at once leave one whole session', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain }, { clock: realClock })
    const sessions = await Promise.all([newSession(world, 'keychain'), newSession(world, 'keychain')])
    await Promise.all(sessions.map((session) => replaceSession(world.context, world.settings, session)))
    expect(keychain.items.size).toBe(1)
    await renew(world.context, world.settings, { reason: 'asked' })
    await renew(world.context, world.settings, { reason: 'asked' })
    expect(await world.counts()).toMatchObject({ refreshes: 2, reuse_detections: 0 })
  })

  it('a login keeps the files of a damaged session beside the new one', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    writeFileSync(world.paths.session, '{"version":1,')
    expect((await describeSession(world.context, world.settings)).state).toBe('unusable')
    await world.signIn()
    expect((await describeSession(world.context, world.settings)).state).toBe('fine')
    const kept = names(world).find((name) => name.startsWith('session.json.damaged-')) ?? ''
    expect(readFileSync(join(world.paths.directory, kept), 'utf8')).toBe('{"version":1,')
  })

  it('a login that dies before the record is written leaves the old session, and the next login cleans up', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    let dead = false
    const dying: Context['keychain'] = {
      async call(request) {
        // A process that is dead does nothing more.
        dead ||= request.operation === 'get'
        if (dead) throw new Error('killed')
        return keychain.call(request)
      },
    }
    const context = withEffects(world.context, { keychain: dying })
    await expect(
      replaceSession(context, world.settings, await newSession(world, 'keychain')),
    ).rejects.toThrow('killed')
    await renew(world.context, world.settings, { reason: 'asked' })
    await world.signIn('keychain')
    expect(keychain.items.size).toBe(1)
  })
})

describe('a keychain that hangs during a login', () => {
  /** A keychain that stores, but answers only when a signal ends the wait. */
  async function hangingKeychain() {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    const called: string[] = []
    const hanging: Context['keychain'] = {
      async call(request) {
        called.push(request.operation)
        await keychain.call(request)
        const { signal } = request
        if (signal?.aborted !== true)
          await new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }))
        return { ok: false, reason: 'timeout', detail: '' }
      },
    }
    const context = withEffects(world.context, { keychain: hanging })
    const replacing = replaceSession(context, world.settings, await newSession(world, 'keychain'))
    await expect.poll(() => called).toEqual(['set'])
    return { world, keychain, replacing }
  }

  it('is named as the cause, and Ctrl-C ends the wait and leaves the session before', async () => {
    const { world, keychain, replacing } = await hangingKeychain()
    world.context.clock.ring()
    await expect.poll(() => world.context.stderr.text).toBe('Waiting for the keychain …\n')
    world.context.interrupt()
    await expect(replacing).rejects.toMatchObject({ code: 'interrupted', exit: 130 })
    expect((await describeSession(world.context, world.settings)).state).toBe('fine')
    // As the next command, which nobody interrupts.
    const { signal } = new AbortController()
    const context = withEffects(world.context, { interrupts: { ...world.context.interrupts, signal } })
    await renew(context, world.settings, { reason: 'asked' })
    await replaceSession(context, world.settings, await newSession(world, 'keychain'))
    expect(keychain.items.size).toBe(1)
  })

  it('leaves a note of what it may hold', async () => {
    const { world, keychain, replacing } = await hangingKeychain()
    const { items } = keychain
    // The last request, to remove the new item, does not reach it.
    const late = new Map(items)
    world.context.interrupt()
    await replacing.catch(() => undefined)
    for (const [account, value] of late) items.set(account, value)
    expect(items.size).toBe(2)
    await forgetSession(world.context, world.settings, 'default')
    expect(items.size).toBe(0)
  })
})

describe('the proof of a store before a login', () => {
  it('proving a store leaves nothing in the keychain', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await proveStore(world.context, world.settings, 'keychain')
    expect(keychain.items.size).toBe(0)
    expect(keychain.calls.map(({ operation }) => operation)).toEqual(['set', 'get', 'delete'])
  })

  it.each(['no_module', 'no_bus', 'no_service', 'locked', 'timeout', 'refused'] as const)(
    'proving a keychain with the error %s fails, names the alternatives, and does not fall back',
    async (trouble) => {
      const keychain = createFakeKeychain()
      const world = await createSandboxSession({ keychain })
      keychain.trouble = trouble
      const proving = proveStore(world.context, world.settings, 'keychain')
      await expect(proving).rejects.toMatchObject({
        code: `keychain_${trouble}`,
        exit: 4,
        hint: expect.stringMatching(/MAILCLAIM_API_KEY.*--store file$/),
      })
      expect(names(world)).toEqual(['lock'])
    },
  )
})

describe('a logout', () => {
  it.each(['file', 'keychain'] as const)('a logout (%s) removes every copy', async (store) => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn(store)
    const { kept } = await forgetSession(world.context, world.settings, 'default')
    expect(kept).toEqual([])
    expect(keychain.items.size).toBe(0)
    expect(names(world)).toEqual(['lock'])
    expect((await describeSession(world.context, world.settings)).state).toBe('none')
  })

  it('a logout says if a locked keychain kept a copy, and the next logout removes it', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    keychain.trouble = 'locked'
    const { kept } = await forgetSession(world.context, world.settings, 'default')
    expect(kept).toEqual([
      { location: expect.objectContaining({ store: 'keychain' }), why: 'the keychain is locked' },
    ])
    expect(names(world)).toEqual(['lock', 'superseded.json'])
    expect(profilesWithSession(world.context)).toEqual(['default'])

    keychain.trouble = 'none'
    expect((await forgetSession(world.context, world.settings, 'default')).kept).toEqual([])
    expect(keychain.items.size).toBe(0)
    expect(profilesWithSession(world.context)).toEqual([])
  })

  it('a logout removes fallback copies', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    const { http } = world.context
    const context = withEffects(world.context, {
      http: {
        async send(request) {
          const response = await http.send(request)
          keychain.trouble = 'refused'
          return response
        },
        close: async () => {},
      },
    })
    await renew(context, world.settings, { reason: 'asked' })
    keychain.trouble = 'none'
    await forgetSession(world.context, world.settings, 'default')
    expect(names(world)).toEqual(['lock'])
    expect(keychain.items.size).toBe(0)
  })

  it('a logout creates no files for a profile that was never signed in', async () => {
    const world = await createSandboxSession()
    expect((await forgetSession(world.context, world.settings, 'default')).record).toBeUndefined()
    expect(() => readdirSync(world.paths.directory)).toThrow('ENOENT')
  })
})

describe('a session', () => {
  it.each([
    ['another base URL', { baseUrl: 'http://127.0.0.1:9' }, 'session_of_another_service'],
    ['another client', { clientId: 'another' }, 'session_of_another_client'],
  ])('a session is never sent to %s, fresh or not', async (_name, options, code) => {
    const world = await createSandboxSession()
    await world.signIn()
    const settings = await world.settingsWith(options)
    await expect(currentCredential(world.context, settings)).rejects.toMatchObject({ code, exit: 4 })
    world.expire()
    await expect(currentCredential(world.context, settings)).rejects.toMatchObject({ code, exit: 4 })
    expect(await world.counts()).toMatchObject({ refreshes: 0 })
  })

  it('a session that another process has just renewed is not sent to another service either', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const settings = await world.settingsWith({ baseUrl: 'http://127.0.0.1:9' })
    const renewed = renew(world.context, settings, { reason: 'stale', outdated: 'the one before' })
    await expect(renewed).rejects.toMatchObject({ code: 'session_of_another_service', exit: 4 })
  })

  it('a session stays in its profile', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const settings = await world.settingsWith({ profile: 'other' })
    await expect(currentCredential(world.context, settings)).rejects.toMatchObject({
      code: 'not_signed_in',
      exit: 4,
      hint: expect.stringContaining('mailclaim login --profile other'),
    })
  })

  it('a session is not refreshed with a token that is older than the last one stored', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const record = await readRecord(world.paths)
    const secret = join(world.paths.directory, `secret.${record?.id}.json`)
    const backup = readFileSync(secret)
    await renew(world.context, world.settings, { reason: 'asked' })
    for (const name of names(world)) if (name.startsWith('secret.')) rmSync(join(world.paths.directory, name))
    writeFileSync(secret, backup)
    await expect(renew(world.context, world.settings, { reason: 'asked' })).rejects.toMatchObject({
      code: 'refresh_token_outdated',
      exit: 4,
    })
    expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
  })

  it('a session whose process died right after storing the new token continues', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const { directory } = world.paths
    let journal = ''
    const context = withEffects(world.context, {
      http: {
        async send(request) {
          const response = await world.context.http.send(request)
          journal = names(world).find((name) => name.startsWith('journal.')) ?? ''
          return response
        },
        close: async () => {},
      },
    })
    await renew(context, world.settings, { reason: 'asked' })
    // As the disk was: the new token is there, the journal still says that the old one was sent, no access token.
    expect(journal).toMatch(/^journal\.[0-9a-f]{64}\.json$/)
    writeFileSync(join(directory, journal), '')
    renameSync(world.paths.accessToken, `${world.paths.accessToken}.gone`)
    expect((await describeSession(world.context, world.settings)).state).toBe('needs_refresh')
    await currentCredential(world.context, world.settings)
    expect(await world.counts()).toMatchObject({ refreshes: 2, reuse_detections: 0 })
    expect(names(world)).not.toContain(journal)
  })

  it('a session is called expired after 60 days, but the service decides', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    world.context.clock.advance(61 * 24 * 3600 * 1000)
    const described = await describeSession(world.context, world.settings)
    expect(described.state).toBe('expired')
    expect(described.problem?.message).toContain('more than 60 days ago')
    await currentCredential(world.context, world.settings)
  })
})

describe('a 401 from the API', () => {
  it('a 401 renews the access token once, and only while it is still the refused one', async () => {
    // Who waits for the lock waits for a real exchange over HTTP: no time passes, so its patience cannot run out first.
    const clock = { ...createFakeClock(), sleep: () => new Promise<void>((resolve) => setImmediate(resolve)) }
    const world = await createSandboxSession({}, { clock })
    await world.signIn()
    const authorizer = createAuthorizer(world.context, world.settings)
    const first = await authorizer.credential()
    const [second, third] = await Promise.all([authorizer.refused(first), authorizer.refused(first)])
    expect(second?.value).not.toBe(first.value)
    expect(third?.value).toBe(second?.value)
    expect(await world.counts()).toMatchObject({ refreshes: 1 })
  })

  it('a 401 leaves an API key as it is', async () => {
    const world = await createSandboxSession({ environment: { apiKey: 'key-1' } })
    const authorizer = createAuthorizer(world.context, world.settings)
    const credential = await authorizer.credential()
    expect(credential).toMatchObject({ kind: 'api_key', value: 'key-1' })
    expect(await authorizer.refused(credential)).toBeUndefined()
  })
})

describe('an API key', () => {
  it('an API key in the environment overrides the session and is not stored', async () => {
    const world = await createSandboxSession({ environment: { apiKey: 'key-of-the-environment' } })
    await world.signIn()
    expect(await currentCredential(world.context, world.settings)).toMatchObject({
      value: 'key-of-the-environment',
    })
    const written = names(world).map((name) => readFileSync(join(world.paths.directory, name), 'utf8'))
    expect(written.join()).not.toContain('key-of-the-environment')
    expect(await describeSession(world.context, world.settings)).toMatchObject({ apiKeyActive: true })
  })

  it.each(['file', 'keychain'] as const)(
    'a stored API key (%s) is used, replaced by a login, and forgotten',
    async (store) => {
      const keychain = createFakeKeychain()
      const world = await createSandboxSession({ keychain })
      await storeApiKey(world.context, world.settings, { value: 'stored-key', base: world.base, store })
      expect(await currentCredential(world.context, world.settings)).toMatchObject({
        kind: 'api_key',
        value: 'stored-key',
      })
      expect((await describeSession(world.context, world.settings)).state).toBe('fine')
      await expect(renew(world.context, world.settings, { reason: 'asked' })).rejects.toMatchObject({
        exit: 2,
      })
      await world.signIn(store)
      expect(await currentCredential(world.context, world.settings)).toMatchObject({ kind: 'access_token' })
      await forgetSession(world.context, world.settings, 'default')
      expect(keychain.items.size).toBe(0)
    },
  )

  it.each(['two\nlines', 'a b', '', 'ümlaut'])(
    'a text that cannot be an API key (%j) is refused',
    async (value) => {
      const world = await createSandboxSession()
      const storing = storeApiKey(world.context, world.settings, { value, base: undefined, store: 'file' })
      await expect(storing).rejects.toMatchObject({ exit: 2 })
    },
  )
})

describe('a narrowed access token', () => {
  it('commands use a narrowed access token until the next renewal restores the whole scope', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const whole = (await readRecord(world.paths)) as { scope: string }
    const narrow = whole.scope.split(' ')[0] ?? ''
    const { token } = await renew(world.context, world.settings, { reason: 'asked', scope: narrow })
    expect(token).toMatchObject({ scope: narrow, narrowed: true })
    expect((await currentCredential(world.context, world.settings)).value).toBe(token.value)
    expect((await describeSession(world.context, world.settings)).accessToken).toMatchObject({
      narrowed: true,
    })
    world.expire()
    await currentCredential(world.context, world.settings)
    expect((await describeSession(world.context, world.settings)).accessToken).toMatchObject({
      scope: whole.scope,
      narrowed: false,
    })
  })

  it('a narrowed access token cannot have more scope than was granted, and asking for it costs nothing', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const asking = renew(world.context, world.settings, { reason: 'asked', scope: 'everything' })
    await expect(asking).rejects.toMatchObject({ code: 'invalid_scope', exit: 6, status: 400 })
    await renew(world.context, world.settings, { reason: 'asked' })
    expect(await world.counts()).toMatchObject({ reuse_detections: 0 })
  })
})
