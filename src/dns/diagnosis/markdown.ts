import { formatDuration } from '../../terminal/duration.ts'
import { sanitizeLine, stringifyJson } from '../../terminal/sanitize.ts'
import { OUTCOME_LABELS, VERDICT_LABELS } from './labels.ts'
import { readableName } from './render.ts'
import type { CheckReport, FindingJson, NameserverReport, ResolverReport } from './report.ts'
import { reportJson } from './report-json.ts'

/** Where and when a report was made. */
export interface Circumstances {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly version: string
  /** What was asked to find the name servers. */
  readonly resolvers: readonly string[]
}

/**
 * A report for a support ticket: what was asked, of whom, what each answered, the cause, the fix, the time. Whatever is
 * not plain words stands in code spans, so that nothing that others wrote makes a link, an image or a mention.
 */
export function renderMarkdown(report: CheckReport, circumstances: Circumstances): string {
  const { findings } = report
  const [cause] = findings.filter((finding) => finding.severity !== 'info')
  const lines = [
    `## DNS check of ${code(readableName(report.name))}`,
    '',
    `- **Result:** ${VERDICT_LABELS[report.verdict]}`,
    ...(cause === undefined
      ? []
      : [`- **Cause:** ${prose(cause.message)}`, `- **Fix:** ${prose(cause.fix)}`]),
    `- **Expected:** TXT record at ${code(report.name)} with the value ${code(report.expected)}`,
    `- **Zone:** ${report.zone === null ? 'not found' : code(report.zone)}`,
    ...(report.retry_after_seconds
      ? [`- **Caches:** may keep the old state for up to ${formatDuration(report.retry_after_seconds)}`]
      : []),
    `- **Checked:** ${new Date(circumstances.at).toISOString()} by mailclaim ${circumstances.version}, starting at ${circumstances.resolvers.length === 0 ? 'no resolver' : circumstances.resolvers.map(code).join(', ')}`,
  ]
  if (report.nameservers.length > 0)
    lines.push('', '### Authoritative name servers', '', ...servers(report.nameservers))
  if (report.resolvers.length > 0)
    lines.push('', '### Recursive resolvers', '', ...resolvers(report.resolvers))
  if (findings.length > 0)
    lines.push('', '### Findings', ...reportJson(report).findings.flatMap(findingLines))
  return `${lines.join('\n')}\n`
}

function servers(rows: readonly NameserverReport[]): string[] {
  return [
    '| Name server | Address | Answer | Authoritative | TXT values | TTL | Serial | ms |',
    '| --- | --- | --- | --- | --- | ---: | ---: | ---: |',
    ...rows.map((row) =>
      cells(
        code(row.host),
        row.address === null ? '–' : code(row.address),
        OUTCOME_LABELS[row.outcome],
        row.authoritative ? 'yes' : 'no',
        values(row.values),
        String(row.ttl ?? '–'),
        String(row.serial ?? '–'),
        String(row.ms ?? '–'),
      ),
    ),
  ]
}

function resolvers(rows: readonly ResolverReport[]): string[] {
  return [
    '| Resolver | Answer | TXT values | TTL | ms |',
    '| --- | --- | --- | ---: | ---: |',
    ...rows.map((row) =>
      cells(
        code(row.address),
        OUTCOME_LABELS[row.outcome],
        values(row.values),
        String(row.ttl ?? '–'),
        String(row.ms ?? '–'),
      ),
    ),
  ]
}

function findingLines(finding: FindingJson, index: number): string[] {
  return [
    '',
    `${index + 1}. **${finding.severity}** ${code(finding.code)}: ${prose(finding.message)}`,
    `   - Fix: ${prose(finding.fix)}`,
    `   - Evidence: ${code(stringifyJson(finding.evidence))}`,
  ]
}

function values(list: readonly string[]): string {
  if (list.length === 0) return '–'
  const shown = list.slice(0, 10).map(code)
  return list.length > 10 ? `${shown.join('<br>')}<br>and ${list.length - 10} more` : shown.join('<br>')
}

/**
 * A row of a table, which takes a pipe for the end of a cell unless a backslash is in front, also in a code span. Where
 * one is there already, renderers differ in what it escapes, so such a pipe is written as what cannot be seen is.
 */
const cells = (...row: readonly string[]) =>
  `| ${row.map((cell) => cell.replaceAll('\\|', '\\u{7c}').replaceAll('|', '\\|')).join(' | ')} |`

/** An English word, a number or a dash. Seven or more hexadecimal digits may name a commit. */
const PLAIN_WORD = /^(?!.*[\da-f]{7})(?:[a-z]+(?:['’-][a-z]+)*|\d+|[–—→])$/i

/**
 * A sentence that quotes names and values: what is in quotation marks, and every word that is not a plain one, becomes a
 * code span. Where a value holds quotation marks itself, other pieces are taken for the quoted ones, and all the same
 * nothing but plain words is left outside.
 */
function prose(sentence: string): string {
  return (
    sanitizeLine(sentence)
      .split(/("[^"]*")/)
      .map((piece, index) => (index % 2 === 1 ? code(piece.slice(1, -1)) : piece.replace(/\S+/g, word)))
      // Two code spans side by side would share their backticks.
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
function code(value: string): string {
  const clean = sanitizeLine(value)
  if (clean === '') return '(empty)'
  const longest = Math.max(0, ...[...clean.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  const padding = clean.startsWith('`') || clean.endsWith('`') || clean.startsWith(' ') ? ' ' : ''
  return `${fence}${padding}${clean}${padding}${fence}`
}
