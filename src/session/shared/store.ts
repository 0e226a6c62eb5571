import type { Clock } from '../../context.ts'
import { otherCluster } from '../../credentials/etcd/client.ts'
import { CliError, Exit } from '../../errors.ts'
import { loginCommand } from '../../settings/login-command.ts'
import { type LockOptions, STILL_HELD, untilFree } from '../../storage/lock.ts'
import { type Moment, moment } from '../../storage/moment.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import type { AccessToken } from '../access-token.ts'
import { fingerprint } from '../journal.ts'
import {
  ENTRY_IS_KEPT,
  entryMayStay,
  entryStays,
  nothingSent,
  notRecorded,
  removedForAll,
  replacedMeanwhile,
  sessionOver,
  signedOutMeanwhile,
} from '../messages.ts'
import type { SessionRecord, SignIn } from '../record.ts'
import type { OpenSession, SessionStore, SessionValue, Snapshot, Stored } from '../session-store.ts'
import { keepPending, type Offered, readAndOffer, removeQuietly } from './pending.ts'
import {
  type Base,
  isValue,
  type NewContents,
  type SharedContext,
  type SharedSettings,
  type SharedValue,
  SharedVault,
} from './vault.ts'

/**
 * How long a journal entry may stay the same, as seen by this process, before its refresh counts as interrupted. No clock of
 * another machine is compared.
 */
const INTERRUPTED_MS = 60_000
/** A journal entry that took longer to write is too old to send the token. */
const LATE_SECONDS = 15
/** With the time to write the entry and to store the tokens, less than others wait. */
const REFRESH_LIMIT_MS = 30_000
/** How long to try if nothing on this machine can keep what etcd doesn't take: others wait longer. */
const PATIENCE_MS = 50_000
/** Between two reads while another machine renews the session. */
const PAUSES_MS = [100, 2000] as const

/** A session that many machines share, in etcd. */
export class SharedStore implements SessionStore {
  /** Each time somebody else has got ahead, and has renewed the session. */
  readonly tries = 100
  readonly refreshLimitMs = REFRESH_LIMIT_MS
  readonly vault: SharedVault
  readonly #context: SharedContext
  /** What was read last. */
  #last: Offered | undefined
  /** The journal entry that was seen last, and since when. */
  #seen: { readonly writer: string; readonly since: number } | undefined

  /** @throws CliError `store_not_configured`, exit 3. */
  constructor(context: SharedContext, settings: SharedSettings) {
    this.#context = context
    this.vault = new SharedVault(context, settings)
  }

  overtaken(): CliError {
    return new CliError(
      'session_busy',
      Exit.unavailable,
      `other machines keep renewing the session of profile ${this.vault.paths.profile}`,
      { hint: 'run this command again' },
    )
  }

  async accessToken(): Promise<AccessToken | undefined> {
    const { found } = await this.#read()
    return isValue(found) ? tokenOf(found, this.#context.clock) : undefined
  }

  async open<T>(
    options: LockOptions<T>,
    usable: (record: SessionRecord | SignIn | undefined) => void,
    work: (session: OpenSession) => Promise<T | typeof STILL_HELD>,
  ): Promise<T> {
    const { meanwhile, ...waiting } = options
    const busy = () => this.overtaken()
    return untilFree<T>(this.#context, { busy, ...waiting, pausesMs: PAUSES_MS }, async () => {
      this.#last = undefined
      const found = await meanwhile?.()
      if (found !== undefined) return found
      const { found: current, blocked } = this.#last ?? (await this.#read())
      if (!isValue(current) && current.signedOut !== undefined)
        throw removedForAll(this.vault.paths.profile, current.signedOut)
      usable(isValue(current) ? current.contents.record : undefined)
      if (!isValue(current)) return STILL_HELD
      if (blocked !== undefined) throw blocked
      const snapshot = this.#snapshot(current)
      return work(new SharedSession(this.#context, this.vault, snapshot))
    })
  }

  async #read(): Promise<Offered> {
    this.#last = await readAndOffer(this.#context, this.vault)
    return this.#last
  }

  #snapshot(value: SharedValue): Snapshot {
    const { record, secret, journal } = value.contents
    const now = this.#context.clock.monotonic()
    if (journal !== null && journal.writer !== this.#seen?.writer)
      this.#seen = { writer: journal.writer, since: now }
    return {
      record,
      secret,
      token: tokenOf(value, this.#context.clock),
      journal:
        journal === null
          ? undefined
          : {
              id: journal.writer,
              sentAt: journal.sentAt,
              isBeingSent: now - (this.#seen?.since ?? now) < INTERRUPTED_MS,
            },
      revision: revisionOf(value),
    }
  }
}

/** The session as one command sees it. */
class SharedSession implements OpenSession {
  readonly #context: SharedContext
  readonly #vault: SharedVault
  readonly #found: Snapshot
  /** When the journal entry was confirmed, by the monotonic clock. */
  #entered = 0

  constructor(context: SharedContext, vault: SharedVault, found: Snapshot) {
    this.#context = context
    this.#vault = vault
    this.#found = found
  }

  async read(): Promise<Snapshot> {
    return this.#found
  }

  prepare(): void {}

  release(): void {}

  async compareAndSwap(seen: Snapshot, next: SessionValue): Promise<Stored | 'lost'> {
    return next.journal !== undefined && next.journal !== seen.journal
      ? this.#openJournal(seen, next)
      : this.#settle(seen, next)
  }

  /** Only when etcd has said that the journal is there may the token leave. */
  async #openJournal(seen: Snapshot, next: SessionValue): Promise<Stored | 'lost'> {
    const writer = this.#vault.newWriter()
    const { clock } = this.#context
    const begun = clock.sinceBoot().seconds
    const journal = { sha256: fingerprint(seen.secret.value), sentAt: next.journal?.sentAt ?? 0 }
    try {
      const replaced = await this.#vault.replace(baseOf(seen), { ...contentsOf(next), journal }, writer)
      if (replaced.kind === 'lost') return 'lost'
      this.#entered = clock.monotonic()
      const value = { ...next, journal: own(writer, next), revision: revisionOf(replaced.value) }
      if (clock.sinceBoot().seconds - begun < LATE_SECONDS) return { value }
      // This process was stopped meanwhile. Soon somebody may decide that it was interrupted, and send the token.
      await this.#settle(value, { ...seen })
      return 'lost'
    } catch (error) {
      // It may be written all the same, even later. Nothing is sent, so a later command here may remove it.
      const { revision, cluster } = baseOf(seen)
      const pending = { writer, revision, cluster, next: contentsOf(seen) }
      const path = await keepPending(this.#context, this.#vault, pending)
      if (path !== undefined || !(error instanceof CliError)) throw nothingSent(seen.record.profile, error)
      const value = { ...next, journal: own(writer, next), revision: seen.revision }
      const removed = await this.#store(value, seen, clock.monotonic() + PATIENCE_MS)
      if (removed instanceof CliError) throw entryMayStay(seen.record.profile, journal.sentAt, removed)
      return 'lost'
    }
  }

  /** The outcome is known: whatever happens to etcd, or to this process, this machine keeps it until it is stored. */
  async #settle(seen: Snapshot, next: SessionValue): Promise<Stored | 'lost'> {
    // Before etcd is asked: this process may be killed meanwhile.
    const isSettled = seen.journal !== undefined && next.journal === undefined
    const path = isSettled ? await this.#keep(seen, next) : undefined
    const isOnlyHere = isSettled && path === undefined
    const until = isOnlyHere ? this.#entered + PATIENCE_MS : 0
    const stored = await this.#store(seen, next, until).catch((error: unknown) => {
      // The session is somebody else's by now.
      if (path !== undefined && error instanceof CliError) removeQuietly(path)
      throw error
    })
    if (stored instanceof CliError) return this.#notStored(seen, next, stored, path)
    if (path !== undefined) removeQuietly(path)
    return stored
  }

  /**
   * Compares and swaps the outcome in.
   *
   * @param until how long to try if etcd fails, by the monotonic clock.
   * @returns the error of etcd if it wasn't stored.
   * @throws CliError `session_busy`, exit 7; `not_signed_in`, exit 4: the session is over, or another one is there.
   */
  async #store(seen: Snapshot, next: SessionValue, until: number): Promise<Stored | 'lost' | CliError> {
    const { clock } = this.#context
    const isRenewed = next.secret !== seen.secret
    let base = baseOf(seen)
    for (;;) {
      let current: SharedValue
      try {
        const replaced = await this.#vault.replace(base, contentsOf(next), this.#vault.newWriter())
        if (replaced.kind === 'done') return { value: { ...next, revision: revisionOf(replaced.value) } }
        // The new refresh token would be lost: what says that the key is gone has to say so twice.
        current = replaced.current ?? (await this.#readAgain(seen.record, base.cluster))
      } catch (error) {
        if (!(error instanceof CliError) || error.code === 'not_signed_in') throw error
        if (clock.monotonic() >= until) return error
        await clock.sleep(PAUSES_MS[1])
        continue
      }
      const { record, secret, journal } = current.contents
      if (record.id !== seen.record.id) throw replacedMeanwhile(seen.record)
      // Ours was stored, and perhaps a later one after it.
      const isStored =
        next.record.ended === null
          ? isRenewed && secret.generation >= next.secret.generation
          : record.ended !== null
      if (isStored) return { value: { ...next, revision: revisionOf(current) } }
      // Somebody else may have used the token since our entry was removed, or sent it once more.
      if (!isRenewed && journal?.writer !== seen.journal?.id) return 'lost'
      base = current
    }
  }

  async #readAgain(record: SignIn, cluster: string): Promise<SharedValue> {
    const found = await this.#vault.read()
    if (found.cluster !== cluster) throw otherCluster()
    if (!isValue(found)) throw signedOutMeanwhile(record)
    return found
  }

  #keep(seen: Snapshot, next: SessionValue): Promise<string | undefined> {
    const { cluster } = baseOf(seen)
    const pending = { writer: seen.journal?.id ?? '', revision: 'any', cluster, next: contentsOf(next) }
    return keepPending(this.#context, this.#vault, pending)
  }

  async #notStored(
    seen: Snapshot,
    next: SessionValue,
    error: CliError,
    path: string | undefined,
  ): Promise<Stored> {
    const { record } = next
    const value = { ...next, revision: seen.revision }
    if (next.secret !== seen.secret) {
      if (path === undefined) throw newTokenLost(record, error)
      // Even with --quiet: until then, no other machine can renew the session.
      await this.#context.stderr.write(
        `warning: ${sanitizeLine(`the new refresh token could not be stored in etcd (${error.message}); ${keptAt(path)}. Until then, no other machine can renew the session`)}\n`,
      )
      return { value }
    }
    // Only an access token: that the outcome isn't known stays as it is.
    if (next.journal !== undefined) return { value, loss: error }
    if (record.ended !== null) return { value, loss: notRecorded(sessionOver(record), error) }
    const message = `that could not be stored: ${error.message}; ${keptAt(path)}`
    const hint = path === undefined ? entryStays(record.profile) : ENTRY_IS_KEPT
    throw new CliError(error.code, error.exit, message, { hint, cause: error })
  }
}

function keptAt(path: string | undefined): string {
  return path === undefined
    ? NOT_KEPT
    : `it is kept on this machine (${path}), and the next command here puts it into etcd`
}

const NOT_KEPT = 'no directory of this machine takes it either'

function newTokenLost({ profile }: SignIn, error: CliError): CliError {
  return new CliError(
    'refresh_token_lost',
    Exit.notSignedIn,
    `the service renewed the session of profile ${profile}, but the new refresh token could not be stored: ${error.message}; ${NOT_KEPT}, so the session cannot continue`,
    {
      hint: `sign in again, for the whole fleet: ${loginCommand({ profile })}. If MAILCLAIM_STATE_DIR is a directory that this machine can write to, the token is kept there`,
      cause: error,
    },
  )
}

const own = (writer: string, { journal }: SessionValue) => ({
  id: writer,
  sentAt: journal?.sentAt,
  isBeingSent: true,
})

/** The value as it is stored. What a session that has ended is worth goes. */
export function contentsOf({ record, secret, token, journal }: SessionValue): NewContents {
  return {
    record: { ...record, store: 'etcd' },
    secret: record.ended === null ? secret : { ...secret, value: 'ended' },
    token: token ?? null,
    journal:
      journal === undefined
        ? null
        : { writer: journal.id, sha256: fingerprint(secret.value), sentAt: journal.sentAt ?? 0 },
  }
}

function revisionOf({ revision, version, base64, cluster }: Base): string {
  return JSON.stringify({ revision, version, base64, cluster })
}

function baseOf({ revision }: Snapshot): Base {
  return JSON.parse(revision)
}

/** The access token, with its age by this machine's clocks. */
export function tokenOf({ contents }: SharedValue, clock: Clock): AccessToken | undefined {
  const { token } = contents
  if (token === null) return undefined
  return { ...token, received: asHere(token.received, token.expiresInSeconds, clock) }
}

/**
 * A moment of another machine, whose time since boot means nothing here. Clocks that differ by less than the lifetime of the
 * token make it younger than it is, never unusable; the service has the last word.
 */
function asHere(then: Moment, lifetimeSeconds: number, clock: Clock): Moment {
  const now = moment(clock)
  if (then.boot !== null && then.boot === now.boot) return then
  const age = (now.wall - then.wall) / 1000
  return age < 0 && -age < lifetimeSeconds ? now : { ...now, wall: then.wall, sinceBoot: now.sinceBoot - age }
}
