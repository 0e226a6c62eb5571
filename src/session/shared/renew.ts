import { CliError, Exit } from '../../errors.ts'
import { withProfile } from '../../settings/profiles.ts'
import { quietly } from '../../storage/file-errors.ts'
import { notSignedIn, sessionOver, tokenLost } from '../messages.ts'
import { failureOf, type Reservation, reserveOwn } from '../note.ts'
import { adoptable, type Renewal, type SendableToken, type SessionStore } from '../renew.ts'
import { RESERVED_BYTES, requireSameService, type Session } from '../session-file.ts'
import { NoAnswer } from './etcd.ts'
import { keepLocal, pendingName, removeLocal } from './local.ts'
import {
  interruptedAt,
  newId,
  openShared,
  type Pending,
  readAndOffer,
  type SharedRevision,
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
/** Enough for a sealed value with any refresh token. */
const PENDING_BYTES = 2 * RESERVED_BYTES
/** The pause between two looks at another machine's renewal, with jitter. */
const POLL_MS = 1000

/**
 * The value of the profile in etcd, and what this machine keeps of it, for the steps of docs/fleet.md. For one revision of the value
 * only one swap wins, so for one token only one process of the fleet ever sends it.
 */
export function openEtcd({ io, options, commit }: Renewal): SessionStore {
  const store = openShared(io)
  const { files } = store
  /** Names the notes of this renewal. */
  const writer = newId(16)
  /** The note of another machine that this process is waiting for, and since when. */
  let other: { readonly writer: string; readonly since: number } | undefined
  /** The token that the session had when it was read first. */
  let first: string | undefined
  /** Takes the space for a write that etcd may not confirm. @throws CliError `cannot_write`, exit 1. */
  const reservePending = (session: Session) => reserveOwn(files, pendingName(session, writer), PENDING_BYTES)
  return {
    async hold(work) {
      // What etcd doesn't confirm is kept there.
      await files.prepare()
      return work()
    },
    async read() {
      for (;;) {
        const found = await io.waiting('Waiting for etcd …', readAndOffer(store))
        if (found === undefined) throw notSignedIn(files.profile)
        const { session, note } = found
        requireSameService(session, io)
        if (session.ended !== undefined) throw sessionOver(session)
        const token = `${session.id}.${session.generation}`
        first ??= token
        const access = adoptable(session, io, first === token ? options : { ...options, reason: 'stale' })
        if (access !== undefined) {
          await keepLocal(files, session)
          return { kind: 'done', token: access }
        }
        if (note === null || (await mayTakeOver(found, note))) return take(found)
      }
    },
  }

  /**
   * Another machine is at it, or was: waits for it a little. A retry takes over only a note that is marked unknown, or the very one
   * that it has waited for.
   *
   * @throws CliError `refresh_interrupted`, exit 4, once the outcome counts as unknown.
   */
  async function mayTakeOver({ session, revision }: SharedRevision, note: Note): Promise<boolean> {
    if (note.unknown && options.retryInterrupted) return true
    if (note.unknown) throw interruptedAt(session.profile, note, io)
    const now = io.clock.monotonic()
    if (other?.writer !== note.writer) {
      other = { writer: note.writer, since: now }
      await io.note(`Waiting for ${note.host}, which is renewing this session …`)
    }
    if (now - other.since < OTHERS_LIMIT_MS) {
      await io.clock.sleep(POLL_MS * (0.5 + io.random.fraction()), io.interrupts.signal)
      return false
    }
    if (options.retryInterrupted) return true
    const unknown: Note = { ...note, unknown: 'said by another' }
    const marked = await swapShared(store, revision, { session, note: unknown }, NOTE_LIMIT_MS)
    if (marked.isDone) throw interruptedAt(session.profile, unknown, io)
    return false
  }

  /** Step 3 of docs/fleet.md: the note, and with it the right to send the token. */
  async function take({ session, note, revision }: SharedRevision): ReturnType<SessionStore['read']> {
    commit()
    const own: Note = {
      writer,
      host: io.program.host,
      sentAt: io.clock.now(),
      ...(note !== null && { isRetry: true }),
    }
    const began = io.clock.monotonic()
    /** By the clock that says more: a machine may have been stopped meanwhile. */
    const elapsed = () => Math.max(io.clock.now() - own.sentAt, io.clock.monotonic() - began)
    let noted: SharedRevision | undefined
    try {
      noted = (await swapShared(store, revision, { session, note: own }, NOTE_LIMIT_MS)).found
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      if (!(error instanceof NoAnswer && error.mayBeApplied)) throw nothingSent(error)
      // It may still be written.
      quietly(() => fill(reservePending(session), { kind: 'cancel', revision }))
      throw own.isRetry ? interruptedAt(session.profile, own, io, error.message) : nothingSent(error)
    }
    if (noted?.note?.writer !== writer || noted.note.unknown) return { kind: 'changed' }
    return sendable(noted, own, elapsed)
  }

  /** Steps 4 to 6, of one token. @param elapsed milliseconds since its note was begun */
  function sendable(noted: SharedRevision, own: Note, elapsed: () => number): SendableToken {
    const { session, note } = noted
    const { profile, id, generation } = session
    let pending: Reservation | undefined
    /** The next command has to bring it to etcd. */
    const keep = () => {
      pending?.close()
      pending = undefined
    }
    return {
      kind: 'sendable',
      session,
      value: session.refreshToken ?? '',
      generation,
      settings: { ...io.settings, httpTimeoutMs: ANSWER_LIMIT_MS },
      isRetry: own.isRetry === true,
      beforeSend() {
        // Others may count the token as lost.
        if (elapsed() > NOTE_LIMIT_MS) throw tooLate()
        pending = reservePending(session)
        return true
      },
      async leave() {
        await bring({ session, note: { ...own, unknown: 'said by its sender' } })
      },
      async clear() {
        const end = await bring({ session, note: withdrawn(note) })
        if (end !== 'unanswered' || own.isRetry) return
        quietly(() => {
          pending ??= reservePending(session)
          fill(pending, { kind: 'cancel', revision: '' })
          keep()
        })
      },
      async store(next, refreshToken) {
        if (refreshToken === undefined) {
          await bring({ session: next, note: null })
          removeLocal(files)
          return 'stored'
        }
        // First on this machine, then in etcd.
        const sealed = await seal({ session: { ...next, refreshToken }, note: null }, store.access)
        // What can't be kept on this machine may still reach etcd.
        const failure = failureOf(() => pending && fill(pending, { kind: 'tokens', sealed }))
        const end = await bring(sealed)
        if (end === 'elsewhere') return 'elsewhere'
        if (end === 'unanswered') {
          if (failure !== undefined)
            throw tokenLost(profile, "etcd didn't confirm it, and this machine can't keep it", failure)
          keep()
          const refresh = withProfile('mailclaim auth refresh', profile)
          await io.warn(
            `etcd didn't confirm the new token: this machine keeps it; to bring it there: ${refresh}`,
          )
        }
        await keepLocal(files, next)
        return 'stored'
      },
      interrupted: (why) => interruptedAt(profile, own, io, why),
      close: () => pending?.discard(),
    }

    /**
     * Brings an outcome to etcd, until it is acknowledged or the time is up. New tokens, which are sealed already, win: as long as
     * etcd holds the same sign-in, not ended, at a lower generation, they are written whatever note is there. Anything else is written
     * only over one's own note.
     */
    async function bring(next: string | SharedValue): Promise<'done' | 'unanswered' | 'elsewhere'> {
      const isTokens = typeof next === 'string'
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
          const isOurs = isTokens ? found.session.ended === undefined : found.note?.writer === writer
          if (found.session.generation !== generation || !isOurs) return 'elsewhere'
          revision = found.revision
        } catch (error) {
          if (!(error instanceof CliError)) throw error
          return 'unanswered'
        }
      }
    }
  }
}

const fill = (reservation: Reservation, pending: Pending) => reservation.fill(JSON.stringify(pending))

/** Before anything was sent. */
function nothingSent(cause: CliError): CliError {
  const { code, exit, message, hint } = cause
  return new CliError(code, exit, `${message}; nothing was sent`, { hint, cause })
}

/** The note was in etcd for so long that others may count it as lost. */
function tooLate(): CliError {
  const message = 'it took too long to reach the service; nothing was sent'
  return new CliError('store_unavailable', Exit.unavailable, message, { hint: 'run the command again' })
}
