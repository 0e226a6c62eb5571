import { usageError } from '../errors.ts'
import { backoff, renewalTooLate } from '../service/retry.ts'
import { settingValue } from '../settings/settings.ts'
import { type LockOptions, STILL_HELD } from '../storage/lock.ts'
import { note, warn } from '../terminal/notices.ts'
import { type AccessToken, isAdoptable } from './access-token.ts'
import { lockDeadline, RETRY_LIMIT_MS } from './guard.ts'
import { interrupted, interruptedQuestion, notSignedIn, sessionOver } from './messages.ts'
import { openStore } from './open-store.ts'
import type { SessionRecord, SignIn } from './record.ts'
import { sendOnce } from './refresh-attempt.ts'
import type {
  RefreshAttempt,
  RefreshContext,
  RefreshSettings,
  RefreshTask,
  RenewOptions,
} from './refresh-task.ts'
import { requireSameService } from './same-service.ts'
import type { OpenSession, Snapshot } from './session-store.ts'

/** How often a service that can't be reached at all is tried. */
const UNREACHABLE_TRIES = 3

export interface Renewed {
  readonly token: AccessToken
  /** The session that was renewed; undefined if another process renewed it. */
  readonly record: SignIn | undefined
}

/** A refresh that has no known outcome, of a token that only a person can decide to send again. */
interface Undecided {
  readonly seen: Snapshot
}

/** `lost`: somebody else may have changed the session, so everything has to be read again. */
type Result = Renewed | 'lost' | Undecided

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
  const store = await openStore(context, settings)
  const task: RefreshTask = { context, settings, options, store }
  let agreed: Undecided | undefined
  for (let attempt = 1; attempt <= store.tries; attempt++) {
    const result = await store.open<Result>(
      lockOptions(task),
      (record) => requireUsable(record, settings),
      (session) => renewOpened(task, session, agreed),
    )
    if (result === 'lost') continue
    if ('token' in result) return result
    // Without the lock: nobody else has to wait for the answer, which may never come.
    await requireConsent(task, result)
    agreed = result
  }
  throw store.overtaken()
}

/** Step 2: how to wait for another process. */
function lockOptions(task: RefreshTask): LockOptions<Result> {
  const { context, settings, options } = task
  const most = lockDeadline(settings)
  const left = (options.deadline ?? Number.POSITIVE_INFINITY) - context.clock.monotonic()
  return {
    deadlineMs: Math.min(most, left),
    ...(left < most && { busy: () => renewalTooLate('session_busy') }),
    meanwhile: () => adopt(task),
    onWait: () => note('Waiting for another mailclaim, which is using this session …', context, settings),
  }
}

/** Step 3: uses the access token that another process has stored meanwhile, if there is one. */
async function adopt({ context, settings, store, options }: RefreshTask): Promise<Renewed | undefined> {
  if (options.reason === 'asked') return undefined
  const token = await store.accessToken(options.deadline)
  if (token === undefined || token.value === options.outdated || !isAdoptable(token, context.clock))
    return undefined
  requireSameService(token, settings)
  return { token, record: undefined }
}

function requireUsable(record: SessionRecord | SignIn | undefined, settings: RefreshSettings): void {
  if (record === undefined) throw notSignedIn(settings)
  if (record.kind === 'api_key') {
    throw usageError(`profile ${record.profile} holds an API key, which is never renewed`)
  }
  requireSameService(record, settings)
  if (record.ended !== null) throw sessionOver(record)
}

/** @param agreed what a person was asked about, and wants sent once more. */
async function renewOpened(
  task: RefreshTask,
  session: OpenSession,
  agreed: Undecided | undefined,
): Promise<Result | typeof STILL_HELD> {
  const seen = await session.read()
  if (seen === 'lost') return seen
  const { journal } = seen
  if (journal?.isBeingSent) return STILL_HELD
  // Another process may have sent it once more since the person was asked.
  const isAgreed = agreed !== undefined && agreed.seen.journal?.id === journal?.id
  if (journal === undefined || task.options.retryInterrupted || isAgreed)
    return sendUntilAnswered({ ...task, session, seen })
  return { seen }
}

/** Step 4: a token that may have been sent, with no known outcome, is not sent again unless a person says so. */
async function requireConsent(
  { context, settings }: RefreshTask,
  { seen: { record, journal } }: Undecided,
): Promise<void> {
  if (settingValue('on_interrupted', settings) === 'retry') {
    await warn(
      `the last refresh of profile ${record.profile} has no known outcome; its token is sent once more, because on-interrupted is set to retry`,
      context,
      settings,
    )
    return
  }
  if (settings.interactive) {
    const message = interruptedQuestion(record.profile, journal?.sentAt)
    if (await context.prompts.confirm({ message, default: false })) return
  }
  throw interrupted(record, journal?.sentAt, settings)
}

/** Steps 5 to 9, and again while the service refuses in a way that passes. */
async function sendUntilAnswered(attempt: RefreshAttempt): Promise<Result> {
  const { context, settings, options } = attempt
  const { deadline = Number.POSITIVE_INFINITY } = options
  const end = Math.min(context.clock.monotonic() + RETRY_LIMIT_MS, deadline)
  let { seen } = attempt
  for (let tries = 1; ; tries++) {
    context.interrupts.signal.throwIfAborted()
    if (context.clock.monotonic() >= deadline) throw renewalTooLate()
    const result = await context.interrupts.shield(
      () => sendOnce({ ...attempt, seen }),
      // Ctrl-C waits for the answer, which can take half a minute.
      () => void note('Stopping as soon as the refresh in progress has its answer …', context, settings),
    )
    if (result.kind === 'renewed') return { token: result.token, record: seen.record }
    if (result.kind === 'lost') return result.kind
    seen = result.seen
    const wait = Math.max(result.afterMs ?? 0, backoff(tries, context.random))
    const unreachable = result.error.code === 'service_unreachable' && tries >= UNREACHABLE_TRIES
    if (unreachable || context.clock.monotonic() + wait >= end) throw result.error
    await context.clock.sleep(wait, context.interrupts.signal)
  }
}
