import type { Context } from '../context.ts'
import type { Palette } from './color.ts'
import { truncate, widthOf, wrap } from './measure.ts'
import { canAnimate } from './progress.ts'
import { sanitizeLine } from './sanitize.ts'

export interface ChecklistItem {
  readonly key: string
  readonly title: string
}

/** A list of steps that are ticked off one after the other. */
export interface Checklist {
  /** The step is done; the next one is under way. */
  tick(key: string, detail: string): Promise<void>
  /** What is being waited for, below the list; replaces what stood there. */
  waiting(lines: readonly string[]): Promise<void>
  /** Lines that stay above the list, whole, so that they can be copied. */
  say(...lines: string[]): Promise<void>
  /** Leaves the list as it stands and gives the cursor back. Safe to call twice. */
  end(): Promise<void>
}

const HIDE_CURSOR = '\u001b[?25l'
const SHOW_CURSOR = '\u001b[?25h'
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 120

/**
 * A checklist on stderr. On a terminal it is redrawn in place, each line cut at the window's edge so that no redraw
 * leaves debris; elsewhere, and where the terminal cannot move its cursor, it is plain lines, each said once.
 */
export function createChecklist(
  items: readonly ChecklistItem[],
  context: Pick<Context, 'stderr' | 'environment'>,
  palette: Palette,
): Checklist {
  return canAnimate(context) ? liveChecklist(items, context, palette) : plainChecklist(items, context)
}

function plainChecklist(items: readonly ChecklistItem[], { stderr }: Pick<Context, 'stderr'>): Checklist {
  let last = ''
  const line = async (text: string) => {
    if (text !== last) await stderr.write(`${text}\n`)
    last = text
  }
  return {
    tick: (key, detail) =>
      line(`${items.find((item) => item.key === key)?.title ?? key}: ${sanitizeLine(detail)}`),
    async waiting(lines) {
      if (lines.length > 0) await line(lines.map(sanitizeLine).join('\n'))
    },
    say: (...lines) => line(lines.map(sanitizeLine).join('\n')),
    end: async () => {},
  }
}

function liveChecklist(
  items: readonly ChecklistItem[],
  { stderr }: Pick<Context, 'stderr'>,
  palette: Palette,
): Checklist {
  const details = new Map<string, string>()
  let below: readonly string[] = []
  let drawn: readonly string[] = []
  let frame = 0
  let ended = false
  let writing: Promise<void> = stderr.write(HIDE_CURSOR)

  const render = () => {
    const width = Math.max(20, (stderr.columns ?? 80) - 1)
    const active = items.find((item) => !details.has(item.key))
    const lines = items.map((item) => {
      const detail = details.get(item.key)
      if (detail !== undefined)
        return `${palette.good('✔')} ${truncate(`${item.title}  ${detail}`, width - 2)}`
      const mark =
        item === active && !ended ? palette.accent(FRAMES[frame % FRAMES.length] ?? '') : palette.faint('○')
      return `${mark} ${palette.faint(truncate(item.title, width - 2))}`
    })
    return [
      ...lines,
      ...below.flatMap((text) => wrap(text, width - 2)).map((text) => palette.warning(`  ${text}`)),
    ]
  }
  /** Draws over the last drawing, one write at a time, so that two redraws never mix. */
  const redraw = (above = '') => {
    writing = writing.then(async () => {
      const lines = render()
      // A window that became narrower has broken the lines of the last drawing into more rows.
      const columns = stderr.columns ?? Number.POSITIVE_INFINITY
      const rows = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0)
      const up = rows === 0 ? '' : `\u001b[${rows}A`
      drawn = lines
      await stderr.write(`\r${up}\u001b[J${above}${lines.join('\n')}\n`)
    })
    return writing
  }
  const timer = setInterval(() => {
    frame++
    // A terminal that went away is found out by the next real write.
    redraw().catch(() => clearInterval(timer))
  }, FRAME_MS)
  timer.unref()

  return {
    tick(key, detail) {
      details.set(key, sanitizeLine(detail))
      below = []
      return redraw()
    },
    waiting(lines) {
      below = lines.map(sanitizeLine)
      return redraw()
    },
    say: (...lines) => redraw(lines.map((text) => `${sanitizeLine(text)}\n`).join('')),
    async end() {
      if (ended) return
      ended = true
      clearInterval(timer)
      below = []
      await redraw()
      await stderr.write(SHOW_CURSOR)
    },
  }
}
