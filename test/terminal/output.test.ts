import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GlobalOptions } from '../../src/settings/settings.ts'
import { type Column, pickFields, plainText, valueAt } from '../../src/terminal/columns.ts'
import { createListWriter } from '../../src/terminal/list-writer.ts'
import { writeObject } from '../../src/terminal/output.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'

const COLUMNS: readonly Column[] = [
  { field: 'id', kind: 'id' },
  { field: 'client.name', title: 'Client' },
  { field: 'count', kind: 'number' },
  { field: 'only_people', only: 'people', value: () => 'seen' },
  { field: 'only_programs', only: 'programs' },
]
const ID = '6f1c2a4e-0000-4000-8000-000000000001'

interface Output {
  out: string
  err: string
}

async function writeList(
  pages: readonly (readonly object[])[],
  options: GlobalOptions,
  more: { terminal?: number; hasMore?: boolean; finalHasMore?: boolean; envelope?: object } = {},
): Promise<Output> {
  const context = createFakeContext(
    more.terminal === undefined ? {} : { terminal: { columns: more.terminal } },
  )
  const settings = await fakeSettings(context, { color: false, ...options })
  const writer = createListWriter({ context, settings, columns: COLUMNS, nothing: 'There is nothing.' })
  for (const items of pages) {
    await writer.page({
      items,
      envelope: more.envelope ?? { object: 'list', has_more: true, data: items },
      finalHasMore: more.finalHasMore,
    })
  }
  await writer.end(more.hasMore ?? false)
  return { out: context.stdout.text, err: context.stderr.text }
}

async function writeOne(item: object, options: GlobalOptions, terminal?: number): Promise<Output> {
  const context = createFakeContext(terminal === undefined ? {} : { terminal: { columns: terminal } })
  await writeObject(context, await fakeSettings(context, { color: false, ...options }), item, COLUMNS)
  return { out: context.stdout.text, err: context.stderr.text }
}

describe('a list as JSON', () => {
  it("a JSON list is the service's envelope, in its order, if the end is known at the start", async () => {
    const { out } = await writeList([[{ id: 'a' }], [{ id: 'b' }]], { json: true }, { finalHasMore: false })
    expect(out).toBe('{"object":"list","has_more":false,"data":[{"id":"a"},{"id":"b"}]}\n')
  })

  it('a JSON list has has_more at its end if that was not known before', async () => {
    const { out } = await writeList([[{ id: 'a' }], [{ id: 'b' }]], { json: true }, { hasMore: true })
    expect(out).toBe('{"object":"list","data":[{"id":"a"},{"id":"b"}],"has_more":true}\n')
  })

  it('a JSON list keeps the other fields of the envelope', async () => {
    const envelope = { total: 2, object: 'list', data: [], has_more: false, note: 'x' }
    const { out } = await writeList([[{ id: 'a' }]], { json: true }, { envelope, finalHasMore: false })
    expect(JSON.parse(out)).toEqual({
      total: 2,
      object: 'list',
      data: [{ id: 'a' }],
      has_more: false,
      note: 'x',
    })
    expect(out.startsWith('{"total":2,"object":"list",')).toBe(true)
  })

  it('a JSON list on a terminal is indented, and still one document', async () => {
    const { out } = await writeList(
      [[{ id: 'a', c: { d: 1 } }], [{ id: 'b' }]],
      { json: true },
      { terminal: 80, finalHasMore: false },
    )
    expect(out).toBe(
      `${JSON.stringify({ object: 'list', has_more: false, data: [{ id: 'a', c: { d: 1 } }, { id: 'b' }] }, null, 2)}\n`,
    )
  })

  it('a JSON list parses, whatever the items, the pages and the fields', async () => {
    const item = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(item, { maxLength: 3 }), { maxLength: 3 }),
        fc.boolean(),
        fc.boolean(),
        async (pages, tty, early) => {
          const { out } = await writeList(
            pages,
            { json: true },
            {
              ...(tty ? { terminal: 80 } : {}),
              ...(early ? { finalHasMore: true } : {}),
              hasMore: true,
            },
          )
          const plain = JSON.parse(JSON.stringify(pages.flat()))
          expect(JSON.parse(out)).toEqual({ object: 'list', has_more: true, data: plain })
        },
      ),
      { numRuns: 200 },
    )
  })

  it('every page is on stdout before the next one arrives', async () => {
    const context = createFakeContext()
    const settings = await fakeSettings(context, { json: true })
    const writer = createListWriter({ context, settings, columns: COLUMNS, nothing: '' })
    await writer.page({
      items: [{ id: 'a' }],
      envelope: { object: 'list', has_more: true, data: [] },
      finalHasMore: undefined,
    })
    expect(context.stdout.text).toContain('{"id":"a"}')
  })
})

describe('a list in lines', () => {
  it('jsonl is one item per line, as received', async () => {
    const { out } = await writeList([[{ id: 'a', x: [1] }], [{ id: 'b' }]], { format: 'jsonl' })
    expect(out).toBe('{"id":"a","x":[1]}\n{"id":"b"}\n')
  })

  it('TSV is a heading and full values, empty for null, without the columns for people', async () => {
    const { out } = await writeList(
      [[{ id: ID, client: { name: 'A\tB\n' }, count: 0, only_programs: null }], [{ id: 'x', client: null }]],
      { format: 'tsv' },
    )
    expect(out).toBe(`id\tclient.name\tcount\tonly_programs\n${ID}\tA\\tB\\n\t0\t\nx\t\t\t\n`)
  })

  it('CSV lines end with CRLF, and values are quoted if necessary', async () => {
    const { out } = await writeList(
      [[{ id: 'a', client: { name: 'x, "y"' }, count: 1, only_programs: ['p', 'q'] }]],
      {
        format: 'csv',
      },
    )
    expect(out).toBe('id,client.name,count,only_programs\r\na,"x, ""y""",1,"p,q"\r\n')
  })

  it('CSV defuses spreadsheet formulas only on request', async () => {
    const item = { id: '=cmd()' }
    expect((await writeList([[item]], { format: 'csv', fields: ['id'] })).out).toBe('id\r\n=cmd()\r\n')
    expect((await writeList([[item]], { format: 'csv', fields: ['id'], csvSafe: true })).out).toBe(
      "id\r\n'=cmd()\r\n",
    )
  })

  it.each(['tsv', 'csv'])('an empty list in %s still has its heading', async (format) => {
    const { out, err } = await writeList([[]], { format })
    expect(out.trim().split(/[\t,]/)).toEqual(['id', 'client.name', 'count', 'only_programs'])
    expect(err).toBe('')
  })

  it('an empty table is a message on stderr', async () => {
    expect(await writeList([[]], { format: 'table' })).toEqual({ out: '', err: 'There is nothing.\n' })
  })
})

describe('--fields', () => {
  const item = { id: 'a', client: { name: 'n', logo_uri: 'l' }, scopes: ['x', 'y'], other: 1 }

  it('--fields chooses columns in the given order', async () => {
    const { out } = await writeList([[item]], { format: 'tsv', fields: ['other', 'client.name', 'scopes'] })
    expect(out).toBe('other\tclient.name\tscopes\n1\tn\tx,y\n')
  })

  it('--fields keeps the nesting in JSON', async () => {
    const { out } = await writeList([[item]], { format: 'jsonl', fields: ['client.name', 'id', 'scopes.1'] })
    expect(out).toBe('{"id":"a","client":{"name":"n"},"scopes":["y"]}\n')
  })

  it.each(['table', 'json', 'jsonl', 'csv', 'tsv'])(
    'a field that the command does not list has to be in the data in %s, or nothing is printed',
    async (format) => {
      const context = createFakeContext()
      const settings = {
        ...(await fakeSettings(context, { format, fields: ['id', 'client.name', 'other'] })),
        knownFields: ['id', 'client.name'],
      }
      const list = () => createListWriter({ context, settings, columns: COLUMNS, nothing: '' })
      const page = (items: readonly object[]) => ({ items, envelope: { data: items }, finalHasMore: false })
      await list().page(page([{ id: 'a' }, item]))
      await writeObject(context, settings, item, COLUMNS)
      const before = context.stdout.text
      for (const print of [
        () => list().page(page([{ id: 'a', client: { name: 'n' } }])),
        () => list().end(false),
        () => writeObject(context, settings, { id: 'a' }, COLUMNS),
      ]) {
        await expect(print).rejects.toMatchObject({
          exit: 2,
          message: '--fields: unknown field "other"',
          hint: 'the fields are id, client.name',
        })
      }
      expect(context.stdout.text).toBe(before)
    },
  )

  it('--fields reaches into every object of a list', async () => {
    const one = { findings: [{ code: 'a', fix: 'x' }, { code: 'b' }], nothing: [] }
    expect((await writeOne(one, { format: 'tsv', fields: ['findings.code', 'findings.0.fix'] })).out).toBe(
      'findings.code\tfindings.0.fix\na,b\tx\n',
    )
    expect((await writeOne(one, { format: 'jsonl', fields: ['findings.code'] })).out).toBe(
      '{"findings":[{"code":"a"},{"code":"b"}]}\n',
    )
  })

  it('a list in a cell has one form, and its parts can be told apart', () => {
    expect(plainText(['a', 'b'])).toBe('a,b')
    const parts = fc.array(fc.string({ minLength: 1 }), { minLength: 1 })
    fc.assert(
      fc.property(parts, (list) => {
        const read = plainText(list).match(/(?:[^\\,]|\\.)+/gs)
        expect(read?.map((part) => part.replaceAll(/\\(.)/gs, '$1'))).toEqual(list)
      }),
    )
  })

  it('--fields never finds members that every object inherits', () => {
    expect(valueAt({}, 'constructor')).toBeUndefined()
    expect(valueAt({}, '__proto__.polluted')).toBeUndefined()
    expect(pickFields(JSON.parse('{"__proto__":{"a":1},"b":2}'), ['b'])).toEqual({ b: 2 })
  })
})

describe('one object', () => {
  const item = { object: 'thing', id: ID, client: { name: null }, count: 3, added_lately: { a: 1 } }

  it('an object on a terminal is a detail view, with a dash for null and unknown fields at the end', async () => {
    const { out } = await writeOne(item, {}, 80)
    expect(out).toMatchInlineSnapshot(`
      "Id            6f1c2a4e-0000-4000-8000-000000000001
      Client        –
      Count         3
      Only people   seen
      Added lately  {"a":1}
      "
    `)
  })

  it('an object in a pipe is a heading and a record', async () => {
    const { out } = await writeOne(item, {})
    expect(out).toBe(`id\tclient.name\tcount\tonly_programs\n${ID}\t\t3\t\n`)
  })

  it("an object in JSON is the service's own", async () => {
    expect((await writeOne(item, { json: true })).out).toBe(`${JSON.stringify(item)}\n`)
  })

  it('an object that is nested too deeply to be written is an expected failure', async () => {
    let deep: object = {}
    for (let depth = 0; depth < 200_000; depth++) deep = { deep }
    await expect(writeOne({ deep }, { json: true })).rejects.toMatchObject({
      exit: 7,
      code: 'unexpected_answer',
    })
  })
})

describe('hostile text', () => {
  const evil = '\x1b]52;c;AAAA\x07\x9b31m\u202e\u200b\r\u2028\u{e0041}\ud800'
  const item = {
    id: evil,
    client: { name: evil },
    [evil]: evil,
    [evil.slice(0, 3)]: null,
    count: [evil],
    only_programs: { [evil]: evil },
  }

  it.each(['table', 'json', 'jsonl', 'csv', 'tsv'])(
    'reaches stdout and stderr harmless in %s',
    async (format) => {
      for (const terminal of [undefined, 40, 200]) {
        for (const fields of [undefined, ['id', evil, evil.slice(0, 3)]]) {
          const options = { format, ...(fields === undefined ? {} : { fields }) }
          const place = terminal === undefined ? {} : { terminal }
          const list = await writeList([[item], [item]], options, place)
          const one = await writeOne(item, options, terminal)
          const bytes = list.out + list.err + one.out + one.err
          expect(bytes.replaceAll('\r\n', '\n')).not.toMatch(
            /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202e]|[\u{e0000}-\u{e007f}]/u,
          )
          expect(Buffer.from(bytes).toString()).toBe(bytes)
        }
      }
    },
  )
})
