import type { Context, Output } from '../context.ts'

/**
 * Whether to color what is written to `output`; only decided here. `--no-color` beats `FORCE_COLOR`, which beats `NO_COLOR`
 * (https://no-color.org), as https://force-color.org and Node itself have it. Otherwise a terminal gets color unless `TERM`
 * is `dumb`.
 */
export function hasColor(
  { forceColor, noColor, term }: Context['environment'],
  colorOption: boolean | undefined,
  output: Pick<Output, 'isTTY'>,
): boolean {
  if (colorOption === false) return false
  if (forceColor !== undefined) return !/^(0|false)$/i.test(forceColor)
  return !noColor && output.isTTY && term !== 'dumb'
}

/** Colors a piece of text. */
export type Paint = (text: string) => string

/** The few colors that the program uses, named by meaning: of the sixteen that every theme, dark or light, makes readable. */
const STYLES = {
  faint: 'dim',
  strong: 'bold',
  good: 'green',
  bad: 'red',
  warning: 'yellow',
  accent: 'cyan',
} as const

export type Palette = Readonly<Record<keyof typeof STYLES, Paint>>

function paletteOf(paint: (style: (typeof STYLES)[keyof typeof STYLES]) => Paint): Palette {
  return Object.fromEntries(Object.entries(STYLES).map(([name, style]) => [name, paint(style)])) as Palette
}

/** No color at all. */
export const PLAIN_PALETTE: Palette = paletteOf(() => (text) => text)

export async function createPalette(isColored: boolean): Promise<Palette> {
  if (!isColored) return PLAIN_PALETTE
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level: 1 })
  // One text only: chalk itself would join whatever else a caller such as `map` hands over.
  return paletteOf((style) => (text) => chalk[style](text))
}
