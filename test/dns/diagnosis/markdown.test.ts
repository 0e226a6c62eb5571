import fc from 'fast-check'
import { lexer, type Token, type Tokens } from 'marked'
import { describe, expect, test } from 'vitest'
import { renderMarkdown } from '../../../src/dns/diagnosis/markdown.ts'
import { renderReport } from '../../../src/dns/diagnosis/render.ts'
import type { CheckReport } from '../../../src/dns/diagnosis/report.ts'
import { join, plainText, quote, type Text, text, unquoted } from '../../../src/dns/diagnosis/text.ts'
import { encodingOf } from '../../../src/dns/diagnosis/value-comparison.ts'
import { PLAIN_PALETTE } from '../../../src/terminal/color.ts'
import { sanitizeLine } from '../../../src/terminal/sanitize.ts'

function report(name: string, values: string[], message: Text): CheckReport {
  return {
    name,
    expected: values[0] ?? '',
    verdict: 'fix',
    ready: false,
    retry_after_seconds: 300,
    zone: name,
    nameservers: [
      {
        host: name,
        address: '192.0.2.53',
        outcome: 'mismatch',
        authoritative: true,
        values,
        ttl: 300,
        serial: 1,
        ms: 2,
      },
    ],
    resolvers: [{ address: '192.0.2.54', outcome: 'mismatch', values, ttl: 300, ms: 1 }],
    findings: [
      {
        code: 'missing',
        severity: 'error',
        message,
        fix: message,
        details: { values, [name]: plainText(message) },
      },
    ],
  }
}

const render = (given: CheckReport) =>
  renderMarkdown(given, { at: 0, version: '1.2.3', resolvers: ['9.9.9.9'] })

const childrenOf = (token: Token): Token[] => ('tokens' in token ? (token.tokens ?? []) : [])

/** All tokens of a document, including nested ones. */
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

const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 6 }),
      fc.constantFrom('|', '\\', '\\|', '\\\\|', '`', '``', '`|`', '"', "'", ' ', '<br>', '\n', '\u202e'),
      fc.constantFrom(
        '![x](https://evil.example/p.png)',
        '[click](https://evil.example)',
        '<img src=x>',
        '<!--',
      ),
      fc.constantFrom('https://evil.example/login', 'www.evil.example', '@acme/security', 'a@evil.example'),
      fc.constantFrom(
        '#123',
        'acme/app#1',
        'GH-12',
        'deadbeef',
        '**',
        '_',
        '~~',
        '[^1]',
        ':tada:',
        '&amp;',
        '* ',
      ),
    ),
    { minLength: 1, maxLength: 8 },
  )
  .map((pieces) => pieces.join(''))

describe('a Markdown report', () => {
  test('never turns text that others wrote into a link, image, mention or markup', () => {
    fc.assert(
      fc.property(hostile, fc.array(hostile, { minLength: 1, maxLength: 3 }), (name, values) => {
        const message = text`Expected ${quote(values[0] ?? '')}, seen ${join(values.map(quote), ', ')} at ${name}, which (${name}) is other`
        const tokens = lexer(render(report(name, values, message)), { gfm: true })
        const all = everyToken(tokens)
        expect(all.filter(({ type }) => ['link', 'image', 'del', 'em'].includes(type))).toEqual([])
        const markup = all.filter(({ type }) => type === 'html')
        expect(markup.filter(({ raw }) => raw !== '<br>')).toEqual([])

        // GitHub turns these into links after rendering, except in code.
        const plain = all.filter((token) => token.type === 'text' && childrenOf(token).length === 0)
        for (const { raw } of plain) {
          expect(raw).not.toMatch(/@|#|www\.|:\/\/|\bGH-|\b[0-9a-f]{7}|:[a-z]\w*:/i)
        }
      }),
      { numRuns: 1000 },
    )
  })

  test('shows each value in full, in a code span', () => {
    const readable = hostile.filter((value) => sanitizeLine(value).trim() !== '')
    fc.assert(
      fc.property(fc.array(readable, { minLength: 1, maxLength: 3 }), (values) => {
        const tokens = lexer(render(report('example.com', values, 'message')), { gfm: true })
        const tables = tokens.filter((token): token is Tokens.Table => token.type === 'table')
        expect(tables.map(({ rows }) => rows.map((row) => row.length))).toEqual([[8], [5]])
        const shown = everyToken(tables[1]?.rows[0]?.[2]?.tokens ?? []).filter(
          ({ type }) => type === 'codespan',
        )
        expect(shown.map((token) => (token as Tokens.Codespan).text.trim())).toEqual(
          values.map((value) => sanitizeLine(value).trim().replaceAll('\\|', '\\u{7c}')),
        )
      }),
      { numRuns: 1000 },
    )
  })

  test('keeps sentences readable', () => {
    const message = text`There is no record at mail.example.com: expected ${quote('prefix=token')}, seen ${quote('v=spf1 -all')} (1 of 3 servers, ns1.example.com; it’s not the name’s). See https://example.com/?`
    expect(render(report('example.com', ['v'], message))).toContain(
      '- **Cause:** There is no record at `mail.example.com`: expected `prefix=token`, seen `v=spf1 -all` (1 of 3 servers, `ns1.example.com`; it’s not the name’s). See `https://example.com/`?\n',
    )
  })

  test('has each command in one code span, without the punctuation after it', () => {
    const message =
      'To see it: mailclaim claims list --refresh; or (mailclaim claims get DOMAIN_ID). If it is open: mailclaim claims record example.com'
    expect(render(report('example.com', ['v'], message))).toContain(
      '- **Fix:** To see it: `mailclaim claims list --refresh`; or (`mailclaim claims get DOMAIN_ID`). If it is open: `mailclaim claims record example.com`\n',
    )
  })

  test('quotes a value in a finding exactly as a terminal shows it, whatever it holds', () => {
    const shown = hostile.filter((value) => sanitizeLine(value) !== '')
    fc.assert(
      fc.property(shown, shown, (expected, seen) => {
        const message = text`The record is wrong: expected ${quote(expected)}, found ${quote(seen)}. Enter ${unquoted(expected)}`
        const wrong = report('example.com', [expected], message)
        const line = render(wrong)
          .split('\n')
          .find((text) => text.startsWith('- **Cause:** '))
        const spans = everyToken(lexer((line ?? '').slice(13), { gfm: true })).filter(
          ({ type }) => type === 'codespan',
        )
        const values = [expected, seen, expected].map(sanitizeLine)
        expect(spans.map((token) => (token as Tokens.Codespan).text)).toEqual(values)
        const terminal = renderReport(wrong, { palette: PLAIN_PALETTE, width: 100_000 })
        expect(terminal).toContain(`expected "${values[0]}", found "${values[1]}". Enter ${values[2]}`)
      }),
      { numRuns: 1000 },
    )
  })

  test('quotes an HTML entity completely', () => {
    const message = text`It is stored as ${encodingOf('mc_a=token', 'mc&#95;a=token') ?? ''}`
    expect(render(report('example.com', ['v'], message))).toContain('stored as HTML (`&#95;` for `_`)\n')
  })

  test('shows a pasted zone line with its quotation marks', () => {
    const seen = 'pasted-line.example. 300 IN TXT "prefix=token"'
    const message = text`The field holds a whole line: expected ${quote('prefix=token')}, found ${quote(seen)}`
    expect(render(report('example.com', [seen], message))).toContain(
      `- **Cause:** The field holds a whole line: expected \`prefix=token\`, found \`${seen}\`\n`,
    )
  })
})
