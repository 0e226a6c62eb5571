import type { Palette } from '../terminal/color.ts'
import { type Column, summarizeValues } from '../terminal/columns.ts'
import { displayWidth, indentPiece, wrapLine } from '../terminal/measure.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { createPagedTable } from '../terminal/table.ts'
import type { CheckReport } from './report.ts'
import {
  type AnswerView,
  type FindingView,
  type ReportTone,
  type ReportView,
  renderValueDifference,
  TONE_SYMBOLS,
  toReportView,
} from './view.ts'
import { capitalize, toPlainText } from './words.ts'

/** Colors of a report in a terminal, and the terminal's width in columns. */
export interface PaletteAndWidth {
  readonly palette: Palette
  readonly width: number
}

/** Renders a report for a terminal: the record, the answer of each server, the findings, and the waiting time. */
export function renderTerminalReport(report: CheckReport, layout: PaletteAndWidth): string {
  const view = toReportView(report)
  return [
    headline(view, layout),
    ...tables(view, layout),
    ...view.findings.map((finding) => renderFinding(finding, layout)),
    ...(view.wait === undefined ? [] : [paragraph(view.wait, '', layout, layout.palette.faint)]),
  ].join('\n')
}

/**
 * Renders the name and the expected value, then the result. Without an expected value, renders the name, then the TXT values or,
 * if no answer shows which data exists, the result.
 */
function headline(view: ReportView, layout: PaletteAndWidth): string {
  const { name, zone, expected, title, provider, values } = view
  const { palette } = layout
  const inZone = zone === null || zone === name ? '' : ` in the zone ${zone}`
  const place = `${title}${inZone}${provider === null ? '' : `, hosted by ${provider}`}`
  const claim = view.claim === null ? '' : `; the claim is ${view.claim.status}`
  const heading = paragraph(`${place}: TXT ${expected ?? `records${claim}`}`, '', layout, palette.strong)
  if (view.isListing) {
    const others = values.length > MAX_LISTED ? [`and ${values.length - MAX_LISTED} more`] : []
    const listed = values.length === 0 ? ['no TXT record'] : [...values.slice(0, MAX_LISTED), ...others]
    return heading + listed.map((value) => paragraph(value, '  ', layout)).join('')
  }
  return heading + paragraph(`${capitalize(view.result)}${claim}`, '', layout, palette[view.tone])
}

function tables({ nameservers, resolvers }: ReportView, layout: PaletteAndWidth): string[] {
  const render = <T extends object>(columns: readonly Column[], rows: readonly T[]) =>
    rows.length === 0 ? [] : [createPagedTable(columns, { ...layout, now: 0 }).render(rows)]
  const answers: readonly Column[] = [
    {
      field: 'tone',
      title: 'Answer',
      text: (_tone, _context, item) => (item as AnswerView).label,
      paint: (tone, { palette }) => palette[tone as ReportTone],
    },
    { field: 'values', title: 'TXT values', text: (values) => summarizeValues(values as readonly string[]) },
    { field: 'ttl', title: 'TTL', kind: 'number' },
  ]
  const ms: Column = { field: 'ms', title: 'ms', kind: 'number' }
  const hosts: readonly Column[] = [
    { field: 'host', title: 'Name server', kind: 'id' },
    { field: 'address', title: 'Address', kind: 'id' },
  ]
  return [
    ...render([...hosts, ...answers, { field: 'serial', title: 'Serial', kind: 'number' }, ms], nameservers),
    ...render([{ field: 'address', title: 'Resolver', kind: 'id' }, ...answers, ms], resolvers),
  ]
}

/** Maximum number of TXT values listed if no value is expected; the others are only counted. */
const MAX_LISTED = 20

/** Renders a finding: message, comparison of the expected value with the one found, fix. */
function renderFinding(finding: FindingView, layout: PaletteAndWidth): string {
  const { palette } = layout
  const paint = palette[finding.tone]
  const message = toPlainText(finding.message)
  return (
    // Color the symbol only, because a complete paragraph in color is hard to read.
    paragraph(`${message} [${finding.code}]`, `${TONE_SYMBOLS[finding.tone]} `, layout, undefined, paint) +
    renderValueDifference(finding.evidence, layout.width - 2, palette)
      .map((line) => `  ${line}\n`)
      .join('') +
    paragraph(toPlainText(finding.fix), '  → ', layout)
  )
}

/**
 * Sanitizes text, and wraps it after a symbol or spaces, with a hanging indent. Long words such as TXT values aren't broken, so
 * that they can be copied.
 */
function paragraph(
  text: string,
  symbol: string,
  layout: PaletteAndWidth,
  paint = (line: string) => line,
  paintSymbol = paint,
): string {
  const room = displayWidth(symbol)
  return wrapLine(sanitizeLine(text), Math.max(20, layout.width - room), false)
    .map((line, index) =>
      index === 0 ? paintSymbol(symbol) + paint(line) : paint(indentPiece(line, room, layout.width)),
    )
    .map((line) => `${line}\n`)
    .join('')
}
