import { describe, expect, test } from 'vitest'
import { causesIn, claimProgress, doneClaim } from '../../../src/claims/many/done-claim.ts'
import { type Cause, causeOf } from '../../../src/claims/many/tally.ts'
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

test('a claim that goes on although the service refused to verify it is in progress, with what was said', async () => {
  const said = 'the service refused the request (409): it is under review: create a new one'
  const refusal = new CliError('claim_not_pending', Exit.refused, said, { hint: 'start again' })
  expect(await causeAfter(refusal)).toMatchObject({
    code: 'claim_in_flight',
    message: said,
    isSaid: true,
    fix: 'the claim continues; to keep watching: mailclaim claims watch DOMAIN',
  })
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
  const BOTH: Partial<Cause>[] = [
    { code: 'missing', hosts: ['ns1.example.net'] },
    { code: 'claim_blocked: grace_period' },
  ]

  test('has both as causes after a check', () => {
    const causes = causesIn(report(missing, finding('claim_blocked')))
    expect(causes).toMatchObject(BOTH)
    expect(causes[1]?.hosts).toBeUndefined()
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

/** A report on a domain with these findings. */
const reportOf = (...findings: readonly object[]) =>
  ({
    name: 'a.example.com',
    expected: 'prefix=token',
    zone: 'example.com',
    nameservers: [],
    findings: findings.map((finding) => ({
      severity: 'error',
      fix: '',
      message: '',
      details: {},
      ...finding,
    })),
  }) as unknown as CheckReport

test('all that a check found is a cause, except for remarks', () => {
  const findings = [
    { code: 'missing' },
    { code: 'too_many_txt', severity: 'warning' },
    { code: 'a', severity: 'info' },
  ]
  expect(causesIn(reportOf(...findings)).map(({ code }) => code)).toEqual(['missing', 'too_many_txt'])
  expect(causesIn(undefined)).toEqual([])
})

test('several values that were found are one FOUND, which tells them apart', () => {
  const found = ['prefix=to', 'ken']
  const message = text`found ${quote('prefix=to')} and ${quote('ken')}`
  expect(causesIn(reportOf({ code: 'split_records', message, seen: found }))[0]).toMatchObject({
    message: 'found FOUND',
    particulars: { FOUND: '"prefix=to", "ken"' },
  })
})

test('what a message alone quotes is FOUND as well', () => {
  const message = text`expected ${quote('prefix=token')}, found another TXT record: ${quote('v=spf1 -all')}`
  expect(causesIn(reportOf({ code: 'missing', message }))[0]).toMatchObject({
    message: 'expected "VALUE", found another TXT record: "FOUND"',
    particulars: { FOUND: 'v=spf1 -all' },
  })
})

test.each([
  ['prefix=token ', 'prefix=token\\u{20}'],
  ['\u00a0prefix=token', '\\u{a0}prefix=token'],
  ['prefix= \u2003token', 'prefix= \\u{2003}token'],
  ['v=spf1 -all', 'v=spf1 -all'],
])('spaces that nobody would see are visible: %j', (found, shown) => {
  const message = text`found ${quote(found)}`
  const [cause] = causesIn(reportOf({ code: 'whitespace', message, seen: [found] }))
  expect(cause).toMatchObject({ message: 'found "FOUND"', particulars: { FOUND: shown } })
})

test('the name servers concerned are SERVER, in the message too', () => {
  const servers = [
    { host: 'ns1.example.net', address: '192.0.2.1' },
    { host: 'ns2.example.net', address: null },
  ]
  const message = 'ns1.example.net (192.0.2.1), ns2.example.net are listed as name servers of example.com'
  expect(causesIn(reportOf({ code: 'lame_nameserver', message, details: { servers } }))[0]).toMatchObject({
    message: 'SERVER are listed as name servers of ZONE',
    particulars: { SERVER: 'ns1.example.net (192.0.2.1), ns2.example.net' },
  })
})

test('the end of a claim has its reason', () => {
  const details = { error: 'claim_failed', failure_reason: 'domain_suspended' }
  expect(causesIn(reportOf({ code: 'claim_ended', details }))[0]?.code).toBe('claim_failed: domain_suspended')
})

test('domains that nobody has registered are one group, whatever is below them', () => {
  const report = (name: string, domain: string) =>
    ({
      ...reportOf({
        code: 'domain_not_found',
        message: `The domain ${domain} doesn't exist`,
        fix: `Check the spelling of ${domain}. If it's right, the domain isn't registered`,
        details: { domain },
      }),
      name,
      zone: null,
    }) as CheckReport
  const [below] = causesIn(report('mail.one.com', 'one.com'))
  const [itself] = causesIn(report('two.com', 'two.com'))
  expect(below?.fix).toBe("Check the spelling of ZONE. If it's right, the domain isn't registered")
  expect(itself?.fix).toBe(below?.fix)
})

test.each<[string, CliError, Partial<Cause>]>([
  [
    'a refusal has its own group, whatever the service calls it',
    new CliError('claim_not_allowed', Exit.refused, 'suspended for abuse'),
    { code: 'claim_not_allowed', isSaid: true },
  ],
  [
    'the title of the end of a claim says all',
    new CliError('claim_expired', Exit.negativeEnd, 'a.com: the claim expired'),
    { code: 'claim_expired', isSaid: false },
  ],
  [
    'an outage is told by its status',
    new CliError('service_unavailable', Exit.unavailable, 'the service failed (503): busy', { status: 503 }),
    { code: 'service_unavailable: 503', isSaid: true },
  ],
  [
    'a program that failed says how',
    new CliError('publish_failed', Exit.unavailable, 'add.sh ended with exit code 3'),
    { code: 'publish_failed', isSaid: true },
  ],
])('%s', (_what, error, cause) => {
  expect(causeOf(error, {})).toMatchObject(cause)
})
