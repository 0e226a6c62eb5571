import { readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { generalize } from '../../../src/claims/many/general-text.ts'
import { liveLines } from '../../../src/claims/many/live-view.ts'
import { runPool } from '../../../src/claims/many/pool.ts'
import { renderRunHtml } from '../../../src/claims/many/report-html.ts'
import { renderRunMarkdown } from '../../../src/claims/many/report-markdown.ts'
import {
  CAUSE_COLUMNS,
  causeBlocks,
  incompleteText,
  legend,
  summaryLines,
  wrapCounts,
} from '../../../src/claims/many/summary.ts'
import {
  type Cause,
  type Done,
  hostOf,
  type Progress,
  RunTally,
  titleOf,
} from '../../../src/claims/many/tally.ts'
import { run } from '../../../src/cli.ts'
import { CliError, Exit, type ExitCode } from '../../../src/errors.ts'
import { createPalette } from '../../../src/terminal/color.ts'
import { TableRenderer } from '../../../src/terminal/table.ts'
import { axeViolations, launchChromium } from '../../chromium.ts'
import { createFakeContext } from '../../fake-context.ts'
import { needs } from '../../requirements.ts'

const failure = (exit: ExitCode) => new CliError('odd', exit, `exit ${exit}`)

const missingAt = (domain: string, hosts: readonly string[]): Cause => {
  const particulars = {
    DOMAIN: domain,
    VALUE: `p=1${domain}`,
    ZONE: 'example.com',
    HOST: domain.split('.')[0],
  }
  return {
    code: 'missing',
    message: generalize(`The TXT record isn't at ${domain}: expected "p=1${domain}"`, particulars),
    fix: generalize(
      `Add a TXT record in the zone example.com: host ${particulars.HOST}, value p=1${domain}`,
      particulars,
    ),
    hosts,
    particulars,
  }
}

function tallyOf(
  ready: number,
  missing: number,
  hosts = ['ns1.dns.example', 'ns2.dns.example'],
  tally = new RunTally(),
): RunTally {
  for (let n = 0; n < ready; n++) tally.add(`r${n}.example.com`, { label: 'ready', item: {} })
  for (let n = 0; n < missing; n++) {
    const domain = `d${n}.example.com`
    tally.begin(domain)
    tally.add(domain, {
      label: 'fix',
      item: {},
      error: failure(Exit.notYet),
      causes: [missingAt(domain, hosts)],
    })
  }
  return tally
}

function exitAfter(exits: readonly ExitCode[]): ExitCode {
  const tally = new RunTally()
  for (const exit of exits) {
    if (exit === Exit.usage) tally.problem({ where: 'list.txt:1', why: 'odd' })
    else tally.add('example.com', { label: 'failed', item: {}, error: failure(exit) })
  }
  return tally.exit
}

test.each<[string, readonly ExitCode[], ExitCode]>([
  ['nothing went wrong', [], 0],
  ['one is not ready and a line is bad', [2, 8], 8],
  ['one ended', [8, 9, 2], 9],
  ['one is refused', [9, 6, 8], 6],
  ['one is unknown to the service', [9, 5, 8], 5],
  ['the service can not be reached', [6, 7, 9], 7],
  ['the service is not configured', [7, 3, 6], 3],
  ['nobody is signed in', [3, 4, 7], 4],
  ['there is a bug', [4, 1, 7], 1],
])('the most severe end decides: %s', (_what, exits, expected) => {
  expect(exitAfter(exits)).toBe(expected)
})

test('at 80 columns the table of causes breaks no name', async () => {
  const names = ['d.doubled-name-0.example.com', 'd.doubled-name-1.example.com']
  const tally = new RunTally()
  for (const name of names) {
    const cause = {
      ...missingAt(name, ['ns1.hosting-company.net', 'ns2.hosting-company.net']),
      fix: 'Change it',
    }
    tally.add(name, { label: 'fix', item: {}, error: failure(Exit.notYet), causes: [cause] })
  }
  const rendering = { palette: await createPalette(0), width: 80, now: 0 }
  const table = new TableRenderer(CAUSE_COLUMNS, rendering).render(tally.causes())
  for (const word of [...names, 'ns*.hosting-company.net', 'Change it']) expect(table).toContain(word)
})

test('the order of exit codes is the documented one, whichever comes first', async () => {
  const context = createFakeContext()
  expect(await run(['help', 'exit-codes'], context)).toBe(0)
  const pages = ['docs/many.md', 'docs/exit-codes.md'].map((path) =>
    readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8'),
  )
  for (const text of [context.stdout.text, ...pages]) {
    const order = /in the order\s((?:\d,\s+)+\d)/.exec(text)?.[1]?.split(/,\s+/).map(Number) as ExitCode[]
    // Any other one ends the whole run.
    expect(order.toSorted()).toEqual(Object.values(Exit).filter((code) => code > 0 && code < 100))
    for (const [at, one] of order.entries()) {
      for (const less of order.slice(at)) {
        expect(exitAfter([one, less]), `${one} and ${less}`).toBe(one)
        expect(exitAfter([less, one]), `${less} and ${one}`).toBe(one)
      }
    }
  }
})

test('domains with the same cause are grouped by DNS host, in words that fit all of them', () => {
  const tally = tallyOf(3, 41)
  tally.add('x.example.com', {
    label: 'fix',
    item: {},
    error: failure(Exit.notYet),
    causes: [missingAt('x.example.com', ['a.ns.cloudflare.com', 'b.ns.cloudflare.com'])],
  })
  expect(summaryLines(tally)).toEqual([
    '45 domains: ready 3, fix 42',
    '  41 domains at ns*.dns.example: record missing (d0.example.com, d1.example.com, d2.example.com and 38 more)',
    '    fix: Add a TXT record in the zone ZONE: host HOST, value VALUE',
    '  1 domain at Cloudflare: record missing (x.example.com)',
    '    fix: Add a TXT record in the zone ZONE: host HOST, value VALUE',
  ])
  expect(tally.causes()[0]?.message).toBe('The TXT record isn\'t at DOMAIN: expected "VALUE"')
})

test.each<[readonly string[], string | undefined]>([
  [['ns1.dns.example', 'ns2.dns.example'], 'ns*.dns.example'],
  [['alpha.dns.example', 'beta.dns.example'], '*.dns.example'],
  [['ns1.a.co.uk', 'ns2.b.net'], '*.a.co.uk, *.b.net'],
  [['ns-1.awsdns-01.com', 'ns-2.awsdns-02.net'], 'Amazon Route 53'],
  [[], undefined],
])('name servers %j are hosted by %s', (hosts, expected) => expect(hostOf(hosts)).toBe(expected))

test('a record at another name is told in terms of the domain, also at the top of its zone', () => {
  const text = generalize('The TXT record is at www.shop.com instead of shop.com', {
    DOMAIN: 'shop.com',
    ZONE: 'shop.com',
    FOUND: 'www.shop.com',
  })
  expect(text).toBe('The TXT record is at FOUND instead of DOMAIN')
  expect(generalize('the zone of shop.com', { DOMAIN: 'shop.com', ZONE: 'shop.com' })).toBe(
    'the zone of ZONE',
  )
})

test('a zero-width space is not called a space', () => {
  expect(titleOf('whitespace')).toBe('value differs in invisible characters')
})

test('a code that nobody foresaw has a title', () => {
  expect(titleOf('cname_at_name')).toBe('CNAME at name')
  expect(titleOf('something_new')).toBe('something new')
  expect(titleOf('constructor')).toBe('constructor')
})

test('what a tally keeps does not grow with the number of domains', () => {
  const size = (tally: RunTally) =>
    JSON.stringify([tally.causes(), tally.needy, [...tally.counts], tally.firstProblems]).length
  const few = tallyOf(10, 200)
  const many = tallyOf(10, 20_000)
  for (let n = 0; n < 10_000; n++) many.problem({ where: `list.txt:${n}`, why: 'odd' })
  expect(size(many)).toBeLessThan(size(few) * 1.5)
})

const expired = (domain: string, end: 'expired' | 'superseded'): Done => ({
  label: 'fix',
  item: {},
  error: failure(Exit.negativeEnd),
  causes: [
    {
      code: `claim_${end}`,
      message: `${end} at ${domain.length}`,
      fix:
        end === 'expired' ? 'Start a new claim with: mailclaim claims create DOMAIN' : 'Get the record there',
    },
  ],
})

test('different fixes are different groups in any order, and a message that differs is left out', () => {
  const dones = [expired('a.com', 'expired'), expired('bb.com', 'expired'), expired('c.com', 'superseded')]
  for (const order of [dones, dones.toReversed()]) {
    const tally = new RunTally()
    for (const [n, done] of order.entries()) tally.add(`d${n}.com`, done)
    expect(tally.causes()).toMatchObject([
      { title: 'claim expired', count: 2, message: undefined, fix: expect.stringContaining('create DOMAIN') },
      { title: 'claim superseded', count: 1, message: 'superseded at 5', fix: 'Get the record there' },
    ])
  }
})

describe('a domain with two causes', () => {
  const missing = missingAt('a.example.com', ['ns1.dns.example'])
  const blocked = { code: 'claim_blocked: grace_period', message: 'DOMAIN is blocked', fix: 'Wait' }
  const both = { causes: [missing, blocked], needsPerson: true }

  test('is in both groups, and named once, by the first', () => {
    const tally = new RunTally({ isWhole: true })
    tally.begin('a.example.com')
    tally.add('a.example.com', { label: 'fix', item: {}, error: failure(Exit.notYet), ...both })
    expect(tally.causes()).toMatchObject([
      { title: 'record missing', host: 'ns*.dns.example', count: 1 },
      { title: 'claim blocked: grace period', host: undefined, count: 1 },
    ])
    expect(tally).toMatchObject({
      needing: 1,
      needy: [{ domain: 'a.example.com', title: 'record missing' }],
    })
    const facts = { at: 0, version: '1.2.3', command: 'claims check' }
    for (const text of [renderRunMarkdown(tally, facts), renderRunHtml(tally, facts)])
      for (const { title } of tally.causes()) expect(text).toContain(title)
  })

  test('leaves both groups of those in progress when it is done, and is one domain in the live view', async () => {
    const tally = new RunTally()
    tally.progress('a.example.com', { step: 'verifying', ...both })
    tally.progress('a.example.com', { step: 'verifying', ...both })
    expect(tally.causes().map(({ title, count }) => [title, count])).toEqual([
      ['record missing (so far)', 1],
      ['claim blocked: grace period (so far)', 1],
    ])
    const lines = liveLines(tally, { total: 1, waits: true }, 40, 70, await createPalette(0))
    expect(lines).toContain('  1 needs a person:')
    tally.add('a.example.com', { label: 'completed', item: {} })
    expect(tally).toMatchObject({ needing: 0 })
    expect(tally.causes()).toEqual([])
  })
})

test('one cause with one fix is one group, whether or not a domain needs a person by now', () => {
  const tally = new RunTally()
  const cause = { code: 'rate_limited', message: 'too many', fix: 'Try again in an hour' }
  tally.add('a.com', { label: 'error', item: {}, error: failure(Exit.unavailable), causes: [cause] })
  const more = { ...cause, fix: `${cause.fix}\nto continue: mailclaim claims watch a.com` }
  tally.add('b.com', {
    label: 'pending',
    item: {},
    error: failure(Exit.notYet),
    causes: [more],
    needsPerson: false,
  })
  expect(tally.causes()).toMatchObject([{ count: 2, fix: cause.fix, needsPerson: true }])
})

test('a cause without a known fix shows what was said, or that it differs', () => {
  const tally = new RunTally()
  const said = (message: string) => ({ code: 'claim_not_allowed', message, fix: undefined })
  const message = 'DOMAIN is not verified by another team: create it instead'
  tally.add('a.com', { label: 'refused', item: {}, error: failure(Exit.refused), causes: [said(message)] })
  tally.add('b.com', { label: 'refused', item: {}, error: failure(Exit.refused), causes: [said(message)] })
  expect(summaryLines(tally)).toContain(`    ${message}`)
  tally.add('c.com', { label: 'refused', item: {}, error: failure(Exit.refused), causes: [said('no')] })
  expect(summaryLines(tally).at(-1)).toMatch(/^ {4}What was said differs: --format jsonl/)
})

test('refusals for different reasons are different causes, and each shows its reason above the fix', () => {
  const tally = new RunTally()
  const refuse = (domain: string, message: string) =>
    tally.add(domain, {
      label: 'refused',
      item: {},
      error: new CliError('conflict', Exit.refused, message, { hint: 'give the domain_id that it printed' }),
    })
  refuse('a.com', 'the service refused the request (409): a.com already belongs to your team')
  refuse('b.com', 'the service refused the request (409): b.com already belongs to your team')
  refuse('c.com', 'the service refused the request (409): Another team has an open claim')
  expect(summaryLines(tally)).toEqual([
    '3 domains: refused 3',
    '  2 domains: conflict (a.com, b.com)',
    '    the service refused the request (409): DOMAIN already belongs to your team',
    '    fix: give the domain_id that it printed',
    '  1 domain: conflict (c.com)',
    '    the service refused the request (409): Another team has an open claim',
    '    fix: give the domain_id that it printed',
  ])
})

test.each([
  [
    '(request_id: req_20e32e9c-9c1a-4b3e-8f49-0123456789ab)',
    '(request_id: req_d147674a-6f0e-4a53-9d2b-5c0a1de5c001)',
  ],
  ['Ray ID: 8f1c2d3e4f5a6b7c', 'Ray ID: 0a9b8c7d6e5f4a3b'],
  ['invoice #10029384', 'invoice #10029385'],
  ['Request id: req_84ca0dc986', 'Request id: req_0793582738'],
  ['until 2026-11-23T10:00:00.123Z', 'until 2026-11-23T10:00:04Z'],
])('refusals that only a number tells apart are one group: %s', (one, other) => {
  const tally = new RunTally()
  for (const [index, id] of [one, other].entries())
    tally.add(`d${index}.com`, {
      label: 'refused',
      item: {},
      error: new CliError('no', Exit.refused, `blocked ${id}`),
    })
  tally.add('d2.com', {
    label: 'refused',
    item: {},
    error: new CliError('no', Exit.refused, 'blocked for 12 days'),
  })
  expect(tally.causes().map(({ count, said }) => [count, said])).toEqual([
    [2, `blocked ${one}`],
    [1, 'blocked for 12 days'],
  ])
})

test('a mistake and a warning of the same name are different groups', () => {
  const tally = new RunTally()
  const cause = { code: 'lame_nameserver', message: 'odd', fix: 'Set the name servers', hosts: [] }
  tally.add('a.com', { label: 'fix', item: {}, error: failure(Exit.notYet), causes: [cause] })
  tally.add('b.com', { label: 'ready_with_warning', item: {}, causes: [cause] })
  expect(tally.causes().map(({ title }) => title)).toEqual([
    "name server doesn't serve the zone",
    "name server doesn't serve the zone (warning)",
  ])
})

test('fixes of which each domain has its own end up in one group, which does not take one for all', () => {
  const tally = new RunTally()
  for (let n = 0; n < 1500; n++)
    tally.add(`d${n}.com`, {
      label: 'fix',
      item: {},
      error: failure(Exit.notYet),
      causes: [{ code: 'missing', message: `${n}`, fix: `only for ${n}`, hosts: [`ns1.host${n}.com`] }],
    })
  const [rest] = tally.causes()
  expect(rest).toMatchObject({ count: 1000, host: undefined, message: undefined })
  expect(rest?.fix).toBe('They differ: --format jsonl has the one of each domain')
})

describe('domains in progress', () => {
  const quoted: Progress = {
    step: 'waiting for DNS',
    causes: [{ code: 'quoted', message: 'quoted', fix: 'Enter it without quotation marks: VALUE' }],
    needsPerson: true,
  }

  test('are counted by step, with the causes so far', () => {
    const tally = new RunTally()
    for (const domain of ['a.com', 'b.com', 'c.com', 'd.com']) {
      tally.progress(domain, { step: 'starting' })
    }
    for (const domain of ['a.com', 'b.com']) tally.progress(domain, quoted)
    tally.progress('c.com', { step: 'verifying' })
    expect(summaryLines(tally)).toEqual([
      '0 domains; in progress 4: starting 1, waiting for DNS 2, verifying 1',
      '  2 domains: quotation marks in the value (so far) (a.com, b.com)',
      '    fix: Enter it without quotation marks: VALUE',
    ])
  })

  test('leave their cause behind as they go on', () => {
    const tally = new RunTally()
    tally.progress('a.com', quoted)
    tally.progress('a.com', quoted)
    tally.progress('b.com', quoted)
    tally.progress('a.com', { step: 'verifying' })
    expect(tally.causes()).toMatchObject([{ count: 1, names: ['b.com'] }])
    tally.add('b.com', { label: 'completed', item: {} })
    expect(tally.causes()).toEqual([])
    expect(summaryLines(tally)).toEqual(['1 domain: completed 1; in progress 1: verifying 1'])
  })
})

test('the table of causes says where to find the other domains and what the words in a fix stand for', () => {
  expect(legend(tallyOf(0, 1), 'mailclaim …')).toBe(
    'Each domain with its ZONE, HOST, and VALUE:\nmailclaim …',
  )
  const tally = new RunTally()
  const add = (name: string) =>
    tally.add(name, {
      label: 'fix',
      item: {},
      error: failure(Exit.notYet),
      causes: [{ code: 'odd', message: '', fix: 'mailclaim claims check DOMAIN' }],
    })
  for (const name of ['a.com', 'b.com']) add(name)
  expect(legend(tally, 'mailclaim …')).toBeUndefined()
  add('c.com')
  expect(legend(tally, 'mailclaim …')).toBe('Each domain: --format tsv')
})

test('at 60 columns no count is apart from its label', () => {
  expect(
    wrapCounts(
      '1,000 domains: ready 380, ready with warning 22, fix 11, wait 1,087; in progress 20: verifying 20',
      60,
    ),
  ).toEqual([
    '1,000 domains: ready 380, ready with warning 22, fix 11,',
    'wait 1,087; in progress 20: verifying 20',
  ])
})

test.each([40, 60, 89])('at %d columns, the causes are blocks that fit', async (width) => {
  const tally = tallyOf(0, 200)
  const text = causeBlocks(tally, { palette: await createPalette(0), width, now: undefined })
  expect(text.replaceAll(/\s+/g, ' ')).toBe(
    '200 domains at ns*.dns.example: record missing fix: Add a TXT record in the zone ZONE: host HOST, value VALUE d0.example.com, d1.example.com and 198 more',
  )
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(width)
})

describe('the live view', () => {
  const palette = createPalette(0)

  test('shows counts, a bar, the causes, and the latest domains in 80 columns', async () => {
    const tally = tallyOf(380, 22)
    expect(liveLines(tally, { total: 1000, waits: false }, 40, 77, await palette)).toEqual([
      '402 of 1,000 domains  ████████████░░░░░░░░░░░░░░░░░░   40%  60 s left',
      '  ready 380   fix 22',
      '  22 need a person:',
      '    22 domains at ns*.dns.example: record missing',
      '      Add a TXT record in the zone ZONE: host HOST, value VALUE',
      '    d19.example.com: record missing',
      '    d20.example.com: record missing',
      '    d21.example.com: record missing',
    ])
  })

  test('fits 24 lines however many causes there are', async () => {
    const tally = tallyOf(3, 4)
    for (let n = 0; n < 6; n++)
      tally.progress(`p${n}.example.com`, {
        step: 'waiting for DNS',
        causes: [{ code: 'quoted', message: '', fix: `fix ${n} ${'and more of it '.repeat(20)}` }],
        needsPerson: true,
      })
    const lines = liveLines(tally, { total: 20, waits: true }, 40, 57, await palette)
    expect(lines.length).toBeLessThanOrEqual(24)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(57)
    expect(lines).toContain('  10 need a person:')
    expect(lines).toContain('    and 2 more causes')
  })

  test('shows every count at 60 columns, none apart from its label', async () => {
    const tally = tallyOf(380, 22)
    for (const step of ['starting', 'waiting for DNS', 'verifying'])
      for (let n = 0; n < 40; n++) tally.progress(`${n}.${step}`, { step })
    const lines = liveLines(tally, { total: 1000, waits: true }, 40, 57, await palette)
    expect(lines.slice(1, 4)).toEqual([
      '  ready 380, fix 22',
      '  in progress 120: starting 40, waiting for DNS 40,',
      '  verifying 40',
    ])
  })

  test('says that the service takes no requests, for how long', async () => {
    const heldUp = () => 'too many requests (429), for 70 s'
    const lines = liveLines(tallyOf(1, 0), { total: 20, waits: false, heldUp }, 40, 57, await palette)
    expect(lines.slice(2)).toEqual(['  Waiting for the service: too many requests (429), for', '  70 s'])
  })

  test('fits a narrow terminal, and says how many are in progress if they wait', async () => {
    const tally = tallyOf(3, 1)
    for (let n = 0; n < 120; n++) tally.progress(`p${n}.example.com`, { step: 'verifying' })
    const lines = liveLines(tally, { total: undefined, waits: true }, 40, 30, await palette)
    expect(lines).toEqual([
      '4 domains',
      '  ready 3, fix 1',
      '  in progress 120:',
      '  verifying 120',
      '  1 needs a person:',
      '    1 domain at ns*.dns.examp…',
      '      Add a TXT record in the',
      '      zone ZONE: host HOST, v…',
      '    d0.example.com: record mi…',
    ])
  })
})

describe('reports', () => {
  const hostile = () => {
    const tally = tallyOf(1, 0)
    tally.add('a.example.com', {
      label: 'fix',
      item: {},
      error: failure(Exit.notYet),
      causes: [
        {
          code: 'quoted',
          message: 'found "<img src=x onerror=alert(1)> @user | `x` \u202e"',
          fix: 'remove [this](https://evil.example)',
          hosts: ['ns1.<script>.example'],
        },
      ],
    })
    tally.problem({ where: 'list.txt:3', why: '"<b>|`"' })
    return tally
  }
  const facts = { at: Date.parse('2026-11-22T03:00:00Z'), version: '1.2.3', command: 'claims check' }

  test('no text of others becomes markup in Markdown', () => {
    const text = renderRunMarkdown(hostile(), facts)
    expect(text.replaceAll(/(`+)[^`]*?.*?\1/g, '')).not.toMatch(/<(?!br>)|@user|\]\(|\u202e/)
    expect(text).toContain('- **Unusable lines:** 1, such as')
  })

  const filesOf = (tally: RunTally) => [renderRunMarkdown(tally, facts), renderRunHtml(tally, facts)] as const

  test.each([150, 10_000])('all %d domains of a cause are there, with what to add where', (count) => {
    const tally = tallyOf(0, count, undefined, new RunTally({ isWhole: true }))
    for (let n = 0; n < 150; n++) {
      const cause = { code: 'unclear', message: '', fix: 'Ask them' }
      tally.add(`e${n}.example.com`, { label: 'fix', item: {}, error: failure(Exit.notYet), causes: [cause] })
    }
    const [markdown, html] = filesOf(tally)
    const rows = markdown.split('\n').filter((line) => /^\| (DOMAIN|`d)/.test(line))
    const tableRows = html.split('\n').flatMap((line) => line.match(/<tr><th scope="row">.*<\/tr>$/g) ?? [])
    expect(rows[0]).toBe('| DOMAIN | ZONE | HOST | VALUE |')
    expect([rows.length, tableRows.length]).toEqual([count + 1, count])
    for (const n of [0, 99, 100, count - 1]) {
      const cells = [`d${n}.example.com`, 'example.com', `d${n}`, `p=1d${n}.example.com`]
      expect(rows[n + 1]).toBe(`| ${cells.map((cell) => `\`${cell}\``).join(' | ')} |`)
      const [name, ...others] = cells.map((cell) => `<code>${cell}</code>`)
      const row = `<tr><th scope="row">${name}</th>${others.map((cell) => `<td class="text">${cell}</td>`).join('')}</tr>`
      expect(tableRows[n]?.endsWith(row)).toBe(true)
    }
    for (const text of [markdown, html]) {
      expect(text.includes('e149.example.com')).toBe(true)
      expect(/and [\d,]+ more/.test(text)).toBe(false)
    }
  })

  test('two reports about the same list are the same, whichever domain ended first', () => {
    const names = Array.from({ length: 9 }, (_, n) => `n${(n * 7) % 9}.example.com`)
    const report = (ended: readonly string[]) => {
      const tally = new RunTally({ isWhole: true })
      for (const name of names) tally.begin(name)
      for (const name of ended) {
        const hosts = [`ns.host${names.indexOf(name) % 3}.example`]
        const label = names.indexOf(name) % 3 === 0 ? 'fix' : 'wait'
        tally.add(name, { label, item: {}, error: failure(Exit.notYet), causes: [missingAt(name, hosts)] })
      }
      return filesOf(tally)
    }
    const [markdown] = report(names)
    const order = [...markdown.matchAll(/^\| `(n\d)/gm)].map(([, name]) => name)
    expect(order).toEqual([0, 3, 6, 1, 4, 7, 2, 5, 8].map((place) => names[place]?.slice(0, 2)))
    expect(report(names.toReversed())).toEqual(report(names))
  })

  test('the domains about which there is nothing to say are named by what they are counted as', () => {
    const tally = new RunTally({ isWhole: true })
    const ends = { 'd0.com': 'ready', 'd1.com': 'completed', 'd2.com': 'fix', 'd3.com': 'ready' }
    for (const domain of Object.keys(ends)) tally.begin(domain)
    for (const [domain, label] of Object.entries(ends).toReversed()) {
      const error = label === 'fix' ? failure(Exit.notYet) : undefined
      tally.add(domain, { label, item: {}, error })
    }
    const [markdown, html] = filesOf(tally)
    expect(markdown).toMatch(
      /### Ready\n\n.*mailclaim claims verify DOMAIN --wait`\n\n`d0\.com`, `d3\.com`\n\n### Completed\n\n`d1\.com`\n$/,
    )
    expect(html).toMatch(/<h2 id="done-0">Ready<\/h2>\s*<p>.*<\/p>\s*<ul><li><code>d0\.com<.*d3\.com</)
  })

  test('a run that ended early says how many domains it left out', () => {
    const tally = new RunTally({ isWhole: true })
    tally.begin('a.com')
    tally.add('a.com', { label: 'ready', item: {} })
    tally.repeated = 1
    const incomplete = incompleteText(tally, 'the run was interrupted', 12)
    expect(incomplete).toBe("the run was interrupted: 10 of 12 domains aren't done")
    expect(renderRunMarkdown(tally, { ...facts, incomplete })).toContain(
      `\n- **Incomplete:** ${incomplete}\n`,
    )
    expect(renderRunHtml(tally, { ...facts, incomplete })).toContain('The run was interrupted: 10 of 12')
    expect(incompleteText(tally, 'the run was cut short', undefined)).toMatch(/: not all domains are done$/)
  })

  test('a domain is in each of its causes with what the words stand for there', () => {
    const tally = new RunTally({ isWhole: true })
    const cause = (code: string, FOUND: string) => ({
      code,
      message: '',
      fix: 'Change FOUND',
      particulars: { FOUND },
    })
    tally.begin('a.com')
    const causes = [cause('quoted', '"p=1"'), cause('odd', 'p=2')]
    tally.add('a.com', { label: 'fix', item: {}, error: failure(Exit.notYet), causes })
    const [markdown] = filesOf(tally)
    expect(markdown).toMatch(/### quotation marks in the value\n[^#]*`a\.com` \| `"p=1"`/)
    expect(markdown).toMatch(/### odd\n[^#]*`a\.com` \| `p=2`/)
  })

  test('where the messages differ, each domain has its own', () => {
    const tally = new RunTally({ isWhole: true })
    for (const target of ['a', 'bb']) {
      const name = `d${target.length}.example.com`
      const own = `${name} is an alias for ${target} (${target.length})`
      const cause = {
        code: 'cname_dangling',
        message: `an alias (${target.length})`,
        own,
        fix: 'Enter VALUE',
      }
      tally.begin(name)
      const particulars = { DOMAIN: name, VALUE: 'p=123' }
      const error = failure(Exit.notYet)
      tally.add(name, { label: 'fix', item: {}, error, causes: [{ ...cause, particulars }] })
    }
    const [markdown, html] = filesOf(tally)
    expect(markdown).toContain('| DOMAIN | VALUE | What was found |')
    expect(markdown).toContain('| `d1.example.com` | `p=123` | `d1.example.com` is an alias for a (1) |')
    expect(html).toContain('<td class="values">d2.example.com is an alias for bb (2)</td>')
  })

  test('names of other scripts are readable', () => {
    const tally = new RunTally({ isWhole: true })
    const name = 'xn--bcher-kva.example'
    tally.begin(name)
    tally.add(name, { label: 'fix', item: {}, error: failure(Exit.notYet), causes: [missingAt(name, [])] })
    for (const text of filesOf(tally)) expect(text).toContain('bücher.example (xn--bcher-kva.example)')
  })

  test('what stands in DNS for a value is inert in a table, and cut off if it is long', () => {
    const tally = new RunTally({ isWhole: true })
    for (const found of ['<img src=x> | @user `x` [a](https://evil.example) \u202e', 'x'.repeat(60_000)]) {
      const name = `d${found.length}.example.com`
      tally.begin(name)
      const cause = { code: 'quoted', message: '', fix: 'Change FOUND', particulars: { FOUND: found } }
      tally.add(name, { label: 'fix', item: {}, error: failure(Exit.notYet), causes: [cause] })
    }
    const [markdown, html] = filesOf(tally)
    expect(markdown.replaceAll(/(`+)[^`]*?.*?\1/g, '')).not.toMatch(/<(?!br>)|@user|\]\(|\u202e/)
    expect(html).not.toMatch(/<img|\u202e/)
    expect(html).toContain('<td class="values"><code>&lt;img src=x&gt; |')
    expect(markdown.length + html.length).toBeLessThan(20_000)
  })

  test.runIf(needs('chromium'))(
    'a phone shows the HTML without scrolling sideways, also to those who listen',
    async () => {
      const tally = tallyOf(3, 20, undefined, new RunTally({ isWhole: true }))
      const particulars = { DOMAIN: 'x.com', ZONE: 'x.com', HOST: '@', FOUND: 'x'.repeat(60_000) }
      const cause = { code: 'quoted', message: '', fix: 'Change FOUND in the zone ZONE', particulars }
      tally.begin('x.com')
      tally.add('x.com', { label: 'fix', item: {}, error: failure(Exit.notYet), causes: [cause] })
      const browser = await launchChromium()
      onTestFinished(() => browser.close())
      const page = await browser.newPage({ viewport: { width: 360, height: 740 }, bypassCSP: true })
      await page.setContent(renderRunHtml(tally, facts))
      expect(await axeViolations(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
      const titles = await page.locator('section:has-text("record missing") thead th').allTextContents()
      expect(titles.slice(-4)).toEqual(['DOMAIN', 'ZONE', 'HOST', 'VALUE'])
    },
  )

  test('no text of others becomes markup in HTML', () => {
    const text = renderRunHtml(hostile(), facts)
    expect(text).not.toMatch(/<img|<script|<b>|\u202e/)
    expect(text).toContain('&lt;img src=x')
  })
})

describe('the pool', () => {
  async function* numbers(count: number) {
    for (let n = 0; n < count; n++) yield n
  }
  const never = new AbortController().signal

  test('works on as many as allowed at once, and on all', async () => {
    let now = 0
    let most = 0
    const done: number[] = []
    await runPool(
      numbers(50),
      7,
      async (n) => {
        most = Math.max(most, ++now)
        await new Promise((resolve) => setImmediate(resolve))
        now -= 1
        done.push(n)
      },
      never,
    )
    expect(most).toBe(7)
    expect(done.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 50 }, (_, n) => n))
  })

  test('takes nothing more after a failure, and lets what has begun end', async () => {
    const ended: number[] = []
    const work = async (n: number) => {
      await new Promise((resolve) => setImmediate(resolve))
      if (n === 3) throw new Error('third')
      await new Promise((resolve) => setImmediate(resolve))
      ended.push(n)
    }
    await expect(runPool(numbers(1000), 5, work, never)).rejects.toThrow('third')
    expect(ended.length).toBeLessThan(20)
  })

  test('an interrupt ends it even while it waits for the next line', async () => {
    const controller = new AbortController()
    const endless = (async function* () {
      yield 1
      await new Promise(() => {})
    })()
    const running = runPool(endless, 2, async () => {}, controller.signal)
    setTimeout(() => controller.abort(new Error('Ctrl-C')), 5)
    await expect(running).rejects.toThrow('Ctrl-C')
  })
})
