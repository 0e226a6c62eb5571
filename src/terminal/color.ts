import type { Context, OutputStream } from '../context.ts'

/**
 * Whether to color text written to `output`. `--no-color` overrides `FORCE_COLOR`, which overrides `NO_COLOR`; without these,
 * terminals get color unless `TERM` is `dumb`.
 */
export function usesColor(
  { forceColor, noColor, term }: Context['environment'],
  colorOption: boolean | undefined,
  output: Pick<OutputStream, 'isTTY'>,
): boolean {
  if (colorOption === false) return false
  if (forceColor !== undefined) return !/^(0|false)$/i.test(forceColor)
  return !noColor && output.isTTY && term !== 'dumb'
}

/** Function that adds a color, or another style such as bold, to a text; in a plain palette, it returns the text unchanged. */
export type Paint = (text: string) => string

/** Chalk styles by meaning: text attributes and basic ANSI colors, whose shades a terminal's theme chooses. */
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

export const PLAIN_PALETTE: Palette = paletteOf(() => (text) => text)

/** Creates a palette. Loads chalk for a colored palette only, because loading it delays mailclaim's start. */
export async function createPalette(isColored: boolean): Promise<Palette> {
  if (!isColored) return PLAIN_PALETTE
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level: 1 })
  // Pass on the first argument only: chalk would join further arguments, such as the index that `map` passes.
  return paletteOf((style) => (text) => chalk[style](text))
}
