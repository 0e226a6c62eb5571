import { join } from 'node:path'
import type { Context } from '../context.ts'
import { keychainGuardDirectory, prepareGuard } from '../credentials/keychain-guard.ts'
import type { SecretHome } from '../credentials/secret-copies.ts'
import { type HeldLock, type LockOptions, withLock } from '../storage/lock.ts'

/** What stands between a refresh token and its second use: a lock that is held, and the directory of the journal. */
export interface Guard extends HeldLock {
  /** Where the journal lies: with the lock, so that every holder of the token finds it. */
  readonly journals: string
}

/**
 * Runs work while no other process can use a secret. A file in the profile's directory is guarded by the profile's own
 * lock, which the caller holds; an item of the keychain by one more, since other state directories may know it too.
 *
 * @param lock the profile's lock.
 * @throws CliError as `withLock`; `directory_unusable`, exit 1.
 */
export async function withGuard<T>(
  context: Pick<Context, 'clock' | 'random' | 'interrupts' | 'directories'>,
  home: SecretHome,
  lock: HeldLock,
  options: LockOptions<T>,
  work: (guard: Guard) => Promise<T>,
): Promise<T> {
  const journals = journalDirectory(context, home)
  if (home.place.store === 'file') return work({ journals, isCurrent: () => lock.isCurrent() })
  await prepareGuard(context, home.place)
  return withLock(join(journals, 'lock'), context, options, (own) =>
    work({ journals, isCurrent: () => lock.isCurrent() && own.isCurrent() }),
  )
}

/** Where the journal of a secret lies. */
export function journalDirectory(
  context: Pick<Context, 'directories'>,
  { place, directory }: SecretHome,
): string {
  return place.store === 'file' ? directory : keychainGuardDirectory(context, place.name)
}
