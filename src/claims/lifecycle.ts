import { CliError, Exit } from '../errors.ts'
import type { DomainClaim } from '../service/types.ts'
import { clip } from '../terminal/sanitize.ts'

/** Where a claim stands, whatever the service calls it. */
export type Standing =
  /** The service works on it, or waits for DNS. */
  | { readonly phase: 'in_flight'; readonly says: string }
  /** The domain is transferred. */
  | { readonly phase: 'completed'; readonly says: string }
  /** Stopped by a safety check that can lift by itself. */
  | { readonly phase: 'blocked'; readonly says: string }
  /** It will never complete. */
  | { readonly phase: 'ended'; readonly says: string; readonly next: string }
  /** A status that this program does not know: shown as it is and waited for. */
  | { readonly phase: 'unknown'; readonly says: string }

const BLOCKED_REASONS: Readonly<Record<string, string>> = {
  grace_period: 'the domain changed hands or was verified only lately, and a grace period runs',
  recent_owner_activity: 'its present owner has used the domain lately',
  pending_scheduled_emails: 'its present owner has e-mails scheduled from it',
}

/** Characters that a message shows of a name (RFC 1035 section 2.3.4) and of a status or reason: more is no honest answer. */
const LONGEST_NAME = 255
const LONGEST_WORD = 120

/** The domain's name, or words that stand for it where the service sent none. */
export function nameOf(claim: DomainClaim): string {
  return claim.name ? clip(claim.name, LONGEST_NAME) : 'the domain'
}

/** The claim's domain as an argument in a hint, with a space before it; nothing where it would need quoting. */
export function asArgument({ name }: DomainClaim): string {
  return /^\w[\w.-]*$/.test(name ?? '') ? ` ${name}` : ''
}

const again = (claim: DomainClaim) => `start a new claim with: mailclaim claims create${asArgument(claim)}`

/**
 * Reads a claim's status. The interface names only `pending`; the others are known from services of this shape, and
 * none is required: a status never heard of is in flight unless a reason says that it is over.
 */
export function standingOf(claim: DomainClaim): Standing {
  const failure = claim.failure_reason ? ` (${clip(claim.failure_reason, LONGEST_WORD)})` : ''
  switch (claim.status) {
    case 'pending':
      return { phase: 'in_flight', says: `waiting for the TXT record${failure}` }
    case 'verified':
      return { phase: 'in_flight', says: 'the TXT record is accepted, the transfer is running' }
    case 'completed':
      return { phase: 'completed', says: 'the domain is yours' }
    case 'blocked':
      return { phase: 'blocked', says: blockedBy(claim) }
    case 'expired':
      return { phase: 'ended', says: 'the claim expired before it was verified', next: again(claim) }
    case 'superseded':
      return {
        phase: 'ended',
        says: 'a newer claim replaced this one',
        next: 'see who in your team made the newer claim; its TXT record is another one',
      }
    case 'canceled':
      return {
        phase: 'ended',
        says: 'the claim was canceled: its placeholder domain was deleted',
        next: again(claim),
      }
    case 'failed':
      return { phase: 'ended', says: `the claim failed${failure}`, next: again(claim) }
    default: {
      const status = claim.status ? `"${clip(claim.status, LONGEST_WORD)}"` : 'no status'
      if (claim.failure_reason)
        return { phase: 'ended', says: `the claim ended with ${status}${failure}`, next: again(claim) }
      if (claim.blocked_reason) return { phase: 'blocked', says: blockedBy(claim) }
      return { phase: 'unknown', says: `the service says ${status}, which this program does not know` }
    }
  }
}

function blockedBy(claim: DomainClaim): string {
  if (!claim.blocked_reason) return 'a safety check stopped the claim; the service gives no reason'
  const known = Object.hasOwn(BLOCKED_REASONS, claim.blocked_reason)
    ? BLOCKED_REASONS[claim.blocked_reason]
    : undefined
  return known === undefined
    ? `a safety check stopped the claim (${clip(claim.blocked_reason, LONGEST_WORD)})`
    : `${known} (${clip(claim.blocked_reason, LONGEST_WORD)})`
}

/** The error with which a command ends whose claim has come to a bad end: exit 9. */
export function endedError(claim: DomainClaim, standing: Standing): CliError {
  if (standing.phase === 'blocked') {
    return new CliError('claim_blocked', Exit.negativeEnd, `${nameOf(claim)} is blocked: ${standing.says}`, {
      hint: `a block can lift by itself; to wait for that: mailclaim claims watch${asArgument(claim)} --through-blocked`,
    })
  }
  const code = /^[a-z_]{1,40}$/.test(claim.status ?? '') ? `claim_${claim.status}` : 'claim_ended'
  return new CliError(code, Exit.negativeEnd, `${nameOf(claim)}: ${standing.says}`, {
    hint: standing.phase === 'ended' ? standing.next : undefined,
  })
}
