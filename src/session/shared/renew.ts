import { CliError, Exit } from '../../errors.ts'
import { withProfile } from '../../settings/profiles.ts'
import { quietly } from '../../storage/file-errors.ts'
import { notSignedIn, sessionOver, tokenLost } from '../messages.ts'
import { type Reservation, reserveOwn } from '../note.ts'
import { adoptable, type Renewal, type SendableToken, type SessionStore } from '../renew.ts'
import { RESERVED_BYTES, requireSameService, type Session } from '../session-file.ts'
import { keepLocal, pendingName, removeLocal } from './local.ts'
import { bring, interruptedAt, newId, openShared, readAndOffer, type SharedRevision } from './store.ts'
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
  /** The note of another machine that this process is waiting for, and since when. */
  let other: { readonly writer: string; readonly since: number } | undefined
  /** The token that the session had when it was read first. */
  let first: string | undefined
  /** Takes the space for the outcome of a token, which etcd may not confirm. @throws CliError `cannot_write`, exit 1. */
  const reservePending = ({ id, generation }: Session, { writer }: Note) =>
    reserveOwn(files, pendingName({ id, generation, writer }), PENDING_BYTES)
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
        const access = adoptable(session, io, first === token ? options : { ...options, always: false })
        if (access !== undefined) {
          await keepLocal(files, session)
          return { kind: 'done', token: access }
        }
        if (note === null || (await mayTakeOver(found, note))) return take(found)
      }
    },
  }

  /**
   * Another machine is at it, or was: waits for it a little, or marks its note as unknown. A retry takes over only such a note.
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
    if (now - other.since < OTHERS_LIMIT_MS)
      await io.clock.sleep(POLL_MS * (0.5 + io.random.fraction()), io.interrupts.signal)
    else await store.swap(revision, { session, note: { ...note, unknown: 'said by another' } }, NOTE_LIMIT_MS)
    return false
  }

  /** Step 3 of docs/fleet.md: the note, and with it the right to send the token. */
  async function take({ session, note: former, revision }: SharedRevision): ReturnType<SessionStore['read']> {
    commit()
    const own: Note = { writer: newId(io, 16), host: io.program.host }
    const startedAt = io.clock.now()
    const began = io.clock.monotonic()
    /** By the clock that says more: a machine may have been stopped meanwhile. */
    const elapsed = () => Math.max(io.clock.now() - startedAt, io.clock.monotonic() - began)
    try {
      const { found } = await store.swap(revision, { session, note: own }, NOTE_LIMIT_MS)
      if (found?.note?.writer !== own.writer || found.note.unknown) return { kind: 'changed' }
      return sendable(found, own, former, elapsed)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      // It may still be written.
      const sealed = await seal({ session, note: former }, store.access)
      quietly(() => {
        const pending = reservePending(session, own)
        pending.fill(sealed)
        pending.close()
      })
      if (former !== null) throw interruptedAt(session.profile, former, io, error.message)
      throw error.with({ message: `${error.message}; nothing was sent` })
    }
  }

  /**
   * Steps 4 to 6, of one token.
   *
   * @param former the note that its own has replaced
   * @param elapsed milliseconds since its note was begun
   */
  function sendable(
    noted: SharedRevision,
    own: Note,
    former: Note | null,
    elapsed: () => number,
  ): SendableToken {
    const { session } = noted
    const { profile, id, generation } = session
    let pending: Reservation | undefined
    return {
      kind: 'sendable',
      session,
      value: session.refreshToken ?? '',
      generation,
      settings: { ...io.settings, httpTimeoutMs: ANSWER_LIMIT_MS },
      isRetry: former !== null,
      beforeSend() {
        // Others may count the token as lost.
        if (elapsed() > NOTE_LIMIT_MS) throw tooLate()
        pending = reservePending(session, own)
        return true
      },
      async leave() {
        await settle({ session, note: { ...own, unknown: 'said by its sender' } })
      },
      async clear() {
        await settle({ session, note: former })
      },
      async store(next, refreshToken) {
        if (refreshToken === undefined) {
          await settle({ session: next, note: null })
          removeLocal(files)
          return 'stored'
        }
        const { found, failure } = await settle({ session: { ...next, refreshToken }, note: null })
        if (found === undefined && failure !== undefined)
          throw tokenLost(profile, "etcd didn't confirm it, and this machine can't keep it", failure)
        // A higher generation: another command of this machine has brought it, and perhaps gone on from there.
        const isStored = found?.session.id === id && found.session.generation > generation
        if (found !== undefined && !isStored) return 'elsewhere'
        if (found === undefined) {
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
     * Stores an outcome on this machine, and then brings it to etcd. What etcd doesn't confirm in time stays here.
     *
     * @returns what is in etcd then, if it has answered; and why this machine can't keep the outcome: it may reach etcd all the same
     */
    async function settle(outcome: SharedValue): Promise<{ found?: SharedRevision; failure?: Error }> {
      const sealed = await seal(outcome, store.access)
      const failure = quietly(() => {
        pending ??= reservePending(session, own)
        pending.fill(sealed)
      })
      try {
        const token = { id, generation, writer: own.writer }
        const found = await bring(store, token, outcome, noted, SETTLE_LIMIT_MS - elapsed())
        if (found !== undefined) return { found }
      } catch (error) {
        if (!(error instanceof CliError)) throw error
      }
      if (failure !== undefined) return { failure }
      pending?.close()
      pending = undefined
      return {}
    }
  }
}

/** The note was in etcd for so long that others may count it as lost. */
function tooLate(): CliError {
  const message = 'it took too long to reach the service; nothing was sent'
  return new CliError('store_unavailable', Exit.unavailable, message, { hint: 'run the command again' })
}
