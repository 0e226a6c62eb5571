import { domainToUnicode } from 'node:url'
import type { Palette } from '../../terminal/color.ts'
import { type Column, DASH } from '../../terminal/columns.ts'
import { widthOf, wrap } from '../../terminal/measure.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { TableRenderer } from '../../terminal/table.ts'
import { isDnsData, type Outcome } from '../observation/observations.ts'
import { comparedPieces, readablePiece } from './characters.ts'
import type { Finding } from './finding.ts'
import {
  hasLooked,
  isBlocked,
  outcomeLabel,
  resultOf,
  serversDiffer,
  valuesSeen,
  waitingTime,
} from './labels.ts'
import type { CheckReport, NameserverReport, ResolverReport } from './report.ts'
import { capitalize, fullStopOf, plainText, shorten } from './text.ts'

/** How to lay out a report; the width is in columns. */
export interface Layout {
  readonly palette: Palette
  readonly width: number
}

const outcomeColumn = (report: CheckReport): Column => ({
  field: 'outcome',
  title: 'Answer',
  text: (value) => outcomeLabel(value as Outcome, report),
  paint: (value, palette) => {
    if (value === 'match') return palette.good
    const isNeutral = report.expected === null && isDnsData(value as Outcome)
    // Red is for the cause, below the table.
    return isNeutral || value === 'not_checked' ? palette.faint : palette.warning
  },
})
const valuesColumn: Column = {
  field: 'values',
  title: 'TXT values',
  text: (value) => {
    const values = value as readonly string[]
    const shown = values.slice(0, 4).map((value) => shorten(value, 80))
    return values.length === 0
      ? DASH
      : [...shown, ...(values.length > 4 ? [`and ${values.length - 4} more`] : [])].join(' | ')
  },
}
const numbers: readonly Column[] = [
  { field: 'ttl', title: 'TTL', kind: 'number' },
  { field: 'serial', title: 'Serial', kind: 'number' },
  { field: 'ms', title: 'ms', kind: 'number' },
]
const serverColumns = (report: CheckReport): readonly Column[] => [
  { field: 'host', title: 'Name server', kind: 'id' },
  { field: 'address', title: 'Address', kind: 'id' },
  outcomeColumn(report),
  valuesColumn,
  ...numbers,
]
const resolverColumns = (report: CheckReport): readonly Column[] => [
  { field: 'address', title: 'Resolver', kind: 'id' },
  outcomeColumn(report),
  valuesColumn,
  ...numbers.filter((column) => column.field !== 'serial'),
]

/** The report for a terminal: what was checked, what each server answered, and the findings. */
export function renderReport(report: CheckReport, layout: Layout): string {
  const { palette } = layout
  const blocks = [headline(report, layout)]
  const table = (columns: readonly Column[], rows: readonly (NameserverReport | ResolverReport)[]) =>
    new TableRenderer(columns, { ...layout, now: undefined }).render(rows)
  if (report.nameservers.length > 0) blocks.push(table(serverColumns(report), report.nameservers))
  if (report.resolvers.length > 0) blocks.push(table(resolverColumns(report), report.resolvers))
  for (const finding of report.findings) blocks.push(renderFinding(report, finding, layout))
  const wait = waitingTime(report)
  if (wait !== undefined) blocks.push(paragraph(`${wait}.`, '', layout, palette.faint))
  return blocks.join('\n')
}

function headline(report: CheckReport, layout: Layout): string {
  const { palette } = layout
  if (hasLooked(report))
    return (
      paragraph(
        `${readableName(report.name)}: TXT records in the zone ${readableName(report.zone ?? '')}`,
        '',
        layout,
        palette.strong,
      ) +
      (serversDiffer(report)
        ? paragraph('Not all name servers have these:', '', layout, palette.warning)
        : '') +
      listed(valuesSeen(report), layout)
    )
  const isGood = report.ready && !isBlocked(report)
  const paint = isGood
    ? palette.good
    : report.ready || report.verdict === 'wait'
      ? palette.warning
      : palette.bad
  const zone =
    report.zone === null || report.zone === report.name ? '' : ` in the zone ${readableName(report.zone)}`
  return (
    paragraph(
      `${readableName(report.name)}${zone}: TXT ${report.expected ?? 'records'}`,
      '',
      layout,
      palette.strong,
    ) + paragraph(capitalize(resultOf(report)), '', layout, paint)
  )
}

/** The values in full: the table shortens them. */
function listed(values: readonly string[], layout: Layout): string {
  return values.length === 0
    ? paragraph('no TXT record', '  ', layout)
    : values.map((value) => paragraph(value, '  ', layout)).join('')
}

/** The name in Unicode, followed by its ASCII form if that differs (RFC 5890 section 2.3.2.1). */
export function readableName(name: string): string {
  const unicode = domainToUnicode(name)
  return unicode === '' || unicode === name ? name : `${unicode} (${name})`
}

const SYMBOLS = { error: '✗', warning: '!', info: 'i' } as const

function renderFinding(report: CheckReport, finding: Finding, layout: Layout): string {
  const { palette } = layout
  const paint = { error: palette.bad, warning: palette.warning, info: palette.faint }[finding.severity]
  const symbol = SYMBOLS[finding.severity]
  return (
    // Only the symbol is red: a paragraph in red is hard to read.
    paragraph(
      `${capitalize(plainText(finding.message))}. [${finding.code}]`,
      `${symbol} `,
      layout,
      undefined,
      paint,
    ) +
    markedDifference(report, finding, layout) +
    paragraph(plainText(finding.fix) + fullStopOf(finding.fix), '  → ', layout)
  )
}

/** The expected value above the one found. Color and carets mark the difference. */
function markedDifference(report: CheckReport, finding: Finding, layout: Layout): string {
  const [seen, ...others] = finding.seen ?? []
  if (seen === undefined || others.length > 0) return ''
  const wanted = finding.expected ?? report.expected
  if (wanted === null) return ''
  const { palette } = layout
  const compared = comparedPieces(wanted, seen)
  const pieces = compared.seen.map((piece) => ({ ...piece, text: readablePiece(piece) }))
  const line = (paint: (text: string) => string) =>
    pieces.map(({ text, differs }) => (differs ? paint(text) : text)).join('')
  if (widthOf(line((text) => text)) + 12 > layout.width) return ''
  const start = widthOf(pieces[0]?.text ?? '')
  const carets = pieces
    .map(({ text, differs }) => (differs ? '^' : ' ').repeat(widthOf(text)))
    .join('')
    .trimEnd()
  const missing = `${' '.repeat(start)}^ missing here`
  const expected = compared.expected
    .map(({ text, differs }) => (differs ? palette.good(sanitizeLine(text)) : sanitizeLine(text)))
    .join('')
  const indent = ' '.repeat(pieces[0]?.differs ? start : 0)
  return [
    `  expected  ${indent}${expected}`,
    `  found     ${line(palette.bad)}`,
    palette.faint(`            ${carets === '' ? missing : carets}`),
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
  const width = Math.max(20, layout.width - widthOf(symbol))
  const lines = wrap(sanitizeLine(text), width)
  return lines
    .map(
      (line, index) => `${index === 0 ? paintSymbol(symbol) : ' '.repeat(widthOf(symbol))}${paint(line)}\n`,
    )
    .join('')
}
