import {
  highestInFiles,
  locationsOf,
  readNewest,
  removeOutdatedCopies,
  removeSecrets,
  reserveSpace,
  type SecretStorage,
  storeSuccessor,
} from '../credentials/secret-copies.ts'
import type { CliError } from '../errors.ts'
import { isThere, type PreallocatedFile, removeStaleTemporaries } from '../storage/durable-file.ts'
import { closeQuietly } from '../storage/file-errors.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { type AccessToken, readAccessToken, removeAccessToken, writeAccessToken } from './access-token.ts'
import type { Guard, SessionContext } from './guard.ts'
import {
  closeJournal,
  closeJournalQuietly,
  fingerprint,
  isBeingSent,
  isJournaled,
  journaled,
  journaledAt,
  openJournal,
  reopenJournal,
} from './journal.ts'
import {
  accessTokenNotStored,
  journalStays,
  nothingSent,
  notRecorded,
  recordDeleted,
  replacedMeanwhile,
  sessionOver,
  signedOutMeanwhile,
  tokenLost,
} from './messages.ts'
import type { SessionPaths } from './paths.ts'
import { type OAuthRecord, readRecord, writeRecord } from './record.ts'
import type { OpenSession, SessionValue, Snapshot, Stored } from './session-store.ts'
import { noteSuperseded, readSuperseded } from './superseded.ts'

/**
 * The session on this machine, under its locks. Its revision is the fingerprint of the refresh token: the locks keep others
 * from changing anything, and the journal's entry can be created only once even if somebody deletes their files.
 */
export class LocalSession implements OpenSession {
  readonly #context: SessionContext
  readonly #paths: SessionPaths
  readonly #record: OAuthRecord
  readonly #storage: SecretStorage
  readonly #guard: Guard
  /** Space on the disk for what may have to be written after the answer. */
  #reserved: PreallocatedFile | undefined
  /** The journal's entry of the token that is being sent; open, it tells other processes that this one is alive. */
  #entry: number | undefined

  constructor(
    context: SessionContext,
    paths: SessionPaths,
    record: OAuthRecord,
    storage: SecretStorage,
    guard: Guard,
  ) {
    this.#context = context
    this.#paths = paths
    this.#record = record
    this.#storage = storage
    this.#guard = guard
  }

  async read(): Promise<Snapshot | 'lost'> {
    try {
      return await this.#read()
    } catch (error) {
      // What another process, under a new lock, did meanwhile looks like a damaged session.
      if (this.#guard.isCurrent()) throw error
      return 'lost'
    }
  }

  async #read(): Promise<Snapshot | 'lost'> {
    const { journals } = this.#guard
    // The journal first: a process that finishes its refresh in between stores the successor, then closes the journal.
    const sent = journaled(journals)
    const token = await readAccessToken(this.#paths)
    const known = token?.session === this.#record.id ? token.generation : 1
    const secret = await readNewest(this.#context, this.#storage, known)
    const revision = fingerprint(secret.value)
    removeStaleTemporaries(this.#paths.directory)
    // An older token that is still stored is kept from being sent by its journal entry alone.
    if (secret.inChosenStore && (await removeOutdatedCopies(this.#context, this.#storage, secret, true)))
      for (const other of sent) if (other !== revision) closeJournalQuietly(journals, other)
    const value = { record: this.#record, secret, token, revision }
    if (!sent.has(revision)) return { ...value, journal: undefined }
    const beingSent = isBeingSent(journals, revision, this.#guard)
    // Its sender has ended since the journal was read, with a known outcome.
    if (!beingSent && !isJournaled(journals, revision)) return 'lost'
    const sentAt = await journaledAt(journals, revision)
    return { ...value, journal: { id: `${revision} ${sentAt}`, sentAt, isBeingSent: beingSent } }
  }

  prepare(): void {
    try {
      this.#reserved = reserveSpace(this.#storage)
    } catch (error) {
      throw nothingSent(this.#record.profile, error)
    }
  }

  release(): void {
    this.#reserved?.discard()
    this.#reserved = undefined
    if (this.#entry !== undefined) closeQuietly(this.#entry)
    this.#entry = undefined
  }

  compareAndSwap(seen: Snapshot, next: SessionValue): Stored | 'lost' | Promise<Stored | 'lost'> {
    const value = { ...next, revision: seen.revision }
    if (next.record.ended !== null) return this.#end(value)
    if (next.secret !== seen.secret) return this.#storeSuccessor(seen, value)
    if (next.token !== seen.token) return this.#cache(value)
    if (next.journal !== undefined) return this.#openJournal(seen, next) ? { value } : 'lost'
    if (isJournaled(this.#guard.journals, seen.revision)) closeJournal(this.#guard.journals, seen.revision)
    return { value }
  }

  /**
   * Notes that the token is about to be sent, as its only sender.
   *
   * @returns false if the token must not be sent, because the lock is not ours alone.
   */
  #openJournal(seen: Snapshot, { journal }: SessionValue): boolean {
    const resend = seen.journal !== undefined
    const { journals } = this.#guard
    if (!this.#guard.isCurrent() || (resend && !isJournaled(journals, seen.revision))) return false
    try {
      const open = resend ? reopenJournal : openJournal
      this.#entry = open(journals, seen.revision, journal?.sentAt ?? this.#context.clock.now(), this.#guard)
      if (!resend && this.#entry === undefined) return false
      // If the lock file was deleted, another process may have taken a new one. If it did so after us, it has found the
      // journal entry. If it did so before us, the lock is no longer at its path. And if locks exclude nobody, a successor
      // shows that another process was here: it is stored before its journal entry goes.
      if (this.#guard.isCurrent() && highestInFiles(this.#storage) <= seen.secret.generation) return true
    } catch (error) {
      if (resend || !isJournaled(journals, seen.revision)) throw nothingSent(this.#record.profile, error)
      try {
        closeJournal(journals, seen.revision)
      } catch (failure) {
        throw journalStays(this.#record, error, failure)
      }
      throw nothingSent(this.#record.profile, error)
    }
    if (!resend) closeJournalQuietly(journals, seen.revision)
    return false
  }

  /** Stores the refresh token, then the access token, then closes the journal. */
  async #storeSuccessor(seen: Snapshot, value: Snapshot): Promise<Stored> {
    const { secret, token } = value
    const reserved = this.#reserved ?? reserveSpace(this.#storage)
    this.#reserved = undefined
    const stored = await storeSuccessor(this.#context, this.#storage, secret, reserved).catch(
      (error: unknown) => {
        throw tokenLost(this.#record, error)
      },
    )
    const replaced = await this.#discardIfReplaced()
    if (replaced !== undefined) throw replaced
    const isGone = !isThere(this.#paths.session)
    const failure = await cacheAccessToken(this.#paths, token)
    const isInPlace = stored.problem === undefined
    const areGone = await removeOutdatedCopies(this.#context, this.#storage, secret, isInPlace)
    if (isInPlace) {
      // An older token that is still stored is kept from being sent by its journal entry alone.
      if (areGone) closeJournalQuietly(this.#guard.journals, seen.revision)
    } else {
      // Even with --quiet: the secret is where nobody chose to keep it.
      const then = isGone ? '' : ' and goes back at the next refresh'
      await this.#context.stderr.write(
        `warning: ${sanitizeLine(`the new refresh token could not be stored where it belongs (${stored.problem}). It is kept in a file that only you can read (${stored.location.name})${then}`)}\n`,
      )
    }
    return { value, loss: isGone ? recordDeleted(this.#record) : failure }
  }

  async #cache(value: Snapshot): Promise<Stored> {
    return { value, loss: await cacheAccessToken(this.#paths, value.token) }
  }

  async #end(value: Snapshot): Promise<Stored> {
    const replaced = await this.#discardIfReplaced()
    if (replaced !== undefined) throw replaced
    const ended: OAuthRecord = { ...this.#record, ended: value.record.ended }
    try {
      writeRecord(this.#paths, ended)
      removeAccessToken(this.#paths)
    } catch (failure) {
      // The journal keeps the token from being sent again.
      return { value, loss: notRecorded(sessionOver(ended), failure) }
    }
    // A worthless token may stay in a locked keychain; the next login replaces it.
    await removeSecrets(this.#context, locationsOf(this.#storage))
    closeJournalQuietly(this.#guard.journals, value.revision)
    return { value }
  }

  /**
   * Removes the secrets of the session if somebody has signed in or out since its refresh began, which takes a lock file
   * that was deleted. A directory that is gone as a whole was deleted by something else, which meant no logout.
   *
   * @returns the error to report if so.
   */
  async #discardIfReplaced(): Promise<CliError | undefined> {
    const paths = this.#paths
    const record = this.#record
    const current = await readRecord(paths).catch(() => record)
    if (current?.id === record.id || (current === undefined && !isThere(paths.directory))) return undefined
    const kept = await removeSecrets(this.#context, locationsOf(this.#storage))
    if (kept.length > 0)
      noteSuperseded(paths, [...(await readSuperseded(paths)), ...kept.map(({ location }) => location)])
    return current === undefined ? signedOutMeanwhile(record) : replacedMeanwhile(record)
  }
}

/**
 * Replaces the cached access token. If that fails, removes the old one, which may be wider than what was asked for.
 *
 * @returns what to tell a person who asked for this token.
 */
async function cacheAccessToken(
  paths: SessionPaths,
  token: AccessToken | undefined,
): Promise<CliError | undefined> {
  // This process may have been stopped while another one renewed the session.
  const stored = await readAccessToken(paths)
  if (token !== undefined && stored?.session === token.session && stored.generation > token.generation)
    return undefined
  try {
    if (token !== undefined) writeAccessToken(paths, token)
    // Another process may have signed out meanwhile.
    if (token === undefined || !isThere(paths.session)) removeAccessToken(paths)
    return undefined
  } catch (error) {
    return accessTokenNotStored(error, !isRemoved(paths))
  }
}

function isRemoved(paths: SessionPaths): boolean {
  try {
    removeAccessToken(paths)
    return true
  } catch {
    return false
  }
}
