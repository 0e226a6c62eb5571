import fc from 'fast-check'
import { expect, test } from 'vitest'
import { trySaveClaim } from '../../src/claims/ledger.ts'
import { walkCommands } from '../../src/commands/definition.ts'
import { commandTree } from '../../src/commands/tree.ts'
import { SETTING_KEYS, settingName } from '../../src/settings/table.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'
import { run } from '../run.ts'

/** Returns the output lines for a Tab at the end of a command line; the text after the last space is the word at the cursor. */
async function lines(line: string, context = createFakeContext()): Promise<string[]> {
  const before = context.stdout.text.length
  expect(await run(['__complete', '--', ...line.split(' ')], context)).toBe(0)
  return context.stdout.text.slice(before).split('\n').slice(0, -1)
}

async function offers(line: string, context?: ReturnType<typeof createFakeContext>): Promise<string[]> {
  return (await lines(line, context)).map((candidate) => candidate.replace(/\t.*/, ''))
}

test.each<[string, readonly string[]]>([
  ['conf', ['config']],
  ['config ', ['list', 'get', 'set', 'unset']],
  ['--profile x config u', ['unset']],
  ['help config s', ['set']],
  ['help ', Object.keys(commandTree)],
  ['help config set ', []],
  ['nothing ', []],
  ['config get ', SETTING_KEYS.map(settingName)],
  ['config get base-url ', []],
  ['config set store ', ['keychain', 'file', 'etcd']],
  ['config set scope ', []],
  ['config get --profile x base', ['base-url']],
  ['config list --format ', ['table', 'json', 'jsonl', 'tsv']],
  ['config list --fo', ['--format']],
  ['config list --format json --fo', []],
  ['config list --fields me', ['meaning']],
  ['config list --resolver 192.0.2.1 --res', ['--resolver']],
  ['config list -- --fo', []],
  ['completion ', ['bash', 'zsh', 'fish', 'powershell']],
  ['config list --profile ', ['default']],
  ['--ver', ['--verbose', '--version']],
])('completion of "mailclaim %s" offers exactly %j', async (line, expected) => {
  expect(await offers(line)).toEqual(expected)
})

test('completion prints candidates with their descriptions, and with --dotted ignores the dot before each word', async () => {
  expect(await lines('config u')).toEqual(['unset\tremove a setting'])
  const context = createFakeContext()
  await run(['__complete', '--dotted', '.config', '.'], context)
  expect(context.stdout.text).toMatch(/^list\t/)
})

test('completion of --profile offers default and the configured profiles', async () => {
  const context = createFakeContext()
  for (const profile of ['work', 'ci'])
    await run(
      ['config', 'set', 'base-url', 'https://api.example.com', '--profile', profile, '--json'],
      context,
    )
  expect(await offers('config list --profile ', context)).toEqual(['ci', 'default', 'work'])
})

test('shell completion for `claims get` offers the domains in the ledger of the given profile', async () => {
  const context = createFakeContext()
  const claim = (name: string, domain_id: string) => ({
    object: 'domain_claim',
    name,
    domain_id,
    status: 'pending',
  })
  await trySaveClaim(claim('one.example', 'd1'), createIo(context, await fakeSettings(context)))
  await trySaveClaim(
    claim('other.example', 'd3'),
    createIo(context, await fakeSettings(context, { profile: 'work' })),
  )
  const get = 'claims get --base-url http://127.0.0.1:1'
  expect(await offers(`${get} `, context)).toEqual(['one.example'])
  expect(await offers(`${get} --profile work `, context)).toEqual(['other.example'])
})

test('completion prints nothing on stderr, and on each line a candidate that starts with the typed word, or `:files` for file names', async () => {
  const word = fc.oneof(
    fc.constantFrom('', '-', '--', '--json', '--format', '--format=', '--profile', 'help', '../x'),
    fc.constantFrom(...[...walkCommands(commandTree)].flatMap(({ path }) => path)),
    fc.string({ unit: 'binary', maxLength: 12 }).filter((text) => !text.includes(' ')),
  )
  const context = createFakeContext()
  await fc.assert(
    fc.asyncProperty(fc.array(word, { minLength: 1, maxLength: 6 }), async (words) => {
      for (const candidate of await lines(words.join(' '), context))
        expect(candidate === ':files' || candidate.startsWith(words.at(-1) ?? '')).toBe(true)
    }),
    { numRuns: 200 },
  )
  expect(context.stderr.text).toBe('')
})
