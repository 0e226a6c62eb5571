import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { everyCommand, takesValue } from '../src/cli/line.ts'
import { run } from '../src/cli.ts'
import { Exit } from '../src/errors.ts'
import { createFakeContext } from './fake-context.ts'
import { alternatives, pathsIn, readSchemas, SCHEMAS, type Schema } from './schemas.ts'

const schemas = readSchemas(SCHEMAS)

const commands = await Promise.all(
  [...everyCommand()].map(async ({ words, leaf }) => ({
    name: words.join(' '),
    definition: await leaf.load(),
  })),
)

/** The files that describe what the service sends, which may grow at any time. */
const OPEN = ['claim.json', 'record.json', 'grant.json', 'grant-list.json', 'import.json', 'import-list.json']

/** The commands that take several domains. */
const SEVERAL = [
  'claim',
  ...['check', 'create', 'publish', 'record', 'verify', 'watch'].map((word) => `claims ${word}`),
]

async function described() {
  const context = createFakeContext()
  expect(await run(['commands', '--json'], context)).toBe(0)
  return JSON.parse(context.stdout.text)
}

/** The item of a list; anything else is its own item. */
function itemFile(file: string): string {
  return schemas.get(file).properties?.['data']?.items?.$ref ?? file
}

/** Fields that others are below, such as `record` of `record.name`, don't have to be listed. */
const leavesOf = (paths: readonly string[]) =>
  [...new Set(paths)].filter((path) => !paths.some((other) => other.startsWith(`${path}.`))).toSorted()

describe('the JSON Schemas', () => {
  test.each(schemas.files)('%s is valid, named as its file, and has a title', (file) => {
    expect(schemas.get(file).$id).toBe(file)
    expect(schemas.get(file).title).toMatch(/^[A-Z][^.]+$/)
    // Compiles it and all that it refers to, strictly.
    expect(schemas.problems(file, 0)).not.toEqual([])
    expect(schemas.problems(file, 0).join()).not.toContain('there is no schema')
  })

  test.each(commands.map(({ name, definition }) => [name, definition.output] as const))(
    'mailclaim %s has a schema of its document and of its lines',
    (_name, { schema, lineSchema = schema }) => {
      expect(schemas.files).toContain(`${schema}.json`)
      expect(schemas.files).toContain(`${lineSchema}.json`)
    },
  )

  test('those that take several domains, and no others, have one of the list of what they print', async () => {
    const { data } = await described()
    const lists = data.filter(({ list_schema }: { list_schema: string | null }) => list_schema !== null)
    expect(lists.map(({ command }: { command: string }) => command).toSorted()).toEqual(SEVERAL)
    for (const { schema, list_schema } of lists)
      expect(schemas.get(list_schema).properties?.['data']?.items).toEqual({ $ref: schema })
  })

  test('each of them describes something that a command prints', async () => {
    const { data, schemas: others } = await described()
    const used = new Set<string>([others.error, others.field_list])
    for (const { schema, line_schema, list_schema } of data) {
      used.add(schema).add(line_schema)
      if (list_schema !== null) used.add(list_schema)
    }
    for (const file of used) {
      const references = JSON.stringify(schemas.get(file)).matchAll(/"\$ref":"([\w-]+\.json)/g)
      for (const [, target = ''] of references) used.add(target)
    }
    expect([...used].toSorted()).toEqual(schemas.files.toSorted())
  })

  test.each(commands.map(({ name, definition }) => [name, definition] as const))(
    'the schemas of mailclaim %s and the fields that --fields knows are the same',
    (name, { output: { schema, lineSchema = schema, fields, events } }) => {
      // --fields selects from the result of a login, not from the address that comes first.
      const described = (file: string) =>
        leavesOf(pathsIn(schemas, file)).filter(
          (path) => name !== 'login' || !pathsIn(schemas, 'login-event.json').includes(path),
        )
      expect(described(itemFile(`${schema}.json`))).toEqual(leavesOf(below(fields, `${schema}.json`)))
      expect(described(`${lineSchema}.json`)).toEqual(leavesOf(below(events ?? fields, `${lineSchema}.json`)))
    },
  )

  test.each(commands.filter(({ definition }) => definition.events).map(({ name }) => name))(
    'the events of mailclaim %s are those of the schema of its lines',
    (name) => {
      const fileOf = ({ definition: { output } }: (typeof commands)[number]) =>
        `${output.lineSchema ?? output.schema}.json`
      const file = fileOf(commands.find((one) => one.name === name) ?? expect.fail())
      const sharing = commands.filter((one) => one.definition.events && fileOf(one) === file)
      const enums = alternatives(schemas, schemas.get(file), file).flatMap(
        ([{ properties }]) => properties?.['event']?.enum ?? [],
      )
      const events = new Set(sharing.flatMap(({ definition }) => Object.keys(definition.events ?? {})))
      expect(enums.toSorted()).toEqual([...events].toSorted())
    },
  )

  test('an error names every exit code but 0', () => {
    const { error } = schemas.get('error.json').properties ?? {}
    expect(error?.properties?.['exit']?.enum).toEqual(Object.values(Exit).filter((code) => code !== 0))
  })

  test.each(schemas.files)('%s is open if the service can add fields to it, and closed if not', (file) => {
    const objects = (schema: Schema): Schema[] => [
      ...(schema.properties === undefined ? [] : [schema]),
      ...[
        ...Object.values(schema.properties ?? {}),
        ...Object.values(schema.$defs ?? {}),
        ...(schema.items === undefined ? [] : [schema.items]),
        ...(schema.anyOf ?? []),
        ...(schema.allOf ?? []),
      ].flatMap(objects),
    ]
    for (const one of objects(schemas.get(file))) {
      // A claim with one more field.
      if (
        /^(claim-workflow|claim-result|listed-claim|record-result)\.json$/.test(file) &&
        one.allOf !== undefined
      )
        continue
      expect(one.additionalProperties, JSON.stringify(one)).toBe(OPEN.includes(file))
    }
  })

  test('a field that the program adds is reported, and one that the service adds is not', () => {
    const report = { name: 'example.com', expected: null, verdict: 'unknown', ready: false }
    const rest = { retry_after_seconds: null, zone: null, nameservers: [], resolvers: [], findings: [] }
    expect(schemas.problems('check-report.json', { ...report, ...rest })).toEqual([])
    expect(schemas.problems('check-report.json', { ...report, ...rest, added: 1 })).toHaveLength(1)
    expect(schemas.problems('check-report.json', report)).not.toEqual([])
    expect(schemas.problems('claim.json', { id: null, added: { lately: 1 } })).toEqual([])
    expect(schemas.problems('claim-workflow.json', { added: 1, missing: { step: 'dns' } })).toHaveLength(1)
  })
})

describe('mailclaim commands --json', () => {
  test('describes itself by its own schema, and every command of the tree', async () => {
    const document = await described()
    expect(schemas.problems('command-list.json', document)).toEqual([])
    expect(document.data.map(({ command }: { command: string }) => command)).toEqual(
      commands.map(({ name }) => name),
    )
  })

  test('the type of an option is that of the value that the command gets', async () => {
    const { data } = await described()
    for (const { name, definition } of commands) {
      for (const option of definition.options ?? []) {
        const found = data
          .find(({ command }: { command: string }) => command === name)
          .options.find((one: { name: string }) => option.flags.split(/[ ,]+/).includes(one.name))
        if (!takesValue(option)) expect(found.type, option.flags).toBe('boolean')
        else if (option.parse === undefined) expect(found.type, option.flags).toBe('string')
        else {
          const value = attempt(() => option.parse?.('7', option.flags))
          const isNumber = typeof value === 'number'
          expect(['integer', 'number'].includes(found.type), `${name} ${option.flags}`).toBe(isNumber)
          if (found.type === 'integer')
            expect(() => option.parse?.('1.5', option.flags), option.flags).toThrow()
        }
      }
    }
  })

  test('what conflicts is said at both options', async () => {
    const { data } = await described()
    for (const { options } of data) {
      for (const { name, conflicts } of options) {
        for (const other of conflicts) {
          const found = options.find((one: { name: string }) => other.startsWith(one.name))
          if (found !== undefined) expect(found.conflicts.join(), `${other} of ${name}`).toContain(name)
        }
      }
    }
  })

  test('what to do after an exit code is what the documentation says', async () => {
    const page = readFileSync(new URL('../docs/exit-codes.md', import.meta.url), 'utf8')
    const { exits } = await described()
    const words = { continue: /^continue/, stop: /^(stop|end|depends)/, retry: /^try again/, wait: /^wait/ }
    for (const { code, advice } of exits as { code: number; advice: keyof typeof words }[]) {
      const row = page.split('\n').find((line) => new RegExp(`^\\| (130, )?${code}\\b`).test(line))
      const advised = row ?? page.split('\n').find((line) => line.startsWith('| 130, 143'))
      expect(advised?.split('|').at(-2)?.trim(), String(code)).toMatch(words[advice])
    }
  })

  test('a command that needs no account does not end for the lack of one', async () => {
    const { data } = await described()
    const needless = data.filter(({ account }: { account: string }) => account === 'none')
    expect(needless.length).toBeGreaterThan(8)
    for (const { command, arguments: taken } of needless) {
      // The sandbox would stay, and doctor reports problems with the exit code of whatever they stop.
      if (/sandbox|doctor/.test(command)) continue
      const words = [...command.split(' '), ...taken.map(() => 'example')]
      expect([0, 2, 5], words.join(' ')).toContain(await run(words, createFakeContext()))
    }
  })

  test('a command that needs an account does not work without one', async () => {
    const { data } = await described()
    const needy = data.filter(({ account }: { account: string }) => /configured|signed_in/.test(account))
    expect(needy.length).toBeGreaterThan(8)
    for (const { command, arguments: taken } of needy) {
      const context = createFakeContext()
      const given = taken.map(() => 'example.com')
      const words = [...command.split(' '), ...given]
      // No base URL, nobody signed in, or no claim on this machine.
      expect([3, 4, 5], words.join(' ')).toContain(await run(words, context))
    }
  })
})

/** Fields without a name for the object that they are in, unless nothing is known of its inside. */
function below(fields: readonly string[], file: string): string[] {
  const paths = pathsIn(schemas, itemFile(file))
  // Whatever is below a field that is listed as a whole, such as `missing.report`, is listed with it.
  return fields.flatMap((field) => {
    const inner = paths.filter((path) => path.startsWith(`${field}.`))
    return inner.length === 0 ? [field] : inner
  })
}

function attempt(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return undefined
  }
}
