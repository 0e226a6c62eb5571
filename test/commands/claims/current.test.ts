import { describe, expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import type { HttpResponse } from '../../../src/context.ts'
import { createFakeDns, smallWorld } from '../../dns/fake-dns.ts'
import { createFakeClock, createFakeContext, createFakeOutput, jsonResponse } from '../../fake-context.ts'

/** A service with these claims of example.com by their id, which can be changed; undefined: it has none of that id. */
function createWorld(statuses: Record<string, string | undefined>, verified?: () => HttpResponse) {
  const claim = (id: string, status: string | undefined) => ({
    name: 'example.com',
    id: id.replace(/^d/, 'c'),
    domain_id: id,
    status,
    record: { type: 'TXT', name: 'example.com', value: `prefix=${id}`, ttl: 'Auto' },
    created_at: `2026-11-${id.replace(/\D/g, '').padStart(2, '0')} 10:00:00+00`,
  })
  const clock = createFakeClock()
  const asked: string[] = []
  const context = createFakeContext({
    clock,
    dns: createFakeDns(
      smallWorld(() => []),
      clock,
    ),
    environment: { settings: { base_url: 'https://api.example.com', resolver: '192.0.2.53' }, apiKey: 'key' },
    programs: { check: async () => undefined, run: async () => ({ kind: 'exited', code: 0 }) },
    respond: ({ method, url }) => {
      asked.push(`${method} ${url.pathname}`)
      if (method === 'POST' && verified !== undefined) return verified()
      const id = url.pathname.split('/')[2] ?? ''
      if (statuses[id] === undefined) return jsonResponse(404, { name: 'not_found', message: 'Not found' })
      if (statuses[id] === 'gone') return jsonResponse(410, { message: 'Gone' })
      return jsonResponse(200, claim(id, statuses[id]))
    },
  })
  return {
    asked,
    clock,
    async run(...words: string[]) {
      asked.length = 0
      const [stdout, stderr] = [createFakeOutput(), createFakeOutput()]
      const code = await run(words, { ...context, stdout, stderr })
      return { code, stdout: stdout.text, stderr: stderr.text }
    },
  }
}

describe('a name stands for the newest open claim', () => {
  test.each(['claims get', 'claims watch', 'claims verify'])(
    '%s NAME goes on to the next one if that one has ended since it was last seen',
    async (line) => {
      const statuses: Record<string, string | undefined> = { d1: 'pending', d2: 'pending', d3: 'pending' }
      const world = createWorld(statuses)
      for (const id of ['d1', 'd2', 'd3']) await world.run('claims', 'get', id)
      Object.assign(statuses, { d3: undefined, d2: 'canceled', d1: 'completed' })
      const { code, stdout } = await world.run(...line.split(' '), 'example.com', '--json')
      expect({ code, claim: JSON.parse(stdout) }).toMatchObject({ code: 0, claim: { domain_id: 'd1' } })
      expect(world.asked).toEqual(['d3', 'd2', 'd1'].map((id) => `GET /domains/${id}/claim`))
      // The ledger knows by now that d2 has ended.
      const listed = await world.run('claims', 'list', '--fields', 'domain_id,status', '--format', 'tsv')
      expect(listed.stdout).toContain('d2\tcanceled')
    },
  )

  test('if all have ended, it stands for the newest one, and an id always for that one claim', async () => {
    const statuses: Record<string, string | undefined> = { d1: 'pending', d2: 'pending' }
    const world = createWorld(statuses)
    for (const id of ['d1', 'd2']) await world.run('claims', 'get', id)
    Object.assign(statuses, { d2: 'canceled' })
    expect(JSON.parse((await world.run('claims', 'get', 'd2', '--json')).stdout).domain_id).toBe('d2')
    Object.assign(statuses, { d1: 'expired' })
    expect(JSON.parse((await world.run('claims', 'get', 'example.com', '--json')).stdout).domain_id).toBe(
      'd1',
    )
    const gone = createWorld({ d1: 'pending' })
    await gone.run('claims', 'get', 'd1')
    expect((await gone.run('claims', 'get', 'd9')).code).toBe(5)
  })
})

describe('claims verify', () => {
  test.each(['expired', 'superseded', 'canceled', 'failed'])(
    'claims verify of a claim that is %s ends with exit 9, with the claim on stdout',
    async (status) => {
      const world = createWorld({ d1: status })
      for (const more of [[], ['--wait']]) {
        const asJson = await world.run('claims', 'verify', 'd1', '--json', ...more)
        expect({ code: asJson.code, claim: JSON.parse(asJson.stdout) }).toMatchObject({
          code: 9,
          claim: { domain_id: 'd1', status },
        })
        expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: `claim_${status}`, exit: 9 } })
        const asLines = await world.run('claims', 'verify', 'd1', '--format', 'jsonl', ...more)
        expect(JSON.parse(asLines.stdout)).toMatchObject({ event: 'done', claim: { status } })
      }
      expect(world.asked).toEqual(['GET /domains/d1/claim'])
    },
  )

  test('claims verify without --wait ends with exit 9 for a blocked claim, and says how to wait for the end of that', async () => {
    const world = createWorld({ d1: 'blocked' })
    const alone = await world.run('claims', 'verify', 'd1', '--no-check')
    expect(alone.code).toBe(9)
    expect(world.asked).toContain('POST /domains/d1/claim/verify')
    expect(alone.stderr).toContain('example.com is blocked: a safety check stopped the claim')
    expect(alone.stderr).toContain('mailclaim claims watch example.com --through-blocked')
    expect(alone.stderr).not.toContain('verification is running')
    const several = await world.run('claims', 'verify', 'd1', 'example.com', '--no-check')
    expect(several.code).toBe(9)
    expect(several.stderr).toContain('blocked')
    expect(several.stderr).not.toContain('verification requested')
  })

  test('claims check of several that have no claim here says that they were only looked at, and does not wait for nothing', async () => {
    const world = createWorld({})
    const names = ['example.com', 'www.example.com']
    const looked = await world.run('claims', 'check', ...names)
    expect(looked.code).toBe(0)
    expect(looked.stderr).toContain('2 domains: no claim 2\n')
    expect(looked.stderr).toContain('fix: give the value in the list (domain,prefix=token)')
    const waited = await world.run('claims', 'check', ...names, '--wait')
    expect(waited.code).toBe(2)
    expect(waited.stderr).toContain(
      '--wait needs a value to wait for: no claim of DOMAIN is known on this machine',
    )
  })

  test('claims record of several says that completed claims are among them', async () => {
    const world = createWorld({ d1: 'completed' })
    await world.run('claims', 'get', 'd1')
    const { code, stderr } = await world.run('claims', 'record', 'd1', 'example.com', '--format', 'zone')
    expect(code).toBe(0)
    expect(stderr.match(/completed claims are among them, which no longer need their records/g)).toHaveLength(
      1,
    )
  })

  describe('of a claim that stays pending after a conflict (409)', () => {
    const refused = () => jsonResponse(409, { name: 'conflict', message: 'This domain cannot be verified.' })
    const why = 'the service refused the request (409): This domain cannot be verified. (conflict)'

    test.each([
      ['claims verify d1 --no-check --wait --timeout 5', 'mailclaim claims watch example.com'],
      ['claim example.com --no-check --timeout 5', 'mailclaim claim example.com'],
    ])('%s waits, in case it already runs, and names the refusal at the end', async (line, again) => {
      const world = createWorld({ d1: 'pending' }, refused)
      await world.run('claims', 'get', 'd1')
      const { code, stderr } = await world.run(...line.split(' '))
      expect(code).toBe(8)
      expect(stderr).toContain(`warning: ${why}; waiting, as it may already be verifying it\n`)
      expect(stderr).not.toMatch(/was asked to verify|verification requested|an earlier request/)
      expect(stderr).toContain(`timed out after 5 seconds: example.com is still in progress`)
      expect(stderr).toContain(again)
      const ended = await world.run(...line.split(' '), '--json')
      const { error } = JSON.parse(ended.stderr.trim().split('\n').at(-1) ?? '')
      expect(error.message).toContain(`waiting although ${why}`)
      expect(error.hint).toContain(again)
    })

    test('several: none of them counts as one that the service was asked to verify', async () => {
      const world = createWorld({ d1: 'pending' }, refused)
      await world.run('claims', 'get', 'd1')
      const line = ['claims', 'verify', 'd1', 'example.com', '--no-check', '--wait', '--timeout', '5']
      const { code, stderr, stdout } = await world.run(...line, '--format', 'jsonl')
      expect(code).toBe(8)
      expect(stderr).not.toContain('verification requested')
      expect(JSON.parse(stdout.split('\n')[0] ?? '').error.message).toContain(`waiting although ${why}`)
    })
  })

  test('several: a request that never got through does not count as one that was made', async () => {
    const world = createWorld({ d1: 'pending' }, () => jsonResponse(503, { message: 'down' }))
    await world.run('claims', 'get', 'd1')
    const line = ['claims', 'verify', 'd1', 'example.com', '--no-check', '--wait', '--timeout', '5']
    const { code, stderr } = await world.run(...line)
    expect(code).toBe(8)
    expect(stderr).toContain('pending 2')
    expect(stderr).not.toContain('verification requested')
  })

  test.each([
    ['completed', 0],
    ['canceled', 9],
  ])(
    'claims verify without --wait that is refused because the claim is %s meanwhile: exit %i',
    async (end, exit) => {
      for (const domains of [['d1'], ['d1', 'example.com']]) {
        const statuses: Record<string, string | undefined> = { d1: 'pending' }
        const world = createWorld(statuses, () => {
          statuses['d1'] = end
          return jsonResponse(400, { name: 'validation_error', message: 'It is over.' })
        })
        await world.run('claims', 'get', 'd1')
        const { code, stdout } = await world.run(
          'claims',
          'verify',
          ...domains,
          '--no-check',
          '--format',
          'jsonl',
        )
        expect({ domains, code, event: JSON.parse(stdout.split('\n')[0] ?? '') }).toMatchObject({
          code: exit,
          event: { event: 'done', claim: { status: end } },
        })
      }
    },
  )

  describe.each([[['d1']], [['d1', 'example.com']]])('without --wait, of %s', (domains) => {
    test.each([
      ['blocked', 409],
      ['blocked', 422],
      ['pending', 422],
    ])(
      'a claim that is blocked meanwhile ends with exit 9 after a refusal: %s, %i',
      async (before, status) => {
        const statuses: Record<string, string | undefined> = { d1: before }
        const world = createWorld(statuses, () => {
          statuses['d1'] = 'blocked'
          return jsonResponse(status, { name: 'validation_error', message: 'Not now.' })
        })
        await world.run('claims', 'get', 'd1')
        const line = ['claims', 'verify', ...domains, '--no-check']
        const asLines = await world.run(...line, '--format', 'jsonl')
        expect({ code: asLines.code, event: JSON.parse(asLines.stdout.split('\n')[0] ?? '') }).toMatchObject({
          code: 9,
          event: { event: 'done', claim: { status: 'blocked' } },
        })
        const { stderr } = await world.run(...line)
        expect(stderr.replaceAll('_', ' ')).toContain(domains.length === 1 ? 'is blocked' : 'claim blocked')
        expect(stderr).not.toContain('(warning)')
        expect(stderr).toContain('--through-blocked')
      },
    )

    test('a refusal of a claim whose block has lifted meanwhile stays a refusal', async () => {
      const statuses: Record<string, string | undefined> = { d1: 'blocked' }
      const world = createWorld(statuses, () => {
        statuses['d1'] = 'pending'
        return jsonResponse(422, { name: 'validation_error', message: 'Not now.' })
      })
      await world.run('claims', 'get', 'd1')
      const line = ['claims', 'verify', ...domains, '--no-check', '--format', 'json']
      const { code, stdout, stderr } = await world.run(...line)
      expect(code).toBe(6)
      expect(stdout + stderr).toContain('Not now.')
    })

    test.each([404, 410])(
      'of a claim that disappears before it is asked (%i), the hint says that',
      async (status) => {
        const statuses: Record<string, string | undefined> = { d1: 'pending' }
        const world = createWorld(statuses, () => {
          statuses['d1'] = status === 404 ? undefined : 'gone'
          return jsonResponse(status, { name: 'not_found', message: 'Not found' })
        })
        await world.run('claims', 'get', 'd1')
        const { code, stderr, stdout } = await world.run(
          ...['claims', 'verify', ...domains, '--no-check', '--format', 'json'],
        )
        expect(code).toBe(5)
        expect(stdout + stderr).toContain(
          'its placeholder domain may have been deleted, which cancels a claim',
        )
      },
    )
  })

  describe('of a blocked claim with a mistake in the record does not ask the service', () => {
    const world = () => createWorld({ d1: 'blocked', d2: 'blocked' })
    const only = ['GET /domains/d1/claim']
    const blocked = expect.stringContaining('example.com is blocked: a safety check stopped the claim')
    const dns =
      /through-blocked\nDNS: .*example\.com.*\n.*add a TXT record.*prefix=d1.*\nto see the evidence: /i

    test.each([[[]], [['--wait']]])('and names the block first, then the mistake: %s', async (more) => {
      const { run, asked } = world()
      const asJson = await run('claims', 'verify', 'd1', '--json', ...more)
      expect({ code: asJson.code, asked }).toEqual({ code: 9, asked: only })
      expect(JSON.parse(asJson.stdout)).toMatchObject({ domain_id: 'd1', status: 'blocked' })
      expect(JSON.parse(asJson.stderr).error).toMatchObject({
        code: 'claim_blocked',
        exit: 9,
        message: blocked,
        hint: expect.stringMatching(dns),
      })
      const asLines = await run('claims', 'verify', 'd1', '--format', 'jsonl', ...more)
      expect(JSON.parse(asLines.stdout)).toMatchObject({ event: 'stopped', message: blocked })
    })

    test.each([[[]], [['--wait']]])('among several it counts both causes: %s', async (more) => {
      const { run, asked } = world()
      const { code, stderr } = await run('claims', 'verify', 'd1', 'd2', ...more)
      expect({ code, asked: asked.sort() }).toEqual({ code: 9, asked: [...only, 'GET /domains/d2/claim'] })
      expect(stderr).toContain('2 domains: blocked 2')
      expect(stderr).toContain('2 domains: claim blocked')
      expect(stderr).toMatch(/2 domains at .*: record missing/)
      const { stdout } = await run('claims', 'verify', 'd1', 'd2', '--format', 'jsonl', ...more)
      const [line] = stdout.split('\n').map((text) => text && JSON.parse(text))
      expect(line).toMatchObject({ event: 'stopped', error: { code: 'claim_blocked', exit: 9 } })
      expect(line.error.hint).toMatch(/DNS: .*\n.*add a TXT record/i)
    })

    test('and with --through-blocked the mistake is what to fix before the wait', async () => {
      const { run, asked } = world()
      const line = ['claims', 'verify', 'd1', '--json', '--wait', '--through-blocked']
      const { code, stderr } = await run(...line)
      expect({ code, asked }).toEqual({ code: 8, asked: only })
      const { error } = JSON.parse(stderr)
      expect(error.code).toBe('record_not_visible')
      expect(error.hint).toMatch(/once that is fixed, --through-blocked waits .*: example\.com is blocked: /)
    })
  })

  describe('of a claim whose record the service has accepted asks for nothing', () => {
    const only = ['GET /domains/d1/claim']

    test('and says that the transfer is in progress', async () => {
      const world = createWorld({ d1: 'verified' })
      const { code, stdout, stderr } = await world.run('claims', 'verify', 'd1')
      expect({ code, asked: world.asked }).toEqual({ code: 0, asked: only })
      expect(stdout).toContain('verified')
      expect(stderr).toContain(
        'the service has accepted the record of example.com, and the transfer is in progress',
      )
      expect(stderr).toContain('mailclaim claims watch d1')
      const lines = await world.run('claims', 'verify', 'd1', '--format', 'jsonl')
      expect(JSON.parse(lines.stdout)).toMatchObject({
        event: 'verification',
        message: 'TXT record accepted, transfer in progress',
      })
    })

    test('among several, too', async () => {
      const world = createWorld({ d1: 'verified', d2: 'verified' })
      const { code, stderr } = await world.run('claims', 'verify', 'd1', 'd2')
      expect({ code, asked: world.asked.sort() }).toEqual({
        code: 0,
        asked: [...only, 'GET /domains/d2/claim'],
      })
      expect(stderr).toContain('2 domains: verified 2')
    })

    test.each([[['d1']], [['d1', 'example.com']]])('with --wait it follows it: %s', async (domains) => {
      let reads = 0
      const world = createWorld({
        get d1() {
          return reads++ < 12 ? 'verified' : 'completed'
        },
      })
      await world.run('claims', 'get', 'd1')
      const { code, stdout, stderr } = await world.run('claims', 'verify', ...domains, '--wait')
      expect({ code, asked: [...new Set(world.asked)] }).toEqual({ code: 0, asked: only })
      expect(world.asked.length).toBeGreaterThan(1)
      expect(stderr).not.toContain('was asked to verify')
      expect(stdout + stderr).toContain('completed')
    })
  })

  test('claims verify that a mistake in the record stops leaves the claim on stdout', async () => {
    const world = createWorld({ d1: 'pending' })
    const asJson = await world.run('claims', 'verify', 'd1', '--json')
    expect({ code: asJson.code, claim: JSON.parse(asJson.stdout) }).toMatchObject({
      code: 8,
      claim: { domain_id: 'd1', status: 'pending' },
    })
    expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: 'record_not_visible' } })
    const asLines = await world.run('claims', 'verify', 'd1', '--format', 'jsonl')
    expect(JSON.parse(asLines.stdout)).toMatchObject({ event: 'stopped', claim: { status: 'pending' } })
    expect(world.asked).toEqual(['GET /domains/d1/claim'])
  })
})

test.each([
  ['get', 5],
  ['watch', 5],
  ['verify --no-check', 5],
  ['record', 5],
])('claims %s: a claim that the service calls gone (410) was deleted, with exit %i', async (words, exit) => {
  const statuses = { d1: 'pending' }
  const world = createWorld(statuses)
  await world.run('claims', 'get', 'd1')
  world.clock.advance(120_000)
  statuses.d1 = 'gone'
  const [name = '', ...options] = words.split(' ')
  const { code, stderr } = await world.run('claims', name, 'example.com', ...options)
  expect(code).toBe(exit)
  expect(stderr).toContain('error: the service no longer has the claim of example.com\n')
  expect(stderr).toContain('its placeholder domain may have been deleted, which cancels a claim')
})

describe('an id that the service does not know', () => {
  const ID = 'd5f1a5a0-7c39-4a8e-9c1a-2f6b1f6f0c11'
  const GONE =
    'error: the service no longer has the claim of example.com\nhint: its placeholder domain may have been deleted, which cancels a claim; to start another: mailclaim claims create example.com\n'

  test.each(['claims watch d1', 'claims verify d1 --no-check --wait', 'claim example.com --no-check'])(
    '%s: of a claim that disappears meanwhile, the error says that, with exit 5',
    async (line) => {
      let reads = 0
      const status = () => (reads++ < 4 ? 'pending' : undefined)
      const world = createWorld({
        get d1() {
          return status()
        },
        // The claim that `claim` starts with POST /domains/claim.
        get claim() {
          return status()
        },
      })
      const { code, stderr } = await world.run(...line.split(' '))
      expect({ code, asked: world.asked.length > 2 }).toEqual({ code: 5, asked: true })
      expect(stderr).toContain(GONE)
    },
  )

  test.each(['get', 'watch', 'verify', 'record', 'publish --with ./add.sh'])(
    'claims %s: so does that of a claim that was seen before',
    async (words) => {
      const statuses: { d1: string | undefined } = { d1: 'pending' }
      const world = createWorld(statuses)
      await world.run('claims', 'get', 'd1')
      statuses.d1 = undefined
      world.clock.advance(120_000)
      for (const claim of ['d1', 'example.com']) {
        const { code, stderr } = await world.run('claims', ...words.split(' '), claim)
        expect(code).toBe(5)
        expect(stderr).toContain(GONE)
      }
    },
  )

  test('nothing is said of canceling a completed claim', async () => {
    const statuses: { d1: string | undefined } = { d1: 'completed' }
    const world = createWorld(statuses)
    await world.run('claims', 'get', 'd1')
    statuses.d1 = undefined
    const { stderr } = await world.run('claims', 'get', 'd1')
    expect(stderr).toContain(
      'error: the service no longer has the claim of example.com, which was completed when it was last seen\n',
    )
  })

  test.each(['get', 'watch', 'verify', 'record', 'check', 'publish --with ./add.sh'])(
    'claims %s: the hint to the id of a claim is what to give instead',
    async (words) => {
      const world = createWorld({ [ID]: 'pending' })
      await world.run('claims', 'get', ID)
      const { code, stderr } = await world.run('claims', ...words.split(' '), ID.replace('d', 'c'))
      expect(code).toBe(5)
      expect(stderr).toContain(
        `hint: that is the id of the claim; give its name example.com or its placeholder domain id ${ID}\n`,
      )
    },
  )

  test('of a claim that was never seen may be mistyped', async () => {
    const { code, stderr } = await createWorld({}).run('claims', 'get', ID)
    expect(code).toBe(5)
    expect(stderr).toContain('hint: check the id, and that it belongs to the team of this profile\n')
  })

  test.each(['claim', 'claims create'])('%s: is no domain to claim, but perhaps a claim', async (words) => {
    const hint = `if it is the id of a claim: mailclaim claims verify ${ID} --wait`
    for (const more of [[], ['example.com']]) {
      const { code, stderr } = await createWorld({}).run(...words.split(' '), ID, ...more)
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(`hint: ${hint}\n`) })
    }
  })
})
