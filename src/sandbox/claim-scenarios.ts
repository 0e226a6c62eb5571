import { Problem, validationError } from './problems.ts'

/** What can happen to a claim: set through the control API, or by the first label of its domain. */
export type ClaimScenario =
  | { readonly outcome: 'complete' | 'verify' | 'unblock' | 'expire' | 'supersede' | 'cancel' }
  | { readonly outcome: 'block' | 'fail'; readonly reason: string }
  /** A status that the service may add in the future. */
  | { readonly outcome: 'status'; readonly status: string }

const PLAIN = ['complete', 'verify', 'unblock', 'expire', 'supersede', 'cancel'] as const

/** @throws Problem 422 for anything else. */
export function readScenario(body: unknown): ClaimScenario {
  const fields: Record<string, unknown> = typeof body === 'object' && body !== null ? { ...body } : {}
  const text = (name: string, otherwise: string) => {
    const value = fields[name] ?? otherwise
    if (typeof value !== 'string' || value === '') throw validationError(`\`${name}\` must be a text.`)
    return value
  }
  const outcome = fields['outcome']
  const plain = PLAIN.find((known) => known === outcome)
  if (plain !== undefined) return { outcome: plain }
  if (outcome === 'block') return { outcome, reason: text('reason', 'recent_owner_activity') }
  if (outcome === 'fail') return { outcome, reason: text('reason', 'ownership_check_failed') }
  if (outcome === 'status') return { outcome, status: text('status', 'under_review') }
  throw validationError(`\`outcome\` must be one of ${PLAIN.join(', ')}, block, fail, status.`)
}

/**
 * First labels that decide what happens to a claim once its TXT record was found. The steps run in order, each after
 * the transfer delay.
 */
const BY_FIRST_LABEL: Readonly<Record<string, readonly ClaimScenario[]>> = {
  blocked: [{ outcome: 'block', reason: 'recent_owner_activity' }],
  'blocked-grace': [{ outcome: 'block', reason: 'grace_period' }],
  'blocked-emails': [{ outcome: 'block', reason: 'pending_scheduled_emails' }],
  'blocked-briefly': [
    { outcome: 'block', reason: 'grace_period' },
    { outcome: 'unblock' },
    { outcome: 'complete' },
  ],
  failed: [{ outcome: 'fail', reason: 'ownership_check_failed' }],
  expired: [{ outcome: 'expire' }],
  superseded: [{ outcome: 'supersede' }],
  canceled: [{ outcome: 'cancel' }],
  'unheard-of': [{ outcome: 'status', status: 'under_review' }, { outcome: 'complete' }],
  'unheard-of-for-ever': [{ outcome: 'status', status: 'under_review' }],
}

/** What happens to a claim for this domain after its record was found; completion unless its first label says otherwise. */
export function stepsByName(domain: string): readonly ClaimScenario[] {
  const label = domain.split('.')[0] ?? ''
  const steps = Object.hasOwn(BY_FIRST_LABEL, label) ? BY_FIRST_LABEL[label] : undefined
  return steps ?? [{ outcome: 'complete' }]
}

export function alreadyOwned(): Problem {
  return new Problem(409, 'domain_already_owned', 'The domain already belongs to your team.')
}

/** Domains whose first label makes the creation of a claim fail. */
const REFUSALS: Readonly<Record<string, () => Problem>> = {
  unclaimable: () =>
    new Problem(
      403,
      'claim_not_allowed',
      'The domain is not verified by another team: create the domain instead of claiming it.',
    ),
  own: alreadyOwned,
}

/** Why no claim is created for this domain, if its first label says so. */
export function refusalByName(domain: string): Problem | undefined {
  const label = domain.split('.')[0] ?? ''
  return Object.hasOwn(REFUSALS, label) ? REFUSALS[label]?.() : undefined
}
