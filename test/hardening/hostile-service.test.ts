import fc from 'fast-check'
import { expect, test } from 'vitest'
import { collectCommandErrorCodes } from '../../src/commands/commands.ts'
import { walkCommands } from '../../src/commands/definition.ts'
import { commandTree } from '../../src/commands/tree.ts'
import { type HttpResponse, HttpTransportError } from '../../src/context.ts'
import { ERRORS } from '../../src/errors.ts'
import { invalidResponseError } from '../../src/service/problems.ts'
import {
  createFakeContext,
  createFakeOutput,
  type FakeContext,
  jsonResponse,
  textResponse,
} from '../fake-context.ts'
import { run } from '../run.ts'
import { withEffects } from '../session/sandbox-session.ts'
import { expectCalmFailure, type Ran } from './in-process-client.ts'

const GRANT = {
  id: 'g-1',
  client_id: '8f3a0a3e-6d2b-4e0e-8a54-1c8e0f3c2b02',
  scopes: ['emails:send'],
  resource: null,
  created_at: '2026-11-01 10:00:00.123456+00',
  revoked_at: null,
  revoked_reason: null,
  client: { name: 'Tool', logo_uri: 'https://logos.example/1.png' },
}
const IMPORT = {
  object: 'contact_import',
  id: 'i-1',
  status: 'completed',
  created_at: '2026-11-01 10:00:00.1+00',
  completed_at: '2026-11-01 10:05:00+00',
  counts: { total: 10, created: 5, updated: 2, skipped: 2, failed: 1 },
}
const CLAIM = {
  object: 'domain_claim',
  id: '1b2c3d4e-0000-4000-8000-000000000001',
  name: 'example.com',
  status: 'completed',
  domain_id: 'd5f1a5a0-7c39-4a8e-9c1a-2f6b1f6f0c11',
  region: 'us-east-1',
  record: { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' },
  blocked_reason: null,
  failure_reason: null,
  created_at: '2026-11-19 10:00:00+00',
  expires_at: '2026-11-26 10:00:00+00',
}
const list = (item: object) => ({ object: 'list', has_more: false, data: [item, item] })

/** Every command that prints data of the service, with a valid response for it. */
const COMMANDS: readonly { readonly line: string; readonly answer: object }[] = [
  { line: 'auth status --online', answer: list(GRANT) },
  { line: 'grants list', answer: list(GRANT) },
  { line: 'grants list --state revoked --limit 1', answer: list(GRANT) },
  { line: 'imports list --all', answer: list(IMPORT) },
  { line: 'imports list --before x --limit 5', answer: list(IMPORT) },
  { line: 'imports get i-1', answer: IMPORT },
  { line: 'imports watch i-1 --timeout 20', answer: IMPORT },
  { line: 'claims create example.com', answer: CLAIM },
  { line: `claims get ${CLAIM.domain_id}`, answer: CLAIM },
  { line: `claims record ${CLAIM.domain_id}`, answer: CLAIM },
  { line: `claims verify ${CLAIM.domain_id} --no-check`, answer: CLAIM },
  { line: `claims watch ${CLAIM.domain_id} --timeout 20`, answer: CLAIM },
  { line: 'claim example.com --no-check --timeout 20', answer: CLAIM },
]

const KEY = 're_Kq81LmxV20pZt7Yw'

interface Answered {
  readonly line: string
  readonly respond: () => HttpResponse
  readonly terminal?: boolean
}

async function perform(world: FakeContext, { line, respond, terminal }: Answered): Promise<Ran> {
  const size = terminal ? { columns: 80 } : undefined
  const stdout = createFakeOutput(size)
  // stderr isn't a terminal: on a terminal, the spinner prints escape sequences.
  const stderr = createFakeOutput()
  const http = { send: async () => respond(), close: async () => {} }
  const words = line.split(' ')
  const code = await run(words, withEffects(world, { stdout, stderr, http }))
  return { words, code, stdout: stdout.text, stderr: stderr.text, ms: 0 }
}

const world = () =>
  createFakeContext({
    environment: { noColor: true, settings: { base_url: 'http://127.0.0.1:1' }, apiKey: KEY },
  })

/** Checks what holds for every command: at most one error, a documented exit code, no secret, no harmful characters. */
async function expectPromised(ran: Ran): Promise<void> {
  expectCalmFailure(ran)
  expect(ran.stdout + ran.stderr).not.toContain(KEY)
  const [command] = [...walkCommands(commandTree)].filter(
    ({ path }) => path.join(' ') === ran.words.slice(0, path.length).join(' '),
  )
  const errors = command === undefined ? [] : collectCommandErrorCodes(await command.leaf.load())
  expect([0, ...errors.map((code) => ERRORS[code][1])], ran.words.join(' ')).toContain(ran.code)
}

const fail = (kind: HttpTransportError['kind'], sent: 'no' | 'maybe') => (): HttpResponse => {
  throw new HttpTransportError(kind, sent, 'it broke')
}
const tooLong = (): HttpResponse => ({
  ...textResponse(200, '{'),
  brokenBy: invalidResponseError('it is larger than 8 MiB', 200),
})

test.each<[string, number, () => HttpResponse]>([
  ['401', 4, () => jsonResponse(401, { message: `bad key ${KEY}` })],
  ['403', 6, () => jsonResponse(403, { name: 'insufficient_scope' })],
  ['404', 5, () => textResponse(404, '<h1>nginx</h1>')],
  ['422 with control characters', 6, () => jsonResponse(422, { message: '\u001b[2J\u202ebad' })],
  ['an OAuth error', 6, () => jsonResponse(400, { error: 'invalid_request' })],
  ['429', 7, () => jsonResponse(429, {})],
  ['429, Retry-After 1e400', 7, () => jsonResponse(429, {}, { 'retry-after': '9'.repeat(400) })],
  ['502 with HTML', 7, () => textResponse(502, '<h1>Bad Gateway</h1>')],
  ['503, Retry-After 1', 7, () => jsonResponse(503, {}, { 'retry-after': '1' })],
  ['a redirect', 7, () => textResponse(307, '', { location: 'http://127.0.0.2:9/steal' })],
  ['HTML labeled as JSON', 7, () => textResponse(200, '<p>hello', { 'content-type': 'application/json' })],
  ['an empty body', 7, () => textResponse(200, '')],
  ['a truncated body', 7, () => textResponse(200, '{"object":"list","has_more":fa')],
  ['a body that is too long', 7, tooLong],
  ['a connection reset', 7, fail('reset', 'maybe')],
  ['no response', 7, fail('timeout', 'maybe')],
  ['a refused connection', 7, fail('connect', 'no')],
  ['a protocol error', 7, fail('protocol', 'maybe')],
])('if a request gets %s, commands that print data of the service exit %i', async (_what, exit, respond) => {
  for (const { line } of COMMANDS) {
    const ran = await perform(world(), { line, respond })
    await expectPromised(ran)
    expect(ran.code, `${line}\n${ran.stderr}`).toBe(exit)
  }
})

test('commands accept a valid JSON response that the service labels as HTML', async () => {
  for (const { line, answer } of COMMANDS) {
    const respond = () => textResponse(200, JSON.stringify(answer), { 'content-type': 'text/html' })
    expect((await perform(world(), { line, respond })).code, line).toBe(0)
  }
})

test('if a response has JSON nested 100,000 levels deep, the commands that print data of the service exit 7', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  for (const { line, answer } of COMMANDS) {
    const respond = () => textResponse(200, JSON.stringify(answer).replace(/\}$/, `,"deep":${deep}}`))
    const ran = await perform(world(), { line, respond })
    await expectPromised(ran)
    expect(ran.code, `${line}\n${ran.stderr}`).toBe(7)
  }
})

/** Generates any JSON value, also numbers out of range and hostile strings. */
const anything: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -1, 1e308, '', [], {}, [[]], [null], { length: 3 }),
  fc.constantFrom('\u001b]0;x\u0007', '\u202egpj', '__proto__', '2026-13-45 99:99:99+00', 'x'.repeat(500)),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.double(),
  fc.jsonValue({ maxDepth: 3 }),
)

/** Lists the paths of all keys of a response, including those of nested objects. */
function places(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, below]) => [[...path, key], ...places(below, [...path, key])])
}

/** Returns a copy of a response with another value at a path; `undefined` removes the key. */
function put(answer: unknown, path: readonly string[], value: unknown): unknown {
  const copy = structuredClone(answer)
  let at = copy as Record<string, unknown> | undefined
  for (const key of path.slice(0, -1)) at = at?.[key] as Record<string, unknown> | undefined
  if (typeof at === 'object' && at !== null) at[path.at(-1) ?? ''] = value
  return copy
}

const exchange = fc.constantFrom(...COMMANDS).chain(({ line, answer }) => {
  const change = fc.tuple(fc.constantFrom(...places(answer)), fc.option(anything, { nil: undefined }))
  const changed = fc
    .array(change, { minLength: 1, maxLength: 4 })
    .map((all) =>
      JSON.stringify(all.reduce((now, [path, value]) => put(now, path, value), answer as unknown)),
    )
  return fc.record({
    line: fc
      .constantFrom('table', 'json', 'jsonl', 'tsv')
      .map((format) => (line.startsWith('claims record') ? line : `${line} --format ${format}`)),
    terminal: fc.boolean(),
    status: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(200, 201) },
      { weight: 2, arbitrary: fc.integer({ min: 200, max: 599 }) },
    ),
    body: fc.oneof(
      { weight: 6, arbitrary: changed },
      { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.stringify(value)) },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 200 }) },
      { weight: 1, arbitrary: fc.nat(200).map((length) => JSON.stringify(answer).slice(0, length)) },
    ),
  })
})

test('a command that gets a random response ends with a documented exit code, at most one error, and harmless output', async () => {
  await fc.assert(
    fc.asyncProperty(exchange, async ({ line, terminal, status, body }) => {
      await expectPromised(
        await perform(world(), { line, terminal, respond: () => textResponse(status, body) }),
      )
    }),
    { numRuns: 500 },
  )
}, 60_000)
