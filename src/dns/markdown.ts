import { sanitizeLine } from '../terminal/sanitize.ts'
import { formatUtcTime } from '../terminal/time.ts'
import type { CheckReport, ReportMetadata } from './report.ts'
import { type AnswerView, type FindingView, renderValueDifference, toReportView } from './view.ts'
import type { RichText } from './words.ts'

/** Maximum width in columns of the comparison of an expected and a found value; a wider one is left out. */
const MAX_COLUMNS = 300

/**
 * Renders a report as Markdown for a support ticket: result, findings, and the answer of each server. All text from DNS, the
 * service and the user is in code spans or code blocks, so it can't become a link, an image or a mention.
 */
export function renderMarkdownReport(report: CheckReport, metadata: ReportMetadata): string {
  const view = toReportView(report)
  const { expected, zone, provider, claim, wait } = view
  const configured = metadata.resolvers.length === 0 ? 'none' : metadata.resolvers.map(code).join(', ')
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : ['', `### ${title}`, '', ...lines]
  return [
    `## DNS check of ${code(view.title)}`,
    '',
    `- **Result:** ${view.result}`,
    ...(claim === null ? [] : [`- **Claim:** ${code(claim.status)}`]),
    expected === null
      ? `- **TXT records:** ${values(view.values)}`
      : `- **Expected:** TXT record at ${code(view.name)} with the value ${code(expected)}`,
    `- **Zone:** ${zone === null ? 'not found' : code(zone)}${provider === null ? '' : `, hosted by ${provider}`}`,
    ...(wait === undefined ? [] : [`- **Waiting time:** ${wait}`]),
    `- **Checked:** ${formatUtcTime(metadata.at)} by mailclaim ${metadata.version}; configured resolvers: ${configured}`,
    `- **To repeat:** ${code(metadata.command)}`,
    ...section('Findings', view.findings.flatMap(findingLines)),
    ...section('Authoritative name servers', table(view.nameservers)),
    ...section('Recursive resolvers', table(view.resolvers)),
    '',
  ].join('\n')
}

/** Renders a finding as an item of a numbered list. */
function findingLines({ code: id, severity, message, fix, evidence }: FindingView, index: number): string[] {
  const difference = renderValueDifference(evidence, MAX_COLUMNS)
  // No value can close the block: a fence must be the first text of its line, and each value follows a label.
  const block = difference.length === 0 ? [] : ['', '```text', ...difference, '```']
  return [
    `${index + 1}. **${severity}** ${code(id)}: ${prose(message)}`,
    ...[`- Fix: ${prose(fix)}`, ...block].map((line) => `   ${line}`.trimEnd()),
  ]
}

function table(rows: readonly AnswerView[]): string[] {
  if (rows.length === 0) return []
  return [
    '| Server | Answer | TXT values | TTL | Serial | ms |',
    '| --- | --- | --- | ---: | ---: | ---: |',
    ...rows.map((row) =>
      cells(
        [row.host, row.address].flatMap((one) => (one === null ? [] : code(one))).join(' '),
        row.label,
        values(row.values),
        ...[row.ttl, row.serial, row.ms].map((number) => String(number ?? '–')),
      ),
    ),
  ]
}

/** Renders TXT values with line breaks (`<br>`) between them; a dash if there are none. */
const values = (list: readonly string[]): string => list.map(code).join('<br>') || '–'

/**
 * Renders a row of a table, with each pipe in a cell as `\|`: a bare pipe would end the cell, even in a code span. Renderers
 * disagree about a pipe after a backslash of the text, so this pair becomes `\u{7c}`, the notation for invisible characters.
 */
const cells = (...row: readonly string[]) =>
  `| ${row.map((cell) => cell.replaceAll('\\|', '\\u{7c}').replaceAll('|', '\\|')).join(' | ')} |`

/** Renders a message or fix with its facts in code spans. */
function prose(text: RichText): string {
  return text.map((part) => (typeof part === 'string' ? part : code(part.value))).join('')
}

/**
 * Renders a value as a code span with a fence that is longer than any run of backticks inside (CommonMark section 6.1); an empty
 * value as `(empty)`.
 */
function code(value: string): string {
  const clean = sanitizeLine(value)
  if (clean === '') return '(empty)'
  const longest = Math.max(0, ...[...clean.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  // Pad with spaces, of which CommonMark strips one at each end: spaces at both ends of the text would get lost, and a backtick at
  // an end would become part of the fence.
  const padding = /^`|`$|^ .*[^ ]/.test(clean) ? ' ' : ''
  return `${fence}${padding}${clean}${padding}${fence}`
}
