import type { Clock, HttpRequest, HttpResponse, HttpTransport } from '../context.ts'
import { createConcurrencyLimiter } from '../limiter.ts'
import { backoffMs } from '../timeout.ts'
import { MAX_AWAITED_RETRY_AFTER_MS, parseRetryAfterMs } from './retry.ts'

/**
 * Milliseconds of the first and the longest pause after a 429 without `Retry-After`. No jitter, because all requests share one
 * pause.
 */
const PAUSES = { firstMs: 1000, maxMs: 30_000, jitter: 0 } as const
/** Milliseconds from the first of consecutive refusals (429, 503) after which a refused request isn't sent again. */
const MAX_REFUSAL_MS = 5 * 60_000

/**
 * Consecutive refusals by the service: when the first refused request was sent (`since`) and the current pause ends (`until`), in
 * milliseconds of the monotonic clock; number of pauses; last refusal.
 */
interface RefusalStreak {
  readonly since: number
  readonly until: number
  readonly pauses: number
  readonly response: HttpResponse
}

/**
 * Wraps the HTTP transport for many requests to one service: sends at most `concurrent` requests at once, and pauses all of them
 * when the service refuses one with 429, or with 503 and `Retry-After`. A request that got a 429 is sent again after the pause, or
 * gets the refusal if the pause would be too long.
 *
 * A request with `beforeSend` (a token refresh) is neither limited nor paused, because its sender holds the session's lock.
 */
export function createThrottlingTransport(
  http: HttpTransport,
  clock: Pick<Clock, 'monotonic' | 'now' | 'sleep'>,
  { concurrent }: { readonly concurrent: number },
): HttpTransport {
  const runLimited = createConcurrencyLimiter(concurrent)
  let streak: RefusalStreak | undefined

  /** Updates the pause of all requests after a response. @returns whether to send that response's request again */
  function updatePause(response: HttpResponse, sentAt: number): boolean {
    const { status, headers } = response
    const asked = parseRetryAfterMs(headers['retry-after'], clock.now())
    if (status !== 429 && (status !== 503 || asked === undefined)) {
      streak = undefined
      return false
    }
    const { since, until, pauses } = streak ?? { since: sentAt, until: 0, pauses: 0 }
    if (clock.monotonic() - since > MAX_REFUSAL_MS || (asked ?? 0) > MAX_AWAITED_RETRY_AFTER_MS) return false
    // Without `Retry-After`, the refusal of a request that was in flight when the pause began doesn't extend the pause. The refusal
    // of a request sent after the pause begins a new one, twice as long (at most `PAUSES.maxMs`).
    const isNew = sentAt >= until
    const pauseMs = asked || (isNew ? backoffMs(pauses + 1, PAUSES) : 0)
    const end = Math.max(until, clock.monotonic() + pauseMs)
    streak = { since, until: end, pauses: pauses + (isNew ? 1 : 0), response }
    return status === 429
  }

  async function sendAfterPause(request: HttpRequest): Promise<HttpResponse> {
    for (;;) {
      while (streak !== undefined && clock.monotonic() < streak.until) {
        const leftMs = streak.until - clock.monotonic()
        if (leftMs > request.timeoutMs) {
          const { status, headers } = streak.response
          return { status, headers: { ...headers, 'retry-after': `${Math.ceil(leftMs / 1000)}` }, text: '' }
        }
        await clock.sleep(leftMs, request.signal)
      }
      const sentAt = clock.monotonic()
      const response = await http.send(request)
      if (!updatePause(response, sentAt)) return response
    }
  }

  return {
    send: (request) =>
      request.beforeSend === undefined ? runLimited(() => sendAfterPause(request)) : http.send(request),
    close: () => http.close(),
  }
}
