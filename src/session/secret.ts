import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { callKeychain, testKeychain } from '../credentials/keychain.ts'
import { CliError } from '../errors.ts'
import { catchError, reasonOf, writeError } from '../storage/file-errors.ts'
import type { Io } from '../terminal/io.ts'
import { refreshInterruptedError, signInHint, tokenLostError, unsentTokenError } from './messages.ts'
import { isCompleteSession, noteFileName, type ReservedFile, readNoteFile, replaceSession } from './note.ts'
import { encodeSession, type ProfileFiles, type Session } from './session-file.ts'

/** A keychain item: the refresh token or the API key of a profile, with the sign-in and generation that it belongs to. */
interface KeychainItem {
  readonly id: string
  readonly generation: number
  readonly value: string
}

const WAITING = 'Waiting for the keychain …'

/**
 * Returns the account name of a profile's keychain item: the profile, and a hash of the state directory, so that two state
 * directories have separate items. The name doesn't change, so a login overwrites the item and a logout can delete it without
 * reading a session.
 */
export function keychainAccount({ profile, directory }: ProfileFiles): string {
  let state = dirname(dirname(directory))
  // Ignore the error if the state directory doesn't exist: no item was ever stored for it, so its unresolved path can be hashed as
  // well.
  catchError(() => {
    state = realpathSync(state)
  })
  return `${profile} ${createHash('sha256').update(state).digest('hex').slice(0, 12)}`
}

/** The keychain's reply to a request for a profile's item. */
interface ItemReply {
  /**
   * The item; undefined if the store isn't the keychain, or if the keychain failed, has no such item, or is locked and doesn't say
   * so.
   */
  readonly item?: KeychainItem | undefined
  /** Error of the keychain, if it failed; harmless if the secret is in `session.json`. */
  readonly failure?: CliError
}

/** Reads the keychain item of a session whose store is the keychain. */
export async function readKeychainItem(io: Io, files: ProfileFiles, { store }: Session): Promise<ItemReply> {
  if (store !== 'keychain') return {}
  const request = { operation: 'get', account: keychainAccount(files), signal: io.interrupts.signal } as const
  try {
    const text = await io.waiting(WAITING, callKeychain(io, files.profile, request))
    if (typeof text !== 'string') return {}
    // An item in another format gets an empty id, which matches no session, so its value is never sent.
    const [, id = '', generation, value = ''] = /^([0-9a-f]+)\.(\d{1,15})@\d{1,15}:(.+)$/s.exec(text) ?? []
    return { item: { id, generation: Number(generation), value } }
  } catch (error) {
    if (error instanceof CliError && error.code === 'store_unavailable') return { failure: error }
    throw error
  }
}

/**
 * Returns the newest refresh token of a session, or its API key. `interruption` is the reason why a plain renewal must not send the
 * token: its last use has no known outcome, or was cut off before sending.
 *
 * @throws CliError `store_unavailable` or `refresh_token_lost`, exit 4: no store of this machine holds a current token, or a locked
 *   keychain may hold a newer one
 */
export function findNewestToken(files: ProfileFiles, session: Session, { item, failure }: ItemReply) {
  const { profile } = files
  const token = newerToken(session, item)
  const next = token && readNoteFile(files, noteFileName(token))
  const isNoted = next !== 'absent' && !isCompleteSession(next)
  if (session.store === 'keychain' && item === undefined && isNoted) throw failure ?? noItemError(profile)
  let interruption: CliError | undefined
  if (isNoted) interruption = next === 'unsent' ? unsentTokenError(profile) : refreshInterruptedError(profile)
  if (token !== undefined) return { ...token, interruption }
  // Don't send an older token: the service would treat it as stolen and revoke the grant. A login that has written the keychain but
  // not yet `session.json` looks the same, so the hint mentions it.
  const message = `the secret that is stored for profile ${profile} is older than the session, or of another sign-in`
  const hint = `if no login is under way, ${signInHint(profile)}`
  throw new CliError('refresh_token_lost', message, { hint })
}

/**
 * Returns the newer of the keychain's and the file's token. Rejects an item of another sign-in or of a lower generation, as a
 * restored keychain has, or one whose write hung and finished late.
 */
function newerToken(session: Session, item: KeychainItem | undefined): KeychainItem | undefined {
  const { id, generation, refreshToken } = session
  const inFile = refreshToken === undefined ? undefined : { id, generation, value: refreshToken }
  if (item === undefined || item.id !== id || item.generation < generation) return inFile
  return inFile !== undefined && item.generation === generation ? inFile : item
}

/**
 * Writes the keychain item and reads it back, since some keychains report success and store nothing.
 *
 * @throws CliError `store_unavailable`, exit 4
 */
async function writeItem(io: Io, files: ProfileFiles, session: Session, value: string): Promise<void> {
  const { profile } = files
  const account = keychainAccount(files)
  const secret = `${session.id}.${session.generation}@${session.issuedAt}:${value}`
  await callKeychain(io, profile, { operation: 'set', account, secret })
  const stored = await callKeychain(io, profile, { operation: 'get', account })
  if (stored !== secret) throw noItemError(profile)
}

/**
 * Deletes the keychain item of a profile.
 *
 * @param isExpected whether an item should exist: then, on the reply "no such item", tests the keychain, because a locked
 *   keychain gives the same reply
 * @returns the error if an expected item may still exist; undefined if it is gone, or if none was expected, even if the keychain
 *   failed
 */
export async function deleteKeychainItem(io: Io, files: ProfileFiles, isExpected: boolean) {
  const { signal } = io.interrupts
  const request = { operation: 'delete', account: keychainAccount(files), signal } as const
  try {
    const isDeleted = await io.waiting(WAITING, callKeychain(io, files.profile, request))
    if (isDeleted !== true && isExpected) await testKeychain(io, files.profile)
    return undefined
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return isExpected ? error : undefined
  }
}

/**
 * Stores the next session with its secret (step 6). With the keychain, writes the session without the secret into the note before
 * the keychain item, so that a process that finds the item also finds its session. If the keychain refuses or hangs, the secret
 * goes into the note as well.
 *
 * @param refusal error of a keychain read moments ago, which makes a write pointless
 * @throws CliError `refresh_token_lost`, exit 4; `cannot_write`, exit 1, if the rename failed: the next command repeats it
 */
export async function storeSession(
  io: Io,
  files: ProfileFiles,
  reservation: ReservedFile,
  session: Session,
  secret: string,
  refusal?: CliError,
): Promise<void> {
  const { profile } = files
  const { path } = reservation
  if (session.store === 'keychain') {
    const failure = catchError(() => reservation.fill(encodeSession(session)))
    // Fail before writing the keychain: a new sign-in must not overwrite the former session's item unless it can also replace the
    // former session.
    if (failure !== undefined && session.generation === 1) throw writeError(path, failure)
    try {
      if (refusal !== undefined) throw refusal
      await io.waiting(WAITING, writeItem(io, files, session, secret))
      if (failure === undefined) return replaceSession(files, path, session)
      // Only warn: the keychain holds the token, one generation ahead of `session.json`, and the next renewal takes the token from
      // the keychain.
      return await io.warn(`the session of profile ${profile} is in the keychain only: ${reasonOf(failure)}`)
    } catch (error) {
      if (!(error instanceof CliError) || error.code !== 'store_unavailable') throw error
      await io.warn(`the secret of profile ${profile} is in a file that only you can read: ${error.message}`)
    }
  }
  const whole = { ...session, refreshToken: secret }
  const failure = catchError(() => reservation.fill(encodeSession(whole)))
  if (failure !== undefined) throw tokenLostError(profile, reasonOf(failure), failure)
  replaceSession(files, path, whole)
}

/** Returns the error for a keychain that reports no item: the item is missing, or the keychain is locked and doesn't say so. */
function noItemError(profile: string): CliError {
  const message = `the keychain is locked, or the secret of profile ${profile} is missing from it`
  const hint = `unlock it and try again; if it is unlocked, ${signInHint(profile)}`
  return new CliError('store_unavailable', message, { hint })
}
