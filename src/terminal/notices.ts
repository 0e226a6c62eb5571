import type { Context } from '../context.ts'
import { maskUserInfo } from '../settings/addresses.ts'
import { createPalette, hasColor } from './color.ts'
import { sanitizeLine, sanitizeLines } from './sanitize.ts'

/** Reports on stderr. Line feeds in the text stay. */
export async function writeText(text: string, { stderr }: Pick<Context, 'stderr'>): Promise<void> {
  await stderr.write(`${await fitted(sanitizeLines(text), stderr.columns)}\n`)
}

/**
 * Writes `error: …`, `warning: …` or `hint: …` to stderr, with a colored label on a terminal, wrapped at words. The command at the
 * end of a hint is for pasting: it stays whole, on a line of its own if it doesn't fit. Line feeds in a hint stay.
 */
export async function writeLabeled(
  label: 'error' | 'warning' | 'hint',
  text: string,
  { stderr, environment }: Pick<Context, 'stderr' | 'environment'>,
  colorOption: boolean | undefined,
): Promise<void> {
  const shown = `${label}: ${maskUserInfo(text)}`
  const lines = await (label === 'hint'
    ? fittedHint(sanitizeLines(shown), stderr.columns)
    : fitted(sanitizeLine(shown), stderr.columns))
  const { strong, bad, warning, accent } = await createPalette(hasColor(environment, colorOption, stderr))
  const head = `${label}:`
  const painted = { error: strong(bad(head)), warning: strong(warning(head)), hint: accent(head) }[label]
  await stderr.write(`${painted}${lines.slice(head.length)}\n`)
}

async function fittedHint(text: string, width = Number.POSITIVE_INFINITY): Promise<string> {
  const [words, command] = text.split(/: (?=mailclaim .*$)/)
  if (text.length <= width || command === undefined) return fitted(text, width)
  return `${await fitted(`${words}:`, width)}\n  ${command}`
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
