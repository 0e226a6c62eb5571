import { readableName } from '../../dns/diagnosis/render.ts'
import { capitalize } from '../../dns/diagnosis/text.ts'
import { renderPage } from '../../dns/html-report/page.ts'
import { html } from '../../terminal/html.ts'
import { formatTime } from '../../terminal/relative-time.ts'
import type { RunFacts } from './report-markdown.ts'
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
import {
  type CauseCount,
  type CauseReport,
  type DoneReport,
  firstLine,
  isWarning,
  type Tally,
} from './tally.ts'

/** The summary of a run as one HTML file: the counts, the causes with their fixes, and which domains they concern. */
export function renderRunHtml(tally: Tally, { at, version, command, incomplete }: RunFacts): string {
  const causes = tally.causesInOrder()
  const title = `${domainsOf(tally.done)}: ${resultText(tally)}`
  const tone = tally.failed > 0 ? 'bad' : 'good'
  return renderPage(
    `${title} · mailclaim`,
    html`<header><p><strong>mailclaim</strong> · ${command}</p><p><time datetime="${new Date(at).toISOString()}">${formatTime(at)}</time></p></header>
<main>
<section class="panel result ${tone}" aria-labelledby="result"><h1 id="result">${title}</h1>
${incomplete === undefined ? '' : html`<p><strong>Incomplete.</strong> ${capitalize(incomplete)}</p>`}
${tally.problems === 0 ? '' : html`<p>${`${formatCount(tally.problems)} unusable, such as:`}</p><ul>${tally.firstProblems.map((problem) => html`<li><code>${problem}</code></li>`)}</ul>`}
${causes.length === 0 ? '' : causeTable(causes)}
${causes.some(isWarning) ? html`<p>${WARNING_NOTE}</p>` : ''}
</section>
${causes.map(causePanel)}
${tally.doneInOrder().map(donePanel)}
</main>
<footer><p>${`Made by mailclaim ${version}. This file loads nothing and runs nothing.`}</p></footer>`,
  )
}

function causeTable(causes: readonly CauseCount[]) {
  return html`<div class="scroll" role="region" aria-label="Causes" tabindex="0"><table>
<thead><tr><th scope="col">Domains</th><th scope="col">Cause</th><th scope="col">DNS host</th><th scope="col">Fix</th></tr></thead>
<tbody>${causes.map(
    ({ count, title, host, fix }) =>
      html`<tr><td>${formatCount(count)}</td><td>${title}</td><td>${host ?? '–'}</td><td class="values">${firstLine(fix) ?? '–'}</td></tr>`,
  )}</tbody></table></div>`
}

function causePanel(cause: CauseReport, index: number) {
  const { title, host, message, fix } = cause
  return html`<section class="panel" aria-labelledby="cause-${index}"><h2 id="cause-${index}">${`${title}${host === undefined ? '' : ` at ${host}`}`}</h2>
${message === undefined ? '' : html`<p class="cause">${message}</p>`}
${fix === undefined ? '' : html`<p class="todo">${fix}</p>`}
${memberList(cause, index)}
</section>
`
}

function donePanel({ label, names }: DoneReport, index: number) {
  const next = nextStepText(label)
  return html`<section class="panel" aria-labelledby="done-${index}"><h2 id="done-${index}">${capitalize(readable(label))}</h2>
${next === undefined ? '' : html`<p>${next}</p>`}
${nameList(names)}
</section>
`
}

const nameList = (names: readonly string[]) =>
  html`<ul>${names.map((name) => html`<li><code>${readableName(name)}</code></li>`)}</ul>`

/** Characters that a cell of a table has room for without a line break. */
const SHORT = 30

function memberList(cause: CauseReport, index: number) {
  const table = memberTable(cause)
  if (table === undefined) return nameList(cause.names)
  return html`<div class="scroll" role="region" aria-labelledby="cause-${index} rows-${index}" tabindex="0"><table><caption id="rows-${index}">${ROWS_CAPTION}</caption>
<thead><tr>${table.titles.map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
<tbody>${table.rows.map(
    ({ values: [name, ...rest], said }) =>
      html`<tr><th scope="row"><code>${name}</code></th>${rest.map(valueCell)}${said === undefined ? '' : html`<td class="values">${said}</td>`}</tr>
`,
  )}</tbody></table></div>`
}

const valueCell = (value: string | undefined) =>
  html`<td class="${(value?.length ?? 0) > SHORT ? 'values' : 'text'}">${value === undefined ? '–' : html`<code>${value}</code>`}</td>`
