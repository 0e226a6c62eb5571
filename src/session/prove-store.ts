import type { Context } from '../context.ts'
import { proveKeychain } from '../credentials/keychain.ts'
import { prepareGuard } from '../credentials/keychain-guard.ts'
import type { Settings } from '../settings/settings.ts'
import type { LocalStoreKind } from '../settings/table.ts'
import { withLock, withLockIfAny } from '../storage/lock.ts'
import { lockDeadline, type SessionContext } from './guard.ts'
import { ensureProfileDirectory, sessionPaths } from './paths.ts'

/**
 * Proves that a store of this machine works before a person is sent to the browser: the directory can be written to, the
 * lock can be taken, and the keychain takes an item, returns it and deletes it.
 *
 * @param secret an API key needs no lock.
 * @throws CliError, exit 1 or 4, with the cause and the alternatives.
 */
export async function proveStore(
  context: SessionContext & Pick<Context, 'http' | 'program'>,
  settings: Pick<Settings, 'profile' | 'chosen' | 'httpTimeoutMs'>,
  store: LocalStoreKind,
  secret: 'refresh_token' | 'api_key' = 'refresh_token',
): Promise<void> {
  const profile = settings.profile.value
  const paths = sessionPaths(context, profile)
  await ensureProfileDirectory(context, paths)
  const lock = secret === 'api_key' ? withLockIfAny : withLock
  await lock(paths.lock, context, { deadlineMs: lockDeadline(settings) }, async () => undefined)
  if (store === 'keychain') {
    await prepareGuard(context, { store, name: `${profile} self-test` })
    await proveKeychain(context, profile)
  }
}
