import type { Context } from '../context.ts'
import { limitKeychain } from '../credentials/keychain.ts'
import { type KeptSecret, locationsOf, removeSecrets } from '../credentials/secret-copies.ts'
import { type Secret, type SecretLocation, writeSecret } from '../credentials/store.ts'
import { CliError } from '../errors.ts'
import type { Tokens } from '../oauth/token-endpoint.ts'
import { issuerOf } from '../settings/addresses.ts'
import type { Settings } from '../settings/settings.ts'
import type { LocalStoreKind } from '../settings/table.ts'
import { removeStaleTemporaries } from '../storage/durable-file.ts'
import { withLock, withLockIfAny } from '../storage/lock.ts'
import { moment } from '../storage/moment.ts'
import { type AccessToken, removeAccessToken, writeAccessToken } from './access-token.ts'
import { requireApiKey } from './api-key.ts'
import { forgetSession } from './forget.ts'
import { lockDeadline, type SessionContext } from './guard.ts'
import { removeJournals } from './journal.ts'
import { ensureProfileDirectory, type SessionPaths, sessionPaths } from './paths.ts'
import {
  type ApiKeyRecord,
  newSessionId,
  type OAuthRecord,
  readOrMoveAway,
  type SessionRecord,
  type SignIn,
  writeRecord,
} from './record.ts'
import { secretStorage } from './secret-storage.ts'
import type { SharedVault } from './shared/vault.ts'
import { noteSuperseded, readSuperseded, removeSuperseded } from './superseded.ts'

type SessionSettings = Pick<Settings, 'profile' | 'chosen' | 'httpTimeoutMs' | 'quiet' | 'colorOption'>

export interface NewSession {
  readonly base: URL
  readonly clientId: string
  /** What the login asked for, in case the service names no scope. */
  readonly scope: string | undefined
  readonly resource: string | undefined
  readonly tokens: Tokens
  /** A store of this machine, or the place in etcd that `proveShared` has found. */
  readonly store: LocalStoreKind | SharedVault
}

/**
 * Makes a new sign-in the session of the profile. The previous one stays whole until the new one is stored, and of two
 * logins at once one whole session is left.
 *
 * @returns `kept`: what may still hold a secret of the previous session.
 * @throws CliError, exit 1 or 4: the previous session is untouched.
 */
export async function replaceSession(
  context: SessionContext & Pick<Context, 'http' | 'program'>,
  settings: SessionSettings,
  { base, clientId, scope, resource, tokens, store }: NewSession,
): Promise<{ record: SignIn; kept: KeptSecret[] }> {
  const now = context.clock.now()
  const signIn = {
    kind: 'oauth',
    id: newSessionId(context),
    profile: settings.profile.value,
    issuer: issuerOf(base),
    clientId,
    scope: tokens.scope ?? scope ?? null,
    resource: resource ?? null,
    signedInAt: now,
    ended: null,
  } as const
  const token: AccessToken = {
    session: signIn.id,
    generation: 1,
    issuer: signIn.issuer,
    clientId,
    value: tokens.accessToken,
    scope: signIn.scope,
    narrowed: false,
    expiresInSeconds: tokens.expiresInSeconds,
    received: moment(context.clock),
  }
  const secret: Secret = { generation: 1, issuedAt: now, value: tokens.refreshToken }
  if (typeof store !== 'string') {
    const { replaceShared } = await import('./shared/replace.ts')
    const shared = { ...signIn, store: 'etcd' } as const
    await replaceShared(store, { record: shared, secret, token })
    // What was signed in on this machine alone is no longer used.
    const { kept } = await forgetSession(context, settings, signIn.profile)
    return { record: shared, kept: [...kept] }
  }
  const record: OAuthRecord = { ...signIn, store }
  return { record, kept: await replace(context, settings, record, secret, token) }
}

/**
 * Makes an API key the credential of the profile, as `replaceSession` does with a sign-in.
 *
 * @param base the service that the key is for; undefined if none is configured.
 * @throws CliError `usage`, exit 2; as `replaceSession`.
 */
export async function storeApiKey(
  context: SessionContext,
  settings: SessionSettings,
  key: { readonly value: string; readonly base: URL | undefined; readonly store: LocalStoreKind },
): Promise<{ record: ApiKeyRecord; kept: KeptSecret[] }> {
  requireApiKey(key.value)
  const now = context.clock.now()
  const record: ApiKeyRecord = {
    kind: 'api_key',
    id: newSessionId(context),
    profile: settings.profile.value,
    issuer: key.base === undefined ? null : issuerOf(key.base),
    store: key.store,
    signedInAt: now,
  }
  const secret: Secret = { generation: 1, issuedAt: now, value: key.value }
  return { record, kept: await replace(context, settings, record, secret, undefined) }
}

/**
 * Takes the lock; an API key goes without, if there are no locks here. A signal ends the wait for a keychain: either before
 * the new session is stored, which then counts for nothing, or after, and the next login or logout removes what is left.
 */
async function replace(
  context: SessionContext,
  settings: SessionSettings,
  record: SessionRecord,
  secret: Secret,
  token: AccessToken | undefined,
): Promise<KeptSecret[]> {
  const paths = sessionPaths(context, record.profile)
  await ensureProfileDirectory(context, paths)
  const lock = record.kind === 'api_key' ? withLockIfAny : withLock
  return lock(paths.lock, context, { deadlineMs: lockDeadline(settings) }, async () => {
    const items = await replaceUnderLock(context, settings, paths, record, secret, token)
    const limited = { ...context, keychain: limitKeychain(context, settings) }
    const kept = await removeSuperseded(limited, paths, items, record.id)
    removeJournals(paths.directory)
    return kept
  })
}

/** @returns the keychain items of the profile, that of the new session included. */
async function replaceUnderLock(
  context: SessionContext,
  settings: SessionSettings,
  paths: SessionPaths,
  record: SessionRecord,
  secret: Secret,
  token: AccessToken | undefined,
): Promise<SecretLocation[]> {
  removeStaleTemporaries(paths.directory, { ofAnyAge: true })
  const { record: previous } = await readOrMoveAway(context, paths)
  const { location } = secretStorage(paths, record)
  const noted = await readSuperseded(paths)
  const previousLocations = previous === undefined ? [] : locationsOf(secretStorage(paths, previous))
  const items = [...noted, ...previousLocations].filter(({ store }) => store === 'keychain')
  // Before the secret is stored: if this process dies, the next login or logout knows what to remove.
  noteSuperseded(paths, [...items, location])
  try {
    // Somebody may have to unlock it.
    const keychain = limitKeychain(context, settings, Number.POSITIVE_INFINITY)
    await writeSecret({ ...context, keychain }, location, secret)
    // From here on nothing waits, so no signal can intervene.
    // Before the record: the new session must never be seen with the access token of the previous one.
    removeAccessToken(paths)
    writeRecord(paths, record)
  } catch (error) {
    const kept = await removeSecrets({ ...context, keychain: limitKeychain(context, settings) }, [location])
    noteSuperseded(paths, [...noted, ...kept.map((secret) => secret.location)])
    context.interrupts.signal.throwIfAborted()
    throw error
  }
  if (token !== undefined) cacheFirstToken(paths, token)
  return location.store === 'keychain' ? [...items, location] : items
}

/** A session without its first access token is whole: the next command gets one. */
function cacheFirstToken(paths: SessionPaths, token: AccessToken): void {
  try {
    writeAccessToken(paths, token)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
}
