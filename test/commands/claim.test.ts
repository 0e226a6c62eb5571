import { expect, test } from 'vitest'
import { createChecklist } from '../../src/commands/claim-checklist.ts'
import type { DomainClaim } from '../../src/service/types.ts'
import { createIo } from '../../src/terminal/io.ts'
import type { ProgressReporter } from '../../src/terminal/progress.ts'
import { claimOf, createWorld, errorOf, GONE, jsonLines, VALUE, type WorldOptions } from '../claims/world.ts'
import { createFakeContext, fakeSettings, jsonResponse } from '../fake-context.ts'

/** Creates a service with the claim d1. @param later fields of the claim that differ at a given second */
function service(later: (second: number) => object = () => ({})) {
  const state = { status: 'pending', creations: 0, verifications: 0 }
  const options = (second: () => number): WorldOptions => ({
    respond(request, body) {
      if (request === 'POST /domains/claim') {
        state.creations += 1
        return jsonResponse(201, claimOf({ name: JSON.parse(`${body}`).name }))
      }
      if (request.endsWith('/verify')) {
        state.verifications += 1
        state.status = 'verified'
        return claimOf()
      }
      if (state.status === 'verified') {
        state.status = 'completed'
        return claimOf({ status: 'verified' })
      }
      return claimOf({ status: state.status, ...later(second()) })
    },
  })
  return { state, options }
}

function claiming(later?: (second: number) => object, more: WorldOptions = {}) {
  const { state, options } = service(later)
  let second = () => 0
  const world = createWorld({ ...options(() => second()), ...more })
  second = () => world.clock.monotonic() / 1000
  return { ...world, state }
}

const steps = (stdout: string) => jsonLines(stdout).map(({ event }) => event)

test('mailclaim claim creates, checks, verifies and follows a claim to its completion, and shows the next steps once', async () => {
  const world = claiming()
  const { code, stdout, stderr } = await world.run('claim', 'example.com', '--format', 'jsonl')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(steps(stdout)).toEqual(['created', 'record', 'dns', 'verification', 'status', 'status', 'done'])
  for (const { event, at, claim, ...more } of jsonLines(stdout)) {
    expect({ event, at, claim }).toMatchObject({
      at: expect.stringMatching(/Z$/),
      claim: { domain_id: 'd1' },
    })
    expect(Object.keys(more)).toEqual([])
  }
  const again = await world.run('claim', 'example.com')
  expect(again.code).toBe(0)
  expect(again.stderr).not.toContain('Next steps')
  const people = await claiming().run('claim', 'example.com')
  expect(people.stderr).toContain('Next steps')
  expect(people.stderr).toContain('Host       @   (in the zone example.com)')
})

test('claim --json prints the claim on stdout at its timeout, and exits 8 with one hint', async () => {
  const world = claiming(undefined, { txt: () => [] })
  const { code, stdout, stderr } = await world.run('claim', 'example.com', '--timeout', '20', '--json')
  expect({ code, claim: JSON.parse(stdout) }).toEqual({ code: 8, claim: claimOf() })
  expect(errorOf({ stderr })).toMatchObject({
    code: 'record_not_visible',
    message: expect.stringMatching(/^timed out after 20 seconds: /),
    hint: expect.not.stringContaining('\n'),
  })
  const events = await world.run('claim', 'example.com', '--timeout', '20', '--format', 'jsonl')
  expect(steps(events.stdout)).toEqual(['created', 'record', 'waiting'])
  expect(jsonLines(events.stdout)[2]).toMatchObject({ report: { verdict: 'fix', claim: null } })
})

test('`claim` resumes the open claim of a domain, with a warning about an option without effect, but creates a second claim for another --region', async () => {
  const world = claiming(undefined, { txt: () => [] })
  await world.run('claim', 'example.com', '--timeout', '1')
  const { stderr } = await world.run('claim', 'example.com', '--timeout', '1', '--open-tracking')
  expect(stderr).toContain('warning: no effect on a claim that already exists: --open-tracking\n')
  expect(world.state.creations).toBe(1)
  await world.run('claim', 'example.com', '--timeout', '1', '--region', 'eu-west-1')
  expect(world.state.creations).toBe(2)
})

test.each([
  ['that of the open claim', 'pending', [], 'eu-west-1'],
  ['that of --region', 'pending', ['--region', 'sa-east-1'], 'sa-east-1'],
  ['absent after an expired claim', 'expired', [], undefined],
])('the field `region` in the request of claims create is %s', async (_what, status, words, region) => {
  const bodies: { region?: string }[] = []
  const world = createWorld({
    respond(_request, body) {
      if (body !== undefined) bodies.push(JSON.parse(body))
      return claimOf({ region: 'eu-west-1', status })
    },
  })
  await world.run('claims', 'get', 'd1')
  await world.run('claims', 'create', 'example.com', ...words)
  expect(bodies.map((body) => body.region)).toEqual([region])
})

test.each([
  ['expired', 1, 8],
  ['canceled', 1, 8],
  ['deleted', 1, 8],
  ['superseded', 0, 9],
])("if the ledger's claim is now %s, `claim` creates %i claims and exits %i", async (end, made, exit) => {
  let isOver = false
  const answer = () => (end === 'deleted' ? GONE() : claimOf({ status: end }))
  const over = createWorld({
    txt: () => [],
    respond: (request) =>
      request === 'POST /domains/claim'
        ? jsonResponse(201, claimOf({ domain_id: isOver ? 'd2' : 'd1' }))
        : isOver && request.includes('d1')
          ? answer()
          : claimOf({ domain_id: request.split('/')[2] }),
  })
  await over.run('claim', 'example.com', '--timeout', '1')
  isOver = true
  over.asked.length = 0
  // `claim --all` only continues known claims.
  const all = await over.run('claim', '--all', '--timeout', '1')
  expect([all.code, over.asked], all.stderr).toEqual([end === 'deleted' ? 5 : 9, ['GET /domains/d1/claim']])
  expect(all.stderr).not.toContain('claim_unknown')
  const ended = await over.run('claim', 'example.com', '--timeout', '1')
  expect(ended.code, ended.stderr).toBe(exit)
  expect(over.asked.filter((request) => request === 'POST /domains/claim')).toHaveLength(made)
})

test.each([
  ['canceled', 9],
  ['blocked', 9],
  ['completed', 0],
])('`claim`, waiting for DNS, ends within two minutes after the claim becomes %s', async (status, exit) => {
  const world = claiming((second) => (second > 65 ? { status } : {}), { txt: () => [] })
  const { code, stdout, stderr } = await world.run('claim', 'example.com', '--format', 'jsonl')
  const events = ['created', 'record', 'waiting', 'status', 'done']
  expect({ code, events: steps(stdout) }, stderr).toEqual({ code: exit, events })
  expect(world.clock.monotonic() / 1000).toBeLessThan(185)
  expect(world.state.verifications).toBe(0)
})

test('`claim` continues to wait for DNS while GET requests get status 503, and tries to get the claim once a minute', async () => {
  const world = claiming(undefined, {
    respond: (request) => (request.startsWith('GET') ? jsonResponse(503, {}) : jsonResponse(201, claimOf())),
    txt: () => [],
  })
  const ended = await world.run('claim', 'example.com', '--timeout', '150', '--json')
  expect(ended.code, ended.stderr).toBe(8)
  expect(world.asked.filter((request) => request.startsWith('GET'))).toHaveLength(2)
})

test('`claim` asks the service to verify even if no name server answers', async () => {
  const world = claiming(undefined, { dns: () => 'silent' })
  const { code, stdout } = await world.run('claim', 'example.com', '--format', 'jsonl')
  expect(code).toBe(0)
  expect(steps(stdout)).toEqual(['created', 'record', 'warning', 'verification', 'status', 'status', 'done'])
  expect(jsonLines(stdout)[2].error.code).toBe('dns_unavailable')
})

test('a `warning` event of the command `claim` ends the progress line', async () => {
  const context = createFakeContext()
  const lines: string[] = []
  const progress: ProgressReporter = {
    update: async (text) => void lines.push(text),
    end: async () => void lines.push(''),
    succeed: async () => {},
  }
  const io = { ...createIo(context, await fakeSettings(context)), progress }
  const { show } = createChecklist(false, io)
  const claim = claimOf() as DomainClaim
  await show({ event: 'waiting', claim, text: "the TXT record isn't at example.com" })
  await show({ event: 'warning', claim, text: 'no name server answers' })
  expect(lines).toEqual(["the TXT record isn't at example.com", ''])
})

test('`claim` keeps waiting for a blocked claim only with --through-blocked', async () => {
  const block = (second: number) =>
    second < 90 ? { status: 'blocked', blocked_reason: 'grace_period' } : { status: 'completed' }
  const known = claiming(block)
  await known.run('claims', 'get', 'd1')
  const stopped = await known.run('claim', 'example.com', '--json')
  expect({ code: stopped.code, error: errorOf(stopped).code }).toEqual({ code: 9, error: 'claim_blocked' })
  expect((await known.run('claim', 'example.com', '--through-blocked')).code).toBe(0)
})

test.each([
  [0, 0],
  [1, 7],
])('if the --publish command exits with code %i, `claim` exits with code %i', async (ends, exit) => {
  let values: string[] = []
  const world = claiming(undefined, {
    txt: () => values,
    async runInShell({ command, variables }) {
      if (command !== 'add it') return { kind: 'exited', code: 0 }
      if (ends === 0) values = [variables['MAILCLAIM_RECORD_VALUE'] ?? '']
      return { kind: 'exited', code: ends }
    },
  })
  const words = ['claim', 'example.com', '--publish', 'add it', '--format', 'jsonl']
  const { code, stdout } = await world.run(...words)
  expect(code).toBe(exit)
  expect(steps(stdout).slice(0, 4)).toEqual(
    ends === 0 ? ['created', 'record', 'published', 'dns'] : ['created', 'record'],
  )
  expect(values).toEqual(ends === 0 ? [VALUE] : [])
})

test('mailclaim claim of several domains prints each record to add and each result, and exits with the most severe exit code (6 before 8)', async () => {
  const names = ['one.example.com', 'two.example.com', 'bad..example']
  const world = createWorld({
    txt: () => [],
    respond(request, body) {
      const name = body === undefined ? request.split('id-')[1]?.split('/')[0] : JSON.parse(body).name
      if (name === 'two.example.com') return jsonResponse(422, { name: 'invalid', message: 'Nobody has it' })
      const record = { type: 'TXT', name, value: VALUE, ttl: 'Auto' }
      return jsonResponse(201, claimOf({ name, domain_id: `id-${name}`, record }))
    },
  })
  const words = ['claim', ...names.slice(0, 2), '--timeout', '5']
  const { code, stdout, stderr } = await world.run(...words, '--format', 'jsonl')
  expect(code).toBe(6)
  expect(stderr).toContain(`add to DNS: one.example.com TXT ${VALUE}\n`)
  const ends = jsonLines(stdout)
  expect(
    ends
      .map(({ event, name, error }) => ({ event, name, code: error.code }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  ).toEqual([
    { event: 'done', name: 'one.example.com', code: 'record_not_visible' },
    { event: 'done', name: 'two.example.com', code: 'invalid' },
  ])
  const people = await world.run(...words)
  expect(people.stderr).toMatch(/^domains: 2 \(pending 1, refused 1\)$/m)
  expect(people.stderr).toMatch(/^ {2}missing: 1 \(one\.example\.com\)$/m)
  expect(people.stderr).toMatch(/^ {4}fix: add a TXT record/m)
  expect((await world.run('claim', ...names)).code).toBe(2)
})
