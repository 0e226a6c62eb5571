import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Context, TransportError } from '../../src/context.ts'
import { CliError } from '../../src/errors.ts'
import { currentCredential } from '../../src/session/authorizer.ts'
import { describeSession } from '../../src/session/describe.ts'
import { readRecord } from '../../src/session/record.ts'
import { renew } from '../../src/session/refresh.ts'
import { createFakeKeychain, type FakeKeychain } from '../fake-context.ts'
import { createSandboxSession, filesOf, type SandboxSession, withEffects } from './sandbox-session.ts'

/** How a command ends: the code and the exit of its error, or `ok`. */
async function endOf(work: () => Promise<unknown>): Promise<string> {
  try {
    await work()
    return 'ok'
  } catch (error) {
    if (error instanceof CliError) return `${error.code} ${error.exit}`
    throw error
  }
}

async function messageOf(work: () => Promise<unknown>): Promise<string> {
  try {
    await work()
    return ''
  } catch (error) {
    return error instanceof CliError ? `${error.message} | ${error.hint}` : String(error)
  }
}

/** The context with less than the half minute that a refresh may take. */
function impatient(world: SandboxSession): Context {
  const { http } = world.context
  return withEffects(world.context, {
    http: { ...http, send: (request) => http.send({ ...request, timeoutMs: 700 }) },
  })
}

const HTML = '<!doctype html><title>Unavailable</title>'
const json = { 'content-type': 'application/json' }
const oauthError = (status: number, error: string) => ({
  kind: 'status',
  status,
  headers: json,
  body: { error, error_description: 'said by the service' },
})

/** What the service or the network does to a refresh, and what follows. */
interface FaultRow {
  readonly name: string
  readonly fault: Record<string, unknown>
  /** How the command ends. */
  readonly end: string
  /** What `auth status` reports then. */
  readonly state: string
  /** How the next command ends, after the fault is gone. */
  readonly next: string
  /** How many refreshes the service has processed at the end. */
  readonly refreshes: number
}

const INTERRUPTED = { end: 'refresh_unknown 7', state: 'interrupted', next: 'refresh_interrupted 4' }
const RETRYABLE = { state: 'needs_refresh', next: 'ok' }
const SUCCESS = { end: 'ok', state: 'fine', next: 'ok' }

const faults: readonly FaultRow[] = [
  { name: 'a reset before the service worked on it', fault: { kind: 'reset' }, ...INTERRUPTED, refreshes: 0 },
  {
    name: 'a reset after the service worked on it',
    fault: { kind: 'reset', after: true },
    ...INTERRUPTED,
    refreshes: 1,
  },
  { name: 'an answer that is dropped', fault: { kind: 'drop' }, ...INTERRUPTED, refreshes: 1 },
  {
    name: 'an answer that never comes',
    fault: { kind: 'delay', before_ms: 600_000 },
    ...INTERRUPTED,
    refreshes: 0,
  },
  { name: 'an answer that is cut short', fault: { kind: 'truncate' }, ...INTERRUPTED, refreshes: 1 },
  {
    name: 'a redirect, which is not followed',
    fault: { kind: 'status', status: 307, headers: { location: 'http://127.0.0.1:9/' } },
    ...INTERRUPTED,
    refreshes: 0,
  },
  { name: '500', fault: { kind: 'status', status: 500 }, ...INTERRUPTED, refreshes: 0 },
  { name: '502 with HTML', fault: { kind: 'status', status: 502, body: HTML }, ...INTERRUPTED, refreshes: 0 },
  { name: '504', fault: { kind: 'status', status: 504 }, ...INTERRUPTED, refreshes: 0 },
  { name: '404', fault: { kind: 'status', status: 404, body: HTML }, ...INTERRUPTED, refreshes: 0 },
  {
    name: 'an error code that the interface does not define',
    fault: oauthError(400, 'temporarily_unavailable'),
    end: 'temporarily_unavailable 7',
    ...RETRYABLE,
    refreshes: 1,
  },
  {
    name: 'invalid_grant behind a 500',
    fault: oauthError(500, 'invalid_grant'),
    ...INTERRUPTED,
    refreshes: 0,
  },
  {
    name: '200 with noise',
    fault: { kind: 'status', status: 200, headers: json, body: '\0\ufffd{"', after: true },
    ...INTERRUPTED,
    refreshes: 1,
  },
  {
    name: '200 with HTML',
    fault: { kind: 'status', status: 200, headers: json, body: HTML, after: true },
    ...INTERRUPTED,
    refreshes: 1,
  },
  {
    name: '200 without a body',
    fault: { kind: 'status', status: 200, headers: json, after: true },
    ...INTERRUPTED,
    refreshes: 1,
  },
  {
    name: '200 that is not a token response',
    fault: { kind: 'status', status: 200, headers: json, body: { ok: true } },
    ...INTERRUPTED,
    refreshes: 0,
  },
  {
    name: '200 without a new refresh token',
    fault: { kind: 'merge', fields: { refresh_token: null } },
    end: 'refresh_unknown 7',
    state: 'interrupted',
    next: 'ok',
    refreshes: 1,
  },
  {
    name: '200 with a refresh token that is a number',
    fault: { kind: 'merge', fields: { refresh_token: 7 } },
    end: 'refresh_unknown 7',
    state: 'interrupted',
    next: 'ok',
    refreshes: 1,
  },
  {
    name: '200 with a token of another type',
    fault: { kind: 'merge', fields: { token_type: 'DPoP' } },
    end: 'access_token_unusable 7',
    ...RETRYABLE,
    refreshes: 2,
  },
  {
    name: 'an access token with a line break in it',
    fault: { kind: 'merge', fields: { access_token: 'a\r\nX: y' } },
    end: 'access_token_unusable 7',
    ...RETRYABLE,
    refreshes: 2,
  },
  ...[429, 503].map((status) => ({
    name: `${status} of a proxy, after the service worked on it`,
    fault: { kind: 'status', status, body: 'upstream connect error', after: true },
    ...INTERRUPTED,
    refreshes: 1,
  })),
  {
    name: '429, and again 429',
    fault: { kind: 'status', status: 429, headers: { 'retry-after': '20' } },
    end: 'rate_limited 7',
    ...RETRYABLE,
    refreshes: 1,
  },
  {
    name: '429 for hours',
    fault: { kind: 'status', status: 429, headers: { 'retry-after': '86400' } },
    end: 'rate_limited 7',
    ...RETRYABLE,
    refreshes: 1,
  },
  {
    name: '503 with Retry-After, and again 503',
    fault: { kind: 'status', status: 503, headers: { 'retry-after': '20' } },
    end: 'service_unavailable 7',
    ...RETRYABLE,
    refreshes: 1,
  },
  {
    name: 'the page of a cache that lost the service while it worked, with Retry-After',
    fault: { kind: 'status', status: 503, headers: { 'retry-after': '5' }, body: HTML, after: true },
    ...INTERRUPTED,
    refreshes: 1,
  },
  {
    name: 'invalid_request',
    fault: oauthError(400, 'invalid_request'),
    end: 'invalid_request 6',
    ...RETRYABLE,
    refreshes: 1,
  },
  {
    name: 'invalid_scope',
    fault: oauthError(400, 'invalid_scope'),
    end: 'invalid_scope 6',
    ...RETRYABLE,
    refreshes: 1,
  },
  {
    name: 'invalid_client',
    fault: oauthError(401, 'invalid_client'),
    end: 'invalid_client 3',
    ...RETRYABLE,
    refreshes: 1,
  },
  {
    name: 'unauthorized_client',
    fault: oauthError(400, 'unauthorized_client'),
    end: 'unauthorized_client 3',
    ...RETRYABLE,
    refreshes: 1,
  },
  {
    name: 'invalid_grant',
    fault: oauthError(400, 'invalid_grant'),
    end: 'session_over 4',
    state: 'ended',
    next: 'session_over 4',
    refreshes: 0,
  },
  {
    name: 'one 429 with Retry-After',
    fault: { kind: 'status', status: 429, headers: { 'retry-after': '2' }, count: 1 },
    ...SUCCESS,
    refreshes: 1,
  },
  {
    name: 'one 503 with Retry-After',
    fault: { kind: 'status', status: 503, headers: { 'retry-after': '1' }, count: 1 },
    ...SUCCESS,
    refreshes: 1,
  },
  {
    name: 'a token response with the wrong content type',
    fault: { kind: 'merge', headers: { 'content-type': 'text/html' } },
    ...SUCCESS,
    refreshes: 1,
  },
  {
    name: 'a token response with the optional fields missing',
    fault: { kind: 'merge', fields: { scope: null, expires_in: null } },
    ...SUCCESS,
    refreshes: 1,
  },
  {
    name: 'a token type in another spelling, and unknown fields',
    fault: { kind: 'merge', fields: { token_type: 'BEARER', id_token: 'x', more: [1] } },
    ...SUCCESS,
    refreshes: 1,
  },
  { name: 'an answer that takes its time', fault: { kind: 'delay', after_ms: 30 }, ...SUCCESS, refreshes: 1 },
]

describe('a refresh that meets', () => {
  it.each(faults)(
    'a refresh that meets $name ends as documented',
    async ({ fault, end, state, next, refreshes }) => {
      const world = await createSandboxSession()
      await world.signIn()
      world.expire()
      await world.fault(fault)

      expect(await endOf(() => currentCredential(impatient(world), world.settings))).toBe(end)
      expect((await describeSession(world.context, world.settings)).state).toBe(state)
      await world.clearFaults()
      expect(await endOf(() => currentCredential(world.context, world.settings))).toBe(next)
      expect(await world.counts()).toEqual(
        expect.objectContaining({ refreshes, reuse_detections: 0, grants_revoked: 0 }),
      )
      expect(Object.keys(filesOf(world.paths.directory)).filter((name) => name.endsWith('.tmp'))).toEqual([])
    },
  )

  it.each(['lookup', 'connect'] as const)(
    'a refresh with a failed %s is tried again and then leaves the session as it is',
    async (kind) => {
      const world = await createSandboxSession()
      await world.signIn()
      world.expire()
      let tries = 0
      const http: Context['http'] = {
        async send() {
          tries++
          throw new TransportError(kind, 'no', 'nothing listens there')
        },
        close: async () => {},
      }
      const context = withEffects(world.context, { http })
      expect(await endOf(() => currentCredential(context, world.settings))).toBe('service_unreachable 7')
      expect(tries).toBe(3)
      expect(await endOf(() => currentCredential(world.context, world.settings))).toBe('ok')
    },
  )

  it('a refresh with a failed TLS handshake says so at once and leaves the session as it is', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    world.expire()
    const http: Context['http'] = {
      send: () => Promise.reject(new TransportError('tls', 'no', 'the certificate is for another host')),
      close: async () => {},
    }
    const context = withEffects(world.context, { http })
    expect(await messageOf(() => currentCredential(context, world.settings))).toContain(
      'certificate is for another host',
    )
    expect(await endOf(() => currentCredential(world.context, world.settings))).toBe('ok')
  })
})

describe('an interrupted session', () => {
  async function interruptedWorld(fault: Record<string, unknown>): Promise<SandboxSession> {
    const world = await createSandboxSession()
    await world.signIn()
    world.expire()
    await world.fault(fault)
    await endOf(() => currentCredential(impatient(world), world.settings))
    await world.clearFaults()
    return world
  }
  const retry = (world: SandboxSession) =>
    renew(world.context, world.settings, { reason: 'asked', retryInterrupted: true })

  it('an interrupted session says what happened, what is safe, and both options', async () => {
    const world = await interruptedWorld({ kind: 'drop' })
    expect(await messageOf(() => currentCredential(world.context, world.settings))).toMatchInlineSnapshot(
      `"the last refresh of profile default, at 2026-11-20 12:00:00 UTC, has no known outcome: the refresh token may have been sent, and no usable response was stored. A refresh token works once and a second use ends the session, so it is kept and not sent again | sign in again, which is always safe: mailclaim login --store file. Or try the old token: mailclaim auth refresh --retry-interrupted; if the service did take it, that ends this session everywhere"`,
    )
  })

  it('an interrupted session continues if a person retries and the token was not used', async () => {
    const world = await interruptedWorld({ kind: 'reset' })
    expect(await endOf(() => retry(world))).toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
    expect((await describeSession(world.context, world.settings)).state).toBe('fine')
  })

  it('an interrupted session is over, and says why, if a person retries and the token was used', async () => {
    const world = await interruptedWorld({ kind: 'drop' })
    expect(await messageOf(() => retry(world))).toContain('a refresh whose answer was lost')
    expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 1 })
    expect((await describeSession(world.context, world.settings)).state).toBe('ended')
  })

  it('an interrupted session whose refresh token has expired since is over for that reason', async () => {
    const world = await interruptedWorld({ kind: 'reset' })
    const seconds = 61 * 24 * 3600
    world.context.clock.advance(seconds * 1000)
    const body = JSON.stringify({ advance_seconds: seconds })
    await fetch(new URL('/_sandbox/clock', world.base), { method: 'POST', body })
    expect(await messageOf(() => retry(world))).toContain('more than 60 days ago')
  })

  it('an interrupted session stays interrupted if a retry is refused before the token is checked', async () => {
    const world = await interruptedWorld({ kind: 'drop' })
    await world.fault(oauthError(401, 'invalid_client'))
    expect(await endOf(() => retry(world))).toBe('invalid_client 3')
    await world.clearFaults()
    expect(await endOf(() => currentCredential(world.context, world.settings))).toBe('refresh_interrupted 4')
    expect(await world.counts()).toMatchObject({ reuse_detections: 0 })
  })

  it('an interrupted session is retried without a question if the profile says so, with a warning', async () => {
    const world = await interruptedWorld({ kind: 'reset' })
    const settings = {
      ...world.settings,
      chosen: { ...world.settings.chosen, on_interrupted: { value: 'retry', source: 'profile' as const } },
    }
    expect(await endOf(() => currentCredential(world.context, settings))).toBe('ok')
    expect(world.context.stderr.text).toContain(
      'warning: the last refresh of profile default has no known outcome; its token is sent once more, because on-interrupted is set to retry',
    )
  })

  /** Runs a command on a terminal, where a person answers the question. */
  async function askedOn(world: SandboxSession, answer: () => boolean | Promise<boolean>) {
    const questions: { message: string; default: boolean }[] = []
    const confirm = async (question: { message: string; default: boolean }) => {
      questions.push(question)
      return answer()
    }
    const context = withEffects(world.context, { prompts: { ...world.context.prompts, confirm } })
    const end = await endOf(() => currentCredential(context, { ...world.settings, interactive: true }))
    return { end, questions }
  }

  it.each([
    [true, 'ok'],
    [false, 'refresh_interrupted 4'],
  ])('an interrupted session asks a person on a terminal, who answers %s', async (answer, end) => {
    const world = await interruptedWorld({ kind: 'reset' })
    expect(await askedOn(world, () => answer)).toEqual({
      end,
      questions: [expect.objectContaining({ default: false })],
    })
  })

  it('holds up no other command while a person thinks about the question', async () => {
    const world = await interruptedWorld({ kind: 'reset' })
    const meanwhile: string[] = []
    const { end } = await askedOn(world, async () => {
      meanwhile.push(await endOf(() => currentCredential(world.context, world.settings)))
      meanwhile.push((await describeSession(world.context, world.settings)).state)
      return false
    })
    expect(meanwhile).toEqual(['refresh_interrupted 4', 'interrupted'])
    expect(end).toBe('refresh_interrupted 4')
  })

  it('asks once more where somebody else has sent it meanwhile, with no outcome again', async () => {
    const world = await interruptedWorld({ kind: 'reset' })
    let answers = 0
    const { questions } = await askedOn(world, async () => {
      if (answers++ > 0) return false
      world.context.clock.advance(2_000)
      await world.fault({ kind: 'reset' })
      await endOf(() => retry(world))
      await world.clearFaults()
      return true
    })
    expect(questions).toHaveLength(2)
    expect(await world.counts()).toMatchObject({ reuse_detections: 0 })
  })

  it.each<[string, (world: SandboxSession) => Promise<unknown>]>([
    ['sent it with success', retry],
    ['signed in', (world) => world.signIn()],
  ])('sends nothing more where somebody else has %s before the answer', async (_what, meanwhile) => {
    const world = await interruptedWorld({ kind: 'reset' })
    let sent: number | undefined
    const { end } = await askedOn(world, async () => {
      await meanwhile(world)
      sent = (await world.counts()).refreshes
      return true
    })
    expect(end).toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: sent, reuse_detections: 0 })
  })

  it('a new login replaces an interrupted session', async () => {
    const world = await interruptedWorld({ kind: 'drop' })
    await world.signIn()
    expect((await describeSession(world.context, world.settings)).state).toBe('fine')
    await retry(world)
    expect(await world.counts()).toMatchObject({ reuse_detections: 0 })
  })
})

describe('a store that fails', () => {
  async function keychainWorld(): Promise<{ world: SandboxSession; keychain: FakeKeychain }> {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    await world.signIn('keychain')
    return { world, keychain }
  }

  /** Runs something when the refresh is under way, after the service has rotated the token. */
  function duringRefresh(world: SandboxSession, meanwhile: () => void): Context {
    const { http } = world.context
    return withEffects(world.context, {
      http: {
        async send(request) {
          const response = await http.send(request)
          meanwhile()
          return response
        },
        close: () => http.close(),
      },
    })
  }

  it.each([
    [
      'the end of the session',
      oauthError(400, 'invalid_grant'),
      'session_over',
      4,
      /is over: the service refused its refresh token .*session\.json cannot be written: it is a directory/,
      /permissions of that directory[\s\S]*run mailclaim login/,
    ],
    [
      'a refusal',
      oauthError(401, 'invalid_client'),
      'invalid_client',
      3,
      /no longer knows the client id.*The service has not used the refresh token, but .*journal\.[0-9a-f]{64}\.json cannot be removed/,
      /this is safe and continues the session: mailclaim auth refresh --retry-interrupted/,
    ],
  ])(
    'a store that fails as well does not hide %s: the error names both',
    async (_what, fault, code, exit, message, hint) => {
      const world = await createSandboxSession()
      await world.signIn()
      world.expire()
      await world.fault(fault)
      const context = duringRefresh(world, () => {
        const [journal = ''] = Object.keys(filesOf(world.paths.directory)).filter((name) =>
          name.startsWith('journal.'),
        )
        for (const path of [world.paths.session, join(world.paths.directory, journal)]) {
          rmSync(path)
          mkdirSync(join(path, 'in-the-way'), { recursive: true })
        }
      })
      await expect(currentCredential(context, world.settings)).rejects.toMatchObject({
        code,
        exit,
        message: expect.stringMatching(message),
        hint: expect.stringMatching(hint),
      })
    },
  )

  it.each([
    ['locked', 'keychain_locked_or_missing 4'],
    ['no_module', 'keychain_no_module 4'],
    ['no_bus', 'keychain_no_bus 4'],
    ['no_service', 'keychain_no_service 4'],
    ['timeout', 'keychain_timeout 4'],
    ['refused', 'keychain_refused 4'],
    ['crashed', 'keychain_crashed 4'],
  ] as const)('a keychain error (%s) before the refresh means that nothing is sent', async (trouble, end) => {
    const { world, keychain } = await keychainWorld()
    world.expire()
    keychain.trouble = trouble
    expect(await endOf(() => currentCredential(world.context, world.settings))).toBe(end)
    const message = await messageOf(() => currentCredential(world.context, world.settings))
    expect(message).toContain('--store file')
    expect(message).toContain('MAILCLAIM_API_KEY')
    expect((await describeSession(world.context, world.settings)).state).toBe('store_unavailable')
    keychain.trouble = 'none'
    expect(await endOf(() => currentCredential(world.context, world.settings))).toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
  })

  it.each(['locked', 'no_bus', 'timeout', 'refused'] as const)(
    'a keychain error (%s) after the rotation leaves the token in a file, and the next refresh moves it back',
    async (trouble) => {
      const { world, keychain } = await keychainWorld()
      world.expire()
      const context = duringRefresh(world, () => {
        keychain.trouble = trouble
      })
      expect(await endOf(() => currentCredential(context, world.settings))).toBe('ok')
      expect(world.context.stderr.text).toContain(
        'warning: the new refresh token could not be stored where it belongs (',
      )
      const secrets = () =>
        Object.entries(filesOf(world.paths.directory)).filter(([name]) => name.startsWith('secret.'))
      expect(secrets()).toEqual([[expect.stringMatching(/\.json$/), '600']])

      // While the keychain stays away, the session goes on from the file.
      world.expire()
      expect(await endOf(() => currentCredential(world.context, world.settings))).toBe('ok')
      keychain.trouble = 'none'
      world.expire()
      expect(await endOf(() => currentCredential(world.context, world.settings))).toBe('ok')
      expect(secrets()).toEqual([])
      world.expire()
      expect(await endOf(() => currentCredential(world.context, world.settings))).toBe('ok')
      expect(await world.counts()).toMatchObject({ refreshes: 4, reuse_detections: 0, grants_revoked: 0 })
    },
  )

  it('a keychain that reports success after the rotation but stores nothing is noticed', async () => {
    const { world, keychain } = await keychainWorld()
    world.expire()
    const forgetful = {
      ...keychain,
      async call(request: Parameters<FakeKeychain['call']>[0]) {
        return request.operation === 'set' ? { ok: true as const, value: true } : keychain.call(request)
      },
    }
    const context = withEffects(world.context, { keychain: forgetful })
    expect(await endOf(() => currentCredential(context, world.settings))).toBe('ok')
    world.expire()
    expect(await endOf(() => currentCredential(world.context, world.settings))).toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: 2, reuse_detections: 0 })
  })

  it('a new token that cannot be stored anywhere is reported as lost', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    world.expire()
    const context = duringRefresh(world, () =>
      rmSync(dirname(world.context.directories.state), { recursive: true }),
    )
    expect(await endOf(() => currentCredential(context, world.settings))).toBe('refresh_token_lost 4')
    expect(await world.counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
  })

  it('a directory that is missing for a moment after the rotation costs nothing', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    world.expire()
    const { directory } = world.paths
    const context = duringRefresh(world, () => renameSync(directory, `${directory}.away`))
    expect(await endOf(() => currentCredential(context, world.settings))).toBe('ok')
    expect(world.context.stderr.text).toContain('It is kept in a file that only you can read')
    rmSync(directory, { recursive: true, force: true })
    renameSync(`${directory}.away`, directory)
    expect(await endOf(() => renew(world.context, world.settings, { reason: 'asked' }))).toBe('ok')
    expect(await endOf(() => renew(world.context, world.settings, { reason: 'asked' }))).toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: 3, reuse_detections: 0 })
  })

  it('a preallocated file that something removed before the rotation costs nothing', async () => {
    const world = await createSandboxSession()
    await world.signIn()
    world.expire()
    const record = await readRecord(world.paths)
    const primary = `secret.${record?.id}.json`
    const context = duringRefresh(world, () => {
      for (const name of Object.keys(filesOf(world.paths.directory)))
        if (/^secret\./.test(name) && name !== primary) rmSync(join(world.paths.directory, name))
    })
    expect(await endOf(() => currentCredential(context, world.settings))).toBe('ok')
    expect(world.context.stderr.text).toBe('')
    expect(await endOf(() => renew(world.context, world.settings, { reason: 'asked' }))).toBe('ok')
    expect(await world.counts()).toMatchObject({ refreshes: 2, reuse_detections: 0 })
  })
})
