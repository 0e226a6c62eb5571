import { CliError } from '../../errors.ts'
import type { RefreshOutcome } from '../../oauth/token-endpoint.ts'
import { backoff } from '../../service/retry.ts'
import type { Io } from '../../terminal/io.ts'
import { noAccessToken, notSignedIn, replacedMeanwhile, sessionOver, tokenLost } from '../messages.ts'
import { nextSession, type RenewOptions, sendOnce } from '../renew.ts'
import { type AccessToken, isFresh, requireSameService } from '../session-file.ts'
import { Unanswered } from './etcd.ts'
import { keepLocal, removeLocal } from './local.ts'
import { interruptedAt, nothingSent, tooLate } from './messages.ts'
import {
  type Found,
  newId,
  openShared,
  type Reserved,
  readAndOffer,
  reservePending,
  type SharedStore,
  swapShared,
  withdrawn,
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
/** The pause between two looks at another machine's renewal, with jitter. */
const POLL_MS = 1000
/** How long a refusal that passes, such as a 429, is waited for. */
const RETRY_LIMIT_MS = 30_000

/** One renewal, which may take several passes. */
interface Renewal {
  readonly io: Io
  readonly store: SharedStore
  readonly options: RenewOptions
  /** Names the notes of this renewal. */
  readonly writer: string
  /** The note of another machine that this process is waiting for, and since when. */
  other?: { readonly writer: string; readonly since: number; isOver?: true }
  /** The token that the session had when it was read first. */
  first?: string
}

/** What one pass came to. */
type Pass =
  | { readonly kind: 'done'; readonly token: AccessToken }
  /** Somebody else has written. */
  | { readonly kind: 'changed' }
  /** The token is unused, and waiting is enough. */
  | { readonly kind: 'later'; readonly afterMs: number | undefined; readonly error: CliError }

/**
 * Renews the access token of a session that machines share, in the steps of docs/fleet.md. For one revision of the value only one
 * swap wins, so for one token only one process of the fleet ever sends it.
 *
 * @returns the new access token, or the one that another machine got meanwhile
 * @throws CliError of custody; `store_unavailable`, exit 7, if etcd doesn't answer: then nothing was sent
 */
export async function renewShared(
  io: Io,
  options: RenewOptions,
  store: SharedStore = openShared(io),
): Promise<AccessToken> {
  const renewal: Renewal = { io, store, options, writer: newId(16) }
  // What etcd doesn't confirm is kept there.
  await store.files.prepare()
  const end = io.clock.monotonic() + RETRY_LIMIT_MS
  for (let tries = 1; ; ) {
    const result = await pass(renewal)
    if (result.kind === 'done') return result.token
    if (result.kind === 'changed') continue
    const wait = Math.max(result.afterMs ?? 0, backoff(tries++, io.random))
    if (io.clock.monotonic() + wait >= end) throw result.error
    await io.clock.sleep(wait, io.interrupts.signal)
  }
}

/** Steps 1 to 6, once. */
async function pass(renewal: Renewal): Promise<Pass> {
  const { io, store, options } = renewal
  const found = await io.waiting('Waiting for etcd …', readAndOffer(store))
  if (found === undefined) throw notSignedIn(store.files.profile)
  const { session, note } = found
  requireSameService(session, io)
  if (session.ended !== undefined) throw sessionOver(session)
  const token = `${session.id}.${session.generation}`
  renewal.first ??= token
  // Step 1.
  const { access } = session
  const isOthers = renewal.first !== token || options.reason !== 'asked'
  if (isOthers && access !== undefined && access.value !== options.outdated && options.scope === undefined) {
    if (isFresh(access, io.clock.now())) {
      await keepLocal(store.files, session)
      return { kind: 'done', token: access }
    }
  }
  // Step 2.
  if (note !== null && !mayTakeOver(renewal, note)) return waitFor(renewal, found, note)
  return io.interrupts.shield(() => take(renewal, found))
}

/** A retry takes over only a note that is marked unknown, or the very one that it has waited for. */
function mayTakeOver({ options, other }: Renewal, { unknown, writer }: Note): boolean {
  if (!options.retryInterrupted) return false
  return unknown === true || (other?.isOver === true && other.writer === writer)
}

/** Another machine is at it, or was. */
async function waitFor(renewal: Renewal, { session, revision }: Found, note: Note): Promise<Pass> {
  const { io, store, options } = renewal
  if (note.unknown) throw interruptedAt(session.profile, note, io)
  const now = io.clock.monotonic()
  if (renewal.other?.writer !== note.writer) {
    renewal.other = { writer: note.writer, since: now }
    await io.note(`Waiting for ${note.host}, which is renewing this session …`)
  }
  if (now - renewal.other.since < OTHERS_LIMIT_MS) {
    await io.clock.sleep(POLL_MS * (0.5 + io.random.fraction()), io.interrupts.signal)
    return { kind: 'changed' }
  }
  if (options.retryInterrupted) {
    renewal.other = { ...renewal.other, isOver: true }
    return { kind: 'changed' }
  }
  const unknown: SharedValue = { session, note: { ...note, unknown: true } }
  const marked = await swapShared(store, revision, unknown, NOTE_LIMIT_MS)
  if (marked.isDone) throw interruptedAt(session.profile, note, io)
  return { kind: 'changed' }
}

/** Step 3: the note, and with it the right to send the token. */
async function take(renewal: Renewal, { session, note, revision }: Found): Promise<Pass> {
  const { io, store, writer } = renewal
  const own: Note = {
    writer,
    host: io.program.host,
    sentAt: io.clock.now(),
    ...(note !== null && { isRetry: true }),
  }
  const began = { wall: own.sentAt, monotonic: io.clock.monotonic() }
  const elapsed = () => Math.max(io.clock.now() - began.wall, io.clock.monotonic() - began.monotonic)
  let noted: Found | undefined
  try {
    noted = (await swapShared(store, revision, { session, note: own }, NOTE_LIMIT_MS)).found
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    if (!(error instanceof Unanswered)) throw nothingSent(error)
    // It may still be written.
    keep(() => reservePending(store, session, writer).fill({ kind: 'cancel', revision }))
    throw own.isRetry ? interruptedAt(session.profile, own, io, error.message) : nothingSent(error)
  }
  if (noted?.note?.writer !== writer || noted.note.unknown) return { kind: 'changed' }
  return send(renewal, noted, own, elapsed)
}

/** The file of this machine that takes what etcd doesn't confirm. */
interface KeptFile {
  reserved?: Reserved
  /** Whether the next command has to bring it to etcd. */
  isKept?: true
}

/** Steps 4 and 5. */
async function send(renewal: Renewal, noted: Found, own: Note, elapsed: () => number): Promise<Pass> {
  const { io, store, options, writer } = renewal
  const { session } = noted
  const file: KeptFile = {}
  const settings = { ...io.settings, httpTimeoutMs: ANSWER_LIMIT_MS }
  try {
    const outcome = await sendOnce({ ...io, settings }, session, session.refreshToken ?? '', {
      scope: options.scope,
      // A note is in etcd: nothing but an answer ends the request.
      signal: new AbortController().signal,
      beforeSend() {
        // A machine that was stopped meanwhile: others may count the token as lost.
        if (elapsed() > NOTE_LIMIT_MS) throw tooLate()
        file.reserved = reservePending(store, session, writer)
      },
    })
    return await settle(renewal, noted, own, outcome, file, elapsed)
  } finally {
    if (!file.isKept) file.reserved?.remove()
  }
}

async function settle(
  renewal: Renewal,
  noted: Found,
  own: Note,
  outcome: RefreshOutcome,
  file: KeptFile,
  elapsed: () => number,
): Promise<Pass> {
  const { io, store, writer } = renewal
  const { session, note } = noted
  const { profile } = session
  const put = (next: SharedValue) => bring(store, noted, next, own, false, elapsed)
  switch (outcome.kind) {
    case 'unknown':
      await put({ session, note: { ...own, unknown: true } })
      throw interruptedAt(profile, own, io, outcome.why)
    case 'over': {
      const next = nextSession(session, session.generation, outcome, io.clock.now())
      await put({ session: next, note: null })
      removeLocal(store.files)
      throw sessionOver(next)
    }
    case 'success':
      return storeTokens(renewal, noted, own, outcome, file, elapsed)
  }
  // The token is unused.
  const end = await put({ session, note: withdrawn(note) })
  if (end === 'unanswered' && !own.isRetry)
    keep(() => {
      file.reserved ??= reservePending(store, session, writer)
      file.reserved.fill({ kind: 'cancel', revision: '' })
      file.isKept = true
    })
  // A refusal says nothing about the earlier use of a token that was sent again.
  if (own.isRetry && file.reserved !== undefined) throw interruptedAt(profile, own, io, outcome.error.message)
  if (outcome.kind === 'not_consumed') throw outcome.error
  return { kind: 'later', afterMs: outcome.afterMs, error: outcome.error }
}

/** Step 5: first on this machine, then in etcd. */
async function storeTokens(
  { io, store, options }: Renewal,
  noted: Found,
  own: Note,
  outcome: Extract<RefreshOutcome, { readonly kind: 'success' }>,
  file: KeptFile,
  elapsed: () => number,
): Promise<Pass> {
  const { profile, generation } = noted.session
  const next = nextSession(noted.session, generation, outcome, io.clock.now())
  const { access, ...withoutAccess } = next
  // A narrowed access token is only for the one who asked for it.
  const kept = options.scope === undefined ? next : withoutAccess
  const sealed = await seal(
    { session: { ...kept, refreshToken: outcome.refreshToken }, note: null },
    store.access,
  )
  const failure = keep(() => file.reserved?.fill({ kind: 'tokens', sealed }))
  const end = await bring(store, noted, sealed, own, true, elapsed)
  if (end === 'elsewhere') throw replacedMeanwhile(profile)
  if (end === 'unanswered') {
    if (failure !== undefined)
      throw tokenLost(profile, "etcd didn't confirm it, and this machine can't keep it", failure)
    file.isKept = true
    await io.warn(
      "etcd didn't confirm the new token: this machine keeps it; to bring it there: mailclaim auth refresh",
    )
  }
  await keepLocal(store.files, kept)
  if (access === undefined) throw noAccessToken(profile, outcome.why ?? 'it is missing')
  return { kind: 'done', token: access }
}

/**
 * Brings an outcome to etcd, until it is acknowledged or the time is up. New tokens win: as long as etcd holds the same sign-in, not
 * ended, at a lower generation, they are written whatever note is there. Anything else is written only over one's own note.
 */
async function bring(
  store: SharedStore,
  noted: Found,
  next: string | SharedValue,
  own: Note,
  isTokens: boolean,
  elapsed: () => number,
): Promise<'done' | 'unanswered' | 'elsewhere'> {
  const { id, generation } = noted.session
  let { revision } = noted
  for (;;) {
    try {
      const { isDone, found } = await swapShared(store, revision, next, SETTLE_LIMIT_MS - elapsed())
      if (isDone) return 'done'
      // No key at all: only a login or a logout here may say that the tokens are of no use.
      if (found === undefined) return isTokens ? 'unanswered' : 'elsewhere'
      if (found.session.id !== id) return 'elsewhere'
      // Another command of this machine has brought them, and perhaps gone on from there.
      if (isTokens && found.session.generation > generation) return 'done'
      const isOurs = isTokens ? found.session.ended === undefined : found.note?.writer === own.writer
      if (found.session.generation !== generation || !isOurs) return 'elsewhere'
      revision = found.revision
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      return 'unanswered'
    }
  }
}

/** What can't be kept on this machine may still reach etcd. @returns why it can't */
function keep(work: () => unknown): CliError | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    if (error instanceof CliError) return error
    throw error
  }
}
