import { describe, expect, test } from 'vitest'
import { run } from '../../src/cli.ts'
import { type HttpRequest, type HttpResponse, TransportError } from '../../src/context.ts'
import { createFakeDns, smallWorld } from '../dns/fake-dns.ts'
import { createFakeClock, createFakeContext, createFakeOutput, jsonResponse } from '../fake-context.ts'
import { readSchemas, SCHEMAS } from '../schemas.ts'

const DOMAINS = ['example.com', 'one.example.com', 'two.example.com']

/**
 * A machine without claims; a service that starts one of each domain; and DNS without any of their records. `at` changes the
 * world when so many milliseconds have passed.
 */
function createWorld() {
  const clock = createFakeClock()
  const changes: { readonly atMs: number; readonly change: () => void }[] = []
  const passed = () => {
    for (const { atMs, change } of changes) if (clock.monotonic() >= atMs) change()
  }
  const world = {
    clock,
    status: 'pending',
    inDns: ['v=spf1 -all'],
    /** The exit code of the program that is to add a record, and what happens meanwhile. */
    programEnds: 0,
    whileAdding: () => {},
    /** What GET does instead of answering. */
    trouble: undefined as (() => Promise<HttpResponse>) | undefined,
    /** What the request to verify does instead of being answered. */
    verifyTrouble: undefined as (() => Promise<HttpResponse>) | undefined,
    /** The requests, with the second at which each was sent. */
    asked: [] as { readonly request: string; readonly second: number; readonly timeoutMs: number }[],
    at(atMs: number, change: () => void) {
      changes.push({ atMs, change })
      return world
    },
    /** When the service was asked about a claim, in seconds. */
    reads: () => world.asked.filter(({ request }) => request.startsWith('GET')).map(({ second }) => second),
    start(...words: string[]) {
      const [stdout, stderr] = [createFakeOutput(), createFakeOutput()]
      const ended = run(['claim', ...words], { ...context, stdout, stderr })
      return { ended, stdout, stderr }
    },
    async run(...words: string[]) {
      const { ended, stdout, stderr } = world.start(...words)
      return { code: await ended, stdout: stdout.text, stderr: stderr.text }
    },
    async events(...words: string[]) {
      const ran = await world.run(...words, '--format', 'jsonl')
      const events = ran.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      return { ...ran, events, steps: events.map(({ event }) => event) }
    },
  }
  const claim = (name: string) => ({
    name,
    domain_id: `id-${name}`,
    status: world.status,
    record: { type: 'TXT', name, value: 'prefix=mine', ttl: 'Auto' },
    created_at: '2026-11-20 12:00:00+00',
  })
  const answer = async ({ method, url, body }: HttpRequest): Promise<HttpResponse> => {
    if (url.pathname === '/domains/claim') return jsonResponse(201, claim(JSON.parse(`${body}`).name))
    if (url.pathname.endsWith('/verify') && world.verifyTrouble !== undefined) return world.verifyTrouble()
    if (method === 'GET' && world.trouble !== undefined) return world.trouble()
    if (method === 'GET') return jsonResponse(200, claim((url.pathname.split('/')[2] ?? '').slice(3)))
    return jsonResponse(200, claim('example.com'))
  }
  const dns = smallWorld(() => world.inDns)
  const context = createFakeContext({
    clock,
    dns: createFakeDns((question) => {
      passed()
      return dns(question)
    }, clock),
    environment: { settings: { base_url: 'https://api.example.com', resolver: '192.0.2.53' }, apiKey: 'key' },
    programs: {
      run: async () => {
        clock.advance(8000)
        world.whileAdding()
        return { kind: 'exited', code: world.programEnds }
      },
    },
    respond: (request) => {
      passed()
      const { method, url, timeoutMs } = request
      const second = clock.monotonic() / 1000
      world.asked.push({ request: `${method} ${url.pathname}`, second, timeoutMs })
      return answer(request)
    },
  })
  return world
}

describe('claim, while it waits for DNS', () => {
  test('ends within two minutes of the cancellation of the claim', async () => {
    const world = createWorld().at(65_000, () => {
      world.status = 'canceled'
    })
    const { code, steps, stderr } = await world.events('example.com')
    expect({ code, last: steps.at(-1) }).toEqual({ code: 9, last: 'ended' })
    expect(stderr).toContain('"code":"claim_canceled"')
    expect(world.clock.monotonic()).toBeLessThan(185_000)
  })

  test('does not call the value of a newer claim outdated, but says that it replaced this one', async () => {
    const world = createWorld().at(20_000, () => {
      world.status = 'superseded'
      world.inDns = ['prefix=colleague']
    })
    const { code, events, stdout, stderr } = await world.events('example.com')
    expect({ code, last: events.at(-1) }).toMatchObject({
      code: 9,
      last: { event: 'ended', claim: { status: 'superseded' } },
    })
    expect(stdout).not.toContain('stale_token')
    expect(stderr).toContain('"code":"claim_superseded"')
    expect(world.clock.monotonic()).toBeLessThan(60_000)
    // Running it again starts no claim, either.
    const again = await world.run('example.com', '--json')
    expect(again.code).toBe(9)
    expect(world.asked.filter(({ request }) => request === 'POST /domains/claim')).toHaveLength(1)
  })

  test('a value of an earlier claim is still called outdated, at the price of one request', async () => {
    const world = createWorld().at(20_000, () => {
      world.inDns = ['prefix=earlier']
    })
    const { code, stdout } = await world.events('example.com', '--timeout', '50')
    expect(code).toBe(8)
    expect(stdout).toContain('stale_token')
    expect(world.reads()).toHaveLength(2)
  })

  test.each(['verified', 'verifying', 'completed'])(
    'goes on with a claim that is %s although its record is not seen here, without asking to verify it',
    async (status) => {
      const world = createWorld()
        .at(30_000, () => {
          world.status = status
        })
        .at(200_000, () => {
          world.status = 'completed'
        })
      const { code, steps } = await world.events('example.com', '--timeout', '600')
      expect({ code, last: steps.at(-1) }).toEqual({ code: 0, last: 'completed' })
      expect(world.asked.map(({ request }) => request)).not.toContain(
        'POST /domains/id-example.com/claim/verify',
      )
    },
  )

  test('a status that it does not know says nothing about the record: it waits for that, and asks to verify it', async () => {
    const world = createWorld()
      .at(20_000, () => {
        world.status = 'under_review'
      })
      .at(200_000, () => {
        world.inDns = ['prefix=mine']
      })
      .at(220_000, () => {
        world.status = 'completed'
      })
    const { code, stdout } = await world.events('example.com', '--timeout', '600')
    expect(code).toBe(0)
    expect(stdout).not.toContain('the service found the record')
    expect(world.asked.map(({ request }) => request)).toContain('POST /domains/id-example.com/claim/verify')
  })

  test('ends as a blocked claim does', async () => {
    const world = createWorld().at(30_000, () => {
      world.status = 'blocked'
    })
    const { code, stderr } = await world.run('example.com', '--json')
    expect({ code, error: JSON.parse(stderr).error.code }).toEqual({ code: 9, error: 'claim_blocked' })
  })

  test('says of a blocked claim neither that its record was found nor that it was verified', async () => {
    const world = createWorld().at(30_000, () => {
      world.status = 'blocked'
    })
    const { steps } = await world.events('example.com')
    expect(steps).not.toContain('dns')
    expect(steps).not.toContain('verification')
    expect(steps.at(-1)).toBe('ended')
  })

  test('asks before it says that the time is up', async () => {
    const world = createWorld().at(20_000, () => {
      world.status = 'canceled'
    })
    const { code, stdout } = await world.run('example.com', '--timeout', '45', '--json')
    expect({ code, claim: JSON.parse(stdout) }).toMatchObject({ code: 9, claim: { status: 'canceled' } })
    expect(world.reads()).toEqual([45])
  })

  test.each([
    ['completed', 0],
    ['blocked', 9],
    ['under_review', 8],
  ])(
    'what it learns as the time runs out is the result: %s is exit %i, without another request',
    async (status, exit) => {
      const world = createWorld().at(20_000, () => {
        world.status = status
      })
      const { code, stdout, stderr } = await world.run('example.com', '--timeout', '45', '--json')
      expect({ code, claim: JSON.parse(stdout) }).toMatchObject({ code: exit, claim: { status } })
      expect(stderr).not.toContain('request failed')
      expect(world.reads()).toEqual([45])
    },
  )

  test('asks at most once a minute', async () => {
    const world = createWorld()
    expect((await world.run('example.com', '--timeout', '600')).code).toBe(8)
    const times = world.reads()
    expect(times.length).toBeGreaterThanOrEqual(6)
    expect(times.length).toBeLessThanOrEqual(11)
  })

  const troubles: Record<string, () => Promise<HttpResponse>> = {
    'does not answer': () => Promise.reject(new TransportError('timeout', 'no', 'maybe')),
    'is down': async () => jsonResponse(503, {}),
    'rejects the key': async () => jsonResponse(401, {}),
  }
  test.each(Object.entries(troubles))(
    'keeps waiting while the service %s, and asks it once a minute',
    async (_what, trouble) => {
      const world = createWorld()
        .at(30_000, () => {
          world.trouble = trouble
        })
        .at(300_000, () => {
          world.trouble = undefined
          world.inDns = ['prefix=mine']
        })
        .at(310_000, () => {
          world.status = 'completed'
        })
      const { code, steps, stderr } = await world.events('example.com', '--timeout', '900')
      expect({ code, stderr, last: steps.at(-1) }).toEqual({ code: 0, stderr: '', last: 'completed' })
      const meanwhile = world.asked.filter(({ second }) => second > 30 && second < 300)
      expect(meanwhile.length).toBeGreaterThanOrEqual(2)
      expect(meanwhile.length).toBeLessThanOrEqual(4)
      for (const { timeoutMs } of meanwhile) expect(timeoutMs).toBeLessThanOrEqual(5000)
    },
  )

  test('waits no longer for a service that hangs than five seconds, and finds the record', async () => {
    const world = createWorld()
    let answer = () => {}
    world.trouble = () =>
      new Promise((resolve) => {
        answer = () => resolve(jsonResponse(503, {}))
      })
    const { ended, stdout } = world.start('example.com', '--format', 'jsonl', '--timeout', '900')
    while (world.reads().length === 0) await new Promise(setImmediate)
    world.inDns = ['prefix=mine']
    world.status = 'completed'
    world.trouble = undefined
    while (!stdout.text.includes('"event":"dns"')) {
      world.clock.ring()
      await new Promise(setImmediate)
    }
    answer()
    expect(await ended).toBe(0)
  })

  test('says that the service no longer has the claim', async () => {
    const world = createWorld().at(30_000, () => {
      world.trouble = async () => jsonResponse(404, { name: 'not_found', message: 'Not found' })
    })
    expect((await world.run('example.com', '--json')).code).toBe(5)
    expect(world.clock.monotonic()).toBeLessThan(120_000)
  })
})

describe('claim of several domains, while it waits for DNS', () => {
  test('ends each domain whose claim has ended', async () => {
    const world = createWorld().at(30_000, () => {
      world.status = 'superseded'
    })
    const { code, events } = await world.events(...DOMAINS)
    expect(code).toBe(9)
    expect(events.map(({ event, error }) => [event, error.code])).toEqual(
      DOMAINS.map(() => ['ended', 'claim_superseded']),
    )
    expect(world.reads()).toHaveLength(DOMAINS.length)
  })

  test('counts those that are blocked meanwhile with what was wrong in DNS, too', async () => {
    const world = createWorld().at(300_000, () => {
      world.status = 'blocked'
    })
    const { code, stderr } = await world.run(...DOMAINS, '--format', 'tsv')
    expect(code).toBe(9)
    expect(stderr).toMatch(/^ {2}3 domains at .*: record missing \(/m)
    expect(stderr).toMatch(/^ {2}3 domains: claim blocked \(/m)
  })

  test('leaves a service that is down alone for all of them', async () => {
    const world = createWorld()
    world.trouble = async () => jsonResponse(503, {})
    expect((await world.run(...DOMAINS, '--jobs', '1', '--timeout', '100', '--json')).code).toBe(8)
    expect(world.reads().length).toBeGreaterThan(0)
    expect(world.reads().length).toBeLessThan(DOMAINS.length * 2)
  })
})

describe('claim, when the time is up', () => {
  test.each([
    ['was lost', () => Promise.reject(new TransportError('reset', 'maybe', 'closed')), 'no response from'],
    ['failed', async () => jsonResponse(503, {}), 'the service failed (503)'],
  ])(
    'says that the last request to verify %s, and what a later job verifies',
    async (_what, trouble, why) => {
      const world = createWorld()
      Object.assign(world, { inDns: ['prefix=mine'], verifyTrouble: trouble })
      const { code, stdout, stderr } = await world.run('example.com', '--timeout', '60', '--format', 'tsv')
      expect(code).toBe(8)
      expect(stdout).toContain('pending')
      expect(stderr).toMatch(/^error: timed out after .*; the last request failed: /m)
      expect(stderr).toContain(`; the last request failed: ${why}`)
      expect(stderr).toContain('in a job on another machine: mailclaim claims verify id-example.com --wait\n')
      const again = await world.run('example.com', '--timeout', '60', '--json')
      expect(JSON.parse(again.stdout).missing).toMatchObject({
        step: 'verification',
        message: expect.stringContaining(why),
      })
    },
  )

  test('has a later job watch a claim that is being verified', async () => {
    const world = createWorld()
    world.inDns = ['prefix=mine']
    const { code, stderr } = await world.run('example.com', '--timeout', '60')
    expect(code).toBe(8)
    expect(stderr).toContain('in a job on another machine: mailclaim claims watch id-example.com\n')
  })

  test.each([[['example.com']], [DOMAINS]])(
    'shows the claim whose record a program could not add: %s',
    async (domains) => {
      const world = createWorld()
      world.programEnds = 3
      const { code, stdout, stderr } = await world.run(...domains, '--publish', './add.sh', '--format', 'tsv')
      expect(code).toBe(7)
      for (const domain of domains)
        expect(stdout).toMatch(new RegExp(`^${domain}\tpending\t.*id-${domain}`, 'm'))
      expect(stderr).toContain('add.sh ended with exit code 3')
    },
  )

  test.each([
    ['failed', 9, 'rm.sh ended with exit code 9'],
    ['removed nothing', 0, 'rm.sh ended without an error, but DNS still has the TXT value'],
  ])(
    'says of each of several that its record is still in DNS: the program %s',
    async (_what, programEnds, why) => {
      const world = createWorld()
      Object.assign(world, { status: 'completed', inDns: ['prefix=mine'], programEnds })
      const line = ['example.com', 'one.example.com', '--unpublish', './rm.sh']
      const { code, events } = await world.events(...line)
      expect(code).toBe(0)
      const [event] = events.filter(({ claim }) => claim.name === 'example.com')
      expect(event).toMatchObject({ event: 'completed', message: `the record wasn't removed: ${why}` })
      const json = await world.run(...line, '--json')
      expect(json.stderr).toBe(`warning: example.com: the record wasn't removed: ${why}\n`)
      const { data } = JSON.parse(json.stdout)
      expect(data.map(({ leftover }: { leftover?: string }) => leftover).sort()).toEqual([why, undefined])
      const alone = await world.run('example.com', '--unpublish', './rm.sh', '--json')
      expect(JSON.parse(alone.stdout)).toMatchObject({ status: 'completed', leftover: why })
      expect(readSchemas(SCHEMAS).problems('claim.json', JSON.parse(alone.stdout))).toEqual([])
      const { stderr } = await world.run(...line, '--format', 'tsv')
      expect(stderr).toContain('2 domains: completed 2\n')
      expect(stderr).toMatch(/^ {2}1 domain: record not removed \(warning\) \(example\.com\)$/m)
      expect(stderr).toContain(
        `    ${why}\n    fix: Remove the record by hand (mailclaim claims record DOMAIN shows it), or run the same`,
      )
    },
  )

  test('counts those whose record is being added', async () => {
    const world = createWorld()
    world.whileAdding = () => world.clock.ring()
    const { stderr } = await world.run(...DOMAINS, '--publish', './add.sh', '--timeout', '60', '--jobs', '1')
    expect(stderr).toMatch(/^so far: .*\bpublishing [123]\b/m)
  })

  test('says how long it took, of which a program may have needed more than its share', async () => {
    const world = createWorld()
    const { code, stderr } = await world.run('example.com', '--timeout', '2', '--publish', './slow.sh')
    expect(code).toBe(8)
    expect(stderr).toContain('error: timed out after 8 seconds: ')
  })
})
