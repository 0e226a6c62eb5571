import { type Html, html, type Inserted } from '../../terminal/html.ts'
import { formatTime } from '../../terminal/relative-time.ts'
import { stringifyJson } from '../../terminal/sanitize.ts'
import { comparedPieces, type Piece, readablePiece } from '../diagnosis/characters.ts'
import type { Finding } from '../diagnosis/finding.ts'
import {
  hasLooked,
  isBlocked,
  outcomeLabel,
  resultOf,
  serversDiffer,
  valueNeeded,
  valuesSeen,
  waitingTime,
} from '../diagnosis/labels.ts'
import type { ReportContext } from '../diagnosis/markdown.ts'
import { readableName } from '../diagnosis/render.ts'
import type { CheckReport, NameserverReport, ResolverReport } from '../diagnosis/report.ts'
import { findingJson } from '../diagnosis/report-json.ts'
import { capitalize, fullStopOf, partsOf, shorten, type Text } from '../diagnosis/text.ts'
import { formatDnsAddress } from '../wire/address.ts'
import { relativeName } from '../wire/name.ts'
import { delegationPicture } from './delegation-picture.ts'
import { type Look, symbol } from './drawing.ts'
import { outcomeLook, piecesOf, SEVERITY_LOOKS } from './looks.ts'
import { renderPage } from './page.ts'

/** How a report was made, and the command that makes it again. */
export interface HtmlContext extends ReportContext {
  readonly command: string
}

/** Characters of a value in a table, and of one piece of evidence. */
const LONGEST_SHOWN = 1000
const MAX_VALUES = 20
const DASH = '–'

/** A report as one HTML file, to look at, to print, or to attach to a ticket. */
export function renderHtml(report: CheckReport, context: HtmlContext): string {
  const name = shorten(readableName(report.name), 300)
  return renderPage(
    `${name}: ${resultOf(report)} · mailclaim`,
    html`<header><p><strong>mailclaim</strong> · DNS check</p><p><time datetime="${new Date(context.at).toISOString()}">${formatTime(context.at)}</time></p></header>
<main>
${reportBody(report, context)}
</main>
<footer><p>${`Made by mailclaim ${context.version}. This file loads nothing and runs nothing.`}</p></footer>`,
  )
}

/**
 * A report without the document around it: cause and fix, the picture, the findings, and all observations.
 *
 * @param id unique in the document
 */
export function reportBody(report: CheckReport, context: HtmlContext, id = 'report'): Html {
  return html`${resultPanel(report, id)}
<section class="panel" aria-labelledby="${id}-picture"><h2 id="${id}-picture">Delegation and answers</h2>
${(['wide', 'narrow'] as const).map((size) => delegationPicture(report, size, `${id}-${size}`))}
</section>
${report.findings.length === 0 ? '' : findingsPanel(report, id)}
${observationsPanel(report, id)}
${circumstancesPanel(report, context, id)}`
}

function resultPanel(report: CheckReport, id: string): Html {
  const [cause] = report.findings.filter(({ severity }) => severity !== 'info')
  const look = resultLook(report)
  const needed = valueNeeded(report)
  const wait = waitingTime(report)
  return html`<section class="panel result ${look.tone}" aria-labelledby="${id}-name">
<p class="status">${icon(look)}${capitalize(resultOf(report))}</p>
<h1 id="${id}-name">${shorten(readableName(report.name), 300)}</h1>
${
  cause === undefined
    ? ''
    : html`<p class="cause">${sentence(cause.message)}</p>${comparison(report, cause)}
<h2>What to do</h2><p class="todo">${sentence(cause.fix)}</p>`
}
${needed === null ? valuesFound(report) : expectedRecord(report, needed)}
${wait === undefined ? '' : html`<p class="meta">${`${wait}.`}</p>`}
</section>`
}

function resultLook(report: CheckReport): Look {
  if (hasLooked(report)) return { tone: 'neutral', shape: 'info' }
  if (report.verdict === 'ready' && !isBlocked(report)) return { tone: 'good', shape: 'check' }
  if (report.ready || report.verdict === 'wait') return { tone: 'warning', shape: 'exclamation' }
  return { tone: 'bad', shape: report.verdict === 'unknown' ? 'question' : 'cross' }
}

/** The record that has to be in DNS, field by field as providers ask for it. */
function expectedRecord({ name, zone, ready }: CheckReport, expected: string): Html {
  const host = zone === null ? undefined : relativeName(name, zone)
  return html`<h2>${ready ? 'The record' : 'The record that has to be there'}</h2>
<dl class="record">
${zone === null ? '' : html`<dt>Zone</dt><dd><code>${zone}</code></dd>`}
<dt>${host === undefined ? 'Name' : 'Host'}</dt><dd><code>${host ?? name}</code>${host === undefined || host === '@' ? '' : html` (${name})`}</dd>
<dt>Type</dt><dd><code>TXT</code></dd>
<dt>Value</dt><dd><code>${expected}</code></dd>
</dl>`
}

function valuesFound(report: CheckReport): Html {
  const values = valuesSeen(report)
  return html`<h2>${serversDiffer(report) ? 'TXT records (not all name servers have these)' : 'TXT records'}</h2>
<ul>${values.slice(0, MAX_VALUES).map((value) => html`<li><code>${shown(value)}</code></li>`)}${values.length === 0 ? html`<li>none seen</li>` : ''}${moreThan(values.length)}</ul>`
}

/** The expected value above the one found, with the difference marked. */
function comparison(report: CheckReport, finding: Finding): Html {
  const [found, ...others] = finding.seen ?? []
  const expected = finding.expected ?? report.expected
  if (expected === null || found === undefined || others.length > 0) return html``
  const pieces = comparedPieces(expected, found)
  const isMissing = pieces.seen.every(({ text, differs }) => !differs || text === '')
  const marked = pieces.seen.map((piece) =>
    piece.differs &&
    piece.text === '' &&
    isMissing &&
    pieces.expected.some(({ text, differs }) => differs && text !== '')
      ? html`<mark>[missing here]</mark>`
      : markedPiece(piece, 'del'),
  )
  // What both have in common stands at the same place, unless that is far to the right.
  const [before] = pieces.seen
  const indent =
    before?.differs === true && before.text.length <= 20 ? ' '.repeat(readablePiece(before).length) : ''
  return html`<dl class="compare"><dt>Expected</dt><dd>${indent}${pieces.expected.map((piece) => markedPiece(piece, 'ins'))}</dd><dt>Found</dt><dd>${marked}</dd></dl>`
}

function markedPiece(piece: Piece, as: 'ins' | 'del'): Html {
  const text = shown(readablePiece({ ...piece, text: shorten(piece.text, LONGEST_SHOWN) }))
  if (piece.text === '') return html``
  if (!piece.differs) return html`${text}`
  return as === 'ins' ? html`<ins>${text}</ins>` : html`<del>${text}</del>`
}

function findingsPanel(report: CheckReport, id: string): Html {
  return html`<section class="panel" aria-labelledby="${id}-findings"><h2 id="${id}-findings">Findings</h2>
<ol class="findings">${report.findings.map((finding, index) => findingItem(report, finding, index > 0))}</ol>
</section>`
}

function findingItem(report: CheckReport, finding: Finding, withComparison: boolean): Html {
  const look = SEVERITY_LOOKS[finding.severity]
  return html`<li class="${look.tone}"><h3 class="status">${icon(look)}<span>${capitalize(finding.severity)}</span></h3>
<div class="body"><p>${sentence(finding.message)}</p>${withComparison ? comparison(report, finding) : ''}<p><strong>Fix:</strong> ${sentence(finding.fix)}</p>
<p class="meta">Code: <code>${finding.code}</code></p>${evidence(finding, report.expected)}</div></li>`
}

function evidence(finding: Finding, expected: string | null): Html {
  const entries = Object.entries(findingJson(finding, expected).evidence)
  if (entries.length === 0) return html``
  return html`<h4 class="meta">Evidence</h4><dl class="evidence">${entries.map(
    ([key, value]) =>
      html`<dt>${key.replaceAll('_', ' ')}</dt><dd><code>${shown(typeof value === 'string' ? value : stringifyJson(value))}</code></dd>`,
  )}</dl>`
}

function observationsPanel(report: CheckReport, id: string): Html {
  const { path = [], nameservers, resolvers } = report
  const tables = [
    path.length === 0
      ? undefined
      : table(
          `${id}-path`,
          'Delegation',
          ['Zone', 'Name servers', 'According to'],
          path.map(({ zone, hosts, givenBy }, index) => [
            html`<code>${zone}</code>`,
            hosts.map((host, at) => html`${at === 0 ? '' : html`<br>`}<code>${host}</code>`),
            html`${index === 0 ? 'the resolver ' : ''}<code>${givenBy.host === undefined ? formatDnsAddress(givenBy) : `${givenBy.host} (${formatDnsAddress(givenBy)})`}</code>`,
          ]),
        ),
    nameservers.length === 0
      ? undefined
      : table(
          `${id}-servers`,
          'Authoritative name servers',
          ['Name server', 'Address', 'Answer', 'Authoritative', 'TXT values', ...NUMBERS],
          nameservers.map((row) => [
            html`<code>${row.host}</code>`,
            row.address === null ? DASH : html`<code>${row.address}</code>`,
            answer(row, report),
            row.authoritative ? 'yes' : 'no',
            values(row.values, report),
            row.ttl ?? DASH,
            row.serial ?? DASH,
            row.ms ?? DASH,
          ]),
        ),
    resolvers.length === 0
      ? undefined
      : table(
          `${id}-resolvers`,
          'Recursive resolvers',
          ['Resolver', 'Answer', 'TXT values', 'TTL', 'ms'],
          resolvers.map((row) => [
            html`<code>${row.address}</code>`,
            answer(row, report),
            values(row.values, report),
            row.ttl ?? DASH,
            row.ms ?? DASH,
          ]),
        ),
  ].filter((found) => found !== undefined)
  if (tables.length === 0) return html``
  return html`<section class="panel" aria-labelledby="${id}-observations"><h2 id="${id}-observations">Observations</h2>
${tables}
</section>`
}

const NUMBERS = ['TTL', 'Serial', 'ms']

/** A table that scrolls sideways on its own, also with the keyboard. The first cell of a row names it. */
function table(
  id: string,
  caption: string,
  titles: readonly string[],
  rows: readonly (readonly Inserted[])[],
): Html {
  const classOf = (index: number, cell: Inserted) =>
    titles[index] === 'TXT values'
      ? 'values'
      : titles[index] === 'ms' || NUMBERS.includes(titles[index] ?? '') || typeof cell === 'number'
        ? 'number'
        : 'text'
  return html`<div class="scroll" role="region" aria-labelledby="${id}" tabindex="0"><table><caption id="${id}">${caption}</caption>
<thead><tr>${titles.map((title, index) => html`<th scope="col" class="${classOf(index, title)}">${title}</th>`)}</tr></thead>
<tbody>${rows.map(
    (
      cells,
    ) => html`<tr>${cells.map((cell, index) => (index === 0 ? html`<th scope="row">${cell}</th>` : html`<td class="${classOf(index, cell)}">${cell}</td>`))}</tr>
`,
  )}</tbody></table></div>
`
}

function answer({ outcome }: NameserverReport | ResolverReport, report: CheckReport): Html {
  return html`<span class="answer ${outcomeLook(outcome, report).tone}">${outcomeLabel(outcome, report)}</span>`
}

function values(list: readonly string[], report: CheckReport): Inserted {
  if (list.length === 0) return DASH
  return html`<ul>${list
    .slice(0, MAX_VALUES)
    .map(
      (value) =>
        html`<li><code>${piecesOf(value, report).map((piece) => markedPiece(piece, 'del'))}</code></li>`,
    )}${moreThan(list.length)}</ul>`
}

const moreThan = (count: number): Html =>
  count > MAX_VALUES ? html`<li>and ${count - MAX_VALUES} more</li>` : html``

function circumstancesPanel(report: CheckReport, context: HtmlContext, id: string): Html {
  return html`<section class="panel" aria-labelledby="${id}-made"><h2 id="${id}-made">How this was checked</h2>
<dl class="facts"><dt>Time</dt><dd>${formatTime(context.at)}</dd>
<dt>Program</dt><dd>mailclaim ${context.version}</dd>
<dt>Search started at</dt><dd>${context.resolvers.length === 0 ? 'no resolver' : context.resolvers.map((address, index) => html`${index === 0 ? '' : ', '}<code>${address}</code>`)}</dd>
<dt>Name</dt><dd><code>${shown(report.name)}</code></dd>
<dt>Zone</dt><dd>${report.zone === null ? 'not found' : html`<code>${report.zone}</code>`}</dd>
<dt>To repeat</dt><dd class="command"><code>${context.command}</code></dd></dl>
</section>`
}

/** A sentence with its values set apart. */
function sentence(text: Text): Html[] {
  return [...partsOf(text), fullStopOf(text)].map((part, index) =>
    typeof part === 'string'
      ? html`${index === 0 ? capitalize(part) : part}`
      : html`<code>${shown(part.value)}</code>`,
  )
}

const shown = (value: string) =>
  value === ''
    ? '(empty)'
    : value.length > LONGEST_SHOWN
      ? `${shorten(value, LONGEST_SHOWN)} (${value.length} characters)`
      : value

function icon(look: Look): Html {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true">${symbol(10, 10, look)}</svg>`
}
