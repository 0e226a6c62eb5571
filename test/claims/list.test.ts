import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { readUsableDomains } from '../../src/claims/list.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'

async function read(text: string | Buffer, takesIds = true) {
  const context = createFakeContext()
  const stdin = { isTTY: false, stream: Readable.from([Buffer.from(text)]) as never }
  const io = createIo({ ...context, stdin }, await fakeSettings(context))
  return { ...(await readUsableDomains('-', takesIds, io)), stderr: context.stderr.text }
}

test('a --from list has one domain per line, optionally with the expected TXT value', async () => {
  const { inputs } = await read(
    '\ufeffa.example\r\n\n# a comment\nBÜCHER.example. , prefix=token\n"b.example","p=ab=="',
  )
  expect(inputs).toEqual([
    { domain: 'a.example' },
    { domain: 'xn--bcher-kva.example', value: 'prefix=token' },
    { domain: 'b.example', value: 'p=ab==' },
  ])
})

test('a --from list is read by the headings in its header row, and a warning names the ignored columns', async () => {
  const { inputs, stderr } = await read(
    'Client,Region,Domain\nACME,eu-west-1,a.example\n"X, Inc.",,b.example\n',
  )
  expect(inputs).toEqual([{ domain: 'a.example', region: 'eu-west-1' }, { domain: 'b.example' }])
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
])('a --from list with the unusable line "%s" yields its other domains and a warning', async (line, why) => {
  const { inputs, badLines, stderr } = await read(`a.example\n${line}\nb.example`)
  expect(inputs).toEqual([{ domain: 'a.example' }, { domain: 'b.example' }])
  expect(badLines).toBe(1)
  expect(stderr).toContain('<stdin>:2: ')
  expect(stderr).toContain(why)
})

test('in a --from list, a line with an unknown region is unusable', async () => {
  const { inputs, stderr } = await read('domain,region\na.example,mars\n')
  expect(inputs).toEqual([])
  expect(stderr).toContain('"mars" is not a region')
})

test.each([
  ['semicolons', 'Client;domain;value\n"X; Inc.";a.example;prefix=token\n'],
  ['tabs', 'domain\tvalue\n\na.example \tprefix=token\n'],
  ['semicolons without a header row', 'a.example;prefix=token'],
])('the columns of a --from list may be separated by %s', async (_what, text) => {
  const { inputs, badLines } = await read(text)
  expect({ inputs, badLines }).toEqual({
    inputs: [{ domain: 'a.example', value: 'prefix=token' }],
    badLines: 0,
  })
})

test('a --from list with 200 unusable lines causes a warning for each of the first ten, and one warning with the number 200', async () => {
  const { badLines, stderr } = await read(`a.example\n${'b ad\n'.repeat(200)}`)
  expect(badLines).toBe(200)
  expect(stderr.match(/^warning: /gm)).toHaveLength(11)
  expect(stderr).toContain("lines of <stdin> that can't be used: 200")
})

// The third cell is the source of such a list: a public issue, the program that writes it, or a user's hand.
test.each([
  [
    'line breaks in a quoted cell',
    'domain,client\r\na.example,"ACME\r\nInc."\r\nb.example,y\r\n',
    'gr8b/zabbix-module-sqlexplorer#18',
  ],
  [
    'the heading Domain Name, as a registrar exports it',
    'Domain Name,TLD\na.example,com\nb.example,com\n',
    'GoDaddy domain export',
  ],
  [
    'the headings domainname and TXT Value, as in a spreadsheet',
    'Client,domainname ,TXT  Value\nX,a.example,\nY,b.example,\n',
    'Google Sheets',
  ],
  ['lines that end in CR alone', 'a.example\rb.example\r', 'Excel CSV (Macintosh)'],
  [
    'the columns of claims list --format tsv',
    'name\tstatus\tregion\trecord.value\na.example\tpending\t\t\nb.example\tpending\t\t\n',
    'own output',
  ],
  ['empty rows at the end', 'sep=;\r\ndomain;value\r\na.example;\r\nb.example;\r\n;\r\n', 'Excel'],
  ['a separator within a quoted heading', '"Client, Inc.";domain\n"a,b";a.example\nc;b.example\n', 'Excel'],
  ['quotation marks within cells', 'client,domain\n"Foo" Inc,a.example\n5" pipe,b.example\n', 'hand'],
])('a --from list with %s is read without unusable lines', async (_what, text) => {
  const { inputs, badLines } = await read(text)
  expect({ inputs, badLines }).toEqual({
    inputs: [{ domain: 'a.example' }, { domain: 'b.example' }],
    badLines: 0,
  })
})

test('a --from list may have the headings name, record.value and region, in any letter case', async () => {
  const { inputs } = await read('Name\tRecord.Value\tREGION\na.example\tp=t\teu-west-1\n')
  expect(inputs).toEqual([{ domain: 'a.example', value: 'p=t', region: 'eu-west-1' }])
})

test.each([
  [
    'value',
    'a.example,p=1\nb.example\nA.example.,p=2\na.example,p=1\n',
    '<stdin>:3: "a.example" has another value',
  ],
  [
    'region',
    'domain,region\na.example,eu-west-1\n# x\na.example,us-east-1\n',
    '<stdin>:4: "a.example" has another region',
  ],
])('a --from line that repeats a domain with another %s is unusable', async (_what, text, warning) => {
  const { badLines, stderr } = await read(text)
  expect(badLines).toBe(1)
  expect(stderr).toContain(warning)
})

test('a domain on several lines of a --from list gets the TXT value from the line that has one', async () => {
  expect((await read('a.example\na.example,p=t\na.example\n')).inputs).toEqual([
    { domain: 'a.example', value: 'p=t' },
  ])
})

test('the warning about a domain in typographic quotation marks in a --from list has the right line number after a cell with line breaks, and suggests the domain without the marks', async () => {
  const { stderr } = await read('domain,client\r\na.example,"X\r\nY"\r\n“b.example”,Z\r\n')
  expect(stderr).toContain('<stdin>:4: "“b.example”" is not a domain name')
  expect(stderr).toContain('(leave the quotation marks out: b.example)')
})

test.each([
  ['UTF-16', Buffer.from('\ufeffdomain,value\n', 'utf16le'), "isn't text in UTF-8"],
  ['cp1252', Buffer.from('domain\nm\xfcller.example\n\xfcber.example\n', 'latin1'), "isn't text in UTF-8"],
  ['CSV with German headings', 'Kunde;Domäne;TXT-Wert\nX;a.example;p=t\n', 'has no column "domain"'],
  ['JSON', '[\n  "a.example",\n  "b.example"\n]\n', "isn't a list of domains"],
  ['JSON on one line', '{"domains":["a.example","b.example"]}', "isn't a list of domains"],
  ['YAML', 'domains:\n  - a.example\n  - b.example\n', "isn't a list of domains"],
  [
    'a zone file',
    ';; Domain: a.example.\na.example.\t3600\tIN\tSOA\tns.example. x.example. 1 2 3 4 5\n',
    "isn't a list of domains",
  ],
  ['binary data', Buffer.from([80, 75, 3, 4, 0, 0]), "isn't text in UTF-8"],
  ['only comments', '# none\n', 'has no domain'],
  [
    'CSV with a quotation mark that hides the next line',
    'client,domain\n"ACME,a.example\n"B",b.example\n',
    'quotation mark',
  ],
  [
    'CSV with a quotation mark that is never closed',
    'client,domain\n"ACME,a.example\nB,b.example\n',
    'quotation mark',
  ],
  ['HTML', '<!doctype html>\n<body>\na.example\n</body>\n', "isn't a list of domains"],
])('a --from list is rejected with exit 2 and no warning if its text is %s', async (_what, text, message) => {
  const context = createFakeContext()
  const stdin = { isTTY: false, stream: Readable.from([Buffer.from(text)]) as never }
  const io = createIo({ ...context, stdin }, await fakeSettings(context))
  await expect(readUsableDomains('-', true, io)).rejects.toMatchObject({
    exit: 2,
    message: expect.stringContaining(message),
  })
  expect(context.stderr.text).toBe('')
})

test.each(['Name,URL,Notes', 'Name,Website', 'E-Mail,Name', 'Client Homepage,name,region'])(
  'a --from list with the headings %s is rejected, because its column "name" may hold customers instead of domains',
  async (columns) => {
    await expect(read(`${columns}\nCheck29.example,x.example,y.example\n`)).rejects.toMatchObject({
      message: '<stdin> has no column "domain"',
      hint: `rename one to domain: ${columns.replaceAll(',', ', ')}`,
    })
  },
)

test('the domains of a --from list are read from its column "domain" or, if there is none, from its column "name"', async () => {
  const names = ['name\tdomain_id\trecord.name', 'domain\tname\tWebsite', 'Name\tClient\tRegion']
  const lists = await Promise.all(names.map((columns) => read(`${columns}\na.example\t\t\n`)))
  expect(lists.map(({ inputs }) => inputs)).toEqual(names.map(() => [{ domain: 'a.example' }]))
})

test.each([
  ['missing.txt', 'no such file or directory'],
  ['.', 'illegal operation on a directory'],
])('readUsableDomains rejects a path that cannot be read: %s', async (name, why) => {
  const context = createFakeContext()
  const home = context.directories.state
  const io = createIo(context, await fakeSettings(context))
  await expect(readUsableDomains(join(home, '..', name), true, io)).rejects.toMatchObject({
    exit: 2,
    message: expect.stringContaining(why),
  })
})
