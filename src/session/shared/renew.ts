import { CliError } from '../../errors.ts'
import type { AccessToken } from '../../oauth/token-endpoint.ts'
import { catchError } from '../../storage/file-errors.ts'
import type { Io } from '../../terminal/io.ts'
import { notSignedInError, sessionOverError, tokenLostError } from '../messages.ts'
import { type ReservedFile, reserveFile } from '../note.ts'
import {
  buildNextSession,
  finishRenewedPass,
  finishUnusedPass,
  type RenewalPass,
  type RenewalPassResult,
  replacedSessionError,
  reserveAndSendToken,
  runRenewalPasses,
} from '../renew.ts'
import { findReusableToken, type RenewOptions, requireSameService, SESSION_BYTES } from '../session-file.ts'
import { pendingFileName, type RenewalAttempt, removeCachedSession, writeCachedSession } from './local.ts'
import {
  createHexId,
  deliverAndRead,
  deliverOutcome,
  openSharedStore,
  type SharedSessionAtRevision,
  type SharedStore,
  unknownOutcomeError,
} from './store.ts'
import { type RenewalMarker, type SharedSession, sealSession } from './value.ts'

/** Milliseconds for which this process must see another machine's marker unchanged before it marks the outcome as unknown. */
const FOREIGN_MARKER_LIMIT_MS = 60_000
/** Milliseconds after the start of a marker's compare-and-swap within which the token may still be sent. */
const MARKER_LIMIT_MS = 15_000
/**
 * Milliseconds to wait for the service's response, whatever `--http-timeout` says: other machines rely on this limit when they
 * treat an outcome as unknown.
 */
const ANSWER_LIMIT_MS = 30_000
/** Milliseconds after the start of a marker's compare-and-swap within which the outcome of its token is delivered to etcd. */
const DELIVERY_LIMIT_MS = 50_000
/**
 * Number of bytes reserved for a pending file (the outcome of a sent token until etcd confirms it): enough for a sealed session
 * with any refresh token.
 */
const PENDING_BYTES = 2 * SESSION_BYTES
/** Milliseconds between two reads of another machine's marker, before jitter. */
const POLL_MS = 1000

/** Observations of this process in earlier passes. */
interface SharedRenewal {
  readonly store: SharedStore
  /**
   * Sign-in and generation of the session at the first read. If another process has renewed since, even `always` needs no further
   * renewal.
   */
  firstToken?: string
  /** The marker of another machine that this process waits for, and the monotonic time in milliseconds of its first read. */
  waitedMarker?: { readonly writer: string; readonly since: number }
}

/**
 * Renews the access token of a profile whose session is in etcd, by the steps of docs/fleet.md. Unlike on one machine, the marker is
 * written before the connection is made: a compare-and-swap has to be awaited, and nothing can be awaited between connection and
 * first byte. For one revision only one compare-and-swap succeeds, so only one process of the fleet ever sends a token.
 *
 * @throws CliError as `renewLocalSession`; `unreachable`, exit 7, if etcd doesn't answer
 */
export async function renewSharedSession(io: Io, options: RenewOptions): Promise<AccessToken> {
  const store = openSharedStore(io)
  // Create the directory of the pending file, which keeps an outcome that etcd doesn't confirm.
  await store.files.prepare()
  const renewal: SharedRenewal = { store }
  return runRenewalPasses(io, options, (pass) => runSharedPass(pass, renewal))
}

/** Performs steps 2 to 6 of docs/fleet.md once. */
async function runSharedPass(pass: RenewalPass, renewal: SharedRenewal): Promise<RenewalPassResult> {
  const { io, options } = pass
  const { store } = renewal
  const { files } = store

  // Step 2: deliver the outcomes of earlier commands of this machine to etcd, then read the session.
  const found = await io.waiting('Waiting for etcd …', deliverAndRead(store))
  if (found === undefined) throw notSignedInError(files.profile)
  const { session, marker: former } = found
  const { id, generation, profile } = session
  requireSameService(session, io)
  if (session.ended !== undefined) throw sessionOverError(session.profile, session.ended.why)
  const token = `${id}.${generation}`
  renewal.firstToken ??= token
  const access = findReusableToken(
    session,
    io,
    renewal.firstToken === token ? options : { ...options, always: false },
  )
  if (access !== undefined) {
    await writeCachedSession(files, session)
    return { kind: 'done', token: access }
  }
  if (former !== null && !(await mayTakeOver(pass, renewal, found, former))) return { kind: 'waited' }

  pass.commit()
  // Step 3: write the marker, which entitles this process to send the token.
  const own = await addMarker(store, found)
  if (own === undefined) return { kind: 'changed' }

  const limited = { ...pass, io: { ...io, settings: { ...io.settings, httpTimeoutMs: ANSWER_LIMIT_MS } } }
  // Steps 4 and 5: connect, reserve the pending file, and send the refresh token.
  const sent = await reserveAndSendToken(limited, session, session.refreshToken ?? '', () => {
    // Send nothing with an old marker: the response could come after other machines treat the outcome as unknown and let a user retry
    // the token.
    if (own.elapsed() > MARKER_LIMIT_MS)
      throw new CliError('unreachable', 'it took too long to reach the service; nothing was sent', {
        hint: 'run the command again',
      })
    return reservePending(store, own.attempt)
  })

  // Step 6: write the outcome that the response proves.
  if (sent.kind === 'unknown') {
    const marker: RenewalMarker = { ...own.marker, unknown: 'said by its sender' }
    await storeOutcome(store, own, { session, marker }, sent.reserved)
    throw unknownOutcomeError(store, marker, sent.why)
  }
  if (sent.kind === 'unused') {
    await storeOutcome(store, own, { session, marker: former }, sent.reserved)
    // A refused retry proves nothing about the earlier use of the token, so the outcome is still unknown.
    if (sent.reserved !== undefined && former !== null)
      throw unknownOutcomeError(store, own.marker, sent.error.message)
    return finishUnusedPass(sent)
  }
  const next = buildNextSession(session, sent, pass)
  if (sent.kind === 'over') {
    await storeOutcome(store, own, { session: next, marker: null }, sent.reserved)
    removeCachedSession(files)
    throw sessionOverError(profile, sent.description)
  }
  const whole = { ...next, refreshToken: sent.refreshToken }
  const { stored, failure } = await storeOutcome(store, own, { session: whole, marker: null }, sent.reserved)
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
  await writeCachedSession(files, next)
  return finishRenewedPass(sent, next)
}

/**
 * Decides about another machine's marker: waits for the next poll, marks a marker unchanged for 60 seconds as unknown, or lets a retry
 * take over a marker that is unknown.
 *
 * @returns whether this process may replace the marker
 * @throws CliError `refresh_interrupted`, exit 4, if the marker is unknown and this is no retry
 */
async function mayTakeOver(
  { io, options }: RenewalPass,
  renewal: SharedRenewal,
  { session, revision }: SharedSessionAtRevision,
  marker: RenewalMarker,
): Promise<boolean> {
  if (marker.unknown && options.retryInterrupted) return true
  if (marker.unknown) throw unknownOutcomeError(renewal.store, marker)
  const now = io.clock.monotonic()
  if (renewal.waitedMarker?.writer !== marker.writer) {
    renewal.waitedMarker = { writer: marker.writer, since: now }
    await io.say(`Waiting for ${marker.host}, which is renewing this session …`)
  }
  const unknown = { ...marker, unknown: 'said by another' } as const
  if (now - renewal.waitedMarker.since < FOREIGN_MARKER_LIMIT_MS)
    await io.clock.sleep(POLL_MS * (0.5 + io.random.fraction()), io.interrupts.signal)
  else await renewal.store.swap(revision, { session, marker: unknown }, MARKER_LIMIT_MS)
  return false
}

/** A revision of the session that contains this process's marker. */
type OwnMarker = NonNullable<Awaited<ReturnType<typeof addMarker>>>

/**
 * Writes this process's marker into the session by compare-and-swap.
 *
 * @returns the revision with the marker; undefined if another process changed the session first
 * @throws CliError `unreachable`, exit 7, or for a retry `refresh_interrupted`, exit 4, if etcd doesn't answer: the marker may still
 *   be applied, and then the next command of this machine removes the marker
 */
async function addMarker(store: SharedStore, { session, marker: former, revision }: SharedSessionAtRevision) {
  const { clock, installation } = store.io
  const marker: RenewalMarker = { writer: createHexId(store.io, 16), host: installation.host }
  const attempt: RenewalAttempt = { id: session.id, generation: session.generation, writer: marker.writer }
  const startedAt = clock.now()
  const began = clock.monotonic()
  /**
   * Returns the milliseconds since the start of the marker's compare-and-swap, by the wall or the monotonic clock, whichever shows
   * more: a suspended machine may have stopped one of them.
   */
  const elapsed = () => Math.max(clock.now() - startedAt, clock.monotonic() - began)
  try {
    const { found } = await store.swap(revision, { session, marker }, MARKER_LIMIT_MS)
    if (found?.marker?.writer !== marker.writer || found.marker.unknown) return undefined
    return { ...found, marker, attempt, elapsed }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const sealed = await sealSession({ session, marker: former }, store.access)
    catchError(() => {
      const pending = reservePending(store, attempt)
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
function reservePending({ files }: SharedStore, attempt: RenewalAttempt): ReservedFile {
  return reserveFile(files, pendingFileName(attempt), 'new', PENDING_BYTES)
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
  own: OwnMarker,
  outcome: SharedSession,
  pending: ReservedFile | undefined,
) {
  const { attempt, elapsed } = own
  const sealed = await sealSession(outcome, store.access)
  let kept = pending
  const failure = catchError(() => {
    kept ??= reservePending(store, attempt)
    kept.fill(sealed)
  })
  let stored: SharedSessionAtRevision | undefined
  try {
    stored = await deliverOutcome(store, attempt, outcome, own, DELIVERY_LIMIT_MS - elapsed())
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
  if (stored === undefined && failure === undefined) kept?.close()
  else kept?.discard()
  return { stored, failure }
}
