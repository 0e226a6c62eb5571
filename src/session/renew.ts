import { join } from 'node:path'
import { CliError, usageError } from '../errors.ts'
import {
  type AccessToken,
  type RefreshTokenOutcome,
  sendRefreshToken,
  tokenRequestTimeoutMs,
} from '../oauth/token-endpoint.ts'
import { parseBaseUrl } from '../settings/addresses.ts'
import { addProfileFlag } from '../settings/profiles.ts'
import { removeFileDurably } from '../storage/atomic-file.ts'
import { cannotWriteError, catchError } from '../storage/file-errors.ts'
import { withLock } from '../storage/lock.ts'
import type { Io } from '../terminal/io.ts'
import { backoffMs, REQUEST_BACKOFF } from '../timeout.ts'
import { refreshInterruptedError, sessionOverError, signInHint } from './messages.ts'
import {
  type AllocatedFile,
  isUsableSuccessor,
  noteFileName,
  preallocateFile,
  promoteNoteFile,
  readNoteFile,
  sessionChangedError,
  storeSessionFromNote,
} from './note.ts'
import { requireSession } from './profiles.ts'
import { readKeychainItem, requireNewestSecret, storeSession } from './secret.ts'
import {
  encodeSession,
  findFreshAccessToken,
  type ProfileFiles,
  profileFiles,
  type RenewOptions,
  readSession,
  rejectForeignSession,
  type Session,
  tryReadSession,
} from './session-file.ts'

/**
 * Input of one pass of a renewal. A pass is steps 2 to 6 of docs/token-safety.md or, with etcd, of docs/fleet.md; passes are
 * repeated until one returns an access token or fails.
 */
export interface RenewalPassInput {
  readonly io: Io
  readonly options: RenewOptions
  /**
   * Defers Ctrl-C to the end of the renewal pass, so that the response to the refresh request isn't lost. Called before the pass
   * creates the note file (`next.…`) on this machine, or the renewal marker in etcd.
   *
   * @throws the abort reason if Ctrl-C was pressed before
   */
  commit(): void
}

/** Result of one pass of a renewal; an error that another pass would meet again is thrown instead. */
export type RenewalPassResult =
  | { readonly kind: 'done'; readonly token: AccessToken }
  /**
   * The stored session has changed, by another process or because this renewal pass stored the session that an earlier process
   * had left in its note file (`next.…`). The next pass reads the session again.
   */
  | { readonly kind: 'changed' }
  /**
   * The session in etcd has another process's renewal marker. This pass has waited a moment, or has marked the outcome of that
   * renewal as unknown; the next pass reads etcd again.
   */
  | { readonly kind: 'waited' }
  /** The renewal pass left the refresh token unused because of a transient failure; another pass after a delay may succeed. */
  | { readonly kind: 'retry'; readonly error: CliError }

/** Milliseconds from a renewal's first pass, within which a temporary failure, such as an unreachable service, is retried. */
const RETRY_LIMIT_MS = 30_000
/** Milliseconds that the timeout of the session's lock includes for storing a new session, in the keychain or a file. */
const STORE_LIMIT_MS = 15_000
/** Number of attempts after which a renewal no longer retries if the service can't be reached. */
const MAX_CONNECT_TRIES = 3
/** Number of results `changed` (another process has changed the stored session) at which a renewal gives up with `session_busy`. */
const MAX_CHANGES = 10

/**
 * Renews the access token of a session that is stored on this machine: steps 2 to 6 of docs/token-safety.md.
 *
 * @returns the new access token, or a stored one that fulfills the options
 * @throws CliError `refresh_interrupted`, exit 4, if only `--retry-interrupted` may send the refresh token; other errors of the
 *   session, its files, the service or the connection
 */
export async function renewLocalSession(
  io: Io,
  options: RenewOptions,
  files: ProfileFiles = profileFiles(io, io.settings.profile.value),
): Promise<AccessToken> {
  // Check for a session before locking: a profile that was never signed in has no directory, so creating the lock file would
  // fail and hide that nobody is signed in.
  requireSession(io, files)
  const meanwhile = () => findFreshAccessToken(tryReadSession(files), io, options)
  return withLock(files.lock, io, { ...getSessionLockOptions(io, files), meanwhile }, () =>
    repeatPassesUntilRenewed(io, options, (pass) => runLocalPass(pass, files)),
  )
}

/** Performs steps 2 to 6 of docs/token-safety.md once. The caller holds the session's lock. */
async function runLocalPass(pass: RenewalPassInput, files: ProfileFiles): Promise<RenewalPassResult> {
  const { io, options } = pass
  const { profile } = files

  // Step 2: read the session. If an earlier process left the next session complete in its note file (`next.…`), store that
  // session and end this renewal pass.
  const { session, text } = requireSession(io, files)
  const { id } = session
  const finished = await recoverNext(pass, files, { id, generation: session.generation + 1 })
  if (finished !== undefined) return finished
  if (session.kind === 'api_key')
    throw usageError(`profile ${profile} holds an API key, which is never renewed`)
  rejectForeignSession(session, io)
  if (session.ended !== undefined) throw sessionOverError(session.profile, session.ended.why)
  const adopted = findFreshAccessToken(session, io, options)
  if (adopted !== undefined) return { kind: 'done', token: adopted }
  const reading = await readKeychainItem(io, files, session)
  const { item, failure } = reading
  const isAhead = item !== undefined && (item.id !== id || item.generation > session.generation)
  const ahead = isAhead ? await recoverNext(pass, files, item, 'keychain') : undefined
  if (ahead !== undefined) return ahead

  // Step 3: choose the newest refresh token. If the token has an unfinished note file (`next.…`), it may have been sent, or be
  // about to be sent: stop here without `--retry-interrupted`.
  const { value, generation, interruption } = requireNewestSecret(files, session, reading)
  if (interruption !== undefined && !options.retryInterrupted) throw interruption
  const name = noteFileName({ id, generation })
  // A note file (`next.…`) shorter than its allocated size shows that its token wasn't sent, so `--retry-interrupted` replaces
  // the file. No other renewal does: if the lock file was deleted, another process may be about to send the token.
  const isUnsent = interruption !== undefined && readNoteFile(files, name) === 'unsent'
  if (isUnsent) removeFileDurably(join(files.directory, name), files.disk)
  const mayBeSentBefore = interruption !== undefined && !isUnsent
  // Whether `session.json` still has the text that this pass read in step 2. Comparing generations wouldn't do, because those of
  // two sign-ins are unrelated.
  const isUnchanged = () => {
    try {
      return files.disk.read(files.session) === text
    } catch {
      return false
    }
  }

  // Steps 4 and 5: connect, create the note file (`next.…`), check that `session.json` is unchanged, and send the refresh
  // token.
  const sent = await preallocateFileAndSendRefreshToken(pass, session, value, () => {
    pass.commit()
    const made = preallocateFile(files, name, mayBeSentBefore ? 'retry' : 'new')
    if (isUnchanged()) return made
    discardNote(files, made)
    throw sessionChangedError(profile)
  })
  try {
    // Step 6: act on what the response proves. After an unknown outcome, the note file (`next.…`) stays, so that only
    // `--retry-interrupted` sends the token again.
    if (sent.kind === 'unknown') throw refreshInterruptedError(profile, sent.why)
    if (sent.kind === 'unused') {
      if (sent.file === undefined) return toUnusedTokenResult(sent)
      discardNote(files, sent.file, sent.error)
      // If an earlier request may have sent the token, the service may have accepted it then: the outcome stays unknown,
      // although this request didn't use the token.
      if (mayBeSentBefore) throw refreshInterruptedError(profile, sent.error.message)
      return toUnusedTokenResult(sent)
    }
    const note = sent.file
    if (note === undefined) throw new Error('an answer to a token that was not sent')
    const next = buildNextSession({ ...session, generation }, sent, pass)
    const current = rereadSession(files, session)
    if (current !== 'directory_gone') {
      if (current?.id !== id) {
        // Discard the response: storing the tokens would undo the sign-in or sign-out that has replaced or removed the session.
        note.discard()
        throw sessionReplacedOrRemovedError(profile)
      }
      if (current.generation > generation) return { kind: 'changed' }
    }
    if (sent.kind === 'over') {
      // Ignore a failure to store the end of the session: then the note file (`next.…`) stays, and keeps renewals from sending
      // the token again.
      catchError(() => {
        note.fill(encodeSession(next))
        promoteNoteFile(files, note.path, next)
      })
      throw sessionOverError(profile, sent.description)
    }
    if (current === 'directory_gone') {
      // The profile's directory is gone. Write the next session through the open descriptor of the note file (`next.…`): if the
      // directory was moved, the next renewal after its return stores the session.
      catchError(() => note.fill(encodeSession({ ...next, refreshToken: sent.refreshToken })))
      const message = `the directory ${files.directory} is gone, and the new refresh token of profile ${profile} with it`
      const hint = `move it back if it was moved; else ${signInHint(profile)}`
      throw new CliError('store_unavailable', message, { hint })
    }
    const store = (space: AllocatedFile) => storeSession(io, files, space, next, sent.refreshToken, failure)
    try {
      await store(note).catch(async (error: CliError) => {
        if (readNoteFile(files, name) !== 'absent' || !isUnchanged()) throw error
        // Another program, such as a cleanup job, deleted the note file (`next.…`): store the new token through a second note
        // file.
        const again = preallocateFile(files, name)
        await store(again).finally(again.close)
      })
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      const left = readNoteFile(files, name)
      const isOnDisk = isUsableSuccessor(left) || (error.code === 'cannot_write' && left !== 'absent')
      if (!isOnDisk && (options.always || sent.access === undefined)) throw error
      // Only warn: if `isOnDisk`, the next renewal stores the session from the note file (`next.…`); otherwise the refresh
      // token is lost, but this command can use the new access token.
      const problem = cannotWriteError(files.session, error.cause).message
      await io.warn(isOnDisk ? problem : `${error.message}; ${error.hint}`)
    }
    return { kind: 'done', token: requireAccessToken(sent, next) }
  } finally {
    sent.file?.close()
  }
}

/** Returns the options for locking a session. The timeout allows for a renewal by another process. */
export function getSessionLockOptions(io: Io, { disk }: ProfileFiles) {
  return {
    timeoutMs: tokenRequestTimeoutMs(io.settings) + RETRY_LIMIT_MS + STORE_LIMIT_MS,
    disk,
    onWait: () => io.say('Waiting for another mailclaim, which is using this session …'),
  }
}

/**
 * Stores the next session if an earlier process wrote it into its note file (`next.…`), but didn't rename that to `session.json`.
 *
 * @param tokenIn `keychain` if the refresh token or API key is in the keychain, so that the note file needn't contain it
 * @returns `changed` after storing the session; `done` if that failed, but the session's access token can be used; undefined if
 *   there is no such note file
 * @throws CliError as `storeSessionFromNote`
 */
async function recoverNext(
  { io, options }: RenewalPassInput,
  files: ProfileFiles,
  { id, generation }: Pick<Session, 'id' | 'generation'>,
  tokenIn?: 'keychain',
): Promise<RenewalPassResult | undefined> {
  const name = noteFileName({ id, generation: generation - 1 })
  const next = readNoteFile(files, name)
  if (typeof next === 'string' || next.id !== id || next.generation !== generation) return undefined
  if (tokenIn === undefined && !isUsableSuccessor(next)) return undefined
  try {
    storeSessionFromNote(files, name, next)
    return { kind: 'changed' }
  } catch (error) {
    const token = findFreshAccessToken(next, io, options)
    if (token === undefined || !(error instanceof CliError)) throw error
    await io.warn(error.message)
    return { kind: 'done', token }
  }
}

/**
 * Removes the note file (`next.…`) of a refresh token that wasn't used, unless an earlier process created the file.
 *
 * @param failure error of the request; undefined if `session.json` had changed, so that nothing was sent
 * @throws CliError `cannot_write`, exit 1, if the file can't be removed
 */
function discardNote({ profile }: ProfileFiles, note: AllocatedFile, failure?: CliError): void {
  const cause = note.discard()
  if (cause === undefined) return
  const what = failure === undefined ? 'nothing was sent' : `the token is unused (${failure.message})`
  const retry = addProfileFlag('mailclaim auth refresh --retry-interrupted', profile)
  const hint = `once that file can be removed, this is safe: ${retry}`
  throw new CliError('cannot_write', `${what}, but ${cause.message}`, { hint, cause })
}

/**
 * Rereads the session before the refresh response is stored: without a working lock, a sign-in or sign-out may have changed it.
 *
 * @returns `was` if the file can't be read; `directory_gone` if the directory is missing or empty; undefined after a sign-out, or
 *   if the file is another profile's
 */
function rereadSession(files: ProfileFiles, was: Session): Session | 'directory_gone' | undefined {
  try {
    const { session } = readSession(files) ?? {}
    return session ?? (files.disk.names(files.directory).length === 0 ? 'directory_gone' : undefined)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return error.code === 'session_elsewhere' ? undefined : was
  }
}

/**
 * Repeats passes of a renewal until one returns an access token or no further pass can help. Once a pass has called
 * `RenewalPassInput.commit`, Ctrl-C is deferred until that pass ends.
 *
 * @throws CliError the error of the last pass; `session_busy`, exit 7, if the session keeps changing; the abort reason after
 *   Ctrl-C
 */
export async function repeatPassesUntilRenewed(
  io: Io,
  options: RenewOptions,
  runPass: (pass: RenewalPassInput) => Promise<RenewalPassResult>,
): Promise<AccessToken> {
  const { signal, shield } = io.interrupts
  const onSignal = () => void io.say('Stopping as soon as the service has answered …')
  const end = io.clock.monotonic() + RETRY_LIMIT_MS
  let changes = 0
  for (let tries = 1; ; ) {
    let shielded: Promise<unknown> | undefined
    const commit = () => {
      signal.throwIfAborted()
      shielded = shield(() => running, onSignal)
    }
    const running: Promise<RenewalPassResult> = runPass({ io, options, commit })
    const result = await running.finally(() => shielded)
    if (result.kind === 'done') return result.token
    signal.throwIfAborted()
    if (result.kind === 'changed' && ++changes >= MAX_CHANGES)
      throw sessionChangedError(io.settings.profile.value)
    if (result.kind !== 'retry') continue
    const wait = Math.max(result.error.retryAfterMs ?? 0, backoffMs(tries, REQUEST_BACKOFF, io.random))
    const isUnreachable = result.error.code === 'unreachable' && tries >= MAX_CONNECT_TRIES
    if (isUnreachable || io.clock.monotonic() + wait >= end) throw result.error
    tries++
    await io.clock.sleep(wait, signal)
  }
}

type NewTokens = Extract<RefreshTokenOutcome, { kind: 'success' }>
type UnusedToken = Extract<RefreshTokenOutcome, { kind: 'unused' }>

/** Outcome of a refresh request that changes the session: new tokens, or the end of the session. */
type Settled = NewTokens | Extract<RefreshTokenOutcome, { kind: 'over' }>

/**
 * Connects to the service, allocates a file for the new tokens, sends the refresh token in one request, and waits for the
 * response.
 *
 * @param allocate creates the note file (`next.…`) or outcome file (`pending.…`), synchronously when the connection is
 *   established and no byte of the request is sent yet; if it throws, nothing is sent
 * @returns the outcome, also after a failure; `file` is undefined if `allocate` wasn't called or threw
 */
export async function preallocateFileAndSendRefreshToken(
  { io, options }: RenewalPassInput,
  session: Session,
  refreshToken: string,
  allocate: () => AllocatedFile,
): Promise<RefreshTokenOutcome & { readonly file: AllocatedFile | undefined }> {
  const made: AllocatedFile[] = []
  const request = sendRefreshToken(io, {
    base: parseBaseUrl(session.service ?? '', 'the service of the session'),
    clientId: session.client ?? '',
    refreshToken,
    scope: options.scope,
    grantedScope: session.scope ?? undefined,
    beforeSend() {
      made.push(allocate())
    },
  })
  const outcome = await io.waiting('Waiting for the service to renew the session …', request)
  return { ...outcome, file: made[0] }
}

/**
 * Returns the result of a renewal pass that left its refresh token unused: `changed` if the session had changed, `retry` after a
 * transient failure.
 *
 * @throws CliError the failure, if another pass can't help
 */
export function toUnusedTokenResult({ error, isTransient }: UnusedToken): RenewalPassResult {
  if (error.code === 'session_busy') return { kind: 'changed' }
  if (!isTransient) throw error
  return { kind: 'retry', error }
}

/**
 * Returns the session after a refresh, with the next generation number; an ended session if the service no longer accepts the
 * refresh token. After a success, the caller adds the new refresh token. Leaves out a narrowed access token, since only the
 * command that requested it may use it.
 */
export function buildNextSession(session: Session, outcome: Settled, pass: RenewalPassInput) {
  const { refreshToken: _usedUp, access: _former, ...rest } = session
  const now = pass.io.clock.now()
  const base = { ...rest, generation: session.generation + 1 }
  if (outcome.kind === 'over') return { ...base, ended: { at: now, why: outcome.description ?? null } }
  const { access } = outcome
  return { ...base, issuedAt: now, ...(access && pass.options.scope === undefined && { access }) }
}

/**
 * Returns the access token of a successful response to a refresh request.
 *
 * @throws CliError `unexpected_answer`, exit 7, if the response has no usable access token
 */
export function requireAccessToken({ access, defect }: NewTokens, { profile }: Session): AccessToken {
  if (access !== undefined) return access
  const message = `the session of profile ${profile} was renewed, but the answer has no usable access token`
  throw new CliError('unexpected_answer', `${message}: ${defect}`, { hint: 'run the command again' })
}

/** Returns the error for a session that was replaced by a sign-in, or removed by a sign-out, during its renewal. */
export function sessionReplacedOrRemovedError(profile: string): CliError {
  const message = `profile ${profile} was signed in again, or out, while this command renewed its session`
  const hint = `to see the session: ${addProfileFlag('mailclaim auth status', profile)}`
  return new CliError('session_elsewhere', message, { hint })
}
