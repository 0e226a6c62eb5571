import { CliError } from '../../errors.ts'
import type { AccessToken } from '../../oauth/token-endpoint.ts'
import { catchError } from '../../storage/file-errors.ts'
import type { Io } from '../../terminal/io.ts'
import { notSignedInError, sessionOverError, tokenLostError } from '../messages.ts'
import { type AllocatedFile, preallocateFile } from '../note.ts'
import {
  buildNextSession,
  preallocateFileAndSendRefreshToken,
  type RenewalPassInput,
  type RenewalPassResult,
  repeatPassesUntilRenewed,
  requireAccessToken,
  sessionReplacedOrRemovedError,
  toUnusedTokenResult,
} from '../renew.ts'
import { findFreshAccessToken, NOTE_BYTES, type RenewOptions, rejectForeignSession } from '../session-file.ts'
import { outcomeFileName, type RenewalAttemptId, removeCachedSession, writeCachedSession } from './local.ts'
import {
  createHexId,
  deliverOutcomesAndRead,
  deliverRenewalOutcomeToEtcd,
  type EtcdSessionAtRevision,
  type EtcdStore,
  openEtcdStore,
  unknownRefreshOutcomeError,
} from './store.ts'
import { type EtcdSession, type RenewalMarker, sealSession } from './value.ts'

/**
 * Milliseconds for which this process must see another process's renewal marker in etcd before it declares the refresh outcome
 * unknown.
 */
const FOREIGN_MARKER_LIMIT_MS = 60_000
/**
 * Milliseconds that the compare-and-swap of a renewal marker in etcd may take. Also the milliseconds from the start of the
 * compare-and-swap after which the refresh token is no longer sent.
 */
const MARKER_LIMIT_MS = 15_000
/**
 * Milliseconds to wait for the service's response to a refresh request, whatever `--http-timeout` says, because other machines
 * declare the outcome unknown after they have seen the renewal marker for 60 seconds.
 */
const ANSWER_LIMIT_MS = 30_000
/**
 * Milliseconds from the start of a renewal marker's compare-and-swap to the end of the first compare-and-swap of the refresh
 * outcome: less than the 60 seconds after which other machines declare the outcome unknown.
 */
const DELIVERY_LIMIT_MS = 50_000
/** Size in bytes of an outcome file (`pending.…`), whose text is an encrypted session and so longer than `session.json`. */
const OUTCOME_FILE_BYTES = 2 * NOTE_BYTES
/** Milliseconds, before jitter, between two reads of the value in etcd while it has another process's renewal marker. */
const POLL_MS = 1000

/** State that this process keeps from pass to pass while it renews a session in etcd. */
interface EtcdRenewal {
  readonly store: EtcdStore
  /**
   * Sign-in and generation of the session as read in the first renewal pass. If another process has renewed since, even a forced
   * renewal (`always`) uses that process's access token.
   */
  firstToken?: string
  /**
   * Another process's renewal marker, whose removal this process waits for, and when it was first read, in monotonic
   * milliseconds.
   */
  waitedMarker?: { readonly writer: string; readonly since: number }
}

/**
 * Renews the access token of a session in etcd, by the steps of docs/fleet.md. Only the process whose marker etcd accepts by
 * compare-and-swap sends the refresh token. The marker is written before the connection to the service is made: between connection
 * and first byte, `beforeSend` can't wait for etcd.
 *
 * @throws CliError as `renewLocalSession` and `openEtcdStore`; `unreachable`, exit 7, if etcd doesn't answer
 */
export async function renewEtcdSession(io: Io, options: RenewOptions): Promise<AccessToken> {
  const store = openEtcdStore(io)
  // Create the profile's directory, in which an outcome file (`pending.…`) keeps the refresh outcome if etcd doesn't confirm it.
  await store.files.prepare()
  const renewal: EtcdRenewal = { store }
  return repeatPassesUntilRenewed(io, options, (pass) => runEtcdPass(pass, renewal))
}

/** Performs steps 2 to 6 of docs/fleet.md once. */
async function runEtcdPass(pass: RenewalPassInput, renewal: EtcdRenewal): Promise<RenewalPassResult> {
  const { io, options } = pass
  const { store } = renewal
  const { files } = store

  // Step 2: deliver the refresh outcomes in this machine's outcome files (`pending.…`) to etcd, and read the session.
  const found = await io.waiting('Waiting for etcd …', deliverOutcomesAndRead(store))
  if (found === undefined) throw notSignedInError(files.profile)
  const { session, marker: former } = found
  const { id, generation, profile } = session
  rejectForeignSession(session, io)
  if (session.ended !== undefined) throw sessionOverError(session.profile, session.ended.why)
  const token = `${id}.${generation}`
  renewal.firstToken ??= token
  const access = findFreshAccessToken(
    session,
    io,
    renewal.firstToken === token ? options : { ...options, always: false },
  )
  if (access !== undefined) {
    await writeCachedSession(files, session)
    return { kind: 'done', token: access }
  }
  if (former !== null && !(await waitForOtherRenewal(pass, renewal, found, former))) return { kind: 'waited' }

  pass.commit()
  // Step 3: write this process's renewal marker to etcd; only the process that succeeds may send the refresh token.
  const own = await addMarker(store, found)
  if (own === undefined) return { kind: 'changed' }

  const limited = { ...pass, io: { ...io, settings: { ...io.settings, httpTimeoutMs: ANSWER_LIMIT_MS } } }
  // Steps 4 and 5 of the renewal: connect to the service, create the outcome file (`pending.…`), and send the refresh token.
  const sent = await preallocateFileAndSendRefreshToken(limited, session, session.refreshToken ?? '', () => {
    // Send nothing if this attempt began writing its marker too long ago: by the time of the response, other machines
    // could have declared the outcome unknown, and a user could be sending the token again with `--retry-interrupted`.
    if (own.elapsed() > MARKER_LIMIT_MS)
      throw new CliError('unreachable', 'it took too long to reach the service; nothing was sent', {
        hint: 'run the command again',
      })
    return preallocateOutcomeFile(store, own.attempt)
  })

  // Step 6: write the refresh outcome, even if it is unknown, to the outcome file (`pending.…`), then to etcd.
  if (sent.kind === 'unknown') {
    const marker: RenewalMarker = { ...own.marker, unknown: 'said by its sender' }
    await storeOutcome(store, own, { session, marker }, sent.file)
    throw unknownRefreshOutcomeError(store, marker, sent.why)
  }
  if (sent.kind === 'unused') {
    await storeOutcome(store, own, { session, marker: former }, sent.file)
    // Without an outcome file (`pending.…`), nothing was sent. With the file, the service refused this request; but if this pass
    // had replaced another attempt's renewal marker, the service may have accepted the token in that attempt, so the outcome
    // stays unknown.
    if (sent.file !== undefined && former !== null)
      throw unknownRefreshOutcomeError(store, own.marker, sent.error.message)
    return toUnusedTokenResult(sent)
  }
  const next = buildNextSession(session, sent, pass)
  if (sent.kind === 'over') {
    await storeOutcome(store, own, { session: next, marker: null }, sent.file)
    removeCachedSession(files)
    throw sessionOverError(profile, sent.description)
  }
  const whole = { ...next, refreshToken: sent.refreshToken }
  const { stored, failure } = await storeOutcome(store, own, { session: whole, marker: null }, sent.file)
  if (stored === undefined) {
    const loss =
      failure && tokenLostError(profile, "etcd didn't confirm it, and this machine can't keep it", failure)
    if (loss !== undefined && (options.always || sent.access === undefined)) throw loss
    const kept = `etcd didn't confirm the new token: this machine keeps it, and its next command in profile ${profile} brings it there`
    await io.warn(loss === undefined ? kept : `${loss.message}; ${loss.hint}`)
  } else if (!(stored.session.id === id && stored.session.generation > generation)) {
    // etcd holds no later generation of this sign-in: a sign-in or sign-out has replaced the session.
    throw sessionReplacedOrRemovedError(profile)
  }
  await writeCachedSession(files, next)
  return { kind: 'done', token: requireAccessToken(sent, next) }
}

/**
 * Waits a moment for another process's renewal, whose marker is in etcd. Once the marker has stayed the same for 60 seconds,
 * doesn't wait, but writes to etcd that the renewal's outcome is unknown.
 *
 * @returns true if this process may replace the marker, because of `--retry-interrupted`; false to read etcd again
 * @throws CliError `refresh_interrupted`, exit 4, if the outcome is unknown without `--retry-interrupted`
 */
async function waitForOtherRenewal(
  { io, options }: RenewalPassInput,
  renewal: EtcdRenewal,
  { session, revision }: EtcdSessionAtRevision,
  marker: RenewalMarker,
): Promise<boolean> {
  if (marker.unknown && options.retryInterrupted) return true
  if (marker.unknown) throw unknownRefreshOutcomeError(renewal.store, marker)
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

type OwnMarker = NonNullable<Awaited<ReturnType<typeof addMarker>>>

/**
 * Adds this process's marker of a renewal to the value in etcd, by compare-and-swap.
 *
 * @returns the session with the marker; undefined if another process changed the value first
 * @throws CliError as `EtcdStore.swap`; in a retry of an interrupted renewal, `refresh_interrupted`, exit 4, instead. As etcd may
 *   still write the marker after the error, an outcome file (`pending.…`) makes the machine's next command restore the former value
 */
async function addMarker(store: EtcdStore, { session, marker: former, revision }: EtcdSessionAtRevision) {
  const { clock, installation } = store.io
  const marker: RenewalMarker = { writer: createHexId(store.io, 16), host: installation.host }
  const attempt: RenewalAttemptId = { id: session.id, generation: session.generation, writer: marker.writer }
  const startedAt = clock.now()
  const began = clock.monotonic()
  /**
   * Returns the milliseconds since the start of the compare-and-swap, by the clock that shows more: the monotonic clock may
   * stop while the machine is suspended, and the wall clock may be set back.
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
      const file = preallocateOutcomeFile(store, attempt)
      file.fill(sealed)
      file.close()
    })
    if (former !== null) throw unknownRefreshOutcomeError(store, former, error.message)
    throw error.with({ message: `${error.message}; nothing was sent` })
  }
}

/**
 * Creates the outcome file (`pending.…`) of an attempt, with disk space for the outcome.
 *
 * @throws CliError as `preallocateFile`
 */
function preallocateOutcomeFile({ files }: EtcdStore, attempt: RenewalAttemptId): AllocatedFile {
  return preallocateFile(files, outcomeFileName(attempt), 'new', OUTCOME_FILE_BYTES)
}

/**
 * Writes the outcome of a renewal into the outcome file (`pending.…`), then delivers it to etcd. If etcd doesn't confirm in time,
 * the file stays for the next command of this machine. Never throws for etcd or the disk.
 *
 * @param reserved the outcome file, if it already exists
 * @returns `stored`: the value in etcd, undefined if etcd didn't confirm or the key is gone; `failure`: the error if the outcome
 *   file couldn't be written
 */
async function storeOutcome(
  store: EtcdStore,
  own: OwnMarker,
  outcome: EtcdSession,
  reserved: AllocatedFile | undefined,
) {
  const { attempt, elapsed } = own
  const sealed = await sealSession(outcome, store.access)
  let file = reserved
  const failure = catchError(() => {
    file ??= preallocateOutcomeFile(store, attempt)
    file.fill(sealed)
  })
  let stored: EtcdSessionAtRevision | undefined
  try {
    stored = await deliverRenewalOutcomeToEtcd(store, attempt, outcome, own, DELIVERY_LIMIT_MS - elapsed())
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
  if (stored === undefined && failure === undefined) file?.close()
  else file?.discard()
  return { stored, failure }
}
