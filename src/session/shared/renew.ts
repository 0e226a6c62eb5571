import { CliError, Exit } from '../../errors.ts'
import { cannotWrite } from '../../storage/file-errors.ts'
import type { Io } from '../../terminal/io.ts'
import { notSignedIn, sessionOver, tokenLost } from '../messages.ts'
import { type Reservation, reserve } from '../note.ts'
import {
  adoptable,
  type Pass,
  type Renewal,
  type RenewOptions,
  renewIn,
  type SendableToken,
  type SessionStore,
} from '../renew.ts'
import { type AccessToken, RESERVED_BYTES, requireSameService, type Session } from '../session-file.ts'
import { Unanswered } from './etcd.ts'
import { keepLocal, pendingName, removeLocal } from './local.ts'
import {
  type Found,
  interruptedAt,
  newId,
  openShared,
  type Pending,
  readAndOffer,
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

/**
 * Renews a session that machines share, in the steps of docs/fleet.md. For one revision of the value only one swap wins, so for one
 * token only one process of the fleet ever sends it.
 *
 * @throws CliError as `renewIn`; `store_unavailable`, exit 7, if etcd doesn't answer: then nothing was sent.
 */
export function renewShared(io: Io, options: RenewOptions): Promise<AccessToken> {
  return renewIn((renewal) => new EtcdStore(renewal), { io, options })
}

/** The value of the profile in etcd, and what this machine keeps of it. */
class EtcdStore implements SessionStore {
  readonly #renewal: Renewal
  readonly #store: SharedStore
  /** Names the notes of this renewal. */
  readonly #writer = newId(16)
  /** The note of another machine that this process is waiting for, and since when. */
  #other: { readonly writer: string; readonly since: number; readonly isOver?: true } | undefined
  /** The token that the session had when it was read first. */
  #first: string | undefined

  constructor(renewal: Renewal) {
    this.#renewal = renewal
    this.#store = openShared(renewal.io)
  }

  async hold(work: () => Promise<AccessToken>): Promise<AccessToken> {
    // What etcd doesn't confirm is kept there.
    await this.#store.files.prepare()
    return work()
  }

  async read(): Promise<Pass | SendableToken> {
    const { io, options } = this.#renewal
    const { files } = this.#store
    for (;;) {
      const found = await io.waiting('Waiting for etcd …', readAndOffer(this.#store))
      if (found === undefined) throw notSignedIn(files.profile)
      const { session, note } = found
      requireSameService(session, io)
      if (session.ended !== undefined) throw sessionOver(session)
      const token = `${session.id}.${session.generation}`
      this.#first ??= token
      const access = adoptable(session, io, this.#first === token ? options : { ...options, reason: 'stale' })
      if (access !== undefined) {
        await keepLocal(files, session)
        return { kind: 'done', token: access }
      }
      if (note === null || this.#mayTakeOver(note)) return this.#take(found)
      await this.#waitFor(found, note)
    }
  }

  /** A retry takes over only a note that is marked unknown, or the very one that it has waited for. */
  #mayTakeOver({ unknown, writer }: Note): boolean {
    if (!this.#renewal.options.retryInterrupted) return false
    return unknown === true || (this.#other?.isOver === true && this.#other.writer === writer)
  }

  /** Another machine is at it, or was. */
  async #waitFor({ session, revision }: Found, note: Note): Promise<void> {
    const { io, options } = this.#renewal
    if (note.unknown) throw interruptedAt(session.profile, note, io)
    const now = io.clock.monotonic()
    if (this.#other?.writer !== note.writer) {
      this.#other = { writer: note.writer, since: now }
      await io.note(`Waiting for ${note.host}, which is renewing this session …`)
    }
    if (now - this.#other.since < OTHERS_LIMIT_MS) {
      await io.clock.sleep(POLL_MS * (0.5 + io.random.fraction()), io.interrupts.signal)
    } else if (options.retryInterrupted) {
      this.#other = { ...this.#other, isOver: true }
    } else {
      const unknown: SharedValue = { session, note: { ...note, unknown: true } }
      const marked = await swapShared(this.#store, revision, unknown, NOTE_LIMIT_MS)
      if (marked.isDone) throw interruptedAt(session.profile, note, io)
    }
  }

  /** Step 3: the note, and with it the right to send the token. */
  async #take({ session, note, revision }: Found): Promise<Pass | SendableToken> {
    this.#renewal.commit()
    const { io } = this.#renewal
    const own: Note = {
      writer: this.#writer,
      host: io.program.host,
      sentAt: io.clock.now(),
      ...(note !== null && { isRetry: true }),
    }
    const began = { wall: own.sentAt, monotonic: io.clock.monotonic() }
    const elapsed = () => Math.max(io.clock.now() - began.wall, io.clock.monotonic() - began.monotonic)
    let noted: Found | undefined
    try {
      noted = (await swapShared(this.#store, revision, { session, note: own }, NOTE_LIMIT_MS)).found
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      if (!(error instanceof Unanswered)) throw nothingSent(error)
      // It may still be written.
      keep(() => fill(this.#reserve(session), { kind: 'cancel', revision }))
      throw own.isRetry ? interruptedAt(session.profile, own, io, error.message) : nothingSent(error)
    }
    if (noted?.note?.writer !== own.writer || noted.note.unknown) return { kind: 'changed' }
    return this.#sendable(noted, own, elapsed)
  }

  /** Takes the space for a write that etcd may not confirm. @throws CliError `cannot_write`, exit 1. */
  #reserve(session: Session): Reservation {
    const name = pendingName(session, this.#writer)
    const reservation = reserve(this.#store.files, name, 'new', PENDING_BYTES)
    if (reservation === undefined) throw cannotWrite(name, new Error('it exists already'))
    return reservation
  }

  /** Steps 4 to 6, of one token. @param elapsed milliseconds since its note was begun */
  #sendable(noted: Found, own: Note, elapsed: () => number): SendableToken {
    const { io } = this.#renewal
    const store = this.#store
    const { session, note } = noted
    const { profile, generation } = session
    let pending: Reservation | undefined
    /** Whether the next command has to bring it to etcd. */
    let isKept = false
    const put = (next: SharedValue) => bring(store, noted, next, own, false, elapsed)
    return {
      session,
      value: session.refreshToken ?? '',
      generation,
      settings: { ...io.settings, httpTimeoutMs: ANSWER_LIMIT_MS },
      isRetry: own.isRetry === true,
      note: () => {
        // A machine that was stopped meanwhile: others may count the token as lost.
        if (elapsed() > NOTE_LIMIT_MS) throw tooLate()
        pending = this.#reserve(session)
        return true
      },
      async leave() {
        await put({ session, note: { ...own, unknown: true } })
      },
      clear: async () => {
        const end = await put({ session, note: withdrawn(note) })
        if (end !== 'unanswered' || own.isRetry) return
        keep(() => {
          pending ??= this.#reserve(session)
          fill(pending, { kind: 'cancel', revision: '' })
          isKept = true
        })
      },
      async store(next, refreshToken) {
        if (refreshToken === undefined) {
          await put({ session: next, note: null })
          removeLocal(store.files)
          return 'stored'
        }
        // First on this machine, then in etcd.
        const sealed = await seal({ session: { ...next, refreshToken }, note: null }, store.access)
        const failure = keep(() => pending && fill(pending, { kind: 'tokens', sealed }))
        const end = await bring(store, noted, sealed, own, true, elapsed)
        if (end === 'elsewhere') return 'elsewhere'
        if (end === 'unanswered') {
          if (failure !== undefined)
            throw tokenLost(profile, "etcd didn't confirm it, and this machine can't keep it", failure)
          isKept = true
          await io.warn(
            "etcd didn't confirm the new token: this machine keeps it; to bring it there: mailclaim auth refresh",
          )
        }
        await keepLocal(store.files, next)
        return 'stored'
      },
      interrupted: (why) => interruptedAt(profile, own, io, why),
      close() {
        if (isKept) pending?.close()
        else pending?.discard()
      },
    }
  }
}

/** Enough for a sealed value with any refresh token. */
const PENDING_BYTES = 2 * RESERVED_BYTES

function fill(reservation: Reservation, pending: Pending): void {
  try {
    reservation.fill(JSON.stringify(pending))
  } catch (error) {
    throw cannotWrite(reservation.path, error)
  }
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

/** Before anything was sent. */
function nothingSent(cause: CliError): CliError {
  const { code, exit, message, hint } = cause
  return new CliError(code, exit, `${message}; nothing was sent`, { hint, cause })
}

/** The note was in etcd for so long that others may count it as lost. */
function tooLate(): CliError {
  return new CliError(
    'store_unavailable',
    Exit.unavailable,
    'it took too long to reach the service; nothing was sent',
    { hint: 'run the command again' },
  )
}
