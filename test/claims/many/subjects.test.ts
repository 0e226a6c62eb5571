import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readLines } from '../../../src/claims/many/lines.ts'
import { countLines, readSubjects, type SubjectReading } from '../../../src/claims/many/subjects.ts'
import { usageError } from '../../../src/errors.ts'
import { createFakeContext } from '../../fake-context.ts'

const COLUMNS = new Map([
  [
    'region',
    {
      key: 'region',
      parse: (text: string) => {
        if (text !== 'eu-west-1') throw usageError(`region: ${text} is not one of eu-west-1`)
        return text
      },
    },
  ],
  ['open_tracking', { key: 'openTracking', parse: (text: string) => text === 'true' }],
])

async function read(list: string | Uint8Array, domains: readonly string[] = [], takesIds = true) {
  const readings: SubjectReading[] = []
  const source = {
    domains,
    from: '-',
    columns: COLUMNS,
    takesIds,
    stdin: async function* () {
      yield list
    },
  }
  for await (const reading of readSubjects(source)) readings.push(reading)
  return readings
}

const subjectsIn = async (list: string) =>
  (await read(list)).flatMap((reading) => (reading.kind === 'subject' ? [reading.subject] : []))
const problemsIn = async (list: string | Uint8Array) =>
  (await read(list)).flatMap((reading) =>
    reading.kind === 'problem' ? [`${reading.where}: ${reading.why}`] : [],
  )
const plain = (domain: string) => ({ domain, options: {} })

describe('forms of a list', () => {
  test('a line holds a domain; blank lines and comments are skipped', async () => {
    expect(
      await subjectsIn('\uFEFF# ours\r\nexample.com\r\n\r\n  Example.NET  \n#x.com\nbücher.example'),
    ).toEqual([plain('example.com'), plain('example.net'), plain('xn--bcher-kva.example')])
  })

  test('without a header, a second column is the value', async () => {
    expect(await subjectsIn('a.com,p=1\nb.com\nc.com,"p=""2"",3"\nd.com\tp=4')).toEqual([
      { ...plain('a.com'), value: 'p=1' },
      plain('b.com'),
      { ...plain('c.com'), value: 'p="2",3' },
      { ...plain('d.com'), value: 'p=4' },
    ])
  })

  test.each([',', ';', '\t'])('a header names the columns, separated by %j', async (separator) => {
    const lines = ['Value,Domain,region,open-tracking', 'p=1,a.com,eu-west-1,true', ',b.com,,']
    expect(await subjectsIn(lines.join('\n').replaceAll(',', separator))).toEqual([
      { domain: 'a.com', value: 'p=1', options: { region: 'eu-west-1', openTracking: true } },
      plain('b.com'),
    ])
  })

  test('a line may be a JSON object', async () => {
    const line = JSON.stringify({ domain: 'a.com', value: 'p=1', region: 'eu-west-1', open_tracking: true })
    expect(await subjectsIn(`${line}\n{"domain":"b.com","value":null}\n`)).toEqual([
      { domain: 'a.com', value: 'p=1', options: { region: 'eu-west-1', openTracking: true } },
      plain('b.com'),
    ])
  })

  test('a domain that comes again is done once, typed or listed', async () => {
    const kinds = (await read('a.com\nb.com\nA.com.\n', ['a.com'])).map(({ kind }) => kind)
    expect(kinds).toEqual(['subject', 'repeated', 'subject', 'repeated'])
  })

  test('what looks like a placeholder domain id is one, if the command takes ids', async () => {
    const id = '5e7f6420-17d0-4211-8dac-2c043e0f0f3c'
    expect((await read(id)).map(({ kind }) => kind)).toEqual(['subject'])
    expect((await read(id, [], false)).map(({ kind }) => kind)).toEqual(['problem'])
  })
})

test.each([
  ['a web address', 'https://a.com/x', /is a web address, not a domain name; use the name alone: a\.com$/],
  ['an e-mail address', 'me@a.com', /is an e-mail address/],
  ['an IP address', '192.0.2.1', /is an IP address/],
  ['a single word', 'localhost', /is not a whole domain name/],
  ['a wildcard', '*.a.com', /is a wildcard/],
  ['a space in it', 'a .com', /has a space in it/],
  ['an empty label', 'a..com', /has an empty label/],
  ['an invisible character', 'a\u200b.com', /has an invisible character/],
  ['too many columns', 'a.com,p=1,eu-west-1', /^<stdin>:2: 3 columns; without a header/],
  ['an open quotation mark', 'a.com,"p=1', /a quotation mark is not closed/],
  ['text after a quotation mark', '"a.com"x,p=1', /text after a closing quotation mark/],
  ['half a JSON object', '{"domain":"a.com"', /not a complete JSON object/],
  ['a comment after the domain', 'a.com # for Ann', /a comment needs a line of its own$/],
  [
    'a comment after the domain, with commas',
    'a.com # for Ann, Bob, Eve',
    /a comment needs a line of its own$/,
  ],
  ['an empty first column', '\ta.com', /the first column, the domain, is empty$/],
  [
    'two domains on a line',
    'a.com, b.com',
    /the value "b.com" is a domain name; give one domain on each line/,
  ],
  ['JSON without a domain', '{"value":"p=1"}', /the domain is missing/],
  [
    'JSON with an unknown field',
    '{"domain":"a.com","regoin":"x"}',
    /unknown field "regoin"; the fields are domain, value/,
  ],
  ['JSON with a number', '{"domain":7}', /"domain" isn't a string/],
  ['a wrong region', '{"domain":"a.com","region":"mars"}', /mars is not one of/],
  ['other details than before', 'good.com,p=2', /good\.com was there before with another value/],
  ['a very long line', `${'a'.repeat(300_000)}.com`, /longer than 262144 bytes/],
])('a line with %s is named, and the others go on', async (_what, line, problem) => {
  const list = `good.com\n${line}\nlast.com\n`
  expect(await problemsIn(list)).toEqual([expect.stringMatching(problem)])
  expect((await problemsIn(list))[0]).toMatch(/^<stdin>:2: /)
  expect((await subjectsIn(list)).map(({ domain }) => domain)).toEqual(['good.com', 'last.com'])
})

test('a line that is not UTF-8 is named', async () => {
  const list = Buffer.concat([
    Buffer.from('a.com\n'),
    Buffer.from([0x66, 0xfc, 0x72, 0x0a]),
    Buffer.from('b.com'),
  ])
  expect(await problemsIn(list)).toEqual(["<stdin>:2: the line isn't UTF-8"])
})

test('a zero byte in a line spoils only that line', async () => {
  const list = 'a.com\nb\0.com\nc.com\n'
  expect(await problemsIn(list)).toEqual(['<stdin>:2: the line has a zero byte'])
  expect((await subjectsIn(list)).map(({ domain }) => domain)).toEqual(['a.com', 'c.com'])
})

test.each([
  ['a header with an unknown column', 'domain,regoin\na.com,x', 'unknown column "regoin"'],
  ['a header with a column twice', 'domain,value,value', 'the column value is in the header twice'],
  ['UTF-16', Buffer.from('\uFEFFa.com\n', 'utf16le'), 'the list is in UTF-16'],
  ['a file that is not a text', Buffer.from([0x50, 0x4b, 0x03, 0x04, 0, 0, 0x0a]), "the list isn't text"],
])('%s ends the run', async (_what, list, message) => {
  await expect(read(list)).rejects.toMatchObject({ exit: 2, message: expect.stringContaining(message) })
})

test('a file that is not there ends the run, and is not counted', async () => {
  const { directories } = createFakeContext()
  const from = join(directories.state, '..', 'none.txt')
  const source = { domains: [], from, columns: COLUMNS, takesIds: true, stdin: async function* () {} }
  await expect(readSubjects(source).next()).rejects.toMatchObject({
    exit: 2,
    message: `--from: couldn't read ${from}: it doesn't exist`,
  })
  expect(await countLines(from)).toBeUndefined()
  writeFileSync(from, 'a.com\n\n# x\nb.com\nnot a name\n')
  expect(await countLines(from)).toBe(3)
})

test('lines are the same however the stream is cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: 'binary' })),
      fc.integer({ min: 1, max: 7 }),
      async (texts, size) => {
        const lines = texts.map((text) => text.replaceAll(/[\r\n\0\uFEFF]|^[\u00fe\u00ff]/g, ''))
        const bytes = Buffer.from(`${lines.join('\n')}\n`)
        const found: string[] = []
        const pieces = async function* () {
          for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
        }
        for await (const line of readLines(pieces())) if (line.kind === 'text') found.push(line.text)
        expect(found).toEqual(lines.length === 0 ? [''] : lines.map((line) => Buffer.from(line).toString()))
      },
    ),
  )
})
