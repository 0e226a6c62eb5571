/**
 * Formats of times for people: relative in messages and on a terminal, otherwise in full. Programs get RFC 3339 in UTC, such as
 * `2026-11-21T16:29:28.123Z`, in mailclaim's own fields, and the timestamps in the service's objects unchanged.
 */

interface Unit {
  readonly seconds: number
  readonly name: string
  readonly symbol: string
  /**
   * Smallest amount that is shown in this unit; a smaller unit is used below, since "1 day" for 25 or 35 hours would be too coarse.
   */
  readonly from: number
}

const SECOND: Unit = { seconds: 1, name: 'second', symbol: 's', from: 0 }
const UNITS: readonly Unit[] = [
  { seconds: 365 * 86_400, name: 'year', symbol: 'years', from: 2 },
  { seconds: 30 * 86_400, name: 'month', symbol: 'months', from: 3 },
  { seconds: 86_400, name: 'day', symbol: 'days', from: 2 },
  { seconds: 3600, name: 'hour', symbol: 'h', from: 2 },
  { seconds: 60, name: 'minute', symbol: 'min', from: 2 },
]

/**
 * Formats a duration: "45 seconds", "3 minutes", "2 hours", "9 days". Seconds are rounded up, so that half a second isn't "0
 * seconds"; other units are rounded to the nearest, and used from two on (months from three), so that rounding changes a duration by
 * at most a quarter. From 90 minutes to two hours, the result is such as "1 h 41 min"; for Infinity, "more than a year".
 *
 * @param style `short` for narrow places: "45 s", "3 min", "2 h", "9 days"
 */
export function formatDuration(seconds: number, style: 'long' | 'short' = 'long'): string {
  if (!Number.isFinite(seconds)) return 'more than a year'
  const whole = Math.ceil(seconds)
  if (whole >= 90 * 60 && whole < 120 * 60) return `1 h ${Math.floor(whole / 60) - 60} min`
  const unit = UNITS.find((candidate) => whole >= candidate.seconds * candidate.from) ?? SECOND
  const amount = Math.round(whole / unit.seconds)
  return `${amount} ${style === 'short' ? unit.symbol : `${unit.name}${amount === 1 ? '' : 's'}`}`
}

/** Formats a time for people: `2026-11-21 16:29:28 UTC`. @param at milliseconds since 1970 */
export function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/**
 * Formats a time relative to `now`, rounded as in `formatDuration`: "3 min ago", "in 7 days". 6 days, 23 hours and 59 minutes round
 * to "7 days", so that a new item shows its full lifetime. Times within a minute are "just now" or "in a moment".
 *
 * @param at milliseconds since 1970
 * @param now milliseconds since 1970
 */
export function formatRelativeTime(at: number, now: number): string {
  const seconds = Math.abs(at - now) / 1000
  if (seconds < 60) return at > now + 1000 ? 'in a moment' : 'just now'
  const duration = formatDuration(seconds, 'short')
  return at > now ? `in ${duration}` : `${duration} ago`
}
