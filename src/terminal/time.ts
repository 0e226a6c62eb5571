/** Formats of times and durations for people. Programs get RFC 3339 in UTC, and the service's own timestamps unchanged. */

interface Unit {
  readonly seconds: number
  readonly name: string
  readonly symbol: string
  /** Minimum number of this unit for a duration to be shown in it: 2 for days, as "1 day" for 35 hours would be too coarse. */
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
 * Formats a duration as a rounded amount of one unit: "45 seconds", "3 minutes", "9 days". Exceptions: hours and minutes from 90
 * minutes to two hours ("1 h 41 min"), and "more than a year" for Infinity.
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

/** Formats a time for people: `2026-11-21 16:29:28 UTC`. @param epochMs milliseconds since 1970 */
export function formatUtcTime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/**
 * Formats a time relative to `nowMs`: "3 min ago", "in 7 days". Rounded as in `formatDuration`, so that a minute after its creation
 * an item with a lifetime of 7 days still expires "in 7 days".
 *
 * @param epochMs milliseconds since 1970
 * @param nowMs milliseconds since 1970
 */
export function formatRelativeTime(epochMs: number, nowMs: number): string {
  const seconds = Math.abs(epochMs - nowMs) / 1000
  if (seconds < 60) return epochMs > nowMs + 1000 ? 'in a moment' : 'just now'
  const duration = formatDuration(seconds, 'short')
  return epochMs > nowMs ? `in ${duration}` : `${duration} ago`
}
