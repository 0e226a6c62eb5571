import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { walkCommands } from '../../src/commands/definition.ts'
import { commandTree } from '../../src/commands/tree.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { createFakeDns } from '../dns/fake-dns.ts'
import { createFakeClock, createFakeContext, textResponse } from '../fake-context.ts'
import { type Client, control, createClient, createRealClock } from '../hardening/in-process-client.ts'
import { run } from '../run.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import { readSchemas, SCHEMAS } from '../schemas.ts'
import { createWorld } from './built-program.ts'

const schemas = readSchemas(SCHEMAS)
const FORMATS = ['json', 'jsonl'] as const
const NAMES = [...walkCommands(commandTree)].map(({ path }) => path.join(' '))

/** Exit code and output of a command. */
interface Ended {
  readonly code: unknown
  readonly stdout: string
  readonly stderr: string
}

/** A client that runs in this process, and its sandbox. */
interface World extends Client {
  readonly sandbox: Sandbox
  publish(domain: string, mistake?: string): Promise<unknown>
}

interface Described {
  readonly command: string
  readonly schema: string | null
  readonly line_schema: string | null
  readonly fields: readonly string[]
}

let described: readonly Described[] = []

// Ask the built program which schema each command's output has. Everything else runs in this process, which is faster.
beforeAll(async () => {
  const ends: (() => void)[] = []
  const { stdout } = await createWorld((end) => ends.push(end)).run(['commands', '--json'])
  for (const end of ends) end()
  described = JSON.parse(stdout).data
})

/** Checks a command's JSON output against its schema, or its fields if it has none, and the error against `error.json`. */
function expectDescribed(line: string, format: (typeof FORMATS)[number], ended: Ended): unknown[] {
  const where = `${line} ${ended.stdout}\n${ended.stderr}`
  const command = described.find((one) => `${line} `.startsWith(`${one.command} `)) ?? expect.fail(line)
  const isDocument = format === 'json' && command.command !== 'login'
  const texts = isDocument ? [ended.stdout] : ended.stdout.split('\n')
  const printed = texts.filter((text) => text !== '').map((text): unknown => JSON.parse(text))
  for (const value of printed) {
    const isList = isDocument && (value as { object?: string }).object === 'list'
    const file =
      isList && command.schema !== 'commands.json'
        ? 'list.json'
        : isDocument
          ? command.schema
          : command.line_schema
    if (file !== null) expect(schemas.problems(file, value), where).toEqual([])
    else if (command.command !== 'login')
      expect(Object.keys(value as object).toSorted(), where).toEqual(command.fields.toSorted())
  }
  const errors = ended.stderr.split('\n').filter((text) => text.startsWith('{'))
  expect(errors, where).toHaveLength(ended.code === 0 ? 0 : 1)
  for (const text of errors) {
    const error = JSON.parse(text)
    expect(schemas.problems('error.json', error), where).toEqual([])
    expect(error.error.exit, where).toBe(ended.code)
  }
  return printed
}

async function expectLine(world: World, line: string, code: unknown): Promise<unknown[]> {
  const printed: unknown[] = []
  for (const format of FORMATS) {
    const ended = await world.run([...line.split(' '), '--format', format])
    expect(ended.code, `${line}\n${ended.stderr}`).toEqual(code)
    printed.push(...expectDescribed(line, format, ended))
  }
  return printed
}

async function serve(options: { readonly apiKey?: true } = {}): Promise<World> {
  const sandbox = await sandboxForTest({ autoApprove: true })
  return {
    ...createClient(sandbox, { clock: createRealClock(), ...options }),
    sandbox,
    publish: (domain, mistake = 'none') => control(sandbox, 'POST', `claims/${domain}/publish`, { mistake }),
  }
}

test('the JSON output of the commands for a claim matches the schemas from the creation to the completion of the claim', async () => {
  const world = await serve({ apiKey: true })
  for (const [line, code] of [
    ['claims create a.example', 0],
    ['claims record a.example', 0],
    ['claims check a.example', 8],
    ['claim a.example --timeout 1', 8],
    ['claims verify a.example', 8],
    ['claims list', 0],
    ['claims get a.example', 0],
  ] as const)
    await expectLine(world, line, code)
  await world.publish('a.example')
  for (const line of [
    'claims check a.example',
    'claim a.example',
    'claims watch a.example',
    'claims list --refresh',
  ])
    expect((await expectLine(world, line, 0)).length, line).toBeGreaterThan(0)
  expect(await expectLine(world, 'claims forget a.example', expect.any(Number))).toHaveLength(1)
})

test.each(['blocked', 'failed', 'expired', 'unheard-of'])(
  'the JSON output of `claims watch` and `claims get` for a claim with status %s matches the schemas',
  async (status) => {
    const world = await serve({ apiKey: true })
    const domain = `${status}.example.org`
    await world.run(['claims', 'create', domain])
    await control(world.sandbox, 'POST', `claims/${domain}/outcome`, { status })
    await expectLine(world, `claims watch ${domain} --timeout 1`, status === 'unheard-of' ? 8 : 9)
    await expectLine(world, `claims get ${domain}`, 0)
  },
)

test.each(['none', 'wildcard', 'cname', 'lame', 'silent', 'quotes'])(
  'the JSON report of claims check on a record published with the mistake "%s" matches the schema',
  async (mistake) => {
    const world = await serve({ apiKey: true })
    const domain = `${mistake}.example.net`
    await world.run(['claims', 'create', domain])
    await world.publish(domain, mistake)
    expect(await expectLine(world, `claims check ${domain}`, expect.any(Number))).toHaveLength(2)
  },
)

test('the JSON output of imports, grants, config, auth, logout, doctor, completion and commands matches the schemas', async () => {
  const world = await serve()
  await world.signIn()
  const [list] = (await expectLine(world, 'imports list', 0)) as [{ data: { id: string }[] }]
  for (const [line, code] of [
    ['grants list --state active', 0],
    [`imports get ${list.data[0]?.id}`, 0],
    [`imports watch ${list.data[0]?.id} --timeout 1`, expect.any(Number)],
    ['imports get no-such-import', 5],
    ['imports list --base-url http://127.0.0.1:9', expect.any(Number)],
    ['config set http-timeout 10', 0],
    ['config get http-timeout', 0],
    ['config list', 0],
    ['config unset http-timeout', 0],
    ['auth status --online', 0],
    ['auth token', 0],
    ['auth refresh', 0],
    ['auth list', 0],
    ['doctor', expect.any(Number)],
    ['completion bash', 0],
    ['commands', 0],
    ['logout --all', 0],
    ['auth status', 4],
  ] as const)
    await expectLine(world, line, code)
})

test.each(['claim', ...['create', 'record', 'check', 'verify', 'watch'].map((word) => `claims ${word}`)])(
  'the JSON output of mailclaim %s for several domains in different states matches the schemas',
  async (name) => {
    const world = await serve({ apiKey: true })
    await world.run(['claims', 'create', 'done.example', 'mistaken.example'])
    await world.publish('done.example')
    await world.publish('mistaken.example', 'quotes')
    const list = join(world.context.directories.state, 'list.txt')
    writeFileSync(list, 'done.example\nmistaken.example\nown.example\nunknown.example\nnot a name\n')
    const timeout = /claim$|watch/.test(name) ? ' --timeout 1' : ''
    for (const format of FORMATS) {
      const line = `${name} --from ${list}${timeout}`
      const ended = await world.run([...line.split(' '), '--format', format])
      expect(ended.code, ended.stderr).toBeGreaterThan(0)
      const printed = expectDescribed(line, format, ended)
      if (format === 'json') expect((printed[0] as { data: object[] }).data.length).toBeGreaterThan(3)
    }
  },
)

test.each(NAMES)(
  'the JSON output of mailclaim %s without settings, and its error for an unknown option, match the schemas',
  async (name) => {
    const found = [...walkCommands(commandTree)].find(({ path }) => path.join(' ') === name)
    const given = ((await found?.leaf.load())?.arguments ?? []).map(() => 'example')
    const stays = name === 'sandbox' ? ['--exit-with-stdin'] : []
    const words = [...name.split(' '), ...given, ...stays, '--json']
    const start = async (line: readonly string[]): Promise<Ended> => {
      const clock = createFakeClock()
      const context = createFakeContext({
        clock,
        dns: createFakeDns(() => 'silent', clock),
        respond: () => textResponse(404, 'nothing'),
      })
      context.stdin.stream.end()
      return { code: await run(line, context), stdout: context.stdout.text, stderr: context.stderr.text }
    }
    const ended = await start(words)
    expectDescribed(name, 'json', ended)
    const refused = await start([...words, '--no-such-option'])
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expectDescribed(name, 'json', refused)
  },
)
