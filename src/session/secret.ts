import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { callKeychain, testKeychain } from '../credentials/keychain.ts'
import { CliError } from '../errors.ts'
import { cannotWriteError, catchError, reasonOf } from '../storage/file-errors.ts'
import type { Io } from '../terminal/io.ts'
import { refreshInterruptedError, signInHint, tokenLostError, unsentRefreshTokenError } from './messages.ts'
import { type AllocatedFile, isUsableSuccessor, noteFileName, promoteNoteFile, readNoteFile } from './note.ts'
import { encodeSession, type ProfileFiles, type Session } from './session-file.ts'

/** Content of a keychain item: the refresh token or API key of a profile, with the sign-in and generation it belongs to. */
interface KeychainItem {
  readonly id: string
  readonly generation: number
  readonly value: string
}

const WAITING = 'Waiting for the keychain …'

/**
 * Returns the account name of a profile's keychain item: the profile, and a hash of the state directory, so that two state
 * directories don't share an item. Doesn't depend on the session, so a logout finds the item without one.
 */
export function keychainAccount({ profile, directory }: ProfileFiles): string {
  let state = dirname(dirname(directory))
  // Without a state directory, hash the path as given. If the directory was removed after a login, this is the account name of
  // the login's item only if the path has no symbolic links.
  catchError(() => {
    state = realpathSync(state)
  })
  return `${profile} ${createHash('sha256').update(state).digest('hex').slice(0, 12)}`
}

interface ItemReply {
  /**
   * The keychain item; undefined if the session's store isn't the keychain, the keychain failed, or it returned no item, as a locked
   * keychain may do.
   */
  readonly item?: KeychainItem | undefined
  /** Error of the keychain call; undefined if the call succeeded or wasn't made. */
  readonly failure?: CliError
}

/** Reads the keychain item of a session, if its store is the keychain. @throws the reason of an abort, as by Ctrl-C */
export async function readKeychainItem(io: Io, files: ProfileFiles, { store }: Session): Promise<ItemReply> {
  if (store !== 'keychain') return {}
  const request = { operation: 'get', account: keychainAccount(files), signal: io.interrupts.signal } as const
  try {
    const text = await io.waiting(WAITING, callKeychain(io, files.profile, request))
    if (typeof text !== 'string') return {}
    // Give an item in another format an empty id: it matches no session, so the value is never sent.
    const [, id = '', generation, value = ''] = /^([0-9a-f]+)\.(\d{1,15})@\d{1,15}:(.+)$/s.exec(text) ?? []
    return { item: { id, generation: Number(generation), value } }
  } catch (error) {
    if (error instanceof CliError && error.code === 'store_unavailable') return { failure: error }
    throw error
  }
}

/**
 * Chooses the newest refresh token of a session, or its API key.
 *
 * @returns `id`, `generation`, `value`: the secret as a keychain item; `interruption`: why only `--retry-interrupted` may send it,
 *   undefined if any renewal may
 * @throws CliError `store_unavailable`, exit 4, if the keychain failed or returned no item, but may hold the newest token;
 *   `refresh_token_lost`, exit 4, if no stored token is current
 */
export function requireNewestSecret(files: ProfileFiles, session: Session, { item, failure }: ItemReply) {
  const { profile } = files
  const token = newerToken(session, item)
  const next = token && readNoteFile(files, noteFileName(token))
  const hasNote = next !== 'absent' && !isUsableSuccessor(next)
  if (session.store === 'keychain' && item === undefined && hasNote) throw failure ?? noItemError(profile)
  let interruption: CliError | undefined
  if (hasNote)
    interruption = next === 'unsent' ? unsentRefreshTokenError(profile) : refreshInterruptedError(profile)
  if (token !== undefined) return { ...token, interruption }
  // Don't send an older token: the service would treat the reuse as theft and revoke the grant. A login that has written the
  // keychain, but not yet `session.json`, looks the same, so the hint mentions a login.
  const message = `the secret that is stored for profile ${profile} is older than the session, or of another sign-in`
  const hint = `if no login is under way, ${signInHint(profile)}`
  throw new CliError('refresh_token_lost', message, { hint })
}

/**
 * Returns the newer one of the tokens in the keychain and in the session; undefined if the session has none, and the keychain
 * item is missing or ignored. Ignores an item of another sign-in or of a lower generation than the session's, as after the
 * keychain was restored from a backup.
 */
function newerToken(session: Session, item: KeychainItem | undefined): KeychainItem | undefined {
  const { id, generation, refreshToken } = session
  const inFile = refreshToken === undefined ? undefined : { id, generation, value: refreshToken }
  if (item === undefined || item.id !== id || item.generation < generation) return inFile
  return inFile !== undefined && item.generation === generation ? inFile : item
}

/**
 * Writes the keychain item and reads it back, since some keychains report success without storing anything.
 *
 * @throws CliError `store_unavailable`, exit 4, if the keychain fails or doesn't return the written text
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
 * @param isExpected whether the item should exist: then the reply "no such item" isn't believed until the keychain passes a test,
 *   because a locked keychain gives the same reply
 * @returns the error if an expected item may still exist
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
 * Stores the next session with its secret. With the keychain, writes the note file (`next.…`), then the keychain item, then
 * renames the note file, so that after a kill in between the session of a new item is found. If the keychain fails, the secret
 * goes into the file, with a warning.
 *
 * @param refusal error of reading the keychain earlier in this renewal: then the keychain isn't called again
 * @throws CliError `refresh_token_lost`, exit 4, if the secret can't be stored; `cannot_write`, exit 1, if the session can't
 */
export async function storeSession(
  io: Io,
  files: ProfileFiles,
  reservation: AllocatedFile,
  session: Session,
  secret: string,
  refusal?: CliError,
): Promise<void> {
  const { profile } = files
  const { path } = reservation
  if (session.store === 'keychain') {
    const failure = catchError(() => reservation.fill(encodeSession(session)))
    // Fail before the keychain write: a login that can't replace the former session must not overwrite its keychain item.
    if (failure !== undefined && session.generation === 1) throw cannotWriteError(path, failure)
    try {
      if (refusal !== undefined) throw refusal
      await io.waiting(WAITING, writeItem(io, files, session, secret))
      if (failure === undefined) return promoteNoteFile(files, path, session)
      // Only warn: the keychain holds the new token, and the next renewal takes it from there although `session.json` is
      // a generation behind.
      return await io.warn(`the session of profile ${profile} is in the keychain only: ${reasonOf(failure)}`)
    } catch (error) {
      if (!(error instanceof CliError) || error.code !== 'store_unavailable') throw error
      await io.warn(`the secret of profile ${profile} is in a file that only you can read: ${error.message}`)
    }
  }
  const whole = { ...session, refreshToken: secret }
  const failure = catchError(() => reservation.fill(encodeSession(whole)))
  if (failure !== undefined) throw tokenLostError(profile, reasonOf(failure), failure)
  promoteNoteFile(files, path, whole)
}

/** Returns the error for a keychain that returns no item: the item is missing, or the keychain is locked without saying so. */
function noItemError(profile: string): CliError {
  const message = `the keychain is locked, or the secret of profile ${profile} is missing from it`
  const hint = `unlock it and try again; if it is unlocked, ${signInHint(profile)}`
  return new CliError('store_unavailable', message, { hint })
}
