import { describe, expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import type { HttpRequest, HttpResponse } from '../../../src/context.ts'
import { createFakeDns, smallWorld } from '../../dns/fake-dns.ts'
import { createFakeClock, createFakeContext, createFakeOutput, jsonResponse } from '../../fake-context.ts'

/** The name's TXT values in DNS: that of a claim which a colleague started elsewhere. */
const IN_DNS = ['v=spf1 -all', 'prefix=colleague']
const API_KEY = { apiKey: 'key' }

/** A machine that saw the pending claim d1 of example.com two minutes ago, and the service, which has these claims now. */
async function createWorld(now: Record<string, string>, seen: Record<string, string> = { d1: 'pending' }) {
  const clock = createFakeClock()
  const dns = createFakeDns(
    smallWorld(() => world.inDns()),
    clock,
  )
  let statuses = seen
  const asked: string[] = []
  const requests: HttpRequest[] = []
  const service = {
    respond: async ({ url }: HttpRequest): Promise<HttpResponse> => {
      const id = url.pathname.split('/')[2] ?? ''
      const status = statuses[id]
      if (status === undefined) return jsonResponse(404, { name: 'not_found', message: 'Not found' })
      return jsonResponse(200, {
        name: 'example.com',
        domain_id: id,
        status,
        record: { type: 'TXT', name: 'example.com', value: `prefix=${id}`, ttl: 'Auto' },
        created_at: `2026-11-0${id.slice(1)} 10:00:00+00`,
      })
    },
  }
  const context = createFakeContext({
    clock,
    dns,
    programs: {
      check: async () => undefined,
      run: async () => {
        asked.push('program')
        return { kind: 'exited', code: 0 }
      },
    },
    respond: (request) => {
      asked.push(`${request.method} ${request.url.pathname}`)
      requests.push(request)
      return service.respond(request)
    },
  })
  const settings = { base_url: 'https://api.example.com', resolver: '192.0.2.53' }
  const world = {
    clock,
    asked,
    requests,
    service,
    inDns: (): readonly string[] => IN_DNS,
    environment: API_KEY as { apiKey?: string },
    start(line: string) {
      asked.length = 0
      const [stdout, stderr] = [createFakeOutput(), createFakeOutput()]
      const environment = { ...context.environment, settings, ...world.environment }
      const ended = run(line.split(' '), { ...context, environment, stdout, stderr })
      return { ended, stdout, stderr }
    },
    async run(line: string) {
      const { ended, stdout, stderr } = world.start(line)
      return { code: await ended, stdout: stdout.text, stderr: stderr.text }
    },
  }
  for (const id of Object.keys(seen)) await world.run(`claims get ${id}`)
  clock.advance(120_000)
  statuses = now
  return world
}

const USES = [
  'claims record example.com --format value',
  'claims record example.com --provider route53',
  'claims publish example.com --with ./publish.sh',
  'claims check example.com --json',
]

describe('a claim that ended since this machine last saw it', () => {
  test.each(['record', 'publish --with ./add.sh'])(
    'claims %s counts it by its status among several',
    async (words) => {
      const now = { d1: 'canceled', d2: 'superseded', d3: 'expired' }
      const world = await createWorld(now, { d1: 'pending', d2: 'pending', d3: 'pending' })
      const { code, stderr } = await world.run(`claims ${words} d1 d2 d3 --format tsv`)
      expect(code).toBe(9)
      expect(stderr).toMatch(/^3 domains: /m)
      for (const status of Object.values(now))
        expect(stderr).toMatch(RegExp(`^3 domains: .*\\b${status} 1`, 'm'))
    },
  )

  test.each(USES.flatMap((line) => ['superseded', 'canceled', 'failed'].map((status) => [line, status])))(
    '%s: the service is asked, and says that the claim is %s, with exit 9',
    async (line, status) => {
      const world = await createWorld({ d1: status })
      const { code, stdout, stderr } = await world.run(line)
      expect({ code, asked: world.asked }).toEqual({ code: 9, asked: ['GET /domains/d1/claim'] })
      expect(stderr).toContain(line.includes('--json') ? `"code":"claim_${status}"` : 'error: example.com: ')
      if (line.startsWith('claims check'))
        expect(JSON.parse(stdout)).toMatchObject({ verdict: 'fix', findings: [{ code: 'claim_ended' }] })
      else expect(stdout).toBe('')
      // The ledger has the answer.
      const listed = await world.run('claims list --format tsv --fields status')
      expect(listed.stdout).toContain(status)
    },
  )

  test('claims check says so even where DNS has its record, and --wait does not wait for it', async () => {
    const world = await createWorld({ colleague: 'superseded' }, { colleague: 'pending' })
    const once = await world.run('claims check example.com --json')
    expect({ code: once.code, ready: JSON.parse(once.stdout).ready }).toEqual({ code: 9, ready: false })
    const waiting = await createWorld({ d1: 'canceled' })
    const began = waiting.clock.monotonic()
    expect((await waiting.run('claims check example.com --wait --json')).code).toBe(9)
    expect(waiting.clock.monotonic() - began).toBeLessThan(10_000)
  })

  test('of several domains, each is asked about, and a dead record is neither printed nor ready', async () => {
    const world = await createWorld({ d1: 'superseded' })
    const recorded = await world.run('claims record example.com other.example --json')
    const errors = JSON.parse(recorded.stdout).data.map(
      (item: { error: { code: string } }) => item.error.code,
    )
    expect(errors.sort()).toEqual(['claim_superseded', 'claim_unknown'])
    expect(world.asked).toEqual(['GET /domains/d1/claim'])
    const checked = await createWorld({ d1: 'superseded' })
    const { code, stdout } = await checked.run('claims check --all --json')
    expect({ code, asked: checked.asked }).toEqual({ code: 9, asked: ['GET /domains/d1/claim'] })
    expect(JSON.parse(stdout).data[0].findings[0].code).toBe('claim_ended')
  })

  test.each([
    ['completed', 0, 'example.com'],
    ['canceled', 9, 'example.com'],
    ['completed', 0, 'example.com d1'],
    ['canceled', 9, 'example.com d1'],
  ])(
    'a claim that is %s during claims check --wait ends it soon, with exit %i: %s',
    async (end, exit, domains) => {
      const now: Record<string, string> = { d1: 'pending' }
      const world = await createWorld(now)
      const began = world.clock.monotonic()
      const { respond } = world.service
      world.service.respond = (request) => {
        if (world.clock.monotonic() - began > 300_000) now['d1'] = end
        return respond(request)
      }
      const { code, stdout } = await world.run(`claims check ${domains} --wait --format jsonl`)
      const minutes = (world.clock.monotonic() - began) / 60_000
      expect(code).toBe(exit)
      for (const line of stdout.trim().split('\n'))
        expect(JSON.parse(line).findings[0].code).toBe(
          end === 'completed' ? 'claim_completed' : 'claim_ended',
        )
      expect(minutes).toBeGreaterThan(5)
      expect(minutes).toBeLessThan(7)
      // Once a minute for each domain, not after each check.
      expect(world.asked.length).toBeLessThan(16)
    },
  )

  test.each(['', ' --wait'])(
    'a claim that the service no longer has is over: claims check%s',
    async (wait) => {
      const world = await createWorld({}, { d1: 'pending' })
      const { code, stdout } = await world.run(`claims check example.com --json${wait}`)
      const [{ code: finding, message, fix }] = JSON.parse(stdout).findings
      expect({ code, finding, message }).toEqual({
        code: 5,
        finding: 'claim_ended',
        message: 'the service no longer has the claim of example.com',
      })
      expect(fix).toMatch(
        /^Its placeholder domain may have been deleted.*mailclaim claims create example\.com$/,
      )
    },
  )

  test('claims check --wait goes on for the time that is left if the claim has another record meanwhile', async () => {
    const now: Record<string, string> = { d2: 'pending', d1: 'pending' }
    const world = await createWorld(now, { d1: 'pending', d2: 'pending' })
    const began = world.clock.monotonic()
    const { respond } = world.service
    world.service.respond = (request) => {
      if (world.clock.monotonic() - began > 300_000) now['d2'] = 'canceled'
      return respond(request)
    }
    const { code, stdout } = await world.run('claims check example.com --wait --timeout 600 --json')
    expect({ code, expected: JSON.parse(stdout).expected }).toEqual({ code: 8, expected: 'prefix=d1' })
    expect(Math.round((world.clock.monotonic() - began) / 60_000)).toBe(10)
  })

  test('claims check --wait asks about the claim once more when DNS has its record', async () => {
    const now: Record<string, string> = { colleague: 'pending' }
    const world = await createWorld(now, { colleague: 'pending' })
    const began = world.clock.monotonic()
    const isLater = () => world.clock.monotonic() - began > 20_000
    world.inDns = () => (isLater() ? IN_DNS : [])
    const { respond } = world.service
    world.service.respond = (request) => {
      if (isLater()) now['colleague'] = 'superseded'
      return respond(request)
    }
    expect((await world.run('claims check example.com --wait --json')).code).toBe(9)
    expect(world.asked).toHaveLength(2)
  })

  test.each(['--json', '--wait --json'])(
    'a claim that is over needs no record: claims check ID %s',
    async (options) => {
      const world = await createWorld({}, {})
      const claim = { name: 'example.com', domain_id: 'd7', status: 'completed', record: null }
      world.service.respond = async () => jsonResponse(200, claim)
      const { code, stdout } = await world.run(`claims check d7 ${options}`)
      const [finding] = JSON.parse(stdout).findings
      expect({ code, finding: finding.code }).toEqual({ code: 0, finding: 'claim_completed' })
      const people = await world.run('claims check d7 --format table')
      expect(people.stdout).toMatch(/Done: the claim is completed/)
      expect(people.stderr).not.toContain('--value')
      world.service.respond = async () => jsonResponse(200, { ...claim, domain_id: 'd8', status: 'failed' })
      expect((await world.run(`claims check d8 ${options}`)).code).toBe(9)
      world.service.respond = async () => jsonResponse(200, { ...claim, domain_id: 'd9', status: 'pending' })
      expect((await world.run(`claims check d9 ${options}`)).stderr).toContain('record_missing')
    },
  )

  test('the domain has another open claim: that one is meant, and DNS is checked for its value', async () => {
    const world = await createWorld({ d2: 'canceled', d1: 'pending' }, { d1: 'pending', d2: 'pending' })
    const { stdout } = await world.run('claims check example.com --json')
    expect(JSON.parse(stdout).expected).toBe('prefix=d1')
    world.clock.advance(120_000)
    expect((await world.run('claims record example.com --format value')).stdout).toBe('prefix=d1\n')
  })

  test('a claim that the service does not have is no record to publish: exit 5', async () => {
    for (const line of USES.slice(0, 3)) {
      const world = await createWorld({})
      expect(await world.run(line)).toMatchObject({ code: 5, stdout: '' })
      expect(world.asked).not.toContain('program')
    }
  })
})

describe('the service is not asked', () => {
  test.each(USES)('within a minute of the last answer: %s', async (line) => {
    const world = await createWorld({ d1: 'pending' })
    await world.run('claims get example.com')
    world.clock.advance(50_000)
    await world.run(line)
    expect(world.asked.filter((what) => what !== 'program')).toEqual([])
  })

  test.each([
    'claims check example.com --value prefix=given',
    'claims check --name example.com --value prefix=given',
    'claims check unknown.example',
  ])('where no claim is used: %s', async (line) => {
    const world = await createWorld({ d1: 'superseded' })
    await world.run(line)
    expect(world.asked).toEqual([])
  })

  test('about a completed claim', async () => {
    const world = await createWorld({ d1: 'completed' })
    await world.run('claims get d1')
    world.clock.advance(120_000)
    const { code, stderr } = await world.run('claims record example.com --format value')
    expect({ code, asked: world.asked }).toEqual({ code: 0, asked: [] })
    expect(stderr).toContain('no longer needs its record')
  })
})

describe('if the service cannot be asked', () => {
  const troubles: Record<string, (world: Awaited<ReturnType<typeof createWorld>>) => void> = {
    'nobody is signed in': (world) => {
      world.environment = {}
    },
    'it is down': (world) => {
      world.service.respond = async () => jsonResponse(503, {})
    },
    'it rejects the key': (world) => {
      world.service.respond = async () => jsonResponse(401, {})
    },
  }

  test.each(Object.entries(troubles))(
    '%s: the record is printed and published as it was, with a warning of how old that is',
    async (_what, trouble) => {
      for (const line of USES.slice(0, 3)) {
        const world = await createWorld({ d1: 'superseded' })
        trouble(world)
        const { code, stdout, stderr } = await world.run(line)
        expect({ line, code }).toEqual({ line, code: 0 })
        expect(stdout).toContain('prefix=d1')
        expect(stderr).toMatch(
          /^warning: couldn't ask the service whether the claim of example\.com is still /,
        )
        expect(stderr).toContain('2 minutes ago; to ask: mailclaim claims get example.com')
        expect(world.asked.filter((what) => what !== 'program').length).toBeLessThanOrEqual(1)
      }
    },
  )

  test.each(Object.entries(troubles))(
    '%s: claims check says that another token may be that of a newer claim',
    async (_what, trouble) => {
      const world = await createWorld({ d1: 'superseded' })
      trouble(world)
      const { code, stdout } = await world.run('claims check example.com --json')
      const { findings } = JSON.parse(stdout)
      const [finding] = findings
      expect({ code, finding: finding.code }).toEqual({ code: 8, finding: 'stale_token' })
      expect(findings.at(-1)).toMatchObject({ code: 'claim_not_asked', severity: 'warning' })
      expect(finding.message).toMatch(
        /from an earlier claim, or belong to a newer one that was started elsewhere: .* last seen 2 minutes ago/,
      )
      expect(finding.fix).toMatch(
        /^First make sure that this claim is still open: mailclaim claims get example\.com\. .*prefix=d1$/,
      )
    },
  )

  test.each(Object.entries(troubles))(
    '%s: claims check says so, whatever DNS has',
    async (_what, trouble) => {
      const world = await createWorld({}, { colleague: 'pending' })
      trouble(world)
      const { code, stdout } = await world.run('claims check example.com --json')
      expect({ code, ready: JSON.parse(stdout).ready }).toEqual({ code: 0, ready: true })
      expect(JSON.parse(stdout).findings[0]).toMatchObject({
        code: 'claim_not_asked',
        message: expect.stringContaining('It was last seen 2 minutes ago, and may have ended since'),
        fix: 'Make sure that the claim is still open: mailclaim claims get example.com',
      })
      const people = await world.run('claims check example.com --format table')
      expect(people.stdout).toMatch(/^Ready: .*; the service couldn't be asked about the claim$/m)
      const report = await world.run('claims check --all --format markdown')
      expect(report.stdout).toContain('| 1 | claim not asked (warning) |')
    },
  )

  test.each(Object.entries(troubles))('%s: of several, each is counted', async (_what, trouble) => {
    const seen = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`d${index + 10}`, 'pending']))
    const world = await createWorld({}, seen)
    trouble(world)
    for (const command of ['record', 'publish --with ./add.sh --only-new']) {
      const line = `claims ${command} ${Object.keys(seen).join(' ')}`
      const { stderr } = await world.run(`${line} --format tsv`)
      expect(stderr).toMatch(/^ {2}12 domains: claim not asked \(warning\) \(/m)
      expect(stderr.match(/^warning: couldn't ask the service about all of these claims /gm)).toHaveLength(1)
    }
  })

  test('of several claims, one failure is enough for the next half minute', async () => {
    const world = await createWorld({}, { d1: 'pending' })
    world.service.respond = async () => jsonResponse(503, {})
    const { code, stderr } = await world.run('claims record example.com d1 --jobs 1 --format tsv')
    expect({ code, asked: world.asked }).toEqual({ code: 0, asked: ['GET /domains/d1/claim'] })
    expect(stderr).toContain("warning: couldn't ask the service")
  })

  test('a service that hangs holds up no check of DNS, but what was sent to it is not cut off', async () => {
    const world = await createWorld({ d1: 'superseded' })
    let answer = () => {}
    world.service.respond = () =>
      new Promise((resolve) => {
        answer = () => resolve(jsonResponse(503, {}))
      })
    const { ended, stdout } = world.start('claims check example.com --json')
    while (world.asked.length === 0) await new Promise(setImmediate)
    expect(world.requests.at(-1)?.timeoutMs).toBe(5000)
    while (stdout.text === '') {
      world.clock.ring()
      await new Promise(setImmediate)
    }
    expect(JSON.parse(stdout.text).findings[0].code).toBe('stale_token')
    const soon = new Promise((resolve) => setImmediate(resolve, 'not yet'))
    expect(await Promise.race([ended, soon])).toBe('not yet')
    answer()
    expect(await ended).toBe(8)
  })
})
