import { describe, expect, it, onTestFinished, test } from 'vitest'
import { createTransport } from '../../src/service/transport.ts'
import { createFakeContext, jsonResponse } from '../fake-context.ts'
import { run } from '../run.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import { control } from '../sandbox/talk.ts'

/** Creates a sandbox, and functions that run commands and set faults there. */
async function sandboxWith(options: { imports?: number; grants?: number }) {
  const sandbox = await sandboxForTest(options)
  const http = createTransport({})
  onTestFinished(() => http.close())
  return {
    async type(line: string, terminal?: number, onWrite = () => {}) {
      const context = createFakeContext({
        http,
        ...(terminal === undefined ? {} : { terminal: { columns: terminal } }),
        environment: { settings: { base_url: sandbox.baseUrl }, apiKey: sandbox.apiKey },
      })
      const { stdout } = context
      const write = stdout.write.bind(stdout)
      stdout.write = (text) => {
        onWrite()
        return write(text)
      }
      const exit = await run(line.split(' '), context)
      return { exit, out: context.stdout.text, err: context.stderr.text }
    },
    async fault(body: object) {
      expect((await control(sandbox, 'POST', '/faults', body)).status).toBeLessThan(300)
    },
    apiKey: sandbox.apiKey,
  }
}
const lines = (text: string) => text.trimEnd().split('\n')
const ids = (jsonl: string) => lines(jsonl).map((line) => JSON.parse(line).id as string)

describe('a list of the service', () => {
  it('imports list prints ten imports by default, and a hint with the command for the next page', async () => {
    const { type } = await sandboxWith({ imports: 25 })
    const first = await type('imports list --format jsonl')
    expect(ids(first.out)).toHaveLength(10)
    const next = /^hint: there are more: mailclaim (.*)$/m.exec(first.err)?.[1] ?? ''
    expect(next).toBe(`imports list --format jsonl --after ${ids(first.out).at(-1)}`)

    const all = [...ids(first.out)]
    const second = await type(next)
    all.push(...ids(second.out))
    const third = await type(/mailclaim (.*)$/m.exec(second.err)?.[1] ?? '')
    all.push(...ids(third.out))
    expect(third.err).toBe('')
    expect(new Set(all).size).toBe(25)
    expect(all).toEqual(ids((await type('imports list --all --format jsonl')).out))
  })

  describe('whose second page fails', () => {
    /** Runs a command on a list of 250 imports whose second page fails. */
    async function broken(line: string, status = 503) {
      const { type, fault } = await sandboxWith({ imports: 250 })
      const all = ids((await type('imports list --all --format jsonl')).out)
      await fault({ kind: 'status', status, path: '/contacts/*', skip: 1, count: 10 })
      return { all, ...(await type(line)) }
    }

    it.each([['imports list --limit=230 --format tsv', 'imports list --format tsv --limit 130']])(
      'if the second page fails, mailclaim %s hints at the command for the remaining items',
      async (line, rest) => {
        const { all, exit, out, err } = await broken(line)
        expect([exit, lines(out).length]).toEqual([7, line.includes('tsv') ? 101 : 100])
        expect(err).toMatch(/^error: the service failed.*; the list ends after 100 items$/m)
        expect(err).toContain(`hint: for the rest: mailclaim ${rest} --after ${all[99]}\n`)
      },
    )

    it.each([404, 418, 422])('imports list suggests no --after if page 2 gets HTTP %i', async (status) => {
      const { err } = await broken('imports list --all --format tsv', status)
      expect(err).toContain('; the list ends after 100 items\n')
      expect(err).not.toContain('--after')
    })

    it('if the second page fails, `imports list --json` prints no hint with a command for the remaining items', async () => {
      const { err } = await broken('imports list --all --json')
      expect(JSON.parse(err).error.message).toContain('the list ends after 100 items')
      expect(err).not.toContain('for the rest')
    })
  })

  it('grants list --before prints at most one page: with --limit 150, the 100 items in front of the cursor, in the order of the list', async () => {
    const { type } = await sandboxWith({ grants: 250 })
    const all = ids((await type('grants list --format jsonl')).out)
    const back = await type(`grants list --format jsonl --limit 150 --before ${all[200]}`)
    expect(ids(back.out)).toEqual(all.slice(100, 200))
    expect(back.err).toContain(`--before ${all[100]}`)
  })

  it('grants list --state revoked prints only revoked grants, and --limit is the maximum number of these', async () => {
    const { type } = await sandboxWith({ grants: 40 })
    const every = lines((await type('grants list --format jsonl')).out).map((line) => JSON.parse(line))
    const revoked = every.filter((grant) => grant.revoked_at !== null)
    expect(revoked.length).toBeGreaterThan(2)
    expect(ids((await type('grants list --state revoked --format jsonl')).out)).toEqual(
      revoked.map((grant) => grant.id),
    )
    expect(ids((await type('grants list --state revoked --limit 2 --format jsonl')).out)).toEqual(
      revoked.slice(0, 2).map((grant) => grant.id),
    )
  })

  it('`grants list` shows a revoked grant as "revoked" in TSV, and with the time of revocation in a table', async () => {
    const { type } = await sandboxWith({ grants: 40 })
    const states = async (state: string, format: string) =>
      new Set(
        lines((await type(`grants list --state ${state} --fields state --format ${format}`)).out).slice(1),
      )
    expect(await states('revoked', 'tsv')).toEqual(new Set(['revoked']))
    expect(await states('active', 'tsv')).toEqual(new Set(['active']))
    for (const text of await states('revoked', 'table')) expect(text).toMatch(/^revoked \d{4}-\d\d-\d\d /)
  })
})

describe('the columns of imports list', () => {
  const COUNTS = ['Total', 'Created', 'Updated', 'Skipped', 'Failed']

  it('imports list shows every column on a terminal of 150 columns, without a hint', async () => {
    const { type } = await sandboxWith({ imports: 3 })
    const { out, err } = await type('imports list --no-color', 150)
    expect(lines(out)[0]?.split(/ {2,}| (?=[A-Z])/)).toEqual([
      ...['Id', 'Status', ...COUNTS, 'Created at', 'Completed at'],
    ])
    expect(err).toBe('')
  })

  it('`imports list` on a terminal of 110 columns hints at the column that it left out', async () => {
    const { type } = await sandboxWith({ imports: 10 })
    const { out, err } = await type('imports list --no-color', 110)
    for (const title of COUNTS) expect(lines(out)[0]).toContain(title)
    expect(err).toBe('hint: for completed_at, use --fields or a wider window\n')
    // For an incomplete list, the only hint is the command that continues.
    expect((await type('imports list --no-color --limit 2', 110)).err).toMatch(
      /^hint: there are more:\s+mailclaim .*\n$/,
    )
    expect((await type('imports list --no-color --quiet', 80)).err).toBe('')
  })

  it('imports list --format table in a pipe shows times to the second, in UTC', async () => {
    const { type } = await sandboxWith({ imports: 1 })
    expect((await type('imports list --format table')).out).toMatch(/ \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/)
  })
})

it.each([
  ['imports list --limit 0', 2],
  ['imports list --all --limit 5', 2],
  ['imports list --status done', 2],
  ['grants list --state gone', 2],
  ['imports get ..', 2],
  ['imports get', 2],
  ['imports get no-such-import', 5],
  ['imports list --after no-such-import', 6],
])('mailclaim %s fails with exit %d and prints nothing on stdout', async (line, exit) => {
  const { type } = await sandboxWith({ imports: 3, grants: 3 })
  const result = await type(line)
  expect(result.exit).toBe(exit)
  expect(result.out).toBe('')
  expect(result.err).toMatch(/^error: /)
})

test('`grants list --json` writes 100,000 items in pieces of less than 10,000 characters', async () => {
  const pages = 1000
  let page = 0
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => {
      page += 1
      const data = Array.from({ length: 100 }, (_, at) => ({ id: `${page}-${at}`, scopes: ['a'] }))
      return jsonResponse(200, { object: 'list', has_more: page < pages, data })
    },
  })
  let bytes = 0
  let most = 0
  const write = async (text: string) => {
    bytes += text.length
    most = Math.max(most, text.length)
  }
  const stdout = { isTTY: false, columns: undefined, write }
  expect(await run(['grants', 'list', '--json'], { ...context, stdout })).toBe(0)
  expect(bytes).toBeGreaterThan(3_000_000)
  // A page has about 3 kB: no write contains more than a few.
  expect(most).toBeLessThan(10_000)
})
