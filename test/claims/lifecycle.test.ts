import { expect, test } from 'vitest'
import { judge } from '../../src/claims/lifecycle.ts'
import { claimOf } from './world.ts'

const NOW = Date.UTC(2026, 10, 22, 12)

test.each([
  ['pending', {}, 'in_flight', undefined, true],
  ['pending', { failure_reason: 'dns_conflict' }, 'in_flight', undefined, true],
  ['verified', {}, 'in_flight', undefined, false],
  ['completed', {}, 'completed', undefined, false],
  ['completed', { expires_at: '2026-11-01 00:00:00+00' }, 'completed', undefined, false],
  ['blocked', { blocked_reason: 'grace_period' }, 'blocked', 'claim_blocked', false],
  ['expired', {}, 'ended', 'claim_expired', false],
  ['superseded', {}, 'ended', 'claim_superseded', false],
  ['canceled', {}, 'ended', 'claim_canceled', false],
  ['failed', { failure_reason: 'x' }, 'ended', 'claim_failed', false],
  ['reviewing', {}, 'unknown', undefined, true],
  ['reviewing', { failure_reason: 'x' }, 'ended', 'claim_reviewing', false],
  ['reviewing', { blocked_reason: 'x' }, 'blocked', 'claim_blocked', false],
  ['Odd One', { failure_reason: 'x' }, 'ended', 'claim_ended', false],
  [null, {}, 'unknown', undefined, true],
  ['pending', { expires_at: '2026-11-22 11:59:45+00' }, 'in_flight', undefined, true],
  ['pending', { expires_at: '2026-11-22 11:59:00+00' }, 'ended', 'claim_expired', false],
  ['verified', { expires_at: '2026-11-22 11:00:00+00' }, 'in_flight', undefined, false],
] as const)('a claim that is %s %j is %s', (status, more, phase, code, needsRecord) => {
  const { error, text, ...judged } = judge(claimOf({ status, ...more }), NOW)
  expect({ ...judged, code: error?.code }).toEqual({ phase, needsRecord, code })
  expect(text).not.toBe('')
  if (error !== undefined)
    expect({ exit: error.exit, lines: error.hint?.split('\n').length }).toEqual({ exit: 9, lines: 1 })
})
