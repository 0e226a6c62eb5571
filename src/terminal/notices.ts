import type { Context } from '../context.ts'
import { maskUserInfo } from '../settings/addresses.ts'
import { createPalette, usesColor } from './color.ts'
import { sanitizeLine } from './sanitize.ts'

/** Writes each text to stderr as one sanitized line; a line that is wider than the terminal is wrapped at spaces. */
export async function writeStderrLines(
  texts: readonly string[],
  { stderr }: Pick<Context, 'stderr'>,
): Promise<void> {
  const lines = await Promise.all(texts.map((text) => wrapForTerminal(sanitizeLine(text), stderr.columns)))
  await stderr.write(lines.map((line) => `${line}\n`).join(''))
}

/** Writes `error: …`, `warning: …` or `hint: …` to stderr, sanitized and without user info of URLs, wrapped on a terminal. */
export async function writeLabeledMessage(
  label: 'error' | 'warning' | 'hint',
  text: string,
  { stderr, environment }: Pick<Context, 'stderr' | 'environment'>,
  colorOption: boolean | undefined,
): Promise<void> {
  const shown = sanitizeLine(`${label}: ${maskUserInfo(text)}`)
  const lines = await wrapForTerminal(shown, stderr.columns)
  const { strong, bad, warning, accent } = await createPalette(usesColor(environment, colorOption, stderr))
  const head = `${label}:`
  const painted = { error: strong(bad(head)), warning: strong(warning(head)), hint: accent(head) }[label]
  await stderr.write(`${painted}${lines.slice(head.length)}\n`)
}

/**
 * Wraps a line that is wider than the terminal, and indents continuation lines with `indentPiece`, so that none of these
 * looks like a message of its own.
 */
async function wrapForTerminal(line: string, width = Number.POSITIVE_INFINITY): Promise<string> {
  if (line.length <= width / 2) return line
  const { indentPiece, displayWidth, wrapMessageKeepingCommand } = await import('./measure.ts')
  if (displayWidth(line) <= width) return line
  const words = line.trimStart()
  const before = line.length - words.length
  const pieces = wrapMessageKeepingCommand(words, width - before - 2)
  return pieces.map((piece, index) => indentPiece(piece, before + (index === 0 ? 0 : 2), width)).join('\n')
}
