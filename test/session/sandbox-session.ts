import { randomBytes } from 'node:crypto'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Context } from '../../src/context.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { createTransport } from '../../src/service/transport.ts'
import {
  encodeSession,
  type ProfileFiles,
  profileFiles,
  readSession,
  type Session,
} from '../../src/session/session-file.ts'
import { prepareLocalSignIn } from '../../src/session/sign-in.ts'
import { normalizeUrl } from '../../src/settings/addresses.ts'
import { type GivenOptions, getBaseUrl } from '../../src/settings/settings.ts'
import { createIo, type Io } from '../../src/terminal/io.ts'
import {
  createFakeContext,
  type FakeContext,
  type FakeContextOptions,
  fakeSettings,
} from '../fake-context.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import { control } from '../sandbox/talk.ts'

/** Tokens of a token response. */
export interface Tokens {
  readonly accessToken: string
  readonly refreshToken: string
  readonly expiresInSeconds: number
  readonly scope: string | undefined
}

/** Creates a sandbox, and a context that sends real HTTP to the sandbox; all other effects are faked. */
export async function createSandboxSession(options: FakeContextOptions = {}, effects: Partial<Context> = {}) {
  const sandbox = await sandboxForTest()
  const http = createTransport({})
  onTestFinished(() => http.close())
  // Real randomness, because each sign-in needs its own id.
  const random = { bytes: (length: number) => randomBytes(length), fraction: () => 1 }
  const context = withEffects(createFakeContext({ http, ...options }), { random, ...effects })
  const given = { baseUrl: sandbox.baseUrl, clientId: sandbox.clientId }
  const settings = await fakeSettings(context, given)
  const io = createIo(context, settings)
  const files = profileFiles(context, 'default')
  return {
    context,
    settings,
    io,
    files,
    base: new URL(sandbox.baseUrl),
    clientId: sandbox.clientId,
    async signIn(store: 'keychain' | 'file' = 'file') {
      await signInWith(io, await newTokens(sandbox), store)
    },
    /** Moves the access token's expiry 15 minutes back. */
    expire: () => expireAccessToken(files),
    session: () => sessionIn(files),
    counts: async () =>
      (await control(sandbox, 'GET', '/state')).body as Record<
        'refreshes' | 'reuse_detections' | 'grants_revoked',
        number
      >,
    fault: async (body: Record<string, unknown>) => {
      await control(sandbox, 'POST', '/faults', { path: '/oauth/token', ...body })
    },
    clearFaults: async () => {
      await control(sandbox, 'DELETE', '/faults')
    },
    settingsWith: (more: GivenOptions) => fakeSettings(context, { ...given, ...more }),
  }
}

export type SandboxSession = Awaited<ReturnType<typeof createSandboxSession>>

/** Creates a grant in the sandbox and returns its tokens. */
export async function newTokens(sandbox: Sandbox): Promise<Tokens> {
  const { body } = await control(sandbox, 'POST', '/sessions', {})
  const tokens = body as Record<string, never>
  return {
    accessToken: tokens['access_token'] ?? '',
    refreshToken: tokens['refresh_token'] ?? '',
    expiresInSeconds: tokens['expires_in'] ?? 0,
    scope: tokens['scope'],
  }
}

/** Signs in with tokens, like a login after exchanging its code. */
export async function signInWith(io: Io, tokens: Tokens, store: 'keychain' | 'file'): Promise<Session> {
  const { accessToken: value, refreshToken: secret, expiresInSeconds: lifetimeSeconds, scope = null } = tokens
  const prepared = await prepareLocalSignIn(io, store, 'session')
  return prepared.complete({
    kind: 'session',
    service: normalizeUrl(getBaseUrl(io.settings)),
    client: io.settings.chosen.client_id?.value ?? '',
    scope,
    resource: null,
    secret,
    access: { value, scope, lifetimeSeconds, expiresAt: io.clock.now() + lifetimeSeconds * 1000 },
  })
}

/** Reads the session of a profile. @throws if nobody is signed in */
export function sessionIn(files: ProfileFiles): Session {
  const found = readSession(files)
  if (found === undefined) throw new Error('nobody is signed in')
  return found.session
}

/** Overwrites fields of the stored session. */
export function changeSession(files: ProfileFiles, changes: Partial<Session>): void {
  writeFileSync(files.session, encodeSession({ ...sessionIn(files), ...changes }))
}

/** Moves the stored access token's expiry 15 minutes back. */
export function expireAccessToken(files: ProfileFiles): void {
  const { access } = sessionIn(files)
  if (access !== undefined)
    changeSession(files, { access: { ...access, expiresAt: access.expiresAt - 900_000 } })
}

/** Returns the file names of a directory with their permissions, temporary files included. */
export function filesOf(directory: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(directory)
      .sort()
      .map((name) => [name, (statSync(join(directory, name)).mode & 0o777).toString(8)]),
  )
}

/** Returns a copy of a context with some effects replaced. */
export function withEffects(context: FakeContext, effects: Partial<Context>): FakeContext {
  return { ...context, ...effects } as FakeContext
}
