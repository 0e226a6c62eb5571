import { join } from 'node:path'
import { CliError, usageError } from '../errors.ts'
import { type AccessToken, type RefreshOutcome, refresh, tokenTimeoutMs } from '../oauth/token-endpoint.ts'
import { parseBaseUrl } from '../settings/addresses.ts'
import { withProfile } from '../settings/profiles.ts'
import { removeDurable } from '../storage/atomic-file.ts'
import { cannotWrite, catchError } from '../storage/file-errors.ts'
import { withLock } from '../storage/lock.ts'
import type { Io } from '../terminal/io.ts'
import { backoff, REQUEST_DELAYS } from '../timeout.ts'
import { interruptedError, sessionOverError, signInHint } from './messages.ts'
import {
  canReplaceSession,
  finishStore,
  noteName,
  type Reservation,
  readNote,
  replaceSession,
  reserveFile,
  sessionChangedError,
} from './note.ts'
import { requireSession } from './profiles.ts'
import { readItem, requireToken, storeValue } from './secret.ts'
import {
  encode,
  findReusableAccess,
  type ProfileFiles,
  profileFiles,
  type RenewOptions,
  readSession,
  readSessionIfAny,
  requireSameService,
  type Session,
} from './session-file.ts'

/** One renewal, which may take several passes. */
export interface Renewal {
  readonly io: Io
  readonly options: RenewOptions
  /** Called before the note is made. From here to the end of the pass, Ctrl-C waits. @throws the signal's reason if it came before. */
  commit(): void
}

/** What one pass of the steps came to. */
export type PassResult =
  | { readonly kind: 'done'; readonly token: AccessToken }
  /** The session has changed: everything has to be read again. */
  | { readonly kind: 'changed' }
  /** Another machine is renewing: everything has to be read again, as often as it takes. */
  | { readonly kind: 'waited' }
  /** The token is unused, and waiting is enough. */
  | { readonly kind: 'retry'; readonly error: CliError }

/** How long a refusal that passes, such as a 429, is waited for, in milliseconds. */
const RETRY_LIMIT_MS = 30_000
/** For another process's writing, and for its keychain, in milliseconds. */
const STORE_LIMIT_MS = 15_000
/** How often a service that can't be reached at all is tried. */
const UNREACHABLE_TRIES = 3
/** How often a session that keeps changing is read. */
const READS = 10

/**
 * Renews the access token of the profile on this machine, in the steps of docs/token-safety.md. The first, an access token that is
 * good, is the caller's.
 *
 * @returns the new access token, or the one that another process got meanwhile.
 * @throws CliError of custody; that of the service if it refused in another way (section 7.1 of the interface), exit 6 or 7
 */
export async function renewLocal(
  io: Io,
  options: RenewOptions,
  files: ProfileFiles = profileFiles(io, io.settings.profile.value),
): Promise<AccessToken> {
  // No lock can be in a directory that isn't there.
  requireSession(io, files)
  const meanwhile = () => findReusableAccess(readSessionIfAny(files), io, options)
  return withLock(files.lock, io, { ...lockOptions(io, files), meanwhile }, () =>
    runPasses(io, options, (renewal) => renewOnce(renewal, files)),
  )
}

/** One pass of the steps 2 to 6, under the lock. */
async function renewOnce(renewal: Renewal, files: ProfileFiles): Promise<PassResult> {
  const { io, options } = renewal
  const { profile } = files

  // Step 2: what is there, after what an earlier process has left whole.
  const { session, text } = requireSession(io, files)
  const { id } = session
  const finished = await recoverNext(renewal, files, { id, generation: session.generation + 1 })
  if (finished !== undefined) return finished
  if (session.kind === 'api_key')
    throw usageError(`profile ${profile} holds an API key, which is never renewed`)
  requireSameService(session, io)
  if (session.ended !== undefined) throw sessionOverError(session.profile, session.ended.why)
  const adopted = findReusableAccess(session, io, options)
  if (adopted !== undefined) return { kind: 'done', token: adopted }
  const reading = await readItem(io, files, session)
  const { item, failure } = reading
  const isAhead = item !== undefined && (item.id !== id || item.generation > session.generation)
  const ahead = isAhead ? await recoverNext(renewal, files, item, 'its secret is in the keychain') : undefined
  if (ahead !== undefined) return ahead

  // Step 3: the newest token, unless the outcome of its last use is unknown.
  const { value, generation, interruption } = requireToken(files, session, reading)
  if (interruption !== undefined && !options.retryInterrupted) throw interruption
  const name = noteName({ id, generation })
  // Only a retry gets here with a short note, and removes it: if the lock file was deleted, its writer may be about to send.
  const isUnsent = interruption !== undefined && readNote(files, name) === 'unsent'
  if (isUnsent) removeDurable(join(files.directory, name), files.disk)
  const isNoted = interruption !== undefined && !isUnsent
  // Byte for byte: generations of different sign-ins say nothing about each other.
  const isUnchanged = () => {
    try {
      return files.disk.read(files.session) === text
    } catch {
      return false
    }
  }

  // Steps 4 and 5: once the connection stands, the note, one more look, and the token.
  const sent = await sendToken(renewal, session, value, () => {
    renewal.commit()
    const made = reserveFile(files, name, isNoted ? 'retry' : 'new')
    if (isUnchanged()) return made
    discardNote(files, made)
    throw sessionChangedError(profile)
  })
  try {
    // Step 6: what the answer proves.
    if (sent.kind === 'unknown') throw interruptedError(profile, sent.why)
    if (sent.kind === 'unused') {
      if (sent.note === undefined) return retryOrThrow(sent)
      discardNote(files, sent.note, sent.error)
      // The refusal says nothing about the earlier use.
      if (isNoted) throw interruptedError(profile, sent.error.message)
      return retryOrThrow(sent)
    }
    const { note } = sent
    if (note === undefined) throw new Error('an answer to a token that was not sent')
    const next = advanceSession({ ...session, generation }, sent, renewal)
    const current = rereadSession(files, session)
    if (current !== 'directory_gone') {
      if (current?.id !== id) {
        // Nothing is stored over another sign-in, and nothing after a logout.
        note.discard()
        throw replacedSessionError(profile)
      }
      if (current.generation > generation) return { kind: 'changed' }
    }
    if (sent.kind === 'over') {
      // If it fails, the note stays, so the token isn't sent again; the service would say the same.
      catchError(() => {
        note.fill(encode(next))
        replaceSession(files, note.path, next)
      })
      throw sessionOverError(profile, sent.description)
    }
    if (current === 'directory_gone') {
      // Nobody has signed in or out. If the directory comes back, the next command finds the answer in the note.
      catchError(() => note.fill(encode({ ...next, refreshToken: sent.refreshToken })))
      const message = `the directory ${files.directory} is gone, and the new refresh token of profile ${profile} with it`
      const hint = `move it back if it was moved; else ${signInHint(profile)}`
      throw new CliError('store_unavailable', message, { hint })
    }
    const store = (space: Reservation) => storeValue(io, files, space, next, sent.refreshToken, failure)
    try {
      await store(note).catch(async (error: CliError) => {
        if (readNote(files, name) !== 'absent' || !isUnchanged()) throw error
        // Something removed the note, and nobody has stored anything: another note takes the value.
        const again = reserveFile(files, name)
        await store(again).finally(again.close)
      })
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      const left = readNote(files, name)
      const isOnDisk = canReplaceSession(left) || (error.code === 'cannot_write' && left !== 'absent')
      if (!isOnDisk && (options.always || sent.access === undefined)) throw error
      // The access token serves this command. The next one stores what is on the disk.
      const problem = cannotWrite(files.session, error.cause).message
      await io.warn(isOnDisk ? problem : `${error.message}; ${error.hint}`)
    }
    return requireAccess(sent, next)
  } finally {
    sent.note?.close()
  }
}

/** How a command waits for the lock of a session: its holder may need all of its own time. */
export function lockOptions(io: Io, { disk }: ProfileFiles) {
  return {
    timeoutMs: tokenTimeoutMs(io.settings) + RETRY_LIMIT_MS + STORE_LIMIT_MS,
    disk,
    onWait: () => io.say('Waiting for another mailclaim, which is using this session …'),
  }
}

/**
 * Puts a value that an earlier process, a renewal or a login, has left whole in place. Where that can't be done, its access token will
 * do if it is good.
 *
 * @returns undefined if there is none.
 * @throws CliError `cannot_write`, exit 1
 */
async function recoverNext(
  { io, options }: Renewal,
  files: ProfileFiles,
  { id, generation }: Pick<Session, 'id' | 'generation'>,
  known?: 'its secret is in the keychain',
): Promise<PassResult | undefined> {
  const name = noteName({ id, generation: generation - 1 })
  const next = readNote(files, name)
  if (typeof next === 'string' || next.id !== id || next.generation !== generation) return undefined
  if (known === undefined && !canReplaceSession(next)) return undefined
  try {
    finishStore(files, name, next)
    return { kind: 'changed' }
  } catch (error) {
    const token = findReusableAccess(next, io, options)
    if (token === undefined || !(error instanceof CliError)) throw error
    await io.warn(error.message)
    return { kind: 'done', token }
  }
}

/** Removes the note of a token that is unused; another's stays. @throws CliError `cannot_write`, exit 1 */
function discardNote({ profile }: ProfileFiles, note: Reservation, refusal?: CliError): void {
  const cause = note.discard()
  if (cause === undefined) return
  const what = refusal === undefined ? 'nothing was sent' : `the token is unused (${refusal.message})`
  const retry = withProfile('mailclaim auth refresh --retry-interrupted', profile)
  const hint = `once that file can be removed, this is safe: ${retry}`
  throw new CliError('cannot_write', `${what}, but ${cause.message}`, { hint, cause })
}

/**
 * The session while its lock is held: what can't be read now is what it was. A logout leaves the lock in the directory: without that,
 * the directory is out of sight.
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
 * Repeats the steps until there is an access token, as long as that may help. Ctrl-C ends a pass at once before it commits, and after
 * that when it is over.
 */
export async function runPasses(
  io: Io,
  options: RenewOptions,
  renewOnce: (renewal: Renewal) => Promise<PassResult>,
): Promise<AccessToken> {
  const { signal, shield } = io.interrupts
  const onSignal = () => void io.say('Stopping as soon as the service has answered …')
  const end = io.clock.monotonic() + RETRY_LIMIT_MS
  let reads = 1
  for (let tries = 1; ; ) {
    let shielded: Promise<unknown> | undefined
    const commit = () => {
      signal.throwIfAborted()
      shielded = shield(() => pass, onSignal)
    }
    const pass: Promise<PassResult> = renewOnce({ io, options, commit })
    const result = await pass.finally(() => shielded)
    if (result.kind === 'done') return result.token
    signal.throwIfAborted()
    if (result.kind === 'changed' && ++reads > READS) throw sessionChangedError(io.settings.profile.value)
    if (result.kind !== 'retry') continue
    const wait = Math.max(result.error.retryAfterMs ?? 0, backoff(tries, REQUEST_DELAYS, io.random))
    const isUnreachable = result.error.code === 'unreachable' && tries >= UNREACHABLE_TRIES
    if (isUnreachable || io.clock.monotonic() + wait >= end) throw result.error
    tries++
    await io.clock.sleep(wait, signal)
  }
}

type Success = Extract<RefreshOutcome, { kind: 'success' }>

/** An answer that settles what becomes of the session. */
type Settled = Success | Extract<RefreshOutcome, { kind: 'over' }>

/**
 * Steps 4 and 5: one request, whose answer is waited for. It doesn't throw, whatever the network or the service does.
 *
 * @param makeNote the last moment before the first byte leaves, which can't wait for anything: makes the note, and takes space for the
 *   answer from the disk. If it throws, nothing is sent.
 */
export async function sendToken(
  { io, options }: Renewal,
  session: Session,
  refreshToken: string,
  makeNote: () => Reservation,
): Promise<RefreshOutcome & { readonly note: Reservation | undefined }> {
  const made: Reservation[] = []
  const request = refresh(io, {
    base: parseBaseUrl(session.service ?? '', 'the service of the session'),
    clientId: session.client ?? '',
    refreshToken,
    scope: options.scope,
    grantedScope: session.scope ?? undefined,
    beforeSend() {
      made.push(makeNote())
    },
  })
  const outcome = await io.waiting('Waiting for the service to renew the session …', request)
  return { ...outcome, note: made[0] }
}

/** The end of a pass whose token is unused. @throws CliError why, unless another pass may help. */
export function retryOrThrow({ error, passes }: Extract<RefreshOutcome, { kind: 'unused' }>): PassResult {
  if (error.code === 'session_busy') return { kind: 'changed' }
  if (!passes) throw error
  return { kind: 'retry', error }
}

/** The session after an answer, without its refresh token. A narrowed access token is only for the one who asked for it. */
export function advanceSession(session: Session, outcome: Settled, { io, options }: Renewal): Session {
  const { refreshToken: _usedUp, access: _former, ...rest } = session
  const now = io.clock.now()
  const base = { ...rest, generation: session.generation + 1 }
  if (outcome.kind === 'over') return { ...base, ended: { at: now, why: outcome.description ?? null } }
  const { access } = outcome
  return { ...base, issuedAt: now, ...(access && options.scope === undefined && { access }) }
}

/** The end of a pass whose next value is stored. @throws CliError `unexpected_answer`, exit 7, without an access token. */
export function requireAccess({ access, why }: Success, { profile }: Session): PassResult {
  if (access !== undefined) return { kind: 'done', token: access }
  const message = `the session of profile ${profile} was renewed, but the answer has no usable access token`
  throw new CliError('unexpected_answer', `${message}: ${why}`, { hint: 'run the command again' })
}

/** Somebody signed in or out while the session was renewed. */
export function replacedSessionError(profile: string): CliError {
  const message = `profile ${profile} was signed in again, or out, while this command renewed its session`
  const hint = `to see the session: ${withProfile('mailclaim auth status', profile)}`
  return new CliError('session_elsewhere', message, { hint })
}
