import { CliError, usageError } from '../errors.ts'
import { type RefreshOutcome, refresh, tokenTimeoutMs } from '../oauth/token-endpoint.ts'
import { backoff } from '../service/retry.ts'
import { parseBaseUrl } from '../settings/addresses.ts'
import { removeQuietly } from '../storage/atomic-file.ts'
import { withLock } from '../storage/lock.ts'
import type { Io } from '../terminal/io.ts'
import {
  interrupted,
  keepsChanging,
  lockedOrMissing,
  noAccessToken,
  noteStays,
  replacedMeanwhile,
  sessionOver,
  tokenLost,
  tokenOutdated,
} from './messages.ts'
import { noSession } from './profiles.ts'
import { type Item, newestToken, readItemIfAny, type Secret, stored, storeValue } from './secret.ts'
import {
  type AccessToken,
  fill,
  finish,
  isFinishable,
  isFresh,
  nextName,
  type ProfileFiles,
  profileFiles,
  type ReadSession,
  type Reservation,
  readNext,
  readSession,
  readSessionIfAny,
  requireSameService,
  reserve,
  type Session,
  withdraw,
} from './session-file.ts'

export interface RenewOptions {
  /** `stale`: the access token expires; `refused`: the service answered it with 401; `asked`: renew whatever there is. */
  readonly reason: 'stale' | 'refused' | 'asked'
  /** The access token that won't do. */
  readonly outdated?: string | undefined
  /** Narrows the new access token, which isn't kept then. */
  readonly scope?: string | undefined
  /** A person wants a token sent whose last use has no known outcome. */
  readonly retryInterrupted?: boolean
}

/** How long a refusal that passes, such as a 429, is waited for, in milliseconds. */
const RETRY_LIMIT_MS = 30_000
/** How often a service that can't be reached at all is tried. */
const UNREACHABLE_TRIES = 3
/** For another process's writing, and for its keychain, in milliseconds. */
const STORE_LIMIT_MS = 15_000
/** How often a session that changes under the lock is read again. */
const CHANGES = 3

/** What one pass of steps 2 to 6 came to. */
type Pass =
  | { readonly kind: 'done'; readonly token: AccessToken }
  /** The session changed, or an earlier renewal was finished: everything has to be read again. */
  | { readonly kind: 'changed' }
  /** The token is unused, and waiting is enough. */
  | { readonly kind: 'later'; readonly afterMs: number | undefined; readonly error: CliError }

/** What a person's Ctrl-C does to a pass: nothing, once the token may have left. */
interface Progress {
  isSent: boolean
  readonly signal: AbortSignal
}

/** How a command waits for the lock of a session: its holder may need all of its own time. */
export function lockingOf(io: Io, files: ProfileFiles) {
  return {
    deadlineMs: tokenTimeoutMs(io.settings) + RETRY_LIMIT_MS + STORE_LIMIT_MS,
    disk: files.disk,
    ...(files.load && { load: files.load }),
    onWait: () => io.note('Waiting for another mailclaim, which is using this session …'),
  }
}

/**
 * Renews the access token of the profile, in the steps of docs/token-safety.md. Step 1, an access token that is good, is the
 * caller's.
 *
 * @returns the new access token, or the one that another process got meanwhile.
 * @throws CliError of custody; that of the service if it refused in another way (section 7.1 of the interface), exit 6 or 7.
 */
export async function renew(
  io: Io,
  options: RenewOptions,
  files: ProfileFiles = profileFiles(io, io.settings.profile.value),
): Promise<AccessToken> {
  // No lock can be in a directory that isn't there.
  if (readSession(files) === undefined) throw noSession(io)
  const waiting = {
    ...lockingOf(io, files),
    meanwhile: () => adoptable(readSessionIfAny(files), io, options),
  }
  return withLock(files.lock, io, waiting, async () => {
    const end = io.clock.monotonic() + RETRY_LIMIT_MS
    let changes = 0
    for (let tries = 1; ; tries++) {
      const result = await shielded(io, (progress) => pass(io, files, options, progress))
      if (result.kind === 'done') return result.token
      if (result.kind === 'changed') {
        if (++changes >= CHANGES) throw keepsChanging(files.profile)
        continue
      }
      const wait = Math.max(result.afterMs ?? 0, backoff(tries, io.random))
      const isUnreachable = result.error.code === 'service_unreachable' && tries >= UNREACHABLE_TRIES
      if (isUnreachable || io.clock.monotonic() + wait >= end) throw result.error
      await io.clock.sleep(wait, io.interrupts.signal)
    }
  })
}

/** Runs a pass that Ctrl-C ends only as long as nothing was sent. */
async function shielded(io: Io, work: (progress: Progress) => Promise<Pass>): Promise<Pass> {
  io.interrupts.signal.throwIfAborted()
  const stop = new AbortController()
  const progress = { isSent: false, signal: stop.signal }
  const onSignal = () => {
    if (progress.isSent) void io.note('Stopping as soon as the service has answered …')
    else stop.abort()
  }
  try {
    return await io.interrupts.shield(() => work(progress), onSignal)
  } catch (error) {
    if (!progress.isSent) io.interrupts.signal.throwIfAborted()
    throw error
  }
}

/** The access token that another process has stored meanwhile, if there is one. */
function adoptable(session: Session | undefined, io: Io, options: RenewOptions): AccessToken | undefined {
  if (options.reason === 'asked' || session === undefined || session.ended !== undefined) return undefined
  const { access } = session
  if (access === undefined || access.value === options.outdated || !isFresh(access, io.clock.now()))
    return undefined
  requireSameService(session, io)
  return access
}

/** Steps 2 to 6, once, under the lock. */
async function pass(io: Io, files: ProfileFiles, options: RenewOptions, progress: Progress): Promise<Pass> {
  const { profile } = files
  // Step 2.
  const was = readFinished(files)
  if (was === undefined) throw noSession(io)
  const { session } = was
  requireRenewable(session, io)
  const adopted = adoptable(session, io, options)
  if (adopted !== undefined) return { kind: 'done', token: adopted }
  const { item, failure } = await readItemIfAny(io, files, session, progress.signal)
  if (item !== undefined && finishOf(files, session, item)) return { kind: 'changed' }
  const token = newestToken(session, item)
  const note = token && nextName({ id: session.id, generation: token.generation })
  const isNoted = note !== undefined && readNext(files, note) !== 'absent'
  if (session.store === 'keychain' && item === undefined && (token === undefined || isNoted))
    throw failure ?? lockedOrMissing(profile)
  if (token === undefined || note === undefined)
    throw session.store === 'keychain' ? tokenOutdated(profile) : tokenLost(profile, 'it is not there')
  // Step 3.
  if (isNoted && !options.retryInterrupted) throw interrupted(profile)
  return send(io, files, was, token, note, options, progress)
}

/** Reads the session, after what an earlier process has left whole was put in place. */
function readFinished(files: ProfileFiles): ReadSession | undefined {
  const found = readSession(files)
  if (found === undefined) return undefined
  const { id, generation } = found.session
  const name = nextName(found.session)
  const next = readNext(files, name)
  if (!isFinishable(next) || next.id !== id || next.generation !== generation + 1) return found
  finish(files, name, next)
  return readSession(files)
}

/** Finishes the file that leads to what the keychain holds, if the session isn't there yet: a renewal, or a login. */
function finishOf(files: ProfileFiles, session: Session, item: Item): boolean {
  const { id, generation } = item
  if (id === session.id && generation <= session.generation) return false
  const name = nextName({ id, generation: generation - 1 })
  const next = readNext(files, name)
  if (typeof next === 'string' || next.id !== id || next.generation !== generation) return false
  finish(files, name, next)
  return true
}

function requireRenewable(session: Session, io: Io): void {
  if (session.kind === 'api_key')
    throw usageError(`profile ${session.profile} holds an API key, which is never renewed`)
  requireSameService(session, io)
  if (session.ended !== undefined) throw sessionOver(session)
}

/** Steps 4 to 6: connection, note, request, and what follows from the answer. */
async function send(
  io: Io,
  files: ProfileFiles,
  was: ReadSession,
  token: Secret,
  note: string,
  options: RenewOptions,
  progress: Progress,
): Promise<Pass> {
  let reservation: Reservation | undefined
  let stopped: { readonly why: unknown } | undefined
  const noteIt = () => {
    const reserved = reserve(files, note, options.retryInterrupted ? 'retry' : 'new')
    if (reserved === 'exists') throw interrupted(files.profile)
    // Byte for byte: generations of different sign-ins say nothing about each other.
    if (textOf(files) !== was.text) {
      files.disk.close(reserved.fd)
      if (reserved.isOwn) remove(files, reserved)
      throw new SessionChanged()
    }
    reservation = reserved
    // From here on, nothing but an answer ends the request.
    progress.isSent = true
  }
  try {
    const outcome = await sendOnce(io, was.session, token.value, {
      scope: options.scope,
      signal: progress.signal,
      beforeSend() {
        try {
          noteIt()
        } catch (why) {
          stopped = { why }
          throw why
        }
      },
    })
    if (stopped?.why instanceof SessionChanged) return { kind: 'changed' }
    if (stopped !== undefined) throw stopped.why
    if (reservation === undefined) return notSent(outcome)
    return await settle(io, files, was.session, token, reservation, outcome, options)
  } finally {
    if (reservation !== undefined) files.disk.close(reservation.fd)
  }
}

class SessionChanged extends Error {}

function textOf({ disk, session }: ProfileFiles): string | undefined {
  try {
    return disk.read(session)
  } catch {
    return undefined
  }
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

/** Removes a note whose token is unused. @param refusal why; absent if nothing was sent. */
function remove(files: ProfileFiles, reservation: Reservation, refusal?: CliError): void {
  try {
    withdraw(files, reservation)
  } catch (failure) {
    throw noteStays(files.profile, failure, refusal)
  }
}

/** Step 5: one request, whatever keeps the session. Doesn't throw, whatever the network or the service does. */
export function sendOnce(
  io: Io,
  session: Pick<Session, 'service' | 'client' | 'scope'>,
  refreshToken: string,
  options: {
    readonly scope?: string | undefined
    readonly signal: AbortSignal
    /** The connection stands, and no byte has left: what it throws keeps it so. */
    readonly beforeSend: () => void
  },
): Promise<RefreshOutcome> {
  const { scope, signal, beforeSend } = options
  return io.waiting(
    'Waiting for the service to renew the session …',
    refresh(io, {
      base: parseBaseUrl(session.service ?? ''),
      clientId: session.client ?? '',
      settings: io.settings,
      refreshToken,
      scope,
      grantedScope: session.scope ?? undefined,
      signal,
      beforeSend,
    }),
  )
}

/** The value after an answer: with new tokens, or over. The secret is the caller's to keep. */
export function nextSession(
  session: Session,
  generation: number,
  outcome: Extract<RefreshOutcome, { kind: 'success' | 'over' }>,
  now: number,
): Session {
  const { refreshToken: _usedUp, access: _former, ...rest } = session
  const next = { ...rest, generation: generation + 1, issuedAt: now }
  if (outcome.kind === 'over')
    return { ...next, issuedAt: session.issuedAt, ended: { at: now, why: outcome.description ?? null } }
  const { access } = outcome
  return access === undefined ? next : { ...next, access: accessTokenOf(access, now) }
}

/** @param now wall-clock milliseconds of its receipt. */
export function accessTokenOf(
  grant: {
    readonly accessToken: string
    readonly expiresInSeconds: number
    readonly scope: string | undefined
  },
  now: number,
): AccessToken {
  const { accessToken: value, expiresInSeconds: lifetimeSeconds, scope = null } = grant
  return { value, scope, lifetimeSeconds, expiresAt: now + lifetimeSeconds * 1000 }
}

/** The request failed before the note was written. */
function notSent(outcome: RefreshOutcome): Pass {
  if (outcome.kind === 'retry_after') return { ...outcome, kind: 'later' }
  if (outcome.kind === 'not_consumed') throw outcome.error
  throw new Error(`a refresh that was never sent was answered: ${outcome.kind}`)
}

/** Step 6. */
async function settle(
  io: Io,
  files: ProfileFiles,
  was: Session,
  token: Secret,
  reservation: Reservation,
  outcome: RefreshOutcome,
  options: RenewOptions,
): Promise<Pass> {
  const { profile } = files
  switch (outcome.kind) {
    case 'unknown':
      throw interrupted(profile, outcome.why)
    case 'not_consumed':
    case 'retry_after':
      // A refusal says nothing about the earlier use of a token that was sent again.
      if (!reservation.isOwn) throw interrupted(profile, outcome.error.message)
      remove(files, reservation, outcome.error)
      if (outcome.kind === 'not_consumed') throw outcome.error
      return { kind: 'later', afterMs: outcome.afterMs, error: outcome.error }
  }
  const now = sessionNow(files, was)
  if (now?.id !== was.id) {
    // Nothing of it is stored: not over another sign-in, and not after a logout.
    if (reservation.isOwn) removeQuietly(reservation.path, files.disk)
    throw replacedMeanwhile(profile)
  }
  if (now.generation > token.generation) return { kind: 'changed' }
  const next = nextSession(was, token.generation, outcome, io.clock.now())
  if (outcome.kind === 'over') {
    try {
      fill(files, reservation, next)
      stored(files, reservation, next)
    } catch {
      // The note stays, so the token isn't sent again; the service would say the same.
    }
    throw sessionOver(next)
  }
  // A narrowed access token is only for the one who asked for it.
  const { access, ...withoutAccess } = next
  await storeValue(
    io,
    files,
    reservation,
    options.scope === undefined ? next : withoutAccess,
    outcome.refreshToken,
  )
  if (access === undefined) throw noAccessToken(profile, outcome.why ?? 'it is missing')
  return { kind: 'done', token: access }
}
