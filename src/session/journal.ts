import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { createDurable, isThere, removeDurable } from '../storage/durable-file.ts'
import { journalFormat } from '../storage/file-formats.ts'
import { readJson } from '../storage/json-file.ts'
import { namesIn } from '../storage/private-directory.ts'

/**
 * The journal says which refresh tokens may have been sent without a known outcome: one file for each, named after the
 * token's SHA-256, written before the first byte of the request and removed when the outcome is known. A file can be
 * created once only, so of several processes that hold the same token at most one gets to send it, even where somebody
 * deleted the lock between them.
 */
const NAME = /^journal\.(?<sha256>[0-9a-f]{64})\.json$/

/** A refresh token by which the journal knows it without holding it: its SHA-256 in hex. */
export function fingerprint(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex')
}

/**
 * The fingerprints of all tokens whose last use has no known outcome. Read it **before** the token itself: a refresh
 * that ends in between has then stored its successor.
 *
 * @throws CliError `directory_unusable`, exit 1.
 */
export function journaled(directory: string): ReadonlySet<string> {
  return new Set(namesIn(directory).flatMap((name) => NAME.exec(name)?.groups?.['sha256'] ?? []))
}

/**
 * Notes, durably, that a token is about to be sent. Synchronous: it happens between two steps of a connection.
 *
 * @returns false where it is noted already: another process is sending it, or did.
 * @throws CliError `cannot_write`, exit 1. `isJournaled` tells whether the note is there all the same.
 */
export function openJournal(directory: string, sha256: string, now: number): boolean {
  return createDurable(pathOf(directory, sha256), journalFormat.text({ sentAt: now }))
}

export function isJournaled(directory: string, sha256: string): boolean {
  return isThere(pathOf(directory, sha256))
}

/** The outcome is known. @throws CliError `cannot_write`, exit 1: the note is still there. */
export function closeJournal(directory: string, sha256: string): void {
  removeDurable(pathOf(directory, sha256))
}

/** Forgets every note, where no token is left that could be sent. Never throws. */
export function removeJournals(directory: string): void {
  try {
    for (const sha256 of journaled(directory)) closeJournal(directory, sha256)
  } catch {
    // A note about a token that nobody has any more does no harm.
  }
}

/** Wall-clock milliseconds at which a token was about to be sent; undefined where the note does not say (any more). */
export async function journaledAt(directory: string, sha256: string): Promise<number | undefined> {
  // A process that was killed while it wrote leaves an entry without a time. That it is there is what counts.
  const entry = await readJson(pathOf(directory, sha256), journalFormat.parse).catch(() => undefined)
  return entry?.sentAt
}

function pathOf(directory: string, sha256: string): string {
  return join(directory, `journal.${sha256}.json`)
}
