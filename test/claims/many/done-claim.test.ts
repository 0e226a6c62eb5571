import { expect, test } from 'vitest'
import { causeIn, doneClaim } from '../../../src/claims/many/done-claim.ts'
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
  return doneClaim(CLAIM as DomainClaim, error, 'waiting', context, await fakeSettings(context)).cause
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
  expect(causeIn(report('claim_ended'))).toMatchObject({ code: 'claim_expired', hosts: undefined })
  expect(causeIn(report('missing'))).toMatchObject({ hosts: ['ns1.example.net'] })
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
  expect(causeIn(report)).toMatchObject({
    message: 'found "FOUND"',
    particulars: { FOUND: 'prefix=to" and "ken' },
  })
})
