/** With a longer `Retry-After` a request fails right away, and the error names the delay. */
export const MAX_RETRY_AFTER_MS = 60_000

/**
 * Whether the same request may succeed later: a timeout or "too early" (RFC 9110 section 15.5.9, RFC 8470 section 5.2),
 * too many requests, or a failure of the service.
 */
export function isTemporaryStatus(status: number): boolean {
  return [408, 425, 429].includes(status) || status >= 500
}

/**
 * Parses `Retry-After` (RFC 9110 section 10.2.3): seconds, or an HTTP date.
 *
 * @param now milliseconds since 1970
 * @returns milliseconds to wait, never negative; undefined if the header is missing or invalid
 */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  const text = value?.trim()
  if (text === undefined || text === '') return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  // All three date formats name a day or a month; Date.parse alone would take "1" or "-5" for a year.
  const date = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
