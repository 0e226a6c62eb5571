import type { Palette } from '../terminal/color.ts'
import { type Column, summarizeValues } from '../terminal/columns.ts'
import { indent, widthOf, wrap } from '../terminal/measure.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { createTable } from '../terminal/table.ts'
import type { CheckReport } from './report.ts'
import {
  type AnswerView,
  differenceLines,
  type FindingView,
  type ReportView,
  type Tone,
  viewReport,
} from './view.ts'
import { capitalize, plainText } from './words.ts'

/** How to lay out a report; the width is in columns. */
export interface Layout {
  readonly palette: Palette
  readonly width: number
}

/** The report for a terminal: what was checked, what each server answered, and the findings. */
export function renderReport(report: CheckReport, layout: Layout): string {
  const view = viewReport(report)
  return [
    headline(view, layout),
    ...tables(view, layout),
    ...view.findings.map((finding) => renderFinding(finding, layout)),
    ...(view.wait === undefined ? [] : [paragraph(view.wait, '', layout, layout.palette.faint)]),
  ].join('\n')
}

function headline(view: ReportView, layout: Layout): string {
  const { name, zone, expected, title, host, values } = view
  const { palette } = layout
  const inZone = zone === null || zone === name ? '' : ` in the zone ${zone}`
  const place = `${title}${inZone}${host === null ? '' : `, hosted by ${host}`}`
  const heading = paragraph(`${place}: TXT ${expected ?? 'records'}`, '', layout, palette.strong)
  if (view.hasLooked) {
    const others = values.length > LISTED_VALUES ? [`and ${values.length - LISTED_VALUES} more`] : []
    const listed = values.length === 0 ? ['no TXT record'] : [...values.slice(0, LISTED_VALUES), ...others]
    return heading + listed.map((value) => paragraph(value, '  ', layout)).join('')
  }
  const claim = view.claim === null ? '' : `; the claim is ${view.claim.status}`
  return heading + paragraph(`${capitalize(view.result)}${claim}`, '', layout, palette[view.tone])
}

function tables({ nameservers, resolvers }: ReportView, layout: Layout): string[] {
  const render = <T extends object>(columns: readonly Column[], rows: readonly T[]) =>
    rows.length === 0 ? [] : [createTable(columns, { ...layout, now: 0 }).render(rows)]
  const answers: readonly Column[] = [
    {
      field: 'tone',
      title: 'Answer',
      text: (_tone, _context, item) => (item as AnswerView).label,
      paint: (tone, { palette }) => palette[tone as Tone],
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

/** Values of a check without one to expect. */
const LISTED_VALUES = 20
const SYMBOLS = { error: '✗', warning: '!' } as const

function renderFinding(finding: FindingView, layout: Layout): string {
  const { palette } = layout
  const paint = palette[finding.tone]
  const message = plainText(finding.message)
  return (
    // Only the symbol is red: a paragraph in red is hard to read.
    paragraph(`${message} [${finding.code}]`, `${SYMBOLS[finding.severity]} `, layout, undefined, paint) +
    differenceLines(finding.evidence, layout.width - 2, palette)
      .map((line) => `  ${line}\n`)
      .join('') +
    paragraph(plainText(finding.fix), '  → ', layout)
  )
}

/** Text after a symbol, wrapped with a hanging indent; a value in it stays in one piece, so that it can be copied. */
function paragraph(
  text: string,
  symbol: string,
  layout: Layout,
  paint = (line: string) => line,
  paintSymbol = paint,
): string {
  const room = widthOf(symbol)
  return wrap(sanitizeLine(text), Math.max(20, layout.width - room), false)
    .map((line, index) =>
      index === 0 ? paintSymbol(symbol) + paint(line) : paint(indent(line, room, layout.width)),
    )
    .map((line) => `${line}\n`)
    .join('')
}
