import { Problem, validationError } from './problems.ts'

/** How many requests the service takes: `requests` in every `seconds`. */
export interface Rate {
  readonly requests: number
  readonly seconds: number
}

/** The rate limit of the API operations; off unless it is set. */
export interface RateLimit {
  rate: Rate | undefined
  readonly refused: number
  /**
   * Counts a request.
   *
   * @returns what every response says about the limit
   * @throws Problem 429
   */
  take(): Record<string, string>
}

/** @param now milliseconds since 1970 */
export function createRateLimit(rate: Rate | undefined, now: () => number): RateLimit {
  let windowEnd = 0
  let used = 0
  let refused = 0
  return {
    rate,
    get refused() {
      return refused
    },
    take() {
      if (this.rate === undefined) return {}
      const { requests, seconds } = this.rate
      if (now() >= windowEnd) {
        windowEnd = now() + seconds * 1000
        used = 0
      }
      const reset = String(Math.ceil((windowEnd - now()) / 1000))
      const headers = (remaining: number) => ({
        'ratelimit-limit': String(requests),
        'ratelimit-remaining': String(remaining),
        'ratelimit-reset': reset,
      })
      if (used >= requests) {
        refused += 1
        const message = `Only ${requests} requests are allowed in ${seconds} seconds.`
        throw new Problem(429, 'rate_limit_exceeded', message, { ...headers(0), 'retry-after': reset })
      }
      used += 1
      return headers(requests - used)
    },
  }
}

/** Reads `{"requests","seconds"}`; `{"requests":null}` switches the limit off. @throws Problem 422 */
export function readRate(fields: Record<string, unknown>): Rate | undefined {
  const { requests, seconds = 1 } = fields
  if (requests === null) return undefined
  const isWhole = typeof requests === 'number' && Number.isInteger(requests) && requests > 0
  if (!isWhole) throw validationError('`requests` must be a whole number of 1 or more, or null.')
  if (typeof seconds !== 'number' || !(seconds > 0 && seconds <= 3600))
    throw validationError('`seconds` must be a number up to 3600.')
  return { requests, seconds }
}
