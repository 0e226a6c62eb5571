import { cpSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { CliError } from '../../src/errors.ts'
import { getFreshCredential, renewAccessToken } from '../../src/session/credential.ts'
import { readCredentialStatus } from '../../src/session/describe.ts'
import { keychainAccount } from '../../src/session/secret.ts'
import { encodeSession, profileFiles, type Session } from '../../src/session/session-file.ts'
import { prepareLocalSignIn, signOutLocally } from '../../src/session/sign-in.ts'
import { cannotWriteError } from '../../src/storage/file-errors.ts'
import { createIo, type Io } from '../../src/terminal/io.ts'
import { createFakeContext, createFakeKeychain, fakeSettings } from '../fake-context.ts'
import { changeSession, filesOf, sessionIn, signInWith, withEffects } from './sandbox-session.ts'

const tokens = (name: string) => ({
  accessToken: `access-${name}`,
  refreshToken: `refresh-${name}`,
  expiresInSeconds: 900,
  scope: undefined,
})

const signInOf = (kind: Session['kind'], secret: string) =>
  ({ kind, secret, service: 'http://127.0.0.1:1', client: 'client-1', scope: null, resource: null }) as const

async function machine() {
  const keychain = createFakeKeychain()
  let ids = 0
  const context = withEffects(createFakeContext({ keychain }), {
    random: { bytes: (length) => new Uint8Array(length).fill(++ids), fraction: () => 1 },
  })
  const io = createIo(context, await fakeSettings(context))
  return { context, io, keychain, files: profileFiles(io, 'default') }
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (error: CliError) => `${error.code} ${error.exit}`,
  )

describe('a login', () => {
  it.each(['file', 'keychain'] as const)(
    'a second login (%s store) leaves only session.json and lock in the profile directory, both of mode 0600',
    async (store) => {
      const { io, keychain, files } = await machine()
      await signInWith(io, tokens('1'), store)
      await signInWith(io, tokens('2'), store)
      expect(filesOf(files.directory)).toEqual({ lock: '600', 'session.json': '600' })
      expect(await getFreshCredential(io)).toMatchObject({ value: 'access-2' })
      expect([...keychain.items.keys()]).toEqual(store === 'keychain' ? [keychainAccount(files)] : [])
      expect(sessionIn(files).refreshToken).toBe(store === 'file' ? 'refresh-2' : undefined)
    },
  )

  it('a login that cannot write to the disk keeps the keychain item of the former session', async () => {
    const { io, keychain, files } = await machine()
    await signInWith(io, tokens('1'), 'keychain')
    const before = [...keychain.items]
    let isFull = false
    const write: typeof files.disk.write = (fd, text) => {
      if (isFull) throw Object.assign(new Error('EIO: i/o error, write'), { code: 'EIO' })
      files.disk.write(fd, text)
    }
    const disk = { ...files.disk, write }
    const prepared = await prepareLocalSignIn(io, 'keychain', 'session', { ...files, disk })
    isFull = true
    expect(await codeOf(prepared.complete(signInOf('session', 'refresh-2')))).toBe('cannot_write 1')
    expect([...keychain.items]).toEqual(before)
  })

  it('a login with the file store removes the keychain item of the former session', async () => {
    const { io, keychain } = await machine()
    await signInWith(io, tokens('1'), 'keychain')
    await signInWith(io, tokens('2'), 'file')
    expect(keychain.items.size).toBe(0)
  })

  it('a login whose keychain passes the test before the sign-in, but fails after it, stores the refresh token in session.json, with a warning', async () => {
    const { context, io, keychain, files } = await machine()
    const prepared = await prepareLocalSignIn(io, 'keychain', 'session')
    keychain.trouble = 'refused'
    await prepared.complete(signInOf('session', 'refresh-1'))
    expect(sessionIn(files)).toMatchObject({ store: 'keychain', refreshToken: 'refresh-1' })
    expect(context.stderr.text).toMatch(/^warning: the secret of profile default is in a file/)
  })

  it.each(['no_module', 'no_keychain', 'locked', 'timeout', 'refused'] as const)(
    '`prepareLocalSignIn` fails with an unusable keychain (reason: %s), and keeps the former session',
    async (trouble) => {
      const { io, keychain, files } = await machine()
      await signInWith(io, tokens('1'), 'file')
      keychain.trouble = trouble
      expect(await codeOf(prepareLocalSignIn(io, 'keychain', 'session'))).toBe('store_unavailable 4')
      expect(readdirSync(files.directory).sort()).toEqual(['lock', 'session.json'])
      expect(sessionIn(files).refreshToken).toBe('refresh-1')
    },
  )

  it('`reserve` of a prepared login creates its note file (`next.…`) again if a logout has removed the file', async () => {
    const { io, files } = await machine()
    const prepared = await prepareLocalSignIn(io, 'file', 'session')
    await signOutLocally(io, 'default')
    expect(readdirSync(files.directory)).toEqual(['lock'])
    prepared.reserve()
    expect(readdirSync(files.directory).sort()).toEqual([
      'lock',
      expect.stringMatching(/^next\.[0-9a-f]{12}\.0$/),
    ])
    prepared.discard()
    expect(readdirSync(files.directory)).toEqual(['lock'])
  })
})

describe('a stored API key', () => {
  it.each(['file', 'keychain'] as const)(
    'an API key (%s store) can be stored and used although the profile cannot be locked',
    async (store) => {
      const { io, keychain, files } = await machine()
      await files.prepare()
      symlinkSync('nowhere', files.lock)
      await (await prepareLocalSignIn(io, store, 'api_key')).complete(signInOf('api_key', 'key-1'))
      expect(await getFreshCredential(io)).toMatchObject({ kind: 'api_key', value: 'key-1' })
      expect(await readCredentialStatus(io)).toMatchObject({ state: 'active', inForce: 'stored API key' })
      rmSync(files.lock)
      expect(await codeOf(renewAccessToken(io, { always: true }))).toBe('usage 2')
      expect(await signOutLocally(io, 'default')).toMatchObject({ wasSignedIn: true, problem: undefined })
      expect(keychain.items.size).toBe(0)
    },
  )
})

describe('a logout', () => {
  it('a logout removes the note file (`next.…`) that a renewal left', async () => {
    const { io, files } = await machine()
    await signInWith(io, tokens('1'), 'file')
    writeFileSync(join(files.directory, `next.${sessionIn(files).id}.1`), 'x')
    await signOutLocally(io, 'default')
    expect(readdirSync(files.directory)).toEqual(['lock'])
  })

  it('a logout deletes the keychain item even if the directory of the profile is gone', async () => {
    const { io, keychain, files } = await machine()
    await signInWith(io, tokens('1'), 'keychain')
    rmSync(files.directory, { recursive: true })
    expect(await signOutLocally(io, 'default')).toMatchObject({ wasSignedIn: false })
    expect(keychain.items.size).toBe(0)
  })

  it('a logout with a damaged session file succeeds on a machine whose keychain library does not load', async () => {
    const { io, keychain, files } = await machine()
    await signInWith(io, tokens('1'), 'file')
    writeFileSync(files.session, 'x')
    keychain.trouble = 'no_module'
    expect(await signOutLocally(io, 'default')).toMatchObject({ wasSignedIn: true, problem: undefined })
    expect(readdirSync(files.directory)).toEqual(['lock'])
  })

  it('a logout that cannot list the profile directory fails, and says that tokens may remain', async () => {
    const { io, files } = await machine()
    await signInWith(io, tokens('1'), 'file')
    const names = () => {
      throw cannotWriteError(files.directory, new Error('EACCES: permission denied, scandir'))
    }
    const forgotten = signOutLocally(io, 'default', { ...files, disk: { ...files.disk, names } })
    await expect(forgotten).rejects.toMatchObject({ message: expect.stringMatching(/^tokens may remain on/) })
  })

  it('a logout from a profile that was never signed in creates no file', async () => {
    const { io, context } = await machine()
    await signOutLocally(io, 'default')
    expect(() => readdirSync(context.directories.state)).toThrow()
  })
})

describe('two state directories', () => {
  it('a logout keeps the keychain item of another state directory that shares the keychain', async () => {
    const first = await machine()
    const second = await machine()
    const io: Io = { ...second.io, keychain: first.keychain }
    await signInWith(first.io, tokens('1'), 'keychain')
    await signInWith(io, tokens('2'), 'keychain')
    expect(first.keychain.items.size).toBe(2)
    await signOutLocally(io, 'default')
    expect([...first.keychain.items.keys()]).toEqual([keychainAccount(first.files)])
  })
})

describe('an unusable session file', () => {
  const whole = (session: Session) => encodeSession(session)
  it.each<[string, (text: (session: Session) => string, session: Session) => string, string, RegExp]>([
    ['is cut short', (text, session) => text(session).slice(0, 100), 'file_unusable 4', /damaged/],
    ['was changed', (text, session) => text(session).replace('-1', '-2'), 'file_unusable 4', /damaged/],
    ['has more at its end', (text, session) => `${text(session)}{}`, 'file_unusable 4', /damaged/],
    [
      'is of a later version',
      (text, session) => text({ ...session, format: 2 } as never),
      'file_unusable 4',
      /later version/,
    ],
    [
      'is of another profile',
      (text, session) => text({ ...session, profile: 'work' }),
      'session_elsewhere 4',
      /a copy/,
    ],
  ])(
    'a session file that %s is rejected, and replaced by the next login',
    async (_what, change, code, says) => {
      const { io, files } = await machine()
      await signInWith(io, tokens('1'), 'file')
      writeFileSync(files.session, change(whole, sessionIn(files)))
      expect(await codeOf(getFreshCredential(io))).toBe(code)
      const { problem } = await readCredentialStatus(io)
      expect(problem).toMatchObject({
        message: expect.stringMatching(says),
        hint: 'sign in again: mailclaim login',
      })
      await signInWith(io, tokens('3'), 'file')
      expect(await getFreshCredential(io)).toMatchObject({ value: 'access-3' })
    },
  )

  it('a session file that was copied to another profile is rejected there', async () => {
    const { context, io, files } = await machine()
    await signInWith(io, tokens('1'), 'file')
    cpSync(files.directory, join(dirname(files.directory), 'work'), { recursive: true })
    const work = createIo(context, await fakeSettings(context, { profile: 'work' }))
    expect(await codeOf(getFreshCredential(work))).toBe('session_elsewhere 4')
    await signOutLocally(work, 'work')
    expect(await getFreshCredential(io)).toMatchObject({ value: 'access-1' })
  })

  it.each([
    ['invalid base URL', { baseUrl: 'nonsense' }, 'base_url_unusable 3'],
    ['invalid client id', { clientId: 'client-ü' }, 'usage 2'],
    ['unknown profile', { profile: 'wrok' }, 'usage 2'],
  ])('`readCredentialStatus` throws for settings with an %s', async (_what, options, code) => {
    const { context, io } = await machine()
    await signInWith(io, tokens('1'), 'file')
    const other = createIo(context, await fakeSettings(context, options))
    expect(await codeOf(readCredentialStatus(other))).toBe(code)
  })

  it('`readCredentialStatus` reports an ended session with the reason of its end', async () => {
    const { io, files } = await machine()
    await signInWith(io, tokens('1'), 'file')
    changeSession(files, { ended: { at: 1, why: 'revoked by a person' } })
    expect(await readCredentialStatus(io)).toMatchObject({
      state: 'ended',
      problem: { message: 'the session of profile default is over: revoked by a person' },
    })
  })
})
