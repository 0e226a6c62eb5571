import { CliError, type ErrorCode } from '../errors.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import { clip } from '../terminal/sanitize.ts'

/** How far a claim can be; whether it may still complete then, and whether the service may still look for the record. */
const PHASES = {
  /** The service looks for the record. */
  pending: { isOpen: true, needsRecord: true },
  /** It has found the record, and transfers the domain. */
  accepted: { isOpen: true, needsRecord: false },
  /** Stopped by a safety check that can lift by itself. */
  blocked: { isOpen: true, needsRecord: false },
  /** A status that this version doesn't know, which may still change. */
  unknown: { isOpen: true, needsRecord: true },
  completed: { isOpen: false, needsRecord: false },
  expired: { isOpen: false, needsRecord: false },
  /** A newer claim replaced it. Another one would end that, which may be somebody else's. */
  superseded: { isOpen: false, needsRecord: false },
  /** It will never complete, for another reason. */
  ended: { isOpen: false, needsRecord: false },
} as const

export type Phase = keyof typeof PHASES

/** What there is to say of a claim: the only interpretation of its status. */
export interface Judgement {
  readonly phase: Phase
  /** Whether it may still complete. */
  readonly isOpen: boolean
  /** Whether the service may still look for the record. */
  readonly needsRecord: boolean
  /** For people, as the rest of a sentence: "waiting for the TXT record". */
  readonly text: string
  /** How a command ends whose claim is blocked or has ended: exit 9. */
  readonly error: CliError | undefined
}

const BLOCKED_REASONS: ReadonlyMap<string, string> = new Map([
  ['grace_period', 'the domain changed hands or was verified recently and is in a grace period'],
  ['recent_owner_activity', 'the current owner used the domain recently'],
  ['pending_scheduled_emails', 'the current owner has scheduled e-mails from the domain'],
])

/** The ends of a claim that services of this kind have, besides success. */
const ENDS: ReadonlyMap<string, readonly [phase: Phase, code: ErrorCode, text: string]> = new Map([
  ['expired', ['expired', 'claim_expired', 'the claim expired before it was verified']],
  ['superseded', ['superseded', 'claim_superseded', 'a newer claim replaced this one']],
  ['canceled', ['ended', 'claim_canceled', 'the claim was canceled']],
  ['failed', ['ended', 'claim_failed', 'the claim failed']],
])

/** Characters of a name in a message (RFC 1035 section 2.3.4). */
const MAX_NAME_LENGTH = 255
/** Characters of a status or reason in a message: far more than a real one has. */
const MAX_WORD_LENGTH = 120
/** How far this machine's clock may be ahead of the service's before an open claim counts as expired, in milliseconds. */
const MAX_SKEW_MS = 30_000

/** The domain's name, in quotation marks if it doesn't look like one; a phrase for it if the service sent none. */
export function nameOf({ name }: DomainClaim): string {
  if (!name) return 'the domain'
  const text = clip(name, MAX_NAME_LENGTH)
  return /^[\p{L}\p{N}_][^\s:"]*\.[^\s:"]*$/u.test(text) ? text : `"${text}"`
}

/** The claim's domain as an argument in a hint, with a space before it; empty if it would need quoting. */
export const asArgument = ({ name }: DomainClaim): string =>
  /^\w[\w.-]*$/.test(name ?? '') ? ` ${name}` : ''

/**
 * Interprets a claim. The interface names only the status `pending`; the others are known from similar services. An unknown one
 * is in progress unless it has a failure or block reason.
 *
 * @param now milliseconds since 1970: an unverified claim ends when it expires, whatever its status says
 */
export function judge(claim: DomainClaim, now: number): Judgement {
  const { status, failure_reason: failure, blocked_reason: reason } = claim
  const why = failure ? ` (${clip(failure, MAX_WORD_LENGTH)})` : ''
  if (status === 'completed') return judged('completed', 'the domain is yours')
  if (status === 'verified') return judged('accepted', 'TXT record accepted, transfer in progress')
  const end = ENDS.get(status ?? '')
  if (end !== undefined) {
    const [phase, code, text] = end
    return ended(claim, phase, code, `${text}${status === 'failed' ? why : ''}`)
  }
  const expiry = parseTimestamp(claim.expires_at)
  if (expiry !== undefined && expiry + MAX_SKEW_MS <= now)
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

const judged = (phase: Phase, text: string, error?: CliError): Judgement => {
  return { ...PHASES[phase], phase, text, error }
}

function ended(claim: DomainClaim, phase: Phase, code: ErrorCode, text: string): Judgement {
  const again = `mailclaim claims create${asArgument(claim)}`
  const hint =
    phase === 'superseded'
      ? `the newer claim may be your own, made elsewhere; only if nobody needs it: ${again}`
      : `to start a new claim: ${again}`
  return judged(phase, text, new CliError(code, `${nameOf(claim)}: ${text}`, { hint }))
}

function blocked(claim: DomainClaim): Judgement {
  const { blocked_reason: reason } = claim
  const text = `${BLOCKED_REASONS.get(reason ?? '') ?? 'a safety check stopped the claim'} (${reason ? clip(reason, MAX_WORD_LENGTH) : 'no reason given'})`
  const hint = `a block can lift by itself; to wait for that: mailclaim claims watch${asArgument(claim)} --through-blocked`
  const message = `${nameOf(claim)} is blocked: ${text}`
  return judged('blocked', text, new CliError('claim_blocked', message, { hint }))
}
