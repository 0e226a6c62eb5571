import type { ClaimRequest } from './claim-requests.ts'
import { alreadyOwned, type ClaimScenario, refusalByName, stepsByName } from './claim-scenarios.ts'
import { notFound, Problem } from './problems.ts'
import { randomUuid, type SandboxRuntime } from './runtime.ts'
import { timestamp, type VirtualClock } from './virtual-clock.ts'

const CLAIM_WINDOW_MS = 7 * 86_400_000
const VALUE_PREFIX = 'sandbox-domain-verification'

/** A domain claim as the service shows it (interface, section 2.5). */
export interface DomainClaim {
  readonly object: 'domain_claim'
  readonly id: string
  readonly name: string
  readonly status: string
  readonly domain_id: string
  readonly region: string
  readonly record: {
    readonly type: 'TXT'
    readonly name: string
    readonly value: string
    readonly ttl: string
  }
  readonly blocked_reason: string | null
  readonly failure_reason: string | null
  readonly created_at: string
  readonly expires_at: string
}

interface Claim {
  readonly id: string
  readonly domainId: string
  readonly request: ClaimRequest
  readonly value: string
  readonly createdAt: number
  readonly expiresAt: number
  status: string
  blockedReason: string | null
  failureReason: string | null
  verifyAsked: boolean
  recordSeen: boolean
  /** Set for the domain before this claim existed. */
  readonly preset: ClaimScenario | undefined
  /** Cancels the next planned step. */
  cancelNext: () => void
}

interface ClaimDelays {
  /** From the verification request to the first DNS lookup, and between lookups. */
  readonly checkMs: number
  /** Between the steps after the record was found. */
  readonly transferMs: number
}

export interface Claims {
  /** @throws Problem 403 or 409 for a domain that cannot be claimed. */
  create(request: ClaimRequest): { claim: DomainClaim; isNew: boolean }
  /** @throws Problem 404 or 409. */
  verify(domainId: string): DomainClaim
  /** @throws Problem 404. */
  get(domainId: string): DomainClaim
  /**
   * Applies a scenario to a claim now; `key` is a domain or a placeholder domain id. For a domain without a claim, the
   * scenario is kept for its next one and applies once that one's record was found.
   */
  settle(key: string, outcome: ClaimScenario): DomainClaim | undefined
  /** By domain (its newest claim) or placeholder domain id. */
  find(key: string): DomainClaim | undefined
  list(): readonly DomainClaim[]
}

export interface ClaimsOptions {
  readonly runtime: SandboxRuntime
  readonly clock: VirtualClock
  readonly delays: ClaimDelays
  /** The TXT records of a name as a DNS query finds them. */
  readonly lookUp: (name: string) => Promise<readonly string[]>
  /** Makes sure that the domain has a zone. */
  readonly ensureZone: (name: string) => void
}

const VERIFIABLE = new Set(['pending', 'verified', 'blocked', 'completed'])
/** In any other status, known or not, a claim can still proceed. */
const OVER = new Set(['completed', 'expired', 'superseded', 'canceled', 'failed'])

const STATUS = {
  complete: 'completed',
  verify: 'verified',
  block: 'blocked',
  fail: 'failed',
  expire: 'expired',
  supersede: 'superseded',
  cancel: 'canceled',
} as const

function statusAfter(claim: Claim, scenario: ClaimScenario, now: number): string {
  if (scenario.outcome === 'status') return scenario.status
  if (scenario.outcome !== 'unblock') return STATUS[scenario.outcome]
  if (claim.recordSeen) return 'verified'
  return now < claim.expiresAt ? 'pending' : 'expired'
}

/** All claims; only a verification request makes the service query DNS (interface, section 3.4). */
export function createClaims({ runtime, clock, delays, lookUp, ensureZone }: ClaimsOptions): Claims {
  const byDomainId = new Map<string, Claim>()
  /** The newest claim of a domain. */
  const byName = new Map<string, Claim>()
  const presets = new Map<string, ClaimScenario>()

  const named = (key: string) => byDomainId.get(key) ?? byName.get(key)

  function later(claim: Claim, due: number, run: (due: number) => void | Promise<void>): void {
    claim.cancelNext()
    claim.cancelNext = clock.at(due, run)
  }

  async function look(claim: Claim, due: number): Promise<void> {
    const values = await lookUp(claim.request.name)
    if (claim.status !== 'pending' || claim.recordSeen) return
    if (values.includes(claim.value)) {
      claim.recordSeen = true
      claim.status = 'verified'
      runSteps(claim, due, claim.preset === undefined ? stepsByName(claim.request.name) : [claim.preset])
    } else {
      // From now, not from `due`: nothing changes in DNS during a jump of the clock.
      later(claim, clock.now() + delays.checkMs, (next) => look(claim, next))
    }
  }

  function runSteps(claim: Claim, from: number, [step, ...rest]: readonly ClaimScenario[]): void {
    if (step === undefined) return
    later(claim, from + delays.transferMs, (due) => {
      apply(claim, step)
      runSteps(claim, due, rest)
    })
  }

  function apply(claim: Claim, scenario: ClaimScenario): void {
    const { outcome } = scenario
    claim.cancelNext()
    claim.blockedReason = outcome === 'block' ? scenario.reason : null
    claim.failureReason = outcome === 'fail' ? scenario.reason : null
    claim.status = statusAfter(claim, scenario, clock.now())
    if (outcome === 'verify') claim.recordSeen = true
    if (outcome === 'verify' || outcome === 'unblock') resume(claim)
  }

  function resume(claim: Claim): void {
    if (claim.recordSeen) runSteps(claim, clock.now(), [{ outcome: 'complete' }])
    else if (claim.status === 'pending' && claim.verifyAsked)
      later(claim, clock.now() + delays.checkMs, (due) => look(claim, due))
  }

  function find(domainId: string): Claim {
    const claim = byDomainId.get(domainId)
    if (claim === undefined) throw notFound('There is no claim for this domain id.')
    return claim
  }

  return {
    create(request) {
      const refusal = refusalByName(request.name)
      if (refusal !== undefined) throw refusal
      const earlier = byName.get(request.name)
      if (earlier !== undefined && !OVER.has(earlier.status)) {
        if (JSON.stringify(earlier.request) === JSON.stringify(request)) {
          return { claim: shown(earlier), isNew: false }
        }
        apply(earlier, { outcome: 'supersede' })
      }
      if (earlier?.status === 'completed') throw alreadyOwned()
      const now = clock.now()
      const claim: Claim = {
        id: randomUuid(runtime.random),
        domainId: randomUuid(runtime.random),
        request,
        value: `${VALUE_PREFIX}=${verificationToken(runtime.random)}`,
        createdAt: now,
        expiresAt: now + CLAIM_WINDOW_MS,
        status: 'pending',
        blockedReason: null,
        failureReason: null,
        verifyAsked: false,
        recordSeen: false,
        preset: presets.get(request.name),
        cancelNext: () => {},
      }
      presets.delete(request.name)
      byDomainId.set(claim.domainId, claim)
      byName.set(request.name, claim)
      ensureZone(request.name)
      clock.at(claim.expiresAt, () => {
        if (claim.status === 'pending') apply(claim, { outcome: 'expire' })
      })
      return { claim: shown(claim), isNew: true }
    },
    verify(domainId) {
      const claim = find(domainId)
      if (claim.status === 'pending') {
        // If asked again, the lookup that is already planned is enough.
        if (!claim.verifyAsked) later(claim, clock.now() + delays.checkMs, (due) => look(claim, due))
        claim.verifyAsked = true
      } else if (!VERIFIABLE.has(claim.status)) {
        throw new Problem(409, 'claim_not_pending', `The claim is ${claim.status}: create a new one.`)
      }
      return shown(claim)
    },
    get: (domainId) => shown(find(domainId)),
    settle(key, outcome) {
      const claim = named(key)
      if (claim === undefined) {
        presets.set(key, outcome)
        return undefined
      }
      apply(claim, outcome)
      return shown(claim)
    },
    find(key) {
      const claim = named(key)
      return claim === undefined ? undefined : shown(claim)
    },
    list: () => [...byDomainId.values()].map(shown),
  }
}

function shown(claim: Claim): DomainClaim {
  return {
    object: 'domain_claim',
    id: claim.id,
    name: claim.request.name,
    status: claim.status,
    domain_id: claim.domainId,
    region: claim.request.region,
    record: { type: 'TXT', name: claim.request.name, value: claim.value, ttl: 'Auto' },
    blocked_reason: claim.blockedReason,
    failure_reason: claim.failureReason,
    created_at: timestamp(claim.createdAt),
    expires_at: timestamp(claim.expiresAt),
  }
}

/** Letters of both cases and digits, so that a value in lower case is a wrong value. */
function verificationToken(random: SandboxRuntime['random']): string {
  const text = Buffer.from(random.bytes(48)).toString('base64').replaceAll(/[+/=]/g, '').slice(0, 30)
  return `V${text}k`
}
