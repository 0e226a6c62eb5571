import { PIECE } from '../../terminal/notices.ts'
import { formatTime } from '../../terminal/relative-time.ts'
import { sanitizeLine, stringifyJson } from '../../terminal/sanitize.ts'
import type { Finding } from './finding.ts'
import { outcomeLabel, resultOf, serversDiffer, valueNeeded, valuesSeen, waitingTime } from './labels.ts'
import { readableName } from './render.ts'
import type { CheckReport } from './report.ts'
import { findingJson } from './report-json.ts'
import { partsOf, type Text } from './text.ts'

/** How a report was made. */
export interface ReportContext {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly version: string
  /** Where the search for the name servers started. */
  readonly resolvers: readonly string[]
}

/**
 * A report for a support ticket: the result, the cause, the fix, and what each server answered. Everything but plain words
 * is in code spans, so text that others wrote can't become a link, an image, or a mention.
 */
export function renderMarkdown(report: CheckReport, context: ReportContext): string {
  const { findings } = report
  const [cause] = findings.filter((finding) => finding.severity !== 'info')
  const wait = waitingTime(report)
  const needed = valueNeeded(report)
  const lines = [
    `## DNS check of ${code(readableName(report.name))}`,
    '',
    `- **Result:** ${resultOf(report)}`,
    ...(cause === undefined
      ? []
      : [`- **Cause:** ${prose(cause.message)}`, `- **Fix:** ${prose(cause.fix)}`]),
    needed === null
      ? `- **TXT records${serversDiffer(report) ? ' (not all name servers have these)' : ''}:** ${valuesSeen(report).map(code).join(', ') || 'none seen'}`
      : `- **Expected:** TXT record at ${code(report.name)} with the value ${code(needed)}`,
    `- **Zone:** ${report.zone === null ? 'not found' : code(report.zone)}`,
    ...(wait === undefined ? [] : [`- **Waiting time:** ${wait}`]),
    `- **Checked:** ${formatTime(context.at)} by mailclaim ${context.version}, starting at ${context.resolvers.length === 0 ? 'no resolver' : context.resolvers.map(code).join(', ')}`,
  ]
  if (report.nameservers.length > 0) lines.push('', '### Authoritative name servers', '', ...servers(report))
  if (report.resolvers.length > 0) lines.push('', '### Recursive resolvers', '', ...resolvers(report))
  if (findings.length > 0)
    lines.push(
      '',
      '### Findings',
      ...findings.flatMap((finding, index) => findingLines(finding, index, report.expected)),
    )
  return `${lines.join('\n')}\n`
}

function servers(report: CheckReport): string[] {
  return [
    '| Name server | Address | Answer | Authoritative | TXT values | TTL | Serial | ms |',
    '| --- | --- | --- | --- | --- | ---: | ---: | ---: |',
    ...report.nameservers.map((row) =>
      cells(
        code(row.host),
        row.address === null ? '–' : code(row.address),
        outcomeLabel(row.outcome, report),
        row.authoritative ? 'yes' : 'no',
        values(row.values),
        String(row.ttl ?? '–'),
        String(row.serial ?? '–'),
        String(row.ms ?? '–'),
      ),
    ),
  ]
}

function resolvers(report: CheckReport): string[] {
  return [
    '| Resolver | Answer | TXT values | TTL | ms |',
    '| --- | --- | --- | ---: | ---: |',
    ...report.resolvers.map((row) =>
      cells(
        code(row.address),
        outcomeLabel(row.outcome, report),
        values(row.values),
        String(row.ttl ?? '–'),
        String(row.ms ?? '–'),
      ),
    ),
  ]
}

function findingLines(finding: Finding, index: number, expected: string | null): string[] {
  return [
    '',
    `${index + 1}. **${finding.severity}** ${code(finding.code)}: ${prose(finding.message)}`,
    `   - Fix: ${prose(finding.fix)}`,
    `   - Evidence: ${code(stringifyJson(findingJson(finding, expected).evidence))}`,
  ]
}

function values(list: readonly string[]): string {
  if (list.length === 0) return '–'
  const shown = list.slice(0, 10).map(code)
  return list.length > 10 ? `${shown.join('<br>')}<br>and ${list.length - 10} more` : shown.join('<br>')
}

/**
 * A row of a table. A pipe ends a cell, even in a code span, unless a backslash precedes it. If the text already has that
 * backslash, renderers disagree, so such a pipe becomes `\u{7c}`, like an invisible character.
 */
export const cells = (...row: readonly string[]) =>
  `| ${row.map((cell) => cell.replaceAll('\\|', '\\u{7c}').replaceAll('|', '\\|')).join(' | ')} |`

/** An English word, a number or a dash. Seven or more hexadecimal digits may name a commit. */
const PLAIN_WORD = /^(?!.*[\da-f]{7})(?:[a-z]+(?:['’-][a-z]+)*|\d+|[–—→])$/i

/** Puts every value and command, and every word that isn't plain, in a code span. */
export function prose(sentence: Text): string {
  return (
    partsOf(sentence)
      .map((part) => (typeof part === 'string' ? sanitizeLine(part).replace(PIECE, word) : code(part.value)))
      // The backticks of adjacent code spans would merge.
      .reduce((line, piece) =>
        line.endsWith('`') && piece.startsWith('`') ? `${line} ${piece}` : line + piece,
      )
  )
}

/** Punctuation around a word stays outside its code span. */
function word(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && `"'(`.includes(text.charAt(start))) start++
  while (end > start && `.,:;!?'")`.includes(text.charAt(end - 1))) end--
  const core = text.slice(start, end)
  if (core === '' || PLAIN_WORD.test(core)) return text
  return text.slice(0, start) + code(core) + text.slice(end)
}

/** A code span whose fence is longer than any run of backticks inside (CommonMark section 6.1). */
export function code(value: string): string {
  const clean = sanitizeLine(value)
  if (clean === '') return '(empty)'
  const longest = Math.max(0, ...[...clean.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  // Markdown strips a space from both ends, unless there are only spaces.
  const padding = /^`|`$|^ .*[^ ]/.test(clean) ? ' ' : ''
  return `${fence}${padding}${clean}${padding}${fence}`
}
