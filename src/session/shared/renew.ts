import { CliError } from '../../errors.ts'
import type { AccessToken } from '../../oauth/token-endpoint.ts'
import { catchError } from '../../storage/file-errors.ts'
import type { Io } from '../../terminal/io.ts'
import { notSignedInError, sessionOverError, tokenLostError } from '../messages.ts'
import { type Reservation, reserveFile } from '../note.ts'
import {
  advanceSession,
  type PassResult,
  type Renewal,
  replacedSessionError,
  requireAccess,
  retryOrThrow,
  runPasses,
  sendToken,
} from '../renew.ts'
import { findReusableAccess, RESERVED_BYTES, type RenewOptions, requireSameService } from '../session-file.ts'
import { type NotedToken, pendingName, removeLocalCopy, writeLocalCopy } from './local.ts'
import {
  createId,
  deliverAndRead,
  deliverOutcome,
  openShared,
  type SharedSessionAtRevision,
  type SharedStore,
  unknownOutcomeError,
} from './store.ts'
import { type Note, type SharedSession, seal } from './value.ts'

/** Milliseconds for which this process must see another machine's note unchanged before it marks the outcome as unknown. */
const OTHERS_LIMIT_MS = 60_000
/** Milliseconds after the start of a note's compare-and-swap within which the token may still be sent. */
const NOTE_LIMIT_MS = 15_000
/**
 * Milliseconds to wait for the service's response, whatever `--http-timeout` says: other machines rely on this limit when they
 * treat an outcome as unknown.
 */
const ANSWER_LIMIT_MS = 30_000
/** Milliseconds after the start of a note's compare-and-swap within which the outcome of its token is delivered to etcd. */
const SETTLE_LIMIT_MS = 50_000
/**
 * Number of bytes reserved for a pending file (the outcome of a sent token until etcd confirms it): enough for a sealed session
 * with any refresh token.
 */
const PENDING_BYTES = 2 * RESERVED_BYTES
/** Milliseconds between two reads of another machine's note, before jitter. */
const POLL_MS = 1000

/** Observations of this process in earlier passes. */
interface PassHistory {
  /**
   * Sign-in and generation of the session at the first read. If another process has renewed since, even `always` needs no further
   * renewal.
   */
  firstToken?: string
  /** The note of another machine that this process waits for, and the monotonic time in milliseconds of its first read. */
  waitedNote?: { readonly writer: string; readonly since: number }
}

/**
 * Renews the access token of a profile whose session is in etcd, by the steps of docs/fleet.md. Unlike on one machine, the note is
 * written before the connection is made: a compare-and-swap has to be awaited, and nothing can be awaited between connection and
 * first byte. For one revision only one compare-and-swap succeeds, so only one process of the fleet ever sends a token.
 *
 * @throws CliError as `renewLocal`; `unreachable`, exit 7, if etcd doesn't answer
 */
export async function renewShared(io: Io, options: RenewOptions): Promise<AccessToken> {
  const store = openShared(io)
  // Create the directory of the pending file, which keeps an outcome that etcd doesn't confirm.
  await store.files.prepare()
  const history: PassHistory = {}
  return runPasses(io, options, (renewal) => renewOnce(renewal, store, history))
}

/** Performs steps 2 to 6 of docs/fleet.md once. */
async function renewOnce(renewal: Renewal, store: SharedStore, history: PassHistory): Promise<PassResult> {
  const { io, options } = renewal
  const { files } = store

  // Step 2: deliver the outcomes of earlier commands of this machine to etcd, then read the session.
  const found = await io.waiting('Waiting for etcd …', deliverAndRead(store))
  if (found === undefined) throw notSignedInError(files.profile)
  const { session, note: former } = found
  const { id, generation, profile } = session
  requireSameService(session, io)
  if (session.ended !== undefined) throw sessionOverError(session.profile, session.ended.why)
  const token = `${id}.${generation}`
  history.firstToken ??= token
  const access = findReusableAccess(
    session,
    io,
    history.firstToken === token ? options : { ...options, always: false },
  )
  if (access !== undefined) {
    await writeLocalCopy(files, session)
    return { kind: 'done', token: access }
  }
  if (former !== null && !(await mayTakeOver(renewal, store, found, former, history)))
    return { kind: 'waited' }

  renewal.commit()
  // Step 3: write the note, which entitles this process to send the token.
  const noted = await swapNote(store, found)
  if (noted === undefined) return { kind: 'changed' }

  const limited = { ...renewal, io: { ...io, settings: { ...io.settings, httpTimeoutMs: ANSWER_LIMIT_MS } } }
  // Steps 4 and 5: connect, reserve the pending file, and send the refresh token.
  const sent = await sendToken(limited, session, session.refreshToken ?? '', () => {
    // Send nothing with an old note: the response could come after other machines treat the outcome as unknown and let a user retry
    // the token.
    if (noted.elapsed() > NOTE_LIMIT_MS)
      throw new CliError('unreachable', 'it took too long to reach the service; nothing was sent', {
        hint: 'run the command again',
      })
    return reservePending(store, noted.token)
  })

  // Step 6: write the outcome that the response proves.
  if (sent.kind === 'unknown') {
    const note: Note = { ...noted.note, unknown: 'said by its sender' }
    await storeOutcome(store, noted, { session, note }, sent.note)
    throw unknownOutcomeError(store, note, sent.why)
  }
  if (sent.kind === 'unused') {
    await storeOutcome(store, noted, { session, note: former }, sent.note)
    // A refused retry proves nothing about the earlier use of the token, so the outcome is still unknown.
    if (sent.note !== undefined && former !== null)
      throw unknownOutcomeError(store, noted.note, sent.error.message)
    return retryOrThrow(sent)
  }
  const next = advanceSession(session, sent, renewal)
  if (sent.kind === 'over') {
    await storeOutcome(store, noted, { session: next, note: null }, sent.note)
    removeLocalCopy(files)
    throw sessionOverError(profile, sent.description)
  }
  const whole = { ...next, refreshToken: sent.refreshToken }
  const { stored, failure } = await storeOutcome(store, noted, { session: whole, note: null }, sent.note)
  if (stored === undefined) {
    const loss =
      failure && tokenLostError(profile, "etcd didn't confirm it, and this machine can't keep it", failure)
    if (loss !== undefined && (options.always || sent.access === undefined)) throw loss
    const kept = `etcd didn't confirm the new token: this machine keeps it, and its next command in profile ${profile} brings it there`
    await io.warn(loss === undefined ? kept : `${loss.message}; ${loss.hint}`)
  } else if (!(stored.session.id === id && stored.session.generation > generation)) {
    // etcd holds no later generation of this sign-in, so a sign-in or sign-out has replaced the session.
    throw replacedSessionError(profile)
  }
  await writeLocalCopy(files, next)
  return requireAccess(sent, next)
}

/**
 * Decides about another machine's note: waits for the next poll, marks a note unchanged for 60 seconds as unknown, or lets a retry
 * take over a note that is unknown.
 *
 * @returns whether this process may replace the note
 * @throws CliError `refresh_interrupted`, exit 4, if the note is unknown and this is no retry
 */
async function mayTakeOver(
  { io, options }: Renewal,
  store: SharedStore,
  { session, revision }: SharedSessionAtRevision,
  note: Note,
  history: PassHistory,
): Promise<boolean> {
  if (note.unknown && options.retryInterrupted) return true
  if (note.unknown) throw unknownOutcomeError(store, note)
  const now = io.clock.monotonic()
  if (history.waitedNote?.writer !== note.writer) {
    history.waitedNote = { writer: note.writer, since: now }
    await io.say(`Waiting for ${note.host}, which is renewing this session …`)
  }
  if (now - history.waitedNote.since < OTHERS_LIMIT_MS)
    await io.clock.sleep(POLL_MS * (0.5 + io.random.fraction()), io.interrupts.signal)
  else await store.swap(revision, { session, note: { ...note, unknown: 'said by another' } }, NOTE_LIMIT_MS)
  return false
}

/** A revision of the session that contains this process's note. */
type Noted = NonNullable<Awaited<ReturnType<typeof swapNote>>>

/**
 * Writes this process's note into the session by compare-and-swap.
 *
 * @returns the revision with the note; undefined if another process changed the session first
 * @throws CliError `unreachable`, exit 7, or for a retry `refresh_interrupted`, exit 4, if etcd doesn't answer: the note may still
 *   be applied, and then the next command of this machine removes the note
 */
async function swapNote(store: SharedStore, { session, note: former, revision }: SharedSessionAtRevision) {
  const { clock, installation } = store.io
  const note: Note = { writer: createId(store.io, 16), host: installation.host }
  const token = { id: session.id, generation: session.generation, writer: note.writer }
  const startedAt = clock.now()
  const began = clock.monotonic()
  /**
   * Returns the milliseconds since the start of the note's compare-and-swap, by the wall or the monotonic clock, whichever shows
   * more: a suspended machine may have stopped one of them.
   */
  const elapsed = () => Math.max(clock.now() - startedAt, clock.monotonic() - began)
  try {
    const { found } = await store.swap(revision, { session, note }, NOTE_LIMIT_MS)
    if (found?.note?.writer !== note.writer || found.note.unknown) return undefined
    return { ...found, note, token, elapsed }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const sealed = await seal({ session, note: former }, store.access)
    catchError(() => {
      const pending = reservePending(store, token)
      pending.fill(sealed)
      pending.close()
    })
    if (former !== null) throw unknownOutcomeError(store, former, error.message)
    throw error.with({ message: `${error.message}; nothing was sent` })
  }
}

/**
 * Reserves the pending file for the outcome of a token, in case etcd doesn't confirm the outcome.
 *
 * @throws CliError `cannot_write`, exit 1
 */
function reservePending({ files }: SharedStore, token: NotedToken): Reservation {
  return reserveFile(files, pendingName(token), 'new', PENDING_BYTES)
}

/**
 * Writes an outcome into the pending file, then delivers it to etcd. The pending file stays if etcd doesn't confirm in time.
 *
 * @param pending the pending file if it is already reserved
 * @returns `stored`: the session in etcd if etcd answered; `failure`: the error if this machine couldn't write the pending file, in
 *   which case the outcome may still reach etcd
 */
async function storeOutcome(
  store: SharedStore,
  noted: Noted,
  outcome: SharedSession,
  pending: Reservation | undefined,
) {
  const { token, elapsed } = noted
  const sealed = await seal(outcome, store.access)
  let kept = pending
  const failure = catchError(() => {
    kept ??= reservePending(store, token)
    kept.fill(sealed)
  })
  let stored: SharedSessionAtRevision | undefined
  try {
    stored = await deliverOutcome(store, token, outcome, noted, SETTLE_LIMIT_MS - elapsed())
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
  if (stored === undefined && failure === undefined) kept?.close()
  else kept?.discard()
  return { stored, failure }
}
