import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { run } from '../../src/cli.ts'
import {
  createFakeContext,
  createFakeOutput,
  type FakeContext,
  jsonResponse,
  textResponse,
} from '../fake-context.ts'
import { withEffects } from '../session/sandbox-session.ts'
import { expectCalmFailure, harmfulIn, type Ran } from './in-process-client.ts'

/** Bodies in all; each goes to one command in one format. Set MAILCLAIM_TEST_BODIES for a longer run. */
const BODIES = 6000

const GRANT = {
  id: '2c0b1d34-0c5b-4d71-9c5e-7e7a3f1f0a01',
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
  id: '479e3145-dd38-4932-8c0c-e58b548c9e76',
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

/** Every command that shows what the service sent, with an answer that nothing is wrong with. */
const COMMANDS: readonly { readonly words: readonly string[]; readonly answer: object }[] = [
  { words: ['grants', 'list'], answer: list(GRANT) },
  { words: ['grants', 'list', '--state', 'revoked', '--limit', '1'], answer: list(GRANT) },
  { words: ['imports', 'list', '--all'], answer: list(IMPORT) },
  { words: ['imports', 'list', '--before', 'x', '--limit', '5'], answer: list(IMPORT) },
  { words: ['imports', 'get', IMPORT.id], answer: IMPORT },
  { words: ['imports', 'watch', IMPORT.id, '--timeout', '20'], answer: IMPORT },
  { words: ['claims', 'create', 'example.com'], answer: CLAIM },
  { words: ['claims', 'get', CLAIM.domain_id], answer: CLAIM },
  {
    words: [
      'claims',
      'record',
      CLAIM.domain_id,
      '--zone',
      'example.com',
      '--provider',
      'route53',
      '--only-new',
    ],
    answer: CLAIM,
  },
  { words: ['claims', 'verify', CLAIM.domain_id, '--no-check'], answer: CLAIM },
  { words: ['claims', 'watch', CLAIM.domain_id, '--timeout', '20'], answer: CLAIM },
  { words: ['claim', 'example.com', '--no-check', '--timeout', '20'], answer: CLAIM },
]
const FORMATS = ['table', 'json', 'jsonl', 'csv', 'tsv'] as const

/** A value of any kind, hostile texts among them. */
const anything: fc.Arbitrary<unknown> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom<unknown>(null, true, false, 0, -1, 1e308, '', [], {}, [[]], [null], {
      length: 3,
    }),
  },
  { weight: 3, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '\u001b]0;x\u0007',
      '\u202egpj',
      '__proto__',
      '2026-13-45 99:99:99+00',
      'x'.repeat(500),
    ),
  },
  { weight: 2, arbitrary: fc.double() },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
)

/** Every place in an answer: the path to each key, those of nested objects included. */
function places(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, below]) => [[...path, key], ...places(below, [...path, key])])
}

/** The answer with something else at one place; `undefined` takes it away. */
function put(answer: unknown, [key = '', ...rest]: readonly string[], value: unknown): unknown {
  if (Array.isArray(answer))
    return answer.map((item, at) =>
      String(at) === key ? (rest.length === 0 ? value : put(item, rest, value)) : item,
    )
  const fields = { ...(answer as Record<string, unknown>) }
  if (rest.length > 0) fields[key] = put(fields[key], rest, value)
  else if (value === undefined) delete fields[key]
  else fields[key] = value
  return fields
}

/** A command, and a body that is wrong somewhere or everywhere. */
const exchange = fc.constantFrom(...COMMANDS).chain(({ words, answer }) =>
  fc.record({
    words: fc.constant(words),
    format: fc.constantFrom(...FORMATS),
    terminal: fc.boolean(),
    status: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(200, 201) },
      { weight: 2, arbitrary: fc.integer({ min: 200, max: 599 }) },
    ),
    body: fc.oneof(
      // One to four places with a wrong value, or nothing at all.
      {
        weight: 6,
        arbitrary: fc
          .array(fc.tuple(fc.constantFrom(...places(answer)), fc.option(anything, { nil: undefined })), {
            minLength: 1,
            maxLength: 4,
          })
          .map((changes) =>
            JSON.stringify(
              changes.reduce<unknown>((changed, [path, value]) => put(changed, path, value), answer),
            ),
          ),
      },
      { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.stringify(value)) },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 200 }) },
      // An answer that breaks off.
      { weight: 1, arbitrary: fc.nat(200).map((length) => JSON.stringify(answer).slice(0, length)) },
    ),
  }),
)

type Exchange = typeof exchange extends fc.Arbitrary<infer T> ? T : never

async function perform(
  world: FakeContext,
  profile: string,
  { words, format, terminal, status, body }: Exchange,
): Promise<Ran> {
  const size = terminal ? { columns: 80 } : undefined
  const stdout = createFakeOutput(size)
  const stderr = createFakeOutput(size)
  const http = {
    send: async () => textResponse(status, body, { 'content-type': 'application/json' }),
    close: async () => {},
  }
  const argv = [...words, '--profile', profile, ...(words.includes('--provider') ? [] : ['--format', format])]
  const context = withEffects(world, { stdout, stderr, http })
  const code = await run(argv, context)
  return { words: argv, code, stdout: stdout.text, stderr: stderr.text, ms: 0 }
}

describe('bodies of any kind', () => {
  test(`each of ${BODIES} random bodies ends with a documented exit code, one message, and harmless output`, async () => {
    const world = createFakeContext({
      environment: {
        settings: { base_url: 'http://127.0.0.1:1' },
        apiKey: 'secret-key-1',
        noColor: true,
        term: 'dumb',
      },
    })
    const runs = Number(process.env['MAILCLAIM_TEST_BODIES'] ?? BODIES)
    const ends = new Map<number, number>()
    let count = 0
    await fc.assert(
      fc.asyncProperty(exchange, async (one) => {
        // A profile of its own: what one claim left in the ledger is not there for the next.
        const ran = await perform(world, `test-${count++}`, one)
        ends.set(ran.code, (ends.get(ran.code) ?? 0) + 1)
        // The record may be for a name that is not in the zone that was named on the command line.
        expect([0, 4, 5, 6, 7, 8, 9, ...(ran.words.includes('--zone') ? [2] : [])]).toContain(ran.code)
        expectCalmFailure(
          one.format === 'csv' ? { ...ran, stdout: ran.stdout.replaceAll('\r\n', '\n') } : ran,
        )
        expect(ran.stdout + ran.stderr).not.toContain('secret-key-1')
        if (one.format === 'json' && ran.code === 0 && !ran.words.includes('--provider'))
          JSON.parse(ran.stdout)
      }),
      { numRuns: runs },
    )
    console.log(
      `${runs} bodies; exit codes: ${[...ends]
        .toSorted(([a], [b]) => a - b)
        .map(([code, count]) => `${code}: ${count}`)
        .join(', ')}`,
    )
  }, 120_000)
})

describe('a list', () => {
  const page = (more: boolean, ...ids: (string | null)[]) => ({
    object: 'list',
    has_more: more,
    data: ids.map((id) => ({ ...IMPORT, id })),
  })
  test.each([
    ['sends the same page for ever', [page(true, 'a', 'b')]],
    ['goes round in a circle', [page(true, 'a'), page(true, 'b')]],
    ['promises more and sends nothing', [page(true)]],
    ['goes on from an item without an id', [page(true, 'a', null)]],
  ])('a list that %s ends with exit 7, with everything before it printed', async (_what, pages) => {
    let asked = 0
    const context = createFakeContext({
      environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'k' },
      respond: () => jsonResponse(200, pages[asked++ % pages.length]),
    })
    expect(await run(['imports', 'list', '--all', '--format', 'jsonl'], context)).toBe(7)
    expect(asked).toBeLessThan(5)
    expect(context.stderr.text).toContain('the list says that it goes on')
    const ids = new Set(pages.flatMap(({ data }) => data.map(({ id }) => id)))
    expect(context.stdout.text.split('\n').length - 1).toBeGreaterThanOrEqual(ids.size)
  })

  test.each([[{}], [7], [null], ['']])(
    'a list that is cut after an item with the id %j prints no command for the next page, and succeeds',
    async (id) => {
      const context = createFakeContext({
        environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'k' },
        respond: () => jsonResponse(200, page(false, 'a', id as string, 'c')),
      })
      expect(await run(['imports', 'list', '--limit', '2'], context)).toBe(0)
      expect(context.stderr.text).toBe('')
    },
  )

  test('an endless list is read only up to --limit', async () => {
    let next = 0
    const context = createFakeContext({
      environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'k' },
      respond: () => jsonResponse(200, page(true, ...Array.from({ length: 100 }, () => `id-${next++}`))),
    })
    expect(await run(['imports', 'list', '--limit', '250', '--format', 'jsonl'], context)).toBe(0)
    expect(context.stdout.text.trim().split('\n')).toHaveLength(250)
    expect(context.requests.length).toBeLessThan(5)
  })
})

describe('a page of the metadata', () => {
  const HERE = 'http://127.0.0.1:1'
  const ELSEWHERE = 'https://api.example.com'
  test.each([
    ['javascript:alert(1)', HERE],
    ['file:///etc/passwd', HERE],
    ['http://evil.example/authorize', HERE],
    ['http://evil.localhost/authorize', HERE],
    ['not an address', HERE],
    ['https://user:pass@evil.example/authorize', ELSEWHERE],
  ])('metadata that send the browser to %s from %s are refused', async (endpoint, baseUrl) => {
    const context = createFakeContext({
      environment: { settings: { base_url: baseUrl, client_id: 'c', store: 'file' } },
      respond: ({ url }) =>
        jsonResponse(200, {
          issuer: url.origin,
          authorization_endpoint: endpoint,
          token_endpoint: 'http://evil.example/token',
        }),
    })
    expect(await run(['login'], context)).toBe(3)
    expect(context.opened).toEqual([])
    expect(context.stderr.text).toContain('authorization endpoint')
    expect(context.stderr.text).not.toContain('user:pass')
    expect(harmfulIn(context.stderr.text)).toEqual([])
  })
})
