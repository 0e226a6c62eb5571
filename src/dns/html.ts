import { createHash } from 'node:crypto'
import { type Html, html, type InsertedValue, raw } from '../terminal/html.ts'
import { stringifyJson } from '../terminal/sanitize.ts'
import { formatUtcTime } from '../terminal/time.ts'
import type { CheckReport, ReportMetadata } from './report.ts'
import { HTML_STYLE_SHEET } from './style.ts'
import { type DiffPiece, diffValues, escapeDiffPiece } from './value.ts'
import { type AnswerView, type FindingView, type ReportView, TONE_SYMBOLS, toReportView } from './view.ts'
import { formatHostField } from './wire/name.ts'
import { capitalize, type Evidence, type RichText, shorten } from './words.ts'

/** Maximum number of characters shown of one text, such as a TXT value; longer texts end in an ellipsis. */
const MAX_SHOWN_LENGTH = 1000

/**
 * Renders a report as one HTML file that loads and runs nothing: its Content-Security-Policy allows only its style sheet, by hash.
 */
export function renderHtmlReport(report: CheckReport, metadata: ReportMetadata): string {
  const view = toReportView(report)
  const name = shorten(view.title)
  const hash = createHash('sha256').update(HTML_STYLE_SHEET).digest('base64')
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${name}: ${view.result} · mailclaim</title>
<style>${raw(HTML_STYLE_SHEET)}</style>
</head>
<body>
<header><p><strong>mailclaim</strong> · DNS check</p><p><time datetime="${new Date(metadata.at).toISOString()}">${formatUtcTime(metadata.at)}</time></p></header>
<main>
${summary(view, name)}
${findings(view)}
${path(view)}
</main>
${footer(metadata)}
</body>
</html>
`.toString()
}

/** Renders the first panel of the report, with the result, and the expected record or the TXT values found. */
function summary(view: ReportView, name: string): Html {
  const { tone, result, expected, claim, wait } = view
  return html`<section class="panel ${tone}" aria-labelledby="name">
${status(tone, capitalize(result))}
<h1 id="name">${name}</h1>
<dl>${expected === null ? valuesFound(view) : record(view, expected)}
${claim === null ? '' : html`<dt>Claim</dt><dd>${show(claim.status)}</dd>`}
${wait === undefined ? '' : html`<dt>Waiting</dt><dd>${wait}</dd>`}</dl>
</section>`
}

/** Renders the expected record in the terms of DNS providers' forms, such as the host within the zone. */
function record({ name, zone }: ReportView, expected: string): Html {
  const place =
    zone === null
      ? html`<dt>Name</dt><dd><code>${show(name)}</code></dd>`
      : html`<dt>Zone</dt><dd><code>${zone}</code></dd><dt>Host</dt><dd><code>${formatHostField(name, zone)}</code></dd>`
  return html`${place}<dt>Type</dt><dd>TXT</dd><dt>Value</dt><dd><code>${show(expected)}</code></dd>`
}

/** Renders the zone and the TXT values, for a report without an expected value. */
function valuesFound({ zone, values }: ReportView): Html {
  return html`<dt>Zone</dt><dd>${zone === null ? 'not found' : html`<code>${zone}</code>`}</dd>
<dt>TXT records</dt><dd>${values.length === 0 ? 'none seen' : list(values)}</dd>`
}

function findings({ findings }: ReportView): Html {
  if (findings.length === 0) return html``
  return html`<section class="panel" aria-labelledby="findings"><h2 id="findings">Findings</h2>
<ol class="findings">${findings.map((finding) => findingItem(finding))}</ol>
</section>`
}

function findingItem({ code, severity, tone, message, fix, evidence }: FindingView): Html {
  return html`<li class="${tone}"><h3>${status(tone, capitalize(severity))}</h3>
<p>${phrase(message)}</p>${comparison(evidence)}
<p><strong>Fix:</strong> ${phrase(fix)}</p>
<details><summary>Evidence: <code>${code}</code></summary><dl>${Object.entries(evidence).map(
    ([key, fact]) =>
      html`<dt>${key.replaceAll('_', ' ')}</dt><dd><code>${show(typeof fact === 'string' ? fact : stringifyJson(fact))}</code></dd>`,
  )}</dl></details></li>
`
}

/** Renders a finding's expected value above the value found, with the difference marked; nothing unless each is one value. */
function comparison({ expected, seen }: Evidence): Html {
  if (typeof expected !== 'string' || typeof seen !== 'string') return html``
  const pieces = diffValues(expected, seen)
  return html`<dl class="compare"><dt>Expected</dt><dd>${pieces.expected.map((piece) => markPiece(piece, 'ins'))}</dd><dt>Found</dt><dd>${pieces.seen.map((piece) => markPiece(piece, 'del'))}</dd></dl>`
}

/** Renders a piece of a compared value. If it differs, `as` is its element: `ins` in the expected value, `del` in the one found. */
function markPiece(piece: DiffPiece, as: 'ins' | 'del'): Html {
  const text = escapeDiffPiece({ ...piece, text: shorten(piece.text, MAX_SHOWN_LENGTH) })
  if (piece.text === '' || !piece.differs) return html`${text}`
  return as === 'ins' ? html`<ins>${text}</ins>` : html`<del>${text}</del>`
}

/**
 * Renders the section "The way to the record": the zones from the top down, the answers of the name servers, then those of the
 * resolvers.
 */
function path({ path, nameservers, resolvers, zone, provider }: ReportView): Html {
  const step = (heading: InsertedValue, content: InsertedValue) => html`<li><h3>${heading}</h3>${content}</li>
`
  const cards = (answers: readonly AnswerView[]) => html`<ul class="cards">${answers.map(card)}</ul>`
  const zoneStep = (name: string, content: InsertedValue) => step(html`Zone <code>${name}</code>`, content)
  const above = path.filter((one) => one.zone !== zone)
  const steps = [
    ...above.map((one) => zoneStep(one.zone, html`<p>${names([...one.hosts.keys()])}</p>`)),
    ...(zone === null
      ? []
      : [zoneStep(zone, [provider === null ? '' : html`<p>Hosted by ${provider}</p>`, cards(nameservers)])]),
    ...(resolvers.length === 0 ? [] : [step('Recursive resolvers', cards(resolvers))]),
  ]
  if (steps.length === 0) return html``
  return html`<section class="panel" aria-labelledby="path"><h2 id="path">The way to the record</h2>
<ol class="path">${steps}</ol>
</section>`
}

const names = (hosts: readonly string[]): Html[] =>
  hosts.map((host, index) => html`${index === 0 ? '' : ', '}<code>${show(host)}</code>`)

/** Renders the answer of one name server or resolver. */
function card({ host, address, label, tone, values, ttl, serial, ms }: AnswerView): Html {
  const [title = '', meta] = [host, address].filter((one) => one !== null)
  const facts = [
    ...(ttl === null ? [] : [`TTL ${ttl}`]),
    ...(serial === null ? [] : [`serial ${serial}`]),
    ...(ms === null ? [] : [`${ms} ms`]),
  ]
  return html`<li class="${tone}">${status(tone, label)}
<p><code>${show(title)}</code>${meta === undefined ? '' : html` <code class="meta">${meta}</code>`}</p>
${values.length === 0 ? '' : list(values)}${facts.length === 0 ? '' : html`<p class="meta">${facts.join(' · ')}</p>`}</li>
`
}

const list = (values: readonly string[]): Html =>
  html`<ul class="values">${values.map((value) => html`<li><code>${show(value)}</code></li>`)}</ul>`

/** Renders the footer: mailclaim's version, the configured resolvers, and the command that repeats the check. */
function footer({ resolvers, version, command }: ReportMetadata): Html {
  const configured = resolvers.length === 0 ? 'none' : names(resolvers)
  return html`<footer><p>Made by mailclaim ${version}; configured resolvers: ${configured}. To repeat: <code>${show(command)}</code>. This file loads nothing and runs nothing.</p></footer>`
}

/** Renders a label after the symbol of its tone (good, bad, warning, faint). */
const status = (tone: ReportView['tone'], label: string): Html =>
  html`<span class="status"><span class="icon" aria-hidden="true">${TONE_SYMBOLS[tone]}</span> ${label}</span>`

/** Renders the message or the fix of a finding, with its facts in `code` elements. */
function phrase(text: RichText): InsertedValue[] {
  return text.map((part) => (typeof part === 'string' ? part : html`<code>${show(part.value)}</code>`))
}

/** Returns a text for display: shortened to `MAX_SHOWN_LENGTH`, or `(empty)`. */
const show = (value: string): string => (value === '' ? '(empty)' : shorten(value, MAX_SHOWN_LENGTH))
