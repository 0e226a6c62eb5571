import { basename, join } from 'node:path'
import { isNoKeychainError, testKeychain } from '../credentials/keychain.ts'
import { CliError } from '../errors.ts'
import type { AccessToken } from '../oauth/token-endpoint.ts'
import type { LocalStoreKind } from '../settings/table.ts'
import { removeFileDurably } from '../storage/atomic-file.ts'
import { cannotWriteError, catchError } from '../storage/file-errors.ts'
import { withLock } from '../storage/lock.ts'
import type { Io } from '../terminal/io.ts'
import { type AllocatedFile, listNoteFileNames, noteFileName, preallocateFile } from './note.ts'
import { getSessionLockOptions } from './renew.ts'
import { deleteKeychainItem, storeSession } from './secret.ts'
import { type ProfileFiles, profileFiles, type Session, tryReadSession } from './session-file.ts'

/** Result of a login: the fields of the session to store, and the tokens or API key. */
export interface LoginResult extends Pick<Session, 'kind' | 'service' | 'client' | 'scope' | 'resource'> {
  /** Refresh token, or the API key for `kind: 'api_key'`. */
  readonly secret: string
  readonly access?: AccessToken
}

/**
 * Lock option for work that sends no refresh token, such as a sign-out: if the file can't be locked, the work runs unlocked.
 */
const WITHOUT_LOCKS = { withoutLocks: 'continue' } as const

/** Steps of a login whose credential store has been tested: functions that reserve disk space, complete the login or abandon it. */
export type SignInSteps = Awaited<ReturnType<typeof prepareLocalSignIn>>

/**
 * Tests whether a store on this machine can take the session of a login, and allocates its disk space in a note file (`next.…`).
 * Doesn't hold the profile's lock while the user signs in.
 *
 * @param kind `api_key` also works without file locks, because a key is never renewed
 * @throws CliError `cannot_write`, exit 1, or `store_unavailable`, exit 4, if the test fails; `session_busy`, exit 7, if another
 *   process holds the lock for too long
 */
export async function prepareLocalSignIn(
  io: Io,
  store: LocalStoreKind,
  kind: Session['kind'],
  files: ProfileFiles = profileFiles(io, io.settings.profile.value),
) {
  const id = Buffer.from(io.random.bytes(6)).toString('hex')
  const locking = { ...getSessionLockOptions(io, files), ...(kind === 'api_key' && WITHOUT_LOCKS) }
  let reservation: AllocatedFile | undefined
  const requireReservation = (): AllocatedFile => {
    if (reservation !== undefined && files.disk.read(reservation.path) !== undefined) return reservation
    discard()
    reservation = preallocateFile(files, noteFileName({ id, generation: 0 }))
    return reservation
  }
  const discard = () => {
    reservation?.discard()
    reservation = undefined
  }
  await files.prepare()
  await withLock(files.lock, io, locking, async () => undefined)
  if (store === 'keychain') await testKeychain(io, files.profile)
  requireReservation()
  return {
    /**
     * Allocates the disk space again if the note file (`next.…`) was removed, as by a logout. Call this before exchanging the
     * authorization code: otherwise a full disk could lose the new tokens.
     *
     * @throws CliError `cannot_write`, exit 1, such as on a full disk
     */
    reserve: () => void requireReservation(),
    /** Removes the note file (`next.…`), unless `complete` has begun to use it. Never throws. */
    discard,
    /**
     * Stores the login as the profile's session, in place of the former one.
     *
     * @throws CliError as `withLock` and `storeSession`
     */
    async complete({ secret, ...signIn }: LoginResult): Promise<Session> {
      const now = io.clock.now()
      const { profile } = files
      const session = { ...signIn, profile, id, generation: 1, store, signedInAt: now, issuedAt: now }
      await withLock(files.lock, io, locking, () =>
        io.interrupts.shield(async () => {
          const taken = requireReservation()
          // From here on, the note file (`next.…`) may hold the only copy of the new session, so `discard` must not remove the
          // file.
          reservation = undefined
          const before = tryReadSession(files)
          await storeSession(io, files, taken, session, secret).finally(taken.close)
          // Ignore a failure to remove the note files (`next.…`) of other sign-ins: the next login or logout tries again.
          catchError(() => removeNotes(files, basename(taken.path)))
          if (before?.store !== 'keychain' || store === 'keychain') return
          const problem = await deleteKeychainItem(io, files, true)
          if (problem !== undefined)
            await io.warn(`the keychain still holds the secret of the session before: ${problem.message}`)
        }),
      )
      return session
    },
  }
}

/**
 * Removes a profile's note files (`next.…`). Flushes the directory first: otherwise a power loss could bring back the former
 * session without its note file, and its used token would be sent again.
 *
 * @param skip name of a note file to keep
 * @throws CliError `cannot_write`, exit 1, if the directory can't be flushed or a file can't be removed
 */
function removeNotes(files: ProfileFiles, skip?: string): void {
  const { disk, directory } = files
  try {
    disk.syncDirectory(directory)
  } catch (error) {
    throw cannotWriteError(directory, error)
  }
  for (const name of listNoteFileNames(files))
    if (name !== skip) removeFileDurably(join(directory, name), disk)
}

/** Result of signing out one profile. */
export interface SignOutResult {
  readonly profile: string
  /** Whether there was a session before the sign-out, even an unusable one; in etcd, a session marked as ended doesn't count. */
  readonly wasSignedIn: boolean
  /** The session before the sign-out; undefined if there was none, or its file couldn't be used. */
  readonly session: Session | undefined
  /** Why the keychain may still hold the secret; undefined if the secret was deleted, or was probably never in it. */
  readonly problem: CliError | undefined
}

/**
 * Signs a profile out on this machine: removes `session.json`, the note files (`next.…`, which may hold new tokens) and the
 * keychain item. Doesn't revoke the grant at the service.
 *
 * @throws CliError `session_busy`, exit 7, if another process holds the lock for too long; `cannot_write`, exit 1, if the
 *   directory can't be read or a file can't be removed
 */
export async function signOutLocally(
  io: Io,
  profile: string,
  files: ProfileFiles = profileFiles(io, profile),
): Promise<SignOutResult> {
  let session: Session | undefined
  let wasSignedIn = false
  try {
    if (files.disk.names(files.directory).length > 0) {
      await files.prepare()
      await withLock(files.lock, io, { ...getSessionLockOptions(io, files), ...WITHOUT_LOCKS }, async () => {
        session = tryReadSession(files)
        wasSignedIn = removeFileDurably(files.session, files.disk)
        removeNotes(files)
      })
    }
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'cannot_write') throw error
    throw error.with({ message: `tokens may remain on this machine: ${error.message}` })
  }
  const isDamaged = wasSignedIn && session === undefined
  // Delete the keychain item even without a session: if somebody removed the profile's directory, the item is left.
  const failure = await deleteKeychainItem(io, files, isDamaged || session?.store === 'keychain')
  const problem = isDamaged && isNoKeychainError(failure) ? undefined : failure
  return { profile, wasSignedIn, session, problem }
}
