import type { Context, Output } from '../context.ts'

/** 0 none, 1 the sixteen colors of any terminal, 2 256, 3 all. */
export type ColorLevel = 0 | 1 | 2 | 3

/**
 * Whether and how to color what is written to `output`; only decided here. `--no-color` beats `FORCE_COLOR`, which beats
 * `NO_COLOR` (https://no-color.org), as https://force-color.org and Node itself have it. Otherwise a terminal gets color
 * unless `TERM` is `dumb`.
 */
export function colorLevel(
  environment: Pick<Context['environment'], 'forceColor' | 'noColor' | 'term' | 'colorterm'>,
  colorOption: boolean | undefined,
  output: Pick<Output, 'isTTY'>,
): ColorLevel {
  if (colorOption === false) return 0
  const { forceColor, noColor, term, colorterm } = environment
  if (forceColor !== undefined) {
    if (/^(0|false)$/i.test(forceColor)) return 0
    if (forceColor === '2' || forceColor === '3') return Number(forceColor) as 2 | 3
    return 1
  }
  if (noColor || !output.isTTY || term === 'dumb') return 0
  if (colorterm === 'truecolor' || colorterm === '24bit') return 3
  return term?.includes('256') ? 2 : 1
}

/** Colors a piece of text. */
export type Paint = (text: string) => string

/** The few colors that the program uses, named by meaning. */
export interface Palette {
  readonly heading: Paint
  readonly faint: Paint
  readonly strong: Paint
  readonly good: Paint
  readonly bad: Paint
  readonly warning: Paint
  readonly accent: Paint
}

const plain: Paint = (text) => text
/** No color at all. */
export const PLAIN_PALETTE: Palette = {
  heading: plain,
  faint: plain,
  strong: plain,
  good: plain,
  bad: plain,
  warning: plain,
  accent: plain,
}

/** The colors of this level, from the sixteen that every theme, dark or light, makes readable. */
export async function createPalette(level: ColorLevel): Promise<Palette> {
  if (level === 0) return PLAIN_PALETTE
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level })
  return {
    heading: (text) => chalk.bold(text),
    faint: (text) => chalk.dim(text),
    strong: (text) => chalk.bold(text),
    good: (text) => chalk.green(text),
    bad: (text) => chalk.red(text),
    warning: (text) => chalk.yellow(text),
    accent: (text) => chalk.cyan(text),
  }
}
