import { formatDuration } from './duration.ts'

/**
 * How times are written. People read one form, `formatTime`, and on a terminal `relativeTime` instead of it or before it.
 * Programs read RFC 3339 in UTC, as in `2026-11-21T16:29:28.123Z`, in every field that is this program's own. The service's
 * own objects keep the service's timestamps as they are.
 */

/** A time as people read it: `2026-11-21 16:29:28 UTC`. @param at milliseconds since 1970 */
export function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/**
 * A time relative to now, rounded as `formatDuration` does: "3 minutes ago", "in 7 days". Six days, 23 hours and 59 minutes
 * are seven days: what was just made shows its whole lifetime. Within a minute it is "just now" or "in a moment".
 *
 * @param at milliseconds since 1970
 * @param now milliseconds since 1970
 */
export function relativeTime(at: number, now: number): string {
  const seconds = Math.abs(at - now) / 1000
  if (seconds < 60) return at > now + 1000 ? 'in a moment' : 'just now'
  return at > now ? `in ${formatDuration(seconds)}` : `${formatDuration(seconds)} ago`
}
