import { sanitizeLine, stringifyJson } from '../terminal/sanitize.ts'
import { formatTime } from '../terminal/time.ts'
import {
  type CheckReport,
  type Finding,
  firstOf,
  hostOf,
  type NameserverReport,
  outcomeLabel,
  type ReportContext,
  type ResolverReport,
  resultOf,
  valuesSeen,
  waitingTime,
  wordsOf,
} from './report.ts'
import { readableName } from './terminal.ts'
import { sentence, type Text } from './words.ts'

const SHOWN_VALUES = 10

/**
 * A report for a support ticket: the result, what was found, and what each server answered. Everything but our own words is
 * in code spans, so text that others wrote can't become a link, an image, or a mention.
 */
export function renderMarkdown(report: CheckReport, context: ReportContext): string {
  const { name, expected, zone, nameservers, resolvers, findings } = report
  const wait = waitingTime(report)
  const host = hostOf(report)
  const started = context.resolvers.length === 0 ? 'no resolver' : context.resolvers.map(code).join(', ')
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : ['', `### ${title}`, '', ...lines]
  return [
    `## DNS check of ${code(readableName(name))}`,
    '',
    `- **Result:** ${resultOf(report)}`,
    ...(report.claim === null ? [] : [`- **Claim:** ${code(report.claim.status ?? 'no status')}`]),
    expected === null
      ? `- **TXT records:** ${valuesSeen(report).map(code).join(', ') || 'none seen'}`
      : `- **Expected:** TXT record at ${code(name)} with the value ${code(expected)}`,
    `- **Zone:** ${zone === null ? 'not found' : code(zone)}${host === null ? '' : `, hosted by ${host}`}`,
    ...(wait === undefined ? [] : [`- **Waiting time:** ${wait}`]),
    `- **Checked:** ${formatTime(context.at)} by mailclaim ${context.version}, starting at ${started}`,
    ...section('Findings', findings.flatMap(findingLines)),
    ...section('Authoritative name servers', table(report, nameservers)),
    ...section('Recursive resolvers', table(report, resolvers)),
    '',
  ].join('\n')
}

function findingLines(finding: Finding, index: number): string[] {
  return [
    `${index + 1}. **${finding.severity}** ${code(finding.code)}: ${prose(wordsOf(finding, 'message'))}`,
    `   - Fix: ${prose(sentence(wordsOf(finding, 'fix')))}`,
    `   - Evidence: ${code(stringifyJson(finding.evidence))}`,
  ]
}

function table(report: CheckReport, rows: readonly (NameserverReport | ResolverReport)[]): string[] {
  if (rows.length === 0) return []
  return [
    '| Server | Answer | TXT values | TTL | Serial | ms |',
    '| --- | --- | --- | ---: | ---: | ---: |',
    ...rows.map((row) =>
      cells(
        [...('host' in row ? [row.host] : []), row.address]
          .filter((one) => one !== null)
          .map(code)
          .join(' '),
        outcomeLabel(row.outcome, report),
        values(row.values),
        String(row.ttl ?? '–'),
        'serial' in row ? String(row.serial ?? '–') : '–',
        String(row.ms ?? '–'),
      ),
    ),
  ]
}

function values(list: readonly string[]): string {
  const { first, more } = firstOf(list, SHOWN_VALUES)
  return [...first.map(code), ...more].join('<br>') || '–'
}

/**
 * A row of a table. A pipe ends a cell, even in a code span, unless a backslash precedes it. If the text already has that
 * backslash, renderers disagree, so such a pipe becomes `\u{7c}`, like an invisible character.
 */
const cells = (...row: readonly string[]) =>
  `| ${row.map((cell) => cell.replaceAll('\\|', '\\u{7c}').replaceAll('|', '\\|')).join(' | ')} |`

/** A sentence with its facts in code spans. */
function prose(text: Text): string {
  return text.map((part) => (typeof part === 'string' ? part : code(part.value))).join('')
}

/** A code span whose fence is longer than any run of backticks inside (CommonMark section 6.1). */
function code(value: string): string {
  const clean = sanitizeLine(value)
  if (clean === '') return '(empty)'
  const longest = Math.max(0, ...[...clean.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  // Markdown strips a space from both ends, unless there are only spaces.
  const padding = /^`|`$|^ .*[^ ]/.test(clean) ? ' ' : ''
  return `${fence}${padding}${clean}${padding}${fence}`
}
