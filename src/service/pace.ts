import type { Clock, HttpRequest, HttpResponse, HttpTransport } from '../context.ts'
import { createLimiter } from '../limiter.ts'
import { backoff } from '../timeout.ts'
import { MAX_RETRY_AFTER_MS, parseRetryAfter } from './retry.ts'

/** The pauses after refusals that don't say for how long. All requests share them. */
const PAUSES = { first: 1000, max: 30_000, jitter: 0 } as const
/** A service that has only refused for this long is given up on. */
const MAX_WAIT_MS = 5 * 60_000

/** That the service takes no requests now, as it said in its last response. All times are on `clock.monotonic()`. */
interface Refusal {
  readonly since: number
  readonly until: number
  readonly pauses: number
  readonly response: HttpResponse
}

/**
 * A transport for many requests to one service: at most `concurrent` at once. After a 429, or a 503 with `Retry-After`, all of
 * them pause together as long as the service asks, and what was refused with 429 is sent again. A request that has less time
 * (`timeoutMs`) than the pause takes gets the refusal at once. After five minutes of refusals nothing waits anymore. A request
 * with a step before it is sent (`beforeSend`) never waits: whoever sends it holds a lock.
 */
export function paceRequests(
  http: HttpTransport,
  clock: Pick<Clock, 'monotonic' | 'now' | 'sleep'>,
  { concurrent }: { readonly concurrent: number },
): HttpTransport {
  const inTurn = createLimiter(concurrent)
  let refusal: Refusal | undefined

  /** @returns whether the request is to be sent again */
  function heed(response: HttpResponse, sentAt: number): boolean {
    const { status, headers } = response
    const asked = parseRetryAfter(headers['retry-after'], clock.now())
    if (status !== 429 && (status !== 503 || asked === undefined)) {
      refusal = undefined
      return false
    }
    const { since, until, pauses } = refusal ?? { since: sentAt, until: 0, pauses: 0 }
    if (clock.monotonic() - since > MAX_WAIT_MS || (asked ?? 0) > MAX_RETRY_AFTER_MS) return false
    // What was sent before a pause says nothing about the time after it.
    const isNew = sentAt >= until
    const pauseMs = asked || (isNew ? backoff(pauses + 1, PAUSES) : 0)
    refusal = {
      since,
      until: Math.max(until, clock.monotonic() + pauseMs),
      pauses: pauses + (isNew ? 1 : 0),
      response,
    }
    return status === 429
  }

  async function sendInTurn(request: HttpRequest): Promise<HttpResponse> {
    for (;;) {
      while (refusal !== undefined && clock.monotonic() < refusal.until) {
        const leftMs = refusal.until - clock.monotonic()
        if (leftMs > request.timeoutMs) {
          const { status, headers } = refusal.response
          return { status, headers: { ...headers, 'retry-after': `${Math.ceil(leftMs / 1000)}` }, text: '' }
        }
        await clock.sleep(leftMs, request.signal)
      }
      const sentAt = clock.monotonic()
      const response = await http.send(request)
      if (!heed(response, sentAt)) return response
    }
  }

  return {
    send: (request) =>
      request.beforeSend === undefined ? inTurn(() => sendInTurn(request)) : http.send(request),
    close: () => http.close(),
  }
}
