import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packet from 'dns-packet'
import { describe, expect, test } from 'vitest'
import {
  type Clock,
  type Context,
  type DnsExchange,
  DnsTransportError,
  type Keychain,
  TransportError,
} from '../../src/context.ts'
import { configPath } from '../../src/settings/config.ts'
import {
  createFakeContext,
  createFakeKeychain,
  type FakeContext,
  type FakeContextOptions,
  textResponse,
} from '../fake-context.ts'
import { needs } from '../requirements.ts'
import { run } from '../run.ts'

const NOW = 'Fri, 20 Nov 2026 12:00:00 GMT'
const READY = { settings: { base_url: 'https://api.example.com' }, apiKey: 'key-that-nobody-may-see' }

/** What the root and com have. */
const recordOf = ({ questions: [question] = [] }: packet.Packet): packet.Answer =>
  question?.type === 'NS'
    ? { name: question.name, type: 'NS', data: 'a.gtld-servers.net' }
    : { name: '.', type: 'SOA', data: { mname: 'a.root-servers.net', rname: 'nstld.verisign-grs.com' } }

/** DNS that answers every query with these header bits, as a root server or an interceptor. */
function dnsThat(flags: { aa: boolean; ra: boolean; rcode?: number; isEmpty?: boolean }): Context['dns'] {
  const reply = async ({ message, accept }: DnsExchange): Promise<Uint8Array> => {
    const query = packet.decode(Buffer.from(message))
    const wire = packet.encode({
      type: 'response',
      id: query.id ?? 0,
      flags:
        (flags.aa ? packet.AUTHORITATIVE_ANSWER : 0) |
        (flags.ra ? packet.RECURSION_AVAILABLE : 0) |
        (flags.rcode ?? 0),
      questions: query.questions ?? [],
      answers: flags.isEmpty ? [] : [recordOf(query)],
    })
    if (!accept(wire)) throw new DnsTransportError('timeout', 'no answer to this question')
    return wire
  }
  return { udp: reply, tcp: reply, systemResolvers: async () => [{ address: '192.0.2.53', port: 53 }] }
}

const silent = async (): Promise<never> => {
  throw new DnsTransportError('timeout', 'no answer')
}

/** A working setup, except for what the test changes. */
function createSetup(options: FakeContextOptions = {}, clock: Partial<Clock> = {}): FakeContext {
  const context = createFakeContext({
    environment: READY,
    respond: () => textResponse(401, 'no', { date: NOW }),
    dns: dnsThat({ aa: true, ra: false }),
    ...options,
  })
  for (const directory of Object.values(context.directories)) {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    chmodSync(directory, 0o700)
  }
  // Time stands still: no check is too slow.
  const sleep: Clock['sleep'] = (_ms, signal) =>
    new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  return Object.assign(context, { clock: Object.assign(context.clock, { sleep, ...clock }) })
}

async function doctor(context: FakeContext, words: readonly string[] = []) {
  const code = await run(['doctor', '--json', ...words], context)
  const { data } = JSON.parse(context.stdout.text) as {
    data: { check: string; status: string; message: string; remedy: string | null }[]
  }
  const of = (check: string) => data.find((item) => item.check === check)
  return { code, data, of, stderr: context.stderr.text }
}

describe('doctor', () => {
  test('doctor shows no password of a mistyped base URL', async () => {
    const baseUrl = 'user:PASSWORD@api.example.com'
    const context = createSetup({ environment: { settings: { base_url: baseUrl } } })
    const { code } = await doctor(context)
    expect(code).not.toBe(0)
    expect(context.stdout.text).toContain('…@api.example.com')
    expect(context.stdout.text + context.stderr.text).not.toContain('PASSWORD')
  })

  test('doctor reports ok for a working setup, and sends no credential', async () => {
    const context = createSetup()
    const { code, data, stderr } = await doctor(context)
    expect(data.map(({ check, status }) => [check, status])).toEqual([
      ['configuration', 'ok'],
      ['folders', 'ok'],
      ['credential store', 'ok'],
      ['lock', 'ok'],
      ['session', 'ok'],
      ['network', 'ok'],
      ['clock', 'ok'],
      ['DNS resolvers', 'ok'],
      ['direct DNS', 'ok'],
    ])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(
      context.requests.map(({ method, url, headers }) => [method, url.href, Object.keys(headers)]),
    ).toEqual([['GET', 'https://api.example.com/', ['user-agent', 'accept']]])
    expect(context.stdout.text).not.toContain(READY.apiKey)
    expect(Object.values(context.directories).flatMap((directory) => readdirSync(directory))).toEqual([])
  })

  test('doctor says nothing of other users on Windows, where it looks at none', async () => {
    const { of } = await doctor(Object.assign(createSetup(), { platform: 'win32' }))
    expect(of('folders')).toMatchObject({
      status: 'ok',
      message: expect.stringContaining("aren't looked at"),
    })
  })

  test.runIf(needs('posix'))('the remedy for exposed directories works whatever their names', async () => {
    const context = createSetup()
    const directory = join(context.directories.state, "o'brien; $(exit)")
    const paths = { config: join(directory, 'c'), state: join(directory, 's') }
    for (const path of Object.values(paths)) mkdirSync(path, { recursive: true, mode: 0o755 })
    const { of } = await doctor(Object.assign(context, { directories: paths }))
    execFileSync('sh', ['-c', of('folders')?.remedy ?? 'exit 1'])
    for (const path of Object.values(paths)) expect(statSync(path).mode & 0o077).toBe(0)
  })

  test('people read each remedy once, beside its problem', async () => {
    const context = createSetup({ environment: { apiKey: 'key-1' }, terminal: { columns: 200 } })
    expect(await run(['doctor', '--no-color'], context)).toBe(3)
    expect(context.stdout.text).toContain('→ to begin: mailclaim login')
    expect(context.stderr.text).toBe('error: problems found: configuration\n')
  })

  test('the report for people fits the terminal and has the remedies', async () => {
    const context = createSetup({
      terminal: { columns: 60 },
      environment: { ...READY, noColor: true },
      respond: () => textResponse(401, 'no', { date: 'Fri, 20 Nov 2026 12:05:00 GMT' }),
    })
    expect(await run(['doctor'], context)).toBe(0)
    expect(context.stdout.text).toContain('✔ configuration     ')
    expect(context.stdout.text).toMatch(/^! clock {13}this machine is 5 minutes behind the$/m)
    expect(context.stdout.text).toMatch(/^ {20}→ set the clock/m)
  })
})

describe('the first problem decides the exit code', () => {
  test('doctor ends with exit 3 if an API key has no base URL to go to', async () => {
    const { code, of, stderr } = await doctor(createSetup({ environment: { apiKey: 'key-1' } }))
    expect(code).toBe(3)
    expect(of('configuration')).toMatchObject({ status: 'problem' })
    expect(of('network')).toMatchObject({ status: 'skipped' })
    expect(JSON.parse(stderr).error).toMatchObject({ code: 'problems_found', exit: 3 })
  })

  test('doctor ends with exit 4 if nobody is signed in', async () => {
    const environment = { settings: { base_url: READY.settings.base_url, client_id: 'client-1' } }
    const { code, of } = await doctor(createSetup({ environment }))
    expect(code).toBe(4)
    expect(of('session')).toMatchObject({
      status: 'problem',
      remedy: expect.stringContaining('mailclaim login'),
    })
  })

  test('a stored API key needs no client id', async () => {
    const setup = {
      environment: { settings: READY.settings },
      respond: () => textResponse(200, '{"data":[]}'),
    }
    const before = createSetup(setup)
    const after = createSetup({
      ...setup,
      environment: { settings: { ...READY.settings, store: 'keychain' } },
    })
    before.stdin.stream.end('key-1')
    expect(await run(['login', '--with-api-key', '--store', 'file'], before)).toBe(0)
    const { code, of } = await doctor(Object.assign(after, { directories: before.directories }))
    expect({ code, status: of('configuration')?.status }).toEqual({ code: 0, status: 'ok' })
    // Who else can read it is said by the check of the directories.
    expect(of('credential store')?.message).toBe('secrets are kept in a file, as configured')
  })

  test('doctor ends with exit 7 if the service does not respond', async () => {
    const respond = () => {
      throw new TransportError('connect', 'no', 'connection refused')
    }
    const { code, of } = await doctor(createSetup({ respond }))
    expect(code).toBe(7)
    expect(of('network')).toMatchObject({ status: 'problem', message: expect.stringContaining('refused') })
    expect(of('clock')).toMatchObject({ status: 'skipped' })
  })

  test('doctor ends with exit 1 if the configuration is damaged, and runs the other checks', async () => {
    const context = createSetup()
    writeFileSync(configPath(context), '{', { mode: 0o600 })
    const { code, of } = await doctor(context)
    expect(code).toBe(1)
    expect(of('configuration')).toMatchObject({
      status: 'problem',
      message: expect.stringContaining('damaged'),
    })
    expect(of('network')).toMatchObject({ status: 'ok' })
  })

  test('doctor ends with exit 4 if the keychain is needed and unavailable', async () => {
    const keychain = Object.assign(createFakeKeychain(), { trouble: 'no_keychain' as const })
    const environment = { settings: { base_url: READY.settings.base_url, client_id: 'client-1' } }
    const { code, of } = await doctor(createSetup({ keychain, environment }))
    expect(code).toBe(4)
    expect(of('credential store')).toMatchObject({
      status: 'problem',
      remedy: expect.stringContaining('--store file'),
    })
  })
})

describe('a warning leaves the exit code 0', () => {
  test('an unavailable keychain is a warning while an API key is used', async () => {
    const keychain = Object.assign(createFakeKeychain(), { trouble: 'no_keychain' as const })
    const { code, of } = await doctor(createSetup({ keychain }))
    expect(code).toBe(0)
    expect(of('credential store')).toMatchObject({ status: 'warning' })
  })

  test('a wrong clock, in either direction, is a warning', async () => {
    for (const [date, words] of [
      ['Fri, 20 Nov 2026 12:10:00 GMT', '10 minutes behind'],
      ['Fri, 20 Nov 2026 11:59:00 GMT', '60 seconds ahead of'],
    ] as const) {
      const { code, of } = await doctor(createSetup({ respond: () => textResponse(200, '', { date }) }))
      expect(code).toBe(0)
      expect(of('clock')).toMatchObject({ status: 'warning', message: expect.stringContaining(words) })
    }
    const close = await doctor(
      createSetup({ respond: () => textResponse(200, '', { date: 'Fri, 20 Nov 2026 12:00:29 GMT' }) }),
    )
    expect(close.of('clock')).toMatchObject({ status: 'ok' })
  })

  test.runIf(needs('posix'))('a directory that others can read is a warning', async () => {
    const context = createSetup()
    chmodSync(context.directories.state, 0o750)
    const { code, of } = await doctor(context)
    expect(code).toBe(0)
    expect(of('folders')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining(context.directories.state),
      remedy: expect.stringContaining('chmod'),
    })
  })

  test.each([
    ['intercepted', dnsThat({ aa: false, ra: true }), 'intercepted'],
    ['closed', { ...dnsThat({ aa: true, ra: false }), udp: silent, tcp: silent }, 'port 53 is blocked'],
  ])('direct DNS that is %s is a warning', async (_what, dns, words) => {
    const { code, of } = await doctor(createSetup({ dns }))
    expect(code).toBe(0)
    expect(of('direct DNS')).toMatchObject({ status: 'warning', message: expect.stringContaining(words) })
  })

  test.each([
    ['a problem', { settings: { base_url: READY.settings.base_url, client_id: 'client-1' } }, 'problem'],
    ['a warning with an API key', READY, 'warning'],
  ])('directories below a dangling link cannot be created: %s', async (_what, environment, status) => {
    const context = createSetup({ environment })
    const link = `${context.directories.config}-link`
    symlinkSync(`${link}-not-mounted`, link)
    Object.assign(context.directories, { state: join(link, 'state', 'mailclaim') })
    expect((await doctor(context)).of('folders')).toMatchObject({
      status,
      message: expect.stringContaining("can't be created (no such file or directory)"),
      remedy: expect.stringContaining('MAILCLAIM_STATE_DIR'),
    })
  })

  test.each([
    ['SERVFAIL', 2],
    ['NXDOMAIN', 3],
    ['REFUSED', 5],
    ['NOERROR without data', 0],
  ])('a resolver that answers only %s is a warning', async (name, rcode) => {
    const dns = dnsThat({ aa: true, ra: false, rcode, isEmpty: true })
    const { of } = await doctor(createSetup({ dns }))
    expect(of('DNS resolvers')).toMatchObject({
      status: 'warning',
      message: `resolvers that did not find com, which exists: 192.0.2.53 (${name})`,
      remedy: expect.stringContaining('config set resolver'),
    })
  })

  test('silent or missing resolvers are a warning, and chosen ones are checked', async () => {
    const dns = dnsThat({ aa: true, ra: true })
    const none = await doctor(createSetup({ dns: { ...dns, systemResolvers: async () => [] } }))
    expect(none.of('DNS resolvers')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('no usable'),
    })
    const mute = await doctor(createSetup({ dns: { ...dns, udp: silent, tcp: silent } }))
    expect(mute.of('DNS resolvers')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('192.0.2.53'),
      remedy: expect.stringContaining('set resolver https://dns.quad9.net'),
    })
    const chosen = await doctor(createSetup({ dns }), ['--resolver', '192.0.2.99'])
    expect(chosen.of('DNS resolvers')).toMatchObject({
      status: 'ok',
      message: expect.stringContaining('192.0.2.99'),
    })
    expect(chosen.of('direct DNS')).toMatchObject({ status: 'skipped' })
    const page = await doctor(createSetup({ dns }), ['--resolver', 'https://dns.example/dns-query'])
    expect(page.of('DNS resolvers')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('https://dns.example/dns-query (HTTP 401)'),
    })
  })
})

test("a proxy's password is not shown", async () => {
  const environment = { ...READY, httpsProxy: 'http://user:hunter2@proxy.example:3128' }
  const context = createSetup({ environment })
  const { of } = await doctor(context)
  expect(of('network')?.message).toContain('proxy.example:3128')
  expect(context.stdout.text).not.toContain('hunter2')
})

test('Ctrl-C ends doctor at once', async () => {
  const call: Keychain['call'] = ({ signal }) =>
    new Promise((done) => {
      signal?.addEventListener('abort', () => done({ ok: false, reason: 'timeout', detail: '' }))
    })
  const context = createSetup({ keychain: { call } })
  const ended = run(['doctor'], context)
  setImmediate(() => context.interrupt())
  expect(await ended).toBe(130)
  expect(context.stdout.text).toBe('')
})
