import { expect, test } from 'vitest'
import { MISTAKES } from '../../src/sandbox/mistakes.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { sandboxForTest } from './start-sandbox.ts'
import { advance, api, control } from './talk.ts'

const DAY = 86_400

/** Options with a minute before each DNS lookup and final status, so that neither happens unless the virtual clock is advanced. */
const SLOW = { stepSeconds: 60 }

const create = (sandbox: Sandbox, fields: object) => api(sandbox, 'POST', '/domains/claim', { body: fields })
const publish = (sandbox: Sandbox, domain: string, mistake = 'none') =>
  control(sandbox, 'POST', `/claims/${domain}/publish`, { mistake })
const settle = (sandbox: Sandbox, key: string, outcome: object) =>
  control(sandbox, 'POST', `/claims/${key}/outcome`, outcome)

async function claimed(sandbox: Sandbox, name: string) {
  const { body } = await create(sandbox, { name })
  const path = `/domains/${String(body['domain_id'])}/claim`
  return {
    claim: body,
    verify: () => api(sandbox, 'POST', `${path}/verify`),
    get: async () => (await api(sandbox, 'GET', path)).body,
  }
}

test('the response to the creation of a claim has status 201 and the documented fields', async () => {
  const sandbox = await sandboxForTest()
  const { status, body } = await create(sandbox, { name: 'Example.com' })
  expect(status).toBe(201)
  expect(body).toEqual({
    object: 'domain_claim',
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    name: 'example.com',
    status: 'pending',
    domain_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    region: 'us-east-1',
    record: { type: 'TXT', name: 'example.com', value: expect.stringMatching(/^[a-z-]+=\w+$/), ttl: 'Auto' },
    blocked_reason: null,
    failure_reason: null,
    created_at: expect.any(String),
    expires_at: expect.any(String),
  })
  const at = (field: string) => Date.parse(`${String(body[field])}:00`)
  expect(at('expires_at') - at('created_at')).toBe(7 * DAY * 1000)
})

test('the sandbox answers a second claim request for a domain with the first claim if the options are the same, and otherwise supersedes that claim', async () => {
  const sandbox = await sandboxForTest()
  const first = await create(sandbox, { name: 'example.com' })
  const same = await create(sandbox, { name: 'example.com', region: 'us-east-1', custom_return_path: 'send' })
  expect([same.status, same.body]).toEqual([200, first.body])

  const other = await create(sandbox, { name: 'example.com', region: 'eu-west-1', open_tracking: true })
  expect(other.status).toBe(201)
  expect(other.body['domain_id']).not.toBe(first.body['domain_id'])
  const old = await api(sandbox, 'GET', `/domains/${String(first.body['domain_id'])}/claim`)
  expect(old.body['status']).toBe('superseded')
})

test.each([
  {},
  [],
  { name: 5 },
  { name: 'com' },
  { name: 'example..com' },
  { name: `${'a'.repeat(64)}.com` },
  { name: 'https://example.com/' },
  { name: '127.0.0.1' },
  { name: 'example.com', region: 'mars-1' },
  { name: 'example.com', open_tracking: 'yes' },
  { name: 'example.com', custom_return_path: 'a.b' },
])('a claim request with the body %j gets status 422', async (body) => {
  const sandbox = await sandboxForTest()
  expect(await create(sandbox, body)).toMatchObject({ status: 422, body: { name: 'validation_error' } })
})

test('the sandbox answers requests for an unknown claim with status 404', async () => {
  const sandbox = await sandboxForTest()
  expect((await api(sandbox, 'GET', '/domains/nothing/claim')).status).toBe(404)
  expect((await api(sandbox, 'POST', '/domains/nothing/claim/verify')).status).toBe(404)
  expect((await publish(sandbox, 'nothing.example')).status).toBe(404)
  expect((await settle(sandbox, 'nothing.example', { status: 'failed' })).status).toBe(404)
})

test('the status of a claim goes from pending to verified to completed once its record is in DNS and verification was requested', async () => {
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

test.each(Object.keys(MISTAKES).slice(1))(
  'a record published with the mistake "%s" keeps the claim pending until the record is corrected',
  async (mistake) => {
    const sandbox = await sandboxForTest(SLOW)
    const { verify, get } = await claimed(sandbox, 'mail.example.co.uk')
    expect((await publish(sandbox, 'mail.example.co.uk', mistake)).status).toBe(200)
    await verify()
    await advance(sandbox, 60)
    expect((await get())['status']).toBe('pending')
    await publish(sandbox, 'mail.example.co.uk')
    await advance(sandbox, 120)
    expect((await get())['status']).toBe('completed')
  },
)

test('the sandbox completes a claim whose value is in a TXT RRset that is too large for UDP', async () => {
  const sandbox = await sandboxForTest(SLOW)
  const { claim, verify, get } = await claimed(sandbox, 'example.com')
  const { value } = claim['record'] as { value: string }
  const values = [...Array.from({ length: 60 }, (_, n) => `service-${n}=${'x'.repeat(60)}`), value]
  await control(sandbox, 'PUT', '/dns/example.com/TXT', { values })
  await verify()
  await advance(sandbox, 120)
  expect((await get())['status']).toBe('completed')
})

test('a pending sandbox claim expires after seven days, and a new claim for the domain has another TXT value', async () => {
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

test('a sandbox claim whose record is in DNS completes even if the clock jumps past both its DNS lookup and its expiry', async () => {
  const sandbox = await sandboxForTest(SLOW)
  const { verify, get } = await claimed(sandbox, 'example.com')
  await publish(sandbox, 'example.com')
  await verify()
  await advance(sandbox, 30 * DAY)
  expect((await get())['status']).toBe('completed')
})

test.each([
  [{ status: 'verified' }, {}],
  [{ status: 'completed' }, {}],
  [{ status: 'blocked', reason: 'grace_period' }, { blocked_reason: 'grace_period' }],
  [{ status: 'failed', reason: 'because' }, { failure_reason: 'because' }],
  [{ status: 'expired' }, {}],
  [{ status: 'under_review' }, {}],
])(
  'the control API sets a claim, given by its domain or `domain_id`, to the status and reason %j',
  async (outcome, reasons) => {
    const sandbox = await sandboxForTest(SLOW)
    const { claim, get } = await claimed(sandbox, 'example.com')
    for (const key of ['Example.com', String(claim['domain_id'])]) {
      const wanted = { blocked_reason: null, failure_reason: null, status: outcome.status, ...reasons }
      expect((await settle(sandbox, key, outcome)).body).toMatchObject(wanted)
      expect(await get()).toMatchObject(wanted)
    }
    expect((await control(sandbox, 'GET', '/state')).body['claims']).toEqual([await get()])
  },
)

test('a sandbox control request that sets a claim outcome gets status 422 if a field is missing or malformed', async () => {
  const sandbox = await sandboxForTest()
  await claimed(sandbox, 'example.com')
  for (const outcome of [{}, { status: 5 }, { status: 'failed', reason: 5 }])
    expect((await settle(sandbox, 'example.com', outcome)).status).toBe(422)
})

test('a blocked claim of the sandbox completes after the control API has set its status to `verified`', async () => {
  const sandbox = await sandboxForTest(SLOW)
  const { verify, get } = await claimed(sandbox, 'blocked.example.com')
  await publish(sandbox, 'blocked.example.com')
  await verify()
  await advance(sandbox, 3600)
  expect(await get()).toMatchObject({ status: 'blocked', blocked_reason: 'recent_owner_activity' })
  await settle(sandbox, 'blocked.example.com', { status: 'verified' })
  expect(await get()).toMatchObject({ status: 'verified', blocked_reason: null })
  await advance(sandbox, 60)
  expect((await get())['status']).toBe('completed')
})

test.each([
  ['failed', { status: 'failed', failure_reason: 'ownership_check_failed' }],
  ['expired', { status: 'expired' }],
  ['constructor', { status: 'completed' }],
])('a sandbox claim for %s.example.com whose record is in DNS ends with %j', async (label, ends) => {
  const sandbox = await sandboxForTest({ ...SLOW, autoPublish: true })
  const { verify, get } = await claimed(sandbox, `${label}.example.com`)
  await verify()
  await advance(sandbox, 3600)
  expect(await get()).toMatchObject(ends)
})

test.each([
  ['unclaimable.example.com', 403, 'claim_not_allowed'],
  ['own.example.com', 409, 'domain_already_owned'],
])('the sandbox refuses to claim %s with status %i and the error %s', async (name, status, problem) => {
  const sandbox = await sandboxForTest()
  expect(await create(sandbox, { name })).toMatchObject({ status, body: { name: problem } })
})
