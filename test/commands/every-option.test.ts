import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { everyCommand, takesValue } from '../../src/cli/line.ts'
import { run } from '../../src/cli.ts'
import { type CommandDefinition, longFlag, type OptionDefinition } from '../../src/commands/definition.ts'
import { globalOptions } from '../../src/commands/program.ts'
import { type HttpRequest, type HttpResponse, TransportError } from '../../src/context.ts'
import { CliError } from '../../src/errors.ts'
import { FORMATS } from '../../src/settings/settings.ts'
import { createFakeDns, smallWorld } from '../dns/fake-dns.ts'
import { createMemoryEtcd } from '../etcd/memory-etcd.ts'
import {
  createFakeClock,
  createFakeContext,
  type FakeClock,
  type FakeContext,
  type FakeOutput,
  jsonResponse,
} from '../fake-context.ts'
import { createFakeService, IMPORT_ID } from './fake-service.ts'

/**
 * Every command of the tree with every option: valid, invalid, empty, repeated, without what it needs and with what it can't
 * be used with; every format; and `--fields` in each of them. What a run does is compared with what the command's help says.
 */

interface Ran {
  readonly words: readonly string[]
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

interface RunOptions {
  terminal?: { columns: number }
  respond?: (request: HttpRequest) => HttpResponse
  /** Someone who has never used the program. */
  stranger?: true
  interrupted?: true
  /** Where the session is, if it isn't in a file. */
  etcd?: ReturnType<typeof createMemoryEtcd>
}

const BASE = 'http://127.0.0.1:1'

/** A port that nobody listens on. */
const freePort = await new Promise<string>((found) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo
    server.close(() => found(`${port}`))
  })
})

/** A clock on which pauses pass at once, but a login waits for its browser. */
function createPatientClock(): FakeClock {
  const clock = createFakeClock()
  return {
    ...clock,
    sleep: (ms, signal) =>
      ms < 300_000
        ? clock.sleep(ms, signal)
        : new Promise((_resolve, reject) => {
            signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
          }),
  }
}

/** A file, or a directory where there is no data. */
interface Entry {
  readonly path: string
  readonly mode: number
  readonly data?: Buffer
  /** Changes whenever the file does. */
  state: string
}

/** Runs commands as someone who is signed in and has a claim in progress, from the same files each time. */
async function createRunner(): Promise<(words: readonly string[], options?: RunOptions) => Promise<Ran>> {
  const { directories } = createFakeContext()
  const homes = {
    own: join(dirname(directories.state), 'own'),
    stranger: join(dirname(directories.state), 'stranger'),
  }
  for (const home of Object.values(homes)) mkdirSync(home, { mode: 0o700 })
  let files: readonly Entry[] | undefined
  const etcd = createMemoryEtcd()

  async function type(words: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const home = options.stranger ? homes.stranger : homes.own
    const context = createPerson(home, words[1] === 'rekey' ? { ...options, etcd } : options)
    // The sandbox runs until someone ends it.
    const stdout: FakeOutput = {
      ...context.stdout,
      text: '',
      async write(text) {
        // What comes before the document is for the program that shows it to a person.
        if (text.startsWith('{"event":"authorization"')) void approve(JSON.parse(text).url)
        else await context.stdout.write(text)
        if (words[0] === 'sandbox') context.interrupt()
      },
    }
    const code = await run(words, { ...context, stdout })
    if (files !== undefined) restore(home, options.stranger ? [] : files)
    const printed = ({ text }: FakeOutput) =>
      text.replaceAll(home, 'HOME').replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    return { words, code, stdout: printed(context.stdout), stderr: printed(context.stderr) }
  }

  for (const [words, options] of [
    [['login', '--quiet'], { stranger: true, etcd }],
    [['login', '--quiet']],
    [['claims', 'create', 'example.com', '--quiet']],
    [['config', 'set', 'http-timeout', '20', '--quiet']],
  ] as const) {
    const { code, stderr } = await type(words, options)
    expect(code, stderr).toBe(0)
  }
  restore(homes.stranger, [])
  files = readEntries(homes.own)
  return type
}

function readEntries(home: string): Entry[] {
  return readdirSync(home, { recursive: true, encoding: 'utf8' }).map((path) => {
    const stats = statSync(join(home, path))
    const entry = { path, mode: stats.mode, state: stateOf(stats) }
    return stats.isDirectory() ? entry : { ...entry, data: readFileSync(join(home, path)) }
  })
}

// Times alone are too coarse: a file may be replaced twice in the same tick.
const stateOf = ({ ino, size, mtimeMs }: Stats) => `${ino} ${size} ${mtimeMs}`

/** Puts the files back that a run has changed; most commands only read. */
function restore(home: string, entries: readonly Entry[]): void {
  const known = new Set(entries.map(({ path }) => path))
  for (const path of readdirSync(home, { recursive: true, encoding: 'utf8' }))
    if (!known.has(path)) rmSync(join(home, path), { recursive: true, force: true })
  for (const entry of entries) {
    const place = join(home, entry.path)
    const stats = statSync(place, { throwIfNoEntry: false })
    if (stats !== undefined && stateOf(stats) === entry.state) continue
    if (entry.data !== undefined) writeFileSync(place, entry.data, { mode: entry.mode })
    else if (stats === undefined) mkdirSync(place, { mode: entry.mode })
    entry.state = stateOf(statSync(place))
  }
}

function createPerson(home: string, { terminal, respond, interrupted, etcd }: RunOptions): FakeContext {
  const clock = createPatientClock()
  const service = createFakeService()
  const shared = { store: 'etcd', store_url: 'https://etcd.example:2379' }
  const context = createFakeContext({
    home,
    clock,
    respond: respond ?? ((request) => etcd?.(request) ?? service(request)),
    programs: { check: async () => undefined, run: async () => ({ kind: 'exited', code: 0 }) },
    dns: createFakeDns(
      smallWorld(() => ['prefix=token']),
      clock,
    ),
    environment: {
      settings: {
        ...{ base_url: BASE, client_id: 'client-1', store: 'file', resolver: '192.0.2.53' },
        ...(etcd && shared),
      },
      storeKey: Buffer.alloc(32, 7).toString('base64'),
    },
    ...(terminal && { terminal }),
  })
  context.stdin.stream.end('api_key_0123456789\n')
  if (interrupted) context.interrupt()
  return {
    ...context,
    browser: { open: approve },
  }
}

/** Does what a person does in the browser. */
async function approve(address: string): Promise<void> {
  const { searchParams } = new URL(address)
  const redirect = new URL(searchParams.get('redirect_uri') ?? '')
  const state = searchParams.get('state') ?? ''
  redirect.search = `${new URLSearchParams({ code: 'code-1', state })}`
  await fetch(redirect)
}

/** What help says of a command, and the topics and `--fields` for it. */
interface Help {
  readonly exits: readonly number[]
  readonly formats: readonly string[]
  /** In JSON; in tables, TSV and CSV; and in JSON lines. */
  readonly json: readonly string[]
  readonly columns: readonly string[]
  readonly jsonl: readonly string[]
}

/** @param read what `help <command>`, `help options` or `<command> --fields` prints */
async function readHelp(
  words: readonly string[],
  read: (words: readonly string[]) => Promise<string>,
): Promise<Help> {
  const text = await read(['help', ...words])
  const section = (title: string) =>
    text
      .split(`\n${title}:\n`)[1]
      ?.split(/\n(?=\S)/)[0]
      ?.split('\n') ?? []
  const names = (title: string) =>
    section(title).flatMap((line) => line.split(/[,\s]+/).filter((name) => name !== ''))
  const json = names('Fields')
  const [events = ''] = section('Fields of an event (--format jsonl)')
  const [objects = ''] = events.trim().split(' (--fields')
  const jsonl =
    events === '' ? json : (await read([...words, '--fields', '--format', 'jsonl'])).trim().split('\n')
  if (events !== '')
    expect([...new Set(jsonl.map((field) => field.replace(/\..*/, '.*')))].join(', ')).toBe(objects)
  const globals = await read(['help', 'options'])
  return {
    exits: [...section('Exit codes (mailclaim help exit-codes)').join(' ').matchAll(/\d+/g)].map(Number),
    // The command's own description comes first, if it has one.
    formats:
      /--format <format> +output format \(([^;]+);/
        .exec(`${text}${globals}`.replaceAll(/\n {3,}/g, ' '))?.[1]
        ?.split(', ') ?? [],
    json,
    columns: [...json, ...names('Fields of tables, TSV and CSV only')],
    jsonl,
  }
}

/** Reads CSV (RFC 4180), quotes and line breaks in quotes included. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]]
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y
  while (cell.lastIndex < text.length) {
    const at = cell.lastIndex
    const [, quoted, bare = '', end] = cell.exec(text) ?? []
    if (end === undefined) throw new Error(`not CSV: ${JSON.stringify(text.slice(at, at + 80))}`)
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? bare)
    if (end !== ',') rows.push([])
  }
  return rows.slice(0, -1)
}

/** Every dotted path to a value, without the positions in lists. */
function pathsIn(value: unknown, path = ''): string[] {
  if (Array.isArray(value))
    return value.flatMap((entry) => (typeof entry === 'object' ? pathsIn(entry, path) : [path]))
  if (typeof value !== 'object' || value === null) return [path]
  return Object.entries(value).flatMap(([key, inner]) => pathsIn(inner, path === '' ? key : `${path}.${key}`))
}

const isBelow = (path: string, fields: readonly string[]) =>
  fields.some((field) => path === field || path.startsWith(`${field}.`) || field.startsWith(`${path}.`))

/** The items in JSON output: those of a list, or the object itself. */
function itemsIn(document: unknown): unknown[] {
  const { object, data } = document as { object?: string; data?: unknown[] }
  return object === 'list' && data !== undefined ? data : [document]
}

/** Checks what a run printed on stdout against its format, and that each field in it is one of those. */
function expectFormat({ words, stdout }: Ran, format: string, fields: readonly string[]): void {
  const place = words.join(' ')
  const unknown = (paths: readonly string[]) => paths.filter((path) => !isBelow(path, fields))
  if (stdout === '') return
  expect(stdout, place).toMatch(/\n$/)
  if (format === 'json') {
    const items = itemsIn(JSON.parse(stdout))
    expect(unknown(items.flatMap((item) => pathsIn(item))), place).toEqual([])
  } else if (format === 'jsonl') {
    const items = stdout
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line))
    expect(unknown(items.flatMap((item) => pathsIn(item))), place).toEqual([])
  } else if (format === 'tsv' || format === 'csv') {
    const rows =
      format === 'csv'
        ? parseCsv(stdout)
        : stdout
            .slice(0, -1)
            .split('\n')
            .map((line) => line.split('\t'))
    expect(unknown(rows[0] ?? []), place).toEqual([])
    expect(new Set(rows.map((row) => row.length)).size, place).toBe(1)
  }
}

/** What is true of every run: a documented exit code, and one error if it isn't 0, or the Ctrl-C that ends a sandbox. */
function expectDocumented({ words, code, stderr }: Ran, { exits }: Help): void {
  const place = `${words.join(' ')}\n${stderr}`
  expect(exits, place).toContain(code)
  expect(stderr, place).not.toMatch(/this is a bug|undefined|\[object/)
  if (code === 0 || words.includes('--verbose')) return
  if (words[0] === 'sandbox' && code === 130 && stderr === '') return
  const lines = stripVTControlCharacters(stderr).trimEnd().split('\n')
  if (words.includes('--json') || words.join(' ').includes('--format json')) {
    expect(JSON.parse(lines.at(-1) ?? ''), place).toMatchObject({
      error: { code: expect.any(String), exit: code },
    })
  } else {
    const errors = lines.filter((line) => line.startsWith('error: ')).length
    // The sandbox asks for its Ctrl-C.
    if (words[0] === 'sandbox' && code === 130) expect(errors, place).toBeLessThan(2)
    else expect(errors, place).toBe(1)
  }
}

function writeList(text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-list-'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  const file = join(directory, 'domains.txt')
  writeFileSync(file, text)
  return file
}

/** A valid value for each kind of argument and option value. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  claim: 'example.com',
  domain: 'example.com',
  id: IMPORT_ID,
  profile: 'default',
  setting: 'http-timeout',
  shell: 'bash',
  value: '20',
}
const VALUES: Readonly<Record<string, string>> = {
  command: 'publish',
  address: '192.0.2.53',
  days: '30',
  domain: 'example.com',
  file: writeList('example.com\n'),
  id: 'grant-1',
  label: 'mail',
  list: 'nothing',
  n: '1',
  name: 'default',
  path: '/mailclaim',
  port: freePort,
  scope: 'emails:send',
  seconds: '1',
  text: 'prefix=token',
  uri: 'http://127.0.0.1/callback',
  url: BASE,
  urls: BASE,
  zone: 'example.com',
}
/** Options without which a command does nothing. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = { 'claims publish': ['--with', 'publish'] }
/** Options that only mean something with another one, beyond what they declare. */
const TOGETHER: Readonly<Record<string, readonly string[]>> = {
  '--name': ['--value', 'prefix=token'],
  '--value': ['--name', 'example.com'],
  // Nobody opens the address.
  '--no-browser': ['--timeout', '1'],
}

/** The words of an option with a valid value, and with whatever it needs. */
function wordsOf(option: OptionDefinition, all: readonly OptionDefinition[]): string[] {
  const flag = longFlag(option.flags)
  const [, kind = ''] = /[<[](\w+)[>\]]/.exec(option.flags) ?? []
  const needed = all.find(({ flags }) => longFlag(flags) === option.needs?.split(' ')[0])
  const needs = option.needs?.includes(' ')
    ? option.needs.split(' ')
    : needed === undefined
      ? []
      : wordsOf(needed, all)
  const value =
    option.choices?.[0] ??
    (flag === '--name' ? 'example.com' : undefined) ??
    (kind === 'port' ? freePort : VALUES[kind])
  if (takesValue(option) && value === undefined)
    throw new Error(`add a valid value for ${option.flags} to this test`)
  return [flag, ...(takesValue(option) ? [value ?? ''] : []), ...needs, ...(TOGETHER[flag] ?? [])]
}

const USAGE = expect.objectContaining({ code: 2, stdout: '' })

interface Command {
  readonly words: readonly string[]
  readonly definition: CommandDefinition
  readonly options: readonly OptionDefinition[]
  /** The words of a usual run. */
  readonly line: readonly string[]
  readonly help: Help
  /** Runs the usual line and more words. */
  try(more: readonly string[], options?: RunOptions): Promise<Ran>
  /** Runs the usual line and words that are refused, before anything is read, sent or printed; returns the error. */
  refuse(more: readonly string[]): Promise<string>
  /** Runs any words, and checks what is true of every run. */
  run(words: readonly string[], options?: RunOptions): Promise<Ran>
}

async function load(name: string): Promise<Command> {
  const words = name.split(' ')
  const found = [...everyCommand()].find((one) => one.words.join(' ') === name)
  const definition = await found?.leaf.load()
  if (definition === undefined) throw new Error(`no command ${name}`)
  const type = await createRunner()
  const help = await readHelp(words, async (typed) => (await type(typed)).stdout)
  const given = (definition.arguments ?? []).map(({ syntax }) => {
    const value = ARGUMENTS[/\w+/.exec(syntax)?.[0] ?? '']
    if (value === undefined) throw new Error(`add a valid value for ${syntax} to this test`)
    return value
  })
  const line = [...words, ...given, ...(REQUIRED[name] ?? [])]
  const command: Command = {
    words,
    definition,
    options: [...(definition.options ?? []), ...globalOptions(definition)],
    line,
    help,
    async try(more, options = {}) {
      // These take the place of the claim.
      const alone = [...words, ...(REQUIRED[name] ?? [])]
      const start = more.includes('--name') || more.includes('--all') ? alone : line
      return command.run([...start, ...more], options)
    },
    async refuse(more) {
      const respond = () => {
        throw new Error(`${more.join(' ')} sent a request`)
      }
      const ran = await command.run([...line, ...more], { stranger: true, respond })
      expect(ran, ran.words.join(' ')).toMatchObject({ code: 2, stdout: '' })
      return ran.stderr
    },
    async run(typed, options) {
      const ran = await type(typed, options)
      expectDocumented(ran, help)
      return ran
    },
  }
  return command
}

const COMMANDS = [...everyCommand()].map(({ words }) => words.join(' '))

test.each(COMMANDS)('mailclaim %s prints each format with the fields that its help names', async (name) => {
  const command = await load(name)
  const { help, definition, words } = command
  expect(help.formats).toEqual([...FORMATS, ...(definition.output.formats ?? [])])
  const fieldsOf = (format: string) =>
    format === 'json' ? help.json : format === 'jsonl' ? help.jsonl : help.columns
  for (const format of help.formats) {
    for (const terminal of format === 'table' ? [undefined, { columns: 80 }] : [undefined]) {
      const ran = await command.try(['--format', format], terminal && { terminal })
      expect(ran.code, `${ran.words.join(' ')}\n${ran.stderr}`).not.toBe(2)
      expect(ran.stdout, ran.words.join(' ')).not.toBe('')
      expectFormat(ran, format, fieldsOf(format))
    }
    if (definition.output.formats?.includes(format)) {
      await command.refuse(['--format', format, '--fields', help.json[0] ?? ''])
      continue
    }
    const fields = fieldsOf(format)
    const listed = await command.run([...words, '--fields', '--format', format])
    expect(listed).toMatchObject(words[0] === 'sandbox' ? { code: 130 } : { code: 0, stderr: '' })
    const names = format === 'json' ? JSON.parse(listed.stdout) : listed.stdout.trimEnd().split('\n')
    expect(names.filter((one: string) => !isBelow(one, fields))).toEqual([])
    expect(fields.filter((one) => !names.includes(one))).toEqual([])
    for (const chosen of [[fields.at(-1) ?? '', fields[0] ?? ''], fields]) {
      const ran = await command.try(['--format', format, '--fields', chosen.join(',')])
      expect(ran.code, ran.stderr).not.toBe(2)
      expectFormat(ran, format, chosen)
      if (format === 'tsv' && ran.stdout !== '') expect(ran.stdout.split('\n')[0]).toBe(chosen.join('\t'))
    }
    const nope = ['--format', format, '--fields', `${fields[0]},nope.such`]
    // A field that the service may have added is looked for in the data.
    const { stderr: refusal } = definition.output.open
      ? await command.try(nope)
      : { stderr: await command.refuse(nope) }
    expect(refusal).toMatch(/--fields: unknown field \\?"nope\.such\\?".*the fields are /s)
    for (const field of fields) expect(refusal).toContain(field)
  }
  const json = await command.try(['--json'])
  expectFormat(json, 'json', help.json)
  expect(json.stdout, 'one document').toMatch(/^[^\n]+\n$/)
  const piped = await command.try([])
  expect(piped.stdout).toBe((await command.try(['--format', definition.output.usualFormat ?? 'tsv'])).stdout)
})

test.each(COMMANDS)(
  'mailclaim %s takes each of its options, and refuses what is wrong with one',
  async (name) => {
    const command = await load(name)
    const { options, definition } = command
    for (const option of options) {
      const flag = longFlag(option.flags)
      // Only a person can approve a sign-in with the browser.
      const isForKeys = name === 'login' && flag === '--no-input'
      const valid = [...wordsOf(option, options), ...(isForKeys ? ['--with-api-key'] : [])]
      const isUsual = flag !== '--format' && flag !== '--fields'
      if (isUsual) {
        const once = await command.try(valid)
        expect(once.code, `${once.words.join(' ')}\n${once.stderr}`).not.toBe(2)
        // The last one counts, or all of them; the global options are the same everywhere.
        if (definition.options?.includes(option) || name === 'config list') {
          const twice = await command.try([...valid.slice(0, takesValue(option) ? 2 : 1), ...valid])
          expect(twice.code, twice.words.join(' ')).toBe(once.code)
        }
      }
      if (option.needs !== undefined) {
        const alone = await command.try(valid.slice(0, takesValue(option) ? 2 : 1))
        expect(alone).toEqual(USAGE)
        expect(alone.stderr).toContain(`${flag} needs ${option.needs}`)
      }
      for (const conflict of option.conflicts ?? []) {
        const other = options.find(({ flags }) => longFlag(flags) === conflict)
        if (other === undefined) throw new Error(`${flag} can't be used with ${conflict}, which there isn't`)
        const both = await command.refuse([...valid, ...wordsOf(other, options)])
        expect(both).toContain("can't be used together")
      }
      if (!takesValue(option)) continue
      for (const empty of [`${flag}=`, `${flag}= `]) {
        expect(await command.refuse([empty])).toContain(`${flag} is empty`)
      }
      const odd = '"ü \u0007'
      const expected = option.choices === undefined ? refusal(() => option.parse?.(odd, option.flags)) : 2
      const invalid = await command.try([...valid.slice(2), flag, odd])
      if (expected !== undefined) expect(invalid.code, invalid.words.join(' ')).toBe(expected)
    }
  },
)

/** The exit code of what is thrown. */
function refusal(parse: () => unknown): number | undefined {
  try {
    parse()
    return undefined
  } catch (error) {
    return error instanceof CliError ? error.exit : 1
  }
}

const refusing = (status: number) => () => jsonResponse(status, { name: 'odd', message: 'no' })

test.each(COMMANDS)('mailclaim %s ends with an exit code of its help, whatever goes wrong', async (name) => {
  const command = await load(name)
  const { line, words } = command
  const unreachable = () => {
    throw new TransportError('connect', 'no', 'nobody listens')
  }
  for (const respond of [...[400, 401, 403, 404, 409, 422, 429, 500].map(refusing), unreachable]) {
    await command.try([], { respond })
    // By its id, a claim that isn't known here is asked for.
    if (line.at(-1) === 'example.com') await command.run([...words, 'unknown-id'], { respond })
  }
  await command.run(line, { stranger: true })
  await command.try(['--base-url', 'nowhere'])
  expect([0, 130]).toContain((await command.try([], { interrupted: true })).code)
  const isVariadic = command.definition.arguments?.at(-1)?.syntax.includes('...')
  if (!isVariadic) await command.refuse(['one', 'too', 'many'])
  await command.refuse(['--no-such-option'])
  if (line.length > words.length) expect(await command.run([...line.slice(0, -1), ''])).toEqual(USAGE)
  if (command.definition.arguments?.[0]?.syntax.startsWith('<'))
    expect(await command.run(words)).toEqual(USAGE)
})

test('claims verify writes events in JSON lines, whether it waits or not', async () => {
  const command = await load('claims verify')
  const events = async (more: readonly string[]) => {
    const { stdout } = await command.try(['--format', 'jsonl', '--fields', 'event,claim.status', ...more])
    return stdout
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line))
  }
  expect(await events([])).toEqual([{ event: 'verification', claim: { status: 'pending' } }])
  expect(await events(['--wait'])).toEqual([
    { event: 'verification', claim: { status: 'pending' } },
    { event: 'status', claim: { status: 'completed' } },
    { event: 'done', claim: { status: 'completed' } },
  ])
})

test('a field that the service added can be selected, and one that nobody knows stops a change before it is made', async () => {
  const added = { object: 'list', has_more: false, data: [{ id: 'grant-1', added: { lately: 1 } }] }
  const grants = await load('grants list')
  expect(
    await grants.try(['--fields', 'id,added.lately'], { respond: () => jsonResponse(200, added) }),
  ).toMatchObject({ code: 0, stdout: 'id\tadded.lately\ngrant-1\t1\n' })
  const create = await load('claims create')
  expect(await create.refuse(['--fields', 'id,added'])).toContain('unknown field "added"')
})
