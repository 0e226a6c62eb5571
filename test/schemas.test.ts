import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { walkCommands } from '../src/commands/definition.ts'
import { commandTree } from '../src/commands/tree.ts'
import { Exit } from '../src/errors.ts'
import { createFakeContext } from './fake-context.ts'
import { run } from './run.ts'
import { readSchemas, SCHEMAS } from './schemas.ts'

const schemas = readSchemas(SCHEMAS)

async function describedCommands() {
  const context = createFakeContext()
  expect(await run(['commands', '--json'], context)).toBe(0)
  return JSON.parse(context.stdout.text)
}

test.each(schemas.files)('the JSON schema %s is valid, and has its file name as $id', (file) => {
  expect(schemas.get(file).$id).toBe(file)
  expect(schemas.get(file).title).toMatch(/^[A-Z][^.]+$/)
  // Compiles the schema and its references in strict mode.
  expect(schemas.problems(file, 0).join()).toMatch(/must be/)
})

test('docs/schemas has exactly the schemas that commands and errors use', async () => {
  const { data } = await describedCommands()
  const named = data.flatMap(({ schema, line_schema }: Record<string, string | null>) => [
    schema,
    line_schema,
  ])
  const used = new Set<string>(['error.json', ...named.filter((file: string | null) => file !== null)])
  for (const file of used) {
    const references = JSON.stringify(schemas.get(file.replace(/#.*/, ''))).matchAll(
      /"\$ref":"([\w-]+\.json)/g,
    )
    for (const [, target = ''] of references) used.add(target)
  }
  expect([...used].filter((file) => !file.includes('#')).toSorted()).toEqual(schemas.files.toSorted())
})

test('the error schema allows exactly the exit codes other than 0', () => {
  const { error } = schemas.get('error.json').properties ?? {}
  expect(error?.properties?.['exit']?.enum).toEqual(Object.values(Exit).filter((code) => code !== 0))
})

test('the schema report.json rejects missing and additional fields, and claim.json allows unknown fields', () => {
  const report = { name: 'example.com', expected: null, verdict: 'unknown', ready: false, claim: null }
  const rest = { retry_after_seconds: null, zone: null, nameservers: [], resolvers: [], findings: [] }
  expect(schemas.problems('report.json', { ...report, ...rest })).toEqual([])
  expect(schemas.problems('report.json', { ...report, ...rest, added: 1 })).toHaveLength(1)
  const asked = { host: 'ns1.example.net', address: null, outcome: 'match', values: [], added: 1 }
  for (const inner of [{ nameservers: [asked] }, { resolvers: [{ ...asked, address: '192.0.2.1' }] }])
    expect(schemas.problems('report.json', { ...report, ...rest, ...inner })).not.toEqual([])
  expect(schemas.problems('report.json', report)).not.toEqual([])
  expect(schemas.problems('claim.json', { id: null, added: { lately: 1 } })).toEqual([])
})

test('the output of mailclaim commands --json matches its schema, and lists every command', async () => {
  const document = await describedCommands()
  expect(schemas.problems('commands.json', document)).toEqual([])
  expect(document.data.map(({ command }: { command: string }) => command)).toEqual(
    [...walkCommands(commandTree)].map(({ path }) => path.join(' ')),
  )
})

test('every error code is used in the source and is among the errors of a command', async () => {
  const { data, errors } = await describedCommands()
  expect(new Set(data.flatMap((command: { errors: string[] }) => command.errors))).toEqual(
    new Set(errors.map(({ code }: { code: string }) => code)),
  )
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  )
  const text = sources.map((file) => readFileSync(join('src', file), 'utf8')).join('\n')
  const uses = text.replace(/^export const ERRORS = .*?^}/ms, '')
  // A code may occur without quotation marks: as a key of the table of OAuth errors, or as the setting before `_missing`.
  const unused = errors.filter(
    ({ code }: { code: string }) =>
      !new RegExp(`'${code}'|^  ${code}:|requireText\\('${code.replace('_missing', '')}'`, 'm').test(uses),
  )
  expect(unused).toEqual([])
})

test('without settings and credential, a command that always requires an account exits 3, 4 or 5, and one that never does 0, 2 or 5', async () => {
  const { data } = await describedCommands()
  for (const { command, account, arguments: taken } of data) {
    // Skip `sandbox`, which would keep running, `doctor`, which reports a missing account, and commands whose need depends on
    // arguments.
    if (account === 'sometimes' || /sandbox|doctor/.test(command)) continue
    const words = [...command.split(' '), ...taken.map(() => 'example.com')]
    const allowed = account === 'none' ? [0, 2, 5] : [3, 4, 5]
    // Without a terminal, `login` refuses to open a browser before it looks for an account.
    if (command === 'login') words.push('--no-browser')
    expect(allowed, words.join(' ')).toContain(await run(words, createFakeContext()))
  }
})
