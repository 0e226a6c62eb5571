import type { Context } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { withGivenOptions } from '../settings/suggested-commands.ts'
import { colorLevel, createPalette, type Paint, type Palette } from './color.ts'
import { sanitizeLine, sanitizeLines } from './sanitize.ts'

type Stderr = Pick<Context, 'stderr' | 'environment'>
/** Whether and how to say something; the words that were typed complete the commands in it. */
export type NoticeSettings = Pick<Settings, 'quiet' | 'colorOption' | 'argv'>

/** Reports on stderr, wrapped at words on a terminal; nothing with `--quiet`. Line feeds in the text stay. */
export async function note(
  text: string,
  context: Pick<Context, 'stderr'>,
  settings: Pick<Settings, 'quiet'>,
): Promise<void> {
  if (settings.quiet) return
  await context.stderr.write(`${await fitted(sanitizeLines(text), context.stderr.columns)}\n`)
}

/** Warns on stderr of a problem that doesn't stop the command; nothing with `--quiet`. Programs get warnings too. */
export async function warn(text: string, context: Stderr, settings: NoticeSettings): Promise<void> {
  if (settings.quiet !== true)
    await writeLabeled('warning', withGivenOptions(text, settings.argv), context, settings.colorOption)
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

/** Suggests a next step on stderr; nothing with `--quiet`. */
export async function hint(text: string, context: Stderr, settings: NoticeSettings): Promise<void> {
  if (!settings.quiet)
    await writeLabeled('hint', withGivenOptions(text, settings.argv), context, settings.colorOption)
}

const LABELS = {
  error:
    ({ strong, bad }) =>
    (label) =>
      strong(bad(label)),
  warning:
    ({ strong, warning }) =>
    (label) =>
      strong(warning(label)),
  hint: ({ accent }) => accent,
} as const satisfies Readonly<Record<string, (palette: Palette) => Paint>>

/**
 * Writes `error: …`, `warning: …` or `hint: …` to stderr. On a terminal the label is colored, and the text wrapped at words.
 * Line feeds in a hint stay.
 */
export async function writeLabeled(
  label: keyof typeof LABELS,
  text: string,
  { stderr, environment }: Stderr,
  colorOption: boolean | undefined,
): Promise<void> {
  const clean = `${label}: ${label === 'hint' ? sanitizeLines(text) : sanitizeLine(text)}`
  const lines = await fitted(clean, stderr.columns)
  const palette = await createPalette(colorLevel(environment, colorOption, stderr))
  const colored = `${LABELS[label](palette)(`${label}:`)}${lines.slice(label.length + 1)}`
  await stderr.write(`${colored}\n`)
}

/** A command with its arguments, up to where prose goes on, or a word. */
export const PIECE =
  /\(?\bmailclaim(?: (?!\()(?:\\.|'[^']*'|"[^"]*"|[.:;,()'"](?=[^\s.:;,()'"])|[^\s.:;,()'"])+)+\S*|\S+/g

/** What someone pastes as a whole: the terminal wraps it, without a line break in it. */
const PASTED = /^\(?(?:mailclaim |https?:)/

/** The indent of a line that continues: no text from outside may look like a line of our own. */
const INDENT = '  '

/**
 * The lines of a text, each wrapped at words, but never inside a command or an address: what doesn't fit beside other words
 * gets a line of its own, which can be copied. What is indented is a line already.
 */
export async function fitted(text: string, width?: number): Promise<string> {
  const lines: string[] = []
  for (const line of text.split('\n')) lines.push(...(await fittedLine(line, width)))
  return lines.join('\n')
}

async function fittedLine(line: string, width = Number.POSITIVE_INFINITY): Promise<string[]> {
  if (line.length <= width / 2 || line.startsWith(' ')) return [line]
  const { widthOf, wrap } = await import('./measure.ts')
  if (widthOf(line) <= width) return [line]
  const lines: string[] = []
  let current = ''
  for (const piece of line.match(PIECE) ?? []) {
    const start = lines.length === 0 ? '' : INDENT
    const longer = current === '' ? start + piece : `${current} ${piece}`
    if (widthOf(longer) <= width) {
      current = longer
      continue
    }
    if (current !== '') lines.push(current)
    const isPasted = PASTED.test(piece)
    const parts = isPasted ? [piece.replace(/[.,;]$/, '')] : wrap(piece, width - INDENT.length)
    lines.push(...parts.map((part) => INDENT + part))
    current = isPasted ? '' : (lines.pop() ?? '')
  }
  return current === '' ? lines : [...lines, current]
}
