import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { everyCommand, isGroup } from '../src/cli/line.ts'
import { OTHER_COMMANDS, OTHER_OPTIONS } from '../src/cli/suggestions.ts'
import { run } from '../src/cli.ts'
import { longFlag } from '../src/commands/definition.ts'
import { globalOptions, TOPICS } from '../src/commands/program.ts'
import { tree } from '../src/commands/tree.ts'
import { OutputClosedError } from '../src/context.ts'
import { CliError, Exit } from '../src/errors.ts'
import { FORMATS } from '../src/settings/settings.ts'
import { COMMANDS, GLOBAL_FLAGS } from './contract.ts'
import { createFakeContext, type FakeContextOptions } from './fake-context.ts'

async function type(line: string | readonly string[], options: FakeContextOptions = {}) {
  const context = createFakeContext(options)
  const argv = typeof line === 'string' ? line.split(' ').filter((word) => word !== '') : line
  const code = await run(argv, context)
  return { code, stdout: context.stdout.text, stderr: context.stderr.text, context }
}

const globalFlags = globalOptions().map(({ flags }) => longFlag(flags))

/** Every help there is: the program's, each group's, each command's. */
const helps = [
  [],
  ...Object.entries(tree)
    .filter(([, node]) => isGroup(node))
    .map(([word]) => [word]),
  ...[...everyCommand()].map(({ words }) => words),
].map((words) => words.join(' '))

/** The lines that are longer than the width although they have a space to break at. */
function overlong(text: string, width: number): string[] {
  return (
    text
      .split('\n')
      .filter((line) => line.length > width)
      // What stands in quotes is one word.
      .filter((line) =>
        /\S\s+[^\s\\]/.test(
          line
            .trim()
            .replace(/^[$#] /, '')
            .replace(/'[^']*'|"[^"]*"/g, 'quoted'),
        ),
      )
  )
}

describe('the contract', () => {
  test('the contract has exactly the commands of the tree', () => {
    expect([...everyCommand()].map(({ words }) => words.join(' ')).toSorted()).toEqual(
      Object.keys(COMMANDS).toSorted(),
    )
  })

  test.each(Object.entries(COMMANDS))('mailclaim %s has a help with its options', async (words, options) => {
    const { code, stdout } = await type(`${words} --help`)
    expect(code).toBe(0)
    expect(stdout).toContain(`Usage: mailclaim ${words}`)
    const own = options.split(' ').filter((flag) => !globalFlags.includes(flag) && flag !== '')
    for (const option of [...own, '--help']) {
      expect(stdout, option).toMatch(new RegExp(`^  (-\\w, )?${option}\\b`, 'm'))
    }
    expect(stdout).toContain('\nGlobal options: mailclaim help options\n')
    expect(stdout).not.toMatch(/^ +--(base-url|verbose|json)\b/m)
  })

  test("the help of claim says what happens if DNS can't be queried", async () => {
    const { stdout } = await type('claim --help')
    expect(stdout.replace(/\s+/g, ' ')).toContain(
      "If DNS can't be queried from this machine, it asks the service to verify without waiting for the record.",
    )
  })

  test('the options of every command are in one topic of help', async () => {
    const { stdout } = await type('help options')
    for (const option of `${GLOBAL_FLAGS} --help --version`.split(' '))
      expect(stdout, option).toMatch(new RegExp(`^  (-\\w, )?${option}\\b`, 'm'))
  })

  test('the help of a group shows its commands, and the help of the program shows every group', async () => {
    const root = (await type('--help')).stdout
    for (const words of Object.keys(COMMANDS)) {
      const [first = '', second] = words.split(' ')
      expect(root).toMatch(new RegExp(`^  .*\\b${first}  +\\w`, 'm'))
      if (second !== undefined) expect((await type(`${first} --help`)).stdout).toMatch(`\n  ${second} `)
    }
  })
})

describe('help', () => {
  test.each(helps)('mailclaim %s --help fits 80 columns, and 40', async (words) => {
    for (const columns of [undefined, 80, 40]) {
      const { code, stdout, stderr } = await type(
        `${words} --help`,
        columns === undefined ? {} : { terminal: { columns }, environment: { noColor: true } },
      )
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(overlong(stdout, columns ?? 80)).toEqual([])
    }
  })

  test.each([...everyCommand()].map(({ words }) => words.join(' ')))(
    'mailclaim %s --help has examples of that very command, and exit codes',
    async (words) => {
      const { stdout } = await type(`${words} --help`)
      const examples = stdout.split('\n').filter((line) => line.startsWith('  $ '))
      expect(examples.length).toBeGreaterThanOrEqual(2)
      expect(examples.filter((line) => line.includes(`mailclaim ${words}`))).not.toEqual([])
      expect(stdout).toMatch(
        /^Fields:\n {2}\w.*^Exit codes \(mailclaim help exit-codes\):\n {2}0 done, 1 a bug, .* 143\s+terminated\n$/ms,
      )
      // A code stands on the line of its meaning.
      expect(stdout.split('\nExit codes')[1]).not.toMatch(/ \d+$/m)
      expect(stdout).not.toMatch(/undefined|\[object|\0/)
    },
  )

  test.each(Object.keys(TOPICS))('mailclaim help %s fits 80 columns, and 40', async (topic) => {
    for (const columns of [undefined, 80, 40]) {
      const { code, stdout, stderr } = await type(
        `help ${topic}`,
        columns === undefined ? {} : { terminal: { columns }, environment: { noColor: true } },
      )
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(overlong(stdout, columns ?? 80)).toEqual([])
      if (columns !== 40) for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThan(81)
      expect(stdout).toMatch(/^\S.*\w.*[^\n]\n$/s)
      expect(stdout).not.toMatch(/undefined|\[object|\0/)
    }
  })

  test.each(Object.keys(TOPICS))('an example of mailclaim help %s is understood', async (topic) => {
    const { stdout } = await type(`help ${topic}`)
    for (const [, line = ''] of stdout.matchAll(/^ {2}\$ mailclaim (.*?)(?: >.*)?$/gm))
      expect((await type(`${line} --base-url nowhere`)).stderr, line).not.toMatch(
        /unknown|too many|missing|needs/,
      )
  })

  test('the topics have every format, every exit code and every variable', async () => {
    const formats = (await type('help formats')).stdout
    for (const { leaf } of everyCommand())
      for (const format of [...FORMATS, ...((await leaf.load()).output.formats ?? [])])
        expect(formats).toMatch(new RegExp(`\\b${format}\\b`))
    const codes = (await type('help exit-codes')).stdout
    expect(codes.match(/^ {2}\d+(?= +\w)/gm)?.map(Number)).toEqual(Object.values(Exit))
    const environment = (await type('help environment')).stdout
    expect(environment).toMatch(/^ {2}MAILCLAIM_API_KEY +an API key/m)
    const source = await readFile(new URL('../src/main.ts', import.meta.url), 'utf8')
    for (const [, variable] of source.matchAll(/'(MAILCLAIM_[A-Z_]+)'/g))
      expect(environment).toMatch(new RegExp(`\\b${variable}\\b`))
  })

  test('a topic is printed in color on a terminal, and whatever options stand beside it', async () => {
    const { stdout } = await type('help exit-codes')
    expect((await type('help --quiet exit-codes --help')).stdout).toBe(stdout)
    expect((await type('help exit-codes', { terminal: { columns: 80 } })).stdout).toBe(
      stdout.replace('Exit codes:', '\u001b[1mExit codes:\u001b[22m'),
    )
  })

  test('the fields of an event are shown by object, and --fields lists them', async () => {
    const { stdout } = await type('claim --help')
    expect(stdout).toContain(
      '\nFields of an event (--format jsonl):\n  event, at, message, claim.*, earlier.*, report.*, error.* (--fields --format\n  jsonl lists them all)\n',
    )
    expect((await type('claim --fields --format jsonl')).stdout).toContain('\nreport.findings.fix\n')
  })

  test('help, --help and -h print the same help', async () => {
    const { stdout } = await type('config set --help')
    expect((await type('help config set')).stdout).toBe(stdout)
    expect((await type('config set -h')).stdout).toBe(stdout)
    expect((await type('--help config set')).stdout).toBe(stdout)
    expect((await type('help')).stdout).toBe((await type('--help')).stdout)
  })

  test.each(['help claims check --json', 'claims check --help --format json', '--json claims check -h'])(
    'mailclaim %s prints, for programs, the entry of that command',
    async (line) => {
      const { data } = JSON.parse((await type('commands --json')).stdout)
      const { code, stdout, stderr } = await type(line)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(JSON.parse(stdout)).toEqual(
        data.find(({ command }: { command: string }) => command === 'claims check'),
      )
    },
  )

  test.each(['--json', '--help --json', 'help --format jsonl', 'help claims --json', 'help formats --json'])(
    'mailclaim %s, which has no JSON, is a usage error that says where programs find everything',
    async (line) => {
      const { code, stdout, stderr } = await type(line)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(JSON.parse(stderr).error).toMatchObject({
        code: 'usage',
        hint: 'for programs, all commands are described by: mailclaim commands --json',
      })
    },
  )

  test('help has bold headings on a terminal, and is plain with NO_COLOR and in a pipe', async () => {
    const terminal = { columns: 80 }
    expect((await type('--help', { terminal })).stdout).toContain('\u001b[1mUsage:')
    expect((await type('--help --no-color', { terminal })).stdout).not.toContain('\u001b')
    expect((await type('--help', { terminal, environment: { noColor: true } })).stdout).not.toContain(
      '\u001b',
    )
    expect((await type('--help')).stdout).not.toContain('\u001b')
  })

  test('help breaks a long example so that it can still be pasted', async () => {
    const { stdout } = await type('config set --help', {
      terminal: { columns: 40 },
      environment: { noColor: true },
    })
    expect(stdout).toContain('  $ mailclaim config set base-url \\\n      https://api.example.com\n')
  })
})

describe('the bare program', () => {
  test('the program without a command prints its help on stdout and offers the sandbox to a newcomer', async () => {
    const { code, stdout, stderr } = await type('')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('Usage: mailclaim <command>')
    expect(stdout).toMatch(/Nothing is configured yet\..*\n?.*mailclaim sandbox/)
  })

  test.each(['', '--help'])('mailclaim %s fits a terminal of 24 lines and 80 columns', async (line) => {
    const { stdout } = await type(line, { terminal: { columns: 80 }, environment: { noColor: true } })
    // The prompt takes a line as well.
    expect(stdout.trimEnd().split('\n').length).toBeLessThan(24)
    for (const row of stdout.split('\n')) expect(row.length, row).toBeLessThan(81)
    for (const word of Object.keys(tree)) expect(stdout).toMatch(new RegExp(`^  .*\\b${word}  +\\w`, 'm'))
    expect(stdout).toContain(`help <topic>\`): ${Object.keys(TOPICS).join(', ')}\n`)
  })

  test('in a narrow window, the commands stand below the names of their groups', async () => {
    const { stdout } = await type('', { terminal: { columns: 40 }, environment: { noColor: true } })
    expect(stdout).toContain('\n\nSign in:\n  login\n      sign in with the browser\n  logout\n')
  })

  test('the program does not offer the sandbox if something is configured', async () => {
    const { stdout } = await type('', { environment: { settings: { base_url: 'https://api.example.com' } } })
    expect(stdout).not.toContain('Nothing is configured')
    const context = createFakeContext()
    await run(['config', 'set', 'base-url', 'https://api.example.com'], context)
    await run([], context)
    expect(context.stdout.text).not.toContain('Nothing is configured')
  })

  test.each(['--version', '-V', '--quiet --version', 'config list -V'])(
    '%s prints the version and nothing else',
    async (flag) => {
      expect(await type(flag)).toMatchObject({ code: 0, stdout: '0.0.0-test\n', stderr: '' })
    },
  )
})

describe('a bare group', () => {
  test('a group without a command prints its help on stderr, exit 2', async () => {
    const { code, stdout, stderr } = await type('config')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('Usage: mailclaim config <command>')
  })

  test('a group without a command reports what is missing as JSON with --json', async () => {
    const { code, stderr } = await type('config --json')
    expect(code).toBe(2)
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'usage',
        message: 'a command is missing after mailclaim config',
        hint: 'for programs, all commands are described by: mailclaim commands --json',
        exit: 2,
      },
    })
  })
})

describe('a command line that cannot be understood', () => {
  test.each([
    '--api-key s3cr3t grants list',
    '--api-key=s3cr3t grants list',
    'grants list --api-key s3cr3t',
    'grants list --api-key=s3cr3t',
    'grants --token s3cr3t list',
    'login --password s3cr3t',
    'login --with-api-key s3cr3t',
    'login --with-api-key=s3cr3t',
    'config set api-key s3cr3t',
  ])('mailclaim %s does not repeat the secret, and says where it belongs', async (line) => {
    const { code, stdout, stderr } = await type(line)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).not.toContain('s3cr3t')
    expect(stderr).toContain(
      'hint: put an API key into MAILCLAIM_API_KEY, or store it: mailclaim login --with-api-key < key.txt\n',
    )
  })

  test('--json=1 is told, in JSON, that --json takes no value', async () => {
    const { code, stderr } = await type('grants list --json=1')
    expect(code).toBe(2)
    expect(JSON.parse(stderr)).toMatchObject({
      error: { message: '--json takes no value', hint: 'write --json alone' },
    })
  })

  test.each([
    ['logout --all --profile work', "--all and --profile can't be used together"],
    ['auth switch default --profile work', 'the argument default and --profile work are different profiles'],
  ])('mailclaim %s names two profiles', async (line, message) => {
    const { code, stderr } = await type(line)
    expect(code).toBe(2)
    expect(stderr).toContain(`error: ${message}\n`)
  })

  const CANNOT_CANCEL =
    "a claim can't be canceled from here: the service has no operation for that, and an unverified claim expires by itself. To see the claim: mailclaim claims get example.com"

  test.each([
    ['confg', "unknown command 'confg'", 'did you mean mailclaim config?'],
    ['config lst', "unknown command 'lst'", 'did you mean mailclaim config list?'],
    ['help confg', "unknown command 'confg'", 'did you mean mailclaim help config?'],
    ['help enviroment', "unknown command 'enviroment'", 'did you mean mailclaim help environment?'],
    ['help exit-code', "unknown command 'exit-code'", 'did you mean mailclaim help exit-codes?'],
    ['help claims ci', "unknown command 'ci'", 'did you mean mailclaim help ci?'],
    ['help qqqqqq', "unknown command 'qqqqqq'", 'see: mailclaim --help'],
    ['formats', "unknown command 'formats'", 'did you mean mailclaim help formats?'],
    ['confg --help', "unknown command 'confg'", 'did you mean mailclaim config?'],
    ['unset', "unknown command 'unset'", 'did you mean mailclaim config unset?'],
    ['example.com claim', "unknown command 'example.com'", 'did you mean mailclaim claim example.com?'],
    ['example.com', "unknown command 'example.com'", 'did you mean mailclaim claim example.com?'],
    ['qqqqqq', "unknown command 'qqqqqq'", 'see: mailclaim --help'],
    ['config list --jsn', "unknown option '--jsn'", 'did you mean --json?'],
    ['--jsn config list', "unknown option '--jsn'", 'did you mean --json?'],
    [
      '--limit 5 config list',
      "unknown option '--limit'",
      'options of a command follow its name; see: mailclaim --help',
    ],
    ['config list --qqqqqq', "unknown option '--qqqqqq'", 'see: mailclaim config list --help'],
    ['config get', "missing required argument 'setting'", 'usage: mailclaim config get <setting> [options]'],
    [
      'config get scope extra',
      "too many arguments for 'get'. Expected 1 argument but got 2.",
      'usage: mailclaim config get <setting> [options]',
    ],
    [
      'config list --profile',
      "option '--profile <name>' argument missing",
      'see: mailclaim config list --help',
    ],
    ['config list --format yaml', '--format: "yaml" is not one of table, json, jsonl, csv, tsv', undefined],
    [
      'imports list --status failed,queued',
      '--status: "failed,queued" is not one of queued, in_progress, completed, failed',
      '--status takes one value; for several, run the command once for each',
    ],
    [
      'grants list --state active, revoked',
      '--state: "active," is not one of active, revoked',
      '--state takes one value; for several, run the command once for each',
    ],
    [
      'config list --fields a,,b',
      '--fields: "a,,b" is not a list of fields',
      'separate them with commas alone, without spaces: --fields id,client.name',
    ],
    [
      'config list --fields setting, value',
      '--fields: "setting," is not a list of fields',
      'separate them with commas alone, without spaces: --fields id,client.name',
    ],
    ['config list --json --format csv', "--json and --format csv can't be used together", undefined],
    [
      'claim example.com --timeout 10m',
      '--timeout: "10m" is not a number of seconds between 0.1 and 2678400',
      'in seconds, that is 600',
    ],
    [
      'claim example.com --interval 1.5h',
      '--interval: "1.5h" is not a number of seconds between 0.1 and 3600',
      'in seconds, that is 5400',
    ],
    [
      'login --timeout 0',
      '--timeout: "0" is not a number of seconds between 0.1 and 3600',
      'give it in seconds: ten minutes are 600',
    ],
    [
      'auth list --http-timeout 1ms',
      '--http-timeout: "1ms" is not a number of seconds between 0.1 and 3600',
      'in seconds, that is 0.001',
    ],
    [
      'claims publish a.com --publish-timeout 2min',
      '--publish-timeout: "2min" is not a number of seconds between 0.1 and 3600',
      'in seconds, that is 120',
    ],
    [
      'sandbox --check-seconds 5s',
      '--check-seconds: "5s" is not a number of seconds',
      'in seconds, that is 5',
    ],
    [
      'claims check a.example --wait 5',
      '"5" is not a domain',
      '--wait takes no value; did you mean to add --interval 5 or --timeout 5?',
    ],
    [
      'claims verify a.example b.example --wait 10m',
      '"10m" is not a domain',
      '--wait takes no value; did you mean to add --interval 10m or --timeout 10m?',
    ],
    [
      'imports watch 479e3145-dd38-4932-8c0c-e58b548c9e76 --quiet 60',
      "too many arguments for 'watch'. Expected 1 argument but got 2.",
      '--quiet takes no value; did you mean to add --interval 60 or --timeout 60?',
    ],
    [
      'grants list --no-pager 5',
      "too many arguments for 'list'. Expected 0 arguments but got 1.",
      'usage: mailclaim grants list [options]',
    ],
    ['claim check example.com', "'check' is not a domain", 'did you mean mailclaim claims check?'],
    ['claim list', "'list' is not a domain", 'did you mean mailclaim claims list?'],
    ['claim get', "'get' is not a domain", 'did you mean mailclaim claims get?'],
    ['claim show example.com', "'show' is not a domain", 'did you mean mailclaim claims get?'],
    ['claim status example.com', "'status' is not a domain", 'did you mean mailclaim claims get?'],
    ['claim cancel example.com', "'cancel' is not a domain", CANNOT_CANCEL],
    ['claim delete example.com', "'delete' is not a domain", CANNOT_CANCEL],
    ['claims cancel example.com', "unknown command 'cancel'", CANNOT_CANCEL],
    ['claim localhost', '"localhost" is not a whole domain name', 'Give the whole name, such as example.com'],
    [
      'claim example.com oops',
      '"oops" is not a whole domain name',
      'Give the whole name, such as example.com',
    ],
    ['claims create oops example.com', '"oops" is not a whole domain name', undefined],
  ])('mailclaim %s', async (line, message, hint) => {
    const { code, stdout, stderr } = await type(line)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    if (message !== undefined && !line.includes('--json')) expect(stderr).toContain(`error: ${message}\n`)
    else if (message !== undefined) expect(JSON.parse(stderr).error.message).toBe(message)
    if (hint !== undefined && !line.includes('--json')) expect(stderr).toContain(`hint: ${hint}\n`)
  })

  test('a usage error is one line of JSON with --json, anywhere on the command line', async () => {
    for (const line of ['--json confg', '--format json confg', '--format=jsonl confg', 'confg --json']) {
      const { code, stdout, stderr } = await type(line)
      expect({ code, stdout, lines: stderr.split('\n').length }).toEqual({ code: 2, stdout: '', lines: 2 })
      expect(JSON.parse(stderr).error).toMatchObject({ code: 'usage', exit: 2 })
    }
  })

  test('an unknown word is quoted without control characters', async () => {
    const { stderr } = await type(['config', 'li\u001b]0;owned\u0007st\u202e'])
    expect(stderr).toContain('li\\u{1b}]0;owned\\u{7}st\\u{202e}')
    expect(stderr).not.toMatch(/[\u001b\u0007\u202e]/)
  })
})

describe('options', () => {
  test('options work before the command, between its words and after it', async () => {
    for (const line of [
      '--format json config list',
      'config --format json list',
      'config list --format json',
      'config list --format=json',
    ]) {
      const { code, stdout } = await type(line)
      expect(code).toBe(0)
      expect(JSON.parse(stdout).object).toBe('list')
    }
  })

  test('the last of several options counts, and repeatable ones add up in their order', async () => {
    const { stdout } = await type('config list --format csv --format json --profile one --profile two')
    expect(JSON.parse(stdout).object).toBe('list')
    const { code, stderr } = await type('--resolver 192.0.2.1 config list --resolver 300.0.2.2')
    expect(code).toBe(2)
    expect(stderr).toContain('"300.0.2.2" is not an IP address')
  })

  test.each([',', ' ', ' , ,'])(
    'MAILCLAIM_RESOLVER=%j is refused, because it names no resolver',
    async (resolver) => {
      const { code, stderr } = await type('claims list', { environment: { settings: { resolver } } })
      expect(code).toBe(2)
      expect(stderr).toContain(`error: MAILCLAIM_RESOLVER: ${JSON.stringify(resolver)} names no resolver\n`)
      expect(
        (await type('claims list --resolver 192.0.2.1', { environment: { settings: { resolver } } })).code,
      ).toBe(0)
    },
  )

  test('options end at --, so that an argument can look like one', async () => {
    const { code, stderr } = await type('config get -- --json')
    expect(code).toBe(2)
    expect(stderr).toContain('error: "--json" is not a setting')
    expect((await type('-- config list')).code).toBe(0)
  })
})

describe('whatever happens', () => {
  test('a terminal that hangs up ends a command as its signal, although the output fails as well', async () => {
    const context = createFakeContext()
    const write = async () => {
      throw new CliError('output_failed', 1, 'the output cannot be written: write EIO')
    }
    const failing = { ...context, stdout: { ...context.stdout, write } }
    expect(await run(['--version'], failing)).toBe(1)
    context.interrupt('SIGTERM')
    expect(await run(['--version'], failing)).toBe(143)
  })

  test('a reader that goes away is not an error', async () => {
    const context = createFakeContext()
    const stdout = {
      ...context.stdout,
      write: async () => {
        throw new OutputClosedError('the reader went away')
      },
    }
    expect(await run(['--help'], { ...context, stdout })).toBe(0)
    expect(await run(['config', 'list'], { ...context, stdout })).toBe(0)
    expect(context.stderr.text).toBe('')
  })

  test('an unexpected error is reported as a bug, without its stack unless --verbose is given', async () => {
    const context = createFakeContext()
    const stdout = {
      ...context.stdout,
      write: async () => {
        throw new RangeError('out of range')
      },
    }
    expect(await run(['config', 'list'], { ...context, stdout })).toBe(1)
    expect(context.stderr.text).toBe(
      'error: this is a bug in mailclaim: out of range\nhint: run it again with --verbose and report the output\n',
    )
    await run(['config', 'list', '--verbose'], { ...context, stdout })
    expect(context.stderr.text).toContain('RangeError: out of range\n    at ')
  })
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)(
  '%s during work that cannot be interrupted is not lost: exit %i after it',
  async (signal, exit) => {
    const context = createFakeContext()
    context.interrupt(signal)
    expect(await run(['config', 'path'], context)).toBe(exit)
    expect(context.stdout.text).toContain('config.json')
  },
)

describe('suggestions for the words of other programs', () => {
  test.each([
    ['whoami', 'mailclaim auth status'],
    ['status', 'one of mailclaim auth status, mailclaim imports get, mailclaim claims get'],
    ['claims status', 'mailclaim claims get'],
    ['show', 'one of mailclaim imports get, mailclaim claims get, mailclaim config get'],
    ['claims show', 'mailclaim claims get'],
    ['new', 'mailclaim claims create'],
    ['domains', 'one of mailclaim claims list, mailclaim claim'],
    ['domain claim example.com', 'one of mailclaim claims list, mailclaim claim'],
    ['grants ls', 'mailclaim grants list'],
    ['diagnose', 'one of mailclaim claims check, mailclaim doctor'],
    ['version', 'mailclaim --version'],
    ['docs', 'mailclaim --help'],
    ['help docs', 'mailclaim --help'],
    ['env', 'mailclaim help environment'],
    ['auth login', 'mailclaim login'],
    ['lgoin', 'mailclaim login'],
    ['-v', 'one of --verbose, --version'],
    ['auth token -v', '--verbose'],
    ['claims list -o json', '--format'],
    ['claims list --output=json', '--format'],
    ['claims list --debug', '--verbose'],
    ['imports list -n 3', '--limit'],
    ['auth token -n 3', undefined],
    ['zone', undefined],
  ])('mailclaim %s: did you mean %s?', async (line, meant) => {
    const { code, stderr } = await type(line)
    expect(code).toBe(2)
    const hint = /^hint: (.*)$/m.exec(stderr)?.[1]
    if (meant === undefined) expect(hint).toMatch(/^see: mailclaim .*--help$/)
    else expect(hint).toBe(`did you mean ${meant}?`)
  })

  test('every command that is suggested exists', async () => {
    for (const word of Object.keys(OTHER_COMMANDS)) {
      const { stderr } = await type(word)
      const suggested = /did you mean (?:one of )?(.*)\?/.exec(stderr)?.[1]?.split(', ') ?? []
      expect(suggested, word).not.toEqual([])
      for (const line of suggested)
        expect(await type(`${line.replace('mailclaim ', '')} --help`), line).toMatchObject({ code: 0 })
    }
  })

  test('every option that is suggested exists', async () => {
    const definitions = await Promise.all([...everyCommand()].map(({ leaf }) => leaf.load()))
    const known = definitions.flatMap((definition) => [
      ...globalOptions(definition),
      ...(definition.options ?? []),
    ])
    const flags = new Set(['--version', ...known.map((option) => longFlag(option.flags))])
    expect(
      Object.values(OTHER_OPTIONS)
        .flat()
        .filter((flag) => !flags.has(flag)),
    ).toEqual([])
  })
})
