import { createHash } from 'node:crypto'
import { dirname, isAbsolute, join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { ensurePrivateDirectory, removeTree } from '../storage/private-directory.ts'
import type { Place } from './store.ts'

/**
 * Where the lock and the journal of a keychain item lie: the same for every state directory, since all of them share the
 * keychain.
 */
export function keychainGuardDirectory(context: Pick<Context, 'directories'>, account: string): string {
  const name = createHash('sha256').update(account).digest('hex').slice(0, 24)
  return join(context.directories.user, 'keychain', name)
}

/**
 * Makes the directory that guards an item of the keychain.
 *
 * @throws CliError `keychain_lock_unavailable`, exit 4.
 */
export async function prepareGuard(context: Pick<Context, 'directories'>, place: Place): Promise<void> {
  const directory = keychainGuardDirectory(context, place.name)
  const { user } = context.directories
  const unusable = (why: string, cause?: unknown) =>
    new CliError(
      'keychain_lock_unavailable',
      Exit.notSignedIn,
      `the keychain cannot be used: its lock lies in the home directory that the system knows for this user, and ${why}`,
      {
        hint: 'keep the secret in a file that only you can read (mailclaim login --store file), or use an API key (MAILCLAIM_API_KEY)',
        cause,
      },
    )
  if (!isAbsolute(user)) throw unusable('it knows none')
  try {
    await ensurePrivateDirectory(user, 'leave')
    await ensurePrivateDirectory(dirname(directory))
    await ensurePrivateDirectory(directory)
  } catch (error) {
    throw error instanceof CliError ? unusable(error.message, error) : error
  }
}

/**
 * Removes what guarded an item of the keychain that is gone. Whoever waits for that lock finds out that it was replaced.
 * Never throws.
 */
export function removeGuard(context: Pick<Context, 'directories'>, place: Place): void {
  removeTree(keychainGuardDirectory(context, place.name))
}
