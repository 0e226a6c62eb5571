import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { callKeychain } from '../credentials/keychain.ts'
import { CliError } from '../errors.ts'
import { cannotWrite } from '../storage/file-errors.ts'
import type { Io } from '../terminal/io.ts'
import { lockedOrMissing, tokenLost, tokenOutdated } from './messages.ts'
import { fill, type ProfileFiles, putInPlace, type Reservation, type Session, sweep } from './session-file.ts'

/** A refresh token or an API key. */
export interface Secret {
  readonly generation: number
  readonly value: string
}

/** What the keychain holds for a profile. */
export interface Item extends Secret {
  readonly id: string
}

/** How long what waits for the keychain is silent about it is decided by `io.waiting`. */
const WAITING = 'Waiting for the keychain …'

/**
 * The account of the one item that a profile has: a login overwrites it, a logout deletes it by name, and two state
 * directories never meet.
 */
export function accountOf({ profile, directory }: ProfileFiles): string {
  let state = dirname(dirname(directory))
  try {
    state = realpathSync(state)
  } catch {
    // It doesn't exist: then nothing was ever stored.
  }
  return `${profile} ${createHash('sha256').update(state).digest('hex').slice(0, 12)}`
}

/**
 * Reads the item of a profile.
 *
 * @returns undefined if the keychain gives none: it is locked, or there is none.
 * @throws CliError `store_unavailable`, exit 4.
 */
export async function readItem(io: Io, files: ProfileFiles, signal?: AbortSignal): Promise<Item | undefined> {
  const request = { operation: 'get', account: accountOf(files), ...(signal && { signal }) } as const
  const text = await io.waiting(WAITING, callKeychain(io, files.profile, request))
  if (typeof text !== 'string') return undefined
  const {
    id = '',
    generation,
    value = '',
  } = /^(?<id>[0-9a-f]+)\.(?<generation>\d{1,15})@\d{1,15}:(?<value>.+)$/s.exec(text)?.groups ?? {}
  // What isn't ours has no id, and is never sent.
  return { id, generation: Number(generation), value }
}

/** As `readItem`, for a session that may be kept in a file: why the keychain gives nothing isn't always of interest. */
export async function readItemIfAny(
  io: Io,
  files: ProfileFiles,
  { store }: Session,
  signal?: AbortSignal,
): Promise<{ readonly item?: Item | undefined; readonly failure?: CliError }> {
  if (store !== 'keychain') return {}
  try {
    return { item: await readItem(io, files, signal) }
  } catch (error) {
    if (error instanceof CliError) return { failure: error }
    throw error
  }
}

/**
 * The newest refresh token of a session; undefined if nothing on this machine has it. An item of another sign-in, or of a lower
 * generation than the session, is never sent: the keychain was restored, or a write that hung was done late.
 */
export function newestToken(session: Session, item: Item | undefined): Secret | undefined {
  const { id, generation, refreshToken } = session
  const inFile = refreshToken === undefined ? undefined : { generation, value: refreshToken }
  if (item === undefined || item.id !== id || item.generation < generation) return inFile
  return inFile !== undefined && item.generation === generation ? inFile : item
}

/**
 * Reads the secret of a session wherever it is: the newest refresh token, or the API key.
 *
 * @throws CliError `store_unavailable` or `refresh_token_lost`, exit 4.
 */
export async function readSecret(io: Io, files: ProfileFiles, session: Session): Promise<Secret> {
  const inKeychain = session.store === 'keychain' && session.refreshToken === undefined
  const item = inKeychain ? await readItem(io, files) : undefined
  const found = newestToken(session, item)
  if (found !== undefined) return found
  throw inKeychain && item === undefined ? lockedOrMissing(files.profile) : tokenOutdated(files.profile)
}

/** Writes the item, and reads it back, since some keychains report success and store nothing. @throws CliError, exit 4. */
async function writeItem(io: Io, files: ProfileFiles, session: Session, value: string): Promise<void> {
  const { profile } = files
  const account = accountOf(files)
  const secret = `${session.id}.${session.generation}@${session.issuedAt}:${value}`
  await callKeychain(io, profile, { operation: 'set', account, secret })
  const stored = await callKeychain(io, profile, { operation: 'get', account })
  if (stored !== secret) throw lockedOrMissing(profile)
}

/** Deletes the item; false if there was none, or the keychain is locked and doesn't say so. @throws CliError, exit 4. */
export async function deleteItem(io: Io, files: ProfileFiles, signal?: AbortSignal): Promise<boolean> {
  const request = { operation: 'delete', account: accountOf(files), ...(signal && { signal }) } as const
  return (await io.waiting(WAITING, callKeychain(io, files.profile, request))) === true
}

/**
 * Stores the next value of a session with its secret (step 6). With the keychain, the value without the secret is on the disk
 * before the keychain is written, so that whoever finds the one finds the other; if the keychain refuses or hangs, the secret goes
 * into the same file.
 *
 * @throws CliError `refresh_token_lost`, exit 4; `cannot_write`, exit 1: the next command finishes it.
 */
export async function storeValue(
  io: Io,
  files: ProfileFiles,
  reservation: Reservation,
  session: Session,
  secret: string,
): Promise<void> {
  const { profile } = files
  if (session.store === 'keychain') {
    const failure = failureOf(() => fill(files, reservation, session))
    // A login leaves the item of the session before it alone, unless it can replace the session too.
    if (failure !== undefined && session.generation === 1) throw cannotWrite(reservation.path, failure)
    try {
      await io.waiting(WAITING, writeItem(io, files, session, secret))
      // Only the keychain has it, one generation ahead of the file: the next renewal finds it there.
      if (failure !== undefined)
        return await io.warn(`the session of profile ${profile} is in the keychain only: ${failure.message}`)
      return stored(files, reservation, session)
    } catch (error) {
      if (!(error instanceof CliError) || error.code !== 'store_unavailable') throw error
      await io.warn(`the secret of profile ${profile} is in a file that only you can read: ${error.message}`)
    }
  }
  const whole = { ...session, refreshToken: secret }
  const failure = failureOf(() => fill(files, reservation, whole))
  if (failure !== undefined) throw tokenLost(profile, failure.message, failure)
  stored(files, reservation, whole)
}

/** Puts what is in its space in place. */
export function stored(files: ProfileFiles, reservation: Reservation, session: Session): void {
  if (putInPlace(files, reservation, session)) sweep(files, session)
}

function failureOf(work: () => void): Error | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return error as Error
  }
}
