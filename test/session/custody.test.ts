import { spawnSync } from 'node:child_process'
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  type Context,
  type HttpRequest,
  type HttpResponse,
  type Keychain,
  type KeychainAnswer,
  type KeychainRequest,
  TransportError,
} from '../../src/context.ts'
import { readNewest } from '../../src/credentials/secret-copies.ts'
import { readAccessToken } from '../../src/session/access-token.ts'
import { currentCredential } from '../../src/session/authorizer.ts'
import { describeSession } from '../../src/session/describe.ts'
import { forgetSession } from '../../src/session/forget.ts'
import { journalDirectory } from '../../src/session/guard.ts'
import { fingerprint } from '../../src/session/journal.ts'
import { profilesWithSecrets } from '../../src/session/profiles.ts'
import { readRecord } from '../../src/session/record.ts'
import { renew } from '../../src/session/refresh.ts'
import type { RenewOptions } from '../../src/session/refresh-task.ts'
import { secretStorage } from '../../src/session/secret-storage.ts'
import { withLock } from '../../src/storage/lock.ts'
import { createFakeKeychain, jsonResponse } from '../fake-context.ts'
import { needs } from '../requirements.ts'
import { realClock } from './processes.ts'
import { createSandboxSession, endOf, filesOf, type SandboxSession, withEffects } from './sandbox-session.ts'

const ASKED: RenewOptions = { reason: 'asked' }
const ROOT = process.getuid?.() === 0

/** Runs something at the last moment before a refresh token leaves, before or after the journal is written. */
function beforeSending(world: SandboxSession, around: (enterJournal: () => void) => void): Context {
  const { http } = world.context
  const send = (request: HttpRequest) =>
    http.send({ ...request, beforeSend: () => around(() => request.beforeSend?.()) })
  return withEffects(world.context, { http: { ...http, send } })
}

/** Runs something when the service has rotated the token and nothing is stored yet. */
function beforeStoring(world: SandboxSession, meanwhile: () => unknown): Context {
  const { http } = world.context
  return withEffects(world.context, {
    http: {
      ...http,
      async send(request) {
        const response = await http.send(request)
        await meanwhile()
        return response
      },
    },
  })
}

function withEffectsOf(world: SandboxSession, effects: Partial<Context>): SandboxSession {
  return { ...world, context: withEffects(world.context, effects) }
}

const names = (world: SandboxSession) => Object.keys(filesOf(world.paths.directory))

describe('the lock file of a session', () => {
  it.each(['stop', 'retry'])(
    'a lock file that is deleted during a refresh makes nobody send the token again (on-interrupted: %s)',
    async (value) => {
      const world = await createSandboxSession({}, { clock: realClock })
      await world.signIn()
      const chosen = { ...world.settings.chosen, on_interrupted: { value, source: 'flag' as const } }
      const settings = { ...world.settings, chosen }
      world.expire()
      let state = ''
      let other: Promise<string> | undefined
      const context = beforeStoring(world, async () => {
        rmSync(world.paths.lock)
        other = endOf(() => renew(world.context, settings, { reason: 'stale' }))
        state = (await describeSession(world.context, settings)).state
      })
      expect(await endOf(() => renew(context, settings, ASKED))).toBe('ok')
      expect(state).toBe('refreshing')
      expect(await other).toBe('ok')
      expect(await world.counts()).toMatchObject({ reuse_detections: 0, grants_revoked: 0 })
      expect(world.context.stderr.text).toBe('')
    },
  )

  it('a token whose sender ends while the journal is read is not taken for an interrupted one', async () => {
    const fake = createFakeKeychain()
    let journal = ''
    const keychain: Keychain = {
      async call(request) {
        const answer = await fake.call(request)
        // The journal has been listed; its entry goes as the sender ends.
        if (request.operation === 'get' && journal !== '') rmSync(journal, { force: true })
        return answer
      },
    }
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    const record = await readRecord(world.paths)
    if (record === undefined) throw new Error('nobody is signed in')
    const storage = secretStorage(world.paths, record)
    const { value } = await readNewest(world.context, storage)
    const entry = join(journalDirectory(world.context, storage), `journal.${fingerprint(value)}.json`)
    const begin = () => {
      mkdirSync(dirname(entry), { recursive: true, mode: 0o700 })
      writeFileSync(entry, '{}', { mode: 0o600 })
      journal = entry
    }
    begin()
    expect((await describeSession(world.context, world.settings)).state).not.toBe('interrupted')
    begin()
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
  })

  it('a token whose sender was killed is not taken for one that is being sent', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const context = beforeStoring(world, () => {
      throw new TransportError('reset', 'maybe', 'the connection was closed')
    })
    expect(await endOf(() => renew(context, world.settings, ASKED))).toBe('refresh_unknown')
    expect((await describeSession(world.context, world.settings)).state).toBe('interrupted')
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('refresh_interrupted')
  })

  it.each(['before the journal is written', 'while the journal is written'] as const)(
    'a lock file that is deleted %s is locked again before anything is sent',
    async (when) => {
      const world = await createSandboxSession()
      await world.signIn()
      let armed = false
      const { clock } = world.context
      const now = () => {
        // The last thing that is looked up before the journal is on the disk.
        if (armed) rmSync(world.paths.lock)
        armed = false
        return clock.now()
      }
      let attempts = 0
      const context = beforeSending(withEffectsOf(world, { clock: { ...clock, now } }), (enterJournal) => {
        if (attempts++ === 0) {
          if (when === 'while the journal is written') armed = true
          else rmSync(world.paths.lock)
        }
        enterJournal()
      })
      expect(await endOf(() => renew(context, world.settings, ASKED))).toBe('ok')
      expect(attempts).toBe(2)
      expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
      expect(names(world).filter((name) => name.startsWith('journal.'))).toEqual([])
    },
  )

  it('a lock file that is deleted while the new token is stored leads to no second use of a token', async () => {
    const world = await createSandboxSession({}, { clock: realClock })
    await world.signIn()
    const { directory } = world.paths
    const own = () => readdirSync(directory).filter((name) => /^secret\..*-.*\.json$/.test(name))
    await renew(world.context, world.settings, ASKED)
    const [first = ''] = own()
    const text = readFileSync(join(directory, first), 'utf8')
    await renew(world.context, world.settings, ASKED)
    await renew(world.context, world.settings, ASKED)
    // The process that wrote the first one was stopped meanwhile. All that it can still do is to write its own file.
    writeFileSync(join(directory, first), text)
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: 4, reuse_detections: 0, grants_revoked: 0 })
  })

  it('a lock file that keeps being deleted ends the command, with nothing sent', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const context = beforeSending(world, (enterJournal) => {
      rmSync(world.paths.lock)
      enterJournal()
    })
    await expect(renew(context, world.settings, ASKED)).rejects.toMatchObject({
      code: 'session_busy',
      exit: 7,
      message: expect.stringContaining('keeps deleting or replacing its lock file'),
    })
    expect(await world.counts()).toMatchObject({ refreshes: 0 })
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
  })

  it('a lock file that is deleted in a loop during many refreshes leads to no second use of a token', async () => {
    const world = await createSandboxSession({}, { clock: realClock })
    await world.signIn()
    const cleaner = setInterval(() => rmSync(world.paths.lock, { force: true }), 2)
    const ends = await Promise.all(
      Array.from({ length: 12 }, () => endOf(() => renew(world.context, world.settings, ASKED))),
    )
    clearInterval(cleaner)
    expect(new Set(ends)).not.toContain('session_over')
    expect(await world.counts()).toMatchObject({ reuse_detections: 0, grants_revoked: 0 })
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
  })
})

describe('a lock file that is deleted while the session is read', () => {
  it('does not make a session look damaged that another process renews meanwhile', async () => {
    const fake = createFakeKeychain()
    let isAnswered = false
    const keychain: Keychain = {
      async call(request) {
        if (request.operation !== 'get' || !armed || isAnswered) return fake.call(request)
        isAnswered = true
        rmSync(world.paths.lock)
        return { ok: true, value: null }
      },
    }
    let armed = false
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    armed = true
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
    expect(isAnswered).toBe(true)
  })

  it('is not noticed by a reader that looks again for a token whose file was replaced', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const record = await readRecord(world.paths)
    if (record === undefined) throw new Error('nobody is signed in')
    const storage = secretStorage(world.paths, record)
    const reading = readNewest(world.context, storage)
    // The directory has been listed, and no file has been opened.
    renameSync(storage.location.name, storage.location.name.replace(/json$/, '1-0123456789ab.json'))
    expect((await reading).value).toMatch(/./)
  })
})

describe('a logout during a refresh, after the lock file was deleted', () => {
  async function signedOutMeanwhile(store: 'file' | 'keychain', answer?: HttpResponse) {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn(store)
    world.expire()
    const { http } = world.context
    const context = withEffects(world.context, {
      http: {
        ...http,
        async send(request) {
          const response = await http.send(request)
          rmSync(world.paths.lock)
          await forgetSession(world.context, world.settings, 'default')
          return answer ?? response
        },
      },
    })
    return { world, keychain, renewed: renew(context, world.settings, { reason: 'stale' }) }
  }
  const left = (world: SandboxSession) => names(world).filter((name) => name !== 'lock')

  it.each(['file', 'keychain'] as const)('stays a logout (%s)', async (store) => {
    const { world, keychain, renewed } = await signedOutMeanwhile(store)
    await expect(renewed).rejects.toMatchObject({
      code: 'not_signed_in',
      exit: 4,
      message: expect.stringContaining('was signed out while this command renewed its session'),
    })
    expect(left(world)).toEqual([])
    expect(keychain.items.size).toBe(0)
    expect(await endOf(() => currentCredential(world.context, world.settings))).toBe('not_signed_in')
  })

  it('stays a logout if the service refuses', async () => {
    const { world, renewed } = await signedOutMeanwhile('file', jsonResponse(400, { error: 'invalid_grant' }))
    await expect(renewed).rejects.toMatchObject({ code: 'not_signed_in' })
    expect(left(world)).toEqual([])
  })

  it('stays a logout if the answer has only an access token', async () => {
    const answer = jsonResponse(200, { access_token: 'a', token_type: 'Bearer', expires_in: 900 })
    const { world, renewed } = await signedOutMeanwhile('file', answer)
    await expect(renewed).rejects.toMatchObject({ code: 'refresh_unknown' })
    expect(left(world)).toEqual([])
  })

  it('leaves a note of what a keychain kept', async () => {
    const { world, keychain, renewed } = await signedOutMeanwhile('keychain')
    const call = keychain.call.bind(keychain)
    const refusing = (request: KeychainRequest): Promise<KeychainAnswer> =>
      request.operation === 'delete' && keychain.items.size > 0 && !names(world).includes('session.json')
        ? Promise.resolve({ ok: false, reason: 'locked', detail: '' })
        : call(request)
    keychain.call = refusing
    await expect(renewed).rejects.toMatchObject({ code: 'not_signed_in' })
    keychain.call = call
    expect(keychain.items.size).toBe(1)
    await forgetSession(world.context, world.settings, 'default')
    expect(keychain.items.size).toBe(0)
  })

  it('leaves no access token that a command would use', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const token = readFileSync(world.paths.accessToken)
    await forgetSession(world.context, world.settings, 'default')
    writeFileSync(world.paths.accessToken, token)
    expect(await endOf(() => currentCredential(world.context, world.settings))).toBe('not_signed_in')
  })
})

describe('a token that another process is sending', () => {
  it('a token in the journal is not sent, even by a process that still holds the lock', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const record = await readRecord(world.paths)
    if (record === undefined) throw new Error('nobody is signed in')
    const { value } = await readNewest(world.context, secretStorage(world.paths, record))
    // As if another process, under a lock file of its own, had been the first to write the journal, and had been killed.
    const context = beforeSending(world, (enterJournal) => {
      writeFileSync(join(world.paths.directory, `journal.${fingerprint(value)}.json`), '{}')
      enterJournal()
    })
    await expect(renew(context, world.settings, ASKED)).rejects.toMatchObject({ code: 'refresh_interrupted' })
    expect(await world.counts()).toMatchObject({ refreshes: 0 })
  })
})

describe('a file system without locks that work', () => {
  it('a last check before sending finds the successor, so no token is used twice', async () => {
    const world = await createSandboxSession({}, { clock: realClock })
    await world.signIn()
    let others = 0
    const context = beforeSending(world, (enterJournal) => {
      if (others++ === 0) {
        // As if another machine had renewed the session in the meantime, under a lock of its own.
        const record = JSON.parse(readFileSync(world.paths.session, 'utf8')) as { id: string }
        const successor = {
          version: 1,
          generation: 2,
          issued_at: new Date().toISOString(),
          secret: 'of another',
        }
        writeFileSync(
          join(world.paths.directory, `secret.${record.id}.1-0123456789ab.json`),
          JSON.stringify(successor),
        )
      }
      enterJournal()
    })
    const sent: string[] = []
    const { http } = context
    const watched = withEffects(context as never, {
      http: {
        ...http,
        send: (request) => {
          sent.push(new URLSearchParams(request.body).get('refresh_token') ?? '')
          return http.send(request)
        },
      },
    })
    await endOf(() => renew(watched, world.settings, ASKED))
    // The first was stopped before a byte left; what is sent is the newer one.
    expect(sent.at(-1)).toBe('of another')
    expect(await world.counts()).toMatchObject({ refreshes: 0, reuse_detections: 0 })
  })
})

describe('a journal that cannot be written', () => {
  it('a refresh whose journal cannot be written sends nothing, says so, and leaves the session as it was', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const { directory } = world.paths
    const context = beforeSending(world, (enterJournal) => {
      const journals = `${directory}.away`
      renameSync(directory, journals)
      mkdirSync(directory)
      cpSync(join(journals, 'lock'), join(directory, 'lock'))
      try {
        enterJournal()
      } finally {
        rmSync(directory, { recursive: true })
        renameSync(journals, directory)
      }
    })
    // The lock is a different one for a moment, so everything is read again until the command gives up with an error.
    expect(await endOf(() => renew(context, world.settings, ASKED))).toBe('session_busy')
    expect(await world.counts()).toMatchObject({ refreshes: 0 })
    expect(names(world).filter((name) => name.startsWith('journal.'))).toEqual([])
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
  })
})

describe('a copy of a profile', () => {
  it('a copied profile is refused before anything is sent, and called a copy', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const copy = join(world.paths.directory, '..', 'b')
    cpSync(world.paths.directory, copy, { recursive: true })
    await renew(world.context, world.settings, ASKED)
    const settings = await world.settingsWith({ profile: 'b' })
    await expect(renew(world.context, settings, ASKED)).rejects.toMatchObject({
      code: 'session_copied',
      exit: 4,
      message: expect.stringContaining('it belongs to profile default'),
      hint: expect.stringContaining('mailclaim login --profile b'),
    })
    expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
  })

  it('signing out of a copied profile leaves the original alone', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    const copy = join(world.paths.directory, '..', 'b')
    cpSync(world.paths.directory, copy, { recursive: true })
    const { damaged } = await forgetSession(world.context, await world.settingsWith({ profile: 'b' }), 'b')
    expect(damaged).toContain('session.json.damaged-')
    expect(keychain.items.size).toBe(1)
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
  })
})

describe('two state directories that share a keychain', () => {
  async function twoStates() {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain }, { clock: realClock })
    await world.signIn('keychain')
    const { directories } = world.context
    const state = `${directories.state}-copy`
    cpSync(directories.state, state, { recursive: true })
    const other = withEffects(world.context, { directories: { ...directories, state } })
    return { world, other, keychain }
  }

  it('state directories that share a keychain refresh one after the other, each with the token that the other stored', async () => {
    const { world, other } = await twoStates()
    const ends = await Promise.all(
      [world.context, other, world.context, other, other, world.context].map((context) =>
        endOf(() => renew(context, world.settings, ASKED)),
      ),
    )
    expect(ends).toEqual(['ok', 'ok', 'ok', 'ok', 'ok', 'ok'])
    expect(await world.counts()).toMatchObject({ refreshes: 6, reuse_detections: 0, grants_revoked: 0 })
  })

  it('state directories that share a keychain know about each other’s interrupted refresh', async () => {
    const { world, other } = await twoStates()
    await world.fault({ kind: 'drop' })
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('refresh_unknown')
    await world.clearFaults()
    expect(await endOf(() => renew(other, world.settings, ASKED))).toBe('refresh_interrupted')
    expect((await describeSession(other, world.settings)).state).toBe('interrupted')
    expect(await world.counts()).toMatchObject({ reuse_detections: 0 })
  })

  it('know of it even after one of them was signed out while the keychain was locked', async () => {
    const { world, other, keychain } = await twoStates()
    await world.fault({ kind: 'drop' })
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('refresh_unknown')
    await world.clearFaults()
    keychain.trouble = 'locked'
    expect((await forgetSession(world.context, world.settings, 'default')).kept).toHaveLength(1)
    keychain.trouble = 'none'
    expect(await endOf(() => renew(other, world.settings, ASKED))).toBe('refresh_interrupted')
    expect(await world.counts()).toMatchObject({ reuse_detections: 0 })
  })
})

describe('a keychain that refused the new token', () => {
  it('the old token in a keychain is never sent, even if the file with the new one is gone', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    const context = beforeStoring(world, () => {
      keychain.trouble = 'refused'
    })
    const settings = { ...world.settings, quiet: true }
    expect(await endOf(() => renew(context, settings, ASKED))).toBe('ok')
    // A secret in a file is said even with --quiet.
    expect(world.context.stderr.text).toContain(
      'warning: the new refresh token could not be stored where it belongs',
    )
    keychain.trouble = 'none'
    for (const name of names(world)) if (name !== 'session.json') rmSync(join(world.paths.directory, name))
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('refresh_interrupted')
    expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
  })

  it('leaves one file, however often the session is renewed meanwhile', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    const call = keychain.call.bind(keychain)
    keychain.call = async (request) =>
      request.operation === 'set' ? { ok: false, reason: 'refused', detail: '' } : call(request)
    for (let times = 0; times < 3; times++)
      expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
    expect(names(world).filter((name) => name.startsWith('secret.'))).toHaveLength(1)
    expect(await world.counts()).toMatchObject({ refreshes: 3, reuse_detections: 0 })
  })
})

describe('a sign-in while a refresh is in progress, after its lock file was deleted', () => {
  it.each([
    ['is renewed', undefined],
    ['has ended', { kind: 'status', status: 400, body: '{"error":"invalid_grant"}' }],
  ])(
    'keeps its session and its tokens if the service answers that the one before %s',
    async (_what, fault) => {
      const world = await createSandboxSession()
      await world.signIn()
      if (fault !== undefined) await world.fault(fault)
      const context = beforeStoring(world, async () => {
        rmSync(world.paths.lock)
        await world.clearFaults()
        await world.signIn()
      })
      expect(await endOf(() => renew(context, world.settings, ASKED))).toBe('session_busy')
      const record = await readRecord(world.paths)
      expect(record).toMatchObject({ ended: null })
      const token = await readAccessToken(world.paths)
      expect(token?.session).toBe(record?.id)
      expect(names(world).filter((name) => name.startsWith('secret.'))).toEqual([`secret.${record?.id}.json`])
      expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
      expect(await world.counts()).toMatchObject({ reuse_detections: 0 })
    },
  )
})

describe('a copy of the token that cannot be read', () => {
  /** A session that was renewed once, the token of before still stored, and both files by their generation. */
  async function renewedOnce() {
    const world = await createSandboxSession()
    await world.signIn()
    const [first = ''] = names(world).filter((name) => name.startsWith('secret.'))
    const older = readFileSync(join(world.paths.directory, first))
    await renew(world.context, world.settings, ASKED)
    const [newer = ''] = names(world).filter((name) => name.startsWith('secret.'))
    return {
      world,
      older,
      first: join(world.paths.directory, first),
      newer: join(world.paths.directory, newer),
    }
  }

  it('is named, not called missing, and nothing is sent', async () => {
    const { world, newer } = await renewedOnce()
    const kept = readFileSync(newer)
    rmSync(newer)
    mkdirSync(newer)
    await expect(renew(world.context, world.settings, ASKED)).rejects.toMatchObject({
      code: 'file_unusable',
      exit: 4,
      message: expect.stringContaining(newer),
    })
    rmSync(newer, { recursive: true })
    writeFileSync(newer, kept, { mode: 0o600 })
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: 2, reuse_detections: 0 })
  })

  it('is named if it is damaged', async () => {
    const { world, newer } = await renewedOnce()
    writeFileSync(newer, Buffer.alloc(100))
    await expect(renew(world.context, world.settings, ASKED)).rejects.toMatchObject({
      code: 'file_unusable',
      message: expect.stringContaining(newer),
    })
  })

  it.runIf(needs('posix'))('is not read if it is a link to something endless', async () => {
    const { world, newer } = await renewedOnce()
    rmSync(newer)
    symlinkSync('/dev/zero', newer)
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('file_unusable')
  })

  it('does not bring back an older one, whose journal entry stays as long as it is stored', async () => {
    const { world, older, first, newer } = await renewedOnce()
    // A process that was killed right after it had stored the new token leaves both, and the journal entry.
    writeFileSync(first, older, { mode: 0o600 })
    const token = (JSON.parse(older.toString()) as { secret: string }).secret
    writeFileSync(
      join(world.paths.directory, `journal.${fingerprint(token)}.json`),
      `${JSON.stringify({ version: 1, sent_at: 0 })}\n`,
      { mode: 0o600 },
    )
    await world.fault({ kind: 'status', status: 400, body: '{"error":"invalid_scope"}' })
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('invalid_scope')
    await world.clearFaults()
    rmSync(newer)
    mkdirSync(newer)
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('file_unusable')
    rmSync(newer, { recursive: true })
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).not.toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
  })
})

describe('a narrowed access token', () => {
  it('a narrowed access token that cannot be stored is an error, and the wider one before it is not used', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const record = await readRecord(world.paths)
    const scope = record?.kind === 'oauth' ? (record.scope ?? '').split(' ')[0] : undefined
    const context = beforeStoring(world, () => {
      rmSync(world.paths.accessToken)
      mkdirSync(join(world.paths.accessToken, 'in the way'), { recursive: true })
    })
    await expect(renew(context, world.settings, { ...ASKED, scope: scope ?? '' })).rejects.toMatchObject({
      code: 'cannot_write',
      exit: 1,
      message: expect.stringContaining('The session is renewed'),
    })
    rmSync(world.paths.accessToken, { recursive: true })
    await currentCredential(world.context, world.settings)
    expect(await world.counts()).toMatchObject({ refreshes: 2, reuse_detections: 0 })
  })
})

describe('the secrets of earlier sign-ins', () => {
  it('the next login removes the secrets of earlier sign-ins, even if the record was damaged', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    writeFileSync(world.paths.session, '{"version":1,')
    await world.signIn()
    expect(names(world).filter((name) => name.startsWith('secret.'))).toHaveLength(1)
  })

  it('logging out of all profiles removes every secret, wherever it was stored', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const { state } = world.context.directories
    const killed = join(
      world.paths.directory,
      `.secret.0123456789ab.json.${spawnSync('true').pid}-0123456789ab.tmp`,
    )
    const elsewhere = join(state, 'secret.work.0123456789ab.json')
    for (const path of [killed, elsewhere]) writeFileSync(path, 'a token')
    rmSync(world.paths.session)
    expect(profilesWithSecrets(world.context)).toEqual(['default', 'work'])
    for (const profile of profilesWithSecrets(world.context))
      expect((await forgetSession(world.context, world.settings, profile)).kept).toEqual([])
    expect([killed, elsewhere].filter((path) => existsSync(path))).toEqual([])
    expect(names(world)).toEqual(['lock'])
    expect(profilesWithSecrets(world.context)).toEqual([])
  })

  it('a planted file cannot make a logout remove keychain items of others', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn()
    keychain.items.set('work https://api.example.com 0123456789ab', 'of another profile')
    const elsewhere = join(world.context.directories.state, 'precious.json')
    writeFileSync(elsewhere, '')
    const planted = [{ account: 'work https://api.example.com 0123456789ab' }, { account: elsewhere }]
    writeFileSync(world.paths.superseded, JSON.stringify({ version: 1, keychain: planted }))
    await world.signIn()
    expect(existsSync(elsewhere)).toBe(true)
    expect(keychain.items.size).toBe(1)
  })

  it.runIf(ROOT)('a logout does not remove secrets of another user, and says so', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const before = names(world)
    for (const name of before) chownSync(join(world.paths.directory, name), 4711, 4711)
    chownSync(world.paths.directory, 4711, 4711)
    await expect(forgetSession(world.context, world.settings, 'default')).rejects.toMatchObject({
      code: 'directory_unusable',
      message: expect.stringContaining('it belongs to another user'),
    })
    expect(names(world)).toEqual(before)
  })
})

describe('a session directory that is deleted during a refresh', () => {
  async function deletedMeanwhile(reason: 'stale' | 'asked') {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    world.expire()
    const context = beforeStoring(world, () => rmSync(world.paths.directory, { recursive: true }))
    return { renewed: renew(context, world.settings, { reason }), stderr: world.context.stderr }
  }

  it('the command that needed a token has it, and one warning says to sign in again', async () => {
    const { renewed, stderr } = await deletedMeanwhile('stale')
    await renewed
    expect(stderr.text).toBe(
      'warning: the session of profile default was renewed, but its files were deleted meanwhile, so no other command can use it; run mailclaim login\n',
    )
  })

  it('a token that had to go elsewhere is not said to go back', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    world.expire()
    const context = beforeStoring(world, () => rmSync(world.paths.directory, { recursive: true }))
    await renew(context, world.settings, { reason: 'stale' })
    const { text } = world.context.stderr
    expect(text).toContain('It is kept in a file that only you can read')
    expect(text).not.toContain('goes back')
    expect(text).toContain('its files were deleted meanwhile')
  })

  it('is an error of the command that was to renew it', async () => {
    const { renewed } = await deletedMeanwhile('asked')
    await expect(renewed).rejects.toMatchObject({ code: 'session_deleted', exit: 4 })
  })
})

describe('a wall clock that jumped', () => {
  it.each([-70, 70])('(by %s days) makes no session look expired', async (days) => {
    const world = await createSandboxSession()
    await world.signIn()
    world.expire()
    const { clock } = world.context
    clock.setWall(clock.now() + days * 24 * 3600 * 1000)
    expect((await describeSession(world.context, world.settings)).state).toBe('needs_refresh')
    expect(await endOf(() => renew(world.context, world.settings, { reason: 'stale' }))).toBe('ok')
  })
})

describe('a session that is too old by the wall clock alone', () => {
  async function unprovenAge(how: 'without its access token' | 'after a restart') {
    const world = await createSandboxSession()
    await world.signIn()
    const { clock } = world.context
    clock.setWall(clock.now() + 70 * 24 * 3600 * 1000)
    if (how === 'without its access token') {
      rmSync(world.paths.accessToken)
      return world
    }
    const sinceBoot = () => ({ seconds: 50, boot: 'boot-2' })
    return withEffectsOf(world, { clock: { ...clock, sinceBoot } })
  }

  it.each(['without its access token', 'after a restart'] as const)(
    '%s, it may have expired, and the next command renews it',
    async (how) => {
      const { context, settings } = await unprovenAge(how)
      const { state, doubt, problem } = await describeSession(context, settings)
      expect({ state, problem }).toEqual({ state: 'needs_refresh', problem: undefined })
      expect(doubt).toBe(
        "the session of profile default may have expired: by this machine's clock, it was last renewed more than 60 days ago, on 2026-11-20 12:00:00 UTC",
      )
      expect(await endOf(() => currentCredential(context, settings))).toBe('ok')
      expect((await describeSession(context, settings)).doubt).toBeUndefined()
    },
  )

  it('that the service refuses may have expired, but may have been revoked as well', async () => {
    const { context, settings } = await unprovenAge('without its access token')
    const send = async () => jsonResponse(400, { error: 'invalid_grant' })
    const refused = withEffects(context as never, { http: { ...context.http, send } })
    await expect(currentCredential(refused, settings)).rejects.toMatchObject({
      code: 'session_over',
      message: expect.stringContaining(
        "it was revoked, it was used elsewhere, or it expired: by this machine's clock, it was last renewed",
      ),
    })
    expect((await describeSession(context, settings)).state).toBe('ended')
  })

  it('has expired if the machine has been running for longer since a restart', async () => {
    const world = await unprovenAge('without its access token')
    await currentCredential(world.context, world.settings)
    const { clock } = world.context
    clock.setWall(clock.now() + 70 * 24 * 3600 * 1000)
    const sinceBoot = () => ({ seconds: 61 * 24 * 3600, boot: 'boot-2' })
    const context = withEffects(world.context as never, { clock: { ...clock, sinceBoot } })
    expect((await describeSession(context, world.settings)).state).toBe('expired')
  })
})

describe('a record that cannot be used', () => {
  it('logout and login remove the keychain item even if the record cannot be used', async () => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    writeFileSync(world.paths.session, '{')
    await world.signIn('keychain')
    expect(keychain.items.size).toBe(1)
    rmSync(world.paths.session)
    expect((await forgetSession(world.context, world.settings, 'default')).kept).toEqual([])
    expect(keychain.items.size).toBe(0)
  })
})

describe.runIf(needs('posix'))('a link in the place of the record', () => {
  it('a login moves a link in the place of the record out of the way', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    rmSync(world.paths.session)
    symlinkSync(join(world.paths.directory, 'nowhere'), world.paths.session)
    await world.signIn()
    expect((await describeSession(world.context, world.settings)).state).toBe('fine')
  })
})

describe('a failure before anything is sent', () => {
  it('any failure before the request says that nothing was sent', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const broken = {
      ...world.context.http,
      send: () => Promise.reject(new ReferenceError('Headers is not defined')),
    }
    await expect(
      renew(withEffects(world.context, { http: broken }), world.settings, ASKED),
    ).rejects.toMatchObject({
      exit: 1,
      message: expect.stringMatching(
        /Headers is not defined.*Nothing was sent, and the session is untouched/,
      ),
    })
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
  })
})

describe('a wait', () => {
  it('waiting for the lock prints one message, after two seconds', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    await withLock(world.paths.lock, world.context, { deadlineMs: 10 }, async () => {
      expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('session_busy')
    })
    expect(world.context.stderr.text).toBe('Waiting for another mailclaim, which is using this session …\n')
  })

  const HURRIED: RenewOptions = { ...ASKED, deadline: 5000 }

  it('nobody waits for the lock longer than a command has time', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    world.expire()
    await withLock(world.paths.lock, world.context, { deadlineMs: 10 }, async () => {
      await expect(renew(world.context, world.settings, HURRIED)).rejects.toMatchObject({
        code: 'session_busy',
        exit: 7,
        message: 'the time was up while another mailclaim was renewing the session',
      })
    })
    expect(world.context.clock.monotonic()).toBe(5000)
  })

  it('nothing is sent if the lock is free only when the time is up', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    world.context.clock.advance(5000)
    await expect(renew(world.context, world.settings, HURRIED)).rejects.toMatchObject({
      code: 'timeout',
      message: 'the time was up while the session was being renewed',
    })
    expect(await world.counts()).toMatchObject({ refreshes: 0 })
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
  })

  it('a pause that the service asks for is not begun if a command has less time', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    await world.fault({ kind: 'status', status: 503, headers: { 'retry-after': '3' } })
    await expect(renew(world.context, world.settings, HURRIED)).rejects.toMatchObject({
      code: 'service_unavailable',
      retryAfterMs: 3000,
    })
    expect(world.context.clock.slept).toEqual([3000])
    await world.clearFaults()
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
  })

  it('a connection that is not made in time is given up, and the session is untouched', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const connecting: Context['http']['send'] = ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () =>
          reject(new TransportError('aborted', 'no', 'the request was canceled', signal.reason)),
        )
        world.context.clock.ring()
      })
    const http = { ...world.context.http, send: connecting }
    await expect(renew(withEffects(world.context, { http }), world.settings, HURRIED)).rejects.toMatchObject({
      code: 'timeout',
    })
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
  })

  it('the answer to a token that was sent is awaited and stored, however late', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    const context = beforeSending(world, (enterJournal) => {
      enterJournal()
      world.context.clock.advance(20_000)
      world.context.clock.ring()
    })
    expect(await endOf(() => renew(context, world.settings, HURRIED))).toBe('ok')
    expect(await endOf(() => renew(world.context, world.settings, ASKED))).toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: 2, reuse_detections: 0 })
  })

  it('waiting for the service prints one message, after two seconds', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    await renew(
      beforeStoring(world, () => world.context.clock.ring()),
      world.settings,
      ASKED,
    )
    expect(world.context.stderr.text).toBe('Waiting for the service to renew the session …\n')
    world.context.clock.ring()
    expect(world.context.stderr.text).not.toContain('session …\nWaiting')
  })
})

describe('the files of a session', () => {
  it('`auth status` reads the session even if nothing can be locked', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    rmSync(world.paths.lock)
    mkdirSync(world.paths.lock)
    expect((await describeSession(world.context, world.settings)).state).toBe('fine')
    expect(readdirSync(world.paths.lock)).toEqual([])
  })
})
