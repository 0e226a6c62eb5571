/**
 * A duration, rounded: "45 seconds", "3 minutes", "2 hours", "9 days".
 *
 * @param style `short` for narrow places: "45 s", "3 min", "2 h", "9 days"
 */
export function formatDuration(seconds: number, style: 'long' | 'short' = 'long'): string {
  if (!Number.isFinite(seconds)) return 'more than a year'
  const [amount, unit, symbol] =
    seconds < 120
      ? ([Math.ceil(seconds), 'second', 's'] as const)
      : seconds < 7200
        ? ([Math.round(seconds / 60), 'minute', 'min'] as const)
        : seconds < 172_800
          ? ([Math.round(seconds / 3600), 'hour', 'h'] as const)
          : ([Math.round(seconds / 86_400), 'day', 'days'] as const)
  return `${amount} ${style === 'short' ? symbol : `${unit}${amount === 1 ? '' : 's'}`}`
}

const UNITS: readonly [seconds: number, name: string, minimum?: number][] = [
  // At least two: "1 month" would hide whether it is 31 days or 59.
  [365 * 86_400, 'year', 2],
  [30 * 86_400, 'month', 3],
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
]

/**
 * A time relative to now: "just now", "3 minutes ago", "in 6 days".
 *
 * @param at milliseconds since 1970
 * @param now milliseconds since 1970
 */
export function relativeTime(at: number, now: number): string {
  const seconds = Math.abs(at - now) / 1000
  for (const [unit, name, minimum = 1] of UNITS) {
    if (seconds < unit * minimum) continue
    // Rounded down: six days and 23 hours are not yet seven days.
    const count = Math.floor(seconds / unit)
    const words = `${count} ${name}${count === 1 ? '' : 's'}`
    return at > now ? `in ${words}` : `${words} ago`
  }
  return at > now + 1000 ? 'in a moment' : 'just now'
}
