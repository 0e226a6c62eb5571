import type { Context } from '../context.ts'

/** How often an idempotent request is sent at most. */
export const MOST_TRIES = 4
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 8000
/** A longer `Retry-After` is not waited for: the person is told instead. */
export const LONGEST_RETRY_AFTER_MS = 60_000

/**
 * The pause before the next try: exponential with full jitter, so that many clients that failed together do not come
 * back together (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 *
 * @param tries how many have failed, from 1
 * @returns milliseconds
 */
export function backoff(tries: number, random: Context['random']): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1)) * random.fraction()
}

/**
 * Reads `Retry-After` (RFC 9110 section 10.2.3): seconds, or an HTTP date.
 *
 * @param now milliseconds since 1970
 * @returns milliseconds to wait, never negative; undefined where there is none that can be read
 */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  const text = value?.trim()
  if (text === undefined || text === '') return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  // All three date forms name a day or a month; Date.parse alone would take "1" or "-5" for a year.
  const date = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** "45 s", "3 min", "2 h", "9 days", for a span that a message mentions. */
export function spokenSpan(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  if (!Number.isFinite(seconds)) return 'for ever'
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} days`
}
