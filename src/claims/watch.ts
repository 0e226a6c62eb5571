import { type Context, TransportError } from '../context.ts'
import { CliError, Exit, InterruptedError } from '../errors.ts'
import { getClaim, verifyClaim } from '../service/claims.ts'
import type { RequestOptions, ServiceClient } from '../service/client.ts'
import {
  lastRequestFailed,
  newsOnly,
  type PollTimes,
  poll,
  retryMessage,
  type TimedOut,
  timedOutAfter,
} from '../service/polling.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import { formatTime } from '../terminal/relative-time.ts'
import type { CurrentClaim } from './current-claim.ts'
import {
  asArgument,
  type ClaimState,
  endedError,
  goneError,
  nameOf,
  needsRecord,
  stateOf,
} from './lifecycle.ts'

export interface WatchOptions extends PollTimes {
  /** Whether to go on while the claim is blocked. */
  readonly throughBlocked: boolean
  /** The claim if the service has just been asked to verify it; only then is a pending one not waiting for the record alone. */
  readonly verifying?: DomainClaim
  /** What the service said if it refused that, though it may already verify the claim for somebody else. */
  readonly refusal?: CliError | undefined
  /** Whether the service has just sent that claim: it needn't be asked again if the claim is settled, or the time is up. */
  readonly isJustSeen?: boolean
  /** The command that goes on watching; by default a new watch of the claim. */
  readonly again?: string | undefined
}

/** The events of `claims watch --format jsonl`, and of `claims verify --wait`. */
export const WATCH_EVENTS = {
  status: 'the status of the claim at the start, and when it changes, unless another event says so',
  waiting: 'still the same: the claim is blocked (with --through-blocked), or a minute has passed',
  warning: 'a failed poll, which is repeated, or a status that this version does not know',
  done: 'the claim is completed, blocked or ended; the exit code says which',
} as const

/** What `claims watch --format jsonl` writes, one per line. */
export interface WatchEvent {
  readonly event: keyof typeof WATCH_EVENTS
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
  /**
   * Why the claim isn't completed: `claim_in_flight`, exit 8, after `timeoutMs`; `claim_expired`, exit 9, once `expires_at`
   * has passed although the service still calls the claim in progress; else exit 9, as `endedError` says.
   */
  readonly error: CliError | undefined
}

/** Milliseconds between polls: the first, and what it grows to. */
export const WATCH_DELAYS = { first: 2000, max: 30_000 } as const
/** The same right after a verification request, which often takes no longer than a second or two. */
const VERIFYING_DELAYS = { first: 1000, steady: 3, max: 30_000 } as const

/** How long to watch a claim that had already expired by this machine's clock, in milliseconds: clocks differ. */
const SKEW_MS = 30_000

/**
 * Watches a claim until it is settled: completed, ended, or blocked (unless `throughBlocked`). Yields each change and each
 * problem, once a minute that nothing has changed, and returns the claim at the end.
 *
 * @param fetch gets the claim, with these options for its requests
 * @throws CliError what `poll` throws
 */
export async function* watchClaim(
  fetch: (options: RequestOptions) => Promise<DomainClaim>,
  options: WatchOptions,
  context: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<WatchEvent, WatchResult, void> {
  const { clock } = context
  const news = newsOnly(clock)
  const { verifying } = options
  let last: { claim: DomainClaim; state: ClaimState; status?: string } | undefined = verifying && {
    claim: verifying,
    state: describedState(verifying, options),
  }
  if (last !== undefined && options.isJustSeen) {
    const { claim, state } = last
    const settled = settledResult(claim, state, options)
    if (settled !== undefined) yield eventOf('done', state.description, claim, context)
    const { since = clock.monotonic(), timeoutMs = Number.POSITIVE_INFINITY } = options
    const isUp = clock.monotonic() >= since + timeoutMs
    if (settled !== undefined || isUp)
      return settled ?? { claim, state, error: timeoutError(claim, state, options, undefined) }
  }
  let end: TimedOut | undefined
  let skewEnd: number | undefined
  const delays = verifying ? VERIFYING_DELAYS : WATCH_DELAYS
  const isKnown = verifying !== undefined
  for await (const polled of poll(fetch, { ...options, delays, isKnown }, context)) {
    if (polled.kind === 'timeout') {
      end = polled
      break
    }
    if (polled.kind === 'failure') {
      const text = retryMessage(polled)
      const message = last && news(text, text)
      if (last !== undefined && message !== undefined) yield eventOf('warning', message, last.claim, context)
      continue
    }
    const claim = polled.value
    const state = describedState(claim, options)
    const { phase, description } = state
    const status = `${claim.status} ${claim.blocked_reason} ${claim.failure_reason}`
    const isChanged = status !== last?.status
    last = { claim, state, status }
    const settled = settledResult(claim, state, options)
    if (settled !== undefined) {
      yield eventOf('done', description, claim, context)
      return settled
    }
    const suffix =
      phase === 'unknown' ? '; still waiting' : phase === 'blocked' ? '; waiting until it lifts' : ''
    const message = news(status, `${description}${suffix}`)
    if (message !== undefined) {
      const kind = phase === 'unknown' ? 'warning' : phase === 'blocked' ? 'waiting' : 'status'
      yield eventOf(isChanged ? kind : 'waiting', message, claim, context)
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
        context,
      )
    }
    if (clock.now() >= skewEnd) return { claim, state, error: expiredError(claim, expiry) }
  }
  // Without a claim, the first poll gives one or throws.
  const { claim, state } = last as NonNullable<typeof last>
  return { claim, state, error: timeoutError(claim, state, options, end) }
}

/** The end of a watch, if the claim is settled. */
function settledResult(
  claim: DomainClaim,
  state: ClaimState,
  { throughBlocked }: WatchOptions,
): WatchResult | undefined {
  if (state.phase === 'completed') return { claim, state, error: undefined }
  const isEnd = state.phase === 'ended' || (state.phase === 'blocked' && !throughBlocked)
  return isEnd ? { claim, state, error: endedError(claim, state) } : undefined
}

/**
 * Asks the service once to verify a claim. A refusal may only say that this already runs or is done; the claim shows it.
 *
 * @throws CliError the refusal if the claim still waits to be verified; else as the operations do
 */
export async function verifyOnce(
  { domainId, claim: before }: CurrentClaim,
  client: ServiceClient,
  options?: RequestOptions,
): Promise<DomainClaim> {
  try {
    return await verifyClaim(client, domainId, options)
  } catch (refusal) {
    if (isGone(refusal)) throw goneError(before, refusal)
    if (!isRefusal(refusal)) throw refusal
    const claim = await getClaim(client, domainId, options).catch((error: unknown) => {
      if (isGone(error)) throw goneError(before, error)
      throw error instanceof InterruptedError ? error : refusal
    })
    if (claim.status === 'pending' || (needsRecord(claim) && claim.status === before.status)) throw refusal
    return claim
  }
}

const isGone = (error: unknown): error is CliError =>
  error instanceof CliError && error.exit === Exit.notFound

/** Whether the service won't do what it was asked, for a reason other than the credential. */
const isRefusal = (error: unknown): error is CliError =>
  error instanceof CliError && error.exit === Exit.refused && error.status !== 403

/** Whether the service may have acted on a request that failed. */
const mayHaveActed = ({ exit, status, cause }: CliError): boolean =>
  exit === Exit.unavailable && status !== 429 && !(cause instanceof TransportError && cause.sent === 'no')

/** How often a refusal after a request that may have been accepted isn't believed. */
const MAX_DOUBTS = 3

/** The claim once the service was asked to verify it. */
export type Verifying = Pick<WatchResult, 'claim' | 'error'> & Pick<WatchOptions, 'refusal'>

/**
 * Asks the service to verify a claim. What fails is repeated, as in a watch, until the time is up; the claim shows first whether
 * the service has acted on a request whose answer was lost; after such a request, a refusal doesn't mean that it hasn't. Yields
 * each failure.
 *
 * @returns the claim, with `claim_in_flight`, exit 8, if the time is up; with the refusal if the claim is pending all the same
 * @throws CliError what `poll` throws
 */
export async function* requestVerification(
  current: CurrentClaim,
  options: WatchOptions,
  client: ServiceClient,
  context: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<WatchEvent & { readonly event: 'warning' }, Verifying, void> {
  const { domainId, claim: before } = current
  let isRepeated = false
  let mayRun = false
  let doubts = 0
  let refusal: CliError | undefined
  let end: TimedOut | undefined
  const ask = async (given: RequestOptions) => {
    if (isRepeated) {
      const claim = await getClaim(client, domainId, given).catch((error: unknown) => {
        throw isGone(error) ? goneError(before, error) : error
      })
      if (claim.status !== before.status) return claim
    }
    isRepeated = true
    return verifyOnce(current, client, given).catch((error: unknown) => {
      if (!isRefusal(error)) {
        mayRun ||= error instanceof CliError && mayHaveActed(error)
        throw error
      }
      // A conflict says that it already runs, such as for another machine.
      if (error.status === 409) {
        refusal = error
        return before
      }
      // If the earlier request was accepted, the claim soon shows it; if not, the service goes on refusing.
      if (!mayRun || ++doubts > MAX_DOUBTS) throw error
      const message = `${error.message}; an earlier request may have been accepted`
      throw new CliError(error.code, Exit.unavailable, message, { cause: error })
    })
  }
  for await (const polled of poll(ask, { ...options, delays: WATCH_DELAYS, isKnown: true }, context)) {
    if (polled.kind === 'value') {
      const doubt = mayRun ? 'an earlier request may have been accepted' : 'it may already be verifying it'
      if (refusal !== undefined)
        yield eventOf('warning', `${refusal.message}; waiting, as ${doubt}`, before, context)
      return { claim: polled.value, error: undefined, refusal }
    }
    if (polled.kind === 'timeout') end = polled
    else yield eventOf('warning', retryMessage(polled), before, context)
  }
  const again = `mailclaim claims verify${asArgument(before)} --wait${options.throughBlocked ? ' --through-blocked' : ''}`
  return { claim: before, error: timeoutError(before, stateOf(before), options, end, again) }
}

function eventOf<Event extends WatchEvent['event']>(
  event: Event,
  message: string,
  claim: DomainClaim,
  { clock }: Pick<Context, 'clock'>,
): WatchEvent & { readonly event: Event } {
  return { event, at: new Date(clock.now()).toISOString(), message, claim }
}

function describedState(claim: DomainClaim, { verifying, refusal }: WatchOptions): ClaimState {
  if (!verifying || claim.status !== 'pending' || claim.failure_reason) return stateOf(claim)
  const description = refusal
    ? `waiting although ${refusal.message}`
    : 'waiting for the service to check the TXT record'
  return { phase: 'in_flight', description }
}

function timeoutError(
  claim: DomainClaim,
  { description }: ClaimState,
  { timeoutMs = 0, verifying, refusal, throughBlocked, again }: WatchOptions,
  end: TimedOut | undefined,
  verifyAgain?: string,
): CliError {
  const name = asArgument(claim)
  const watch = again ?? `mailclaim claims watch${name}${throughBlocked ? ' --through-blocked' : ''}`
  // The service doesn't say whether verification was requested, and without it the claim stays pending.
  const verify =
    claim.status !== 'pending'
      ? ''
      : refusal
        ? `; to ask the service again: mailclaim claims verify${name} --no-check`
        : verifying
          ? ''
          : `; if verification hasn't been requested yet: mailclaim claims verify${name}`
  return new CliError(
    'claim_in_flight',
    Exit.notYet,
    `${timedOutAfter(timeoutMs)}: ${nameOf(claim)} is still in progress (${description})${lastRequestFailed(end?.error)}`,
    {
      hint:
        verifyAgain === undefined
          ? `the claim continues; to keep watching: ${watch}${verify}`
          : `the service has confirmed no request to verify it; to ask again: ${verifyAgain}`,
      retryAfterMs: end?.error?.retryAfterMs,
      cause: end?.error ?? refusal,
    },
  )
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
