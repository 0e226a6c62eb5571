/**
 * A progress bar on one line that fits `columns`. What doesn't fit is left out, starting at the end of `details`.
 *
 * @param label ASCII, like everything else on the line
 * @param fraction from 0 to 1; if undefined, there is no bar
 * @param details most important first
 */
export function renderBar(
  label: string,
  fraction: number | undefined,
  details: readonly string[],
  columns: number,
): string {
  const kept = [...details]
  const percent = fraction === undefined ? [] : [`${String(Math.floor(clamp(fraction) * 100)).padStart(3)}%`]
  const line = (bar: string) => [label, ...(bar === '' ? [] : [bar]), ...percent, ...kept].join('  ')
  const room = () => columns - line('').length - GAP
  const least = fraction === undefined ? 0 : NARROWEST_BAR
  while (kept.length > 0 && room() < least) kept.pop()
  if (fraction === undefined) return line('')
  const width = Math.min(WIDEST_BAR, Math.max(0, room()))
  const full = Math.floor(clamp(fraction) * width)
  return line('█'.repeat(full) + '░'.repeat(width - full))
}

const GAP = 2
const NARROWEST_BAR = 8
const WIDEST_BAR = 30

function clamp(fraction: number): number {
  return Math.min(1, Math.max(0, fraction)) || 0
}
