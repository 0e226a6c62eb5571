import { highestInFiles, reserveSpace, type SecretStorage } from '../credentials/secret-copies.ts'
import { CliError, Exit } from '../errors.ts'
import { refresh } from '../oauth/token-endpoint.ts'
import { parseBaseUrl } from '../settings/addresses.ts'
import type { PreallocatedFile } from '../storage/durable-file.ts'
import { closeQuietly } from '../storage/file-errors.ts'
import { moment } from '../storage/moment.ts'
import { withWaitingNote } from '../terminal/notices.ts'
import type { AccessToken } from './access-token.ts'
import { closeJournal, closeJournalQuietly, isJournaled, openJournal, reopenJournal } from './journal.ts'
import { journalStays, nothingSent, outcomeUnknown } from './messages.ts'
import { accessTokenOf, cacheAccessToken, endSession, storeRenewed } from './refresh-outcome.ts'
import type { RefreshAttempt } from './refresh-task.ts'

type AttemptResult =
  | { readonly kind: 'renewed'; readonly token: AccessToken }
  /** The token is unused. `afterMs` is undefined if nobody says how long to wait. */
  | { readonly kind: 'again'; readonly afterMs: number | undefined; readonly error: CliError }
  | { readonly kind: 'lock_replaced' }

/**
 * Steps 5 to 9, which no signal interrupts: connection, journal, request, and what follows from the answer.
 *
 * @throws CliError if the refresh failed and waiting won't help.
 */
export async function sendOnce(attempt: RefreshAttempt): Promise<AttemptResult> {
  const entry: OpenEntry = { fd: undefined }
  try {
    return await sendAndStore(attempt, entry)
  } finally {
    if (entry.fd !== undefined) closeQuietly(entry.fd)
  }
}

/** The journal's entry of the token that is being sent; open, it tells other processes that this one is alive. */
interface OpenEntry {
  fd: number | undefined
}

async function sendAndStore(attempt: RefreshAttempt, entry: OpenEntry): Promise<AttemptResult> {
  const { context, settings, paths, options, record, secret } = attempt
  // Step 5. What may have to be written after the answer gets its space on the disk before the token leaves.
  const reserved = reserve(attempt.storage)
  let received = moment(context.clock)
  let stopped: { readonly why: unknown } | undefined
  let sent = false
  const outcome = await withWaitingNote(
    'Waiting for the service to renew the session …',
    context,
    settings,
    refresh(context, {
      base: parseBaseUrl(record.issuer),
      clientId: record.clientId,
      settings,
      refreshToken: secret.value,
      scope: options.scope,
      grantedScope: record.scope ?? undefined,
      beforeSend() {
        try {
          // Step 6: the connection stands, and no byte has left.
          stopped = openJournalAsOnlySender(attempt, entry) ? undefined : { why: 'lock_replaced' }
          received = moment(context.clock)
        } catch (error) {
          stopped = { why: error }
        }
        if (stopped !== undefined) throw new Error('the request is not sent')
        sent = true
      },
    }),
  )
  if (stopped !== undefined) {
    reserved.discard()
    if (stopped.why === 'lock_replaced') return { kind: 'lock_replaced' }
    throw closeJournalOfUnused(attempt, stopped.why) ?? nothingSent(record.profile, stopped.why)
  }
  // Step 8.
  switch (outcome.kind) {
    case 'success':
      return { kind: 'renewed', token: await storeRenewed(attempt, outcome, received, reserved) }
    case 'over':
      reserved.discard()
      throw await endSession(attempt, outcome.description)
    case 'unknown':
      reserved.discard()
      if (!sent) throw nothingSent(record.profile, new CliError('refresh_failed', Exit.bug, outcome.why))
      // Good for its lifetime, whatever became of the refresh token.
      if (outcome.access !== undefined)
        await cacheAccessToken(paths, accessTokenOf(attempt, outcome.access, secret.generation, received))
      throw outcomeUnknown(record, outcome.why, settings)
    case 'not_consumed':
    case 'retry_after': {
      reserved.discard()
      const stays = closeJournalOfUnused(attempt, outcome.error)
      if (stays !== undefined || outcome.kind === 'not_consumed') throw stays ?? outcome.error
      return { kind: 'again', afterMs: outcome.afterMs, error: outcome.error }
    }
  }
}

function reserve(storage: SecretStorage): PreallocatedFile {
  try {
    return reserveSpace(storage)
  } catch (error) {
    throw nothingSent(storage.profile, error)
  }
}

/**
 * Notes that the token is about to be sent, as its only sender.
 *
 * @returns false if the token must not be sent, because the lock is not ours alone.
 * @throws CliError `cannot_write`, exit 1.
 */
function openJournalAsOnlySender(
  { context, guard, storage, secret, sha256, resend }: RefreshAttempt,
  entry: OpenEntry,
): boolean {
  if (!guard.isCurrent() || (resend && !isJournaled(guard.journals, sha256))) return false
  const now = context.clock.now()
  entry.fd = (resend ? reopenJournal : openJournal)(guard.journals, sha256, now, guard)
  if (!resend && entry.fd === undefined) return false
  // If the lock file was deleted, another process may have taken a new one. If it did so after us, it has found the
  // journal entry. If it did so before us, the lock is no longer at its path. And if locks exclude nobody, a successor
  // shows that another process was here: it is stored before its journal entry goes.
  if (guard.isCurrent() && highestInFiles(storage) <= secret.generation) return true
  if (!resend) closeJournalQuietly(guard.journals, sha256)
  return false
}

/**
 * Removes the journal entry of a token that is unused. An earlier use with no known outcome stays in the journal.
 *
 * @param error why the token is unused.
 * @returns the error to report instead if the entry can't be removed.
 */
function closeJournalOfUnused(
  { guard, sha256, resend, record }: RefreshAttempt,
  error: unknown,
): CliError | undefined {
  if (resend || !isJournaled(guard.journals, sha256)) return undefined
  try {
    closeJournal(guard.journals, sha256)
    return undefined
  } catch (failure) {
    return journalStays(record.profile, error, failure)
  }
}
