import type { Context } from '../context.ts'
import {
  highestInFiles,
  type NewestSecret,
  placesOf,
  readNewest,
  removeOutdatedCopies,
  removeSecrets,
  reserveSpace,
  type SecretHome,
  storeSuccessor,
} from '../credentials/secret-copies.ts'
import type { Secret } from '../credentials/store.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import {
  type AccessTokenGrant,
  type RefreshOutcome,
  refresh,
  tokenTimeoutMs,
} from '../oauth/token-endpoint.ts'
import { backoff } from '../service/retry.ts'
import { parseBaseUrl } from '../settings/addresses.ts'
import { loginCommand } from '../settings/login-command.ts'
import { type Settings, settingValue } from '../settings/settings.ts'
import { isThere, type PreallocatedFile, removeStaleTemporaries } from '../storage/durable-file.ts'
import { type HeldLock, type LockOptions, withLock } from '../storage/lock.ts'
import { type Moment, moment } from '../storage/moment.ts'
import { note, warn } from '../terminal/notices.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import {
  type AccessToken,
  isAdoptable,
  readAccessToken,
  removeAccessToken,
  writeAccessToken,
} from './access-token.ts'
import { type Guard, withGuard } from './guard.ts'
import { closeJournal, fingerprint, isJournaled, journaled, journaledAt, openJournal } from './journal.ts'
import {
  accessTokenNotStored,
  accessTokenUnusable,
  interrupted,
  interruptedQuestion,
  journalStays,
  lockReplaced,
  nothingSent,
  notNoted,
  notSignedIn,
  outcomeUnknown,
  REFRESH_TOKEN_DAYS,
  sessionOver,
  tokenLost,
} from './messages.ts'
import { type SessionPaths, secretHome, sessionPaths } from './paths.ts'
import { type OAuthRecord, readRecord, requireSameService, writeRecord } from './record.ts'

export interface RenewOptions {
  /** `stale`: the access token ends soon. `refused`: the service did not take it. `asked`: a person wants a new one. */
  readonly reason: 'stale' | 'refused' | 'asked'
  /** The access token that is stale or was refused: another one in its place can be adopted. */
  readonly outdated?: string
  /** Narrows the new access token (interface 4.1); separated by spaces. */
  readonly scope?: string
  /** Sends a token whose last use has no known outcome: the person said so. */
  readonly retryInterrupted?: boolean
}

/** How long a service that says "later" is waited for before the person is told. */
const PATIENCE_MS = 30_000
/** Writing and the keychain take their time as well. */
const LOCK_EXTRA_MS = PATIENCE_MS + 15_000
/** How often a service that cannot even be reached is tried. */
const UNREACHABLE_TRIES = 3
/** How often the lock is taken again when something deletes its file. */
const LOCK_TRIES = 5
/** How long a person looks at nothing before they are told what is waited for. */
const SILENT_MS = 2_000

/** Milliseconds that a command waits for the lock: another process may use up all of its own time under it. */
export function lockDeadline(settings: Pick<Settings, 'httpTimeoutMs'>): number {
  return tokenTimeoutMs(settings) + LOCK_EXTRA_MS
}

/** All that the steps of one refresh share. */
interface Task {
  readonly context: Context
  readonly settings: Settings
  readonly options: RenewOptions
  readonly paths: SessionPaths
}

/** The same, once the session is known. */
interface SessionTask extends Task {
  readonly record: OAuthRecord
  readonly home: SecretHome
}

/** What a step found out; `lock_replaced`: the lock is not (only) ours any more, so all is read again. */
type Result = AccessToken | 'lock_replaced'

/**
 * Renews the access token of the profile: the steps of a refresh (docs/token-safety.md), each below.
 *
 * @returns the new access token, or the one that another process got meanwhile.
 * @throws CliError `not_signed_in`, `refresh_interrupted`, `session_over` and the store's own (exit 4);
 *   `refresh_unknown`, `rate_limited`, `service_unavailable`, `session_busy` (exit 7); the interface's section 7.1.
 */
export async function renew(
  context: Context,
  settings: Settings,
  options: RenewOptions,
): Promise<AccessToken> {
  const paths = sessionPaths(context, settings.profile.value)
  const task: Task = { context, settings, options, paths }
  // A profile that nobody signed in has no directory to take a lock in.
  if (!isThere(paths.directory)) throw notSignedIn(paths.profile)
  for (let attempt = 1; attempt <= LOCK_TRIES; attempt++) {
    const result = await withLock<Result>(paths.lock, context, waiting(task), (lock) => underLock(task, lock))
    if (result !== 'lock_replaced') return result
  }
  throw lockReplaced(paths.profile, paths.lock)
}

/** Step 2: how the lock is waited for. */
function waiting({ context, settings, options, paths }: Task): LockOptions<Result> {
  return {
    deadlineMs: lockDeadline(settings),
    meanwhile: () => adoptable({ context, settings, options, paths }),
    onWait: () => note('Waiting for another mailclaim, which is renewing this session …', context, settings),
  }
}

/** Step 3: an access token that another process stored since we looked. */
async function adoptable({ context, settings, paths, options }: Task): Promise<AccessToken | undefined> {
  if (options.reason === 'asked') return undefined
  const stored = await readAccessToken(paths)
  if (stored === undefined || stored.value === options.outdated || !isAdoptable(stored, context.clock))
    return undefined
  requireSameService(stored, settings)
  return stored
}

async function underLock(task: Task, lock: HeldLock): Promise<Result> {
  const { context, settings, paths } = task
  const adopted = await adoptable(task)
  if (adopted !== undefined) return adopted
  const record = await readRecord(paths)
  if (record === undefined) throw notSignedIn(paths.profile)
  if (record.kind === 'api_key') {
    throw usageError(`profile ${paths.profile} holds an API key, which is never renewed`)
  }
  requireSameService(record, settings)
  if (record.ended !== null) throw sessionOver(record)
  const home = secretHome(paths, record)
  return withGuard(context, home, lock, waiting(task), (guard) =>
    underGuard({ ...task, record, home }, guard),
  )
}

async function underGuard(task: SessionTask, guard: Guard): Promise<Result> {
  const { context, settings, paths, record, home } = task
  // In this order: a process that ends its refresh in between stores the successor before it closes the journal.
  const sent = journaled(guard.journals)
  const token = await readAccessToken(paths)
  const known = token?.session === record.id ? token.generation : 1
  const secret = await readNewest(context, home, known)
  const sha256 = fingerprint(secret.value)
  const resend = sent.has(sha256)
  if (resend) await requireConsent(task, await journaledAt(guard.journals, sha256))
  removeStaleTemporaries(paths.directory)
  // Where the secret is not in its place, an older one may be, and only the journal keeps that from being sent.
  if (secret.inPlace) for (const other of sent) if (other !== sha256) closeQuietly(guard, other)

  const attempt: Attempt = { ...task, guard, secret, sha256, resend }
  const end = context.clock.monotonic() + PATIENCE_MS
  for (let tries = 1; ; tries++) {
    context.interrupts.signal.throwIfAborted()
    const settled = await context.interrupts.shield(
      () => sendAndSettle(attempt),
      // Ctrl-C waits for the answer, which can take half a minute: whoever pressed it is told.
      () => void note('Stopping as soon as the refresh in progress has its answer …', context, settings),
    )
    if (settled.kind === 'renewed') return settled.token
    if (settled.kind === 'lock_replaced') return settled.kind
    const wait = Math.max(settled.afterMs ?? 0, backoff(tries, context.random))
    const unreachable = settled.error.code === 'service_unreachable' && tries >= UNREACHABLE_TRIES
    if (unreachable || context.clock.monotonic() + wait >= end) throw settled.error
    await context.clock.sleep(wait, context.interrupts.signal)
  }
}

/** Step 4: a token that may have been sent and whose fate is unknown is not sent again, unless a person says so. */
async function requireConsent(
  { context, settings, options, paths, record }: SessionTask,
  sentAt: number | undefined,
): Promise<void> {
  if (options.retryInterrupted) return
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
  throw interrupted(record, sentAt)
}

interface Attempt extends SessionTask {
  readonly guard: Guard
  readonly secret: NewestSecret
  /** The fingerprint of the secret. */
  readonly sha256: string
  /** It is in the journal already, and a person wants it to be sent once more. */
  readonly resend: boolean
}

type Settled =
  | { readonly kind: 'renewed'; readonly token: AccessToken }
  | { readonly kind: 'again'; readonly afterMs: number | undefined; readonly error: CliError }
  | { readonly kind: 'lock_replaced' }

/**
 * Steps 5 to 9, which no signal cuts in two: connection, journal, request, and what follows from the answer.
 *
 * @throws CliError where the refresh did not succeed and waiting will not help.
 */
async function sendAndSettle(attempt: Attempt): Promise<Settled> {
  const { context, settings, paths, options, record, secret } = attempt
  const { profile } = record
  // Step 5. What may have to be written after the answer gets its space on the disk before the token leaves.
  const reserved = reserve(attempt)
  let received = moment(context.clock)
  let stopped: { readonly why: unknown } | undefined
  let sent = false
  const outcome = await announced(
    attempt,
    refresh(context, {
      base: parseBaseUrl(record.issuer),
      clientId: record.clientId,
      settings,
      refreshToken: secret.value,
      scope: options.scope,
      grantedScope: record.scope ?? undefined,
      beforeSend() {
        try {
          // Step 6, when the connection stands and before the first byte leaves.
          stopped = enterJournal(attempt)
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
    throw leaveJournal(attempt, stopped.why) ?? nothingSent(profile, stopped.why)
  }
  // Step 8.
  switch (outcome.kind) {
    case 'success':
      return { kind: 'renewed', token: await storeRenewed(attempt, outcome, received, reserved) }
    case 'over':
      reserved.discard()
      throw await endSession(attempt, outcome)
    case 'unknown':
      reserved.discard()
      if (!sent) throw nothingSent(profile, new CliError('refresh_failed', Exit.bug, outcome.why))
      // Good for its lifetime, whatever became of the refresh token: the next commands use it.
      if (outcome.access !== undefined)
        await cacheAccessToken(paths, accessTokenOf(attempt, outcome.access, secret.generation, received))
      throw outcomeUnknown(record, outcome.why)
    case 'not_consumed':
    case 'retry_after': {
      reserved.discard()
      const stays = leaveJournal(attempt, outcome.error)
      if (stays !== undefined || outcome.kind === 'not_consumed') throw stays ?? outcome.error
      return { kind: 'again', afterMs: outcome.afterMs, error: outcome.error }
    }
  }
}

function reserve({ home }: SessionTask): PreallocatedFile {
  try {
    return reserveSpace(home)
  } catch (error) {
    throw nothingSent(home.profile, error)
  }
}

/** Says once that an answer takes its time. */
async function announced<T>({ context, settings }: Task, work: Promise<T>): Promise<T> {
  const cancel = context.clock.alarm(SILENT_MS, () => {
    void note('Waiting for the service to renew the session …', context, settings)
  })
  try {
    return await work
  } finally {
    cancel()
  }
}

/**
 * Notes that the token is about to be sent, as its only sender.
 *
 * @returns why it must not be sent; undefined where it can go.
 * @throws CliError `cannot_write`, exit 1.
 */
function enterJournal({
  context,
  guard,
  home,
  secret,
  sha256,
  resend,
}: Attempt): { why: 'lock_replaced' } | undefined {
  const ours = guard.isCurrent() && (resend || openJournal(guard.journals, sha256, context.clock.now()))
  if (!ours) return { why: 'lock_replaced' }
  // Whoever took the lock after us, if its file was deleted, has found the journal entry; whoever took it before us is
  // told from here: the lock is not at its path any more.
  // And where locks exclude nobody, a successor shows that another process was there: it is stored before its journal
  // entry goes.
  if (guard.isCurrent() && highestInFiles(home) <= secret.generation) return undefined
  if (!resend) closeQuietly(guard, sha256)
  return { why: 'lock_replaced' }
}

/**
 * The token is unused. An earlier use that has no known outcome stays in the journal.
 *
 * @param error why it is unused.
 * @returns the error to tell instead, where the journal entry cannot be removed.
 */
function leaveJournal({ guard, sha256, resend, record }: Attempt, error: unknown): CliError | undefined {
  if (resend || !isJournaled(guard.journals, sha256)) return undefined
  try {
    closeJournal(guard.journals, sha256)
    return undefined
  } catch (failure) {
    return journalStays(record.profile, error, failure)
  }
}

/** An entry that stays says of a token that was replaced that it was sent, which is true. */
function closeQuietly(guard: Guard, sha256: string): void {
  attemptTo(() => closeJournal(guard.journals, sha256))
}

function accessTokenOf(
  { record, options }: Attempt,
  grant: AccessTokenGrant,
  generation: number,
  received: Moment,
): AccessToken {
  return {
    session: record.id,
    generation,
    issuer: record.issuer,
    clientId: record.clientId,
    value: grant.accessToken,
    scope: grant.scope ?? null,
    narrowed: options.scope !== undefined,
    expiresInSeconds: grant.expiresInSeconds,
    // When the request left: the answer cannot have been younger.
    received,
  }
}

/** Step 9: the refresh token first, then the access token, then the journal. */
async function storeRenewed(
  attempt: Attempt,
  outcome: Extract<RefreshOutcome, { kind: 'success' }>,
  received: Moment,
  reserved: PreallocatedFile,
): Promise<AccessToken> {
  const { context, settings, paths, options, record, home, guard, secret, sha256 } = attempt
  const successor: Secret = {
    generation: secret.generation + 1,
    issuedAt: received.wall,
    value: outcome.refreshToken,
  }
  const stored = await storeSuccessor(context, home, successor, reserved).catch((error: unknown) => {
    throw tokenLost(record, error)
  })
  // From here on the session is safe: what fails is made good by the next command.
  const token = outcome.access && accessTokenOf(attempt, outcome.access, successor.generation, received)
  const failure = await cacheAccessToken(paths, token)
  if (stored.problem === undefined) {
    await removeOutdatedCopies(context, home, successor)
    closeQuietly(guard, sha256)
  } else {
    // Said even with --quiet: a secret lies where nobody chose to keep it.
    const then = isThere(paths.session)
      ? 'goes back at the next refresh'
      : `is of no use without the record of the session, which is gone: run ${loginCommand(record)}`
    await context.stderr.write(
      `warning: ${sanitizeLine(`the new refresh token could not be stored where it belongs (${stored.problem}). It is kept in a file that only you can read (${stored.place.name}) and ${then}`)}\n`,
    )
  }
  if (token === undefined) throw accessTokenUnusable(record.profile, outcome.why ?? 'it is missing')
  if (failure !== undefined) {
    // A person who narrowed the token must not hand out another one.
    if (options.reason === 'asked') throw failure
    await warn(
      `the new access token could not be stored, so the next command renews it again: ${failure.message}`,
      context,
      settings,
    )
  }
  return token
}

/**
 * Puts the new access token in the place of the old one. Where that fails the old one goes: it may be wider than what
 * was asked for.
 *
 * @returns what to tell a person who asked for this token.
 */
async function cacheAccessToken(
  paths: SessionPaths,
  token: AccessToken | undefined,
): Promise<CliError | undefined> {
  // A process that was stopped while another one renewed the session comes too late.
  const stored = await readAccessToken(paths)
  if (token !== undefined && stored?.session === token.session && stored.generation > token.generation)
    return undefined
  try {
    if (token !== undefined) writeAccessToken(paths, token)
    else removeAccessToken(paths)
    return undefined
  } catch (error) {
    return accessTokenNotStored(error, !attemptTo(() => removeAccessToken(paths)))
  }
}

function attemptTo(work: () => void): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}

/** `invalid_grant`: keeps what is needed to explain it and removes the tokens. */
async function endSession(
  { context, paths, record, home, guard, secret, sha256, resend }: Attempt,
  outcome: Extract<RefreshOutcome, { kind: 'over' }>,
): Promise<CliError> {
  const now = context.clock.now()
  const expired = now - secret.issuedAt > REFRESH_TOKEN_DAYS * 24 * 3600 * 1000
  const cause = resend ? 'interrupted' : expired ? 'expired' : 'refused'
  const ended: OAuthRecord = {
    ...record,
    ended: { at: now, description: outcome.description ?? null, cause, renewedAt: secret.issuedAt },
  }
  try {
    writeRecord(paths, ended)
    removeAccessToken(paths)
  } catch (failure) {
    // The journal keeps the token from being sent again.
    return notNoted(sessionOver(ended), failure)
  }
  // A token that is worth nothing may stay in a keychain that is locked; the next login replaces it.
  await removeSecrets(context, placesOf(home))
  closeQuietly(guard, sha256)
  return sessionOver(ended)
}
