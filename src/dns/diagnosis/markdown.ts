import { sanitizeLine, stringifyJson } from '../../terminal/sanitize.ts'
import { duration, OUTCOME_LABELS, VERDICT_LABELS } from './labels.ts'
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
 * A report for a support ticket: what was asked, of whom, what each answered, the cause, the fix, the time. Values from
 * DNS stand in code spans, so that nothing in them counts as Markdown.
 */
export function renderMarkdown(report: CheckReport, circumstances: Circumstances): string {
  const { findings } = report
  const [cause] = findings.filter((finding) => finding.severity !== 'info')
  const lines = [
    `## DNS check of ${text(readableName(report.name))}`,
    '',
    `- **Result:** ${text(VERDICT_LABELS[report.verdict])}`,
    ...(cause === undefined ? [] : [`- **Cause:** ${text(cause.message)}`, `- **Fix:** ${text(cause.fix)}`]),
    `- **Expected:** TXT record at ${code(report.name)} with the value ${code(report.expected)}`,
    `- **Zone:** ${report.zone === null ? 'not found' : code(report.zone)}`,
    ...(report.retry_after_seconds
      ? [`- **Caches:** may keep the old state for up to ${duration(report.retry_after_seconds)}`]
      : []),
    `- **Checked:** ${new Date(circumstances.at).toISOString()} by mailclaim ${text(circumstances.version)}, starting at ${circumstances.resolvers.length === 0 ? 'no resolver' : circumstances.resolvers.map(code).join(', ')}`,
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
    `${index + 1}. **${finding.severity}** ${code(finding.code)}: ${text(finding.message)}`,
    `   - Fix: ${text(finding.fix)}`,
    `   - Evidence: ${code(stringifyJson(finding.evidence))}`,
  ]
}

function values(list: readonly string[]): string {
  if (list.length === 0) return '–'
  const shown = list.slice(0, 10).map(code)
  return list.length > 10 ? `${shown.join('<br>')}<br>and ${list.length - 10} more` : shown.join('<br>')
}

const cells = (...row: readonly string[]) =>
  `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`

/** Characters that Markdown or HTML would act on are escaped. */
function text(value: string): string {
  return sanitizeLine(value).replace(/[\\`*_[\]<>#|~]/g, (character) => `\\${character}`)
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
