import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import { createFakeDns, smallWorld } from '../../dns/fake-dns.ts'
import { createFakeClock, createFakeContext, createFakeOutput, jsonResponse } from '../../fake-context.ts'
import { readSchemas, SCHEMAS } from '../../schemas.ts'

const DAY_MS = 24 * 3600 * 1000
const GONE = 'the service no longer has the claim of one.example'
const NEXT = 'its placeholder domain may have been deleted, which cancels a claim; to start another: '

/** A machine that has just seen pending claims of these domains, whose ids are the names' first words. */
async function createWorld(...names: string[]) {
  const clock = createFakeClock()
  const statuses: Record<string, string | undefined> = {}
  const claim = (name: string, domain_id: string, status: string) => ({
    object: 'domain_claim',
    name,
    domain_id,
    status,
    region: world.region,
    record: { type: 'TXT', name, value: `prefix=${domain_id}`, ttl: 'Auto' },
    created_at: new Date(clock.now()).toISOString(),
  })
  const asked: string[] = []
  let isDown = false
  let created = 0
  const context = createFakeContext({
    clock,
    dns: createFakeDns(
      smallWorld(() => ['prefix=one']),
      clock,
    ),
    environment: { settings: { base_url: 'https://api.example.com', resolver: '192.0.2.53' }, apiKey: 'key' },
    programs: { check: async () => undefined, run: async () => ({ kind: 'exited', code: 0 }) },
    respond: ({ method, url, body }) => {
      asked.push(`${method} ${url.pathname}`)
      if (isDown) return jsonResponse(503, {})
      if (url.pathname === '/domains/claim') {
        const id = `new${++created}`
        statuses[id] = 'completed'
        return jsonResponse(201, claim(JSON.parse(String(body)).name, id, 'pending'))
      }
      const id = url.pathname.split('/')[2] ?? ''
      if (world.broken.includes(id)) return jsonResponse(500, {})
      const status = statuses[id]
      if (status === undefined) return jsonResponse(404, { name: 'not_found', message: 'Not found' })
      return jsonResponse(200, claim(`${id}.example`, id, status))
    },
  })
  const world = {
    clock,
    asked,
    statuses,
    /** The ids of claims about which the service fails to answer. */
    broken: [] as string[],
    region: 'us-east-1',
    ledger: join(context.directories.state, 'claims', 'default'),
    down() {
      isDown = true
    },
    async run(line: string) {
      asked.length = 0
      const [stdout, stderr] = [createFakeOutput(), createFakeOutput()]
      const code = await run(line.split(' '), { ...context, stdout, stderr })
      return { code, stdout: stdout.text, stderr: stderr.text }
    },
    async listed(options = '') {
      return JSON.parse((await world.run(`claims list --json${options}`)).stdout)
    },
  }
  for (const name of names) {
    const id = name.split('.')[0] ?? ''
    statuses[id] = 'pending'
    await world.run(`claims get ${id}`)
  }
  return world
}

/** The same, and the service has none of these claims anymore, as a watch of all of them has just said. */
async function createGone(...names: string[]) {
  const world = await createWorld(...names)
  for (const id of Object.keys(world.statuses)) world.statuses[id] = undefined
  expect((await world.run('claims watch --all')).code).toBe(5)
  return world
}

describe('a claim that the service no longer has', () => {
  test('does not keep claims create of several domains from starting others', async () => {
    const world = await createGone('one.example', 'two.example')
    const { code, stdout, stderr } = await world.run('claims create one.example two.example --format tsv')
    expect({ code, asked: world.asked }).toEqual({
      code: 0,
      asked: ['POST /domains/claim', 'POST /domains/claim'],
    })
    expect(stdout).toMatch(/\bnew1\b/)
    expect(stdout).toMatch(/\bnew2\b/)
    expect(stderr).not.toContain('open before')
  })

  test('is not an open claim beside the one that claims create starts', async () => {
    const world = await createGone('one.example')
    const { code, stderr } = await world.run('claims create one.example')
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('already had') })
  })

  test.each([
    'claims check one.example',
    'claims record one.example',
    'claims record one two --format tsv',
    'claims publish one.example --with ./add.sh',
  ])('%s asks about it however lately it was seen, and ends with exit 5', async (line) => {
    const world = await createGone('one.example', 'two.example')
    const { code, stdout } = await world.run(line)
    expect({ code, asked: world.asked }).toEqual({
      code: 5,
      asked: expect.arrayContaining(['GET /domains/one/claim']),
    })
    expect(stdout).not.toMatch(/prefix=one\b.*is (ready|visible)/)
    world.statuses['one'] = 'pending'
    world.statuses['two'] = 'pending'
    expect((await world.run(line)).code).not.toBe(5)
  })

  test('stays gone while the service cannot be asked', async () => {
    const world = await createGone('one.example')
    world.down()
    for (const line of ['claims check one.example', 'claims record one.example']) {
      const { code, stdout, stderr } = await world.run(line)
      expect({ code, text: stdout + stderr }).toEqual({ code: 5, text: expect.stringContaining(GONE) })
    }
  })

  test.each(['watch', 'check', 'verify', 'record'])(
    'is not one of those that claims %s --all means',
    async (name) => {
      const world = await createGone('one.example')
      const { code, stderr } = await world.run(`claims ${name} --all`)
      expect({ code, asked: world.asked }).toEqual({ code: 0, asked: [] })
      expect(stderr).toContain('no open claim')
    },
  )

  test('gives way to an older claim of the domain, and is not asked about again for it', async () => {
    const world = await createWorld('one.example')
    world.clock.advance(1000)
    await world.run('claims create one.example')
    world.statuses['new1'] = undefined
    expect((await world.run('claims get one.example')).stdout).toContain('prefix=one')
    expect(world.asked).toEqual(['GET /domains/new1/claim', 'GET /domains/one/claim'])
    await world.run('claims get one.example')
    expect(world.asked).toEqual(['GET /domains/one/claim'])
  })

  test('ends a watch with that sentence, the next step and the status of the response', async () => {
    const world = await createWorld('one.example')
    world.statuses['one'] = undefined
    const { code, stderr } = await world.run('claims watch one.example --json')
    expect({ code, error: JSON.parse(stderr).error }).toEqual({
      code: 5,
      error: {
        code: 'not_found',
        message: GONE,
        hint: `${NEXT}mailclaim claims create one.example`,
        status: 404,
        exit: 5,
      },
    })
  })
})

describe('in the list of claims, one that the service no longer has', () => {
  test('is gone for people, with a warning that says what to do', async () => {
    const world = await createWorld('one.example', 'two.example')
    world.statuses['one'] = undefined
    const { code, stdout, stderr } = await world.run('claims list --refresh --format table')
    expect(code).toBe(0)
    expect(stderr).toBe(`warning: ${GONE}; ${NEXT}mailclaim claims create one.example\n`)
    expect(stdout).toMatch(/one\.example +gone +the service no longer has it/)
    expect(stdout).toMatch(/two\.example +pending/)
    const offline = await world.run('claims list --format table')
    expect(offline.stdout).toBe(stdout)
  })

  test('has the status that the service sent last for programs, and since when it is gone', async () => {
    const world = await createWorld('one.example', 'two.example')
    world.statuses['one'] = undefined
    const schemas = readSchemas(SCHEMAS)
    for (const options of [' --refresh', '']) {
      const list = await world.listed(options)
      expect(schemas.problems('list.json', list)).toEqual([])
      const [two, one] = list.data.sort((a: { name: string }, b: { name: string }) =>
        a.name < b.name ? 1 : -1,
      )
      expect(one).toMatchObject({ status: 'pending', gone_at: new Date(world.clock.now()).toISOString() })
      expect(two).not.toHaveProperty('gone_at')
    }
  })

  test('ends a run with --fail-fast, whose document says that domains are missing', async () => {
    const world = await createWorld('one.example', 'two.example')
    world.statuses['one'] = undefined
    const schemas = readSchemas(SCHEMAS)
    for (const command of ['check', 'record', 'watch', 'publish']) {
      const options = command === 'publish' ? ' --with ./add.sh' : ''
      const cut = await world.run(
        `claims ${command} one.example unknown.example --fail-fast --jobs 1 --json${options}`,
      )
      const document = JSON.parse(cut.stdout)
      expect({ command, has_more: document.has_more }).toEqual({ command, has_more: true })
      expect(schemas.problems('list.json', document)).toEqual([])
    }
  })

  test('is as before once the service has it again', async () => {
    const world = await createGone('one.example')
    expect((await world.listed()).data[0]).toHaveProperty('gone_at')
    world.statuses['one'] = 'pending'
    await world.run('claims list --refresh')
    expect((await world.listed()).data[0]).not.toHaveProperty('gone_at')
    expect((await world.run('claims create one.example two.example')).stderr).toContain('open before')
  })

  test('claims create of several starts no claim that would end a newer one, and of one domain it does', async () => {
    const world = await createWorld('one.example', 'two.example')
    world.statuses['one'] = 'superseded'
    await world.run('claims get one')
    const several = await world.run('claims create one.example two.example')
    expect(several.code).toBe(9)
    expect(several.stderr).toContain('superseded 1')
    expect(several.stderr).toContain('open before 1')
    expect(world.asked.filter((line) => line.startsWith('POST'))).toEqual([])
    await world.run('claims create one.example')
    expect(world.asked.filter((line) => line.startsWith('POST'))).toHaveLength(1)
  })

  test('keeps its status if it was over before', async () => {
    const world = await createWorld('one.example')
    world.statuses['one'] = 'canceled'
    await world.run('claims get one')
    world.statuses['one'] = undefined
    expect((await world.listed(' --refresh')).data[0]).toEqual(
      expect.not.objectContaining({ gone_at: expect.anything() }),
    )
  })

  test('is forgotten by --prune 0, and by itself after 90 days', async () => {
    const pruned = await createGone('one.example')
    expect((await pruned.run('claims list --prune 0')).stderr).toBe('Forgot 1 claim that had ended.\n')
    expect((await pruned.listed()).data).toEqual([])
    const world = await createGone('one.example')
    await world.run('claims create two.example')
    world.clock.advance(89 * DAY_MS)
    await world.run('claims create three.example')
    expect((await world.listed()).data).toHaveLength(3)
    world.clock.advance(2 * DAY_MS)
    await world.run('claims create four.example')
    expect((await world.listed()).data.map(({ name }: { name: string }) => name)).not.toContain('one.example')
  })

  test('can be read where an earlier version wrote it', async () => {
    const world = await createWorld('one.example')
    const [file = ''] = readdirSync(world.ledger).filter((name) => name.endsWith('.json'))
    const path = join(world.ledger, file)
    const { gone_at, ...entry } = JSON.parse(readFileSync(path, 'utf8'))
    expect(gone_at).toBe(null)
    writeFileSync(path, JSON.stringify(entry))
    expect((await world.listed()).data).toMatchObject([{ name: 'one.example', status: 'pending' }])
    world.statuses['one'] = undefined
    expect((await world.run('claims watch --all')).code).toBe(5)
    expect((await world.listed()).data).toMatchObject([{ gone_at: expect.any(String) }])
  })
})

describe('claim --all', () => {
  test('starts no claim for a domain whose claim has ended or is gone meanwhile', async () => {
    const world = await createWorld('one.example', 'two.example', 'three.example')
    Object.assign(world.statuses, { one: undefined, two: 'canceled', three: 'completed' })
    const { code, stdout, stderr } = await world.run('claim --all --format jsonl')
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .map(({ event, claim, error }) => [claim.name, event, error?.code, error?.exit, error?.hint])
    expect({ code, events: events.sort() }).toEqual({
      code: 5,
      events: [
        ['one.example', 'ended', 'not_found', 5, 'to start another: mailclaim claim one.example'],
        ['three.example', 'completed', undefined, undefined, undefined],
        ['two.example', 'ended', 'claim_canceled', 9, 'to start another: mailclaim claim two.example'],
      ],
    })
    expect(world.asked.filter((request) => request.startsWith('POST'))).toEqual([])
    expect(stderr).not.toContain('running this again starts new claims')
    // What has ended is no longer one of them.
    expect((await world.run('claim --all')).stderr).toContain('no open claim')
  })

  test('starts none in another region, either', async () => {
    const world = await createWorld('one.example')
    world.region = 'eu-west-1'
    await world.run('claims get one')
    world.statuses['one'] = 'completed'
    expect((await world.run('claim --all --region us-east-1')).code).toBe(0)
    expect(world.asked).toEqual(['GET /domains/one/claim'])
  })
})

test.each([
  ['just now', createWorld],
  ['as this machine knows', createGone],
])('claim of a domain whose claim is gone, %s, says what has become of its record', async (_when, create) => {
  const world = await create('one.example')
  world.statuses['one'] = undefined
  const { stdout } = await world.run('claim one.example --format jsonl --no-check')
  expect(JSON.parse(stdout.split('\n')[0] ?? '')).toMatchObject({
    event: 'created',
    message:
      'a new claim: the service no longer has the earlier one, so nobody checks its TXT value anymore: replace or remove "prefix=one"',
    earlier: { domain_id: 'one' },
  })
})

describe('claims list --refresh', () => {
  test('shows a claim as it was last seen if the service fails to answer about it, and ends with exit 7', async () => {
    const world = await createWorld('one.example', 'two.example', 'three.example', 'four.example')
    world.broken.push('two')
    world.statuses['three'] = 'verified'
    const { code, stdout, stderr } = await world.run(
      'claims list --refresh --format tsv --fields name,status',
    )
    expect(code).toBe(7)
    expect(stdout).toMatch(/^two\.example\tpending$/m)
    expect(stdout).toMatch(/^three\.example\tverified$/m)
    expect(stderr).toMatch(/^warning: two\.example is shown as it was last seen: the service failed \(500\)/m)
  })

  test('gives up if the service fails for several claims in a row', async () => {
    const world = await createWorld(...Array.from({ length: 30 }, (_, index) => `d${index}.example`))
    world.down()
    const { code, stdout } = await world.run('claims list --refresh --format tsv')
    expect({ code, stdout }).toEqual({ code: 7, stdout: '' })
    expect(world.asked.length).toBeLessThan(60)
  })
})
