import { basename, join } from 'node:path'
import { hasNoKeychain, proveKeychain } from '../credentials/keychain.ts'
import { CliError } from '../errors.ts'
import type { AccessToken } from '../oauth/token-endpoint.ts'
import type { LocalStoreKind } from '../settings/table.ts'
import { removeDurable } from '../storage/atomic-file.ts'
import { cannotWrite, catchError } from '../storage/file-errors.ts'
import { withLock } from '../storage/lock.ts'
import type { Io } from '../terminal/io.ts'
import { listNotes, noteName, type Reservation, reserveFile } from './note.ts'
import { lockOptions } from './renew.ts'
import { deleteItem, storeValue } from './secret.ts'
import { type ProfileFiles, profileFiles, readSessionIfAny, type Session } from './session-file.ts'

/** What a login brings. */
export interface SignIn extends Pick<Session, 'kind' | 'service' | 'client' | 'scope' | 'resource'> {
  /** The refresh token, or the API key. */
  readonly secret: string
  readonly access?: AccessToken
}

/** For what may go on where locks don't work. */
const WITHOUT_LOCKS = { withoutLocks: 'continue' } as const

/** A login that has proved its store, and reserved its space. */
export interface PreparedSignIn {
  /** To be called before the code is exchanged: a logout may have removed the reservation. @throws CliError exit 1. */
  reserve(): void
  /**
   * Makes the sign-in the session of the profile, in place of the one before, which stays whole until this one is stored.
   *
   * @throws CliError, exit 1 or 4.
   */
  complete(signIn: SignIn): Promise<Session>
  /** Gives the reservation back, if nothing was put into it. Never throws. */
  discard(): void
}

/**
 * Proves that a store of this machine works before a person is sent to the browser: the directory can be written to, the lock
 * can be taken, and the keychain takes an item, returns it and deletes it. Reserves the space of the session. The lock isn't
 * held while the browser is open.
 *
 * @param kind an API key doesn't rotate, so it needs no lock.
 * @throws CliError, exit 1 or 4, with the cause and the ways on.
 */
export async function prepareSignIn(
  io: Io,
  store: LocalStoreKind,
  kind: Session['kind'],
  files: ProfileFiles = profileFiles(io, io.settings.profile.value),
): Promise<PreparedSignIn> {
  const id = Buffer.from(io.random.bytes(6)).toString('hex')
  const locking = { ...lockOptions(io, files), ...(kind === 'api_key' && WITHOUT_LOCKS) }
  let reservation: Reservation | undefined
  const requireReservation = (): Reservation => {
    if (reservation !== undefined && files.disk.read(reservation.path) !== undefined) return reservation
    discard()
    reservation = reserveFile(files, noteName({ id, generation: 0 }))
    return reservation
  }
  const discard = () => {
    reservation?.discard()
    reservation = undefined
  }
  await files.prepare()
  await withLock(files.lock, io, locking, async () => undefined)
  if (store === 'keychain') await proveKeychain(io, files.profile)
  requireReservation()
  return {
    reserve: () => void requireReservation(),
    discard,
    async complete({ secret, ...signIn }) {
      const now = io.clock.now()
      const { profile } = files
      const session = { ...signIn, profile, id, generation: 1, store, signedInAt: now, issuedAt: now }
      await withLock(files.lock, io, locking, () =>
        io.interrupts.shield(async () => {
          const taken = requireReservation()
          // What is in it from now on may be all that is left of the new session, so `discard` leaves it alone.
          reservation = undefined
          const before = readSessionIfAny(files)
          await storeValue(io, files, taken, session, secret).finally(taken.close)
          // What stays belongs to sign-ins that nobody uses anymore; the next login or logout removes it.
          catchError(() => removeNotes(files, basename(taken.path)))
          if (before?.store !== 'keychain' || store === 'keychain') return
          const problem = await deleteItem(io, files, true)
          if (problem !== undefined)
            await io.warn(`the keychain still holds the secret of the session before: ${problem.message}`)
        }),
      )
      return session
    },
  }
}

/**
 * Removes every note but one, after it is certain that `session.json` is what it is: with the former session back after a power
 * loss and without its note, a token would be sent again.
 *
 * @throws CliError `cannot_write`, exit 1.
 */
function removeNotes(files: ProfileFiles, but?: string): void {
  const { disk, directory } = files
  try {
    disk.syncDirectory(directory)
  } catch (error) {
    throw cannotWrite(directory, error)
  }
  for (const name of listNotes(files)) if (name !== but) removeDurable(join(directory, name), disk)
}

export interface SignOutResult {
  readonly profile: string
  /** Whether there was a session, even one that can't be used. */
  readonly wasSignedIn: boolean
  /** Undefined if nobody was signed in, or the file was damaged. */
  readonly session: Session | undefined
  /** Why the keychain may still hold a secret. */
  readonly problem: CliError | undefined
}

/**
 * Removes the session of a profile and every copy of its secrets from this machine. The grant at the service stays.
 *
 * @throws CliError `session_busy`, exit 7; `cannot_write`, exit 1.
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
      await withLock(files.lock, io, { ...lockOptions(io, files), ...WITHOUT_LOCKS }, async () => {
        session = readSessionIfAny(files)
        wasSignedIn = removeDurable(files.session, files.disk)
        removeNotes(files)
      })
    }
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'cannot_write') throw error
    throw error.with({ message: `tokens may remain on this machine: ${error.message}` })
  }
  // What a lost session has left in the keychain goes too, so it is asked even if nobody is signed in.
  const isDamaged = wasSignedIn && session === undefined
  const problem = await deleteItem(io, files, isDamaged || session?.store === 'keychain')
  return { profile, wasSignedIn, session, problem: isDamaged && hasNoKeychain(problem) ? undefined : problem }
}
