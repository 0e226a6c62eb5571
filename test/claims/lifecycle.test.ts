import { expect, test } from 'vitest'
import { getClaimState } from '../../src/claims/lifecycle.ts'
import { claimOf } from './world.ts'

const NOW = Date.UTC(2026, 10, 22, 12)

test.each([
  ['pending', {}, 'pending', undefined, true],
  ['pending', { failure_reason: 'dns_conflict' }, 'pending', undefined, true],
  ['verified', {}, 'accepted', undefined, false],
  ['completed', {}, 'completed', undefined, false],
  ['completed', { expires_at: '2026-11-01 00:00:00+00' }, 'completed', undefined, false],
  ['blocked', { blocked_reason: 'grace_period' }, 'blocked', 'claim_blocked', false],
  ['expired', {}, 'expired', 'claim_expired', false],
  ['superseded', {}, 'superseded', 'claim_superseded', false],
  ['canceled', {}, 'ended', 'claim_canceled', false],
  ['failed', { failure_reason: 'x' }, 'ended', 'claim_failed', false],
  ['reviewing', {}, 'unknown', undefined, true],
  ['reviewing', { failure_reason: 'x' }, 'ended', 'claim_ended', false],
  ['reviewing', { blocked_reason: 'x' }, 'blocked', 'claim_blocked', false],
  ['Odd One', { failure_reason: 'x' }, 'ended', 'claim_ended', false],
  [null, {}, 'unknown', undefined, true],
  ['pending', { expires_at: '2026-11-22 11:59:45+00' }, 'pending', undefined, true],
  ['pending', { expires_at: '2026-11-22 11:59:00+00' }, 'expired', 'claim_expired', false],
  ['verified', { expires_at: '2026-11-22 11:00:00+00' }, 'accepted', undefined, false],
] as const)('a claim with status %s and fields %j has phase %s', (status, more, phase, code, needsRecord) => {
  const { error, text, isOpen, ...judged } = getClaimState(claimOf({ status, ...more }), NOW)
  expect({ ...judged, code: error?.code }).toEqual({ phase, needsRecord, code })
  expect(text).not.toBe('')
  expect(isOpen).toBe(!['completed', 'expired', 'superseded', 'ended'].includes(phase))
  if (error !== undefined)
    expect({ exit: error.exit, lines: error.hint?.split('\n').length }).toEqual({ exit: 9, lines: 1 })
})

test.each([
  [{ status: 'completed' }, /^the domain is yours$/, undefined],
  [
    { status: 'blocked', blocked_reason: 'grace_period' },
    /in a grace period \(grace_period\)$/,
    /--through-blocked$/,
  ],
  [{ status: 'blocked', blocked_reason: 'moon_phase' }, /\(moon_phase\)$/, /--through-blocked$/],
  [
    { status: 'failed', failure_reason: 'dns_conflict' },
    /failed \(dns_conflict\)$/,
    /claims create example\.com$/,
  ],
  [{ status: 'superseded' }, /^a newer claim replaced this one$/, /only if nobody needs it/],
  [{ status: 'under_review' }, /^unknown status "under_review"; still waiting$/, undefined],
])('the state of a claim with the fields %j is described by a text that matches %s', (fields, says, hint) => {
  const { text, error } = getClaimState(claimOf(fields), NOW)
  expect(text).toMatch(says)
  expect(error?.hint).toEqual(hint && expect.stringMatching(hint))
})
