import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { type PollTimes, poll, retryMessage } from '../service/polling.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import { formatTime } from '../terminal/relative-time.ts'
import { asArgument, type ClaimState, nameOf, stateOf } from './lifecycle.ts'

export interface WatchOptions extends PollTimes {
  /** Whether to go on while the claim is blocked. */
  readonly throughBlocked: boolean
}

/** What `claims watch --format jsonl` writes, one per line. */
export interface WatchEvent {
  readonly event: 'status' | 'waiting' | 'warning' | 'done'
  /** ISO 8601. */
  readonly at: string
  readonly message: string
  /** The claim as last seen. */
  readonly claim: DomainClaim
}

/** The claim when the watch ended. */
export interface WatchResult {
  readonly claim: DomainClaim
  readonly state: ClaimState
}

/** Milliseconds between polls. */
const DELAYS = { first: 2000, max: 30_000 } as const

/** How long to watch a claim that had already expired by this machine's clock, in milliseconds: clocks differ. */
const SKEW_MS = 30_000

/**
 * Watches a claim until it is settled: completed, ended, or blocked (unless `throughBlocked`). Yields each change and each
 * problem, and returns the settled claim.
 *
 * @param fetch gets the claim
 * @throws CliError `claim_in_flight`, exit 8, after `timeoutMs`; `claim_expired`, exit 9, once `expires_at` has passed
 *   although the service still calls the claim in progress; what `poll` throws
 */
export async function* watchClaim(
  fetch: () => Promise<DomainClaim>,
  options: WatchOptions,
  context: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<WatchEvent, WatchResult, void> {
  const { clock } = context
  let last: { claim: DomainClaim; state: ClaimState; shown: string } | undefined
  let skewEnd: number | undefined
  const eventOf = (event: WatchEvent['event'], message: string, claim: DomainClaim): WatchEvent => ({
    event,
    at: new Date(clock.now()).toISOString(),
    message,
    claim,
  })

  for await (const polled of poll(fetch, { ...options, delays: DELAYS }, context)) {
    if (polled.kind === 'timeout') break
    if (polled.kind === 'failure') {
      if (last !== undefined) yield eventOf('warning', retryMessage(polled), last.claim)
      continue
    }
    const claim = polled.value
    const state = stateOf(claim)
    const { phase, description } = state
    const shown = `${claim.status} ${claim.blocked_reason} ${claim.failure_reason}`
    const isChanged = shown !== last?.shown
    last = { claim, state, shown }
    if (phase === 'completed' || phase === 'ended' || (phase === 'blocked' && !options.throughBlocked)) {
      yield eventOf('done', description, claim)
      return { claim, state }
    }
    if (isChanged) {
      if (phase === 'unknown') yield eventOf('warning', `${description}; still waiting`, claim)
      else if (phase === 'blocked') yield eventOf('waiting', `${description}; waiting until it lifts`, claim)
      else yield eventOf('status', description, claim)
    }
    // Only an unverified claim expires, not a transfer in progress.
    const expiry =
      claim.expires_at && claim.status !== 'verified' ? parseTimestamp(claim.expires_at) : undefined
    if (expiry === undefined || clock.now() < expiry) {
      skewEnd = clock.now()
      continue
    }
    if (skewEnd === undefined) {
      skewEnd = clock.now() + SKEW_MS
      yield eventOf(
        'warning',
        `by this machine's clock the claim expired at ${formatTime(expiry)}, but its status is still ${claim.status}`,
        claim,
      )
    }
    if (clock.now() >= skewEnd) throw expiredError(claim, expiry)
  }
  throw timeoutError(last)
}

function timeoutError(last: WatchResult | undefined): CliError {
  const name = last === undefined ? '' : asArgument(last.claim)
  // The service doesn't say whether verification was requested, and without it the claim stays pending.
  const verify =
    last?.claim.status === 'pending'
      ? `; if verification hasn't been requested yet: mailclaim claims verify${name}`
      : ''
  const message =
    last === undefined
      ? 'timed out'
      : `timed out: ${nameOf(last.claim)} is still in progress (${last.state.description})`
  return new CliError('claim_in_flight', Exit.notYet, message, {
    hint: `the claim continues; to keep watching: mailclaim claims watch${name}${verify}`,
  })
}

/** @param expiry milliseconds since 1970 */
function expiredError(claim: DomainClaim, expiry: number): CliError {
  return new CliError(
    'claim_expired',
    Exit.negativeEnd,
    `${nameOf(claim)}: the claim expired at ${formatTime(expiry)} before it was verified`,
    { hint: `start a new claim with: mailclaim claims create${asArgument(claim)}` },
  )
}
