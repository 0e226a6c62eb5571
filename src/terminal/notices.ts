import type { Context } from '../context.ts'
import { maskUserInfo } from '../settings/addresses.ts'
import type { Settings } from '../settings/settings.ts'
import { colorLevel, createPalette } from './color.ts'
import { sanitizeLine, sanitizeLines } from './sanitize.ts'

type Stderr = Pick<Context, 'stderr' | 'environment'>
/** Whether and how to say something. */
export type NoticeSettings = Pick<Settings, 'silent' | 'colorOption'>

/** Reports on stderr; nothing where `Settings.quiet`. Line feeds in the text stay. */
export async function note(
  text: string,
  { stderr }: Pick<Context, 'stderr'>,
  { quiet }: Pick<Settings, 'quiet'>,
): Promise<void> {
  if (!quiet) await stderr.write(`${await fitted(sanitizeLines(text), stderr.columns)}\n`)
}

/** Warns on stderr of a problem that doesn't stop the command; nothing with `--quiet`. Programs get warnings too. */
export async function warn(text: string, context: Stderr, settings: NoticeSettings): Promise<void> {
  if (!settings.silent) await writeLabeled('warning', text, context, settings.colorOption)
}

/** Suggests a next step on stderr; nothing with `--quiet`. */
export async function hint(text: string, context: Stderr, settings: NoticeSettings): Promise<void> {
  if (!settings.silent) await writeLabeled('hint', text, context, settings.colorOption)
}

/** How long a person waits before a message says what for. */
const SILENT_MS = 2_000

/** Says what the work waits for, once, if it takes longer than two seconds. */
export async function withWaitingNote<T>(
  text: string,
  context: Stderr & Pick<Context, 'clock'>,
  settings: Pick<Settings, 'quiet'>,
  work: Promise<T>,
): Promise<T> {
  const cancel = context.clock.alarm(SILENT_MS, () => void note(text, context, settings))
  try {
    return await work
  } finally {
    cancel()
  }
}

/**
 * Writes `error: …`, `warning: …` or `hint: …` to stderr, with a colored label on a terminal. A hint stays one line, because
 * the command in it is for pasting; the others are wrapped at words. Line feeds in a hint stay.
 */
export async function writeLabeled(
  label: 'error' | 'warning' | 'hint',
  text: string,
  { stderr, environment }: Stderr,
  colorOption: boolean | undefined,
): Promise<void> {
  const shown = maskUserInfo(text)
  const clean = label === 'hint' ? sanitizeLines(shown) : sanitizeLine(shown)
  const lines = label === 'hint' ? clean : await fitted(`${label}: ${clean}`, stderr.columns)
  const { strong, bad, warning, accent } = await createPalette(colorLevel(environment, colorOption, stderr))
  const paint = { error: bad, warning, hint: accent }[label]
  const body = label === 'hint' ? ` ${lines}` : lines.slice(label.length + 1)
  await stderr.write(`${label === 'hint' ? paint('hint:') : strong(paint(`${label}:`))}${body}\n`)
}

/**
 * Wraps each line at words. What continues is indented, since no text from outside may look like a line of our own; what is
 * indented already stays.
 */
async function fitted(text: string, width = Number.POSITIVE_INFINITY): Promise<string> {
  if (text.length <= width / 2) return text
  const { widthOf, wrap } = await import('./measure.ts')
  return text
    .split('\n')
    .map((line) =>
      line.startsWith(' ') || widthOf(line) <= width ? line : wrap(line, width - 2, false).join('\n  '),
    )
    .join('\n')
}
