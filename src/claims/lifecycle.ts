import { CliError, Exit } from '../errors.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import type { ClaimRequest, DomainClaim } from '../service/types.ts'
import { formatTime, relativeTime } from '../terminal/relative-time.ts'
import { clip } from '../terminal/sanitize.ts'

/** The state of a claim, derived from its status and reasons. */
export type ClaimState =
  /** The service is working on it or waiting for DNS. */
  | { readonly phase: 'in_flight'; readonly description: string }
  /** The domain is transferred. */
  | { readonly phase: 'completed'; readonly description: string }
  /** Stopped by a safety check that can lift by itself. */
  | { readonly phase: 'blocked'; readonly description: string }
  /** It will never complete. */
  | { readonly phase: 'ended'; readonly description: string; readonly next: string }
  /** An unknown status, which may still change. */
  | { readonly phase: 'unknown'; readonly description: string }

const BLOCKED_REASONS: Readonly<Record<string, string>> = {
  grace_period: 'the domain changed hands or was verified recently and is in a grace period',
  recent_owner_activity: 'the current owner used the domain recently',
  pending_scheduled_emails: 'the current owner has scheduled e-mails from the domain',
}

/** Characters of a name in a message (RFC 1035 section 2.3.4). */
const MAX_NAME_LENGTH = 255
/** Characters of a status or reason in a message: far more than a real one has. */
const MAX_WORD_LENGTH = 120

/** The domain's name, or a phrase for it if the service sent none. */
export function nameOf(claim: DomainClaim): string {
  return claim.name ? clip(claim.name, MAX_NAME_LENGTH) : 'the domain'
}

/** The claim's domain as an argument in a hint, with a space before it; empty if it would need quoting. */
export function asArgument({ name }: DomainClaim): string {
  return /^\w[\w.-]*$/.test(name ?? '') ? ` ${name}` : ''
}

/** Says that nobody needs to work on DNS for a completed claim. */
export const completedText = (claim: DomainClaim): string =>
  `the claim is completed: ${nameOf(claim)} no longer needs its record`

const startAgain = (claim: DomainClaim): string =>
  `start a new claim with: mailclaim claims create${asArgument(claim)}`

/** What a person reads of a claim that is gone, in place of its state. */
export const GONE = 'the service no longer has it'

/**
 * The error for a claim that this machine has seen, and that the service no longer has: exit 5.
 *
 * @param cause how the service said so; absent if it did before
 */
export function goneError(claim: DomainClaim, cause?: CliError): CliError {
  const gone = `the service no longer has the claim of ${nameOf(claim)}`
  const isCompleted = stateOf(claim).phase === 'completed'
  return new CliError(
    cause?.code ?? 'not_found',
    Exit.notFound,
    isCompleted ? `${gone}, which was completed when it was last seen` : gone,
    {
      hint: isCompleted
        ? undefined
        : `its placeholder domain may have been deleted, which cancels a claim; to start another: mailclaim claims create${asArgument(claim)}`,
      status: cause?.status,
      cause,
    },
  )
}

/**
 * Interprets a claim's status. The interface names only `pending`; the others are known from similar services. A claim with
 * an unknown status is in progress unless it has a failure or block reason.
 */
export function stateOf(claim: DomainClaim): ClaimState {
  const failure = claim.failure_reason ? ` (${clip(claim.failure_reason, MAX_WORD_LENGTH)})` : ''
  const ended = (description: string, next = startAgain(claim)): ClaimState => ({
    phase: 'ended',
    description,
    next,
  })
  switch (claim.status) {
    case 'pending':
      return { phase: 'in_flight', description: `waiting for the TXT record to be verified${failure}` }
    case 'verified':
      return { phase: 'in_flight', description: 'TXT record accepted, transfer in progress' }
    case 'completed':
      return { phase: 'completed', description: 'the domain is yours' }
    case 'blocked':
      return { phase: 'blocked', description: describeBlock(claim) }
    case 'expired':
      return ended('the claim expired before it was verified')
    case 'superseded':
      return ended(
        'a newer claim replaced this one',
        `the newer claim may be completed, and the domain yours already; to see that where it was made: mailclaim claims list --refresh; or anywhere, by its domain id: mailclaim claims get DOMAIN_ID; if it is still open, it has a different TXT record: mailclaim claims record DOMAIN_ID; to start another claim, which ends the newer one: mailclaim claims create${asArgument(claim)}`,
      )
    case 'canceled':
      return ended('the claim was canceled')
    case 'failed':
      return ended(`the claim failed${failure}`)
  }
  const status = claim.status ? `status "${clip(claim.status, MAX_WORD_LENGTH)}"` : 'no status'
  if (claim.failure_reason) return ended(`the claim ended with ${status}${failure}`)
  if (claim.blocked_reason) return { phase: 'blocked', description: describeBlock(claim) }
  return { phase: 'unknown', description: claim.status ? `unknown ${status}` : 'the claim has no status' }
}

function describeBlock({ blocked_reason: reason }: DomainClaim): string {
  if (!reason) return 'a safety check stopped the claim; the service gives no reason'
  const known = Object.hasOwn(BLOCKED_REASONS, reason) ? BLOCKED_REASONS[reason] : undefined
  return `${known ?? 'a safety check stopped the claim'} (${clip(reason, MAX_WORD_LENGTH)})`
}

/**
 * When the claim expired, by a clock at `now` (milliseconds since 1970); undefined if it hasn't, or can't anymore. Only an
 * unverified claim expires, not a transfer in progress.
 */
export function expiredAt(claim: DomainClaim, now: number): string | undefined {
  const { phase } = stateOf(claim)
  if (phase === 'completed' || phase === 'ended' || claim.status === 'verified') return undefined
  const expiry = parseTimestamp(claim.expires_at)
  return expiry !== undefined && expiry <= now ? (claim.expires_at ?? undefined) : undefined
}

/** Whether the service may still need the record: it hasn't accepted it, blocked the claim, or ended it. */
export const needsRecord = (claim: DomainClaim): boolean =>
  claim.status === 'pending' || stateOf(claim).phase === 'unknown'

/** Whether the claim, as last seen, may still complete. */
export function isOpen(claim: DomainClaim, now: number): boolean {
  const { phase } = stateOf(claim)
  return phase !== 'completed' && phase !== 'ended' && expiredAt(claim, now) === undefined
}

/** Says that a new claim was made although an earlier one was open when it was last seen. */
export function besideWarning({ name, region, created_at }: DomainClaim): string {
  const details = [region && `region ${region}`, created_at && `created ${created_at}`].filter(Boolean)
  return `${name} already had an open claim${details.length > 0 ? ` (${details.join(', ')})` : ''}: the service may end it in favor of this new one, which needs its own TXT record`
}

/**
 * Says which options of a request have no effect on a claim that already existed; undefined if there are none. The service
 * doesn't show what a claim was created with, except for the region.
 */
export function unappliedWarning(request: ClaimRequest, claim: DomainClaim): string | undefined {
  const { name, ...options } = request
  const flags = Object.entries(options)
    .filter(([key, value]) => key !== 'region' || value !== claim.region)
    .map(([key, value]) => `--${value === false ? 'no-' : ''}${key.replaceAll('_', '-')}`)
  if (flags.length === 0) return undefined
  return `${flags.join(', ')} ${flags.length === 1 ? 'has' : 'have'} no effect on a claim that already exists: it keeps what it was created with`
}

/** The error of a command whose claim ended unsuccessfully or is blocked: exit 9. */
export function endedError(claim: DomainClaim, state: ClaimState): CliError {
  if (state.phase === 'blocked') {
    return new CliError(
      'claim_blocked',
      Exit.negativeEnd,
      `${nameOf(claim)} is blocked: ${state.description}`,
      {
        hint: `a block can lift by itself; to wait for that: mailclaim claims watch${asArgument(claim)} --through-blocked`,
      },
    )
  }
  const code = /^[a-z_]{1,40}$/.test(claim.status ?? '') ? `claim_${claim.status}` : 'claim_ended'
  return new CliError(code, Exit.negativeEnd, `${nameOf(claim)}: ${state.description}`, {
    hint: state.phase === 'ended' ? state.next : undefined,
  })
}

/**
 * The error for a claim that has ended unsuccessfully, as last seen or by a clock at `now` (milliseconds since 1970);
 * undefined if it has completed or may still do so.
 */
export function endOf(claim: DomainClaim, now: number): CliError | undefined {
  const state = stateOf(claim)
  if (state.phase === 'ended') return endedError(claim, state)
  const expired = expiredAt(claim, now)
  if (expired === undefined) return undefined
  const message = `by this machine's clock the claim of ${nameOf(claim)} expired at ${expired}`
  return new CliError('claim_expired', Exit.negativeEnd, message, { hint: startAgain(claim) })
}

/**
 * When a claim was last seen at the service: `3 days ago`.
 *
 * @param seenAt milliseconds since 1970
 * @param now milliseconds since 1970
 */
export function lastSeen(seenAt: number, now: number): string {
  // The clock may have been set back.
  return seenAt > now ? `at ${formatTime(seenAt)}` : relativeTime(seenAt, now)
}
