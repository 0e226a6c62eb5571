import { createHash } from 'node:crypto'
import { dirname, isAbsolute, join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import { ensurePrivateDirectory, removeTree } from '../storage/private-directory.ts'
import { profileOf } from './keychain.ts'
import type { SecretLocation } from './store.ts'

/**
 * The directory of a keychain item's lock and journal: the same for every state directory, because all of them share the
 * keychain.
 */
export function keychainGuardDirectory(context: Pick<Context, 'directories'>, account: string): string {
  const name = createHash('sha256').update(account).digest('hex').slice(0, 24)
  return join(context.directories.user, 'keychain', name)
}

/**
 * Creates the directory for the lock and the journal of a keychain item.
 *
 * @throws CliError `keychain_lock_unavailable`, exit 4.
 */
export async function prepareGuard(
  context: Pick<Context, 'directories'>,
  location: SecretLocation,
): Promise<void> {
  const directory = keychainGuardDirectory(context, location.name)
  const { user } = context.directories
  const unusable = (why: string, cause?: unknown) =>
    new CliError(
      'keychain_lock_unavailable',
      Exit.notSignedIn,
      `the keychain cannot be used: its lock belongs in the home directory that the system knows for this user, and ${why}`,
      {
        hint: `use an API key (MAILCLAIM_API_KEY), or keep the secret in a file that only you can read: ${loginCommand({ profile: profileOf(location.name), store: 'file' })}`,
        cause,
      },
    )
  if (!isAbsolute(user)) throw unusable('there is none')
  try {
    await ensurePrivateDirectory(user, 'leave')
    await ensurePrivateDirectory(dirname(directory))
    await ensurePrivateDirectory(directory)
  } catch (error) {
    throw error instanceof CliError ? unusable(error.message, error) : error
  }
}

/**
 * Removes the lock and the journal of a keychain item that was removed. Whoever waits for the lock finds out that it was
 * replaced. Never throws.
 */
export function removeGuard(context: Pick<Context, 'directories'>, location: SecretLocation): void {
  removeTree(keychainGuardDirectory(context, location.name))
}
