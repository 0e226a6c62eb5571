import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { recordClaim } from '../../src/claims/ledger.ts'
import { complete } from '../../src/cli/complete.ts'
import { everyCommand } from '../../src/cli/line.ts'
import { run } from '../../src/cli.ts'
import { TOPICS } from '../../src/commands/program.ts'
import { tree } from '../../src/commands/tree.ts'
import { SETTING_KEYS, settingName } from '../../src/settings/table.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'

/** What is offered at the end of the line; the part after the last space is the typed part of the word at the cursor. */
async function offers(line: string, context = createFakeContext()): Promise<string[]> {
  const { candidates, files } = await complete(line.split(' '), context)
  return [...candidates.map(({ value }) => value), ...(files ? [':files'] : [])]
}

const keys = SETTING_KEYS.map(settingName)

describe('the words that fit at the cursor', () => {
  test.each<[string, string[]]>([
    ['conf', ['config']],
    ['config ', ['list', 'get', 'set', 'unset', 'path']],
    ['config u', ['unset']],
    ['--profile x config u', ['unset']],
    ['help config p', ['path']],
    ['help ', [...Object.keys(tree), ...Object.keys(TOPICS)]],
    ['help e', ['environment', 'exit-codes']],
    ['help exit-codes ', []],
    ['help config set ', []],
    ['nothing ', []],
    ['config nothing ', []],
    ['config get ', keys],
    ['config get base', ['base-url']],
    ['config get base-url ', []],
    ['config set store ', ['keychain', 'file', 'etcd']],
    ['config set --profile x on-interrupted r', ['retry']],
    ['config set scope ', []],
    ['config set nothing ', []],
    ['config get --json base', ['base-url']],
    ['config get --profile x base', ['base-url']],
    ['config list --format ', ['table', 'json', 'jsonl', 'csv', 'tsv']],
    ['config list --format=js', ['--format=json', '--format=jsonl']],
    ['config list --nothing=', []],
    ['config list --fo', ['--format']],
    ['config list --format json --fo', []],
    ['config list --fields ', ['name', 'value', 'source', 'says']],
    ['config list --fields name,', ['name,value', 'name,source', 'name,says']],
    ['config list --fields name,source,sa', ['name,source,says']],
    ['config list --fields=name,v', ['--fields=name,value']],
    ['config list --format json,', []],
    ['config list --resolver 192.0.2.1 --res', ['--resolver']],
    ['config list -- --fo', []],
    ['completion ', ['bash', 'zsh', 'fish', 'powershell']],
    ['config list --profile ', ['default']],
    ['--ver', ['--verbose', '--version']],
    ['config --ver', ['--verbose']],
  ])('mailclaim %s│', async (line, expected) => {
    expect(await offers(line)).toEqual(expected)
  })

  test('without a command, every command and help are offered', async () => {
    const first = new Set([...everyCommand()].map(({ words }) => words[0] ?? ''))
    expect(await offers('')).toEqual([...first, 'help'])
  })

  test('profiles come from the configuration', async () => {
    const context = createFakeContext()
    for (const profile of ['work', 'ci']) {
      await run(['config', 'set', 'base-url', 'https://api.example.com', '--profile', profile], context)
    }
    expect(await offers('config list --profile ', context)).toEqual(['ci', 'default', 'work'])
    expect(await offers('config list --profile=w', context)).toEqual(['--profile=work'])
  })

  test('domains are those known on this machine for the given profile, except names that a shell could misread', async () => {
    const context = createFakeContext()
    const claim = (name: string, domain_id: string) => ({
      object: 'domain_claim',
      name,
      domain_id,
      status: 'pending',
    })
    const settings = await fakeSettings(context)
    await recordClaim(claim('one.example', 'd1'), context, settings)
    await recordClaim(claim('$(touch oops).example', 'd2'), context, settings)
    await recordClaim(claim('-rf', 'd4'), context, settings)
    await recordClaim(claim('other.example', 'd3'), context, await fakeSettings(context, { profile: 'work' }))
    expect(await offers('claims get ', context)).toEqual(['one.example'])
    expect(await offers('claims get --profile work ', context)).toEqual(['other.example'])
    expect(await offers('claims get one.example ', context)).toEqual([])
  })
})

/** Words as people and their shells may leave them: known ones, parts of them, anything. */
const anyWord = fc.oneof(
  fc.constantFrom(
    '',
    '-',
    '--',
    '--json',
    '--format',
    '--format=',
    '--profile',
    'help',
    'config',
    'set',
    'claims',
    'get',
  ),
  fc.constantFrom(...[...everyCommand()].flatMap(({ words }) => words)),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ maxLength: 8 }).map((text) => `--${text}`),
)

test('whatever is typed, every candidate continues it and is one line', async () => {
  const context = createFakeContext()
  await fc.assert(
    fc.asyncProperty(fc.array(anyWord, { maxLength: 6 }), async (words) => {
      const { candidates } = await complete(words, context)
      for (const { value, description } of candidates) {
        expect(value.startsWith(words.at(-1) ?? '')).toBe(true)
        expect(value + description).not.toMatch(/[\t\n]/)
      }
      expect(await run(['__complete', '--', ...words], context)).toBe(0)
    }),
    { numRuns: 500 },
  )
  expect(context.stderr.text).toBe('')
})

test('a command that does not exist is a usage error, whatever surrounds it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyWord, { maxLength: 4 }), async (words) => {
      const context = createFakeContext({ environment: {} })
      // None of these can do anything: the first word is not a command.
      const code = await run(
        ['no-such-command', ...words.filter((word) => word !== '-V' && word !== '--version')],
        context,
      )
      expect(code).toBe(2)
      expect(context.stdout.text).toBe('')
      expect(context.stderr.text).not.toMatch(/bug|[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
    }),
    { numRuns: 200 },
  )
})

describe('the hidden command for shells', () => {
  async function ask(argv: readonly string[]) {
    const context = createFakeContext()
    const code = await run(['__complete', ...argv], context)
    return { code, stdout: context.stdout.text, stderr: context.stderr.text, context }
  }

  test('__complete prints a line for each candidate, with its meaning', async () => {
    expect(await ask(['--', 'config', 'p'])).toMatchObject({
      code: 0,
      stdout: 'path\tprint where the settings are stored\n',
      stderr: '',
    })
  })

  test('__complete takes words with a leading dot from PowerShell, which drops empty ones', async () => {
    expect((await ask(['--dotted', '.config', '.'])).stdout).toMatch(/^list\t/)
  })

  test('__complete is silent and succeeds whatever is wrong, because a person is typing', async () => {
    for (const argv of [
      [],
      ['--'],
      ['--', '--profile', '../x', 'claims', 'get', ''],
      ['--', 'qqq', '--', ''],
    ]) {
      expect(await ask(argv)).toMatchObject({ code: 0, stderr: '' })
    }
  })
})
