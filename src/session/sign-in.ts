import { basename, join } from 'node:path'
import { isNoKeychainError, testKeychain } from '../credentials/keychain.ts'
import { CliError } from '../errors.ts'
import type { AccessToken } from '../oauth/token-endpoint.ts'
import type { LocalStoreKind } from '../settings/table.ts'
import { removeFileDurably } from '../storage/atomic-file.ts'
import { catchError, writeError } from '../storage/file-errors.ts'
import { withLock } from '../storage/lock.ts'
import type { Io } from '../terminal/io.ts'
import { listNoteFiles, noteFileName, type ReservedFile, reserveFile } from './note.ts'
import { sessionLockOptions } from './renew.ts'
import { deleteKeychainItem, storeSession } from './secret.ts'
import { findSession, type ProfileFiles, profileFiles, type Session } from './session-file.ts'

/** Result of a successful login, to be stored as a session. */
export interface LoginResult extends Pick<Session, 'kind' | 'service' | 'client' | 'scope' | 'resource'> {
  /** The refresh token, or the API key for `kind: 'api_key'`. */
  readonly secret: string
  readonly access?: AccessToken
}

/**
 * Lock option for work that can't lose a rotated token, such as a sign-out: on a system without file locks, the work runs unlocked.
 */
const WITHOUT_LOCKS = { withoutLocks: 'continue' } as const

/** A login whose store was tested and whose disk space is reserved. */
export type PreparedSignIn = Awaited<ReturnType<typeof prepareSignIn>>

/**
 * Tests a store of this machine before the user is sent to the browser: the directory is writable, the lock works, and the keychain
 * stores, returns and deletes a test item. Reserves the disk space of the session. The lock isn't held while the browser is open.
 *
 * @param kind `api_key` needs no lock, because a key doesn't rotate
 * @throws CliError exit 1 or 4
 */
export async function prepareSignIn(
  io: Io,
  store: LocalStoreKind,
  kind: Session['kind'],
  files: ProfileFiles = profileFiles(io, io.settings.profile.value),
) {
  const id = Buffer.from(io.random.bytes(6)).toString('hex')
  const locking = { ...sessionLockOptions(io, files), ...(kind === 'api_key' && WITHOUT_LOCKS) }
  let reservation: ReservedFile | undefined
  const requireReservation = (): ReservedFile => {
    if (reservation !== undefined && files.disk.read(reservation.path) !== undefined) return reservation
    discard()
    reservation = reserveFile(files, noteFileName({ id, generation: 0 }))
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
     * Reserves the disk space again if a logout removed the reservation meanwhile. Call before exchanging the code, since the
     * tokens of the exchange must be stored.
     *
     * @throws CliError `cannot_write`, exit 1
     */
    reserve: () => void requireReservation(),
    /** Removes the reservation unless a session was written into it. Never throws. */
    discard,
    /**
     * Stores the sign-in as the session of the profile. The former session stays complete until the new session is stored.
     *
     * @throws CliError exit 1 or 4
     */
    async complete({ secret, ...signIn }: LoginResult): Promise<Session> {
      const now = io.clock.now()
      const { profile } = files
      const session = { ...signIn, profile, id, generation: 1, store, signedInAt: now, issuedAt: now }
      await withLock(files.lock, io, locking, () =>
        io.interrupts.shield(async () => {
          const taken = requireReservation()
          // From here on the reservation may hold the only copy of the new session, so `discard` must not remove the file.
          reservation = undefined
          const before = findSession(files)
          await storeSession(io, files, taken, session, secret).finally(taken.close)
          // Ignore a failure to remove the notes of former sign-ins: they are harmless, and the next login or logout removes them.
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
 * Removes every note except one. Flushes the directory first: otherwise a power loss could bring back the former session without
 * its note, and its used token would be sent again.
 *
 * @param but name of the note to keep
 * @throws CliError `cannot_write`, exit 1
 */
function removeNotes(files: ProfileFiles, but?: string): void {
  const { disk, directory } = files
  try {
    disk.syncDirectory(directory)
  } catch (error) {
    throw writeError(directory, error)
  }
  for (const name of listNoteFiles(files)) if (name !== but) removeFileDurably(join(directory, name), disk)
}

export interface SignOutResult {
  readonly profile: string
  /** Whether there was a session, even a damaged one. */
  readonly wasSignedIn: boolean
  /** The removed session; undefined if there was none or its file was damaged. */
  readonly session: Session | undefined
  /** Reason why the keychain may still hold a secret; undefined if it holds none. */
  readonly problem: CliError | undefined
}

/**
 * Removes the session of a profile and every copy of its secrets from this machine. Doesn't revoke the grant at the service.
 *
 * @throws CliError `session_busy`, exit 7; `cannot_write`, exit 1
 */
export async function forgetSession(
  io: Io,
  profile: string,
  files: ProfileFiles = profileFiles(io, profile),
): Promise<SignOutResult> {
  let session: Session | undefined
  let wasSignedIn = false
  try {
    if (files.disk.names(files.directory).length > 0) {
      await files.prepare()
      await withLock(files.lock, io, { ...sessionLockOptions(io, files), ...WITHOUT_LOCKS }, async () => {
        session = findSession(files)
        wasSignedIn = removeFileDurably(files.session, files.disk)
        removeNotes(files)
      })
    }
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'cannot_write') throw error
    throw error.with({ message: `tokens may remain on this machine: ${error.message}` })
  }
  const isDamaged = wasSignedIn && session === undefined
  // Delete the keychain item even if there is no session: a session whose directory was removed may have left an item.
  const failure = await deleteKeychainItem(io, files, isDamaged || session?.store === 'keychain')
  const problem = isDamaged && isNoKeychainError(failure) ? undefined : failure
  return { profile, wasSignedIn, session, problem }
}
