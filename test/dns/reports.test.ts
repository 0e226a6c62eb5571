import fc from 'fast-check'
import { lexer, type Token, type Tokens } from 'marked'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { renderHtmlReport } from '../../src/dns/html.ts'
import { renderMarkdownReport } from '../../src/dns/markdown.ts'
import type { TxtOutcome } from '../../src/dns/observations.ts'
import type { CheckReport } from '../../src/dns/report.ts'
import { createFinding } from '../../src/dns/rules.ts'
import { renderTerminalReport } from '../../src/dns/terminal.ts'
import { PLAIN_PALETTE } from '../../src/terminal/color.ts'
import { sanitizeLine } from '../../src/terminal/sanitize.ts'
import { axeViolations, launchChromium } from '../chromium.ts'
import { needs } from '../requirements.ts'

const CONTEXT = {
  at: 0,
  version: '1.2.3',
  resolvers: ['192.0.2.53'],
  command: 'mailclaim claims check example.com',
}
const LAYOUT = { palette: PLAIN_PALETTE, width: 100 }

/** Creates a report in which each text from DNS, the service and the user is `name` or one of `values`. */
function reportOn(name: string, values: string[], more: Partial<CheckReport> = {}): CheckReport {
  const [expected = '', seen = expected] = values
  const server = { address: name, values, ttl: 300, ms: 2 }
  const names = { name, zone: name, host: name, target: name, found_at: name }
  const facts = { ...names, expected, values, seen, use: 'active', holder: null }
  const outcomes: TxtOutcome[] = ['mismatch', 'match', 'timeout']
  return {
    ...{ name, expected, verdict: 'fix', ready: false, retry_after_seconds: 7200, zone: name },
    claim: { status: name },
    nameservers: outcomes.map((outcome) => ({
      ...server,
      host: name,
      outcome,
      authoritative: true,
      serial: 1,
    })),
    resolvers: [{ ...server, outcome: 'mismatch' }],
    findings: (['missing', 'truncated', 'other_name', 'some_servers_lame'] as const).map((code) =>
      createFinding(code, { ...facts, servers: [{ host: name, address: seen }], [name]: name }),
    ),
    path: [
      { zone: 'com', hosts: new Map([[name, []]]) },
      { zone: name, hosts: new Map([[name, []]]) },
    ],
    ...more,
  }
}
const WRONG = reportOn('example.com', ['prefix=token', 'prefix=tok'])

test.each([
  ['wait', 'Try again in 2 hours'],
  ['fix', 'Caches may keep the old state for up to 2 hours'],
] as const)('each report format states the waiting time once, for the verdict %s', (verdict, said) => {
  const report = { ...WRONG, verdict }
  for (const text of [
    renderTerminalReport(report, LAYOUT),
    renderMarkdownReport(report, CONTEXT),
    renderHtmlReport(report, CONTEXT),
  ])
    expect(text.match(/2 hours/g), text).toHaveLength(1)
  expect(renderTerminalReport(report, LAYOUT)).toContain(said)
})

test('a terminal report shows one value of a large TXT set and counts the others; Markdown and HTML reports show all values', () => {
  const foreign = Array.from({ length: 30 }, (_, n) => `foreign-${n}=${'x'.repeat(160)}`)
  const report = reportOn('example.com', ['prefix=token', ...foreign], { findings: [] })
  for (const width of [60, 80, 120, Number.POSITIVE_INFINITY]) {
    const rows = renderTerminalReport(report, { ...LAYOUT, width }).split('\n')
    if (width > 80) expect(rows.join('\n').match(/prefix=token and 30 more/g)?.length).toBeGreaterThan(2)
    expect(Math.max(...rows.map((row) => row.length))).toBeLessThanOrEqual(Math.min(width, 180))
  }
  for (const value of foreign)
    for (const text of [renderMarkdownReport(report, CONTEXT), renderHtmlReport(report, CONTEXT)])
      expect(text).toContain(value)
})

test('a fix in the terminal report begins with a capital letter', () => {
  expect(renderTerminalReport(WRONG, LAYOUT)).toContain('→ Add a TXT record in the zone')
})

test('a terminal report shows the expected value above the one found, and marks the difference by color and carets', () => {
  const palette = {
    ...PLAIN_PALETTE,
    bad: (text: string) => `<${text}>`,
    good: (text: string) => `+${text}+`,
  }
  const report = reportOn('example.com', ['prefix=token', 'prefix=taken'])
  expect(renderTerminalReport(report, { palette, width: 100 })).toContain(
    ['  expected  prefix=t+o+ken', '  found     prefix=t<a>ken', '                    ^'].join('\n'),
  )
})

test('a Markdown report compares values in a code block that backticks in the values cannot close', () => {
  const ticks = '`'.repeat(4)
  const report = reportOn('example.com', [`prefix=token${ticks}`, `prefix=taken${ticks}`])
  const all = everyToken(lexer(renderMarkdownReport(report, CONTEXT), { gfm: true }))
  expect(all.map((token) => ('text' in token ? token.text : undefined))).toContain(
    [`expected  prefix=token${ticks}`, `found     prefix=taken${ticks}`, '                  ^'].join('\n'),
  )
})

test('a terminal report without an expected value shows the TXT values and the DNS provider, and no "unknown"', () => {
  const [server] = reportOn('example.com', ['a=b']).nameservers
  if (server === undefined) throw new Error('no server')
  const nameservers = [{ ...server, host: 'ada.ns.cloudflare.com' }]
  const report = reportOn('www.example.com', ['a=b'], {
    ...{ expected: null, verdict: 'unknown', zone: 'example.com', nameservers, findings: [], claim: null },
  })
  const text = renderTerminalReport(report, LAYOUT)
  expect(text).toMatch(
    /^www.example.com in the zone example.com, hosted by Cloudflare: TXT records\n {2}a=b\n/,
  )
  expect(text).not.toMatch(/other value|unknown/i)
})

/** Pieces that are markup in Markdown or HTML, load something, or end an attribute, a comment, a style or a script. */
const PIECES = [
  ...'| \\ \\| ` `` `|` " \' <br> ** _ ~~ &amp; :tada: www.evil.example @acme/security #123 acme/app#1 GH-12 deadbeef'.split(
    ' ',
  ),
  ...'a@evil.example {expected} {seen} <!-- --> ]]> &lt;script&gt; &#x3c;script&#x3e; \u202e \u200b \0 \ud800'.split(
    ' ',
  ),
  ...[' ', '\n', '* ', '\u001b]0;title\u0007', '\u001b[2J', '![x](https://evil.example/p.png)'],
  ...['[click](https://evil.example)', '<script>window.ran = true</script>'],
  '"><img src=https://evil.example/p.png onerror="window.ran=true">',
  "' onfocus='window.ran=true' autofocus tabindex='0",
  '</title></style></textarea><template><form><table>',
  '<style>@import url(https://evil.example/s.css)</style>',
  '<a href="javascript:window.ran=true">',
  '<meta http-equiv=refresh content="0;url=https://evil.example/">',
  '<iframe srcdoc="<script>parent.ran=true">',
]
const hostile = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: 'binary', maxLength: 8 })), {
    ...{ minLength: 1, maxLength: 8 },
  })
  .map((pieces) => pieces.join(''))
const hostileValues = fc.array(hostile, { minLength: 1, maxLength: 3 })

test('a terminal, Markdown or HTML report escapes control and bidi characters of names and TXT values', () => {
  fc.assert(
    fc.property(hostile, hostileValues, (name, values) => {
      for (const text of [
        renderTerminalReport(reportOn(name, values), LAYOUT),
        renderMarkdownReport(reportOn(name, values), CONTEXT),
        renderHtmlReport(reportOn(name, values), CONTEXT),
      ])
        for (const line of text.split('\n')) expect(sanitizeLine(line)).toBe(line)
    }),
  )
})

const childrenOf = (token: Token): Token[] => ('tokens' in token ? (token.tokens ?? []) : [])

/** Returns all tokens of a Markdown document, including nested tokens. */
function everyToken(tokens: readonly Token[]): Token[] {
  return tokens.flatMap((token) => {
    const cells = token.type === 'table' ? [token.header, ...token.rows].flat() : []
    const inner = [...childrenOf(token), ...(token.type === 'list' ? token.items : [])]
    return [
      token,
      ...everyToken(inner),
      ...cells.flatMap((cell: Tokens.TableCell) => everyToken(cell.tokens)),
    ]
  })
}

test('a Markdown report never turns names and TXT values into links, images, mentions or markup', () => {
  fc.assert(
    fc.property(hostile, hostileValues, (name, values) => {
      const all = everyToken(lexer(renderMarkdownReport(reportOn(name, values), CONTEXT), { gfm: true }))
      expect(all.filter(({ type }) => ['link', 'image', 'del', 'em'].includes(type))).toEqual([])
      expect(all.filter(({ type, raw }) => type === 'html' && raw !== '<br>')).toEqual([])
      const tables = all.filter((token): token is Tokens.Table => token.type === 'table')
      expect(tables.map(({ rows }) => rows.map((row) => row.length))).toEqual([[6, 6, 6], [6]])
      // GitHub turns @, # and addresses into links after rendering, except in code.
      for (const { raw } of all.filter((token) => token.type === 'text' && childrenOf(token).length === 0))
        expect(raw).not.toMatch(/@|#|www\.|:\/\/|\bGH-|\b[0-9a-f]{7}|:[a-z]\w*:/i)
    }),
  )
})

/** Parses a document in the browser, and returns its elements with their classes and attribute names, and its text. */
function parse(page: Page, document: string): Promise<{ elements: string[]; text: string }> {
  return page.evaluate(`(() => {
    const parsed = new DOMParser().parseFromString(${JSON.stringify(document)}, 'text/html')
    const comments = parsed.createNodeIterator(parsed, NodeFilter.SHOW_COMMENT)
    const elements = [...parsed.querySelectorAll('*')].map((one) =>
      [one.nodeName, one.className, ...one.getAttributeNames()].join(' '))
    return { elements: comments.nextNode() ? ['a comment'] : elements, text: parsed.body.textContent }
  })()`)
}

describe.runIf(needs('chromium'))('HTML report in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser.close())

  test('the HTML report fits into 360 pixels, has no axe violation in light and dark mode, and prints dark text', async () => {
    const long = reportOn(`${'a'.repeat(60)}.example.com`, [`prefix=${'t'.repeat(400)}`, 'prefix=other'])
    const page = await browser.newPage({ viewport: { width: 360, height: 740 }, bypassCSP: true })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      for (const report of [
        WRONG,
        long,
        { ...WRONG, verdict: 'ready' as const, ready: true, findings: [] },
      ]) {
        await page.setContent(renderHtmlReport(report, CONTEXT))
        expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(360)
        expect(await axeViolations(page)).toEqual([])
      }
      const color = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
      expect(Number(color.match(/\d+/)?.[0]) < 128).toBe(colorScheme === 'dark')
    }
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    expect(await page.evaluate<string>('getComputedStyle(document.body).color')).toBe('rgb(27, 34, 40)')
    await page.close()
  })

  test('the HTML report shows TXT values as text, and creates no element or attribute from names and values', async () => {
    const page = await browser.newPage()
    const known = [WRONG, reportOn('example.com', ['prefix=token', 'prefix=taken'])]
    const own = new Set<string>()
    for (const report of known)
      for (const one of (await parse(page, renderHtmlReport(report, CONTEXT))).elements) own.add(one)
    await fc.assert(
      fc.asyncProperty(hostile, hostileValues, async (name, values) => {
        const { elements, text } = await parse(
          page,
          renderHtmlReport(reportOn(name, values), { ...CONTEXT, command: name }),
        )
        expect(elements.filter((one) => !own.has(one))).toEqual([])
        for (const value of values) expect(text).toContain(sanitizeLine(value))
      }),
    )
    await page.close()
  })
})
