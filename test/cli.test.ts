import { describe, expect, test } from 'vitest'
import { walkCommands } from '../src/commands/definition.ts'
import { createGlobalOptions } from '../src/commands/options.ts'
import { commandTree } from '../src/commands/tree.ts'
import { OutputClosedError } from '../src/context.ts'
import { CliError } from '../src/errors.ts'
import { toLongFlag } from '../src/settings/option.ts'
import { SETTINGS, type SettingDefinition } from '../src/settings/table.ts'
import { COMMAND_FLAGS, GLOBAL_FLAGS } from './contract.ts'
import { createFakeContext, type FakeContextOptions } from './fake-context.ts'
import { run } from './run.ts'

async function type(line: string | readonly string[], options: FakeContextOptions = {}) {
  const context = createFakeContext(options)
  const argv = typeof line === 'string' ? line.split(' ').filter((word) => word !== '') : line
  const code = await run(argv, context)
  return { code, stdout: context.stdout.text, stderr: context.stderr.text, context }
}

const globalFlags = createGlobalOptions().map(({ flags }) => toLongFlag(flags))

test('test/contract.ts lists exactly the commands of the command tree, including each that `commands` of a setting names', () => {
  expect([...walkCommands(commandTree)].map(({ path }) => path.join(' ')).toSorted()).toEqual(
    Object.keys(COMMAND_FLAGS).toSorted(),
  )
  for (const { commands = [] } of Object.values<SettingDefinition<unknown>>(SETTINGS))
    expect(Object.keys(COMMAND_FLAGS)).toEqual(expect.arrayContaining([...commands]))
})

test.each(Object.entries(COMMAND_FLAGS))(
  'mailclaim %s --help lists the options and examples in at most 40 lines, of which only examples exceed 80 columns',
  async (words, options) => {
    const { code, stdout, stderr } = await type(`${words} --help`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(`Usage: mailclaim ${words}`)
    for (const flag of options.split(' ').filter((one) => one !== '' && !globalFlags.includes(one)))
      expect(stdout).toMatch(
        new RegExp(`^  ${flag.replace(/^--no-/, '--(\\[?no-\\]?)?')}|--\\[no-\\]${flag.slice(2)}`, 'm'),
      )
    expect(stdout).not.toMatch(/^ +--(base-url|verbose|json)\b/m)
    expect(stdout).toMatch(
      /\nExamples:\n( {2}\S.*mailclaim .*\n| {2}mailclaim .*\n){1,3}\nOptions of every command: mailclaim --help\n$/,
    )
    expect(stdout.split('\n').length).toBeLessThanOrEqual(41)
    for (const line of stdout.split('\n'))
      if (!/^ {2}\S.*mailclaim |^ {2}mailclaim /.test(line)) expect(line.length, line).toBeLessThanOrEqual(80)
    expect(stdout).not.toMatch(/undefined|\[object/)
  },
)

test('mailclaim --help, -h and help list every top-level command or group, and every global option', async () => {
  const { stdout } = await type('--help')
  for (const word of Object.keys(commandTree)) expect(stdout).toMatch(new RegExp(`^  ${word}  +\\w`, 'm'))
  expect(globalFlags.toSorted()).toEqual(GLOBAL_FLAGS.split(' ').toSorted())
  for (const option of `${GLOBAL_FLAGS} --help --version`.split(' '))
    expect(stdout, option).toMatch(new RegExp(`^  (-\\w, )?${option}\\b`, 'm'))
  for (const line of ['-h', 'help']) expect((await type(line)).stdout).toBe(stdout)
  expect((await type('help config set')).stdout).toBe((await type('config set -h')).stdout)
})

test('mailclaim --help has bold headings on a terminal, but no escape sequences with NO_COLOR, with --no-color or in a pipe', async () => {
  const terminal = { columns: 80 }
  expect((await type('--help', { terminal })).stdout).toContain('\u001b[1mUsage:')
  expect((await type('--help --no-color', { terminal })).stdout).not.toContain('\u001b')
  expect((await type('--help', { terminal, environment: { noColor: true } })).stdout).not.toContain('\u001b')
  expect((await type('--help')).stdout).not.toContain('\u001b')
})

test.each(['--version', '-V', 'config list -V'])(
  'mailclaim %s prints the version and nothing else',
  async (flag) => {
    expect(await type(flag)).toMatchObject({ code: 0, stdout: '0.0.0-test\n', stderr: '' })
  },
)

test('mailclaim without arguments prints one screen with the first steps and every top-level command or group, and exits 0', async () => {
  const { code, stdout, stderr } = await type('')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const lines = stdout.split('\n')
  expect(lines.length).toBeLessThan(24)
  expect(lines.filter((line) => line.length > 79)).toEqual([])
  expect(lines.flatMap((line) => /^ {2}(\w+) +\w/.exec(line)?.[1] ?? [])).toEqual([
    ...Array(3).fill('mailclaim'),
    ...Object.keys(commandTree),
  ])
  expect(stdout).toContain('mailclaim --help')
})

test('a command group without a command prints its help on stderr, or with --json an error, and exits 2', async () => {
  const { code, stdout, stderr } = await type('config')
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain('Usage: mailclaim config <command>')
  expect(JSON.parse((await type('config --json')).stderr)).toEqual({
    error: {
      code: 'usage',
      message: 'a command is missing after mailclaim config',
      hint: 'see: mailclaim config --help',
      exit: 2,
    },
  })
})

test.each([
  '--api-key s3cr3t grants list',
  '--api-key=s3cr3t grants list',
  'grants list --api-key s3cr3t',
  'grants list --api-key=s3cr3t',
  'grants --token s3cr3t list',
  'login --with-api-key s3cr3t',
  'login --with-api-key=s3cr3t',
  'config set api-key s3cr3t',
])('the usage error of the command line `mailclaim %s` does not repeat the secret in it', async (line) => {
  const { code, stdout, stderr } = await type(line)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).not.toContain('s3cr3t')
})

test.each([
  ['confg', "unknown command 'confg'", 'did you mean config?'],
  ['config lst', "unknown command 'lst'", 'did you mean list?'],
  ['help confg', "unknown command 'confg'", 'did you mean config?'],
  ['qqqqqq', "unknown command 'qqqqqq'", 'see: mailclaim --help'],
  ['whoami', "unknown command 'whoami'", 'did you mean mailclaim auth status?'],
  ['check', "unknown command 'check'", 'did you mean mailclaim claims check?'],
  ['auth login', "unknown command 'login'", 'did you mean mailclaim login?'],
  [
    'config list --port 1',
    "unknown option '--port'",
    'give the registered address: mailclaim login --redirect-uri http://127.0.0.1:8765/callback',
  ],
  [
    'grants list --api-key x',
    "unknown option '--api-key'",
    'put it into MAILCLAIM_API_KEY, or store it: mailclaim login --with-api-key < key.txt',
  ],
  ['grants list --portmat x', "unknown option '--portmat'", 'see: mailclaim grants list --help'],
  ['config list --jsn', "unknown option '--jsn'", 'did you mean --json?'],
  ['config list --qqqqqq', "unknown option '--qqqqqq'", 'see: mailclaim config list --help'],
  ['--limit 5 config list', "unknown option '--limit'", 'options of a command follow its name'],
  ['grants list --quiet=1', '--quiet takes no value', 'write --quiet alone'],
  ['config get', "missing required argument 'setting'", 'see: mailclaim config get --help'],
  ['config get scope extra', 'too many arguments: config get takes 1', 'see: mailclaim config get --help'],
  ['logout work', 'too many arguments: logout takes none', 'see: mailclaim logout --help'],
  ['config list --profile', '--profile needs a value', 'write --profile <name>'],
  ['config list --format csv', '--format: "csv" is not one of table, json, jsonl, tsv', undefined],
  [
    'grants list --state active --state revoked',
    '--state is given twice, with different values',
    'give it once',
  ],
  [
    'config list --fields a,,b',
    '--fields: "a,,b" is not a list of fields',
    'separate them with commas alone, without spaces: --fields id,client.name',
  ],
  [
    'config list --fields name,nope',
    '--fields: unknown field "nope"',
    'the fields are name, value, source, meaning',
  ],
  [
    'config get scope --fields name',
    "--fields can't be used with --format value",
    'choose fields of JSON with jq',
  ],
  ['config list --profile=', '--profile is empty', 'give a value, or leave --profile out'],
  [
    'config list --profile --json',
    '--profile needs a value, and --json follows it',
    'write --profile <name>, or --profile=--json if that is meant as the value',
  ],
  [
    'login --timeout 10m',
    '--timeout: "10m" is not a number of seconds between 0.1 and 3600',
    'give it in seconds: ten minutes are 600',
  ],
  ['sandbox --port 65536', '--port: "65536" is not a whole number between 0 and 65535', undefined],
  ['grants list --after a --before b', "--after and --before can't be used together", undefined],
])('the invalid `mailclaim %s` exits 2 with one error and at most one hint', async (line, message, hint) => {
  const { code, stdout, stderr } = await type(line)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  if (line.includes('--json')) expect(JSON.parse(stderr).error.message).toBe(message)
  else
    expect(stderr).toBe(`error: ${message}\n${hint === undefined ? '' : `hint: ${hint}\n`}`.replace(/^$/, ''))
})

test.each([
  ['config list --json --fields name', "--fields can't be used with --format json"],
  ['config list --json --format tsv', "--json and --format tsv can't be used together"],
  ['grants list --json=1', '--json takes no value'],
  ['--format=jsonl confg', "unknown command 'confg'"],
  ['confg --json', "unknown command 'confg'"],
])('the usage error of the command line `mailclaim %s` is one line of JSON', async (line, message) => {
  const { code, stdout, stderr } = await type(line)
  expect({ code, stdout, lines: stderr.split('\n').length }).toEqual({ code: 2, stdout: '', lines: 2 })
  expect(JSON.parse(stderr).error).toMatchObject({ code: 'usage', message, exit: 2 })
})

test('an unknown command is quoted in the error with its control characters escaped', async () => {
  const { stderr } = await type(['config', 'li\u001b]0;owned\u0007st\u202e'])
  expect(stderr).toContain('li\\u{1b}]0;owned\\u{7}st\\u{202e}')
})

test('global options are accepted before, between and after the words of a command name', async () => {
  for (const line of ['--json config list', 'config --format json list', 'config list --format=json'])
    expect(JSON.parse((await type(line)).stdout).object).toBe('list')
})

test('of two --format options the last is used, and an invalid value of a second --resolver option exits 2', async () => {
  const { stdout } = await type('config list --format tsv --format json --profile one --profile one')
  expect(JSON.parse(stdout).object).toBe('list')
  const { code, stderr } = await type('--resolver 192.0.2.1 config list --resolver 300.0.2.2')
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('"300.0.2.2"') })
})

test('words after -- are arguments, not options, even if they begin with a dash', async () => {
  expect((await type('config get -- --json')).stderr).toContain('error: "--json" is not a setting')
  expect((await type('-- config list')).code).toBe(0)
})

describe('errors and exit codes', () => {
  const failing = (error: Error) => {
    const context = createFakeContext()
    const write = async () => {
      throw error
    }
    return { ...context, stdout: { ...context.stdout, write } }
  }

  test('a command that is ended by a signal exits with the exit code of the signal even if writing its output fails', async () => {
    const context = failing(new CliError('output_failed', 'the output cannot be written: write EIO'))
    expect(await run(['--version'], context)).toBe(1)
    context.interrupt('SIGTERM')
    expect(await run(['--version'], context)).toBe(143)
  })

  test('a command exits 0 and prints no error if the reader of its output closes the pipe early', async () => {
    const context = failing(new OutputClosedError('the reader went away'))
    expect(await run(['--help'], context)).toBe(0)
    expect(await run(['config', 'list'], context)).toBe(0)
    expect(context.stderr.text).toBe('')
  })

  test('an unexpected error is reported as a bug, without its stack unless --verbose is given', async () => {
    const context = failing(new RangeError('out of range'))
    expect(await run(['config', 'list'], context)).toBe(1)
    expect(context.stderr.text).toBe(
      'error: this is a bug in mailclaim: out of range\nhint: run it again with --verbose and report the output\n',
    )
    await run(['config', 'list', '--verbose'], context)
    expect(context.stderr.text).toContain('\nRangeError\n    at ')
  })

  test('a password in the URL of an error message is masked', async () => {
    const context = failing(new CliError('cannot_read', 'no answer from https://me:pw@api.example.com/x'))
    expect(await run(['config', 'list'], context)).toBe(1)
    expect(await run(['config', 'list', '--json'], context)).toBe(1)
    expect(context.stderr.text).not.toContain('pw')
    expect(context.stderr.text).toContain('https://…@api.example.com/x')
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('a command that completes after %s prints its output and exits %i', async (signal, exit) => {
    const context = createFakeContext()
    context.interrupt(signal)
    expect(await run(['config', 'list', '--json'], context)).toBe(exit)
    expect(context.stdout.text).toContain('config.json')
  })
})
