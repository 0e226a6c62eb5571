import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { poll, USUAL_PAUSES } from '../service/polling.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import { asArgument, nameOf, type Standing, standingOf } from './lifecycle.ts'

export interface WatchOptions {
  /** A fixed pause between two questions, in milliseconds; undefined: growing from 2 s to 30 s. */
  readonly intervalMs: number | undefined
  readonly timeoutMs: number | undefined
  /** Whether a block is waited out. */
  readonly throughBlocked: boolean
}

/** What `claims watch --format jsonl` writes, a line each. */
export interface WatchEvent {
  readonly event: 'status' | 'waiting' | 'warning' | 'done'
  /** ISO 8601. */
  readonly at: string
  readonly message: string
  /** The claim as it was last seen. */
  readonly claim: DomainClaim
}

/** How a watch came to its end. */
export interface WatchResult {
  readonly claim: DomainClaim
  readonly standing: Standing
}

/** A claim that was past its end when the watch began is asked about for this long, in milliseconds: clocks differ. */
const SKEW_MS = 30_000

/**
 * Follows a claim until it is settled (completed, ended, or blocked unless blocks are waited out). Yields every change
 * and every problem, and returns where it ended.
 *
 * @param fetch asks for the claim.
 * @throws CliError `claim_in_flight`, exit 8, when `timeoutMs` is over; `claim_expired`, exit 9, when its `expires_at`
 *   has passed and the service still calls it in flight; what `poll` throws.
 */
export async function* watchClaim(
  fetch: () => Promise<DomainClaim>,
  options: WatchOptions,
  context: Context,
): AsyncGenerator<WatchEvent, WatchResult, void> {
  const pauses =
    options.intervalMs === undefined
      ? USUAL_PAUSES
      : { firstMs: options.intervalMs, maxMs: options.intervalMs }
  let last: { claim: DomainClaim; standing: Standing; shown: string } | undefined
  let lenientUntil: number | undefined
  const event = (kind: WatchEvent['event'], message: string, claim: DomainClaim): WatchEvent => ({
    event: kind,
    at: new Date(context.clock.now()).toISOString(),
    message,
    claim,
  })

  for await (const answer of poll(fetch, { ...pauses, timeoutMs: options.timeoutMs }, context)) {
    if (answer.kind === 'timeout') break
    if (answer.kind === 'problem') {
      const seconds = Math.ceil(answer.nextMs / 1000)
      if (last !== undefined)
        yield event('warning', `${answer.error.message}; asking again in ${seconds} s`, last.claim)
      continue
    }
    const claim = answer.value
    const standing = standingOf(claim)
    const shown = `${claim.status} ${claim.blocked_reason} ${claim.failure_reason}`
    const changed = shown !== last?.shown
    last = { claim, standing, shown }
    if (
      standing.phase === 'completed' ||
      standing.phase === 'ended' ||
      (standing.phase === 'blocked' && !options.throughBlocked)
    ) {
      yield event('done', standing.says, claim)
      return { claim, standing }
    }
    if (changed) {
      if (standing.phase === 'unknown') yield event('warning', `${standing.says}; waiting on`, claim)
      else if (standing.phase === 'blocked')
        yield event('waiting', `${standing.says}; waiting until it lifts`, claim)
      else yield event('status', standing.says, claim)
    }
    // A claim expires that nobody verified; a transfer that is running is not ended by it.
    const end = claim.expires_at && claim.status !== 'verified' ? parseTimestamp(claim.expires_at) : undefined
    if (end === undefined || context.clock.now() < end) {
      lenientUntil = context.clock.now()
      continue
    }
    if (lenientUntil === undefined) {
      lenientUntil = context.clock.now() + SKEW_MS
      yield event(
        'warning',
        `by this machine's clock the claim expired at ${claim.expires_at}, yet the service calls it ${claim.status}`,
        claim,
      )
    }
    if (context.clock.now() >= lenientUntil) throw expired(claim)
  }
  const name = last === undefined ? '' : asArgument(last.claim)
  // The service does not tell whether it was asked, and without that nothing would ever change.
  const unasked =
    last?.claim.status === 'pending'
      ? `; if the service was not asked to verify yet: mailclaim claims verify${name}`
      : ''
  throw new CliError(
    'claim_in_flight',
    Exit.notYet,
    last === undefined
      ? 'the time ran out'
      : `${nameOf(last.claim)} is still in flight (${last.standing.says}); the time ran out`,
    { hint: `nothing is lost; go on with: mailclaim claims watch${name}${unasked}` },
  )
}

function expired(claim: DomainClaim): CliError {
  return new CliError(
    'claim_expired',
    Exit.negativeEnd,
    `${nameOf(claim)}: the time to verify the claim ended at ${claim.expires_at}`,
    {
      hint: `start a new claim with: mailclaim claims create${asArgument(claim)}`,
    },
  )
}
