import type { Secret } from '../credentials/store.ts'
import type { CliError } from '../errors.ts'
import type { LockOptions, STILL_HELD } from '../storage/lock.ts'
import type { AccessToken } from './access-token.ts'
import type { SessionRecord, SignIn } from './record.ts'

/** That a refresh token may have been sent, with no known outcome. */
export interface JournalEntry {
  /** Tells an entry from a later one of the same token. */
  readonly id: string
  /** Wall-clock milliseconds; undefined if the entry doesn't say. */
  readonly sentAt: number | undefined
  /** The machine that wrote it, if several share the session and the entry says so. */
  readonly host?: string | null
  /** Whether whoever wrote it may still be waiting for the answer. */
  readonly isBeingSent: boolean
}

/** A sign-in as a store keeps it: one value, with everything that a refresh reads and replaces. */
export interface SessionValue {
  readonly record: SignIn
  readonly secret: Secret
  /** The access token that came with the secret, or with an earlier one. */
  readonly token: AccessToken | undefined
  readonly journal: JournalEntry | undefined
}

/** The value as it was read or written, to be compared with what is stored when it is replaced. */
export interface Snapshot extends SessionValue {
  /** Differs after each change. What it means is up to the store. */
  readonly revision: string
}

export interface Stored {
  readonly value: Snapshot
  /** What couldn't be stored, although the session is safe: the error for whoever asked for just that. */
  readonly loss?: CliError | undefined
}

/** The stored session of a profile, open for a refresh. */
export interface OpenSession {
  /**
   * Reads the value. `lost`: another process may be changing it, so everything has to be read again.
   *
   * @throws CliError exit 4 or 7: the value can't be read or must not be used.
   */
  read(): Promise<Snapshot | 'lost'>
  /** Whatever can fail before a token is sent and needs no connection. @throws CliError: nothing was sent. */
  prepare(): void
  /**
   * Replaces the value, durably, if it is still the one that was read; of any number of processes that replace the same
   * snapshot, one succeeds. The store of this machine answers without a promise: it is asked between two steps of a
   * connection.
   *
   * @param until by the monotonic clock: when to stop trying to write a journal entry. What comes after it takes its time.
   * @returns `lost` if somebody else has replaced it.
   * @throws CliError that says what became of the tokens. A journal entry may be there all the same, and nothing is sent.
   */
  compareAndSwap(
    seen: Snapshot,
    next: SessionValue,
    until?: number,
  ): Stored | 'lost' | Promise<Stored | 'lost'>
  /** The token that was sent, if one was, is dealt with. Never throws. */
  release(): void
}

/** Where the session of a profile is kept. */
export interface SessionStore {
  /** The access token as it is stored; undefined if there is none. @param until by the monotonic clock: the last moment. */
  accessToken(until?: number): Promise<AccessToken | undefined>
  /**
   * Runs work on the stored session, after `meanwhile` has found no result. Stores on this machine hold their locks
   * meanwhile. Runs it again, after a pause, as long as it returns `STILL_HELD`.
   *
   * @param usable checks the session before its secret is read.
   * @throws CliError `session_busy`, exit 7, after the deadline.
   */
  open<T>(
    options: LockOptions<T>,
    usable: (record: SessionRecord | SignIn | undefined) => void,
    work: (session: OpenSession) => Promise<T | typeof STILL_HELD>,
  ): Promise<T>
  /** Milliseconds that the answer to a refresh may take: others must not give it up for interrupted meanwhile. */
  readonly refreshLimitMs: number
  /** How often the work is begun again if another process keeps getting ahead of it. */
  readonly tries: number
  /** The error after that. */
  overtaken(): CliError
}
