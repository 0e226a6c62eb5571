import { CliError, usageError } from '../errors.ts'
import { tokenTimeoutMs } from '../oauth/token-endpoint.ts'
import { removeDurable } from '../storage/atomic-file.ts'
import { quietly } from '../storage/file-errors.ts'
import { withLock } from '../storage/lock.ts'
import type { Io } from '../terminal/io.ts'
import { interrupted, noteStays, sessionOver } from './messages.ts'
import { finish, isFinishable, nextName, putInPlace, type Reservation, readNext, reserve } from './note.ts'
import { requireSession } from './profiles.ts'
import { adoptable, RETRY_LIMIT_MS, type Renewal, type SendableToken, type SessionStore } from './renew.ts'
import { type HeldToken, readItemIfAny, requireToken, storeValue } from './secret.ts'
import {
  encode,
  type ProfileFiles,
  profileFiles,
  type ReadSession,
  readSession,
  readSessionIfAny,
  requireSameService,
  type Session,
} from './session-file.ts'

/** For another process's writing, and for its keychain, in milliseconds. */
const STORE_LIMIT_MS = 15_000

/** How a command waits for the lock of a session: its holder may need all of its own time. */
export function lockingOf(io: Io, { disk }: ProfileFiles) {
  return {
    deadlineMs: tokenTimeoutMs(io.settings) + RETRY_LIMIT_MS + STORE_LIMIT_MS,
    disk,
    onWait: () => io.note('Waiting for another mailclaim, which is using this session …'),
  }
}

/** `session.json` and the keychain of this machine, under their lock. */
export function openLocal(
  { io, options }: Renewal,
  files: ProfileFiles = profileFiles(io, io.settings.profile.value),
): SessionStore {
  return {
    async hold(work) {
      // No lock can be in a directory that isn't there.
      requireSession(io, files)
      const meanwhile = () => adoptable(readSessionIfAny(files), io, options)
      return withLock(files.lock, io, { ...lockingOf(io, files), meanwhile }, work)
    },
    async read() {
      // Step 2.
      const was = requireSession(io, files)
      const { session } = was
      if (finishNext(files, { id: session.id, generation: session.generation + 1 }))
        return { kind: 'changed' }
      if (session.kind === 'api_key')
        throw usageError(`profile ${files.profile} holds an API key, which is never renewed`)
      requireSameService(session, io)
      if (session.ended !== undefined) throw sessionOver(session)
      const adopted = adoptable(session, io, options)
      if (adopted !== undefined) return { kind: 'done', token: adopted }
      const answer = await readItemIfAny(io, files, session)
      const { item } = answer
      const isAhead = item !== undefined && (item.id !== session.id || item.generation > session.generation)
      if (isAhead && finishNext(files, item, 'its secret is in the keychain')) return { kind: 'changed' }
      // Step 3.
      const held = requireToken(files, session, answer)
      if (held.isNoted && !options.retryInterrupted) throw interrupted(files.profile)
      return sendable(io, files, was, held)
    },
  }
}

/** Steps 4 to 6, of one token. */
function sendable(
  io: Io,
  files: ProfileFiles,
  { session, text }: ReadSession,
  { secret: { value, generation }, isNoted, failure }: HeldToken,
): SendableToken {
  const { profile } = files
  const name = nextName({ id: session.id, generation })
  // Byte for byte: generations of different sign-ins say nothing about each other.
  const isUnchanged = () => {
    try {
      return files.disk.read(files.session) === text
    } catch {
      return false
    }
  }
  let reservation: Reservation | undefined
  return {
    kind: 'sendable',
    session,
    value,
    generation,
    settings: io.settings,
    isRetry: isNoted,
    beforeSend() {
      const made = reserve(files, name, isNoted ? 'retry' : 'new')
      if (made === undefined) return false
      if (isUnchanged()) {
        reservation = made
        return true
      }
      made.close()
      clear(files, made)
      return false
    },
    leave: async () => {},
    async clear(refusal) {
      if (reservation !== undefined) clear(files, reservation, refusal)
    },
    async store(next, refreshToken) {
      if (reservation === undefined) throw new Error('an answer to a token that was not sent')
      const now = sessionNow(files, session)
      if (now?.id !== session.id) {
        // Nothing of it is stored: not over another sign-in, and not after a logout.
        reservation.discard()
        return 'elsewhere'
      }
      if (now.generation > generation) return 'changed'
      if (refreshToken === undefined) {
        const { path, fill } = reservation
        // If it fails, the note stays, so the token isn't sent again; the service would say the same.
        quietly(() => {
          fill(encode(next))
          putInPlace(files, path, next)
        })
        return 'stored'
      }
      try {
        await storeValue(io, files, reservation, next, refreshToken, failure)
      } catch (error) {
        // Something has removed the note, and nobody has stored anything: once more, with another.
        const isLost = error instanceof CliError && error.code === 'refresh_token_lost'
        const again = isLost && isUnchanged() ? reserve(files, name) : undefined
        if (again === undefined) throw error
        reservation.close()
        reservation = again
        await storeValue(io, files, reservation, next, refreshToken, failure)
      }
      return 'stored'
    },
    interrupted: (why) => interrupted(profile, why),
    close: () => reservation?.close(),
  }
}

/** Removes the note of a token that is unused. Another's stays: a refusal says nothing about the earlier use. */
function clear({ disk, profile }: ProfileFiles, { path, isOwn }: Reservation, refusal?: CliError): void {
  if (!isOwn) return
  try {
    removeDurable(path, disk)
  } catch (failure) {
    throw noteStays(profile, failure, refusal)
  }
}

/** Puts a value that an earlier process, a renewal or a login, has left whole in place. @returns whether there is one. */
function finishNext(
  files: ProfileFiles,
  { id, generation }: Pick<Session, 'id' | 'generation'>,
  known?: 'its secret is in the keychain',
): boolean {
  const name = nextName({ id, generation: generation - 1 })
  const next = readNext(files, name)
  if (typeof next === 'string' || next.id !== id || next.generation !== generation) return false
  if (known === undefined && !isFinishable(next)) return false
  finish(files, name, next)
  return true
}

/** The session while its lock is held: a file that can't be read now is what it was, and anything else is another's. */
function sessionNow(files: ProfileFiles, was: Session): Session | undefined {
  try {
    return readSession(files)?.session
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return error.code === 'file_unusable' ? was : undefined
  }
}
