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
  type SharedRevision,
  type SharedStore,
  unknownOutcomeError,
} from './store.ts'
import { type Note, type SharedValue, seal } from './value.ts'

/** How long another machine's note may stay the same, as seen by this process, before it counts as unknown. */
const OTHERS_LIMIT_MS = 60_000
/** How long after the beginning of its swap a note may still be followed by its token. */
const NOTE_LIMIT_MS = 15_000
/** The answer has exactly this long, whatever `--http-timeout` says: other machines wait for as long. */
const ANSWER_LIMIT_MS = 30_000
/** How long after the beginning of the note its outcome is brought to etcd. */
const SETTLE_LIMIT_MS = 50_000
/** Enough for a sealed value with any refresh token. */
const PENDING_BYTES = 2 * RESERVED_BYTES
/** The pause between two looks at another machine's renewal, with jitter. */
const POLL_MS = 1000

/** What this process has seen in the passes before. */
interface PassHistory {
  /** The token that the session had when it was read first. */
  firstToken?: string
  /** The note of another machine that is waited for, and since when. */
  waitedNote?: { readonly writer: string; readonly since: number }
}

/**
 * Renews the access token of the profile in etcd, in the steps of docs/fleet.md. They are those of this machine's files but for the
 * note: a file can be created between the connection and the first byte, which can't wait for anything; a swap has to be waited for, so
 * it comes before the connection. For one revision of the value only one swap wins, so for one token only one process of the fleet
 * ever sends it.
 *
 * @throws CliError as `renewLocal`; `unreachable`, exit 7, if etcd doesn't answer
 */
export async function renewShared(io: Io, options: RenewOptions): Promise<AccessToken> {
  const store = openShared(io)
  // What etcd doesn't confirm is kept there.
  await store.files.prepare()
  const history: PassHistory = {}
  return runPasses(io, options, (renewal) => renewOnce(renewal, store, history))
}

/** One pass of the steps 2 to 6 of docs/fleet.md. */
async function renewOnce(renewal: Renewal, store: SharedStore, history: PassHistory): Promise<PassResult> {
  const { io, options } = renewal
  const { files } = store

  // Step 2: what is there, after what earlier commands of this machine could not bring.
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

  // Step 3: the note, and with it the right to send the token.
  renewal.commit()
  const noted = await swapNote(store, found)
  if (noted === undefined) return { kind: 'changed' }

  // Steps 4 and 5: once the connection stands, the space for the answer, and the token.
  const limited = { ...renewal, io: { ...io, settings: { ...io.settings, httpTimeoutMs: ANSWER_LIMIT_MS } } }
  const sent = await sendToken(limited, session, session.refreshToken ?? '', () => {
    // Others may count the token as lost.
    if (noted.elapsed() > NOTE_LIMIT_MS)
      throw new CliError('unreachable', 'it took too long to reach the service; nothing was sent', {
        hint: 'run the command again',
      })
    return reservePending(store, noted.token)
  })

  // Step 6: what the answer proves.
  if (sent.kind === 'unknown') {
    const note: Note = { ...noted.note, unknown: 'said by its sender' }
    await storeOutcome(store, noted, { session, note }, sent.note)
    throw unknownOutcomeError(store, note, sent.why)
  }
  if (sent.kind === 'unused') {
    await storeOutcome(store, noted, { session, note: former }, sent.note)
    // The refusal says nothing about the earlier use.
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
    // A higher generation: another command of this machine has brought it, and perhaps gone on from there.
    throw replacedSessionError(profile)
  }
  await writeLocalCopy(files, next)
  return requireAccess(sent, next)
}

/**
 * Another machine is at it, or was: waits for it a little, or marks its note as unknown. A retry takes over only such a note.
 *
 * @throws CliError `refresh_interrupted`, exit 4, once the outcome counts as unknown.
 */
async function mayTakeOver(
  { io, options }: Renewal,
  store: SharedStore,
  { session, revision }: SharedRevision,
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

/** A value with a note of this process in it. */
interface Noted extends SharedRevision {
  readonly note: Note
  readonly token: NotedToken
  /** Milliseconds since its swap was begun, by the clock that says more: a machine may have been stopped meanwhile. */
  readonly elapsed: () => number
}

/**
 * Swaps a note of this process into a value.
 *
 * @returns undefined if another machine was first
 * @throws CliError `unreachable`, exit 7, or for a retry `refresh_interrupted`, exit 4, if etcd doesn't answer: it may still be
 *   written, and then the next command on this machine takes it out
 */
async function swapNote(
  store: SharedStore,
  { session, note: former, revision }: SharedRevision,
): Promise<Noted | undefined> {
  const { clock, program } = store.io
  const note: Note = { writer: createId(store.io, 16), host: program.host }
  const token = { id: session.id, generation: session.generation, writer: note.writer }
  const startedAt = clock.now()
  const began = clock.monotonic()
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

/** Takes the space for the outcome of a token, which etcd may not confirm. @throws CliError `cannot_write`, exit 1. */
function reservePending({ files }: SharedStore, token: NotedToken): Reservation {
  return reserveFile(files, pendingName(token), 'new', PENDING_BYTES)
}

/**
 * Stores an outcome on this machine, and then brings it to etcd. What etcd doesn't confirm in time stays here.
 *
 * @param pending the space for it, if that is taken already
 * @returns what is in etcd then, if it has answered; and why this machine can't keep the outcome: it may reach etcd all the same
 */
async function storeOutcome(
  store: SharedStore,
  noted: Noted,
  outcome: SharedValue,
  pending: Reservation | undefined,
) {
  const { token, elapsed } = noted
  const sealed = await seal(outcome, store.access)
  let kept = pending
  const failure = catchError(() => {
    kept ??= reservePending(store, token)
    kept.fill(sealed)
  })
  let stored: SharedRevision | undefined
  try {
    stored = await deliverOutcome(store, token, outcome, noted, SETTLE_LIMIT_MS - elapsed())
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
  if (stored === undefined && failure === undefined) kept?.close()
  else kept?.discard()
  return { stored, failure }
}
