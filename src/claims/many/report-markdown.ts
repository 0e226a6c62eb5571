import { cells, code, prose } from '../../dns/diagnosis/markdown.ts'
import { readableName } from '../../dns/diagnosis/render.ts'
import { capitalize } from '../../dns/diagnosis/text.ts'
import { formatTime } from '../../terminal/relative-time.ts'
import {
  domainsOf,
  formatCount,
  memberTable,
  nextStepText,
  ROWS_CAPTION,
  readable,
  resultText,
  WARNING_NOTE,
} from './summary.ts'
import { type CauseReport, isWarning, type Tally } from './tally.ts'

/** How a report was made. */
export interface RunFacts {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly version: string
  /** What was done: `claims check`. */
  readonly command: string
  /** If the run left some domains out: how it ended, and how many. */
  readonly incomplete?: string | undefined
}

/** The summary of a run for a support ticket: the counts, the causes with their fixes, and which domains they concern. */
export function renderRunMarkdown(tally: Tally, { at, version, command, incomplete }: RunFacts): string {
  const causes = tally.causesInOrder()
  const lines = [
    `## ${domainsOf(tally.done)}: ${command}`,
    '',
    `- **Result:** ${resultText(tally)}`,
    ...(incomplete === undefined ? [] : [`- **Incomplete:** ${prose(incomplete)}`]),
    ...(tally.problems > 0
      ? [
          `- **Unusable lines:** ${formatCount(tally.problems)}, such as ${tally.firstProblems.map(code).join(', ')}`,
        ]
      : []),
    `- **Made:** ${formatTime(at)} by mailclaim ${version}`,
  ]
  if (causes.length > 0)
    lines.push(
      '',
      '| Domains | Cause | DNS host | Fix |',
      '| ---: | --- | --- | --- |',
      ...causes.map(({ count, title, host, fix = '–' }) =>
        cells(
          formatCount(count),
          prose(title),
          host === undefined ? '–' : code(host),
          fix.split('\n').map(prose).join('<br>'),
        ),
      ),
    )
  if (causes.some(isWarning)) lines.push('', prose(WARNING_NOTE))
  for (const cause of causes) {
    const { title, host, message } = cause
    lines.push(
      '',
      `### ${prose(title)}${host === undefined ? '' : ` at ${code(host)}`}`,
      '',
      ...(message === undefined ? [] : [prose(message), '']),
      ...memberLines(cause),
    )
  }
  for (const { label, names } of tally.doneInOrder())
    lines.push(
      '',
      `### ${prose(capitalize(readable(label)))}`,
      '',
      ...[nextStepText(label)].flatMap((text) => (text === undefined ? [] : [prose(text), ''])),
      names.map(readableName).map(code).join(', '),
    )
  return `${lines.join('\n')}\n`
}

function memberLines(cause: CauseReport): string[] {
  const table = memberTable(cause)
  if (table === undefined) return [cause.names.map(readableName).map(code).join(', ')]
  return [
    `${ROWS_CAPTION}:`,
    '',
    cells(...table.titles),
    cells(...table.titles.map(() => '---')),
    ...table.rows.map(({ values, said }) =>
      cells(
        ...values.map((value) => (value === undefined ? '–' : code(value))),
        ...(said === undefined ? [] : [prose(said)]),
      ),
    ),
  ]
}
