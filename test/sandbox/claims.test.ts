import { describe, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { sandboxForTest } from './start-sandbox.ts'
import { advance, api, control } from './talk.ts'

const DAY = 86_400

/** Minutes between the steps, so that only the virtual clock moves them. */
const SLOW = { checkSeconds: 60, transferSeconds: 60 }

const create = (sandbox: Sandbox, fields: object) => api(sandbox, 'POST', '/domains/claim', { body: fields })
const publish = (sandbox: Sandbox, domain: string, mistake = 'none') =>
  control(sandbox, 'POST', `/claims/${domain}/publish`, { mistake })

async function claimed(sandbox: Sandbox, name: string) {
  const { body } = await create(sandbox, { name })
  const path = `/domains/${String(body['domain_id'])}/claim`
  return {
    claim: body,
    verify: () => api(sandbox, 'POST', `${path}/verify`),
    get: async () => (await api(sandbox, 'GET', path)).body,
  }
}

test('a new claim is 201 with the fields of the interface and its defaults', async () => {
  const sandbox = await sandboxForTest()
  const { status, body } = await create(sandbox, { name: 'Example.com' })
  expect(status).toBe(201)
  expect(Object.keys(body)).toEqual([
    'object',
    'id',
    'name',
    'status',
    'domain_id',
    'region',
    'record',
    'blocked_reason',
    'failure_reason',
    'created_at',
    'expires_at',
  ])
  expect(body).toMatchObject({
    object: 'domain_claim',
    name: 'example.com',
    status: 'pending',
    region: 'us-east-1',
    record: {
      type: 'TXT',
      name: 'example.com',
      value: expect.stringMatching(/^[a-z-]+=\w+$/),
      ttl: 'Auto',
    },
    blocked_reason: null,
    failure_reason: null,
  })
  const days =
    (Date.parse(`${String(body['expires_at'])}:00`) - Date.parse(`${String(body['created_at'])}:00`)) /
    86_400_000
  expect(days).toBe(7)
})

test('the same claim again is 200 and unchanged; with other options it replaces the first', async () => {
  const sandbox = await sandboxForTest()
  const first = await create(sandbox, { name: 'example.com' })
  const same = await create(sandbox, { name: 'example.com', region: 'us-east-1', custom_return_path: 'send' })
  expect(same.status).toBe(200)
  expect(same.body).toEqual(first.body)

  const other = await create(sandbox, { name: 'example.com', region: 'eu-west-1', open_tracking: true })
  expect(other.status).toBe(201)
  expect(other.body['domain_id']).not.toBe(first.body['domain_id'])
  const old = await api(sandbox, 'GET', `/domains/${String(first.body['domain_id'])}/claim`)
  expect(old.body['status']).toBe('superseded')
})

test.each([
  { what: 'no name', body: {} },
  { what: 'a name that is not a string', body: { name: 5 } },
  { what: 'a name without a dot', body: { name: 'com' } },
  { what: 'an empty label', body: { name: 'example..com' } },
  { what: 'a label of 64 characters', body: { name: `${'a'.repeat(64)}.com` } },
  { what: 'an address', body: { name: 'https://example.com/' } },
  { what: 'an IP address', body: { name: '127.0.0.1' } },
  { what: 'another region', body: { name: 'example.com', region: 'mars-1' } },
  { what: 'tracking that is not a boolean', body: { name: 'example.com', open_tracking: 'yes' } },
  { what: 'a return path of two labels', body: { name: 'example.com', custom_return_path: 'a.b' } },
  { what: 'a body that is not an object', body: [] },
])('a claim request with $what is refused', async ({ body }) => {
  const sandbox = await sandboxForTest()
  expect(await create(sandbox, body)).toMatchObject({ status: 422, body: { name: 'validation_error' } })
})

test('unknown placeholder domains are 404', async () => {
  const sandbox = await sandboxForTest()
  expect((await api(sandbox, 'GET', '/domains/nothing/claim')).status).toBe(404)
  expect((await api(sandbox, 'POST', '/domains/nothing/claim/verify')).status).toBe(404)
})

test('a claim goes from pending to verified to completed once its record is in DNS and verification was requested', async () => {
  const sandbox = await sandboxForTest(SLOW)
  const { verify, get } = await claimed(sandbox, 'example.com')
  await publish(sandbox, 'example.com')
  await advance(sandbox, 600)
  expect((await get())['status']).toBe('pending')

  expect(await verify()).toMatchObject({ status: 200, body: { status: 'pending' } })
  await advance(sandbox, 60)
  expect((await get())['status']).toBe('verified')
  await advance(sandbox, 60)
  expect((await get())['status']).toBe('completed')
  expect((await verify()).body['status']).toBe('completed')
  expect(await create(sandbox, { name: 'example.com' })).toMatchObject({ status: 409 })
})

test('a claim without its record stays pending until the record is there', async () => {
  const sandbox = await sandboxForTest(SLOW)
  const { verify, get } = await claimed(sandbox, 'example.com')
  await verify()
  await advance(sandbox, 2 * DAY)
  expect((await get())['status']).toBe('pending')
  await publish(sandbox, 'example.com')
  await advance(sandbox, 120)
  expect((await get())['status']).toBe('completed')
})

test('a claim also proceeds in real time', async () => {
  const sandbox = await sandboxForTest({ checkSeconds: 0.01, transferSeconds: 0.01 })
  const { verify, get } = await claimed(sandbox, 'example.com')
  await publish(sandbox, 'example.com')
  await verify()
  await expect.poll(async () => (await get())['status'], { timeout: 10_000 }).toBe('completed')
})

test.each([
  'missing',
  'doubled_name',
  'www',
  'underscore_label',
  'quotes',
  'trailing_space',
  'no_break_space',
  'zero_width',
  'truncated',
  'lower_case',
  'stale_token',
  'token_only',
  'prefix_only',
  'pasted_line',
  'extra_text',
  'split_records',
  'too_many',
  'wildcard',
  'cname',
  'cname_dangling',
  'cname_loop',
  'servfail',
  'refused',
  'lame',
])('the verifier is not satisfied by the mistake %s, and is once it has been corrected', async (mistake) => {
  const sandbox = await sandboxForTest(SLOW)
  const { verify, get } = await claimed(sandbox, 'mail.example.co.uk')
  expect((await publish(sandbox, 'mail.example.co.uk', mistake)).status).toBe(200)
  await verify()
  await advance(sandbox, 60)
  expect((await get())['status']).toBe('pending')
  await publish(sandbox, 'mail.example.co.uk')
  await advance(sandbox, 120)
  expect((await get())['status']).toBe('completed')
})

test.each(['split_strings', 'stale_beside_right'])('the verifier is satisfied by %s', async (mistake) => {
  const sandbox = await sandboxForTest(SLOW)
  const { verify, get } = await claimed(sandbox, 'example.com')
  await publish(sandbox, 'example.com', mistake)
  await verify()
  await advance(sandbox, 120)
  expect((await get())['status']).toBe('completed')
})

test('the verifier finds the value among so many records that the answer needs TCP', async () => {
  const sandbox = await sandboxForTest(SLOW)
  const { claim, verify, get } = await claimed(sandbox, 'example.com')
  const { value } = claim['record'] as { value: string }
  const others = Array.from({ length: 60 }, (_, n) => `service-${n}=${'x'.repeat(60)}`)
  await control(sandbox, 'PUT', '/dns/example.com/TXT', [...others, value])
  await verify()
  await advance(sandbox, 120)
  expect((await get())['status']).toBe('completed')
  expect((await control(sandbox, 'GET', '/state')).body['dns']).toMatchObject({ tcp: 1, truncated: 1 })
})

test('a pending claim expires after seven days; verification is refused then, and a new claim has a new value', async () => {
  const sandbox = await sandboxForTest(SLOW)
  const { claim, verify, get } = await claimed(sandbox, 'example.com')
  await advance(sandbox, 7 * DAY - 1)
  expect((await get())['status']).toBe('pending')
  await advance(sandbox, 1)
  expect((await get())['status']).toBe('expired')
  expect((await verify()).status).toBe(409)
  const again = await create(sandbox, { name: 'example.com' })
  expect(again.status).toBe(201)
  expect(again.body['record']).not.toEqual(claim['record'])
})

test('a clock jump past both the lookup and the expiry runs the lookup first', async () => {
  const sandbox = await sandboxForTest(SLOW)
  const { verify, get } = await claimed(sandbox, 'example.com')
  await publish(sandbox, 'example.com')
  await verify()
  await advance(sandbox, 30 * DAY)
  expect((await get())['status']).toBe('completed')
})

describe('scenarios', () => {
  const settle = (sandbox: Sandbox, key: string, outcome: object) =>
    control(sandbox, 'POST', `/claims/${key}/outcome`, outcome)

  test.each([
    { outcome: { outcome: 'complete' }, gives: { status: 'completed' } },
    { outcome: { outcome: 'verify' }, gives: { status: 'verified' } },
    {
      outcome: { outcome: 'block', reason: 'grace_period' },
      gives: { status: 'blocked', blocked_reason: 'grace_period' },
    },
    {
      outcome: { outcome: 'fail', reason: 'because' },
      gives: { status: 'failed', failure_reason: 'because' },
    },
    { outcome: { outcome: 'expire' }, gives: { status: 'expired' } },
    { outcome: { outcome: 'supersede' }, gives: { status: 'superseded' } },
    { outcome: { outcome: 'cancel' }, gives: { status: 'canceled' } },
    { outcome: { outcome: 'status', status: 'under_review' }, gives: { status: 'under_review' } },
  ])('the scenario $outcome.outcome can be set by domain and by id', async ({ outcome, gives }) => {
    const sandbox = await sandboxForTest(SLOW)
    const { claim, get } = await claimed(sandbox, 'example.com')
    expect((await settle(sandbox, 'example.com', outcome)).body).toMatchObject(gives)
    expect(await get()).toMatchObject(gives)
    expect((await settle(sandbox, String(claim['domain_id']), outcome)).status).toBe(200)
  })

  test('a scenario set before the claim applies once its record was found', async () => {
    const sandbox = await sandboxForTest(SLOW)
    expect((await settle(sandbox, 'example.com', { outcome: 'fail', reason: 'because' })).status).toBe(202)
    const { verify, get } = await claimed(sandbox, 'example.com')
    await publish(sandbox, 'example.com')
    await verify()
    await advance(sandbox, 120)
    expect(await get()).toMatchObject({ status: 'failed', failure_reason: 'because' })
  })

  test('a scenario set before the claim applies to that claim only', async () => {
    const sandbox = await sandboxForTest(SLOW)
    await settle(sandbox, 'example.com', { outcome: 'fail' })
    await claimed(sandbox, 'example.com')
    await settle(sandbox, 'example.com', { outcome: 'cancel' })
    const { verify, get } = await claimed(sandbox, 'example.com')
    await publish(sandbox, 'example.com')
    await verify()
    await advance(sandbox, 120)
    expect(await get()).toMatchObject({ status: 'completed', failure_reason: null })
  })

  test('a claim in an unknown status is still the claim of its domain', async () => {
    const sandbox = await sandboxForTest(SLOW)
    const { claim, get } = await claimed(sandbox, 'example.com')
    await settle(sandbox, 'example.com', { outcome: 'status', status: 'under_review' })
    const same = await create(sandbox, { name: 'example.com' })
    expect(same).toMatchObject({ status: 200, body: { id: claim['id'], status: 'under_review' } })
    expect((await create(sandbox, { name: 'example.com', region: 'eu-west-1' })).status).toBe(201)
    expect((await get())['status']).toBe('superseded')
  })

  test('a claim that is unblocked after its window is expired', async () => {
    const sandbox = await sandboxForTest(SLOW)
    const { get } = await claimed(sandbox, 'example.com')
    await settle(sandbox, 'example.com', { outcome: 'block' })
    await advance(sandbox, 8 * DAY)
    expect((await get())['status']).toBe('blocked')
    await settle(sandbox, 'example.com', { outcome: 'unblock' })
    expect((await get())['status']).toBe('expired')
  })

  test('a claim that is no longer blocked proceeds', async () => {
    const sandbox = await sandboxForTest(SLOW)
    const { verify, get } = await claimed(sandbox, 'blocked.example.com')
    await publish(sandbox, 'blocked.example.com')
    await verify()
    await advance(sandbox, 3600)
    expect(await get()).toMatchObject({ status: 'blocked', blocked_reason: 'recent_owner_activity' })
    await settle(sandbox, 'blocked.example.com', { outcome: 'unblock' })
    expect(await get()).toMatchObject({ status: 'verified', blocked_reason: null })
    await advance(sandbox, 60)
    expect((await get())['status']).toBe('completed')
  })

  test.each([
    { name: 'blocked-grace.example.com', ends: { status: 'blocked', blocked_reason: 'grace_period' } },
    {
      name: 'blocked-emails.example.com',
      ends: { status: 'blocked', blocked_reason: 'pending_scheduled_emails' },
    },
    { name: 'blocked-briefly.example.com', ends: { status: 'completed', blocked_reason: null } },
    { name: 'failed.example.com', ends: { status: 'failed', failure_reason: 'ownership_check_failed' } },
    { name: 'expired.example.com', ends: { status: 'expired' } },
    { name: 'superseded.example.com', ends: { status: 'superseded' } },
    { name: 'canceled.example.com', ends: { status: 'canceled' } },
    { name: 'unheard-of.example.com', ends: { status: 'completed' } },
    { name: 'unheard-of-for-ever.example.com', ends: { status: 'under_review' } },
    { name: 'constructor.example.com', ends: { status: 'completed' } },
  ])('a claim for $name ends as $ends.status', async ({ name, ends }) => {
    const sandbox = await sandboxForTest(SLOW)
    const { verify, get } = await claimed(sandbox, name)
    await publish(sandbox, name)
    await verify()
    await advance(sandbox, 3600)
    expect(await get()).toMatchObject(ends)
  })

  test.each([
    ['unclaimable.example.com', 403, 'claim_not_allowed'],
    ['own.example.com', 409, 'domain_already_owned'],
  ])('%s cannot be claimed: %i %s', async (name, status, problem) => {
    const sandbox = await sandboxForTest()
    expect(await create(sandbox, { name })).toMatchObject({ status, body: { name: problem } })
  })

  test('an invalid scenario is refused', async () => {
    const sandbox = await sandboxForTest()
    expect((await settle(sandbox, 'example.com', { outcome: 'explode' })).status).toBe(422)
    expect((await settle(sandbox, 'example.com', { outcome: 'fail', reason: 5 })).status).toBe(422)
  })
})
