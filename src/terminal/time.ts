/**
 * How times are written. People read one form, `formatTime`, and on a terminal `relativeTime` instead of it or before it.
 * Programs read RFC 3339 in UTC, as in `2026-11-21T16:29:28.123Z`, in every field that is this program's own. The service's
 * own objects keep the service's timestamps as they are.
 */

interface Unit {
  readonly seconds: number
  readonly name: string
  readonly symbol: string
  /** From how many on the unit is used: "2 days" would hide whether it is 25 hours or 47, so those stay hours. */
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
 * A duration: "45 seconds", "3 minutes", "2 hours", "9 days". Seconds are rounded up, so that a wait is never "0 seconds";
 * any other unit is rounded to the nearest, and used from two on (a month from three), so that rounding changes the duration
 * by a quarter at most. Between 90 minutes and two hours it is "1 h 41 min".
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

/** A time as people read it: `2026-11-21 16:29:28 UTC`. @param at milliseconds since 1970 */
export function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/**
 * A time relative to now, rounded as `formatDuration` does: "3 min ago", "in 7 days". Six days, 23 hours and 59 minutes
 * are seven days: what was just made shows its whole lifetime. Within a minute it is "just now" or "in a moment".
 *
 * @param at milliseconds since 1970
 * @param now milliseconds since 1970
 */
export function relativeTime(at: number, now: number): string {
  const seconds = Math.abs(at - now) / 1000
  if (seconds < 60) return at > now + 1000 ? 'in a moment' : 'just now'
  const duration = formatDuration(seconds, 'short')
  return at > now ? `in ${duration}` : `${duration} ago`
}
