import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packet from 'dns-packet'
import { expect, test } from 'vitest'
import {
  type Clock,
  type Context,
  type DnsRequest,
  DnsTransportError,
  HttpTransportError,
  type Keychain,
} from '../../src/context.ts'
import { resolveConfigFileLink } from '../../src/settings/config.ts'
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

/** Returns the answer to a query of `doctor`: the NS record of com, or the SOA record of the root zone. */
const recordOf = ({ questions: [question] = [] }: packet.Packet): packet.Answer =>
  question?.type === 'NS'
    ? { name: question.name, type: 'NS', data: 'a.gtld-servers.net' }
    : { name: '.', type: 'SOA', data: { mname: 'a.root-servers.net', rname: 'nstld.verisign-grs.com' } }

/** Creates DNS that answers every query with these header bits, as a root server or an interceptor does. */
function dnsThat(flags: { aa: boolean; ra: boolean; rcode?: number; isEmpty?: boolean }): Context['dns'] {
  const reply = async ({ message, accept }: DnsRequest): Promise<Uint8Array> => {
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

/** Creates a working setup, except for the given options. */
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
  // Let sleeps never end, so that no check reaches its time limit.
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

test('doctor reports `ok` for each check of a working setup, and sends no credential', async () => {
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

test('doctor on Windows says that it does not check the permissions of directories', async () => {
  const { of } = await doctor(Object.assign(createSetup(), { platform: 'win32' }))
  expect(of('folders')).toMatchObject({
    status: 'ok',
    message: expect.stringContaining("aren't looked at"),
  })
})

test.runIf(needs('posix'))('the chmod remedy of doctor quotes directory names for the shell', async () => {
  const context = createSetup()
  const directory = join(context.directories.state, "o'brien; $(exit)")
  const paths = { config: join(directory, 'c'), state: join(directory, 's') }
  for (const path of Object.values(paths)) mkdirSync(path, { recursive: true, mode: 0o755 })
  const { of } = await doctor(Object.assign(context, { directories: paths }))
  execFileSync('sh', ['-c', of('folders')?.remedy ?? 'exit 1'])
  for (const path of Object.values(paths)) expect(statSync(path).mode & 0o077).toBe(0)
})

test('the report of mailclaim doctor on a terminal shows the remedy of a problem, which the error message does not repeat', async () => {
  const context = createSetup({ environment: { apiKey: 'key-1' }, terminal: { columns: 200 } })
  expect(await run(['doctor', '--no-color'], context)).toBe(3)
  expect(context.stdout.text).toContain(
    '→ set MAILCLAIM_BASE_URL, or sign in: mailclaim login --base-url URL',
  )
  expect(context.stderr.text).toBe('error: problems found: configuration\n')
})

test('the report of `doctor` is wrapped on a terminal of 60 columns', async () => {
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

/** A setup as options that differ from a working one, and further arguments of `doctor`. */
interface Setup extends FakeContextOptions {
  readonly words?: readonly string[]
}

const signedOut = { settings: { base_url: READY.settings.base_url, client_id: 'client-1' } }
const NO_KEYCHAIN = { keychain: Object.assign(createFakeKeychain(), { trouble: 'no_keychain' as const }) }
const STORE = 'credential store'
const FILE = '--store file'
const unreachable = () => {
  throw new HttpTransportError('connect', 'no', 'connection refused')
}
const at = (date: string) => () => textResponse(200, '', { date: `Fri, 20 Nov 2026 ${date} GMT` })
const open = dnsThat({ aa: true, ra: true })
const mute = { ...open, udp: silent, tcp: silent }
const DNS = 'DNS resolvers'

type Row = [
  what: string,
  check: string,
  status: string,
  exit: number,
  Setup,
  message: string,
  remedy?: string,
]
const CHOSEN = ['--resolver', '192.0.2.99']
const PAGE = ['--resolver', 'https://dns.example/dns-query']

test.each<Row>([
  ['no base URL', 'configuration', 'problem', 3, { environment: { apiKey: 'k' } }, ''],
  ['no base URL', 'network', 'skipped', 3, { environment: { apiKey: 'k' } }, ''],
  ['nobody signed in', 'session', 'problem', 4, { environment: signedOut }, '', 'mailclaim login'],
  ['a refused connection', 'network', 'problem', 7, { respond: unreachable }, 'refused'],
  ['a refused connection', 'clock', 'skipped', 7, { respond: unreachable }, ''],
  ['no keychain for a session', STORE, 'problem', 4, { ...NO_KEYCHAIN, environment: signedOut }, '', FILE],
  ['no keychain and an API key', STORE, 'warning', 0, NO_KEYCHAIN, ''],
  ['a slow clock', 'clock', 'warning', 0, { respond: at('12:10:00') }, '10 minutes behind'],
  ['a fast clock', 'clock', 'warning', 0, { respond: at('11:59:00') }, '60 seconds ahead of'],
  ['a clock 29 seconds off', 'clock', 'ok', 0, { respond: at('12:00:29') }, ''],
  ['an interceptor', 'direct DNS', 'warning', 0, { dns: dnsThat({ aa: false, ra: true }) }, 'intercepted'],
  ['no answer in DNS', 'direct DNS', 'warning', 0, { dns: mute }, 'port 53 is blocked'],
  ['no answer in DNS', DNS, 'warning', 0, { dns: mute }, '192.0.2.53', 'resolver https://dns.quad9.net'],
  ['no resolver', DNS, 'warning', 0, { dns: { ...open, systemResolvers: async () => [] } }, 'no usable'],
  ['a chosen resolver', DNS, 'ok', 0, { dns: open, words: CHOSEN }, '192.0.2.99'],
  ['a chosen resolver', 'direct DNS', 'skipped', 0, { dns: open, words: CHOSEN }, ''],
  ['HTTP 401 from a resolver', DNS, 'warning', 0, { dns: open, words: PAGE }, `${PAGE[1]} (HTTP 401)`],
  ...Object.entries({ SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5, 'NOERROR without data': 0 }).map(
    ([name, rcode]): Row => {
      const said = `resolvers that did not find com, which exists: 192.0.2.53 (${name})`
      const dns = dnsThat({ aa: true, ra: false, rcode, isEmpty: true })
      return [`a resolver that answers ${name}`, DNS, 'warning', 0, { dns }, said, 'config set resolver']
    },
  ),
])('with %s, doctor gives the check "%s" the status `%s`, and exits %i', async (...row) => {
  const [, check, status, exit, { words, ...options }, message, remedy] = row
  const { code, of, stderr } = await doctor(createSetup(options), words)
  expect({ code, ...of(check) }).toMatchObject({
    code: exit,
    status,
    message: expect.stringContaining(message),
  })
  if (remedy !== undefined) expect(of(check)?.remedy).toContain(remedy)
  if (exit > 0) expect(JSON.parse(stderr).error).toMatchObject({ code: 'problems_found', exit })
})

test('doctor finds no problem in a configuration without a client id if an API key is stored', async () => {
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
  // The permissions of the file are reported by the check "folders".
  expect(of('credential store')?.message).toBe('secrets are kept in a file, as configured')
})

test('doctor ends with exit 1 if the configuration is damaged, but still checks the network', async () => {
  const context = createSetup()
  writeFileSync(resolveConfigFileLink(context), '{', { mode: 0o600 })
  const { code, of } = await doctor(context)
  expect(code).toBe(1)
  expect(of('configuration')).toMatchObject({
    status: 'problem',
    message: expect.stringContaining('damaged'),
  })
  expect(of('network')).toMatchObject({ status: 'ok' })
})

test.runIf(needs('posix'))('doctor warns of a directory that its group can read', async () => {
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
  ['a problem', { settings: { base_url: READY.settings.base_url, client_id: 'client-1' } }, 'problem'],
  ['a warning if an API key is set', READY, 'warning'],
])(
  'doctor reports a state directory below a dangling symbolic link as %s',
  async (_what, environment, status) => {
    const context = createSetup({ environment })
    const link = `${context.directories.config}-link`
    symlinkSync(`${link}-not-mounted`, link)
    Object.assign(context.directories, { state: join(link, 'state', 'mailclaim') })
    expect((await doctor(context)).of('folders')).toMatchObject({
      status,
      message: expect.stringContaining("can't be created (no such file or directory)"),
      remedy: expect.stringContaining('MAILCLAIM_STATE_DIR'),
    })
  },
)

test('`doctor` does not show the password of a proxy', async () => {
  const environment = { ...READY, httpsProxy: 'http://user:hunter2@proxy.example:3128' }
  const context = createSetup({ environment })
  const { of } = await doctor(context)
  expect(of('network')?.message).toContain('proxy.example:3128')
  expect(context.stdout.text).not.toContain('hunter2')
})

test('Ctrl-C while doctor waits for the keychain exits 130 without a report', async () => {
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
