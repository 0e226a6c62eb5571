import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Context, type HttpRequest, type HttpResponse, HttpTransportError } from '../../src/context.ts'
import { CliError, InterruptedError } from '../../src/errors.ts'
import { openClient } from '../../src/session/client.ts'
import {
  findCredentialWithoutRenewal,
  getFreshCredential,
  renewAccessToken,
  requestNarrowedCredential,
} from '../../src/session/credential.ts'
import { readCredentialStatus } from '../../src/session/describe.ts'
import { listNoteFileNames } from '../../src/session/note.ts'
import { renewLocalSession } from '../../src/session/renew.ts'
import { type ProfileFiles, profileFiles } from '../../src/session/session-file.ts'
import type { Disk } from '../../src/storage/atomic-file.ts'
import { withLock } from '../../src/storage/lock.ts'
import { createIo } from '../../src/terminal/io.ts'
import {
  createFakeContext,
  type FakeContext,
  fakeSettings,
  jsonResponse,
  textResponse,
} from '../fake-context.ts'
import { changeSession, expireAccessToken, sessionIn, signInWith, withEffects } from './sandbox-session.ts'

type Answer = HttpResponse | 'reset'

const refuseConnection = () => 'reset' as const

const TOKENS = { access_token: 'access-2', refresh_token: 'refresh-2', token_type: 'Bearer', expires_in: 900 }
const oauthError = (status: number, error: string) => jsonResponse(status, { error })
const tokensAfter = (change: (files: ProfileFiles) => void) => (files: ProfileFiles) => {
  change(files)
  return jsonResponse(200, TOKENS)
}

/** Creates a signed-in profile whose access token has expired, and a service that gives the answers one after the other. */
async function signedIn(answers: ((files: ProfileFiles) => Answer)[], store: 'file' | 'keychain' = 'file') {
  const sent: HttpRequest[] = []
  const base = createFakeContext()
  const context = withEffects(base, {
    http: {
      close: async () => {},
      async send(request) {
        const answerTo = answers.shift() ?? (() => jsonResponse(200, TOKENS))
        if (answerTo === refuseConnection) throw new HttpTransportError('connect', 'no', 'connection refused')
        try {
          request.beforeSend?.()
        } catch (error) {
          throw new HttpTransportError('aborted', 'no', 'the request was not sent', error)
        }
        sent.push(request)
        const answer = answerTo(profileFiles(base, 'default'))
        if (answer === 'reset') throw new HttpTransportError('reset', 'maybe', 'the connection was reset')
        return answer
      },
    },
  })
  const io = createIo(context, await fakeSettings(context))
  const tokens = { accessToken: 'access-1', refreshToken: 'refresh-1', expiresInSeconds: 900, scope: 'a b' }
  await signInWith(io, tokens, store)
  const files = profileFiles(io, 'default')
  expireAccessToken(files)
  return { context, io, files, sent }
}

async function endOf(work: () => Promise<unknown>): Promise<string> {
  try {
    await work()
    return 'ok'
  } catch (error) {
    if (error instanceof CliError) return `${error.code} ${error.exit}`
    throw error
  }
}

function removeNotes(files: ProfileFiles): void {
  for (const name of listNoteFileNames(files)) rmSync(join(files.directory, name))
}

function signOut(files: ProfileFiles): void {
  rmSync(files.session)
  removeNotes(files)
}

/** Stores generation 2 and removes the note file, as another process would. */
function storeLater(files: ProfileFiles): void {
  const expiresAt = Date.parse('2030-01-01')
  const access = { value: 'access-9', scope: null, expiresAt, lifetimeSeconds: 900 }
  changeSession(files, { generation: 2, refreshToken: 'refresh-9', access })
  removeNotes(files)
}

const INTERRUPTED = 'refresh_interrupted 4'

describe('a refresh', () => {
  it.each<[string, end: string, next: string, sent: number, ((files: ProfileFiles) => Answer)[]]>([
    ['tokens', 'ok', 'ok', 1, []],
    ['tokens after another program deleted the note file', 'ok', 'ok', 1, [tokensAfter(removeNotes)]],
    ['tokens after a logout', 'session_elsewhere 4', 'not_signed_in 4', 1, [tokensAfter(signOut)]],
    [
      'a new refresh token and a malformed access token',
      'unexpected_answer 7',
      'ok',
      2,
      [() => jsonResponse(200, { ...TOKENS, access_token: 7 })],
    ],
    ['only an access token', INTERRUPTED, INTERRUPTED, 1, [() => jsonResponse(200, { access_token: 'a' })]],
    ['invalid_grant', 'session_over 4', 'session_over 4', 1, [() => oauthError(400, 'invalid_grant')]],
    [
      'invalid_grant after another process stored a later generation',
      'ok',
      'ok',
      1,
      [
        (files) => {
          storeLater(files)
          return oauthError(400, 'invalid_grant')
        },
      ],
    ],
    ['another OAuth error', 'invalid_client 3', 'ok', 2, [() => oauthError(401, 'invalid_client')]],
    ['429 with Retry-After', 'ok', 'ok', 2, [() => textResponse(429, '', { 'retry-after': '1' })]],
    ['status 500', INTERRUPTED, INTERRUPTED, 1, [() => textResponse(500, '')]],
    ['a connection reset', INTERRUPTED, INTERRUPTED, 1, [() => 'reset']],
    ['two refused connections, then tokens', 'ok', 'ok', 1, [refuseConnection, refuseConnection]],
    ['three refused connections', 'unreachable 7', 'ok', 1, Array(3).fill(refuseConnection)],
  ])(
    'a refresh that gets %s has the result "%s", and the next refresh "%s"',
    async (_what, end, next, sent, answers) => {
      const world = await signedIn(answers)
      expect(await endOf(() => getFreshCredential(world.io))).toBe(end)
      expect(await endOf(() => getFreshCredential(world.io))).toBe(next)
      expect(world.sent).toHaveLength(sent)
      const notes = readdirSync(world.files.directory).filter((name) => name.startsWith('next.'))
      expect(notes).toHaveLength(next === INTERRUPTED ? 1 : 0)
    },
  )

  it('a refresh that gets 429 twice waits twice as long before the second retry as before the first', async () => {
    const busy = () => textResponse(429, '', { 'retry-after': '0' })
    const world = await signedIn([busy, busy])
    expect(await endOf(() => getFreshCredential(world.io))).toBe('ok')
    const [first = 0, second = 0] = world.context.clock.slept
    expect(second).toBe(2 * first)
    expect(first).toBeGreaterThan(0)
  })

  it('a refresh whose connection is reset fails with a message that the refresh token may have been sent', async () => {
    const world = await signedIn([() => 'reset'])
    await expect(getFreshCredential(world.io)).rejects.toMatchObject({
      message: 'the refresh token of profile default may have been sent: the connection was reset',
      hint: 'see docs/token-safety.md#after-an-interrupted-renewal, or sign in again: mailclaim login',
    })
    expect(await readCredentialStatus(world.io)).toMatchObject({ state: 'interrupted' })
  })
})

describe('a disk that fails after the token was sent', () => {
  const UNWRITTEN = "session.json can't be written: disk quota exceeded\n"
  const LOST = 'the new refresh token of profile default could not be stored: disk quota exceeded'
  it.each<[keyof Disk, always: boolean, access: unknown, end: string, warning: string, next: string]>([
    ['write', true, 'access-2', 'refresh_token_lost 4', '', INTERRUPTED],
    ['write', false, 7, 'refresh_token_lost 4', '', INTERRUPTED],
    ['write', false, 'access-2', 'ok', `warning: ${LOST}; sign in again: mailclaim login\n`, INTERRUPTED],
    ['sync', true, 'access-2', 'ok', UNWRITTEN, 'ok'],
    ['sync', false, 'access-2', 'ok', UNWRITTEN, 'ok'],
    ['rename', true, 'access-2', 'ok', UNWRITTEN, 'ok'],
  ])(
    'if the disk fails to %s after the refresh token was sent (forced: %s, new access token: %s), the renewal ends with %s',
    async (call, always, access_token, end, warning, next) => {
      let isBroken = false
      const world = await signedIn([
        () => {
          isBroken = true
          return jsonResponse(200, { ...TOKENS, access_token })
        },
      ])
      const broken = (...words: never[]) => {
        if (isBroken)
          throw Object.assign(new Error('Unknown system error -122'), { code: 'UNKNOWN', errno: -122 })
        return (world.files.disk[call] as (...words: never[]) => unknown)(...words)
      }
      const files = { ...world.files, disk: { ...world.files.disk, [call]: broken } }
      expect(await endOf(() => renewLocalSession(world.io, { always }, files))).toBe(end)
      expect(world.context.stderr.text).toContain(warning)
      expect(world.context.stderr.text.split('\n')).toHaveLength(warning === '' ? 1 : 2)
      expect(await endOf(() => renewLocalSession(world.io, {}, world.files))).toBe(next)
      expect(world.sent).toHaveLength(1)
    },
  )
})

describe('a note file shorter than its allocated size', () => {
  it.each([0, 4096])(
    'a note file (`next.…`) of %i bytes, less than its allocated size, is reported as a renewal cut off before it sent the token',
    async (bytes) => {
      const world = await signedIn([() => oauthError(401, 'invalid_client')])
      writeFileSync(join(world.files.directory, `next.${sessionIn(world.files).id}.1`), ' '.repeat(bytes))
      const failure = {
        code: 'refresh_interrupted',
        message: 'the last renewal of profile default was cut off before it sent the refresh token',
        hint: 'this is safe here: mailclaim auth refresh --retry-interrupted',
      }
      await expect(getFreshCredential(world.io)).rejects.toMatchObject(failure)
      expect(await readCredentialStatus(world.io)).toMatchObject({ state: 'interrupted', problem: failure })
      const retry = () => renewAccessToken(world.io, { always: true, retryInterrupted: true })
      // The refused retry was the first use of the token, so the refusal proves that the token is unused.
      expect(await endOf(retry)).toBe('invalid_client 3')
      expect(listNoteFileNames(world.files)).toEqual([])
      expect(await endOf(() => getFreshCredential(world.io))).toBe('ok')
    },
  )
})

describe('a token whose last use has no known outcome', () => {
  it.each<[string, () => Answer, end: string, next: string]>([
    ['that gets tokens continues the session', () => jsonResponse(200, TOKENS), 'ok', 'ok'],
    [
      'answered with invalid_grant ends the session',
      () => oauthError(400, 'invalid_grant'),
      'session_over 4',
      'session_over 4',
    ],
    ['that is refused stays interrupted', () => oauthError(401, 'invalid_client'), INTERRUPTED, INTERRUPTED],
    ['whose connection is reset stays interrupted', () => 'reset', INTERRUPTED, INTERRUPTED],
  ])('a retry of an interrupted renewal %s', async (_what, answer, end, next) => {
    const world = await signedIn([() => 'reset', answer])
    await endOf(() => getFreshCredential(world.io))
    expect(await endOf(() => renewAccessToken(world.io, { always: true, retryInterrupted: true }))).toBe(end)
    expect(await endOf(() => renewAccessToken(world.io, { always: true }))).toBe(next)
  })
})

describe('the access token', () => {
  it('an access token valid for 15 min is used without a keychain call or request until a minute before its expiry', async () => {
    const world = await signedIn([], 'keychain')
    await getFreshCredential(world.io)
    const { calls } = world.context.keychain as never as { calls: unknown[] }
    const before = calls.length
    world.context.clock.advance(839_000)
    expect(await getFreshCredential(world.io)).toMatchObject({ value: 'access-2' })
    expect([world.sent.length, calls.length]).toEqual([1, before])
    world.context.clock.advance(2_000)
    await getFreshCredential(world.io)
    expect(world.sent).toHaveLength(2)
  })

  it('an access token with a lifetime of 40 s is used until 10 s before its expiry', async () => {
    const world = await signedIn([() => jsonResponse(200, { ...TOKENS, expires_in: 40 })])
    await getFreshCredential(world.io)
    world.context.clock.advance(29_000)
    expect(await findCredentialWithoutRenewal(world.io)).toMatchObject({
      kind: 'access_token',
      value: 'access-2',
    })
    world.context.clock.advance(2_000)
    expect(await findCredentialWithoutRenewal(world.io)).toEqual({ kind: 'outdated', value: 'access-2' })
  })

  it('a request of a client with `renews: false` fails if the access token has expired', async () => {
    const world = await signedIn([])
    expireAccessToken(world.files)
    await expect(openClient(world.io, { renews: false }).get('/grants')).rejects.toMatchObject({
      code: 'not_signed_in',
      message: expect.stringContaining('has expired'),
      hint: 'to renew it: mailclaim auth refresh',
    })
  })

  it('if the service rejects an access token, the client renews the token and repeats the request', async () => {
    const world = await signedIn([() => jsonResponse(200, TOKENS), () => textResponse(401, '{}')])
    await getFreshCredential(world.io)
    await openClient(world.io).get('/grants')
    expect(world.sent.map(({ url }) => url.pathname)).toEqual([
      '/oauth/token',
      '/grants',
      '/oauth/token',
      '/grants',
    ])
  })

  it('an access token for a narrower scope is not stored, but the new refresh token is', async () => {
    const world = await signedIn([() => jsonResponse(200, { ...TOKENS, access_token: 'narrow' })])
    expect(await requestNarrowedCredential(world.io, 'a')).toMatchObject({ value: 'narrow' })
    expect(sessionIn(world.files)).toMatchObject({ generation: 2, refreshToken: 'refresh-2', scope: 'a b' })
    expect(sessionIn(world.files).access).toBeUndefined()
  })

  it('tokens that arrive after the profile directory was moved away are stored in it, and used once it is moved back', async () => {
    const away = (files: ProfileFiles) => `${files.directory}.away`
    const moved = tokensAfter((files) => renameSync(files.directory, away(files)))
    const world = await signedIn([moved], 'keychain')
    await expect(getFreshCredential(world.io)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining(`the directory ${world.files.directory} is gone`),
      hint: 'move it back if it was moved; else sign in again: mailclaim login',
    })
    expect(await endOf(() => getFreshCredential(world.io))).toBe('not_signed_in 4')
    renameSync(away(world.files), world.files.directory)
    expect(await getFreshCredential(world.io)).toMatchObject({ value: 'access-2' })
    expect(await endOf(() => renewAccessToken(world.io, { always: true }))).toBe('ok')
    const tokens = world.sent.map(({ body }) => new URLSearchParams(body).get('refresh_token'))
    expect(tokens).toEqual(['refresh-1', 'refresh-2'])
  })

  it('a renewal returns, but does not store, an access token that is too long for the session file (17,000 bytes)', async () => {
    const world = await signedIn([() => jsonResponse(200, { ...TOKENS, access_token: 'x'.repeat(17_000) })])
    expect((await getFreshCredential(world.io)).value).toHaveLength(17_000)
    expect(sessionIn(world.files)).toMatchObject({ generation: 2, refreshToken: 'refresh-2' })
    expect(sessionIn(world.files).access).toBeUndefined()
  })
})

describe('a session', () => {
  it('a renewal sends no refresh token if another process renews the session before the token is sent', async () => {
    const world = await signedIn([])
    const { http } = world.context
    const send = (request: HttpRequest) => {
      storeLater(world.files)
      return http.send(request)
    }
    const io = createIo(withEffects(world.context, { http: { ...http, send } }), world.io.settings)
    expect(await getFreshCredential(io)).toMatchObject({ value: 'access-9' })
    expect(world.sent).toEqual([])
  })

  it('a renewal deletes earlier note files (`next.…`) of the same sign-in, but not those of other sign-ins', async () => {
    const { io, files } = await signedIn([])
    const other = 'next.000000000000.0'
    for (const name of [`next.${sessionIn(files).id}.0`, other])
      writeFileSync(join(files.directory, name), '')
    await getFreshCredential(io)
    expect(listNoteFileNames(files)).toEqual([other])
  })

  it.each(['file', 'keychain'] as const)(
    'a renewal (%s store) succeeds with a warning while another program holds session.json open',
    async (store) => {
      const { context, io, files, sent } = await signedIn([], store)
      const rename = () => {
        throw new Error('EBUSY: another program holds it open')
      }
      const held = { ...files, disk: { ...files.disk, rename } }
      for (let command = 1; command <= 2; command++)
        expect(await renewLocalSession(io, {}, held)).toMatchObject({ value: 'access-2' })
      expect(sessionIn(files).generation).toBe(1)
      const warning = `warning: ${files.session} can't be written: another program holds it open\n`
      expect(context.stderr.text).toBe(warning.repeat(2))
      expect(await renewLocalSession(io, {}, files)).toMatchObject({ value: 'access-2' })
      expect(sessionIn(files).generation).toBe(2)
      expect(sent).toHaveLength(1)
    },
  )

  it.each([
    ['service', { baseUrl: 'http://127.0.0.1:9' }],
    ['client', { clientId: 'another' }],
  ])(
    'a refresh token is not sent if its session belongs to another service or client than the settings name (%s)',
    async (_what, options) => {
      const world = await signedIn([])
      const io = createIo(world.context, await fakeSettings(world.context, options))
      expect(await endOf(() => getFreshCredential(io))).toBe('session_elsewhere 4')
      expect(await endOf(() => renewAccessToken(io, { always: true }))).toBe('session_elsewhere 4')
      expect(world.sent).toEqual([])
    },
  )
})

describe('waiting', () => {
  /** Holds the session's lock until the returned function is called. */
  async function hold(world: { context: FakeContext; files: { lock: string } }) {
    let letGo = () => {}
    const isHeld = new Promise<void>((held) => {
      void withLock(world.files.lock, world.context, { timeoutMs: 0 }, async () => {
        held()
        await new Promise<void>((go) => {
          letGo = go
        })
      })
    })
    await isHeld
    return letGo
  }

  it('a renewal that waits for the lock returns the access token that another process stores meanwhile', async () => {
    const world = await signedIn([])
    const letGo = await hold(world)
    const { clock } = world.context
    const sleep = async (ms: number) => {
      clock.advance(ms)
      if (clock.monotonic() > 5_000) storeLater(world.files)
    }
    const io = createIo(withEffects(world.context, { clock: { ...clock, sleep } }), world.io.settings)
    expect(await renewAccessToken(io, { outdated: 'access-1' })).toMatchObject({
      value: 'access-9',
    })
    expect(world.context.stderr.text).toBe('Waiting for another mailclaim, which is using this session …\n')
    expect(world.sent).toEqual([])
    letGo()
  })

  it('a renewal that waits for the lock fails if a session of another service is stored meanwhile', async () => {
    const world = await signedIn([])
    const letGo = await hold(world)
    const { clock } = world.context
    const sleep = async (ms: number) => {
      clock.advance(ms)
      storeLater(world.files)
      changeSession(world.files, { service: 'http://127.0.0.1:9' })
    }
    const io = createIo(withEffects(world.context, { clock: { ...clock, sleep } }), world.io.settings)
    expect(await endOf(() => getFreshCredential(io))).toBe('session_elsewhere 4')
    letGo()
  })

  it('a renewal that waits too long for the lock of the session fails with exit 7, and sends no refresh token', async () => {
    const world = await signedIn([])
    const letGo = await hold(world)
    expect(await endOf(() => renewAccessToken(world.io, { always: true }))).toBe('session_busy 7')
    expect(world.sent).toEqual([])
    letGo()
  })
})

describe('Ctrl-C', () => {
  /** Creates interrupts with a `press` that acts as Ctrl-C, and defers to shielded work. */
  function interrupts() {
    const controller = new AbortController()
    let notify: ((signal: NodeJS.Signals) => void) | undefined
    let isPending = false
    const effects: Context['interrupts'] = {
      signal: controller.signal,
      async shield(work, onSignal) {
        notify = onSignal
        try {
          return await work()
        } finally {
          notify = undefined
          if (isPending) abort()
        }
      },
    }
    const abort = () => controller.abort(new InterruptedError('SIGINT'))
    const press = () => {
      if (notify === undefined) return abort()
      isPending = true
      notify('SIGINT')
    }
    return { effects, press }
  }

  it('Ctrl-C before the refresh token is sent ends the renewal with exit 130, and leaves no note file', async () => {
    const world = await signedIn([], 'keychain')
    const { effects, press } = interrupts()
    const { keychain } = world.context
    const waiting: Context['keychain'] = {
      call: (request) => {
        press()
        expect(request.signal?.aborted).toBe(true)
        return keychain.call(request)
      },
    }
    const http: Context['http'] = {
      close: async () => {},
      send: async ({ signal }) => {
        expect(signal?.aborted).toBe(true)
        throw new HttpTransportError('aborted', 'no', 'aborted', signal?.reason)
      },
    }
    const context = withEffects(world.context, { interrupts: effects, keychain: waiting, http })
    const io = createIo(context, world.io.settings)
    expect(await endOf(() => renewAccessToken(io, { always: true }))).toBe('interrupted 130')
    expect(readdirSync(world.files.directory).sort()).toEqual(['lock', 'session.json'])
  })

  it('the new refresh token is stored even if Ctrl-C is pressed after the old one was sent', async () => {
    let press = () => {}
    const world = await signedIn([
      () => {
        queueMicrotask(() => press())
        return jsonResponse(200, TOKENS)
      },
    ])
    const { effects, press: pressed } = interrupts()
    press = pressed
    const io = createIo(withEffects(world.context, { interrupts: effects }), world.io.settings)
    expect(await endOf(() => renewAccessToken(io, { always: true }))).toBe('ok')
    expect(io.interrupts.signal.aborted).toBe(true)
    expect(sessionIn(world.files)).toMatchObject({ generation: 2, refreshToken: 'refresh-2' })
  })
})
