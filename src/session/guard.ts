import { join } from 'node:path'
import type { Context } from '../context.ts'
import type { ProvingContext } from '../credentials/keychain.ts'
import { keychainGuardDirectory, prepareGuard } from '../credentials/keychain-guard.ts'
import type { SecretStorage } from '../credentials/secret-copies.ts'
import { tokenTimeoutMs } from '../oauth/token-endpoint.ts'
import type { Settings } from '../settings/settings.ts'
import {
  type HeldLock,
  type LockContext,
  type LockOptions,
  type STILL_HELD,
  withLock,
} from '../storage/lock.ts'

/** What it takes to read and replace a session. */
export type SessionContext = LockContext & ProvingContext & Pick<Context, 'directories' | 'environment'>

/** How long a refresh is tried again while the service refuses in a way that passes. */
export const RETRY_LIMIT_MS = 30_000
/** For writing, and for the keychain. */
const STORE_LIMIT_MS = 15_000

/** Milliseconds that a command waits for the lock: its holder may need all of its own time. */
export function lockDeadline(settings: Pick<Settings, 'httpTimeoutMs'>): number {
  return tokenTimeoutMs(settings) + RETRY_LIMIT_MS + STORE_LIMIT_MS
}

/** What prevents a second use of a refresh token: a lock that is held, and the directory of the journal. */
export interface Guard extends HeldLock {
  /** Where the journal is: with the lock, so that every holder of the token finds it. */
  readonly journals: string
}

/**
 * Runs work while no other process can use a secret. The profile's lock guards a file in the profile's directory. A
 * keychain item has a second lock, because other state directories may use the same item.
 *
 * @param lock the profile's lock, which the caller holds.
 * @throws CliError as `withLock`; `keychain_lock_unavailable`, exit 4.
 */
export async function withGuard<T>(
  context: LockContext & Pick<Context, 'directories'>,
  storage: SecretStorage,
  lock: HeldLock,
  options: LockOptions<T>,
  work: (guard: Guard) => Promise<T | typeof STILL_HELD>,
): Promise<T | typeof STILL_HELD> {
  const journals = journalDirectory(context, storage)
  if (storage.location.store === 'file') return work({ ...lock, journals })
  await prepareGuard(context, storage.location)
  return withLock(join(journals, 'lock'), context, options, (itemLock) =>
    work({ ...lock, journals, isCurrent: () => lock.isCurrent() && itemLock.isCurrent() }),
  )
}

/** The directory of a secret's journal. */
export function journalDirectory(
  context: Pick<Context, 'directories'>,
  { location, directory }: SecretStorage,
): string {
  return location.store === 'file' ? directory : keychainGuardDirectory(context, location.name)
}
