import { html } from '../../terminal/html.ts'
import { readableName } from '../diagnosis/render.ts'
import type { CheckReport } from '../diagnosis/report.ts'
import { formatDnsAddress } from '../wire/address.ts'
import { type Block, drawStack, stackHeight } from './cards.ts'
import { fitting, linesOf, symbol, textAt } from './drawing.ts'
import { SEVERITY_LOOKS } from './looks.ts'

/** Of a longer way, the last ones. */
const MAX_ZONES = 8

/** Where the line runs down, and where what hangs on it begins. */
export const TRUNK = 16
export const INDENT = 44

/** A stop on the way from the root. */
interface Stop {
  readonly title: string
  readonly text: string
  readonly state: 'passed' | 'not-asked' | 'failed'
}

/** The root, the zones on the way, and the zone that holds the name or where the search ended. */
function stopsOf(report: CheckReport, isBroken: boolean): Stop[] {
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
  const last = stops.at(-1)
  if (isBroken && last !== undefined) stops.splice(-1, 1, { ...last, state: 'failed' })
  return [root, ...stops]
}

/**
 * The way from the root to the zone.
 *
 * @param isBroken whether a problem lies on it
 */
export function pathBlock(
  report: CheckReport,
  width: number,
  callouts: readonly Block[],
  isBroken: boolean,
): Block {
  const pixels = width - INDENT - 4
  const stops = stopsOf(report, isBroken).map((stop) => ({
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
