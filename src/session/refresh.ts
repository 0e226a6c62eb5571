import { readNewest, removeOutdatedCopies } from '../credentials/secret-copies.ts'
import { usageError } from '../errors.ts'
import { backoff } from '../service/retry.ts'
import { settingValue } from '../settings/settings.ts'
import { isThere, removeStaleTemporaries } from '../storage/durable-file.ts'
import { type HeldLock, type LockOptions, STILL_HELD, withLock } from '../storage/lock.ts'
import { note, warn } from '../terminal/notices.ts'
import { type AccessToken, isAdoptable, readAccessToken } from './access-token.ts'
import { type Guard, lockDeadline, RETRY_LIMIT_MS, withGuard } from './guard.ts'
import {
  closeJournalQuietly,
  fingerprint,
  isBeingSent,
  isJournaled,
  journaled,
  journaledAt,
} from './journal.ts'
import { interrupted, interruptedQuestion, lockReplaced, notSignedIn, sessionOver } from './messages.ts'
import { secretStorage, sessionPaths } from './paths.ts'
import { type OAuthRecord, readRecord } from './record.ts'
import { sendOnce } from './refresh-attempt.ts'
import type {
  RefreshAttempt,
  RefreshContext,
  RefreshSettings,
  RefreshTask,
  RenewOptions,
  SessionTask,
} from './refresh-task.ts'
import { requireSameService } from './same-service.ts'

/** How often a service that can't be reached at all is tried. */
const UNREACHABLE_TRIES = 3
/** How often the lock is taken again if something deletes its file. */
const LOCK_TRIES = 5

export interface Renewed {
  readonly token: AccessToken
  /** The session that was renewed; undefined if another process renewed it. */
  readonly record: OAuthRecord | undefined
}

/** A refresh that has no known outcome, of a token that only a person can decide to send again. */
interface Undecided {
  readonly record: OAuthRecord
  readonly sha256: string
  /** Wall-clock milliseconds; undefined if the journal entry doesn't say. */
  readonly sentAt: number | undefined
}

/** `lock_replaced`: the lock may not be ours alone, so everything has to be read again. */
type Result = Renewed | 'lock_replaced' | Undecided

/**
 * Renews the access token of the profile, in the steps of docs/token-safety.md.
 *
 * @returns the new access token, or the one that another process got meanwhile.
 * @throws CliError `not_signed_in`, `refresh_interrupted`, `session_over`, and those of the secret's store (exit 4);
 *   `refresh_unknown`, `rate_limited`, `service_unavailable`, `session_busy` (exit 7); section 7.1 of the interface.
 */
export async function renew(
  context: RefreshContext,
  settings: RefreshSettings,
  options: RenewOptions,
): Promise<Renewed> {
  const paths = sessionPaths(context, settings.profile.value)
  const task: RefreshTask = { context, settings, options, paths }
  let agreed: Undecided | undefined
  for (let attempt = 1; attempt <= LOCK_TRIES; attempt++) {
    // A profile that never signed in has no directory for a lock.
    if (!isThere(paths.directory)) throw notSignedIn(settings)
    const result = await withLock<Result>(paths.lock, context, lockOptions(task), (lock) =>
      renewUnderLock(task, lock, agreed),
    )
    if (result === 'lock_replaced') continue
    if ('token' in result) return result
    // Without the lock: nobody else has to wait for the answer, which may never come.
    await requireConsent(task, result)
    agreed = result
  }
  throw lockReplaced(paths.profile, paths.lock)
}

/** Step 2: how to wait for the lock. */
function lockOptions(task: RefreshTask): LockOptions<Result> {
  const { context, settings } = task
  return {
    deadlineMs: lockDeadline(settings),
    meanwhile: () => adopt(task),
    onWait: () => note('Waiting for another mailclaim, which is using this session …', context, settings),
  }
}

/** Step 3: uses the access token that another process has stored meanwhile, if there is one. */
async function adopt({ context, settings, paths, options }: RefreshTask): Promise<Renewed | undefined> {
  if (options.reason === 'asked') return undefined
  const token = await readAccessToken(paths)
  if (token === undefined || token.value === options.outdated || !isAdoptable(token, context.clock))
    return undefined
  requireSameService(token, settings)
  return { token, record: undefined }
}

/** @param agreed what a person was asked about, and wants sent once more. */
async function renewUnderLock(
  task: RefreshTask,
  lock: HeldLock,
  agreed: Undecided | undefined,
): Promise<Result | typeof STILL_HELD> {
  const { context, settings, options, paths } = task
  const adopted = await adopt(task)
  if (adopted !== undefined) return adopted
  const record = await readRecord(paths)
  if (record === undefined) throw notSignedIn(settings)
  if (record.kind === 'api_key') {
    throw usageError(`profile ${paths.profile} holds an API key, which is never renewed`)
  }
  requireSameService(record, settings)
  if (record.ended !== null) throw sessionOver(record)
  const storage = secretStorage(paths, record)
  return withGuard(context, storage, lock, lockOptions(task), async (guard) => {
    const attempt = await prepareAttempt({ ...task, record, storage }, guard).catch((error: unknown) => {
      if (guard.isCurrent()) throw error
      return undefined
    })
    // What another process, under a new lock, did meanwhile looks like a damaged session.
    if (attempt === undefined) return 'lock_replaced'
    if (attempt.resend && isBeingSent(guard.journals, attempt.sha256, guard)) return STILL_HELD
    // Its sender has ended since the journal was read, with a known outcome.
    if (attempt.resend && !isJournaled(guard.journals, attempt.sha256)) return 'lock_replaced'
    if (!attempt.resend || options.retryInterrupted) return sendUntilAnswered(attempt)
    const { sha256 } = attempt
    const sentAt = await journaledAt(guard.journals, sha256)
    // Another process may have sent it once more since.
    const isAgreed = agreed?.sha256 === sha256 && agreed.sentAt === sentAt
    return isAgreed ? sendUntilAnswered(attempt) : { record, sha256, sentAt }
  })
}

/** Reads the token to send. */
async function prepareAttempt(task: SessionTask, guard: Guard): Promise<RefreshAttempt> {
  const { context, paths, record, storage } = task
  // The journal first: a process that finishes its refresh in between stores the successor, then closes the journal.
  const sent = journaled(guard.journals)
  const token = await readAccessToken(paths)
  const secret = await readNewest(context, storage, token?.session === record.id ? token.generation : 1)
  const sha256 = fingerprint(secret.value)
  removeStaleTemporaries(paths.directory)
  // An older token that is still stored is kept from being sent by its journal entry alone.
  if (secret.inChosenStore && (await removeOutdatedCopies(context, storage, secret, true)))
    for (const other of sent) if (other !== sha256) closeJournalQuietly(guard.journals, other)
  return { ...task, guard, secret, sha256, resend: sent.has(sha256) }
}

/** Step 4: a token that may have been sent, with no known outcome, is not sent again unless a person says so. */
async function requireConsent(
  { context, settings, paths }: RefreshTask,
  { record, sentAt }: Undecided,
): Promise<void> {
  if (settingValue('on_interrupted', settings) === 'retry') {
    await warn(
      `the last refresh of profile ${paths.profile} has no known outcome; its token is sent once more, because on-interrupted is set to retry`,
      context,
      settings,
    )
    return
  }
  if (settings.interactive) {
    const message = interruptedQuestion(paths.profile, sentAt)
    if (await context.prompts.confirm({ message, default: false })) return
  }
  throw interrupted(record, sentAt, settings)
}

/** Steps 5 to 9, and again while the service refuses in a way that passes. */
async function sendUntilAnswered(attempt: RefreshAttempt): Promise<Result> {
  const { context, settings, record } = attempt
  const end = context.clock.monotonic() + RETRY_LIMIT_MS
  for (let tries = 1; ; tries++) {
    context.interrupts.signal.throwIfAborted()
    const result = await context.interrupts.shield(
      () => sendOnce(attempt),
      // Ctrl-C waits for the answer, which can take half a minute.
      () => void note('Stopping as soon as the refresh in progress has its answer …', context, settings),
    )
    if (result.kind === 'renewed') return { token: result.token, record }
    if (result.kind === 'lock_replaced') return result.kind
    const wait = Math.max(result.afterMs ?? 0, backoff(tries, context.random))
    const unreachable = result.error.code === 'service_unreachable' && tries >= UNREACHABLE_TRIES
    if (unreachable || context.clock.monotonic() + wait >= end) throw result.error
    await context.clock.sleep(wait, context.interrupts.signal)
  }
}
