import { type Html, html } from '../../terminal/html.ts'
import { comparedPieces, type Piece } from '../diagnosis/characters.ts'
import type { Finding, FindingCode } from '../diagnosis/finding.ts'
import { outcomeLabel } from '../diagnosis/labels.ts'
import { readableName } from '../diagnosis/render.ts'
import type { CheckReport, NameserverReport, ResolverReport } from '../diagnosis/report.ts'
import { capitalize, plainText } from '../diagnosis/text.ts'
import { isDnsData, type Outcome } from '../observation/observations.ts'
import { formatDnsAddress } from '../wire/address.ts'
import { fitting, type Look, linesOf, pixelsOf, symbol, textAt, valueLine } from './drawing.ts'

/** In pixels: beside each other on a screen or on paper, below each other on a phone. */
const WIDTHS = { wide: 920, narrow: 332 } as const
export type PictureSize = keyof typeof WIDTHS

/** The rest is in the tables. */
const MAX_CARDS = 10
const MAX_VALUES = 2
const MAX_CALLOUTS = 3
const MAX_ZONES = 8

const TRUNK = 16
const INDENT = 44
const GAP = 10

/** Where in the picture a finding belongs; at the name servers by default. */
const PLACES: Partial<Record<FindingCode, 'path' | 'resolvers'>> = {
  domain_not_found: 'path',
  invalid_name: 'path',
  claim_ended: 'path',
  dnssec_bogus: 'path',
  parent_child_mismatch: 'path',
  zone_not_delegated: 'path',
  no_nameservers: 'path',
  delegation_not_checked: 'path',
  dns_intercepted: 'path',
  resolver_broken: 'resolvers',
  cached_absence: 'resolvers',
  cached_old_value: 'resolvers',
  stale_delegation: 'resolvers',
  split_dns: 'resolvers',
  txt_filtered: 'resolvers',
  not_validated: 'resolvers',
}

const SHAPES = {
  match: 'check',
  mismatch: 'differs',
  absent: 'dash',
  nxdomain: 'dash',
  refused: 'cross',
  servfail: 'cross',
  timeout: 'question',
  unreachable: 'question',
  lame: 'exclamation',
  not_checked: 'info',
} as const satisfies Record<Outcome, string>

/** How an answer looks. Without an expected value, any that says what is there is neutral. */
export function outcomeLook(outcome: Outcome, { expected }: Pick<CheckReport, 'expected'>): Look {
  if (expected === null && outcome === 'mismatch') return { tone: 'neutral', shape: 'check' }
  const isNeutral = outcome === 'not_checked' || (expected === null && isDnsData(outcome))
  return { tone: outcome === 'match' ? 'good' : isNeutral ? 'neutral' : 'bad', shape: SHAPES[outcome] }
}

export const SEVERITY_LOOKS = {
  error: { tone: 'bad', shape: 'cross' },
  warning: { tone: 'warning', shape: 'exclamation' },
  info: { tone: 'neutral', shape: 'info' },
} as const

/** The values that should have been the expected one, by what the findings say. */
const wrongValues = ({ findings }: CheckReport): readonly string[] =>
  findings.flatMap(({ severity, seen }) => (severity !== 'info' && seen?.length === 1 ? seen : []))

/** Whether it is the expected value, or should be. */
function isRelated(value: string, report: CheckReport): boolean {
  const { expected } = report
  return expected === null || value === expected || wrongValues(report).includes(value)
}

/** The value as it was found, marked where it should be different. */
export function piecesOf(value: string, report: CheckReport): readonly Piece[] {
  const { expected } = report
  return expected === null || value === expected || !isRelated(value, report)
    ? [{ text: value, differs: false }]
    : comparedPieces(expected, value).seen
}

/** The expected value, marked where the wrong one differs. */
function expectedPieces(report: CheckReport): readonly Piece[] {
  const { expected } = report
  const [seen] = wrongValues(report)
  if (expected === null) return []
  return seen === undefined ? [{ text: expected, differs: false }] : comparedPieces(expected, seen).expected
}

/** A part of the picture, drawn from its upper left corner. */
interface Block {
  readonly height: number
  readonly draw: (x: number, y: number) => Html
}

/**
 * The way from the root to each name server of the zone, what each of them answered, and the resolvers beside them. The
 * problems are written where they are.
 *
 * @param id unique in the document
 */
export function delegationPicture(report: CheckReport, size: PictureSize, id: string): Html {
  const width = WIDTHS[size]
  const isWide = size === 'wide'
  const serversWidth = isWide ? 560 : width - 1
  const resolversX = isWide ? 604 : 0
  const resolversWidth = width - resolversX - 1
  const problems = report.findings.filter(({ severity }) => severity !== 'info').slice(0, MAX_CALLOUTS)
  const calloutsAt = (place: 'path' | 'servers' | 'resolvers', pixels: number) =>
    problems
      .filter((finding) => placeOf(finding, report) === place)
      .map((finding) => callout(finding, pixels))

  const top = expectation(report, width)
  const path = pathBlock(report, serversWidth, calloutsAt('path', serversWidth - INDENT))
  const servers = serversBlock(report, serversWidth, calloutsAt('servers', serversWidth - INDENT))
  const resolvers = resolversBlock(report, resolversWidth, calloutsAt('resolvers', resolversWidth))
  const pathY = top.height
  const serversY = pathY + path.height
  const resolversY = isWide ? pathY + 6 : serversY + servers.height + 22
  const height = Math.ceil(Math.max(serversY + servers.height, resolversY + resolvers.height) + 2)
  return html`<svg class="picture ${size}" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}-title ${id}-desc">
<title id="${id}-title">${`The delegation of ${readableName(report.name).slice(0, 300)}, and what each server answered`}</title>
<desc id="${id}-desc">${describe(report)}</desc>
${top.draw(0, 0)}
${path.draw(0, pathY)}
${servers.draw(0, serversY)}
${isWide ? html`<path class="divider" d="M582 ${pathY + 4}V${height - 4}"/>` : ''}
${resolvers.draw(resolversX, resolversY)}
</svg>`
}

/** The picture in a sentence or two; the tables have the rest. */
function describe(report: CheckReport): string {
  const zones = (report.path ?? []).map(({ zone }) => zone)
  const say = (who: string, outcome: Outcome) => `${who}: ${outcomeLabel(outcome, report)}`
  const answers = [
    ...report.nameservers.slice(0, MAX_CARDS).map(({ host, outcome }) => say(host, outcome)),
    ...report.resolvers
      .slice(0, MAX_CARDS)
      .map(({ address, outcome }) => say(`resolver ${address}`, outcome)),
  ]
  return `From the root to ${zones.join(', ') || 'no zone'}. ${answers.join('; ') || 'No server answered'}. The tables below have the same as text.`
}

function placeOf({ code }: Finding, report: CheckReport): 'path' | 'servers' | 'resolvers' {
  if (report.nameservers.length === 0 && code !== 'resolver_broken') return 'path'
  return PLACES[code] ?? 'servers'
}

function expectation(report: CheckReport, width: number): Block {
  if (report.expected === null) return { height: 0, draw: () => html`` }
  const pieces = expectedPieces(report)
  return {
    height: 66,
    draw: (
      x,
      y,
    ) => html`<g><rect class="expected" x="${x + 1}" y="${y + 1}" width="${width - 2}" height="46" rx="8"/>
${textAt(x + 14, y + 19, 'label', fitting(`Expected at ${readableName(report.name)}: TXT`, width - 28, 12, 'sans'))}
${textAt(x + 14, y + 38, 'value', valueLine(pieces, width - 28, 13))}</g>`,
  }
}

/** A stop on the way from the root. */
interface Stop {
  readonly title: string
  readonly text: string
  readonly state: 'passed' | 'not-asked' | 'failed'
}

/** The root, the zones on the way, and the zone that holds the name or where the search ended. */
function stopsOf(report: CheckReport): Stop[] {
  const path = report.path ?? []
  const [first] = path
  const [cause] = report.findings
  const denial = `answers that ${readableName(report.name)} doesn't exist`
  const zones = path.filter(({ zone }) => zone !== '.').slice(-MAX_ZONES)
  if (zones.length === 0 && cause?.code === 'domain_not_found')
    return [
      {
        title: 'root',
        text: first === undefined ? `the resolver ${denial}` : `${formatDnsAddress(first.givenBy)} ${denial}`,
        state: 'failed',
      },
    ]
  if (first === undefined) {
    const isLost = cause?.code === 'resolver_broken'
    return [
      {
        title: 'root',
        text: isLost ? 'not reached: no resolver told where to start' : 'nothing was asked',
        state: isLost ? 'failed' : 'not-asked',
      },
    ]
  }
  const resolver = formatDnsAddress(first.givenBy)
  const isGiven = first.zone === '.'
  const root: Stop = {
    title: 'root',
    text: isGiven
      ? `not asked: the search started at the server ${resolver}`
      : `not asked: the resolver ${resolver} knows the name servers of ${first.zone}`,
    state: 'not-asked',
  }
  const stops = zones.map((step, index): Stop => {
    const next = zones[index + 1]
    const many = `${step.hosts.length} name server${step.hosts.length === 1 ? '' : 's'}`
    const isEnd = next === undefined
    const isLost = isEnd && report.zone === null
    const text =
      isLost && cause?.code === 'domain_not_found'
        ? denial
        : isLost
          ? `${many}, without a usable answer`
          : isEnd
            ? many
            : `${next.givenBy.host ?? formatDnsAddress(next.givenBy)} refers to the ${next.hosts.length === 1 ? 'name server' : `${next.hosts.length} name servers`} of ${next.zone}`
    return { title: readableName(step.zone), text, state: isLost ? 'failed' : 'passed' }
  })
  if (report.zone !== null && zones.at(-1)?.zone !== report.zone)
    stops.push({
      title: readableName(report.zone),
      text: isGiven ? `found at ${resolver}` : 'at the same servers, without a delegation between',
      state: 'passed',
    })
  const problem = report.findings.find((finding) => placeOf(finding, report) === 'path')
  const last = stops.at(-1)
  if (problem?.severity === 'error' && last !== undefined) stops.splice(-1, 1, { ...last, state: 'failed' })
  return [root, ...stops]
}

function pathBlock(report: CheckReport, width: number, callouts: readonly Block[]): Block {
  const pixels = width - INDENT - 4
  const stops = stopsOf(report).map((stop) => ({
    ...stop,
    lines: linesOf(stop.text, pixels, 12.5, 'sans', 3),
  }))
  const heights = stops.map(({ lines }) => 26 + lines.length * 17 + 12)
  const below = stackHeight(callouts)
  const height = heights.reduce((sum, one) => sum + one, 0) + below
  const hasServers = report.nameservers.length > 0
  return {
    height,
    draw: (x, y) => {
      let at = y
      const drawn = stops.map(({ title, lines, state }, index) => {
        const start = at
        const own = heights[index] ?? 0
        at += own
        const isLast = index === stops.length - 1
        const next = stops[index + 1]
        const line = isLast
          ? hasServers
            ? html`<path class="line" d="M${x + TRUNK} ${start + 21}V${y + height}"/>`
            : ''
          : html`<path class="line${next?.state === 'failed' && report.zone === null ? ' broken' : ''}" d="M${x + TRUNK} ${start + 21}V${at + 3}"/>`
        return html`${line}${
          state === 'failed'
            ? symbol(x + TRUNK, start + 12, SEVERITY_LOOKS.error)
            : html`<circle class="stop ${state}" cx="${x + TRUNK}" cy="${start + 12}" r="7"/>`
        }${textAt(x + INDENT, start + 17, 'zone', fitting(title, pixels, 14, 'mono'))}${lines.map((text, row) => textAt(x + INDENT, start + 35 + row * 17, 'note', text))}`
      })
      return html`<g>${drawn}${drawStack(callouts, x + INDENT, at)}</g>`
    },
  }
}

/** The servers of the zone, and where else the record was found. */
function serversBlock(report: CheckReport, width: number, callouts: readonly Block[]): Block {
  const cardWidth = width - INDENT
  const { shown, rest } = firstCards(report.nameservers, report)
  const cards = [
    ...shown.map((row) => answerCard(row.host, row, report, cardWidth, [row.address ?? 'no address'])),
    ...(rest === undefined ? [] : [plainCard(rest, cardWidth)]),
  ]
  const elsewhere = elsewhereCards(report, cardWidth)
  return {
    height: stackHeight([...cards, ...elsewhere, ...callouts]),
    draw: (x, y) => {
      let at = y
      const drawn = cards.map((one, index) => {
        const bend = at + 13
        const row = shown[index]
        const isSilent = row !== undefined && !hasAnswered(row.outcome)
        const trunk =
          index === cards.length - 1 ? html`<path class="line" d="M${x + TRUNK} ${y}V${bend}"/>` : ''
        const branch = html`<path class="line${isSilent ? ' broken' : ''}" d="M${x + TRUNK} ${bend}q0 8 8 8H${x + INDENT}"/>`
        const drawnCard = html`${trunk}${branch}${one.draw(x + INDENT, at)}`
        at += one.height + GAP
        return drawnCard
      })
      return html`<g>${drawn}${drawStack([...elsewhere, ...callouts], x + INDENT, at)}</g>`
    },
  }
}

const hasAnswered = (outcome: Outcome) =>
  outcome !== 'timeout' && outcome !== 'unreachable' && outcome !== 'not_checked'

/** The resolvers, or why none was asked for the record. */
function resolversBlock(report: CheckReport, width: number, callouts: readonly Block[]): Block {
  const { shown, rest } = firstCards(report.resolvers, report)
  const cards = [
    ...shown.map((row) => answerCard(row.address, row, report, width, cachedFor(row, report))),
    ...(rest === undefined ? [] : [plainCard(rest, width)]),
    ...(shown.length > 0 ? [] : [plainCard(whyNoResolver(report), width), ...searchReplies(report, width)]),
  ]
  const all = [...cards, ...callouts]
  return {
    height: 30 + stackHeight(all),
    draw: (x, y) => html`<g>${textAt(x, y + 13, 'heading', 'Resolvers')}${drawStack(all, x, y + 26)}</g>`,
  }
}

/** How long the resolver keeps its answer, if a finding tells. */
function cachedFor({ address }: ResolverReport, { findings }: CheckReport): string[] {
  const known = findings.find(
    ({ details: { resolver }, secondsLeft }) => resolver === address && secondsLeft !== undefined,
  )
  return known === undefined ? [] : [`cached for ${known.secondsLeft} s more`]
}

function whyNoResolver({ expected, zone, nameservers }: CheckReport): string {
  if (zone === null) return 'asked only who serves the zone'
  if (expected === null) return 'not asked: no value was expected'
  return nameservers.some(
    ({ outcome }) => outcome === 'absent' || outcome === 'nxdomain' || outcome === 'mismatch',
  )
    ? 'not asked: as long as a name server lacks the record, a resolver would keep that answer'
    : 'not asked: no name server has shown the record'
}

/** What the resolvers said about the way to the zone, if that is why it wasn't found. */
function searchReplies({ findings }: CheckReport, width: number): Block[] {
  const { resolvers, replies } = findings[0]?.details ?? {}
  if (!Array.isArray(resolvers) || !Array.isArray(replies)) return []
  return resolvers.slice(0, MAX_CARDS).map((resolver: string) => {
    const reply = replies.find((one) => one.resolver === resolver)
    const isSilent = reply === undefined || reply.answer === 'timeout'
    return card(width, {
      tone: 'bad',
      shape: isSilent ? 'question' : 'cross',
      title: resolver,
      label: isSilent ? 'no answer' : reply.answer,
      facts: reply === undefined ? [] : [`to ${reply.question}`],
    })
  })
}

/** Those that don't have the record come first if not all can be shown. */
function firstCards<Row extends NameserverReport | ResolverReport>(
  rows: readonly Row[],
  report: CheckReport,
) {
  if (rows.length <= MAX_CARDS) return { shown: rows, rest: undefined }
  const shown = [
    ...rows.filter(({ outcome }) => outcome !== 'match'),
    ...rows.filter(({ outcome }) => outcome === 'match'),
  ].slice(0, MAX_CARDS - 1)
  const rest = rows.filter((row) => !shown.includes(row))
  const labels = new Map<string, number>()
  for (const { outcome } of rest) {
    const label = outcomeLabel(outcome, report)
    labels.set(label, (labels.get(label) ?? 0) + 1)
  }
  return {
    shown,
    rest: `and ${rest.length} more: ${[...labels].map(([label, count]) => `${count} × ${label}`).join(', ')}`,
  }
}

function answerCard(
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
function card(
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
function plainCard(text: string, width: number): Block {
  const lines = linesOf(text, width - 28, 12.5, 'sans', 4)
  const height = 20 + lines.length * 17
  return {
    height,
    draw: (x, y) =>
      html`<g><rect class="aside" x="${x}.5" y="${y + 0.5}" width="${width - 1}" height="${height - 1}" rx="8"/>${lines.map((line, index) => textAt(x + 14, y + 22 + index * 17, 'note', line))}</g>`,
  }
}

/** Another name that matters: where the record was found instead, or what the name is an alias for. */
function elsewhereCards({ findings }: CheckReport, width: number): Block[] {
  const { found_at: foundAt, chain, target: only } = findings[0]?.details ?? {}
  const target = Array.isArray(chain) ? chain.at(-1) : only
  const look = { tone: 'warning', shape: 'exclamation' } as const
  const other = (title: unknown, label: string) =>
    typeof title === 'string' ? [card(width, { ...look, title: readableName(title), label })] : []
  return [
    ...other(foundAt, 'the record is at this name instead'),
    ...other(target, 'the name is an alias (CNAME) for this'),
  ]
}

/** A problem, where it is. */
function callout(finding: Finding, width: number): Block {
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

const stackHeight = (blocks: readonly Block[]) => blocks.reduce((sum, { height }) => sum + height + GAP, 0)

function drawStack(blocks: readonly Block[], x: number, y: number): Html[] {
  let at = y
  return blocks.map((block) => {
    const drawn = block.draw(x, at)
    at += block.height + GAP
    return drawn
  })
}
