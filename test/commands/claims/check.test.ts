import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { HttpTransportError } from '../../../src/context.ts'
import { claimOf, createWorld, errorOf, jsonLines, VALUE, type WorldOptions } from '../../claims/world.ts'
import { createFakeOutput, jsonResponse } from '../../fake-context.ts'
import { run } from '../../run.ts'

/** Creates a machine whose ledger has the claim of example.com, read from the service two minutes ago. */
async function knowing(options: WorldOptions = {}) {
  let isLater = false
  const { respond = () => claimOf() } = options
  const world = createWorld({ ...options, respond: (...asked) => (isLater ? respond(...asked) : claimOf()) })
  await world.run('claims', 'get', 'd1')
  await world.clock.sleep(120_000)
  isLater = true
  world.asked.length = 0
  world.questions.length = 0
  return world
}

test('claims check --json prints the documented fields of a report', async () => {
  const world = await knowing()
  const { code, stdout, stderr } = await world.run('claims', 'check', 'example.com', '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const report = JSON.parse(stdout)
  expect(Object.keys(report).join(' ')).toBe(
    'name expected verdict ready retry_after_seconds claim zone nameservers resolvers findings',
  )
  expect(report).toMatchObject({ expected: VALUE, verdict: 'ready', claim: { status: 'pending' } })
  expect(world.asked).toEqual(['GET /domains/d1/claim'])
})

test.each([
  ['pending', [], 8, 'record_not_visible'],
  ['pending', [VALUE], 0, undefined],
  ['blocked', [VALUE], 0, undefined],
  ['completed', [], 0, undefined],
  ['verified', [], 0, undefined],
  ['superseded', [VALUE], 9, 'claim_superseded'],
  ['expired', [], 9, 'claim_expired'],
] as const)('claims check of a %s claim with the TXT values %j exits %i', async (status, txt, exit, code) => {
  const world = await knowing({ respond: () => claimOf({ status }), txt: () => txt })
  const ended = await world.run('claims', 'check', 'example.com', '--json')
  expect({ exit: ended.code, code: errorOf(ended)?.code }).toEqual({ exit, code })
  expect(JSON.parse(ended.stdout)).toMatchObject({ claim: { status } })
})

/** Failed ends of a claim. No version knows `withdrawn`; a pending claim has ended once `expires_at` has passed. */
const NEGATIVE_ENDS = [
  { status: 'expired' },
  { status: 'failed', failure_reason: 'no_record' },
  { status: 'canceled' },
  { status: 'superseded' },
  { status: 'withdrawn', failure_reason: 'by_owner' },
  { status: 'pending', expires_at: '2026-11-22 11:00:00.0+00' },
]

test.each(NEGATIVE_ENDS.flatMap((end) => [[VALUE], ['prefix=other'], []].map((txt) => [end, txt] as const)))(
  'claims check of a claim that ended with %j, with %j in DNS, exits 9 and suggests no change in DNS',
  async (end, txt) => {
    const world = await knowing({ respond: () => claimOf(end), txt: () => txt })
    const check = (format: string) => world.run('claims', 'check', 'example.com', '--format', format)
    const { code, stdout } = await check('json')
    expect({ code, report: JSON.parse(stdout) }).toMatchObject({
      code: 9,
      report: {
        expected: null,
        verdict: 'unknown',
        ready: false,
        claim: { status: end.status },
        findings: [],
      },
    })
    expect(JSON.parse(stdout).nameservers[0].values).toEqual(txt)
    expect(stdout).not.toContain('"match"')
    for (const format of ['table', 'markdown', 'html']) {
      const ended = await check(format)
      expect(ended.code).toBe(9)
      expect(ended.stdout).toContain(end.status)
      expect(ended.stdout).not.toMatch(/Fix:|→|\bready\b/i)
      expect(ended.stdout.includes(VALUE)).toBe(txt.includes(VALUE))
      expect(ended.stderr).toMatch(/^hint: .*mailclaim claims create example\.com$/m)
    }
  },
)

test('claims check --wait of a claim that expires during the wait exits 9, and its report has no findings', async () => {
  let reads = 0
  const world = await knowing({
    txt: () => [],
    respond: () => claimOf(reads++ > 0 ? { status: 'expired' } : {}),
  })
  const { code, stdout } = await world.run('claims', 'check', 'example.com', '--wait', '--json')
  expect({ code, report: JSON.parse(stdout) }).toMatchObject({
    code: 9,
    report: { expected: null, verdict: 'unknown', retry_after_seconds: null, findings: [] },
  })
})

test.each([
  ['table', 'hint: to verify it: mailclaim claim example.com\n'],
  ['json', ''],
])(
  'claims check --format %s of a pending claim whose record is ready prints the text %j on stderr',
  async (format, line) => {
    const { code, stderr } = await (await knowing()).run('claims', 'check', 'example.com', '--format', format)
    expect({ code, stderr }).toEqual({ code: 0, stderr: line })
  },
)

test('claims check expects the value that the service has now, not the value in the ledger', async () => {
  const record = { type: 'TXT', name: 'example.com', value: 'prefix=newer' }
  const world = await knowing({ respond: () => claimOf({ record }), txt: () => ['prefix=newer'] })
  const { stdout } = await world.run('claims', 'check', 'example.com', '--json')
  expect(JSON.parse(stdout)).toMatchObject({ expected: 'prefix=newer', verdict: 'ready' })
})

test.each([
  ['the service is down', () => jsonResponse(503, {})],
  ['the key is refused', () => jsonResponse(401, {})],
  ['the service is silent', () => Promise.reject(new HttpTransportError('timeout', 'maybe', 'no answer'))],
])('claims check uses the claim in the ledger, with one warning, if %s', async (_where, respond) => {
  const world = await knowing({ respond })
  const { code, stdout, stderr } = await world.run('claims', 'check', 'example.com', '--json')
  expect({ code, verdict: JSON.parse(stdout).verdict }).toEqual({ code: 0, verdict: 'ready' })
  expect(stderr).toMatch(
    /^warning: couldn't ask the service about the claim of example\.com, last seen 2 min ago/,
  )
  expect(stderr.trim().split('\n')).toHaveLength(1)
  expect(world.asked).toHaveLength(1)
  expect(world.context.requests.at(-1)?.timeoutMs).toBeLessThanOrEqual(5000)
})

test('claims check of several domains warns once that the service is down', async () => {
  const world = await knowing({ respond: () => jsonResponse(503, {}) })
  await world.run('claims', 'check', 'example.com', 'www.example.com')
  const { stderr } = await world.run('claims', 'check', 'example.com', 'www.example.com', '--json')
  expect(stderr.match(/^warning/gm)).toHaveLength(1)
})

test('claims check --from exits 2 for a domain listed with two values, but checks it with the first value', async () => {
  const world = createWorld({ apiKey: undefined })
  const list = join(world.context.directories.state, '..', 'list.txt')
  writeFileSync(list, `example.com,${VALUE}\nexample.com,prefix=other\n`)
  const { code, stdout } = await world.run('claims', 'check', '--from', list, '--format', 'jsonl')
  expect({ code, expected: jsonLines(stdout).map(({ expected }) => expected) }).toEqual({
    code: 2,
    expected: [VALUE],
  })
})

test('claims check --format table of a completed claim says that the domain no longer needs its record', async () => {
  const world = await knowing({ respond: () => claimOf({ status: 'completed' }), txt: () => [] })
  const { stdout } = await world.run('claims', 'check', 'example.com', '--format', 'table')
  expect(stdout).toBe('example.com no longer needs its record: the domain is yours\n')
})

test('`claims check` with --value needs no account', async () => {
  const world = createWorld({ apiKey: undefined, txt: () => ['v=spf1 -all', 'prefix=older'] })
  const given = await world.run('claims', 'check', 'example.com', '--value', ` "${VALUE}"`, '--json')
  expect(given.code).toBe(8)
  expect(JSON.parse(given.stdout)).toMatchObject({ expected: VALUE, claim: null, verdict: 'fix' })
  expect(given.stderr).toMatch(/^warning: ignoring spaces, quotation marks/)
  const named = 'claims check --name example.com --value prefix=older --json'
  expect((await world.run(...named.split(' '))).code).toBe(0)
  expect(world.asked).toEqual([])
})

test.each([`Array${VALUE}`, `${VALUE}3600`])(
  'claims check finds the same mistake in the TXT value %j with --value as with the value of a known claim',
  async (value) => {
    const world = await knowing({ txt: () => [value] })
    const given = await world.run('claims', 'check', 'example.com', '--value', VALUE, '--json')
    const own = await world.run('claims', 'check', 'example.com', '--json')
    expect([given, own].map(({ code }) => code)).toEqual([8, 8])
    expect(JSON.parse(given.stdout).findings[0].code).toBe(JSON.parse(own.stdout).findings[0].code)
  },
)

test('claims check without a value or claim reports the verdict `unknown`, and does not query the resolver for the TXT record', async () => {
  const world = createWorld({ apiKey: undefined })
  const { code, stdout } = await world.run('claims', 'check', 'example.com', '--json')
  expect({ code, report: JSON.parse(stdout) }).toMatchObject({
    code: 0,
    report: { expected: null, verdict: 'unknown', zone: 'example.com' },
  })
  expect(world.questions.filter(({ server, type }) => server === '192.0.2.53' && type === 'TXT')).toEqual([])
})

test('the table of several checks shows one value of a large TXT set and the number of the others, and the jsonl output has all values', async () => {
  const values = Array.from({ length: 30 }, (_, n) => `foreign-${n}=${'x'.repeat(160)}`)
  const world = createWorld({ txt: () => values })
  const check = ['claims', 'check', 'example.com', 'www.example.com', '--format']
  const { stdout } = await world.run(...check, 'table')
  expect(stdout).toMatch(/foreign-\d+=x+… and 29 more/)
  expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThan(180)
  const [line = ''] = (await world.run(...check, 'jsonl')).stdout.split('\n')
  expect(JSON.parse(line).nameservers[0].values).toHaveLength(30)
})

test.each([[['example.com']], [['example.com', 'www.example.com']]])(
  'claims check of %j without a known claim says once on stderr that it looked for no value',
  async (domains: string[]) => {
    const { code, stderr } = await createWorld().run('claims', 'check', ...domains, '--format', 'tsv')
    expect(code).toBe(0)
    expect(stderr.match(/^no claim is known here, so no value was looked for: .*--value/gm)).toHaveLength(1)
    const known = await (await knowing()).run('claims', 'check', 'example.com', '--format', 'tsv')
    expect(known.stderr).not.toContain('no value')
  },
)

test('claims check without an expected value exits 0 with a warning if no name server can be reached', async () => {
  const world = createWorld({ dns: () => 'unreachable' })
  const { code, stderr } = await world.run('claims', 'check', 'example.com', '--json')
  expect(code).toBe(0)
  expect(stderr).toMatch(/^warning: .*name servers of example\.com.*\n$/)
})

test.each(['markdown', 'html'])(
  'claims check --format %s prints the command that repeats the check, but exits 2 if given two domains',
  async (format) => {
    const world = await knowing()
    const words = ['claims', 'check', 'example.com', '--public-resolvers', '--format', format]
    const { stdout } = await world.run(...words)
    expect(stdout).toContain(
      `mailclaim claims check --name example.com --value ${VALUE} --resolver 192.0.2.53 --public-resolvers`,
    )
    expect((await world.run(...words, 'example.net')).code).toBe(2)
  },
)

test.each([
  '--name example.com',
  '--value prefix=token',
  'example.com --name example.com --value prefix=token',
  'example.com --value token',
  'example.com --wait',
  'example.com example.net --value prefix=token',
  'https://example.com',
])('mailclaim claims check %s exits 2 if the ledger is empty', async (words) => {
  const world = createWorld({ apiKey: undefined })
  expect((await world.run('claims', 'check', ...words.split(' '))).code).toBe(2)
})

test('claims check of com, which is no domain name but could be a domain_id, exits 2 if no service is configured', async () => {
  const { context } = createWorld()
  const [stdout, stderr] = [createFakeOutput(), createFakeOutput()]
  const environment = { ...context.environment, settings: {} }
  const code = await run(['claims', 'check', 'com'], { ...context, environment, stdout, stderr })
  expect({ code, stdout: stdout.text }, stderr.text).toEqual({ code: 2, stdout: '' })
})

test('claims check --wait repeats the check until the record is visible', async () => {
  let checks = 0
  const world = await knowing({
    txt: () => (world.clock.monotonic() > 160_000 ? [VALUE] : [`prefix=${checks++}`]),
  })
  const { code, stderr } = await world.run('claims', 'check', 'example.com', '--wait')
  expect(code, stderr).toBe(0)
  // The claim is read once at the start, and not again within a minute.
  expect(world.asked).toHaveLength(1)
})

test.each([
  ['claim', 'example.com'],
  ['claims', 'check', 'example.com', '--wait'],
])('mailclaim %s %s, waiting for the record, prints the hint for each mistake once', async (...words) => {
  const states = [[`"${VALUE}"`], [VALUE.slice(0, -2)], [VALUE]]
  const world = await knowing({
    txt: () => states[Math.floor(world.clock.monotonic() / 200_000)] ?? [VALUE],
  })
  const { stderr } = await world.run(...words)
  const lines = stderr.split('\n')
  const told = lines.slice(lines.findIndex((line) => line.includes('stored value')))
  expect(told.filter((line) => !/so far\)$/.test(line)).slice(0, 4)).toEqual([
    'the stored value has quotation marks or backslashes in it: "prefix=token"',
    'hint: enter the value without quotation marks and backslashes; the DNS provider adds those that it needs',
    'the stored value is cut off: "prefix=tok"',
    'hint: correct the value of that record, at the host @ in the zone example.com: prefix=token',
  ])
  expect(stderr.match(/so far\)$/gm)?.length).toBeGreaterThan(2)
  expect(stderr.match(/^hint: (enter|correct)/gm)).toHaveLength(2)
})

test('claims check --wait of several domains prints only once a mistake that several of them share', async () => {
  const world = await knowing({ txt: () => [`"${VALUE}"`] })
  const names = ['a.example.com', 'b.example.com', 'example.com']
  const list = join(world.context.directories.state, '..', 'list.csv')
  writeFileSync(list, names.map((name) => `${name},${VALUE}\n`).join(''))
  const { stderr } = await world.run('claims', 'check', '--from', list, '--wait', '--timeout', '60')
  expect(stderr.match(/^\S+: the stored value has quotation marks/gm)).toHaveLength(1)
  expect(stderr).toMatch(/^ {2}fix: enter the value without quotation marks/m)
})

test('claims check --wait expects the new value after the service changes the value during the wait', async () => {
  const newer = { type: 'TXT', name: 'example.com', value: 'prefix=newer' }
  let reads = 0
  const world = await knowing({
    txt: () => ['prefix=newer'],
    respond: () => claimOf(reads++ > 0 ? { record: newer } : {}),
  })
  const { code, stdout } = await world.run('claims', 'check', 'example.com', '--wait', '--json')
  const report = JSON.parse(stdout)
  expect({ code, report }).toMatchObject({ code: 0, report: { expected: 'prefix=newer', ready: true } })
  expect(world.clock.monotonic()).toBeLessThan(300_000)
})

test('claims check --wait exits 8 at its timeout, and 0 once the claim is completed', async () => {
  const late = await knowing({ txt: () => [] })
  const ended = await late.run('claims', 'check', 'example.com', '--wait', '--timeout', '20', '--json')
  expect({ code: ended.code, message: errorOf(ended).message }).toMatchObject({
    code: 8,
    message: expect.stringMatching(/^timed out after 20 seconds: /),
  })
  const start = late.clock.monotonic()
  let reads = 0
  const over = await knowing({
    txt: () => [],
    respond: () => claimOf(reads++ > 0 ? { status: 'completed' } : {}),
  })
  expect((await over.run('claims', 'check', 'example.com', '--wait', '--json')).code).toBe(0)
  expect(over.clock.monotonic() - start).toBeLessThan(200_000)
})
