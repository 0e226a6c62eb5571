import type { Context } from '../context.ts'
import type { Palette } from './color.ts'
import { truncate, widthOf, wrap } from './measure.ts'
import { fitted } from './notices.ts'
import { sanitizeLine } from './sanitize.ts'
import { canAnimate, startSpinner } from './spinner.ts'

export interface ChecklistItem {
  readonly key: string
  readonly title: string
}

/** A list of steps that are checked off one after another. */
export interface Checklist {
  /** The step is done; the next one is in progress. */
  tick(key: string, detail: string): Promise<void>
  /** What the program is waiting for, below the list; replaces what was there. */
  waiting(lines: readonly string[]): Promise<void>
  /** Lines that stay above the list, never cut, so that they can be copied. */
  say(...lines: string[]): Promise<void>
  /** A warning that stays above the list. */
  warn(text: string): Promise<void>
  /** Leaves the list, and what it was waiting for, and shows the cursor again. Safe to call twice. */
  end(): Promise<void>
}

const FRAME_MS = 120
const WARNING = 'warning:'

/**
 * A checklist on stderr. On a terminal it is redrawn in place by the spinner; elsewhere, and if the terminal can't move its
 * cursor, it is plain lines, each written once.
 *
 * @param progress the text next to the step in progress, read whenever the list is drawn; plain lines don't have it
 */
export async function createChecklist(
  items: readonly ChecklistItem[],
  context: Pick<Context, 'stderr' | 'environment'>,
  palette: Palette,
  progress = () => '',
): Promise<Checklist> {
  return canAnimate(context)
    ? liveChecklist(items, context, palette, progress)
    : plainChecklist(items, context)
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
    say: (...lines) => stderr.write(lines.map((text) => `${sanitizeLine(text)}\n`).join('')),
    warn: (text) => line(`warning: ${sanitizeLine(text)}`),
    end: async () => {},
  }
}

async function liveChecklist(
  items: readonly ChecklistItem[],
  { stderr }: Pick<Context, 'stderr'>,
  palette: Palette,
  progress: () => string,
): Promise<Checklist> {
  const { spinners } = await import('ora')
  const details = new Map<string, string>()
  let below: readonly string[] = []
  let ended = false

  const width = () => Math.max(20, (stderr.columns ?? 80) - 1)
  const title = (item: ChecklistItem) => palette.faint(truncate(item.title, width() - 2))
  const ticked = () =>
    items
      .filter(({ key }) => details.has(key))
      .flatMap((item) => {
        const indent = ' '.repeat(widthOf(item.title) + 4)
        const [first, ...rest] = wrap(details.get(item.key) ?? '', width() - indent.length)
        return [`${palette.good('✔')} ${item.title}  ${first}`, ...rest.map((text) => indent + text)]
      })
  // A step that was passed over doesn't apply.
  const pending = () => items.slice(items.findLastIndex(({ key }) => details.has(key)) + 1)
  const open = (item: ChecklistItem) => `${palette.faint('○')} ${title(item)}`
  /** Follows the title of the active step and a space. */
  const inProgress = () => {
    const [active] = pending()
    const left = width() - widthOf(active?.title ?? '') - 4
    return active === undefined || left < 1 ? '' : palette.faint(truncate(` ${progress()}`, left))
  }
  const reason = () => below.flatMap((text) => wrap(text, width() - 2)).map((text) => `  ${text}`)
  const underneath = () => [...pending().slice(1).map(open), ...reason()]
  /** The spinner turns in front of the first open step. The steps above it are part of its frames. */
  const drawing = () => {
    const [active] = pending()
    return {
      spinner: {
        interval: FRAME_MS,
        frames: spinners.dots.frames.map((frame) =>
          [...ticked(), active === undefined ? '' : palette.accent(frame)].join('\n'),
        ),
      },
      text: active === undefined ? '' : title(active),
    }
  }

  const { spinner, stream } = await startSpinner(stderr, {
    ...drawing(),
    color: false,
    suffixText: () => [inProgress(), ...underneath()].join('\n'),
  })
  const redraw = async () => {
    Object.assign(spinner, drawing())
    spinner.render()
  }

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
    async say(...lines) {
      stream.write(lines.map((text) => `${sanitizeLine(text)}\n`).join(''))
    },
    async warn(text) {
      const lines = await fitted(`${WARNING} ${sanitizeLine(text)}`, width())
      stream.write(`${palette.strong(palette.warning(WARNING))}${lines.slice(WARNING.length)}\n`)
    },
    async end() {
      if (ended) return
      ended = true
      spinner.stop()
      const lines = [...ticked(), ...pending().map(open), ...reason()]
      await stderr.write(lines.map((line) => `${line}\n`).join(''))
    },
  }
}
