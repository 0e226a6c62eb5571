import { readableName } from '../../dns/terminal.ts'
import type { Column, RenderContext } from '../../terminal/columns.ts'
import { wrap } from '../../terminal/measure.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { wordsIn } from './general-text.ts'
import { type CauseCount, type CauseReport, firstLine, type Tally } from './tally.ts'

/** Domains that the table of causes names. */
const NAMED = 2
const LIST = new Intl.ListFormat('en-US')
const COUNT = new Intl.NumberFormat('en-US')

export const formatCount = (count: number): string => COUNT.format(count)

/** "1 domain", "1,000 domains" */
export const domainsOf = (count: number): string =>
  `${formatCount(count)} ${count === 1 ? 'domain' : 'domains'}`

/** "ready 380, fix 22": how many domains ended how. */
export function countsText({ counts }: Pick<Tally, 'counts'>, separator = ', '): string {
  return [...counts].map(([label, count]) => `${label} ${formatCount(count)}`).join(separator)
}

/** "in progress 20: waiting for DNS 15, verifying 5"; undefined if nothing is. */
export function progressText({ steps }: Tally): string | undefined {
  const now = [...steps].filter(([, count]) => count > 0)
  if (now.length === 0) return undefined
  const total = now.reduce((sum, [, count]) => sum + count, 0)
  return `in progress ${formatCount(total)}: ${now.map(([step, count]) => `${step} ${formatCount(count)}`).join(', ')}`
}

/** The counts of a run, which may have been cut short, in an order that doesn't depend on which domain ended first. */
export function resultText(tally: Tally): string {
  const sorted = [...tally.counts].sort(([one], [other]) => (one < other ? -1 : 1))
  const counts = new Map(sorted.map(([label, count]) => [readable(label), count]))
  return [countsText({ counts }), progressText(tally)].filter(Boolean).join('; ') || 'nothing was done'
}

/** For somebody who has never used the program. */
const READABLE: Readonly<Record<string, string>> = {
  ready_with_warning: 'ready with a warning',
  fix: 'to be fixed',
  wait: 'only to wait for',
  unknown: "couldn't be checked",
}

/** What domains are counted as, in the words of a report. */
export const readable = (label: string): string => READABLE[label] ?? label

/** What a report says below its causes if some are warnings. */
export const WARNING_NOTE = '(warning): a problem beside a record that is in DNS, or was only looked at'

/** "41 domains at ns*.example-dns.net: record missing" */
export function causeLine({ count, host, title }: CauseCount): string {
  return `${domainsOf(count)}${host === undefined ? '' : ` at ${host}`}: ${title}`
}

/** The first line of a summary. */
export function headline(tally: Tally): string {
  const others = [
    tally.repeated > 0 ? `${formatCount(tally.repeated)} repeated` : '',
    tally.problems > 0 ? `${formatCount(tally.problems)} unusable` : '',
  ].filter(Boolean)
  const counts = [
    `${domainsOf(tally.done)}${tally.done > 0 ? `: ${countsText(tally)}` : ''}`,
    progressText(tally),
    others.length > 0 ? `left out: ${others.join(', ')}` : '',
  ]
  return counts.filter(Boolean).join('; ')
}

/**
 * What a report says of a run that left some domains out.
 *
 * @param total how many domains there are, if that is known
 */
export function incompleteText(tally: Tally, end: string, total: number | undefined): string {
  const left = leftOut(tally, total)
  return total === undefined || !left
    ? `${end}: not all domains are done`
    : `${end}: ${formatCount(left)} of ${domainsOf(total)} ${left === 1 ? "isn't" : "aren't"} done`
}

/** How many domains a run that ended early left out, if it's known how many there are. */
export function leftOut({ done, problems, repeated }: Tally, total: number | undefined): number | undefined {
  return total === undefined ? undefined : total - done - problems - repeated
}

/** What a report says of domains that are done. */
export const nextStepText = (label: string): string | undefined =>
  label === 'ready' || label === 'ready_with_warning'
    ? 'The records are in DNS. Where the claim is not completed yet, it has to be verified next: mailclaim claims verify DOMAIN --wait'
    : undefined

const NO_BREAK_SPACE = '\u00a0'

/** Counts as lines of at most `width` columns, with no count apart from its label. */
export function wrapCounts(text: string, width: number): string[] {
  const lines = wrap(text.replaceAll(/(?<![,:;]) /g, NO_BREAK_SPACE), width)
  return lines.map((line) => line.replaceAll(NO_BREAK_SPACE, ' '))
}

/**
 * Where to find what the table of causes leaves out: names of domains, and what the words in its fixes stand for.
 *
 * @param check the command that checks the same domains, with a report as Markdown; on a line of its own
 */
export function legend(tally: Tally, check: string): string | undefined {
  const causes = tally.causes()
  const words = wordsIn(causes.map(({ fix }) => firstLine(fix)).join('\n')).filter(isParticular)
  if (words.length === 0 && !causes.some((cause) => restText(cause, NAMED))) return undefined
  if (words.length === 0) return 'Each domain: --format tsv'
  return `Each domain with its ${LIST.format(words)}:\n${check}`
}

/** The table of causes for people. */
export const CAUSE_COLUMNS: readonly Column[] = [
  { field: 'count', title: 'Domains', kind: 'number', value: (cause) => (cause as CauseCount).count },
  {
    field: 'title',
    title: 'Cause',
    // A column of its own would leave no room for the names of domains at 80 columns.
    value: (cause) => causeText(cause as CauseCount),
    paint: (_value, palette) => palette.strong,
  },
  {
    field: 'fix',
    title: 'Fix',
    value: (cause) => adviceLine(cause as CauseCount),
  },
  { field: 'names', title: 'Which', value: (cause) => namesText(cause as CauseCount, NAMED) },
]

/** "record missing at ns*.example-dns.net" */
function causeText({ title, host }: CauseCount): string {
  return host === undefined ? title : `${title} at ${host}`
}

/** "and 998 more": the domains of a cause beyond those that are named; undefined if there are none. */
function restText({ names, count }: CauseCount, named: number): string | undefined {
  const rest = count - Math.min(named, names.length)
  return rest > 0 ? `and ${formatCount(rest)} more` : undefined
}

/** The names of the domains are there anyway. */
const isParticular = (word: string) => word !== 'DOMAIN'

/** What a report says above the table of the domains of a cause. */
export const ROWS_CAPTION = 'What the words in capitals stand for'

/** The title of the column with what the message about each domain says, where these differ. */
const MESSAGE_TITLE = 'What was found'

/**
 * The domains of a cause with what its words stand for, for a report: the titles of the columns and the rows; with the message
 * about each if no message goes for all of them. Undefined if the names say it all.
 */
export function memberTable({ message, fix = '', members }: CauseReport) {
  const words = wordsIn(`${message ?? ''}\n${fix}`).filter(
    (word) => isParticular(word) && members.some(({ particulars }) => particulars[word]),
  )
  const hasMessages = message === undefined && members.some(({ said }) => said)
  if (words.length === 0 && !hasMessages) return undefined
  const rows = members.map(({ name, particulars, said }) => ({
    values: [
      readableName(particulars['DOMAIN'] ?? name),
      ...words.map((word) => particulars[word] ?? undefined),
    ],
    said: hasMessages ? (said ?? '') : undefined,
  }))
  return { titles: ['DOMAIN', ...words, ...(hasMessages ? [MESSAGE_TITLE] : [])], rows }
}

function namesText(cause: CauseCount, most: number): string {
  return [cause.names.slice(0, most).join(', '), restText(cause, most)].filter(Boolean).join(' ')
}

const DIFFERENT_MESSAGES = 'What was said differs: --format jsonl has it for each domain'

/** What was said about a cause, and what to do, each on a line. */
function adviceOf({ said, fix, message }: CauseCount): readonly string[] {
  const lines = [said, fix && `fix: ${firstLine(fix)}`].filter((line) => line !== undefined)
  return lines.length > 0 ? lines : [firstLine(message) ?? DIFFERENT_MESSAGES]
}

/** The same on one line, where a fix alone needs no label. */
export function adviceLine(cause: CauseCount): string {
  return adviceOf(cause)
    .join('; ')
    .replace(/^fix: /, '')
}

/** The causes for people at a narrow terminal, where a table would break each line into many. */
export function causeBlocks(tally: Tally, { palette, width }: RenderContext): string {
  return tally
    .causes()
    .map((cause) => {
      const paragraph = (text: string, indent: number) =>
        wrap(sanitizeLine(text), Math.max(20, width) - indent).map((line) => ' '.repeat(indent) + line)
      return [
        ...paragraph(causeLine(cause), 0).map(palette.strong),
        ...adviceOf(cause).flatMap((line) => paragraph(line, 2)),
        ...paragraph(namesText(cause, NAMED), 2).map(palette.faint),
      ].join('\n')
    })
    .join('\n\n')
}

/** A summary as lines of text, for logs. */
export function summaryLines(tally: Tally): string[] {
  return [
    headline(tally),
    ...tally.causes().flatMap((cause) => {
      return [
        `  ${causeLine(cause)} (${namesText(cause, 3)})`,
        ...adviceOf(cause).map((line) => `    ${line}`),
      ]
    }),
  ]
}
