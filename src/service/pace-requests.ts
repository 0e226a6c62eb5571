import { Readable } from 'node:stream'
import type { Clock, HttpRequest, HttpResponse, HttpTransport } from '../context.ts'
import { createTurns } from '../turns.ts'
import { MAX_RETRY_AFTER_MS, parseRetryAfter, tooLate } from './retry.ts'

/** A service that refuses without saying for how long is left alone for this long. */
const DEFAULT_PAUSE_MS = 1000
/** After this long of refusals the last one is the answer. */
const MAX_WAIT_MS = 5 * 60_000

/** What the service last said about its limit: how many more requests it takes, until when. */
interface Window {
  left: number
  /** On `clock.monotonic()`; undefined if no response has said so. */
  until: number | undefined
}

/**
 * A transport for many requests to one service: at most `concurrent` at once, and no more than its rate limit allows. It
 * heeds `RateLimit` headers (https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/, old and new style) and
 * `Retry-After`, for all requests together, and sends a request that was refused for the rate limit again by itself. One
 * whose turn can't come in time (`latest`) fails at once, with the service's refusal if there was one. A request with a step
 * before it is sent (`beforeSend`) doesn't wait here: whoever sends it holds a lock.
 *
 * @param http sends the requests
 */
export function paceRequests(
  http: HttpTransport,
  clock: Pick<Clock, 'monotonic' | 'now' | 'sleep'>,
  { concurrent }: { readonly concurrent: number },
): HttpTransport {
  const inTurn = createTurns(concurrent)
  let window: Window | undefined
  let limit = 1
  let pausedUntil = 0
  /** The last refusal; no request waits for the end of a long one. */
  let refusal:
    | { readonly response: HttpResponse; readonly until: number; readonly isLong: boolean }
    | undefined
  let inFlight = 0
  /** Wakes those who wait for what the next response says. */
  let onResponse: (() => void)[] = []

  /** Waits until another request may be sent, and takes its place. Without one in time, it returns false at once. */
  async function enter({ signal, latest }: HttpRequest): Promise<boolean> {
    const end = latest?.start ?? Number.POSITIVE_INFINITY
    for (;;) {
      signal?.throwIfAborted()
      const now = clock.monotonic()
      if (now >= end) return false
      if (window?.until !== undefined && now >= window.until) window = { left: limit, until: undefined }
      const isPaused = now < pausedUntil
      if (!isPaused && (window === undefined || window.left > 0)) break
      const freeAt = isPaused ? pausedUntil : window?.until
      if (!isPaused && inFlight > 0) await new Promise<void>((resolve) => onResponse.push(resolve))
      // All responses were without a limit, such as a gateway's errors.
      else if (freeAt === undefined) window = { left: limit, until: undefined }
      else if (freeAt >= end) return false
      else await clock.sleep(Math.max(1, freeAt - now), signal)
    }
    if (window !== undefined) window.left -= 1
    inFlight += 1
    return true
  }

  function leave(response: HttpResponse | undefined): void {
    inFlight -= 1
    const told = response && readLimit(response.headers, clock.now())
    if (told !== undefined) {
      const until = clock.monotonic() + told.resetMs
      const isNew = window === undefined || told.remaining > window.left + inFlight
      limit = Math.max(1, told.limit ?? Math.max(limit, told.remaining))
      // What is on its way may be counted already, or not. The time is rounded up, so the earliest one counts.
      window = {
        left: Math.max(0, told.remaining - inFlight),
        until: isNew ? until : Math.min(until, window?.until ?? until),
      }
    }
    const waiting = onResponse
    onResponse = []
    for (const resolve of waiting) resolve()
  }

  async function sendNow(request: HttpRequest): Promise<HttpResponse> {
    let response: HttpResponse | undefined
    try {
      const left = (request.latest?.end ?? Number.POSITIVE_INFINITY) - clock.monotonic()
      response = await http.send({ ...request, timeoutMs: Math.min(request.timeoutMs, left) })
      return response
    } finally {
      leave(response)
    }
  }

  return {
    send(request) {
      if (request.beforeSend !== undefined) return http.send(request)
      const end = request.latest?.start ?? Number.POSITIVE_INFINITY
      return inTurn(async () => {
        const started = clock.monotonic()
        for (;;) {
          // Nobody waits that long, so the others fail as well, without bothering the service.
          const isPointless = refusal?.isLong && clock.monotonic() < refusal.until
          if (isPointless || !(await enter(request))) {
            if (refusal === undefined) throw tooLate()
            return { ...refusal.response, body: Readable.from([]) }
          }
          const response = await sendNow(request)
          const now = clock.monotonic()
          const pauseMs = pauseOf(response, clock.now())
          if (pauseMs === undefined) {
            if (refusal !== undefined && now >= refusal.until) refusal = undefined
            return response
          }
          const until = now + pauseMs
          refusal = { response, until, isLong: pauseMs > MAX_RETRY_AFTER_MS }
          if (refusal.isLong) return response
          pausedUntil = Math.max(pausedUntil, until)
          const isLast = now - started > MAX_WAIT_MS || pausedUntil >= end
          if (response.status !== 429 || isLast) return response
          for await (const _piece of response.body);
        }
      })
    },
    close: () => http.close(),
  }
}

/** How long the service asks everyone to wait, in milliseconds; undefined if it doesn't. */
function pauseOf({ status, headers }: HttpResponse, now: number): number | undefined {
  if (status !== 429 && status !== 503) return undefined
  const asked = parseRetryAfter(headers['retry-after'], now) ?? readLimit(headers, now)?.resetMs
  return asked ?? (status === 429 ? DEFAULT_PAUSE_MS : undefined)
}

interface ToldLimit {
  readonly limit: number | undefined
  readonly remaining: number
  readonly resetMs: number
}

/** A number that big is a time since 1970, not a duration. */
const LATEST_DURATION_S = 1e9

function readLimit(headers: Readonly<Record<string, string>>, now: number): ToldLimit | undefined {
  const item = /;\s*r=(\d+).*?;\s*t=(\d+)/.exec(headers['ratelimit'] ?? '')
  const quota = /;\s*q=(\d+)/.exec(headers['ratelimit-policy'] ?? '')?.[1]
  const read = (name: string) => headers[`ratelimit-${name}`] ?? headers[`x-ratelimit-${name}`]
  const remaining = Number.parseInt(item?.[1] ?? read('remaining') ?? '', 10)
  const reset = Number.parseFloat(item?.[2] ?? read('reset') ?? '')
  const limit = Number.parseInt(quota ?? read('limit') ?? '', 10)
  if (!(remaining >= 0) || !(reset >= 0)) return undefined
  return {
    limit: limit > 0 ? limit : undefined,
    remaining,
    resetMs: Math.min(
      MAX_RETRY_AFTER_MS,
      reset > LATEST_DURATION_S ? Math.max(0, reset * 1000 - now) : reset * 1000,
    ),
  }
}
