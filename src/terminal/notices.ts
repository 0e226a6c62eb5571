import type { Context } from '../context.ts'
import { maskUserInfo } from '../settings/addresses.ts'
import { createPalette, hasColor } from './color.ts'
import { sanitizeLine, sanitizeLines } from './sanitize.ts'

/** Reports on stderr. Line feeds in the text stay. */
export async function writeNote(text: string, { stderr }: Pick<Context, 'stderr'>): Promise<void> {
  await stderr.write(`${await fitted(sanitizeLines(text), stderr.columns)}\n`)
}

/**
 * Writes `error: …`, `warning: …` or `hint: …` to stderr, with a colored label on a terminal. A hint stays one line, because
 * the command in it is for pasting; the others are wrapped at words. Line feeds in a hint stay.
 */
export async function writeLabeled(
  label: 'error' | 'warning' | 'hint',
  text: string,
  { stderr, environment }: Pick<Context, 'stderr' | 'environment'>,
  colorOption: boolean | undefined,
): Promise<void> {
  const shown = `${label}: ${maskUserInfo(text)}`
  const lines = label === 'hint' ? sanitizeLines(shown) : await fitted(sanitizeLine(shown), stderr.columns)
  const { strong, bad, warning, accent } = await createPalette(hasColor(environment, colorOption, stderr))
  const head = `${label}:`
  const painted = { error: strong(bad(head)), warning: strong(warning(head)), hint: accent(head) }[label]
  await stderr.write(`${painted}${lines.slice(head.length)}\n`)
}

/**
 * Wraps each line at words. What continues is indented more, since no text from outside may look like a line of our own.
 */
async function fitted(text: string, width = Number.POSITIVE_INFINITY): Promise<string> {
  if (text.length <= width / 2) return text
  const { widthOf, wrap } = await import('./measure.ts')
  return text
    .split('\n')
    .map((line) => {
      if (widthOf(line) <= width) return line
      const words = line.trimStart()
      const indent = ' '.repeat(line.length - words.length)
      return indent + wrap(words, width - indent.length - 2, false).join(`\n${indent}  `)
    })
    .join('\n')
}
