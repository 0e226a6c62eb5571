import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { Exit } from '../src/errors.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** The source of the program. */
const source = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(join(ROOT, 'src', name), 'utf8'))
  .join('\n')

const page = readFileSync(join(ROOT, 'docs/exit-codes.md'), 'utf8')
const section = page.slice(page.indexOf('\n## Codes in JSON errors'))

/** The codes of the table in the documentation, by the text in the column of exit codes. */
const documented = new Map(
  [...section.matchAll(/^\| ([\d, a-z]+?) +\| (.+) \|$/gm)].map(([, exit = '', codes = '']) => [
    exit,
    [...codes.matchAll(/`([a-z_]+)`/g)].map(([, code = '']) => code),
  ]),
)

/** What constructs an error: the expression of its code, and the name of its exit code if that is written there. */
const constructed = [...source.matchAll(/new CliError\(\s*([^,]+),\s*([^,]+),/g)].map(
  ([, code = '', exit = '']) => ({
    codes: [...code.matchAll(/'([a-z_]+)'/g)].map(([, literal = '']) => literal),
    exit: /Exit\.(\w+)$/.exec(exit)?.[1] as keyof typeof Exit | undefined,
  }),
)

test('every exit code is in the table of exit codes, in order', () => {
  const table = page.slice(0, page.indexOf('\n## '))
  const rows = [...table.matchAll(/^\| (\d[\d, ]*\d|\d) +\|/gm)].flatMap(([, codes = '']) =>
    codes.split(', '),
  )
  expect(rows.map(Number)).toEqual(Object.values(Exit))
})

test('every code of an error is documented beside its exit code', () => {
  const all = [...documented.values()].flat()
  expect(constructed.flatMap(({ codes }) => codes).length).toBeGreaterThan(50)
  for (const { codes, exit } of constructed) {
    const known = exit === undefined ? all : (documented.get(String(Exit[exit])) ?? [])
    for (const code of codes) expect([...known, 'problems_found'], `exit ${exit}`).toContain(code)
  }
})

test('every documented code is in the source', () => {
  const templates = [...source.matchAll(/`([a-z]+_(?:[a-z]+_)*)\$\{/g)].map(([, prefix = '']) => prefix)
  for (const code of [...documented.values()].flat()) {
    const isBuilt = templates.some(
      (prefix) =>
        code.startsWith(prefix) && new RegExp(`['\\s|]${code.slice(prefix.length)}['\\s:|]`).test(source),
    )
    expect(isBuilt || source.includes(`'${code}'`), code).toBe(true)
  }
})
