import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { type Authorizer, type Credential, isBearerToken } from '../service/authorizer.ts'
import type { Settings } from '../settings/settings.ts'
import { isShared } from '../settings/shared-store.ts'
import { isThere } from '../storage/durable-file.ts'
import { type AccessToken, isFresh, readAccessToken } from './access-token.ts'
import { notSignedIn } from './messages.ts'
import { sessionPaths } from './paths.ts'
import { profilesWithSession } from './profiles.ts'
import { readRecord } from './record.ts'
import type { RefreshContext, RefreshSettings } from './refresh-task.ts'
import { requireSameService } from './same-service.ts'

/** How long a session in etcd isn't read again: its access token is good for a minute at least when it is read. */
const REMEMBERED_MS = 30_000

type CredentialContext = RefreshContext & Pick<Context, 'environment'>

/**
 * The credential of a command: the API key in the environment, else what `login` stored for the profile. Requests that need
 * it at the same time share one look at it, and one renewal; a key is read once.
 */
export function createAuthorizer(context: CredentialContext, settings: RefreshSettings): Authorizer {
  let known: { readonly credential: Credential; readonly until: number } | undefined
  let asked: Promise<Credential> | undefined
  const renewals = new Map<string, Promise<Credential | undefined>>()
  const { clock } = context
  const remember = (credential: Credential | undefined) => {
    const lifeMs = credential?.kind === 'api_key' ? Infinity : isShared(settings) ? REMEMBERED_MS : 0
    known = credential && { credential, until: clock.monotonic() + lifeMs }
    return credential
  }
  return {
    async credential() {
      if (known !== undefined && clock.monotonic() < known.until) return known.credential
      asked ??= currentCredential(context, settings).finally(() => {
        asked = undefined
      })
      const credential = await asked
      remember(credential)
      return credential
    },
    async refused(credential) {
      const { value } = credential
      const renewal =
        renewals.get(value) ??
        nextCredential(context, settings, credential, undefined).finally(() => renewals.delete(value))
      renewals.set(value, renewal)
      return remember(await renewal)
    },
  }
}

/**
 * The hot path of scripts: an API key from the environment, or one read of one file. The code of a refresh and
 * of a stored key is loaded only for these.
 *
 * @throws CliError `api_key_unusable`, exit 4; as `renew`.
 */
export async function currentCredential(
  context: CredentialContext,
  settings: RefreshSettings,
  deadline?: number,
): Promise<Credential> {
  const fromEnvironment = environmentKey(context)
  if (fromEnvironment !== undefined) return fromEnvironment
  const paths = sessionPaths(context, settings.profile.value)
  const token = isShared(settings) ? undefined : await readAccessToken(paths)
  // A renewal that was running during a logout can leave an access token that belongs to no session.
  if (token !== undefined && isFresh(token, context.clock) && isThere(paths.session)) {
    requireSameService(token, settings)
    return asCredential(token, settings)
  }
  // Only a sign-in leaves an access token. With one, however old, the record needn't be read before the lock is held.
  if (token === undefined && !isShared(settings)) {
    const record = await readRecord(paths)
    if (record === undefined) throw notSignedIn(settings, profilesWithSession(context))
    if (record.kind === 'api_key') {
      const { storedKey } = await import('./stored-key.ts')
      return storedKey(context, settings, paths, record)
    }
  }
  const { renew } = await import('./refresh.ts')
  const renewed = await renew(context, settings, {
    reason: 'stale',
    deadline,
    ...(token === undefined ? {} : { outdated: token.value }),
  })
  return asCredential(renewed.token, settings)
}

async function nextCredential(
  context: CredentialContext,
  settings: RefreshSettings,
  credential: Credential,
  deadline: number | undefined,
): Promise<Credential | undefined> {
  if (credential.kind === 'api_key') return undefined
  const { renew } = await import('./refresh.ts')
  const { token, record } = await renew(context, settings, {
    reason: 'refused',
    outdated: credential.value,
    deadline,
  })
  const stored = isShared(settings)
    ? { store: 'etcd' as const }
    : await readRecord(sessionPaths(context, settings.profile.value))
  const { store } = record ?? stored ?? {}
  return { ...asCredential(token, settings), ...(store === undefined ? {} : { store }) }
}

/** The API key in the environment, if there is one. @throws CliError `api_key_unusable`, exit 4. */
export function environmentKey(context: Pick<Context, 'environment'>): Credential | undefined {
  const value = context.environment.apiKey
  if (value === undefined) return undefined
  if (!isBearerToken(value)) {
    throw new CliError(
      'api_key_unusable',
      Exit.notSignedIn,
      'MAILCLAIM_API_KEY is not an API key: it has to be one line of printable ASCII without spaces',
      { hint: 'set it again, or unset it to use the stored session' },
    )
  }
  return { kind: 'api_key', value, description: 'the API key in MAILCLAIM_API_KEY' }
}

function asCredential(token: AccessToken, settings: Pick<Settings, 'profile'>): Credential {
  return {
    kind: 'access_token',
    value: token.value,
    description: `the access token of profile ${settings.profile.value}`,
  }
}
