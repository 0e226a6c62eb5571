import { type Html, html } from '../../terminal/html.ts'
import type { Piece } from '../diagnosis/characters.ts'
import type { Finding } from '../diagnosis/finding.ts'
import { outcomeLabel } from '../diagnosis/labels.ts'
import type { CheckReport, NameserverReport, ResolverReport } from '../diagnosis/report.ts'
import { capitalize, plainText } from '../diagnosis/text.ts'
import { fitting, type Look, linesOf, pixelsOf, symbol, textAt, valueLine } from './drawing.ts'
import { hasAnswered, isRelated, outcomeLook, piecesOf, SEVERITY_LOOKS } from './looks.ts'

/** Values that a card shows; the rest is in the tables. */
const MAX_VALUES = 2

/** Between two blocks. */
export const GAP = 10

/** A part of the picture, drawn from its upper left corner. */
export interface Block {
  readonly height: number
  readonly draw: (x: number, y: number) => Html
}

/** What a server or a resolver answered. @param notes more about it, beside the TTL */
export function answerCard(
  who: string,
  row: NameserverReport | ResolverReport,
  report: CheckReport,
  width: number,
  notes: readonly string[],
): Block {
  const facts = [
    ...notes,
    ...(row.ttl === null ? [] : [`TTL ${row.ttl}`]),
    ...(row.ms === null || !hasAnswered(row.outcome) ? [] : [`${row.ms} ms`]),
  ]
  const [related, others] = [true, false].map((wanted) =>
    row.values.filter((value) => isRelated(value, report) === wanted),
  )
  const values = [...(related ?? []), ...(others ?? [])].slice(0, MAX_VALUES).map((value) => ({
    pieces: piecesOf(value, report),
    isRelated: isRelated(value, report),
  }))
  return card(width, {
    ...outcomeLook(row.outcome, report),
    title: who,
    label: outcomeLabel(row.outcome, report),
    facts,
    values,
    more: row.values.length - values.length,
  })
}

/** What a card says. */
interface CardContent extends Look {
  readonly title: string
  readonly label: string
  readonly facts?: readonly string[]
  readonly values?: readonly { readonly pieces: readonly Piece[]; readonly isRelated: boolean }[]
  /** How many values aren't shown. */
  readonly more?: number
}

/** A box with a symbol, who answered, what, and the values. */
export function card(
  width: number,
  { title, label, tone, shape, facts = [], values = [], more = 0 }: CardContent,
): Block {
  const pixels = width - 44 - 12
  const meta = facts.join(' · ')
  const labels = linesOf(label, pixels, 13, 'strong', 2)
  const isOneLine =
    labels.length === 1 && pixelsOf(label, 13, 'strong') + pixelsOf(` · ${meta}`, 12.5, 'sans') <= pixels
  const lines = labels.length + (isOneLine || meta === '' ? 0 : 1)
  const height = 30 + lines * 18 + values.length * 19 + (more > 0 ? 17 : 0) + 8
  return {
    height,
    draw: (x, y) => {
      const valuesY = y + 42 + lines * 18
      return html`<g><rect class="card ${tone}" x="${x + 0.5}" y="${y + 0.5}" width="${width - 1}" height="${height - 1}" rx="8"/>
${symbol(x + 22, y + 21, { tone, shape })}
${textAt(x + 44, y + 24, 'host', fitting(title, pixels, 13, 'mono'))}
${labels.map((line, index) =>
  textAt(x + 44, y + 43 + index * 18, `outcome ${tone}`, [
    line,
    isOneLine && meta !== '' ? html`<tspan class="note"> · ${meta}</tspan>` : '',
  ]),
)}
${isOneLine || meta === '' ? '' : textAt(x + 44, y + 25 + lines * 18, 'note', fitting(meta, pixels, 12.5, 'sans'))}
${values.map(({ pieces, isRelated }, index) => textAt(x + 44, valuesY + index * 19, isRelated ? 'value' : 'value unrelated', valueLine(pieces, pixels, 13)))}
${more > 0 ? textAt(x + 44, valuesY + values.length * 19 - 1, 'note', `and ${more} more value${more === 1 ? '' : 's'}`) : ''}</g>`
    },
  }
}

/** A note in a dashed box. */
export function plainCard(text: string, width: number): Block {
  const lines = linesOf(text, width - 28, 12.5, 'sans', 4)
  const height = 20 + lines.length * 17
  return {
    height,
    draw: (x, y) =>
      html`<g><rect class="aside" x="${x}.5" y="${y + 0.5}" width="${width - 1}" height="${height - 1}" rx="8"/>${lines.map((line, index) => textAt(x + 14, y + 22 + index * 17, 'note', line))}</g>`,
  }
}

/** A problem, where it is. */
export function callout(finding: Finding, width: number): Block {
  const look = SEVERITY_LOOKS[finding.severity]
  const lines = linesOf(capitalize(plainText(finding.message)), width - 54, 13.5, 'sans', 12)
  const height = 22 + lines.length * 18
  return {
    height,
    draw: (
      x,
      y,
    ) => html`<g><rect class="callout ${look.tone}" x="${x}" y="${y}" width="${width}" height="${height}" rx="8"/>
${symbol(x + 22, y + 20, look)}
${lines.map((line, index) => textAt(x + 44, y + 25 + index * 18, 'message', line))}</g>`,
  }
}

export const stackHeight = (blocks: readonly Block[]) =>
  blocks.reduce((sum, { height }) => sum + height + GAP, 0)

export function drawStack(blocks: readonly Block[], x: number, y: number): Html[] {
  let at = y
  return blocks.map((block) => {
    const drawn = block.draw(x, at)
    at += block.height + GAP
    return drawn
  })
}
