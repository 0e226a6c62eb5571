import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { callKeychain, proveKeychain } from '../credentials/keychain.ts'
import { CliError } from '../errors.ts'
import { cannotWrite, catchError, reason } from '../storage/file-errors.ts'
import type { Io } from '../terminal/io.ts'
import { interruptedError, noItemError, signInHint, tokenLostError, unsentError } from './messages.ts'
import { canReplaceSession, noteName, type Reservation, readNote, replaceSession } from './note.ts'
import { encode, type ProfileFiles, type Session } from './session-file.ts'

/** What the keychain holds for a profile: a refresh token or an API key. */
interface Item {
  readonly id: string
  readonly generation: number
  readonly value: string
}

const WAITING = 'Waiting for the keychain …'

/**
 * The account of the one item that a profile has: a login overwrites it, a logout deletes it by name, and two state
 * directories never meet.
 */
export function accountOf({ profile, directory }: ProfileFiles): string {
  let state = dirname(dirname(directory))
  // If it doesn't exist, nothing was ever stored.
  catchError(() => {
    state = realpathSync(state)
  })
  return `${profile} ${createHash('sha256').update(state).digest('hex').slice(0, 12)}`
}

/** What the keychain gives. */
interface ItemReading {
  /** Undefined if it is locked, or has none. */
  readonly item?: Item | undefined
  /** Why it gives nothing. That isn't always of interest: the secret may be in the file. */
  readonly failure?: CliError
}

/** Reads the item of a session that has one. */
export async function readItem(io: Io, files: ProfileFiles, { store }: Session): Promise<ItemReading> {
  if (store !== 'keychain') return {}
  const request = { operation: 'get', account: accountOf(files), signal: io.interrupts.signal } as const
  try {
    const text = await io.waiting(WAITING, callKeychain(io, files.profile, request))
    if (typeof text !== 'string') return {}
    // What isn't ours has no id, and is never sent.
    const [, id = '', generation, value = ''] = /^([0-9a-f]+)\.(\d{1,15})@\d{1,15}:(.+)$/s.exec(text) ?? []
    return { item: { id, generation: Number(generation), value } }
  } catch (error) {
    if (error instanceof CliError && error.code === 'store_unavailable') return { failure: error }
    throw error
  }
}

/**
 * The newest refresh token of a session, or its API key.
 *
 * @throws CliError `store_unavailable` or `refresh_token_lost`, exit 4: nothing on this machine has it, or a locked keychain may
 *   have a newer one.
 */
export function requireToken(files: ProfileFiles, session: Session, { item, failure }: ItemReading) {
  const { profile } = files
  const token = newestToken(session, item)
  const next = token && readNote(files, noteName(token))
  const isNoted = next !== 'absent' && !canReplaceSession(next)
  if (session.store === 'keychain' && item === undefined && isNoted) throw failure ?? noItemError(profile)
  let interruption: CliError | undefined
  if (isNoted) interruption = next === 'unsent' ? unsentError(profile) : interruptedError(profile)
  if (token !== undefined) return { ...token, interruption }
  // The service would take what is there for a stolen token; or a login is between the keychain and the file.
  const message = `the secret that is stored for profile ${profile} is older than the session, or of another sign-in`
  const hint = `if no login is under way, ${signInHint(profile)}`
  throw new CliError('refresh_token_lost', message, { hint })
}

/**
 * An item of another sign-in, or of a lower generation than the session, is never sent: the keychain was restored, or a write that
 * hung was done late.
 */
function newestToken(session: Session, item: Item | undefined): Item | undefined {
  const { id, generation, refreshToken } = session
  const inFile = refreshToken === undefined ? undefined : { id, generation, value: refreshToken }
  if (item === undefined || item.id !== id || item.generation < generation) return inFile
  return inFile !== undefined && item.generation === generation ? inFile : item
}

/** Writes the item, and reads it back, since some keychains report success and store nothing. @throws CliError, exit 4. */
async function writeItem(io: Io, files: ProfileFiles, session: Session, value: string): Promise<void> {
  const { profile } = files
  const account = accountOf(files)
  const secret = `${session.id}.${session.generation}@${session.issuedAt}:${value}`
  await callKeychain(io, profile, { operation: 'set', account, secret })
  const stored = await callKeychain(io, profile, { operation: 'get', account })
  if (stored !== secret) throw noItemError(profile)
}

/**
 * Deletes the keychain item of a profile.
 *
 * @param isExpected whether there should be one: a locked keychain says that there is none.
 * @returns why it may still be there.
 */
export async function deleteItem(io: Io, files: ProfileFiles, isExpected: boolean) {
  const request = { operation: 'delete', account: accountOf(files), signal: io.interrupts.signal } as const
  try {
    const isDeleted = await io.waiting(WAITING, callKeychain(io, files.profile, request))
    if (isDeleted !== true && isExpected) await proveKeychain(io, files.profile)
    return undefined
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return isExpected ? error : undefined
  }
}

/**
 * Stores the next value of a session with its secret (step 6). With the keychain, the value without the secret is on the disk
 * before the keychain is written, so that whoever finds the one finds the other; if the keychain refuses or hangs, the secret goes
 * into the same file.
 *
 * @param refusal why the keychain isn't tried: a moment ago it didn't even give the token before.
 * @throws CliError `refresh_token_lost`, exit 4; `cannot_write`, exit 1: the next command finishes it.
 */
export async function storeValue(
  io: Io,
  files: ProfileFiles,
  reservation: Reservation,
  session: Session,
  secret: string,
  refusal?: CliError,
): Promise<void> {
  const { profile } = files
  const { path } = reservation
  if (session.store === 'keychain') {
    const failure = catchError(() => reservation.fill(encode(session)))
    // A login leaves the item of the session before it alone, unless it can replace the session too.
    if (failure !== undefined && session.generation === 1) throw cannotWrite(path, failure)
    try {
      if (refusal !== undefined) throw refusal
      await io.waiting(WAITING, writeItem(io, files, session, secret))
      if (failure === undefined) return replaceSession(files, path, session)
      // Only the keychain has it, one generation ahead of the file: the next renewal finds it there.
      return await io.warn(`the session of profile ${profile} is in the keychain only: ${reason(failure)}`)
    } catch (error) {
      if (!(error instanceof CliError) || error.code !== 'store_unavailable') throw error
      await io.warn(`the secret of profile ${profile} is in a file that only you can read: ${error.message}`)
    }
  }
  const whole = { ...session, refreshToken: secret }
  const failure = catchError(() => reservation.fill(encode(whole)))
  if (failure !== undefined) throw tokenLostError(profile, reason(failure), failure)
  replaceSession(files, path, whole)
}
