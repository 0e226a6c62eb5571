import type { Clock } from '../../context.ts'
import { otherCluster, Unanswered } from '../../credentials/etcd/client.ts'
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
  withProfile,
} from '../messages.ts'
import type { SessionRecord, SignIn } from '../record.ts'
import type {
  JournalEntry,
  OpenSession,
  SessionStore,
  SessionValue,
  Snapshot,
  Stored,
} from '../session-store.ts'
import { keepPending, type Offered, readAndOffer, removeQuietly } from './pending.ts'
import {
  type Base,
  isValue,
  type NewContents,
  type Replaced,
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
/**
 * What a read, or the write of a journal entry, may take when a command has no time left. An entry whose confirmation is given
 * up stops the other machines until this one removes it.
 */
const LAST_TRY_MS = 1000

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

  async accessToken(until?: number): Promise<AccessToken | undefined> {
    // Whoever has waited for another machine looks once more when the time is up.
    const { found } = await this.#read(withLastTry(until, this.#context.clock))
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

  async #read(until?: number): Promise<Offered> {
    this.#last = await readAndOffer(this.#context, this.vault, until)
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
              host: journal.host,
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

  async compareAndSwap(seen: Snapshot, next: SessionValue, until?: number): Promise<Stored | 'lost'> {
    return next.journal !== undefined && next.journal !== seen.journal
      ? this.#openJournal(seen, next, withLastTry(until, this.#context.clock))
      : this.#settle(seen, next)
  }

  /** Only when etcd has said that the journal is there may the token leave. */
  async #openJournal(
    seen: Snapshot,
    next: SessionValue,
    until: number | undefined,
  ): Promise<Stored | 'lost'> {
    const writer = this.#vault.newWriter()
    const { clock } = this.#context
    const begun = clock.sinceBoot().seconds
    const journal = { sha256: fingerprint(seen.secret.value), sentAt: next.journal?.sentAt ?? 0 }
    const entered = (revision: string) => ({ ...next, journal: this.#own(writer, next), revision })
    let replaced: Replaced
    try {
      const contents = { ...contentsOf(next), journal }
      replaced = await this.#vault.replace(baseOf(seen), contents, writer, until)
    } catch (error) {
      // It was never sent, or etcd has refused it.
      if (error instanceof CliError && !(error instanceof Unanswered))
        throw nothingSent(seen.record.profile, error)
      return this.#withdraw(seen, entered(seen.revision), error)
    }
    if (replaced.kind === 'lost') return 'lost'
    this.#entered = clock.monotonic()
    const value = entered(revisionOf(replaced.value))
    if (clock.sinceBoot().seconds - begun < LATE_SECONDS) return { value }
    // This process was stopped meanwhile. Soon somebody may decide that it was interrupted, and send the token.
    return this.#withdraw(seen, value)
  }

  #own(writer: string, { journal }: SessionValue): JournalEntry {
    return { id: writer, sentAt: journal?.sentAt, host: this.#vault.host, isBeingSent: true }
  }

  /**
   * Removes a journal entry whose token was not sent, or keeps on this machine that a later command has to.
   *
   * @param error why nobody knows whether the entry is, or will be, in etcd; undefined if it is there.
   */
  async #withdraw(
    seen: Snapshot,
    entered: Snapshot & { readonly journal: JournalEntry },
    error?: unknown,
  ): Promise<'lost'> {
    const { profile } = seen.record
    const { id, sentAt = 0 } = entered.journal
    const kept = this.#keeping(id, seen, baseOf(seen).revision)
    const until = this.#context.clock.monotonic() + PATIENCE_MS
    if (error !== undefined && ((await kept.keep()) || !(error instanceof CliError)))
      throw nothingSent(profile, error)
    const removed = await this.#store(entered, seen, until, kept.keep)
    if (!(removed instanceof CliError)) return 'lost'
    throw kept.path === undefined ? entryMayStay(seen, sentAt, removed) : nothingSent(profile, removed)
  }

  /** The outcome is known: whatever happens to etcd, or to this process, this machine keeps it until it is stored. */
  async #settle(seen: Snapshot, next: SessionValue): Promise<Stored | 'lost'> {
    const isSettled = seen.journal !== undefined && next.journal === undefined
    const kept = this.#keeping(seen.journal?.id ?? '', { ...next, revision: seen.revision }, 'any')
    // Before etcd is asked: this process may be killed meanwhile.
    if (isSettled) await kept.keep()
    const until = isSettled ? this.#entered + PATIENCE_MS : 0
    const stored = await this.#store(seen, next, until, kept.keep).catch((error: unknown) => {
      // The session is somebody else's by now.
      if (kept.path !== undefined && error instanceof CliError) removeQuietly(kept.path)
      throw error
    })
    if (stored instanceof CliError) return this.#notStored(seen, next, stored, kept.path)
    if (kept.path !== undefined) removeQuietly(kept.path)
    return stored
  }

  /**
   * Compares and swaps the outcome in.
   *
   * @param until by the monotonic clock: when the last try ends if etcd fails. There is always one, of its full length.
   * @param keep tried between two of them: no more are needed once this machine keeps the outcome.
   * @returns the error of etcd if it wasn't stored: `Unanswered` if it may be all the same.
   * @throws CliError `session_busy`, exit 7; `not_signed_in`, exit 4: the session is over, or another one is there.
   */
  async #store(
    seen: Snapshot,
    next: SessionValue,
    until: number,
    keep: () => Promise<boolean>,
  ): Promise<Stored | 'lost' | CliError> {
    const { clock } = this.#context
    const isRenewed = next.secret !== seen.secret
    let base = baseOf(seen)
    let end: number | undefined
    let unanswered: Unanswered | undefined
    for (;;) {
      let current: SharedValue
      try {
        const replaced = await this.#vault.replace(base, contentsOf(next), this.#vault.newWriter(), end)
        if (replaced.kind === 'done') return { value: { ...next, revision: revisionOf(replaced.value) } }
        // The new refresh token would be lost: what says that the key is gone has to say so twice.
        current = replaced.current ?? (await this.#readAgain(seen.record, base.cluster, end))
      } catch (error) {
        if (!(error instanceof CliError) || error.code === 'not_signed_in') throw error
        if (error instanceof Unanswered) unanswered = error
        if (until === 0 || (await keep()) || clock.monotonic() + PAUSES_MS[1] >= until)
          return unanswered ?? error
        await clock.sleep(PAUSES_MS[1])
        end = until
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

  async #readAgain(record: SignIn, cluster: string, until: number | undefined): Promise<SharedValue> {
    const found = await this.#vault.read(until)
    if (found.cluster !== cluster) throw otherCluster()
    if (!isValue(found)) throw signedOutMeanwhile(record)
    return found
  }

  /**
   * What keeps a write on this machine, as soon as a directory takes it.
   *
   * @param writer of the journal entry that it settles.
   * @param revision as in `Pending`.
   */
  #keeping(writer: string, next: Snapshot, revision: string) {
    const pending = { writer, revision, cluster: baseOf(next).cluster, next: contentsOf(next) }
    const kept = {
      path: undefined as string | undefined,
      keep: async () => {
        kept.path ??= await keepPending(this.#context, this.#vault, pending)
        return kept.path !== undefined
      },
    }
    return kept
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
      // Even with --quiet: perhaps no other machine can renew the session.
      await this.#context.stderr.write(
        `warning: ${sanitizeLine(`etcd has not confirmed the new refresh token (${error.message}); ${keptAt(path)}. Until it is there, no other machine can renew the session`)}\n`,
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

/** A deadline by the monotonic clock, with time for one more try. */
function withLastTry(until: number | undefined, clock: Clock): number | undefined {
  return until === undefined ? undefined : Math.max(until, clock.monotonic() + LAST_TRY_MS)
}

function keptAt(path: string | undefined): string {
  return path === undefined
    ? NOT_KEPT
    : `it is kept on this machine (${path}), and the next command here puts it into etcd`
}

const NOT_KEPT = 'no directory of this machine takes it either'

function newTokenLost({ profile }: SignIn, error: CliError): CliError {
  const login = loginCommand({ profile })
  if (error instanceof Unanswered) {
    return new CliError(
      error.code,
      error.exit,
      `the service renewed the session of profile ${profile}, but etcd has not confirmed the new refresh token: ${error.message}; ${NOT_KEPT}. It may be stored all the same, even later`,
      {
        hint: `see ${withProfile('mailclaim auth status', profile)}: if etcd answers, and the session is still being renewed after a minute, the token is lost. Then sign in again, for the whole fleet: ${login}`,
        cause: error,
      },
    )
  }
  return new CliError(
    'refresh_token_lost',
    Exit.notSignedIn,
    `the service renewed the session of profile ${profile}, but the new refresh token could not be stored: ${error.message}; ${NOT_KEPT}, so the session cannot continue`,
    {
      hint: `sign in again, for the whole fleet: ${login}. If MAILCLAIM_STATE_DIR is a directory that this machine can write to, the token is kept there`,
      cause: error,
    },
  )
}

/** The value as it is stored. What a session that has ended is worth goes. */
export function contentsOf({ record, secret, token, journal }: SessionValue): NewContents {
  return {
    record: { ...record, store: 'etcd' },
    secret: record.ended === null ? secret : { ...secret, value: 'ended' },
    token: token ?? null,
    journal:
      journal === undefined
        ? null
        : {
            writer: journal.id,
            sha256: fingerprint(secret.value),
            host: journal.host ?? null,
            sentAt: journal.sentAt ?? 0,
          },
  }
}

function revisionOf({ revision, version, base64, cluster, lineage }: Base): string {
  return JSON.stringify({ revision, version, base64, cluster, lineage })
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
 * A moment of any machine, by this one's clocks. Time since boot only adds to what the wall clock says: virtual machines that were
 * resumed from one snapshot have the same boot id. Clocks that differ by less than the lifetime of the token make it younger than
 * it is, never unusable; the service has the last word.
 */
function asHere(then: Moment, lifetimeSeconds: number, clock: Clock): Moment {
  const now = moment(clock)
  const wall = (now.wall - then.wall) / 1000
  const running = then.boot !== null && then.boot === now.boot ? now.sinceBoot - then.sinceBoot : -1
  const age = running < 0 ? wall : Math.max(wall, running)
  return age < 0 && -age < lifetimeSeconds ? now : { ...now, wall: then.wall, sinceBoot: now.sinceBoot - age }
}
