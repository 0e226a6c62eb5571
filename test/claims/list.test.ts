import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { readList } from '../../src/claims/list.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'

async function read(text: string | Buffer, takesIds = true) {
  const context = createFakeContext()
  const stdin = { isTTY: false, stream: Readable.from([Buffer.from(text)]) as never }
  const io = createIo({ ...context, stdin }, await fakeSettings(context))
  return { ...(await readList('-', takesIds, io)), stderr: context.stderr.text }
}

test('a list has a domain on each line, and perhaps the value to expect', async () => {
  const { subjects } = await read(
    '\ufeffa.example\r\n\n# a comment\nBÜCHER.example. , prefix=token\n"b.example","p=ab=="',
  )
  expect(subjects).toEqual([
    { domain: 'a.example' },
    { domain: 'xn--bcher-kva.example', value: 'prefix=token' },
    { domain: 'b.example', value: 'p=ab==' },
  ])
})

test('with a header, its columns count, and others are ignored, said once', async () => {
  const { subjects, stderr } = await read(
    'Client,Region,Domain\nACME,eu-west-1,a.example\n"X, Inc.",,b.example\n',
  )
  expect(subjects).toEqual([{ domain: 'a.example', region: 'eu-west-1' }, { domain: 'b.example' }])
  expect(stderr).toMatch(/^\S*warning: \S*ignored columns of <stdin>: client\n$/)
})

test.each([
  ['b ad', '"b ad" is not a domain name'],
  ['a.example,prefix=token,more', 'columns: 3 instead of 2'],
  [',prefix=token', 'the domain is missing'],
  ['a.example,token', "the value isn't a complete value: prefix=token, with nothing before or after it"],
  ['a.example,TXT=prefix=token', "the value isn't a complete value"],
  ['a.example,"prefix=a,b"', "the value isn't a complete value"],
  ['a.example # mine', '"a.example # mine"'],
])('a bad line is named, and the others go on: %s', async (line, why) => {
  const { subjects, problems, stderr } = await read(`a.example\n${line}\nb.example`)
  expect(subjects).toEqual([{ domain: 'a.example' }, { domain: 'b.example' }])
  expect(problems).toBe(1)
  expect(stderr).toContain('<stdin>:2: ')
  expect(stderr).toContain(why)
})

test('a region that does not exist is a bad line', async () => {
  const { subjects, stderr } = await read('domain,region\na.example,mars\n')
  expect(subjects).toEqual([])
  expect(stderr).toContain('"mars" is not a region')
})

test.each([
  ['a file in UTF-16', Buffer.from('\ufeffa.example', 'utf16le')],
  ['a file that is no text', Buffer.from([80, 75, 3, 4, 0, 0])],
  ['a list without a domain', Buffer.from('# none\n')],
  ['a list with a line break in a cell', Buffer.from('domain,client\na.example,"ACME\nInc."\n')],
])('%s is refused', async (_what, bytes) => {
  await expect(read(bytes)).rejects.toMatchObject({ exit: 2 })
})

test.each([
  ['semicolons', 'Client;domain;value\n"X; Inc.";a.example;prefix=token\n'],
  ['tabs', 'domain\tvalue\n\na.example \tprefix=token\n'],
  ['semicolons and no header', 'a.example;prefix=token'],
])('a spreadsheet may separate with %s', async (_what, text) => {
  const { subjects, problems } = await read(text)
  expect({ subjects, problems }).toEqual({
    subjects: [{ domain: 'a.example', value: 'prefix=token' }],
    problems: 0,
  })
})

test('of many bad lines the first ten are named, and all are counted', async () => {
  const { problems, stderr } = await read(`a.example\n${'b ad\n'.repeat(200)}`)
  expect(problems).toBe(200)
  expect(stderr.match(/^warning: /gm)).toHaveLength(11)
  expect(stderr).toContain("lines of <stdin> that can't be used: 200")
})

test.each([
  ['UTF-16', Buffer.from('\ufeffdomain,value\n', 'utf16le')],
  ['another header', 'Domain name,Value\na.example,prefix=token\n'],
])('a spreadsheet saved with %s is refused with how to save it', async (_what, text) => {
  const hint = 'save it as CSV UTF-8, with a column named domain'
  await expect(read(text)).rejects.toMatchObject({ exit: 2, hint })
})

test.each([
  ['missing.txt', 'no such file or directory'],
  ['.', 'illegal operation on a directory'],
])('a list that cannot be read is refused: %s', async (name, why) => {
  const context = createFakeContext()
  const home = context.directories.state
  writeFileSync(join(home, '..', 'other'), '')
  const io = createIo(context, await fakeSettings(context))
  await expect(readList(join(home, '..', name), true, io)).rejects.toMatchObject({
    exit: 2,
    message: expect.stringContaining(why),
  })
})
