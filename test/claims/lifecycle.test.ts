import { describe, expect, it } from 'vitest'
import { endedError, stateOf } from '../../src/claims/lifecycle.ts'
import { nextSteps } from '../../src/claims/next-steps.ts'
import type { DomainClaim } from '../../src/service/types.ts'

const claim = (fields: Partial<Record<keyof DomainClaim, unknown>>) =>
  ({
    object: 'domain_claim',
    id: 'c',
    name: 'example.com',
    status: 'pending',
    domain_id: 'd',
    record: {},
    ...fields,
  }) as DomainClaim

describe("a claim's state", () => {
  it.each([
    [{ status: 'pending' }, 'in_flight'],
    [{ status: 'pending', failure_reason: 'record_not_found' }, 'in_flight'],
    [{ status: 'verified' }, 'in_flight'],
    [{ status: 'completed' }, 'completed'],
    [{ status: 'blocked', blocked_reason: 'grace_period' }, 'blocked'],
    [{ status: 'blocked', blocked_reason: null }, 'blocked'],
    [{ status: 'expired' }, 'ended'],
    [{ status: 'superseded' }, 'ended'],
    [{ status: 'canceled' }, 'ended'],
    [{ status: 'failed', failure_reason: 'whatever' }, 'ended'],
    [{ status: 'reviewing' }, 'unknown'],
    [{ status: null }, 'unknown'],
    [{ status: undefined }, 'unknown'],
    [{ status: 'reviewing', failure_reason: 'x' }, 'ended'],
    [{ status: 'reviewing', blocked_reason: 'x' }, 'blocked'],
    [{ status: 'toString' }, 'unknown'],
  ])('a claim with %j is in phase %s', (fields, phase) => {
    expect(stateOf(claim(fields)).phase).toBe(phase)
  })

  it('a known block is explained and an unknown one is shown as it is', () => {
    expect(
      stateOf(claim({ status: 'blocked', blocked_reason: 'recent_owner_activity' })).description,
    ).toContain('used the domain recently')
    expect(stateOf(claim({ status: 'blocked', blocked_reason: 'constructor' })).description).toBe(
      'a safety check stopped the claim (constructor)',
    )
  })

  it.each([
    [{ status: 'blocked' }, 'claim_blocked'],
    [{ status: 'expired' }, 'claim_expired'],
    [{ status: 'Some\u001bThing', failure_reason: 'x' }, 'claim_ended'],
  ])('a claim with %j ends with exit 9 and code %s', (fields, code) => {
    const bad = claim(fields)
    expect(endedError(bad, stateOf(bad))).toMatchObject({ exit: 9, code })
  })

  it('the next steps after completion are listed', () => {
    expect(nextSteps(claim({ status: 'completed' }), undefined).join('\n')).toMatch(
      /new DKIM[\s\S]*can't be reused[\s\S]*verify/,
    )
  })

  it('the next steps name the record by its host, to find it at the provider', () => {
    const place = { zone: 'example.com', host: '@' }
    expect(nextSteps(claim({ status: 'completed', record: { name: 'example.com' } }), place).at(-1)).toBe(
      'The TXT record at example.com (host @ in the zone example.com) is no longer needed; remove it if you like.',
    )
  })

  it('a pending claim does not read as if its record were missing', () => {
    expect(stateOf(claim({ status: 'pending' })).description).toBe(
      'waiting for the TXT record to be verified',
    )
  })
})
