import { describe, expect, test } from 'vitest'
import { causesIn, claimProgress, doneClaim } from '../../../src/claims/many/done-claim.ts'
import type { CheckReport } from '../../../src/dns/diagnosis/report.ts'
import { quote, text } from '../../../src/dns/diagnosis/text.ts'
import { CliError, Exit } from '../../../src/errors.ts'
import type { DomainClaim } from '../../../src/service/types.ts'
import { createFakeContext, fakeSettings } from '../../fake-context.ts'

const CLAIM = { object: 'domain_claim', name: 'a.example.com', domain_id: 'd1', status: 'pending' }

async function causeAfter(cause: CliError | undefined) {
  const context = createFakeContext()
  const hint = 'the claim continues; to keep watching: mailclaim claims watch a.example.com'
  const error = new CliError('claim_in_flight', Exit.notYet, 'still in progress', { hint, cause })
  return doneClaim(CLAIM as DomainClaim, error, 'waiting', context, await fakeSettings(context)).causes?.[0]
}

test('a claim whose last request failed is counted by that failure, with its hint', async () => {
  const hint = 'wait for it or stop it, then run this command again'
  const busy = new CliError('session_busy', Exit.unavailable, 'another mailclaim was renewing it', { hint })
  expect(await causeAfter(busy)).toMatchObject({ code: 'session_busy', message: busy.message, fix: hint })
})

test('a claim that takes its time is counted as in progress, with how to go on', async () => {
  expect(await causeAfter(undefined)).toMatchObject({
    code: 'claim_in_flight',
    fix: 'the claim continues; to keep watching: mailclaim claims watch DOMAIN',
  })
})

test('a claim that has ended is the same cause at every DNS host', () => {
  const report = (code: string) =>
    ({
      name: 'a.example.com',
      zone: 'example.com',
      nameservers: [{ host: 'ns1.example.net' }],
      findings: [{ code, severity: 'error', message: '', fix: '', details: { error: 'claim_expired' } }],
    }) as unknown as CheckReport
  expect(causesIn(report('claim_ended'))[0]).toMatchObject({ code: 'claim_expired', hosts: undefined })
  expect(causesIn(report('missing'))[0]).toMatchObject({ hosts: ['ns1.example.net'] })
})

describe('a blocked claim whose record is missing', () => {
  const finding = (code: string, severity = 'warning') => ({
    code,
    severity,
    message: code,
    fix: '',
    details: { blocked_reason: 'grace_period' },
  })
  const report = (...findings: readonly object[]) =>
    ({
      name: 'a.example.com',
      zone: 'example.com',
      expected: 'p=1',
      verdict: 'wait',
      nameservers: [{ host: 'ns1.example.net' }],
      findings,
    }) as unknown as CheckReport
  const missing = finding('missing', 'error')
  const blocked = { ...CLAIM, status: 'blocked', blocked_reason: 'grace_period' } as DomainClaim
  const BOTH = [{ code: 'missing', hosts: ['ns1.example.net'] }, { code: 'claim_blocked: grace_period' }]

  test('has both as causes after a check, and no other finding', () => {
    const seen = report(finding('odd', 'info'), missing, finding('swapped'), finding('claim_blocked'))
    expect(causesIn(seen)).toMatchObject(BOTH)
    expect(causesIn(seen)).toHaveLength(2)
    expect(causesIn(seen)[1]?.hosts).toBeUndefined()
    expect(causesIn(report(finding('claim_blocked'), missing))).toHaveLength(1)
    expect(causesIn(undefined)).toEqual([])
  })

  test('has both while the service works on it', () => {
    expect(claimProgress('verifying', blocked, report(missing))).toMatchObject({
      causes: BOTH,
      needsPerson: true,
    })
  })

  test.each([
    ['the time is up', new CliError('claim_in_flight', Exit.notYet, 'still in progress'), false],
    [
      'it ends the command',
      new CliError('claim_blocked', Exit.negativeEnd, 'a.example.com is blocked'),
      true,
    ],
    ['the service was only asked to verify it', undefined, false],
  ])('has both when %s', async (_when, error, needsPerson) => {
    const context = createFakeContext()
    const settings = await fakeSettings(context)
    expect(doneClaim(blocked, error, 'done', context, settings, report(missing))).toMatchObject({
      causes: BOTH,
      needsPerson,
    })
  })
})

test('of a claim that has ended, what a check had found in DNS is not a cause', async () => {
  const context = createFakeContext()
  const settings = await fakeSettings(context)
  const seen = {
    findings: [{ code: 'missing', severity: 'error' }],
    nameservers: [],
  } as unknown as CheckReport
  const canceled = { ...CLAIM, status: 'canceled' } as DomainClaim
  const error = new CliError('claim_canceled', Exit.negativeEnd, 'canceled')
  const { causes } = doneClaim(canceled, error, 'done', context, settings, seen)
  expect(causes).toMatchObject([{ code: 'claim_canceled' }])
  const completed = { ...CLAIM, status: 'completed' } as DomainClaim
  expect(doneClaim(completed, undefined, 'done', context, settings, seen).causes).toEqual([])
})

test('several values that were found are one FOUND, which tells them apart', () => {
  const found = ['prefix=to', 'ken']
  const report = {
    name: 'a.example.com',
    expected: 'prefix=token',
    zone: 'example.com',
    nameservers: [],
    findings: [
      {
        code: 'split_records',
        severity: 'error',
        message: text`found ${quote('prefix=to')} and ${quote('ken')}`,
        fix: '',
        seen: found,
        details: {},
      },
    ],
  } as unknown as CheckReport
  expect(causesIn(report)[0]).toMatchObject({
    message: 'found "FOUND"',
    particulars: { FOUND: 'prefix=to" and "ken' },
  })
})
