import { describe, expect, test } from 'vitest'
import { claimOf, createWorld, errorOf, VALUE } from '../../claims/world.ts'
import { jsonResponse } from '../../fake-context.ts'

const OTHERS = {
  'another domain': { name: 'victim.com', status: 'completed' },
  'a domain above': { name: 'com' },
  'another id': { domain_id: 'd2' },
} as const

/** Commands that request the claim of example.com, also by its id d1. */
const ASKING = [
  'claim example.com --timeout 5',
  'claims create example.com',
  'claims get d1',
  'claims get example.com',
  'claims verify example.com --no-check',
  'claims watch example.com --timeout 5',
  'claims record example.com',
  'claims check example.com',
]

describe.each(Object.entries(OTHERS))('a response about %s', (_what, other) => {
  test.each(ASKING)('mailclaim %s rejects a claim with another name or id than requested', async (line) => {
    let isKnown = false
    const world = createWorld({ respond: () => (isKnown ? claimOf(other) : claimOf()) })
    const knows = !line.includes('create') && line !== 'claims get d1'
    // If the ledger has no name for the id, the name in the response is accepted.
    if (knows || !('name' in other)) await world.run('claims', 'get', 'd1')
    if (line.includes('create') && !('name' in other)) return
    isKnown = true
    const ended = await world.run(...line.split(' '), '--json')
    if (line === 'claims get d1' && 'name' in other) return expect(ended.code).toBe(0)
    expect(ended.code, ended.stderr).toBe(7)
    const [wrong, right] = 'name' in other ? [other.name, 'example.com'] : ['d2', 'd1']
    expect(errorOf(ended)).toMatchObject({
      code: 'unexpected_answer',
      message: expect.stringContaining(wrong),
    })
    expect(errorOf(ended).message).toContain(right)
    expect(ended.stdout).not.toContain(wrong)
  })
})

test('a response about another domain ends `claim`, `claims watch` and `claims verify --wait` with `unexpected_answer`', async () => {
  for (const line of [
    'claims watch example.com',
    'claim example.com',
    'claims verify example.com --no-check --wait',
    // For an id that isn't in the ledger, the name in the first response is accepted.
    'claims watch d1',
    'claims verify d1 --no-check --wait',
  ]) {
    let reads = 0
    const world = createWorld({ respond: () => (reads++ > 2 ? claimOf({ name: 'victim.com' }) : claimOf()) })
    if (line.includes('example.com')) await world.run('claims', 'get', 'd1')
    expect(errorOf(await world.run(...line.split(' '), '--json')), line).toMatchObject({
      code: 'unexpected_answer',
    })
  }
})

test('the ledger keeps the domain name of a claim if a later response about the claim has no name', async () => {
  for (const line of ['claims watch d1', 'claims verify d1 --no-check --wait', 'claim example.com']) {
    let reads = 0
    const world = createWorld({
      respond: () => (reads++ > 1 ? claimOf({ name: undefined, status: 'completed' }) : claimOf()),
    })
    expect((await world.run(...line.split(' '))).code, line).toBe(0)
    const listed = JSON.parse((await world.run('claims', 'list', '--json')).stdout) as { data: object[] }
    expect(listed.data, line).toMatchObject([{ name: 'example.com', status: 'completed' }])
  }
})

test('claims watch of a pending claim hints at claims verify, but claims verify --wait gives no such hint', async () => {
  const ask =
    "hint: if the service hasn't been asked to verify it: mailclaim claims verify example.com --wait\n"
  const world = createWorld({ respond: () => claimOf() })
  await world.run('claims', 'get', 'd1')
  const watched = await world.run('claims', 'watch', 'example.com', '--timeout', '5')
  expect(watched.code).toBe(8)
  expect(watched.stderr.split(ask), watched.stderr).toHaveLength(3)
  const verified = await world.run('claims', 'verify', 'd1', '--no-check', '--wait', '--timeout', '5')
  expect(verified.stderr).toContain(
    'hint: it continues; to keep watching: mailclaim claims watch example.com\n',
  )
  expect(verified.stderr).not.toContain(ask)
})

test('claims verify of a completed claim does not suggest `claims watch`', async () => {
  const world = createWorld({ respond: () => claimOf({ status: 'completed' }) })
  const { code, stderr } = await world.run('claims', 'verify', 'd1', '--no-check')
  expect(code).toBe(0)
  expect(stderr).not.toContain('hint: to follow it')
})

test('a response about another import ends `imports watch` with `unexpected_answer`', async () => {
  let reads = 0
  const answer = () => ({ object: 'contact_import', id: reads++ > 1 ? 'i2' : 'i1', status: 'in_progress' })
  const world = createWorld({ respond: answer })
  const ended = await world.run('imports', 'watch', 'i1', '--json')
  expect({ code: ended.code, reads }).toEqual({ code: 7, reads: 3 })
  expect(errorOf(ended)).toMatchObject({ code: 'unexpected_answer' })
})

test.each(['Example.COM.', 'example.com', null])(
  '`claim example.com` accepts a claim whose field `name` is %j',
  async (name) => {
    const world = createWorld({ respond: () => claimOf({ name, status: 'completed' }) })
    expect((await world.run('claim', 'example.com')).code).toBe(0)
  },
)

test('`claim` and `claims create` fail if the service asks for a record at a reserved or unrelated name or with an SPF policy, and `claims create` does not show the record', async () => {
  for (const [name, value] of [
    ['_dmarc.example.com', VALUE],
    ['example.org', VALUE],
    ['com', VALUE],
    ['example.com', 'v=spf1 include:evil.example -all'],
  ]) {
    const world = createWorld({
      respond: () => claimOf({ name: null, record: { type: 'TXT', name, value } }),
    })
    const ended = await world.run('claim', 'example.com', '--publish', '"true"', '--json')
    expect(errorOf(ended)).toMatchObject({ code: 'unexpected_answer', exit: 7 })
    const created = await world.run('claims', 'create', 'example.com')
    expect(created).toMatchObject({ code: 7, stdout: '' })
    expect(created.stderr).not.toContain('add the TXT record')
  }
})

test('claims verify exits 6 if the service refuses to verify a pending claim, and 0 if it refuses a verified claim', async () => {
  for (const [status, code] of [
    ['pending', 6],
    ['verified', 0],
  ] as const) {
    let reads = 0
    const world = createWorld({
      respond: (request) =>
        request.startsWith('POST')
          ? jsonResponse(409, { name: 'conflict', message: 'It runs' })
          : claimOf(reads++ > 1 ? { status } : {}),
    })
    await world.run('claims', 'get', 'd1')
    const ended = await world.run('claims', 'verify', 'example.com', '--no-check', '--json')
    expect(ended.code, ended.stderr).toBe(code)
  }
})

test('claims verify of a verified claim sends no DNS query and requests no verification', async () => {
  const world = createWorld({ respond: () => claimOf({ status: 'verified' }), txt: () => [] })
  const { code, stderr } = await world.run('claims', 'verify', 'd1')
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('accepted') })
  expect([world.asked, world.questions]).toEqual([['GET /domains/d1/claim'], []])
})

test('the summary of claims verify --all counts a failed claim under `claim_failed`, even if no name server responds', async () => {
  const respond = (request: string) => claimOf(request.startsWith('POST') ? { status: 'failed' } : {})
  const world = createWorld({ respond, dns: () => 'silent' })
  await world.run('claims', 'get', 'd1')
  const { code, stderr } = await world.run('claims', 'verify', '--all')
  expect({ code, stderr }).toEqual({ code: 9, stderr: expect.stringContaining('\n  claim_failed: 1 ') })
})

test('claims create exits 6 after a response with status 409, and its hint names `claims get`', async () => {
  const conflict = createWorld({ respond: () => jsonResponse(409, { name: 'conflict', message: 'Yours' }) })
  expect(errorOf(await conflict.run('claims', 'create', 'example.com', '--json'))).toMatchObject({
    exit: 6,
    hint: expect.stringContaining('mailclaim claims get DOMAIN_ID'),
  })
})

test('claims get, verify, watch, record and check exit 5 for a claim that the service no longer has, and claims list --refresh forgets that claim', async () => {
  let isGone = false
  const gone = createWorld({
    respond: () => (isGone ? jsonResponse(404, { name: 'not_found', message: 'No' }) : claimOf()),
  })
  await gone.run('claims', 'get', 'd1')
  isGone = true
  for (const line of ['get', 'verify', 'watch', 'record', 'check'])
    expect(errorOf(await gone.run('claims', line, 'example.com', '--json')), line).toMatchObject({
      exit: 5,
      message: 'the service no longer has the claim of example.com',
    })
  const listed = await gone.run('claims', 'list', '--refresh', '--json')
  expect({ code: listed.code, data: JSON.parse(listed.stdout).data }).toEqual({ code: 0, data: [] })
  expect(listed.stderr).toMatch(
    /^warning: the service no longer has the claim of example\.com \(d1\): it is forgotten\n$/,
  )
  expect(JSON.parse((await gone.run('claims', 'list', '--json')).stdout).data).toEqual([])
})

test.each(['pending', 'under_review'])('`claims get` shows the record of a %s claim', async (status) => {
  const { stdout } = await createWorld({ respond: () => claimOf({ status }) }).run(
    ...['claims', 'get', 'd1', '--format', 'table'],
  )
  expect(stdout).toMatch(new RegExp(`host +@.*\\n(.*\\n)*.*${VALUE}`))
})
