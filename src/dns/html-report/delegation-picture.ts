import { type Html, html } from '../../terminal/html.ts'
import type { Finding, FindingCode } from '../diagnosis/finding.ts'
import { outcomeLabel, valueNeeded } from '../diagnosis/labels.ts'
import { readableName } from '../diagnosis/render.ts'
import type { CheckReport, NameserverReport, ResolverReport } from '../diagnosis/report.ts'
import type { Outcome } from '../observation/observations.ts'
import { answerCard, type Block, callout, card, drawStack, GAP, plainCard, stackHeight } from './cards.ts'
import { fitting, textAt, valueLine } from './drawing.ts'
import { expectedPieces, hasAnswered } from './looks.ts'
import { INDENT, pathBlock, TRUNK } from './path-block.ts'

/** In pixels: beside each other on a screen or on paper, below each other on a phone. */
const WIDTHS = { wide: 920, narrow: 332 } as const
type PictureSize = keyof typeof WIDTHS

/** The rest is in the tables. */
const MAX_CARDS = 10
const MAX_CALLOUTS = 3

/** Where in the picture a finding belongs; at the name servers by default. */
const PLACES: Partial<Record<FindingCode, 'path' | 'resolvers'>> = {
  domain_not_found: 'path',
  invalid_name: 'path',
  claim_ended: 'path',
  claim_blocked: 'path',
  claim_not_asked: 'path',
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
  const isBroken = problems.some(
    (finding) => finding.severity === 'error' && placeOf(finding, report) === 'path',
  )
  const path = pathBlock(report, serversWidth, calloutsAt('path', serversWidth - INDENT), isBroken)
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
  if (valueNeeded(report) === null) return { height: 0, draw: () => html`` }
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
