import type { Context } from '../../context.ts'
import type { Settings } from '../../settings/settings.ts'
import { colorLevel, createPalette, type Palette } from '../../terminal/color.ts'
import { formatDuration } from '../../terminal/duration.ts'
import { truncate, widthOf, wrap } from '../../terminal/measure.ts'
import { renderBar } from '../../terminal/progress-bar.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { startSpinner } from '../../terminal/spinner.ts'
import {
  adviceLine,
  causeLine,
  countsText,
  domainsOf,
  formatCount,
  progressText,
  wrapCounts,
} from './summary.ts'
import type { Tally } from './tally.ts'

/** A summary that is redrawn in place on stderr while the run goes on. */
export interface LiveView {
  /** Writes something that stays above it. */
  above<T>(write: () => Promise<T>): Promise<T>
  end(): void
}

export interface LiveRun {
  readonly total: number | undefined
  readonly waits: boolean
  /** What requests to the service wait for; undefined if they don't. */
  readonly heldUp?: () => string | undefined
}

/** With two lines of each fix, all fits a terminal of 24 lines. */
const MAX_CAUSES = 5

/**
 * Starts a live view.
 *
 * @param run how many domains there are, if that is known, and whether they mostly wait
 */
export async function startLiveView(
  tally: Tally,
  run: LiveRun,
  context: Pick<Context, 'stderr' | 'environment' | 'clock'>,
  settings: Pick<Settings, 'colorOption'>,
): Promise<LiveView> {
  const { stderr, clock, environment } = context
  const level = colorLevel(environment, settings.colorOption, stderr)
  const palette = await createPalette(level)
  const started = clock.monotonic()
  const draw = () => {
    const columns = Math.max(20, (stderr.columns ?? 80) - 3)
    return liveLines(tally, run, (clock.monotonic() - started) / 1000, columns, palette).join('\n')
  }
  const { spinner } = await startSpinner(stderr, {
    text: '',
    color: level === 0 ? false : 'cyan',
    suffixText: draw,
  })
  return {
    async above(write) {
      spinner.clear()
      try {
        return await write()
      } finally {
        spinner.render()
      }
    },
    end: () => void spinner.stop(),
  }
}

/** @param seconds since the start */
export function liveLines(
  tally: Tally,
  { total, waits, heldUp }: LiveRun,
  seconds: number,
  columns: number,
  palette: Palette,
): string[] {
  const handled = tally.done + tally.problems + tally.repeated
  const isKnown = total !== undefined && total > 0
  const label = isKnown ? `${formatCount(handled)} of ${domainsOf(total)}` : domainsOf(handled)
  // How long others take to add a record can't be foreseen.
  const left = isKnown && !waits && handled > 0 ? ((total - handled) * seconds) / handled : 0
  const details = left >= 2 ? [`${formatDuration(left, 'short')} left`] : []
  const fit = (text: string, width = columns) => truncate(sanitizeLine(text), width)
  const lines = [renderBar(label, isKnown ? handled / total : undefined, details, columns)]
  const indent = (text: string, width: number) => `${' '.repeat(width)}${fit(text, columns - width)}`
  lines.push(...countLines(tally, columns - 2).map((line) => indent(line, 2)))
  const held = heldUp?.()
  if (held !== undefined)
    lines.push(...wrap(`Waiting for the service: ${held}`, columns - 2).map((line) => indent(line, 2)))
  const causes = tally.causes().filter(({ needsPerson }) => needsPerson)
  const { needing } = tally
  if (needing === 0) return lines
  lines.push(
    palette.strong(indent(`${formatCount(needing)} ${needing === 1 ? 'needs' : 'need'} a person:`, 2)),
  )
  for (const cause of causes.slice(0, MAX_CAUSES)) {
    lines.push(indent(causeLine(cause), 4))
    const [first = '', ...rest] = wrap(sanitizeLine(adviceLine(cause)), columns - 6)
    lines.push(...[first, rest.join(' ')].filter(Boolean).map((line) => palette.faint(indent(line, 6))))
  }
  const rest = causes.length - MAX_CAUSES
  if (rest > 0) lines.push(palette.faint(indent(`and ${rest} more ${rest === 1 ? 'cause' : 'causes'}`, 4)))
  for (const { domain, title } of tally.needy) lines.push(palette.faint(indent(`${domain}: ${title}`, 4)))
  return lines
}

/** What is done and what is in progress: on one line, or else each on its own. */
function countLines(tally: Tally, width: number): string[] {
  const line = [countsText(tally, '   '), progressText(tally)].filter(Boolean).join('   ')
  if (widthOf(line) <= width) return line === '' ? [] : [line]
  return [countsText(tally), progressText(tally) ?? '']
    .filter((text) => text !== '')
    .flatMap((text) => wrapCounts(text, width))
}
