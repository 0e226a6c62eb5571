import { randomBytes, randomUUID } from 'node:crypto'
import { domainToASCII } from 'node:url'
import { formatPostgresTimestamp, type VirtualClock } from './clock.ts'
import { HttpError, notFoundError, readObject, validationError } from './http.ts'

const CLAIM_WINDOW_MS = 7 * 86_400_000

export type ClaimJson = ReturnType<typeof serializeClaim>

const DEFAULT_REASONS: ReadonlyMap<string, string> = new Map([
  ['blocked', 'recent_owner_activity'],
  ['failed', 'ownership_check_failed'],
])
/** Statuses that a claim gets once its record is found, if its domain's first label is the status: `blocked.example.com`. */
const OUTCOME_LABELS = ['blocked', 'failed', 'expired', 'superseded', 'canceled']

function firstLabel(domain: string): string {
  return domain.split('.')[0] ?? ''
}

interface Claim {
  readonly id: string
  readonly domainId: string
  readonly request: ReturnType<typeof readClaimRequest>
  readonly value: string
  readonly createdAt: number
  readonly expiresAt: number
  status: string
  reason: string | null
  verifyRequested: boolean
  /** Cancels the claim's scheduled DNS lookup or status change, but not its expiry. */
  cancelNextStep: () => void
}

interface ClaimsOptions {
  readonly clock: VirtualClock
  /** Virtual milliseconds before each DNS lookup, and from the status `verified` to the next status. */
  readonly stepMs: number
  /** Queries DNS for the TXT values of a name; an empty list if it has none or the query fails. */
  readonly lookUp: (name: string) => Promise<readonly string[]>
}

/** Statuses of a claim in which a verification request is accepted; in other statuses, the request gets HTTP 409. */
const VERIFIABLE_STATUSES = ['pending', 'verified', 'blocked', 'completed']
/** Statuses that end a claim. A claim in another status is superseded when its domain is claimed with other options. */
const FINAL_STATUSES = ['completed', 'expired', 'superseded', 'canceled', 'failed']

export type ClaimStore = ReturnType<typeof createClaimStore>

/** Creates the store of claims, which queries DNS for a claim's record only after a verification request. */
export function createClaimStore({ clock, stepMs, lookUp }: ClaimsOptions) {
  const byDomainId = new Map<string, Claim>()
  /** The newest claim of each domain, by the domain's name in lowercase. */
  const byName = new Map<string, Claim>()

  function requireClaim(claim: Claim | undefined): Claim {
    if (claim === undefined) throw notFoundError('There is no such claim.')
    return claim
  }
  const findByKey = (key: string) => requireClaim(byDomainId.get(key) ?? byName.get(key.toLowerCase()))

  function schedule(claim: Claim, due: number, run: (due: number) => void | Promise<void>): void {
    claim.cancelNextStep()
    claim.cancelNextStep = clock.schedule(due, run)
  }

  function scheduleLookup(claim: Claim): void {
    // Schedule the lookup from the current time, not from the due time of the previous one: otherwise a jump of the clock would
    // run a lookup for each step that it skips.
    schedule(claim, clock.now() + stepMs, async (due) => {
      const values = await lookUp(claim.request.name)
      if (claim.status !== 'pending') return
      if (!values.includes(claim.value)) return scheduleLookup(claim)
      claim.status = 'verified'
      const label = firstLabel(claim.request.name)
      scheduleStatus(claim, due, OUTCOME_LABELS.includes(label) ? label : 'completed')
    })
  }

  function scheduleStatus(claim: Claim, from: number, status: string): void {
    schedule(claim, from + stepMs, () => setStatus(claim, status))
  }

  /** Sets a claim's status and reason, and cancels its scheduled DNS lookup or status change. */
  function setStatus(claim: Claim, status: string, reason = DEFAULT_REASONS.get(status)): void {
    claim.cancelNextStep()
    claim.status = status
    claim.reason = reason ?? null
  }

  return {
    /**
     * Creates a claim. If the domain has an unfinished claim, the same options return that claim, and other options supersede it.
     * @throws HttpError 403 or 409 for a domain that can't be claimed, 422 for a malformed request
     */
    create(body: unknown): { claim: ClaimJson; isNew: boolean } {
      const request = readClaimRequest(body)
      const label = firstLabel(request.name)
      if (label === 'unclaimable')
        throw new HttpError(
          403,
          'claim_not_allowed',
          'The domain is not verified by another team: create the domain instead of claiming it.',
        )
      const earlier = byName.get(request.name)
      if (label === 'own' || earlier?.status === 'completed')
        throw new HttpError(409, 'domain_already_owned', 'The domain already belongs to your team.')
      if (earlier !== undefined && !FINAL_STATUSES.includes(earlier.status)) {
        if (JSON.stringify(earlier.request) === JSON.stringify(request))
          return { claim: serializeClaim(earlier), isNew: false }
        setStatus(earlier, 'superseded')
      }
      const now = clock.now()
      const claim: Claim = {
        id: randomUUID(),
        domainId: randomUUID(),
        request,
        value: `sandbox-domain-verification=${createVerificationToken()}`,
        createdAt: now,
        expiresAt: now + CLAIM_WINDOW_MS,
        status: 'pending',
        reason: null,
        verifyRequested: false,
        cancelNextStep: () => {},
      }
      byDomainId.set(claim.domainId, claim)
      byName.set(request.name, claim)
      clock.schedule(claim.expiresAt, () => {
        if (claim.status === 'pending') setStatus(claim, 'expired')
      })
      return { claim: serializeClaim(claim), isNew: true }
    },
    /**
     * Handles a verification request: starts the DNS lookups of a pending claim.
     * @throws HttpError 404 for an unknown claim; 409 if the status isn't in `VERIFIABLE_STATUSES`
     */
    verify(domainId: string): ClaimJson {
      const claim = requireClaim(byDomainId.get(domainId))
      if (!VERIFIABLE_STATUSES.includes(claim.status))
        throw new HttpError(409, 'claim_not_pending', `The claim is ${claim.status}: create a new one.`)
      // Verification requests are idempotent, so a repeated one schedules no second lookup.
      if (claim.status === 'pending' && !claim.verifyRequested) scheduleLookup(claim)
      claim.verifyRequested = true
      return serializeClaim(claim)
    },
    get: (domainId: string) => serializeClaim(requireClaim(byDomainId.get(domainId))),
    /** Sets the status and its reason of the claim that `find` returns for `key`. @throws HttpError 404, 422 */
    setOutcome(key: string, body: Record<string, unknown>): ClaimJson {
      const { status, reason } = readOutcome(body)
      const claim = findByKey(key)
      setStatus(claim, status, reason)
      // `verified` and `pending` aren't final, so schedule the claim's next step, which `setStatus` has canceled. A pending claim
      // has a next step only after a verification request.
      if (status === 'verified') scheduleStatus(claim, clock.now(), 'completed')
      if (status === 'pending' && claim.verifyRequested) scheduleLookup(claim)
      return serializeClaim(claim)
    },
    /** Returns the claim with the `domain_id` `key`, else the newest claim of the domain `key`. @throws HttpError 404 if none */
    find: (key: string) => serializeClaim(findByKey(key)),
    list: () => [...byDomainId.values()].map(serializeClaim),
  }
}

function serializeClaim(claim: Claim) {
  const { name, region } = claim.request
  return {
    object: 'domain_claim',
    id: claim.id,
    name,
    status: claim.status,
    domain_id: claim.domainId,
    region,
    record: { type: 'TXT', name, value: claim.value, ttl: 'Auto' },
    blocked_reason: claim.status === 'blocked' ? claim.reason : null,
    failure_reason: claim.status === 'blocked' ? null : claim.reason,
    created_at: formatPostgresTimestamp(claim.createdAt),
    expires_at: formatPostgresTimestamp(claim.expiresAt),
  }
}

/** Returns a random token with an uppercase letter: otherwise the mistake `lower_case` could publish the right value. */
function createVerificationToken(): string {
  return `V${randomBytes(48).toString('base64').replaceAll(/[+/=]/g, '').slice(0, 30)}k`
}

/**
 * Reads the body of a control request that sets a claim's status: any non-empty text, so that tests can show clients an unknown
 * status. @throws HttpError 422 for a missing or malformed field
 */
function readOutcome({ status, reason }: Record<string, unknown>) {
  if (typeof status !== 'string' || status === '') throw validationError('`status` must be a text.')
  if (reason !== undefined && typeof reason !== 'string') throw validationError('`reason` must be a text.')
  return { status, reason }
}

const REGIONS = ['us-east-1', 'eu-west-1', 'sa-east-1', 'ap-northeast-1']
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Reads the body of a request to create a claim. Unknown fields are ignored; missing fields other than `name` get a default.
 * @throws HttpError 422 for a malformed body or field
 */
function readClaimRequest(body: unknown) {
  const fields = readObject(body, 'The body')
  const region = fields['region'] ?? 'us-east-1'
  if (typeof region !== 'string' || !REGIONS.includes(region))
    throw validationError(`The \`region\` field must be one of ${REGIONS.join(', ')}.`)
  return {
    name: readDomainName(fields['name']),
    region,
    customReturnPath: readLabel(fields, 'custom_return_path') ?? 'send',
    openTracking: readBoolean(fields, 'open_tracking'),
    clickTracking: readBoolean(fields, 'click_tracking'),
    trackingSubdomain: readLabel(fields, 'tracking_subdomain'),
  }
}

function readDomainName(text: unknown): string {
  if (typeof text !== 'string' || text === '') throw validationError('The `name` field is missing.')
  const ascii = /^[\p{L}\p{M}\p{Nd}.-]+$/u.test(text) ? domainToASCII(text).replace(/\.$/, '') : ''
  const labels = ascii.split('.')
  const isNumber = /^[0-9]+$/.test(labels.at(-1) ?? '')
  if (labels.length < 2 || ascii.length > 253 || isNumber || !labels.every((part) => LABEL.test(part)))
    throw validationError('The `name` field is not a valid domain name.')
  return ascii
}

function readBoolean(fields: Record<string, unknown>, name: string): boolean | null {
  const value = fields[name] ?? null
  if (value === null || typeof value === 'boolean') return value
  throw validationError(`The \`${name}\` field must be true or false.`)
}

function readLabel(fields: Record<string, unknown>, name: string): string | null {
  const value = fields[name] ?? null
  if (value === null) return null
  if (typeof value === 'string' && LABEL.test(value.toLowerCase())) return value.toLowerCase()
  throw validationError(`The \`${name}\` field must be one label of a domain name.`)
}
