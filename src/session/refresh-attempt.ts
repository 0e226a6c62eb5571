import type { Secret } from '../credentials/store.ts'
import { CliError, Exit } from '../errors.ts'
import {
  type AccessTokenGrant,
  type RefreshOutcome,
  refresh,
  scopeDifference,
  tokenTimeoutMs,
} from '../oauth/token-endpoint.ts'
import { renewalTooLate } from '../service/retry.ts'
import { parseBaseUrl } from '../settings/addresses.ts'
import { type Moment, moment } from '../storage/moment.ts'
import { warn, withWaitingNote } from '../terminal/notices.ts'
import type { AccessToken } from './access-token.ts'
import {
  accessTokenUnusable,
  journalStays,
  nothingSent,
  outcomeUnknown,
  replacedMeanwhile,
  sessionOver,
} from './messages.ts'
import type { RefreshAttempt } from './refresh-task.ts'
import { hasExpired } from './refresh-token.ts'
import type { Snapshot, Stored } from './session-store.ts'

type AttemptResult =
  | { readonly kind: 'renewed'; readonly token: AccessToken }
  /** The token is unused. `afterMs` is undefined if nobody says how long to wait. */
  | {
      readonly kind: 'again'
      readonly afterMs: number | undefined
      readonly error: CliError
      readonly seen: Snapshot
    }
  | { readonly kind: 'lost' }

/**
 * Steps 5 to 9, which no signal interrupts: connection, journal, request, and what follows from the answer.
 *
 * @throws CliError if the refresh failed and waiting won't help.
 */
export async function sendOnce(attempt: RefreshAttempt): Promise<AttemptResult> {
  const { context, options, store, session, seen } = attempt
  const { record, secret } = seen
  const httpTimeoutMs = Math.min(attempt.settings.httpTimeoutMs, store.refreshLimitMs)
  const settings = { ...attempt.settings, httpTimeoutMs }
  // Step 5.
  session.prepare()
  const late = new AbortController()
  const left = (options.deadline ?? Number.POSITIVE_INFINITY) - context.clock.monotonic()
  const isShort = left < tokenTimeoutMs(settings)
  const cancel = isShort ? context.clock.alarm(left, () => late.abort(renewalTooLate())) : () => {}
  try {
    let received = moment(context.clock)
    let journaled: Snapshot | undefined
    let stopped: { readonly why: unknown } | undefined
    const stop = (why: unknown): never => {
      stopped = { why }
      throw new Error('the request is not sent')
    }
    const enter = (stored: Stored | 'lost') => {
      if (stored === 'lost') return stop(stored)
      journaled = stored.value
      received = moment(context.clock)
    }
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
        signal: late.signal,
        beforeSend() {
          // Step 6: the connection stands, and no byte has left. From here on, nothing but an answer ends the request.
          cancel()
          const stored = enterJournal(attempt, stop)
          // A store that other machines share can't answer at once: it has its own renewal.
          if (stored instanceof Promise) return stop(new Error('the store takes no note'))
          return enter(stored)
        },
      }),
    )
    if (stopped !== undefined) {
      if (stopped.why === 'lost') return { kind: 'lost' }
      throw stopped.why
    }
    return await settle(attempt, outcome, journaled, received)
  } finally {
    cancel()
    session.release()
  }
}

function enterJournal({ context, options, session, seen }: RefreshAttempt, stop: (why: unknown) => never) {
  try {
    const journal = { id: '', sentAt: context.clock.now(), isBeingSent: true }
    return session.compareAndSwap(seen, { ...seen, journal }, options.deadline)
  } catch (error) {
    return stop(error)
  }
}

/** Steps 8 and 9. @param journaled undefined if the token was certainly not sent. */
async function settle(
  attempt: RefreshAttempt,
  outcome: RefreshOutcome,
  journaled: Snapshot | undefined,
  received: Moment,
): Promise<AttemptResult> {
  const { session, seen } = attempt
  const { record, secret } = seen
  switch (outcome.kind) {
    case 'success':
      return { kind: 'renewed', token: await storeRenewed(attempt, journaled ?? seen, outcome, received) }
    case 'over':
      throw await endSession(attempt, journaled ?? seen, outcome.description)
    case 'unknown':
      if (journaled === undefined)
        throw nothingSent(record.profile, new CliError('refresh_failed', Exit.bug, outcome.why))
      // Good for its lifetime, whatever became of the refresh token.
      if (outcome.access !== undefined) {
        const token = accessTokenOf(attempt, outcome.access, secret.generation, received)
        await session.compareAndSwap(journaled, { ...journaled, token })
      }
      throw outcomeUnknown(record, outcome.why, attempt.settings)
    case 'not_consumed':
    case 'retry_after': {
      const unused = journaled && (await withdraw(attempt, journaled, outcome.error))
      if (outcome.kind === 'not_consumed') throw outcome.error
      if (unused === 'lost') return { kind: 'lost' }
      return { kind: 'again', afterMs: outcome.afterMs, error: outcome.error, seen: unused ?? seen }
    }
  }
}

/**
 * Removes the journal entry of a token that is unused. An earlier use with no known outcome stays in the journal.
 *
 * @param error why the token is unused.
 * @returns `lost`: somebody else may have used it since.
 * @throws CliError to report instead if the entry can't be removed.
 */
async function withdraw(
  { session, seen }: RefreshAttempt,
  journaled: Snapshot,
  error: CliError,
): Promise<Snapshot | 'lost'> {
  if (seen.journal !== undefined) return journaled
  try {
    const stored = await session.compareAndSwap(journaled, { ...journaled, journal: undefined })
    return stored === 'lost' ? stored : stored.value
  } catch (failure) {
    throw journalStays(seen.record, error, failure)
  }
}

/**
 * Step 9: stores the tokens and closes the journal.
 *
 * @throws CliError `refresh_token_lost`, exit 4; `access_token_unusable`, exit 7.
 */
async function storeRenewed(
  attempt: RefreshAttempt,
  journaled: Snapshot,
  outcome: Extract<RefreshOutcome, { kind: 'success' }>,
  received: Moment,
): Promise<AccessToken> {
  const { context, settings, options, session } = attempt
  const { record } = journaled
  const secret: Secret = {
    generation: journaled.secret.generation + 1,
    issuedAt: received.wall,
    value: outcome.refreshToken,
  }
  const token = outcome.access && accessTokenOf(attempt, outcome.access, secret.generation, received)
  const stored = await session.compareAndSwap(journaled, { record, secret, token, journal: undefined })
  if (stored === 'lost') throw replacedMeanwhile(record)
  // From here on the session is safe: the next command makes up for whatever failed.
  if (token === undefined) throw accessTokenUnusable(record.profile, outcome.why ?? 'it is missing')
  const { loss } = stored
  if (loss === undefined) return token
  // A person who narrowed the token must not hand out a wider one.
  if (options.reason === 'asked') throw loss
  const what =
    loss.code === 'session_deleted'
      ? `${loss.message}; ${loss.hint}`
      : `the new access token could not be stored, so the next command renews it again: ${loss.message}`
  await warn(what, context, settings)
  return token
}

/** @param received when the request left: the answer is no older. */
function accessTokenOf(
  { seen: { record }, options }: RefreshAttempt,
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
    narrowed: isNarrower(grant.scope, record.scope) ?? options.scope !== undefined,
    expiresInSeconds: grant.expiresInSeconds,
    received,
  }
}

/** Whether an access token has less than the session was granted; undefined if either is unknown. */
function isNarrower(scope: string | undefined, granted: string | null): boolean | undefined {
  if (scope === undefined || granted === null) return undefined
  return scopeDifference(granted.split(' '), scope).missing.length > 0
}

/**
 * `invalid_grant`: keeps what explains the end of the session and removes the tokens.
 *
 * @returns the error to report.
 */
async function endSession(
  { context, session, seen }: RefreshAttempt,
  journaled: Snapshot,
  description: string | undefined,
): Promise<CliError> {
  const { record, secret, token, journal } = seen
  const expired = hasExpired(record.id, secret, token, context.clock) === true
  const cause = expired ? 'expired' : journal !== undefined ? 'interrupted' : 'refused'
  const at = context.clock.now()
  const ended = {
    ...record,
    ended: { at, description: description ?? null, cause, renewedAt: secret.issuedAt },
  } as const
  const next = { ...journaled, record: ended, token: undefined, journal: undefined }
  const stored = await session.compareAndSwap(journaled, next)
  if (stored === 'lost') return replacedMeanwhile(record)
  return stored.loss ?? sessionOver(ended)
}
