import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { everyCommand } from '../../src/commands/definition.ts'
import { tree } from '../../src/commands/tree.ts'
import { readSchemas, SCHEMAS } from '../schemas.ts'
import { createWorld, type Ended, type ServedWorld, shareSandbox } from './built-program.ts'

const schemas = readSchemas(SCHEMAS)
const serve = shareSandbox()

type ProgramFormat = 'json' | 'jsonl'
const FORMATS: readonly ProgramFormat[] = ['json', 'jsonl']

interface Described {
  readonly command: string
  readonly schema: string | null
  readonly line_schema: string | null
  readonly arguments: readonly { readonly name: string }[]
  readonly options: readonly { readonly name: string }[]
}

const NAMES = [...everyCommand(tree)].map(({ words }) => words.join(' '))

let described: readonly Described[] = []

beforeAll(async () => {
  const ends: (() => void)[] = []
  const { stdout } = await createWorld((end) => ends.push(end)).run(['commands', '--json'])
  for (const end of ends) end()
  described = JSON.parse(stdout).data
})

function find(name: string): Described {
  return described.find(({ command }) => command === name) ?? expect.fail(`no command ${name}`)
}

/** What an argument of this name can be; a command with another one is run without it, which is an error in JSON. */
async function sample(world: ServedWorld, name: string): Promise<string[]> {
  if (name === 'id') {
    const { stdout } = await world.run(['imports', 'list', '--limit', '1', '--json'])
    return [JSON.parse(stdout).data[0].id]
  }
  const values: Readonly<Record<string, string>> = {
    domain: 'example.com',
    claim: 'example.com',
    profile: 'default',
    setting: 'store',
    value: 'file',
    shell: 'bash',
  }
  return [values[name] ?? []].flat()
}

/** Checks all that a command printed in a format against its schemas. @returns what it printed on stdout, parsed. */
function expectDescribed(
  command: Described,
  format: ProgramFormat,
  ended: Ended,
  documentSchema = command.schema,
): unknown[] {
  const where = `${command.command} ${ended.stdout}\n${ended.stderr}`
  // A sign-in prints lines in both formats.
  const isDocument = format === 'json' && command.command !== 'login'
  const texts = isDocument ? [ended.stdout] : ended.stdout.split('\n')
  const printed = texts.filter((text) => text !== '').map((text): unknown => JSON.parse(text))
  const file = isDocument ? documentSchema : command.line_schema
  expect(
    printed.flatMap((value) => (file === null ? [] : schemas.problems(file, value))),
    where,
  ).toEqual([])
  if (isDocument && ended.code === 0) expect(printed, where).toHaveLength(1)
  const errors = ended.stderr.split('\n').filter((line) => line.startsWith('{'))
  expect(errors, where).toHaveLength(ended.code === 0 ? 0 : 1)
  for (const line of errors) {
    const error = JSON.parse(line)
    expect(schemas.problems('error.json', error), where).toEqual([])
    expect(error.error.exit, where).toBe(ended.code)
  }
  return printed
}

/** Runs a command line in both formats and checks what it prints. */
async function expectLine(world: ServedWorld, line: string, expected: unknown): Promise<unknown[]> {
  const words = line.split(' ')
  const name = NAMES.find((one) => `${line} `.startsWith(`${one} `)) ?? expect.fail(line)
  const command = find(name)
  const printed: unknown[] = []
  for (const format of FORMATS) {
    const ended = await world.run([...words, '--format', format])
    expect(ended.code, `${line}\n${ended.stderr}`).toEqual(expected)
    printed.push(...expectDescribed(command, format, ended))
  }
  return printed
}

function withKey(): ServedWorld {
  const world = serve()
  world.env['MAILCLAIM_API_KEY'] = world.service.api_key
  return world
}

const publish = (world: ServedWorld, domain: string, body: object = {}) =>
  world.control('POST', `claims/${domain}/publish`, body)

describe('what the program prints as JSON is what its schemas describe', () => {
  test.each(NAMES)('mailclaim %s, signed in, with a claim', async (name) => {
    const world = serve()
    expect(await world.login()).toMatchObject({ code: 0 })
    await world.run(['config', 'set', 'store', 'file'])
    await world.run(['claims', 'create', 'example.com'])
    await publish(world, 'example.com')
    for (const format of FORMATS) {
      const command = find(name)
      const given = await Promise.all(command.arguments.map((argument) => sample(world, argument.name)))
      const takes = (option: string) => command.options.some((one) => one.name === option)
      const words = [
        ...name.split(' '),
        ...given.flat(),
        ...(takes('--timeout') && name !== 'login' && !takes('--wait') ? ['--timeout', '1'] : []),
        ...(takes('--exit-with-stdin') ? ['--exit-with-stdin'] : []),
        ...['--format', format],
      ]
      const running = world.start(words, { stdin: name === 'login' ? 'open' : '' })
      if (name === 'login') {
        const [url] = await running.seen(/http:\/\/[^\s"]+\/oauth\/authorize\?[^\s"]+/)
        await fetch(url)
      }
      const ended = await running.ended
      const printed = expectDescribed(command, format, ended)
      if (ended.code === 0) expect(printed, `${words.join(' ')}\n${ended.stderr}`).not.toEqual([])
    }
  })

  test.each(NAMES)('mailclaim %s, with nothing configured, and with an unknown option', async (name) => {
    const world = createWorld()
    const command = find(name)
    const words = [...name.split(' '), ...command.arguments.map(() => 'example')]
    const stays = command.options.some((one) => one.name === '--exit-with-stdin') ? ['--exit-with-stdin'] : []
    const check = async (format: ProgramFormat) => {
      const ended = await world.run([...words, ...stays, '--format', format], { stdin: '' })
      expectDescribed(command, format, ended)
      const refused = await world.run([...words, '--no-such-option', '--format', format])
      expect(refused).toMatchObject({ code: 2, stdout: '' })
      expectDescribed(command, format, refused)
    }
    await Promise.all(FORMATS.map(check))
  })

  test.each(['none', 'wildcard', 'cname', 'lame', 'silent', 'cached'])(
    'the report of a check of the mistake "%s"',
    async (mistake) => {
      const world = withKey()
      const domain = `${mistake.replaceAll('_', '-')}.example`
      await world.run(['claims', 'create', domain])
      await publish(world, domain, { mistake })
      const ended = await world.run(['claims', 'check', domain, '--json'])
      const reports = expectDescribed(find('claims check'), 'json', ended)
      expect(reports).toHaveLength(1)
    },
  )

  test.each([
    ['blocked', 9],
    ['failed', 9],
    ['unheard-of', 0],
  ] as const)('a claim that ends as %s', async (label, code) => {
    const world = withKey()
    const domain = `${label}.example`
    const command = find('claim')
    const first = await world.run(['claim', domain, '--timeout', '1', '--format', 'jsonl'])
    expect(first.code).toBe(8)
    expectDescribed(command, 'jsonl', first)
    const document = await world.run(['claim', domain, '--timeout', '1', '--json'])
    expect(document.code).toBe(8)
    expectDescribed(command, 'json', document)
    await publish(world, domain)
    const started = await world.run(['claims', 'verify', domain, '--format', 'jsonl'])
    expectDescribed(find('claims verify'), 'jsonl', started)
    await expectLine(world, `claims watch ${domain} --timeout 2`, code)
    for (const line of [`claims verify ${domain} --wait --timeout 1`, `claim ${domain} --timeout 1`])
      await expectLine(world, line, expect.any(Number))
    await expectLine(world, 'claims list --refresh', 0)
  })

  test('a verification that a mistake stops, and a service that cannot be reached', async () => {
    const world = withKey()
    await world.run(['claims', 'create', 'stopped.example'])
    await publish(world, 'stopped.example', { mistake: 'missing' })
    await expectLine(world, 'claims verify stopped.example', 8)
    await expectLine(world, 'imports list --base-url http://127.0.0.1:9', 7)
    await expectLine(world, 'claims create own.example', 6)
    await expectLine(world, 'imports get no-such-import', 5)
  })

  test('the lists and the imports of a service that has added fields', async () => {
    const world = withKey()
    await world.control('POST', 'faults', {
      kind: 'merge',
      fields: { added: { lately: [1] } },
      item_fields: { added: 'text' },
    })
    try {
      const [page] = await expectLine(world, 'grants list', 0)
      expect(page).toHaveProperty('added')
      const [list] = (await expectLine(world, 'imports list --all', 0)) as [{ data: { id: string }[] }]
      const id = list.data[0]?.id
      expect(await expectLine(world, `imports get ${id}`, 0)).toHaveLength(2)
      await expectLine(world, `imports watch ${id} --timeout 1`, expect.any(Number))
    } finally {
      await world.control('DELETE', 'faults')
    }
  })

  describe('several domains, done and not', () => {
    test.each(['claim', ...['create', 'record', 'check', 'verify', 'watch'].map((word) => `claims ${word}`)])(
      'mailclaim %s',
      async (name) => {
        const world = withKey()
        const command = find(name)
        // One that is done or can be, one with a mistake, one that is refused, and one without a claim.
        await world.run(['claims', 'create', 'done.example', 'mistaken.example'])
        await publish(world, 'done.example')
        await publish(world, 'mistaken.example', { mistake: 'quotes' })
        const list = join(world.home, 'list.txt')
        writeFileSync(list, 'done.example\nmistaken.example\nown.example\nunknown.example\nnot a name\n')
        const takes = (option: string) => command.options.some((one) => one.name === option)
        const more = [...(takes('--timeout') && !takes('--wait') ? ['--timeout', '1'] : [])]
        const run = async (format: ProgramFormat) => {
          const ended = await world.run([...name.split(' '), '--from', list, ...more, '--format', format])
          expect(ended.code, ended.stderr).toBeGreaterThan(0)
          return expectDescribed(command, format, ended, 'list.json')
        }
        const [document] = (await run('json')) as { data: object[] }[]
        expect(document?.data).toHaveLength(4)
        // What a claim needs a second for is done in one of the runs, and not in the other.
        const failures = (items: object[] = []) =>
          items.filter((item) => 'error' in item && !JSON.stringify(item).includes('done.example')).length
        expect(failures(document?.data)).toBeGreaterThan(0)
        expect(failures((await run('jsonl')) as object[])).toBe(failures(document?.data))
      },
    )

    test('a list without any usable line', async () => {
      const world = withKey()
      const command = find('claims check')
      const list = join(world.home, 'list.txt')
      writeFileSync(list, 'not a name\nnor this\n')
      const ended = await world.run(['claims', 'check', '--from', list, '--json'])
      expect(ended.code).toBe(2)
      expect(expectDescribed(command, 'json', ended, 'list.json')).toEqual([
        { object: 'list', has_more: false, data: [] },
      ])
    })
  })

  test('the settings of every type, profiles in every state, and a setup with problems', async () => {
    const world = serve()
    await world.login(['--scope', 'emails:send'])
    for (const [setting, value] of [
      ['http-timeout', '10'],
      ['resolver', world.service.dns],
      ['scope', 'emails:send'],
    ]) {
      await expectLine(world, `config set ${setting} ${value}`, 0)
      await expectLine(world, `config get ${setting}`, 0)
    }
    await expectLine(world, 'config list', 0)
    await expectLine(world, 'config unset scope', 0)
    await expectLine(world, 'auth status --online', 0)
    await expectLine(world, 'auth refresh', 0)
    await expectLine(world, 'auth status', 0)
    await world.run(['config', 'set', 'store', 'file', '--profile', 'other'])
    await world.control('POST', 'grants/all/revoke')
    await expectLine(world, 'auth refresh', 4)
    await expectLine(world, 'auth list', 0)
    await expectLine(world, 'auth status', 4)
    await expectLine(world, 'auth status --profile other', 4)
    await expectLine(world, 'doctor', 4)
    await expectLine(world, 'logout --all', 0)
  })

  test('a login with an API key', async () => {
    const world = serve()
    const command = find('login')
    for (const format of FORMATS) {
      const words = ['login', '--with-api-key', '--store', 'file', '--format', format]
      const ended = await world.run(words, { stdin: world.service.api_key })
      expect(ended.code, ended.stderr).toBe(0)
      expect(expectDescribed(command, format, ended)).toHaveLength(1)
      const refused = await world.run(words, { stdin: 'wrong' })
      expect(refused.code).toBe(4)
      expectDescribed(command, format, refused)
    }
    await expectLine(world, 'auth token', 0)
    await expectLine(world, 'auth status', 0)
    await expectLine(world, 'auth list', 0)
  })
})
