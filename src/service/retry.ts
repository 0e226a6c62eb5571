/**
 * Maximum `Retry-After`, in milliseconds, that a request waits for before its retry; with a longer one it fails at once. Polling
 * (`followResource`) may wait longer.
 */
export const MAX_AWAITED_RETRY_AFTER_MS = 60_000

/** Whether the same request may succeed later: status 408 (RFC 9110 section 15.5.9), 425 (RFC 8470 section 5.2), 429 or 5xx. */
export function isTemporaryStatus(status: number): boolean {
  return [408, 425, 429].includes(status) || status >= 500
}

/**
 * Parses `Retry-After` (RFC 9110 section 10.2.3): seconds, or an HTTP date.
 *
 * @param nowMs milliseconds since 1970
 * @returns milliseconds to wait, never negative; undefined if the header is missing or invalid
 */
export function parseRetryAfterMs(value: string | undefined, nowMs: number): number | undefined {
  const text = value?.trim()
  if (text === undefined || text === '') return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  // Require letters, which every HTTP date has: otherwise `Date.parse` would read "-5" as a date.
  const date = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs)
}
