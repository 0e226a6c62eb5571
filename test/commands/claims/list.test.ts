import { expect, test } from 'vitest'
import { readLedger, recordClaim } from '../../../src/claims/ledger.ts'
import { run } from '../../../src/cli.ts'
import type { DomainClaim } from '../../../src/service/types.ts'
import { createFakeContext, fakeSettings } from '../../fake-context.ts'

const DAY_MS = 24 * 3600 * 1000
const NOW = Date.parse('2026-11-20T12:00:00Z')
const BASE = 'http://127.0.0.1:1'

/** A ledger with claims that were last seen so many days ago. */
async function createLedger(
  claims: readonly { name: string; days: number; status: string; expires?: number }[],
) {
  const context = createFakeContext({ environment: { settings: { base_url: BASE } } })
  const settings = await fakeSettings(context, { baseUrl: BASE })
  for (const { name, days, status, expires } of claims) {
    const at = NOW - days * DAY_MS
    context.clock.setWall(at)
    const created_at = new Date(at).toISOString()
    const expires_at = expires === undefined ? null : new Date(NOW - expires * DAY_MS).toISOString()
    const claim = { object: 'domain_claim', name, domain_id: `id-${name}`, status, created_at, expires_at }
    await recordClaim(claim as DomainClaim, context, settings)
  }
  context.clock.setWall(NOW)
  return {
    context,
    names: async () =>
      (await readLedger(context, settings, async () => {})).map(({ claim }) => claim.name).sort(),
    type: async (...words: string[]) => {
      const own = { ...context, ...createFakeContext({ environment: context.environment }) }
      const typed = { ...own, clock: context.clock, directories: context.directories }
      expect(await run(words, typed)).toBe(0)
      return typed
    },
  }
}

const CLAIMS = [
  { name: 'new.example', days: 1, status: 'pending', expires: -6 },
  { name: 'done.example', days: 91, status: 'completed' },
  { name: 'failed.example', days: 91, status: 'failed' },
  { name: 'recent.example', days: 89, status: 'completed' },
  { name: 'expired.example', days: 99, status: 'pending', expires: 92 },
  { name: 'expired-later.example', days: 99, status: 'pending', expires: 80 },
  { name: 'blocked.example', days: 300, status: 'blocked' },
]
const KEPT = ['blocked.example', 'expired-later.example', 'new.example', 'recent.example']

test('a list forgets what ended more than 90 days ago, and says so', async () => {
  const { type, names } = await createLedger(CLAIMS)
  const { stdout, stderr } = await type('claims', 'list', '--format', 'tsv', '--fields', 'name')
  expect(stdout.text.trim().split('\n').slice(1).sort()).toEqual(KEPT)
  expect(stderr.text).toBe('Forgot 3 claims that ended more than 90 days ago.\n')
  expect(await names()).toEqual(KEPT)
  expect((await type('claims', 'list', '--quiet')).stderr.text).toBe('')
})

test('an empty list names the service that has open claims', async () => {
  const { type } = await createLedger(CLAIMS)
  const here = ['--base-url', 'http://127.0.0.1:9', '--format', 'table']
  const { stdout, stderr } = await type('claims', 'list', ...here)
  expect(stdout.text + stderr.text).toContain(
    'No claims at http://127.0.0.1:9 are known in profile default.\n',
  )
  expect(stderr.text).toContain(
    `hint: for the 2 open claims at ${BASE}: mailclaim claims list --format table --base-url ${BASE}\n`,
  )
  const nowhere = await (await createLedger([])).type('claims', 'list', ...here)
  expect(nowhere.stderr.text).toContain('hint: start one with: ')
})

test('a clock that is years ahead forgets no open claim', async () => {
  const { type, names, context } = await createLedger([
    { name: 'one.example', days: 2, status: 'pending', expires: -5 },
    { name: 'two.example', days: 1, status: 'pending', expires: -6 },
  ])
  context.clock.setWall(NOW + 1000 * DAY_MS)
  await type('claims', 'list')
  expect(await names()).toEqual(['one.example', 'two.example'])
})

test('--prune prints the claims that it forgets', async () => {
  const { type, names } = await createLedger(CLAIMS)
  const { stdout, stderr } = await type('claims', 'list', '--prune', '85', '--json')
  const { data, ...envelope } = JSON.parse(stdout.text)
  expect(envelope).toEqual({ object: 'list', has_more: false })
  const expected = ['done.example', 'expired.example', 'failed.example', 'recent.example']
  expect(data.map(({ name }: DomainClaim) => name).sort()).toEqual(expected)
  expect(stderr.text).toBe('')
  expect(await names()).toEqual(KEPT.filter((name) => !expected.includes(name)))
  const again = await type('claims', 'list', '--prune', '85', '--format', 'table')
  expect(again.stderr.text).toBe('There was nothing to forget.\n')
})

test('--prune says how many claims it forgets', async () => {
  const { type } = await createLedger(CLAIMS)
  expect((await type('claims', 'list', '--prune', '85')).stderr.text).toBe(
    'Forgot 4 claims that ended more than 85 days ago.\n',
  )
})

test('--prune 0 forgets all that has ended', async () => {
  const { type, names } = await createLedger(CLAIMS)
  expect((await type('claims', 'list', '--prune', '0')).stderr.text).toBe('Forgot 5 claims that had ended.\n')
  expect(await names()).toEqual(['blocked.example', 'new.example'])
})

test('a list of more claims than are read at a time is one list, newest first', async () => {
  const claims = Array.from({ length: 1100 }, (_, at) => ({
    name: `n${String(at).padStart(4, '0')}.example`,
    days: 30 - at / 1100,
    status: 'pending',
  }))
  const { type } = await createLedger(claims)
  const { data } = JSON.parse((await type('claims', 'list', '--json')).stdout.text)
  expect(data.map(({ name }: DomainClaim) => name)).toEqual(claims.map(({ name }) => name).reverse())
})
