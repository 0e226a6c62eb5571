import { createHash } from 'node:crypto'
import { constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { createDurable, isThere, removeDurable, writeDurable } from '../storage/durable-file.ts'
import { closeQuietly } from '../storage/file-errors.ts'
import { journalFormat } from '../storage/file-formats.ts'
import { readJson } from '../storage/json-file.ts'
import type { FileLocks } from '../storage/lock.ts'
import { namesIn } from '../storage/private-directory.ts'

/**
 * The journal says which refresh tokens may have been sent, with no known outcome: one file for each, named after the
 * token's SHA-256, written before the first byte of the request and removed once the outcome is known. A file can be
 * created only once, so at most one of several processes with the same token can send it, even if somebody deleted the
 * lock. The process that sends it keeps the file locked, so that others can tell a use in progress from an interrupted one.
 */
const NAME = /^journal\.(?<sha256>[0-9a-f]{64})\.json$/

/** The SHA-256 of a refresh token in hex, which identifies it in the journal. */
export function fingerprint(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex')
}

/**
 * The fingerprints of all tokens whose last use has no known outcome. Read it **before** the token itself: a refresh
 * that ends in between has then stored the successor.
 *
 * @throws CliError `directory_unusable`, exit 1.
 */
export function journaled(directory: string): ReadonlySet<string> {
  return new Set(namesIn(directory).flatMap((name) => NAME.exec(name)?.groups?.['sha256'] ?? []))
}

/**
 * Notes, durably, that a token is about to be sent. Synchronous, because it happens between two steps of a connection.
 *
 * @returns the open entry, to be closed once the outcome is known; undefined if there is an entry already: another process
 *   is sending the token, or did.
 * @throws CliError `cannot_write`, exit 1. Even then there may be an entry, of this process: see `isJournaled`.
 */
export function openJournal(
  directory: string,
  sha256: string,
  now: number,
  locks: FileLocks,
): number | undefined {
  const path = pathOf(directory, sha256)
  let isOurs = false
  try {
    return createDurable(path, journalFormat.text({ sentAt: now }), (fd) => {
      isOurs = true
      isFree(fd, locks)
    })
  } catch (error) {
    if (!isOurs && isThere(path)) return undefined
    throw error
  }
}

/**
 * Notes, durably, that a token in the journal is about to be sent once more.
 *
 * @returns the open entry.
 * @throws CliError `cannot_write`, exit 1.
 */
export function reopenJournal(
  directory: string,
  sha256: string,
  now: number,
  locks: FileLocks,
): number | undefined {
  writeDurable(pathOf(directory, sha256), journalFormat.text({ sentAt: now }))
  const fd = openEntry(directory, sha256, constants.O_WRONLY)
  if (fd !== undefined) isFree(fd, locks)
  return fd
}

/** Whether a process that is alive is sending a token of the journal, or has not dealt with the answer yet. */
export function isBeingSent(directory: string, sha256: string, locks: FileLocks): boolean {
  const fd = openEntry(directory, sha256, constants.O_RDONLY)
  if (fd === undefined) return false
  try {
    return !isFree(fd, locks, { shared: true })
  } finally {
    closeQuietly(fd)
  }
}

/** Locks an entry, if no other process has. An entry that can't be locked counts as free: the lock is only a hint. */
function isFree(fd: number, locks: FileLocks, options: { readonly shared?: boolean } = {}): boolean {
  try {
    return locks.tryLock(fd, options)
  } catch {
    return true
  }
}

function openEntry(directory: string, sha256: string, access: number): number | undefined {
  try {
    return openSync(pathOf(directory, sha256), access | (constants.O_NOFOLLOW ?? 0))
  } catch {
    return undefined
  }
}

export function isJournaled(directory: string, sha256: string): boolean {
  return isThere(pathOf(directory, sha256))
}

/** The outcome is known. @throws CliError `cannot_write`, exit 1: the entry is still there. */
export function closeJournal(directory: string, sha256: string): void {
  removeDurable(pathOf(directory, sha256))
}

/** As `closeJournal`, and never throws: an entry that stays says that a replaced token was sent, which is true. */
export function closeJournalQuietly(directory: string, sha256: string): void {
  try {
    closeJournal(directory, sha256)
  } catch {
    // A later refresh, login, or logout removes it.
  }
}

/** Removes every entry, once no token is left that could be sent. Never throws. */
export function removeJournals(directory: string): void {
  try {
    for (const sha256 of journaled(directory)) closeJournalQuietly(directory, sha256)
  } catch {
    // An entry about a token that nobody has does no harm.
  }
}

/** Wall-clock milliseconds at which a token was about to be sent; undefined if the entry doesn't say. */
export async function journaledAt(directory: string, sha256: string): Promise<number | undefined> {
  // A process that was killed while it wrote leaves an entry without a time. That it is there is what counts.
  const entry = await readJson(pathOf(directory, sha256), journalFormat.parse).catch(() => undefined)
  return entry?.sentAt
}

function pathOf(directory: string, sha256: string): string {
  return join(directory, `journal.${sha256}.json`)
}
