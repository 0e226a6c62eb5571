import type { Context, Output } from '../context.ts'

/**
 * Whether to color text written to `output`. `--no-color` overrides `FORCE_COLOR` (https://force-color.org), which overrides
 * `NO_COLOR` (https://no-color.org), as in Node. Without any of the three, a terminal gets color unless `TERM` is `dumb`.
 */
export function usesColor(
  { forceColor, noColor, term }: Context['environment'],
  colorOption: boolean | undefined,
  output: Pick<Output, 'isTTY'>,
): boolean {
  if (colorOption === false) return false
  if (forceColor !== undefined) return !/^(0|false)$/i.test(forceColor)
  return !noColor && output.isTTY && term !== 'dumb'
}

/** Adds color to a text, or returns the text unchanged. */
export type Paint = (text: string) => string

/** Chalk styles by meaning, all among the 16 basic colors, which dark and light terminal themes keep readable. */
const STYLES = {
  faint: 'dim',
  strong: 'bold',
  good: 'green',
  bad: 'red',
  warning: 'yellow',
  accent: 'cyan',
} as const

/** A `Paint` for each meaning, such as `palette.bad`. */
export type Palette = Readonly<Record<keyof typeof STYLES, Paint>>

function paletteOf(paint: (style: (typeof STYLES)[keyof typeof STYLES]) => Paint): Palette {
  return Object.fromEntries(Object.entries(STYLES).map(([name, style]) => [name, paint(style)])) as Palette
}

/** A palette that adds no color. */
export const PLAIN_PALETTE: Palette = paletteOf(() => (text) => text)

/** Returns the palette of an output. Chalk is loaded only if color is on. */
export async function createPalette(isColored: boolean): Promise<Palette> {
  if (!isColored) return PLAIN_PALETTE
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level: 1 })
  // Pass on the first argument only: chalk would join further arguments, such as the index that `map` passes.
  return paletteOf((style) => (text) => chalk[style](text))
}
