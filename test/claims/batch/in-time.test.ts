import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fakeInternet } from '../../dns/fake-internet.ts'
import { jsonResponse } from '../../fake-context.ts'
import { claimOf, createWorld, jsonLines } from '../world.ts'

const DOMAINS = 200
/** Value of `--jobs`: with only three checks at once, the silent servers alone would take four times the `--timeout`. */
const JOBS = 3
const domains = Array.from({ length: DOMAINS }, (_, n) => `d${n}.com`)
/** Whether the name server of the domain `d<n>.com` never answers: true for seven of a hundred. */
const isSilent = (n: number) => n % 100 < 7
const addressOf = (n: number) => `198.51.${Math.floor(n / 200)}.${(n % 200) + 1}`

/** Creates a world of 200 domains without the TXT record, and a file that lists them. */
function createDomains(respond: Parameters<typeof createWorld>[0] = {}) {
  const com = { apex: 'com', servers: { 'a.registry.com': ['192.0.2.1'] } }
  const answers = domains.map((apex, n) =>
    fakeInternet([com, { apex, servers: { [`ns1.${apex}`]: [addressOf(n)] } }]),
  )
  const silent = new Set(domains.flatMap((_, n) => (isSilent(n) ? [addressOf(n)] : [])))
  const world = createWorld({
    ...respond,
    dns: (asked) =>
      silent.has(asked.server)
        ? 'silent'
        : (answers[Number(/d(\d+)\.com$/.exec(asked.name)?.[1] ?? 0)]?.(asked) ?? 'silent'),
  })
  const list = join(world.context.directories.state, '..', 'list.txt')
  writeFileSync(list, domains.map((domain) => `${domain},prefix=token`).join('\n'))
  return { ...world, list }
}

test.each([
  ['claims check --wait', 0],
  ['claim', 0],
  ['claims verify --wait', 0],
  ['claims verify --no-check --wait', 500],
])(
  'mailclaim %s --jobs 3 --timeout 10 ends within 13 seconds for 200 domains, 14 of them with a silent name server, if the service takes %i ms per response',
  async (command, answerMs) => {
    let delayMs = 0
    const world = createDomains({
      respond: async (request, body) => {
        const name = body === undefined ? request.split('id-')[1]?.split('/')[0] : JSON.parse(body).name
        if (delayMs > 0) await world.clock.sleep(delayMs)
        const record = { type: 'TXT', name, value: 'prefix=token' }
        return jsonResponse(200, claimOf({ name, domain_id: `id-${name}`, record }))
      },
    })
    if (command.startsWith('claims verify')) await world.run('claims', 'create', '--from', world.list)
    delayMs = answerMs
    const start = world.clock.monotonic()
    const line = [...command.split(' '), '--from', world.list, '--jobs', `${JOBS}`, '--timeout', '10']
    const { code, stdout, stderr } = await world.run(...line, '--format', 'jsonl')
    expect(world.clock.monotonic() - start).toBeLessThan(13_000)
    const lines = jsonLines(stdout)
    expect(lines).toHaveLength(DOMAINS)
    expect([7, 8], stderr.slice(-500)).toContain(code)
  },
)

test('mailclaim claim for several domains sends no request for a claim with status completed in the ledger', async () => {
  const world = createWorld({
    respond: (request, body) => {
      const name = request.startsWith('POST /domains/claim')
        ? JSON.parse(`${body}`).name
        : request.split('id-')[1]?.split('/')[0]
      const record = { type: 'TXT', name, value: 'prefix=token' }
      return claimOf({
        name,
        domain_id: `id-${name}`,
        record,
        status: name === 'one.com' ? 'completed' : 'expired',
      })
    },
  })
  const line = ['claim', 'one.com', 'two.com', '--format', 'jsonl']
  await world.run(...line)
  world.asked.length = 0
  const { stdout } = await world.run(...line)
  expect(world.asked.filter((request) => request.includes('one.com'))).toEqual([])
  expect(jsonLines(stdout)[0]).toMatchObject({
    event: 'done',
    name: 'one.com',
    claim: { seen_at: expect.any(String) },
  })
  const list = join(world.context.directories.state, '..', 'list.txt')
  writeFileSync(list, 'one.com\nno domain')
  expect((await world.run('claim', '--from', list)).code).toBe(2)
})
