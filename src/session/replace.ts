import type { Context } from '../context.ts'
import { proveKeychain } from '../credentials/keychain.ts'
import { prepareGuard, removeGuard } from '../credentials/keychain-guard.ts'
import { type KeptSecret, placesOf, removeSecrets } from '../credentials/secret-copies.ts'
import { type Secret, writeSecret } from '../credentials/store.ts'
import { CliError, usageError } from '../errors.ts'
import type { Tokens } from '../oauth/token-endpoint.ts'
import { issuerOf } from '../settings/addresses.ts'
import type { Settings } from '../settings/settings.ts'
import type { StoreKind } from '../settings/table.ts'
import { moveDurable, removeStaleTemporaries } from '../storage/durable-file.ts'
import { withLock, withLockIfAny } from '../storage/lock.ts'
import { moment } from '../storage/moment.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import { type AccessToken, removeAccessToken, writeAccessToken } from './access-token.ts'
import { removeJournals } from './journal.ts'
import { profilesDirectory, type SessionPaths, secretHome, sessionPaths } from './paths.ts'
import {
  type ApiKeyRecord,
  newSessionId,
  type OAuthRecord,
  readRecord,
  type SessionRecord,
  writeRecord,
} from './record.ts'
import { lockDeadline } from './refresh.ts'
import { noteSuperseded, readSuperseded, removeSuperseded } from './superseded.ts'

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
  const lock = secret === 'api_key' ? withLockIfAny : withLock
  await lock(paths.lock, context, { deadlineMs: lockDeadline(settings) }, async () => undefined)
  if (store === 'keychain') {
    await prepareGuard(context, { store, name: `${settings.profile.value} self-test` })
    await proveKeychain(context, settings.profile.value)
  }
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
): Promise<{ record: OAuthRecord; kept: KeptSecret[] }> {
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
    signedInAt: now,
    ended: null,
  }
  const token: AccessToken = {
    session: record.id,
    generation: 1,
    issuer: record.issuer,
    clientId: record.clientId,
    value: tokens.accessToken,
    scope: record.scope,
    narrowed: false,
    expiresInSeconds: tokens.expiresInSeconds,
    received: moment(context.clock),
  }
  const kept = await replace(context, settings, record, firstSecret(now, tokens.refreshToken), token)
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
): Promise<{ record: ApiKeyRecord; kept: KeptSecret[] }> {
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
  const secret = firstSecret(record.signedInAt, key.value)
  return { record, kept: await replace(context, settings, record, secret, undefined) }
}

function firstSecret(issuedAt: number, value: string): Secret {
  return { generation: 1, issuedAt, value }
}

async function replace(
  context: Context,
  settings: Settings,
  record: SessionRecord,
  secret: Secret,
  token: AccessToken | undefined,
): Promise<KeptSecret[]> {
  const paths = sessionPaths(context, record.profile)
  await prepareDirectory(context, paths)
  const lock = record.kind === 'api_key' ? withLockIfAny : withLock
  return lock(paths.lock, context, { deadlineMs: lockDeadline(settings) }, () =>
    context.interrupts.shield(async () => {
      removeStaleTemporaries(paths.directory, { ofAnyAge: true })
      const { record: before } = await readOrMoveAway(context, paths)
      const { place } = secretHome(paths, record)
      const old = before === undefined ? [] : placesOf(secretHome(paths, before))
      const noted = await readSuperseded(paths)
      const items = [...noted, ...old].filter(({ store }) => store === 'keychain')
      // Noted first: if this process dies on the way, the next login or logout knows what to remove.
      noteSuperseded(paths, [...items, place])
      try {
        await writeSecret(context, place, secret)
        // The access token of the session before must not outlive it, at no moment.
        removeAccessToken(paths)
        writeRecord(paths, record)
      } catch (error) {
        const stays = await removeSecrets(context, [place])
        noteSuperseded(paths, [...noted, ...stays.map((kept) => kept.place)])
        throw error
      }
      if (token !== undefined) await cacheFirstToken(paths, token)
      const all = place.store === 'keychain' ? [...items, place] : items
      const kept = await removeSuperseded(context, paths, all, record.id)
      for (const item of items) if (item.name !== place.name) removeGuard(context, item)
      removeJournals(paths.directory)
      return kept
    }),
  )
}

/** A session without its first access token is whole: the next command gets one. */
async function cacheFirstToken(paths: SessionPaths, token: AccessToken): Promise<void> {
  try {
    writeAccessToken(paths, token)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
}

/**
 * Reads the record of a session that is about to go. One that cannot be used is kept under another name, for whoever
 * wants to look.
 *
 * @throws CliError `cannot_write`, exit 1, where it cannot be moved.
 */
export async function readOrMoveAway(
  context: Context,
  paths: SessionPaths,
): Promise<{ record: SessionRecord | undefined; damaged: string | undefined }> {
  try {
    return { record: await readRecord(paths), damaged: undefined }
  } catch (error) {
    // One that cannot be read just now is not damaged: the disk, or the limits of this process, are.
    const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
    if (!(error instanceof CliError) || ['EIO', 'EMFILE', 'ENFILE', 'ENOMEM'].includes(code ?? ''))
      throw error
    const damaged = `${paths.session}.damaged-${context.clock.now()}`
    moveDurable(paths.session, damaged)
    return { record: undefined, damaged }
  }
}
