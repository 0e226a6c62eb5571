import fc from 'fast-check'
import stringWidth from 'fast-string-width'
import { describe, expect, test } from 'vitest'
import type { GivenOptions } from '../../src/settings/settings.ts'
import { createPalette, PLAIN_PALETTE, usesColor } from '../../src/terminal/color.ts'
import { type Column, formatCellValue, getValueAtPath } from '../../src/terminal/columns.ts'
import { createIo } from '../../src/terminal/io.ts'
import { wrapLine } from '../../src/terminal/measure.ts'
import { createPagedTable } from '../../src/terminal/table.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'

const ID = '6f1c2a4e-0000-4000-8000-000000000001'
const COLUMNS: readonly Column[] = [
  { field: 'id', kind: 'id' },
  { field: 'client.name', title: 'Client' },
  { field: 'count', kind: 'number' },
  { field: 'only_people', only: 'people', value: () => 'seen' },
  { field: 'only_programs', only: 'programs' },
]

async function ioFor(options: GivenOptions = {}, columns?: number) {
  const context = createFakeContext(columns === undefined ? {} : { terminal: { columns } })
  const io = createIo(context, await fakeSettings(context, { color: false, ...options }))
  return { io, context }
}

async function list(
  pages: readonly (readonly object[])[],
  options: GivenOptions,
  { columns, hasMore = false, envelope }: { columns?: number; hasMore?: boolean; envelope?: object } = {},
) {
  const { io, context } = await ioFor(options, columns)
  const writer = io.list(COLUMNS, 'There is nothing.')
  for (const items of pages) await writer.page({ items, ...(envelope && { envelope }) })
  await writer.end(hasMore)
  return { out: context.stdout.text, err: context.stderr.text }
}

async function one(item: object, options: GivenOptions, columns?: number) {
  const { io, context } = await ioFor(options, columns)
  await io.write(item, COLUMNS)
  return context.stdout.text
}

test("a list in JSON is one document with the items of all pages and the other fields of the service's response", async () => {
  const envelope = { total: 2, object: 'list', data: [], has_more: true }
  const { out } = await list([[{ id: 'a' }], [{ id: 'b' }]], { json: true }, { envelope, hasMore: true })
  expect(out).toBe('{"object":"list","total":2,"data":[{"id":"a"},{"id":"b"}],"has_more":true}\n')
})

test('any list printed as JSON is one valid document, with one item per line on a terminal', async () => {
  const item = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 })
  const pages = fc.array(fc.array(item, { maxLength: 3 }), { maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(pages, fc.boolean(), async (found, tty) => {
      const { out } = await list(found, { json: true }, tty ? { columns: 80 } : {})
      const whole = { object: 'list', data: JSON.parse(JSON.stringify(found.flat())), has_more: false }
      expect(JSON.parse(out)).toEqual(whole)
      if (tty) expect(out.split('\n').length).toBe(found.flat().length + 3)
    }),
    { numRuns: 200 },
  )
})

test.each(['json', 'jsonl', 'tsv', 'table'])('a %s list prints each page as it arrives', async (format) => {
  const { io, context } = await ioFor({ format })
  await io.list(COLUMNS).page({ items: [{ id: ID }] })
  expect(context.stdout.text).toContain(ID)
})

test('a list has one item per line in JSONL, and a heading and escaped values in TSV', async () => {
  const items = [{ id: ID, client: { name: 'A\tB\n' }, count: 0, only_programs: null }, { id: 'x' }]
  expect((await list([items], { format: 'jsonl' })).out).toBe(
    items.map((item) => `${JSON.stringify(item)}\n`).join(''),
  )
  expect((await list([items], { format: 'tsv' })).out).toBe(
    `id\tclient.name\tcount\tonly_programs\n${ID}\tA\\tB\\n\t0\t\nx\t\t\t\n`,
  )
  expect((await list([], { format: 'tsv' })).out).toBe('id\tclient.name\tcount\tonly_programs\n')
})

test('an empty list prints a message on stderr in table format, and none in TSV', async () => {
  expect(await list([[]], { format: 'table' })).toEqual({ out: '', err: 'There is nothing.\n' })
  expect((await list([[]], { format: 'tsv' })).err).toBe('')
})

test('--fields selects columns in the given order, including members of objects and lists', async () => {
  const item = { id: 'a', client: { name: 'n' }, scopes: ['x', 'y'], findings: [{ code: 'c', fix: 'f' }] }
  const fields = ['findings.code', 'client.name', 'scopes', 'findings.0.fix']
  expect(await one(item, { format: 'tsv', fields })).toBe(`${fields.join('\t')}\nc\tn\tx,y\tf\n`)
})

test('a list of nonempty texts that formatCellValue has joined can be split into the same texts again', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1 }), (parts) => {
      const read = formatCellValue(parts).match(/(?:[^\\,]|\\.)+/gs)
      expect(read?.map((part) => part.replaceAll(/\\(.)/gs, '$1'))).toEqual(parts)
    }),
  )
})

test('getValueAtPath returns undefined for a field that an object only inherits, such as constructor', () => {
  expect(getValueAtPath({}, 'constructor')).toBeUndefined()
  expect(getValueAtPath({}, '__proto__.polluted')).toBeUndefined()
})

describe('one object', () => {
  const item = { object: 'thing', id: ID, client: { name: null }, count: 3, added_lately: { a: 1 } }

  test('an object on a terminal is a detail view with a dash for null, and fields without a column at the end', async () => {
    expect(await one(item, {}, 80)).toMatchInlineSnapshot(`
      "Id            6f1c2a4e-0000-4000-8000-000000000001
      Client        –
      Count         3
      Only people   seen
      Added lately  {"a":1}
      "
    `)
    expect(await one(item, {}, 30)).toContain(`Id\n  ${ID}\n`)
  })

  test("an object is written to a pipe as a TSV heading and record, and with --json as the service's unchanged object", async () => {
    expect(await one(item, {})).toBe(`id\tclient.name\tcount\tonly_programs\n${ID}\t\t3\t\n`)
    expect(await one(item, { json: true })).toBe(`${JSON.stringify(item)}\n`)
  })
})

describe('a table', () => {
  const TABLE = [COLUMNS[0], { field: 'name' }, COLUMNS[2]] as readonly Column[]
  const id = (index: number) => `6f1c2a4e-0000-4000-8000-${String(index).padStart(12, '0')}`
  const tableOf = (width: number, columns = TABLE, palette = PLAIN_PALETTE) =>
    createPagedTable(columns, { palette, width, now: 0 })
  const long = 'a rather long name of a client that does not fit'

  test('a table is only as wide as its cells need, and in a narrow terminal wraps texts, but no ids', () => {
    expect(tableOf(200).render([{ id: id(1), name: 'News', count: 5 }])).toMatchInlineSnapshot(`
      "Id                                    Name  Count
      6f1c2a4e-0000-4000-8000-000000000001  News      5
      "
    `)
    expect(tableOf(62).render([{ id: id(1), name: long, count: 1 }])).toMatchInlineSnapshot(`
      "Id                                    Name               Count
      6f1c2a4e-0000-4000-8000-000000000001  a rather long          1
                                            name of a client
                                            that does not fit
      "
    `)
  })

  test('a table that is too wide for the terminal leaves out optional columns, or becomes a detail view of each item', () => {
    const columns: readonly Column[] = [...TABLE.slice(0, 2), { field: 'created', optional: true }]
    const item = { id: id(1), name: 'contacts:write', created: '3 hours ago' }
    const table = tableOf(60, columns)
    expect(table.render([item])).toBe(`Id${' '.repeat(36)}Name\n${id(1)}  contacts:write\n`)
    expect(table.hiddenColumns().map(({ field }) => field)).toEqual(['created'])
    expect(tableOf(40).render([item, item])).toMatch(/^Id\n {2}6f.*\nName +contacts:write\nCount +–\n\nId\n/)
  })

  test('the second page of a list in table format fits the terminal, and has no heading', () => {
    const renderer = tableOf(56)
    renderer.render([{ id: id(1), name: 'Newsletter', count: 5 }])
    const second = renderer.render([{ id: id(2), name: long, count: 6 }])
    expect(second).not.toContain('Name')
    for (const line of second.split('\n')) expect(stringWidth(line)).toBeLessThanOrEqual(56)
    expect(tableOf(Number.POSITIVE_INFINITY).render([{ id: id(2), name: long, count: 6 }])).toContain(long)
  })

  test.each(['日本語のクライアント', '👩‍💻 dev', '❤️ heart', 'e\u0301clair', '🇨🇭 flag', 'plain'])(
    "the columns of a table stay aligned whatever the display width of a cell's text: %s",
    (name) => {
      const items = [name, 'x'].map((text, index) => ({ id: id(index), name: text, count: 7 }))
      const lines = tableOf(200).render(items).trimEnd().split('\n')
      expect(new Set(lines.map((line) => stringWidth(line))).size).toBe(1)
    },
  )

  test('a table with texts of any width fits a terminal of 40 columns or more, and breaks no id', () => {
    const name = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.lorem({ maxCount: 30 }),
      fc.constant('日本語'.repeat(30)),
    )
    fc.assert(
      fc.property(
        fc.array(name, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 40, max: 220 }),
        (names, width) => {
          const items = names.map((text, index) => ({ id: id(index), name: text, count: index }))
          const text = tableOf(width).render(items)
          for (const line of text.split('\n')) expect(stringWidth(line)).toBeLessThanOrEqual(width)
          for (const { id: whole } of items) expect(text).toContain(whole)
        },
      ),
      { numRuns: 200 },
    )
  })

  test('a cell that wraps in a table is colored line by line', async () => {
    const columns: readonly Column[] = [
      { field: 'name', paint: (_value, { palette }) => palette.good },
      { field: 'id' },
    ]
    const text = tableOf(30, columns, await createPalette(true)).render([{ name: long, id: 'x' }])
    for (const line of text.split('\n').slice(1, -1))
      expect(line).toMatch(/^\x1b\[32m[^\x1b]+\x1b\[39m( +x)?$/)
  })

  test('a table with a cell of up to 200,000 characters is laid out in less than 5 seconds of CPU time', () => {
    for (const name of ['x'.repeat(200_000), 'word '.repeat(40_000), '👩‍👩‍👧'.repeat(120)]) {
      const before = process.cpuUsage()
      tableOf(80).render([{ id: id(1), name, count: 1 }])
      expect(process.cpuUsage(before).user / 1e6).toBeLessThan(5)
    }
  })
})

test('wrapping a text loses nothing but spaces, and makes no line wider than the limit', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '日', ' ', '-'), maxLength: 60 })
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 30 }), (line, width) => {
      const pieces = wrapLine(line, width)
      for (const piece of pieces) expect(stringWidth(piece)).toBeLessThanOrEqual(width)
      expect(pieces.join('').replaceAll(' ', '')).toBe(line.replaceAll(' ', ''))
    }),
  )
})

describe('color', () => {
  const environment = { settings: {}, noColor: false, ci: false, ssh: false, term: 'xterm' }
  test.each<[string, object, boolean | undefined, boolean, boolean]>([
    ['a terminal gets color by default', {}, undefined, true, true],
    ['a pipe gets no color by default', {}, undefined, false, false],
    ['--no-color beats FORCE_COLOR', { forceColor: '3' }, false, true, false],
    ['NO_COLOR disables color on a terminal', { noColor: true }, undefined, true, false],
    ['FORCE_COLOR=1 beats NO_COLOR in a pipe', { forceColor: '1', noColor: true }, undefined, false, true],
    ['FORCE_COLOR=0 disables color', { forceColor: '0' }, undefined, true, false],
    ['TERM=dumb disables color on a terminal', { term: 'dumb' }, undefined, true, false],
  ])('%s', (_what, more, option, isTTY, expected) => {
    expect(usesColor({ ...environment, ...more }, option, { isTTY })).toBe(expected)
  })
})

test('without a terminal, progress is one line per new text; with --quiet or --json, progress prints nothing', async () => {
  for (const options of [{}, { quiet: true }, { json: true }] as const) {
    const { io, context } = await ioFor(options)
    await io.progress.update('waiting')
    await io.progress.update('waiting')
    await io.progress.succeed('found \x1b[2J')
    await io.say('a note')
    await io.warn('a warning')
    const lines = { notes: 'waiting\nfound \\u{1b}[2J\na note\n', warning: 'warning: a warning\n' }
    expect(context.stderr.text).toBe(
      'quiet' in options ? '' : 'json' in options ? lines.warning : lines.notes + lines.warning,
    )
  }
})

test('on a terminal, the text of a running step is animated below other output, and the text of a finished step stays', async () => {
  const { io, context } = await ioFor({}, 60)
  await io.progress.update('waiting for DNS')
  await io.warn('no answer yet')
  await io.progress.succeed('record found')
  await io.progress.end()
  const seen = context.stderr.text.replaceAll(/\x1b\[[0-9;?]*[A-Za-z]/g, '\r')
  expect(seen).toContain('⠋ waiting for DNS')
  expect(seen).toMatch(/\rwarning: no answer yet\n/)
  expect(seen).toMatch(/✔ record found\n$/)
  expect(context.stderr.text).toContain('\x1b[?25h')
})

test('messages wrap at words on a terminal, but the command in a hint stays on one line', async () => {
  const { io, context } = await ioFor({}, 20)
  await io.warn('one two three four five')
  await io.hint('one two three: mailclaim claims get example.com')
  expect(context.stderr.text).toMatchInlineSnapshot(`
    "warning: one two
      three four five
    hint: one two
      three:
      mailclaim claims get example.com
    "
  `)
})
