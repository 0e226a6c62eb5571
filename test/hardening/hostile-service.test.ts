import { describe, expect, test } from 'vitest'
import { everyCommand, exitCodesOf } from '../../src/commands/definition.ts'
import { tree } from '../../src/commands/tree.ts'
import type { Programs } from '../../src/context.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { needs } from '../requirements.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import {
  type Client,
  type ClientOptions,
  control,
  createClient,
  createRealClock,
  expectCalmFailure,
  expectWholeFiles,
  type Ran,
} from './in-process-client.ts'

/** How a command talks to the service: what it asks first decides how a fault ends it. */
type Asks = 'get' | 'post' | 'refresh' | 'exchange' | 'nothing'

interface Case {
  readonly command: string
  readonly asks: Asks
  /** The words, once the client and its data exist. */
  readonly words: (world: ClientWithIds) => readonly string[]
  /** Only these requests go wrong; every request of the API where absent. */
  readonly path?: string
  /** The exit code where nothing is wrong; 0 where absent. */
  readonly usual?: number
  /** Its own time limits are what is looked at: no pause passes at once. */
  readonly clock?: 'real'
}

interface ClientWithIds {
  readonly client: Client
  readonly importId: string
  readonly domainId: string
}

const DOMAIN = 'known.example.com'
/** No command may take longer, on a machine that is busy as well. */
const LONGEST_MS = 20_000

/** A program of the user's that does nothing. */
const HARMLESS: Programs = {
  run: async () => ({ kind: 'exited', code: 0 }),
}

/** Every command of the program. The sandbox is no client, and prints only its own words. */
const CASES: readonly Case[] = [
  { command: 'login', asks: 'exchange', words: () => ['login', '--store', 'file', '--timeout', '3600'] },
  { command: 'auth token', asks: 'refresh', words: () => ['auth', 'token'] },
  { command: 'auth refresh', asks: 'refresh', words: () => ['auth', 'refresh'] },
  { command: 'auth status', asks: 'get', words: () => ['auth', 'status', '--online'] },
  { command: 'auth rekey', asks: 'nothing', usual: 3, words: () => ['auth', 'rekey'] },
  { command: 'auth list', asks: 'nothing', words: () => ['auth', 'list'] },
  { command: 'auth switch', asks: 'nothing', words: () => ['auth', 'switch', 'default'] },
  { command: 'grants list', asks: 'get', words: () => ['grants', 'list'] },
  { command: 'imports list', asks: 'get', words: () => ['imports', 'list', '--all', '--json'] },
  { command: 'imports get', asks: 'get', words: ({ importId }) => ['imports', 'get', importId] },
  {
    command: 'imports watch',
    asks: 'get',
    usual: 8,
    words: ({ importId }) => ['imports', 'watch', importId, '--timeout', '30'],
  },
  { command: 'claims create', asks: 'post', words: () => ['claims', 'create', 'new.example.com'] },
  { command: 'claims list', asks: 'get', words: () => ['claims', 'list', '--refresh'] },
  { command: 'claims get', asks: 'get', words: () => ['claims', 'get', DOMAIN] },
  {
    command: 'claims record',
    asks: 'get',
    words: ({ domainId }) => ['claims', 'record', domainId, '--profile', 'other'],
  },
  {
    command: 'claims publish',
    asks: 'get',
    words: ({ domainId }) => ['claims', 'publish', domainId, '--profile', 'other', '--with', 'true'],
  },
  {
    command: 'claims check',
    asks: 'get',
    usual: 8,
    words: ({ domainId }) => ['claims', 'check', domainId, '--profile', 'other'],
  },
  {
    command: 'claims verify',
    asks: 'post',
    path: '/domains/*/verify',
    words: () => ['claims', 'verify', DOMAIN, '--no-check'],
  },
  {
    command: 'claims watch',
    asks: 'get',
    usual: 8,
    words: () => ['claims', 'watch', DOMAIN, '--timeout', '30'],
  },
  {
    command: 'claim',
    asks: 'post',
    usual: 8,
    words: () => ['claim', 'road.example.com', '--no-check', '--timeout', '60'],
  },
  { command: 'logout', asks: 'nothing', words: () => ['logout'] },
  { command: 'config list', asks: 'nothing', words: () => ['config', 'list'] },
  { command: 'config set', asks: 'nothing', words: () => ['config', 'set', 'http-timeout', '20'] },
  { command: 'config get', asks: 'nothing', words: () => ['config', 'get', 'http-timeout'] },
  { command: 'config unset', asks: 'nothing', words: () => ['config', 'unset', 'http-timeout'] },
  { command: 'config path', asks: 'nothing', words: () => ['config', 'path'] },
  { command: 'doctor', asks: 'nothing', path: '/', clock: 'real', words: () => ['doctor'] },
  { command: 'completion', asks: 'nothing', words: () => ['completion', 'bash'] },
  { command: 'commands', asks: 'nothing', words: () => ['commands', '--json'] },
]

/** The exit codes per kind of request, in the order get, post, refresh, exchange. */
type Exits = readonly [get: number, post: number, refresh: number, exchange: number]

interface FaultRow {
  readonly name: string
  readonly fault?: Record<string, unknown>
  readonly exits: Exits | 'usual'
  /** Seconds, where the fault is that nothing comes. */
  readonly httpTimeout?: string
  /** Whether the answer is so large that one command at a time is enough. */
  readonly large?: true
  /** After a refresh: whether the service has seen the token, so that nobody knows what became of it. */
  readonly refreshUnknown?: boolean
  readonly options?: (sandbox: Sandbox) => ClientOptions
}

const html =
  '<html><head><script>alert(1)</script></head><body><h1>Bad\u001b]0;owned\u0007 Gateway</h1></body></html>'
const OAUTH = { 'content-type': 'application/json' }

const FAULTS: readonly FaultRow[] = [
  {
    name: '400 without words',
    fault: { kind: 'status', status: 400 },
    exits: [6, 6, 7, 7],
    refreshUnknown: true,
  },
  { name: '401', fault: { kind: 'status', status: 401 }, exits: [4, 4, 7, 7], refreshUnknown: true },
  { name: '403', fault: { kind: 'status', status: 403 }, exits: [6, 6, 7, 7], refreshUnknown: true },
  { name: '404', fault: { kind: 'status', status: 404 }, exits: [5, 5, 7, 7], refreshUnknown: true },
  {
    name: 'an OAuth error',
    fault: { kind: 'status', status: 400, headers: OAUTH, body: { error: 'invalid_request' } },
    exits: [6, 6, 6, 6],
  },
  { name: '429', fault: { kind: 'status', status: 429 }, exits: [7, 7, 7, 7], refreshUnknown: true },
  {
    name: '429, Retry-After 31 years',
    fault: { kind: 'status', status: 429, headers: { 'retry-after': '999999999' } },
    exits: [7, 7, 7, 7],
  },
  {
    name: '429, Retry-After 1e400',
    fault: { kind: 'status', status: 429, headers: { 'retry-after': '9'.repeat(400) } },
    exits: [7, 7, 7, 7],
  },
  {
    name: '429, Retry-After in 9999',
    fault: { kind: 'status', status: 429, headers: { 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' } },
    exits: [7, 7, 7, 7],
  },
  {
    name: '429, Retry-After -5',
    fault: { kind: 'status', status: 429, headers: { 'retry-after': '-5' } },
    exits: [7, 7, 7, 7],
    refreshUnknown: true,
  },
  { name: '500', fault: { kind: 'status', status: 500 }, exits: [7, 7, 7, 7], refreshUnknown: true },
  {
    name: '502 with HTML',
    fault: { kind: 'status', status: 502, headers: { 'content-type': 'text/html' }, body: html },
    exits: [7, 7, 7, 7],
    refreshUnknown: true,
  },
  {
    name: '503, Retry-After 1',
    fault: { kind: 'status', status: 503, headers: { 'retry-after': '1' } },
    exits: [7, 7, 7, 7],
  },
  {
    name: '503 with a page, Retry-After 1',
    fault: { kind: 'status', status: 503, headers: { 'retry-after': '1' }, body: html },
    exits: [7, 7, 7, 7],
    refreshUnknown: true,
  },
  { name: '504', fault: { kind: 'status', status: 504 }, exits: [7, 7, 7, 7], refreshUnknown: true },
  { name: 'reset', fault: { kind: 'reset' }, exits: [7, 7, 7, 7], refreshUnknown: true },
  {
    name: 'reset when done',
    fault: { kind: 'reset', after: true },
    exits: [7, 7, 7, 7],
    refreshUnknown: true,
  },
  { name: 'closed when done', fault: { kind: 'drop' }, exits: [7, 7, 7, 7], refreshUnknown: true },
  {
    name: 'no answer',
    fault: { kind: 'delay', before_ms: 600_000 },
    exits: [7, 7, 7, 7],
    httpTimeout: '0.3',
    refreshUnknown: true,
  },
  { name: 'half an answer', fault: { kind: 'truncate' }, exits: [7, 7, 7, 7], refreshUnknown: true },
  {
    name: 'noise',
    fault: { kind: 'status', status: 200, headers: OAUTH, body: '\0\ufffd{"' },
    exits: [7, 7, 7, 7],
    refreshUnknown: true,
  },
  {
    name: 'HTML called JSON',
    fault: { kind: 'status', status: 200, headers: OAUTH, body: html },
    exits: [7, 7, 7, 7],
    refreshUnknown: true,
  },
  {
    name: 'an empty 200',
    fault: { kind: 'status', status: 200, headers: OAUTH },
    exits: [7, 7, 7, 7],
    refreshUnknown: true,
  },
  {
    name: 'JSON called HTML',
    fault: { kind: 'merge', headers: { 'content-type': 'text/html' } },
    exits: 'usual',
  },
  {
    name: 'another host',
    fault: { kind: 'status', status: 307, headers: { location: 'http://127.0.0.2:9/steal' } },
    exits: [7, 7, 7, 7],
    refreshUnknown: true,
  },
]

const NO_ANSWER = ['reset', 'reset when done', 'closed when done', 'no answer']

async function createClientWithIds(sandbox: Sandbox, options: ClientOptions): Promise<ClientWithIds> {
  const client = createClient(sandbox, { programs: HARMLESS, ...options })
  await client.signIn()
  const imports = await client.run(['imports', 'list', '--limit', '1', '--json'])
  const claim = await client.run(['claims', 'create', DOMAIN, '--json'])
  expect([imports.code, claim.code], imports.stderr + claim.stderr).toEqual([0, 0])
  return {
    client,
    importId: (JSON.parse(imports.stdout) as { data: { id: string }[] }).data[0]?.id ?? '',
    domainId: (JSON.parse(claim.stdout) as { domain_id: string }).domain_id,
  }
}

/**
 * Lets cases meet one fault, one after the other, in one world.
 *
 * @returns how they ended, in their order.
 */
async function meet(cases: readonly Case[], row: FaultRow): Promise<Ran[]> {
  const sandbox = await sandboxForTest({ autoApprove: true, checkSeconds: 0, transferSeconds: 0 })
  // DNS, whose deadlines are pauses, is only asked where the service has answered.
  const real = cases.some(
    ({ command, clock }) => clock === 'real' || (command === 'claims check' && row.exits === 'usual'),
  )
  const world = await createClientWithIds(sandbox, {
    ...(real ? { clock: createRealClock() } : {}),
    // The token endpoint gets half a minute whatever --http-timeout says.
    ...(row.httpTimeout === undefined ? {} : { timeLimitMs: Number(row.httpTimeout) * 1000 }),
  })
  const { client } = world
  const ends: Ran[] = []
  for (const one of cases) {
    // Commands on another profile find no claim in their ledger, and ask.
    if (one.words(world).includes('other')) {
      Object.assign(client.context.environment, { apiKey: sandbox.apiKey })
    }
    const secrets = client.secrets()
    if (one.asks === 'refresh') client.expire()
    for (const path of pathsOf(one)) await control(sandbox, 'POST', 'faults', { ...row.fault, path })
    const ran = await client.run([
      ...one.words(world),
      ...(row.httpTimeout === undefined ? [] : ['--http-timeout', row.httpTimeout]),
    ])
    ends.push(ran)
    secrets.push(...client.secrets())
    expectCalmFailure(ran)
    expect(await exitCodes(one.command), one.command).toContain(ran.code)
    const shown = one.command === 'auth token' ? ran.stderr : ran.stdout + ran.stderr
    for (const secret of secrets) expect(shown).not.toContain(secret)
    expectWholeFiles(client)
    await control(sandbox, 'DELETE', 'faults')
    if (one.asks !== 'nothing') await expectNothingLost(one, row, client, sandbox)
  }
  await sandbox.close()
  return ends
}

/** The exit codes that the command's help lists. */
async function exitCodes(command: string): Promise<readonly number[]> {
  const found = [...everyCommand(tree)].find(({ words }) => words.join(' ') === command)
  return found === undefined ? [] : exitCodesOf(await found.leaf.load())
}

function pathsOf({ asks, path }: Case): readonly string[] {
  if (path !== undefined) return [path]
  if (asks === 'refresh' || asks === 'exchange') return ['/oauth/token']
  return ['/oauth/grants', '/contacts/*', '/domains/*']
}

/** Once the fault is over, the next command works; or it stops, because nobody knows whether a token was used. */
async function expectNothingLost(one: Case, row: FaultRow, client: Client, sandbox: Sandbox): Promise<void> {
  const after = await client.run(['imports', 'list', '--limit', '1'])
  const state = (await control(sandbox, 'GET', 'state')) as Record<string, number>
  const words = `${one.command} after "${row.name}": ${after.stderr}`
  expect(state, words).toMatchObject({ reuse_detections: 0, grants_revoked: 0 })
  const stopped = one.asks === 'refresh' && row.refreshUnknown === true
  expect(after.code, words).toBe(stopped ? 4 : 0)
  if (stopped) expect(after.stderr).toContain('has no known outcome')
}

function expectedExit(one: Case, row: FaultRow): number {
  // Any answer at all tells doctor that name, route, TLS and proxy work.
  if (one.command === 'doctor') return NO_ANSWER.includes(row.name) ? 7 : 0
  if (row.exits === 'usual' || one.asks === 'nothing') return one.usual ?? 0
  const [get, post, refresh, exchange] = row.exits
  const exit = { get, post, refresh, exchange }[one.asks]
  // One claim that is refused must not hide the others of the list: it is shown as it was, with a warning.
  return one.command === 'claims list' && (exit === 5 || exit === 6) ? 0 : exit
}

describe.runIf(needs('posix'))('a hostile service', () => {
  test('the test of hostile services covers every command of the program', () => {
    const all = [...everyCommand(tree)]
      .map(({ words }) => words.join(' '))
      .filter((words) => words !== 'sandbox')
    expect(CASES.map(({ command }) => command).toSorted()).toEqual(all.toSorted())
  })

  const table: string[] = []

  test.each(FAULTS)('if the service answers with $name, every command ends as documented', async (row) => {
    const ends = new Map<Case, Ran>()
    const local = CASES.filter(({ asks, clock }) => asks === 'nothing' && clock === undefined)
    const groups = [local, ...CASES.filter((one) => !local.includes(one)).map((one) => [one])]
    const meetGroup = async (cases: readonly Case[]) => {
      const met = await meet(cases, row)
      cases.forEach((one, at) => {
        ends.set(one, met[at] as Ran)
      })
    }
    if (row.large) for (const cases of groups) await meetGroup(cases)
    else await Promise.all(groups.map(meetGroup))
    const all = CASES.map((one) => ({ one, ran: ends.get(one) as Ran }))
    const codes = all.map(({ ran }) => String(ran.code).padStart(3)).join('')
    const longest = Math.round(Math.max(...all.map(({ ran }) => ran.ms)))
    table.push(`${row.name.padEnd(28)}${codes}  ${longest} ms`)
    const wrong = all
      .filter(({ one, ran }) => ran.code !== expectedExit(one, row))
      .map(({ one, ran }) => ({
        command: one.command,
        exit: ran.code,
        expected: expectedExit(one, row),
        stderr: ran.stderr,
      }))
    expect(wrong).toEqual([])
    expect(longest, 'the longest took').toBeLessThan(LONGEST_MS)
  })

  test('the results of the hostile services are printed', () => {
    console.log(`${''.padEnd(28)}${CASES.map((_, at) => String(at + 1).padStart(3)).join('')}  longest
${table.join('\n')}
${CASES.map((one, at) => `${at + 1} ${one.command}`).join(' · ')}`)
    expect(table).toHaveLength(FAULTS.length)
  })
})
