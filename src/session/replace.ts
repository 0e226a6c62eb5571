import { rename } from 'node:fs/promises'
import type { Context } from '../context.ts'
import { proveKeychain } from '../credentials/keychain.ts'
import { type Place, writeSecret } from '../credentials/store.ts'
import { CliError, usageError } from '../errors.ts'
import type { Tokens } from '../oauth/token-endpoint.ts'
import { issuerOf } from '../settings/addresses.ts'
import { ensurePrivateDirectory, removeLeftovers } from '../settings/files.ts'
import type { Settings } from '../settings/settings.ts'
import { type AccessToken, moment, removeAccessToken, writeAccessToken } from './access-token.ts'
import { noteLeftovers, readLeftovers, removeLeftoverSecrets } from './leftovers.ts'
import { withLock } from './lock.ts'
import { profilesDirectory, type SessionPaths, sessionPaths } from './paths.ts'
import {
  type ApiKeyRecord,
  newSessionId,
  type OAuthRecord,
  readRecord,
  type SessionRecord,
  type StoreKind,
  writeRecord,
} from './record.ts'
import { lockDeadline } from './refresh.ts'
import { placeOf, placesOf } from './secrets.ts'

/** Where a login keeps its secret: what was asked for on the command line, in the environment or in the profile. */
export function chosenStore(
  context: Pick<Context, 'environment'>,
  settings: Pick<Settings, 'profileConfig'>,
  option: string | undefined,
): StoreKind {
  const from =
    option !== undefined ? '--store' : context.environment.store !== undefined ? 'MAILCLAIM_STORE' : 'store'
  const text = option ?? context.environment.store ?? settings.profileConfig.store ?? 'keychain'
  if (text === 'keychain' || text === 'file') return text
  throw usageError(`${from}: ${JSON.stringify(text)} is not one of keychain, file`)
}

/**
 * Proves that a store works before a person is sent through a browser: the folder can be written, the lock can be
 * loaded, and the keychain takes an item, gives it back and forgets it.
 *
 * @param secret an API key needs no lock.
 * @throws CliError, exit 1 or 4, naming the cause and the ways on.
 */
export async function proveStore(
  context: Context,
  settings: Settings,
  store: StoreKind,
  secret: 'refresh_token' | 'api_key' = 'refresh_token',
): Promise<void> {
  const paths = sessionPaths(context, settings.profile.value)
  await prepareDirectory(context, paths)
  await withLockIfAny(paths, context, settings, secret === 'api_key', async () => undefined)
  if (store === 'keychain') await proveKeychain(context, settings.profile.value)
}

async function prepareDirectory(context: Context, paths: SessionPaths): Promise<void> {
  await ensurePrivateDirectory(context.directories.state, 'leave')
  await ensurePrivateDirectory(profilesDirectory(context))
  await ensurePrivateDirectory(paths.directory)
}

export interface NewSession {
  readonly base: URL
  readonly clientId: string
  /** What the login asked for; stands where the service names no scope. */
  readonly scope: string | undefined
  readonly resource: string | undefined
  readonly tokens: Tokens
  readonly store: StoreKind
}

/**
 * Makes a new sign-in the session of the profile. The one before it stays whole until the new one is stored, and of two
 * logins at once one whole session is left.
 *
 * @returns what may still hold a secret of the session before.
 * @throws CliError, exit 1 or 4: the session before it is untouched.
 */
export async function replaceSession(
  context: Context,
  settings: Settings,
  session: NewSession,
): Promise<{ record: OAuthRecord; kept: { place: Place; why: string }[] }> {
  const now = context.clock.now()
  const { tokens } = session
  const record: OAuthRecord = {
    kind: 'oauth',
    id: newSessionId(context),
    profile: settings.profile.value,
    issuer: issuerOf(session.base),
    clientId: session.clientId,
    scope: tokens.scope ?? session.scope ?? null,
    resource: session.resource ?? null,
    store: session.store,
    generation: 1,
    signedInAt: now,
    issuedAt: now,
    journal: null,
    ended: null,
  }
  const token: AccessToken = {
    session: record.id,
    issuer: record.issuer,
    clientId: record.clientId,
    value: tokens.accessToken,
    scope: record.scope,
    narrowed: false,
    expiresInSeconds: tokens.expiresInSeconds,
    received: moment(context.clock),
  }
  const kept = await replace(context, settings, record, tokens.refreshToken, token)
  return { record, kept }
}

/**
 * Makes an API key the credential of the profile, as `replaceSession` does with a sign-in.
 *
 * @param base the service that the key is for; undefined where none is configured.
 */
export async function storeApiKey(
  context: Context,
  settings: Settings,
  key: { readonly value: string; readonly base: URL | undefined; readonly store: StoreKind },
): Promise<{ record: ApiKeyRecord; kept: { place: Place; why: string }[] }> {
  // RFC 6750 §2.1: only these may stand in an Authorization header.
  if (!/^[\x21-\x7e]{1,2000}$/.test(key.value)) {
    throw usageError('that is not an API key: it has to be one line of printable ASCII without spaces')
  }
  const record: ApiKeyRecord = {
    kind: 'api_key',
    id: newSessionId(context),
    profile: settings.profile.value,
    issuer: key.base === undefined ? null : issuerOf(key.base),
    store: key.store,
    signedInAt: context.clock.now(),
  }
  return { record, kept: await replace(context, settings, record, key.value, undefined) }
}

async function replace(
  context: Context,
  settings: Settings,
  record: SessionRecord,
  secret: string,
  token: AccessToken | undefined,
): Promise<{ place: Place; why: string }[]> {
  const paths = sessionPaths(context, record.profile)
  await prepareDirectory(context, paths)
  return withLockIfAny(paths, context, settings, record.kind === 'api_key', () =>
    context.interrupts.shield(async () => {
      await removeLeftovers(paths.directory, { olderThanMs: 0 })
      const before = await readReplaced(context, paths)
      const old = before === undefined ? [] : placesOf(paths, before)
      // A login that died left a note of the session that is still in force as well.
      const noted = (await readLeftovers(paths)).filter(
        ({ name }) => !old.some((place) => place.name === name),
      )
      const place = placeOf(paths, record)
      // Noted first: if this process dies on the way, the next login or logout knows what to remove.
      await noteLeftovers(paths, [...noted, ...old, place])
      try {
        await writeSecret(context, place, { generation: 1, value: secret })
        // The access token of the session before must not outlive it, at no moment.
        await removeAccessToken(paths)
        await writeRecord(paths, record)
      } catch (error) {
        await removeLeftoverSecrets(context, paths, [...noted, place]).catch(() => undefined)
        throw error
      }
      if (token !== undefined) await writeAccessToken(paths, token).catch(() => undefined)
      return removeLeftoverSecrets(context, paths, [...noted, ...old])
    }),
  )
}

/** The session that is being replaced. A damaged record is kept under another name, for whoever wants to look. */
async function readReplaced(context: Context, paths: SessionPaths): Promise<SessionRecord | undefined> {
  try {
    return await readRecord(paths)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    await rename(paths.session, `${paths.session}.damaged-${context.clock.now()}`)
    return undefined
  }
}

/** What touches no refresh token that anybody could be sending goes on where there are no locks at all. */
export async function withLockIfAny<T>(
  paths: SessionPaths,
  context: Context,
  settings: Settings,
  optional: boolean,
  work: () => Promise<T>,
): Promise<T> {
  let started = false
  try {
    return await withLock(paths.lock, context, { deadlineMs: lockDeadline(settings) }, () => {
      started = true
      return work()
    })
  } catch (error) {
    const noLocks = error instanceof CliError && error.code === 'lock_unavailable'
    if (optional && noLocks && !started) return work()
    throw error
  }
}
