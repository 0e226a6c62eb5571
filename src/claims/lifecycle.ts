import { CliError, type ErrorCode } from '../errors.ts'
import { parseTimestampMs } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import { clip } from '../terminal/sanitize.ts'

/** Phases of a claim, with the values of `ClaimState.isOpen` and `ClaimState.needsRecord` in each. */
const PHASES = {
  /** The claim waits for a verification request or, after one, for the service to find the TXT record. */
  pending: { isOpen: true, needsRecord: true },
  /** The service has found the record, and transfers the domain. */
  accepted: { isOpen: true, needsRecord: false },
  /** A safety check of the service has stopped the claim, maybe only for a time. */
  blocked: { isOpen: true, needsRecord: false },
  /** The status is missing, or this version of the program doesn't know it; treated as in progress. */
  unknown: { isOpen: true, needsRecord: true },
  completed: { isOpen: false, needsRecord: false },
  expired: { isOpen: false, needsRecord: false },
  /** A newer claim, maybe another team's, has replaced this one. One more claim would end the newer one. */
  superseded: { isOpen: false, needsRecord: false },
  /** The claim was canceled, has failed, or has ended with an unknown or missing status. */
  ended: { isOpen: false, needsRecord: false },
} as const

export type ClaimPhase = keyof typeof PHASES

/** State of a claim, derived from its status, reasons and expiry time. */
export interface ClaimState {
  readonly phase: ClaimPhase
  /** Whether the claim may still complete. */
  readonly isOpen: boolean
  /** Whether the service still has to find the TXT record before the claim can complete. */
  readonly needsRecord: boolean
  /** Description of the state for the user, without a final period, such as "the claim was canceled". */
  readonly text: string
  /** The error, exit 9, of a claim that is blocked or has ended without success; undefined in other phases. */
  readonly error: CliError | undefined
}

/** Explanations of the `blocked_reason` values that the service documents. */
const BLOCKED_REASONS: ReadonlyMap<string, string> = new Map([
  ['grace_period', 'the domain changed hands or was verified recently and is in a grace period'],
  ['recent_owner_activity', 'the current owner used the domain recently'],
  ['pending_scheduled_emails', 'the current owner has scheduled e-mails from the domain'],
])

/**
 * Phase, error code and message for each known status of a claim that has ended without success. The statuses are those of
 * similar services, because this service documents none.
 */
const ENDS: ReadonlyMap<string, readonly [phase: ClaimPhase, code: ErrorCode, text: string]> = new Map([
  ['expired', ['expired', 'claim_expired', 'the claim expired before it was verified']],
  ['superseded', ['superseded', 'claim_superseded', 'a newer claim replaced this one']],
  ['canceled', ['ended', 'claim_canceled', 'the claim was canceled']],
  ['failed', ['ended', 'claim_failed', 'the claim failed']],
])

/** Maximum characters of a claim's domain in a message for users; DNS limits names to 255 octets (RFC 1035 section 2.3.4). */
const MAX_NAME_LENGTH = 255
/** Maximum characters of a claim's status or reason in a message; a longer text is cut. */
const MAX_WORD_LENGTH = 120
/** Milliseconds after `expires_at` before a claim counts as expired: this machine's clock may be ahead of the service's. */
const MAX_SKEW_MS = 30_000

/** Returns the claim's domain for a message: quoted if malformed, or "the domain" if the service sent no name. */
export function describeDomain({ name }: DomainClaim): string {
  if (!name) return 'the domain'
  const text = clip(name, MAX_NAME_LENGTH)
  return /^[\p{L}\p{N}_][^\s:"]*\.[^\s:"]*$/u.test(text) ? text : `"${text}"`
}

/**
 * Returns a space and the claim's domain, to complete a command in a hint; an empty string if the name is missing, isn't ASCII,
 * or isn't safe in a shell.
 */
export const domainArg = ({ name }: DomainClaim): string => (/^\w[\w.-]*$/.test(name ?? '') ? ` ${name}` : '')

/**
 * Derives a claim's state from its fields. The service documents only the status `pending`, so this function also knows the
 * statuses of similar services. An open claim that isn't verified counts as expired after `expires_at`.
 *
 * @param nowMs milliseconds since 1970
 */
export function getClaimState(claim: DomainClaim, nowMs: number): ClaimState {
  const { status, failure_reason: failure, blocked_reason: reason } = claim
  const why = failure ? ` (${clip(failure, MAX_WORD_LENGTH)})` : ''
  if (status === 'completed') return judged('completed', 'the domain is yours')
  if (status === 'verified') return judged('accepted', 'TXT record accepted, transfer in progress')
  const end = ENDS.get(status ?? '')
  if (end !== undefined) {
    const [phase, code, text] = end
    return ended(claim, phase, code, `${text}${status === 'failed' ? why : ''}`)
  }
  const expiry = parseTimestampMs(claim.expires_at)
  if (expiry !== undefined && expiry + MAX_SKEW_MS <= nowMs)
    return ended(
      claim,
      'expired',
      'claim_expired',
      `by this machine's clock the claim expired at ${claim.expires_at}`,
    )
  const word = status ? `status "${clip(status, MAX_WORD_LENGTH)}"` : 'no status'
  if (failure && status !== 'pending' && status !== 'blocked')
    return ended(claim, 'ended', 'claim_ended', `the claim ended with ${word}${why}`)
  if (status === 'blocked' || (reason && status !== 'pending')) return blocked(claim)
  if (status === 'pending') return judged('pending', `waiting for the TXT record to be verified${why}`)
  return judged('unknown', `unknown ${word}; still waiting`)
}

const judged = (phase: ClaimPhase, text: string, error?: CliError): ClaimState => {
  return { ...PHASES[phase], phase, text, error }
}

function ended(claim: DomainClaim, phase: ClaimPhase, code: ErrorCode, text: string): ClaimState {
  const again = `mailclaim claims create${domainArg(claim)}`
  const hint =
    phase === 'superseded'
      ? `the newer claim may be your own, made elsewhere; only if nobody needs it: ${again}`
      : `to start a new claim: ${again}`
  return judged(phase, text, new CliError(code, `${describeDomain(claim)}: ${text}`, { hint }))
}

function blocked(claim: DomainClaim): ClaimState {
  const { blocked_reason: reason } = claim
  const text = `${BLOCKED_REASONS.get(reason ?? '') ?? 'a safety check stopped the claim'} (${reason ? clip(reason, MAX_WORD_LENGTH) : 'no reason given'})`
  const hint = `a block can lift by itself; to wait for that: mailclaim claims watch${domainArg(claim)} --through-blocked`
  const message = `${describeDomain(claim)} is blocked: ${text}`
  return judged('blocked', text, new CliError('claim_blocked', message, { hint }))
}
