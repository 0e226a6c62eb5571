import { domainToUnicode } from 'node:url'
import type { Palette } from '../terminal/color.ts'
import { type Column, DASH } from '../terminal/columns.ts'
import { widthOf, wrap } from '../terminal/measure.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { TableRenderer } from '../terminal/table.ts'
import type { Outcome } from './observations.ts'
import {
  type CheckReport,
  type Finding,
  firstOf,
  hasLooked,
  hostOf,
  type NameserverReport,
  outcomeLabel,
  type ResolverReport,
  resultOf,
  resultTone,
  SEVERITY_TONES,
  toneOf,
  valuesSeen,
  waitingTime,
  wordsOf,
} from './report.ts'
import { comparedPieces, readablePiece } from './value.ts'
import { capitalize, plainText, sentence, shorten } from './words.ts'

/** How to lay out a report; the width is in columns. */
export interface Layout {
  readonly palette: Palette
  readonly width: number
}

/** The report for a terminal: what was checked, what each server answered, and the findings. */
export function renderReport(report: CheckReport, layout: Layout): string {
  const { palette } = layout
  const wait = waitingTime(report)
  return [
    headline(report, layout),
    ...tables(report, layout),
    ...report.findings.map((finding) => renderFinding(finding, layout)),
    ...(wait === undefined ? [] : [paragraph(wait, '', layout, palette.faint)]),
  ].join('\n')
}

function headline(report: CheckReport, layout: Layout): string {
  const { palette } = layout
  const { name, zone, expected } = report
  const host = hostOf(report)
  const place = `${zone === null || (zone === name && expected !== null) ? '' : ` in the zone ${readableName(zone)}`}${host === null ? '' : `, hosted by ${host}`}`
  if (hasLooked(report)) {
    const values = valuesSeen(report)
    const listed = values.length === 0 ? ['no TXT record'] : values
    const title = paragraph(`${readableName(name)}: TXT records${place}`, '', layout, palette.strong)
    return title + listed.map((value) => paragraph(value, '  ', layout)).join('')
  }
  const claim = report.claim === null ? '' : `; the claim is ${report.claim.status ?? 'of unknown status'}`
  return (
    paragraph(`${readableName(name)}${place}: TXT ${expected ?? 'records'}`, '', layout, palette.strong) +
    paragraph(`${capitalize(resultOf(report))}${claim}`, '', layout, palette[resultTone(report)])
  )
}

/** The name in Unicode, followed by its ASCII form if that differs (RFC 5890 section 2.3.2.1). */
export function readableName(name: string): string {
  const unicode = domainToUnicode(name)
  return unicode === '' || unicode === name ? name : `${unicode} (${name})`
}

function tables(report: CheckReport, layout: Layout): string[] {
  const render = (columns: readonly Column[], rows: readonly (NameserverReport | ResolverReport)[]) =>
    rows.length === 0 ? [] : [new TableRenderer(columns, { ...layout, now: undefined }).render(rows)]
  const answers: readonly Column[] = [
    {
      field: 'outcome',
      title: 'Answer',
      text: (value) => outcomeLabel(value as Outcome, report),
      paint: (value, palette) => {
        const tone = toneOf(value as Outcome, report)
        return palette[tone === 'bad' ? 'warning' : tone]
      },
    },
    { field: 'values', title: 'TXT values', text: (value) => shownValues(value as readonly string[]) },
    { field: 'ttl', title: 'TTL', kind: 'number' },
  ]
  const ms: Column = { field: 'ms', title: 'ms', kind: 'number' }
  const hosts: readonly Column[] = [
    { field: 'host', title: 'Name server', kind: 'id' },
    { field: 'address', title: 'Address', kind: 'id' },
  ]
  return [
    ...render(
      [...hosts, ...answers, { field: 'serial', title: 'Serial', kind: 'number' }, ms],
      report.nameservers,
    ),
    ...render([{ field: 'address', title: 'Resolver', kind: 'id' }, ...answers, ms], report.resolvers),
  ]
}

/** Values that a cell shows, and how many characters of each. */
const SHOWN_VALUES = 4
const SHOWN_LENGTH = 80

function shownValues(values: readonly string[]): string {
  const { first, more } = firstOf(values, SHOWN_VALUES)
  return [...first.map((value) => shorten(value, SHOWN_LENGTH)), ...more].join(' | ') || DASH
}

const SYMBOLS = { error: '✗', warning: '!', info: 'i' } as const

function renderFinding(finding: Finding, layout: Layout): string {
  const { palette } = layout
  const paint = palette[SEVERITY_TONES[finding.severity]]
  const message = plainText(sentence(wordsOf(finding, 'message')))
  const fix = plainText(sentence(wordsOf(finding, 'fix')))
  return (
    // Only the symbol is red: a paragraph in red is hard to read.
    paragraph(`${message} [${finding.code}]`, `${SYMBOLS[finding.severity]} `, layout, undefined, paint) +
    markedDifference(finding, layout) +
    paragraph(fix, '  → ', layout)
  )
}

/** The expected value above the one found. Color and carets mark the difference. */
function markedDifference({ evidence: { expected, seen } }: Finding, { palette, width }: Layout): string {
  if (typeof expected !== 'string' || typeof seen !== 'string') return ''
  const compared = comparedPieces(expected, seen)
  const texts = compared.seen.map(readablePiece)
  const start = widthOf(texts[0] ?? '')
  if (widthOf(texts.join('')) + 12 > width) return ''
  const marked = (pieces: typeof compared.seen, paint: (text: string) => string) =>
    pieces.map((piece) => (piece.differs ? paint(readablePiece(piece)) : readablePiece(piece))).join('')
  const carets = compared.seen
    .map(({ differs }, index) => (differs ? '^' : ' ').repeat(widthOf(texts[index] ?? '')))
    .join('')
    .trimEnd()
  return [
    `  expected  ${' '.repeat(compared.seen[0]?.differs ? start : 0)}${marked(compared.expected, palette.good)}`,
    `  found     ${marked(compared.seen, palette.bad)}`,
    palette.faint(`            ${carets === '' ? `${' '.repeat(start)}^ missing here` : carets}`),
    '',
  ].join('\n')
}

/** Text after a symbol, wrapped with a hanging indent. */
function paragraph(
  text: string,
  symbol: string,
  layout: Layout,
  paint = (line: string) => line,
  paintSymbol = paint,
): string {
  const room = widthOf(symbol)
  return wrap(sanitizeLine(text), Math.max(20, layout.width - room))
    .map((line, index) => `${index === 0 ? paintSymbol(symbol) : ' '.repeat(room)}${paint(line)}\n`)
    .join('')
}
