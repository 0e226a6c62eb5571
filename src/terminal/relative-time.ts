const UNITS: readonly [seconds: number, name: string, least?: number][] = [
  // At least 2 or 3: "1 month" would hide whether it's 31 days or 59.
  [365 * 86_400, 'year', 2],
  [30 * 86_400, 'month', 3],
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
]

/**
 * A time as a person says it: "just now", "3 minutes ago", "in 6 days".
 *
 * @param at milliseconds since 1970
 * @param now milliseconds since 1970
 */
export function relativeTime(at: number, now: number): string {
  const seconds = Math.abs(at - now) / 1000
  for (const [unit, name, least = 1] of UNITS) {
    if (seconds < unit * least) continue
    // Rounded down: six days and 23 hours are not yet seven days.
    const count = Math.floor(seconds / unit)
    const words = `${count} ${name}${count === 1 ? '' : 's'}`
    return at > now ? `in ${words}` : `${words} ago`
  }
  return at > now + 1000 ? 'in a moment' : 'just now'
}
