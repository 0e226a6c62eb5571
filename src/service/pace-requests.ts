import { Readable } from 'node:stream'
import {
  type Clock,
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  TransportError,
} from '../context.ts'
import { formatDuration } from '../terminal/duration.ts'
import { createTurns } from '../turns.ts'
import { MAX_RETRY_AFTER_MS, parseRetryAfter, tooLate, tooLimited } from './retry.ts'

/** The first pause after a refusal that doesn't say for how long; each that leads to nothing doubles it … */
const FIRST_PAUSE_MS = 1000
/** … up to this. */
const MAX_PAUSE_MS = 30_000
/** After this long of refusals the last one is the answer, for all requests. */
const MAX_WAIT_MS = 5 * 60_000
/** After so many refusals in a row for longer than anybody waits, no request is sent anymore. */
const MAX_LONG_REFUSALS = 5
/** A longer pause is worth a word of its own to those who have no time for it. */
const LONG_PAUSE_MS = 10_000
/** A shorter wait is part of a normal rate limit. */
const MIN_TOLD_MS = 2000

/** What the service last said about its limit: how many more requests it takes, until when. */
interface Window {
  left: number
  /** On `clock.monotonic()`; undefined if no response has said so. */
  until: number | undefined
}

/** That the service takes no requests: it answered 429, or 503 with `Retry-After`, and accepted none since. */
interface Refusal {
  readonly response: HttpResponse
  /** When the first request was sent that was refused, on `clock.monotonic()`, like all times here. */
  readonly since: number
  /** How many pauses there were, this one included. */
  readonly pauses: number
  /** No request is sent before. */
  readonly until: number
  /** Whether the other requests get the same answer until then: nobody waits that long. */
  readonly isFinal: boolean
}

export interface PacedTransport extends HttpTransport {
  /**
   * What requests wait for if the service has refused or limited them for two seconds: "too many requests (429), for 70 s"; or
   * why none of them has got an answer for as long.
   */
  heldUp(): string | undefined
}

/**
 * A transport for many requests to one service: at most `concurrent` at once, and no more than its rate limit allows. It
 * heeds `RateLimit` headers (https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/, old and new style) and
 * `Retry-After`, for all requests together, and sends a request that was refused for the rate limit again by itself. While
 * nothing gets through, it sends one at a time, and after five minutes of that all requests fail. One whose turn can't come
 * in time (`latest`) fails at once, with the service's refusal if there was one. Requests that go on with what others began
 * (`goesOn`) come first: otherwise, no work would get to its end while there is more to begin. A request with a step before it is sent
 * (`beforeSend`) doesn't wait here: whoever sends it holds a lock.
 *
 * @param http sends the requests
 */
export function paceRequests(
  http: HttpTransport,
  clock: Pick<Clock, 'monotonic' | 'now' | 'sleep'>,
  { concurrent }: { readonly concurrent: number },
): PacedTransport {
  const inTurn = createTurns(concurrent)
  let window: Window | undefined
  let limit = 1
  let refusal: Refusal | undefined
  let hasAccepted = false
  let longRefusals = 0
  /** Why requests fail, since when, until one gets an answer. */
  let failure: { readonly what: string; readonly since: number } | undefined
  let waiting = 0
  let inFlight = 0
  /** Wakes those who wait for what the next response says. */
  let onResponse: (() => void)[] = []
  /** While requests wait for the next window: since when, and how many have been sent meanwhile. */
  let limited: { readonly since: number; sent: number } | undefined

  /** Waits until another request may be sent, and takes its place. Without one in time, it returns false at once. */
  async function enter({ signal, latest }: HttpRequest): Promise<boolean> {
    const end = latest?.start ?? Number.POSITIVE_INFINITY
    for (;;) {
      signal?.throwIfAborted()
      const now = clock.monotonic()
      const isPaused = refusal !== undefined && now < refusal.until
      if (now >= end || (isPaused && refusal?.isFinal)) return false
      if (window?.until !== undefined && now >= window.until) window = { left: limit, until: undefined }
      // If a pause led to nothing, one request is enough to find out about the next.
      const isProbed = (refusal?.pauses ?? 0) > 1 && inFlight > 0
      if (!isPaused && !isProbed && (window === undefined || window.left > 0)) break
      const freeAt = isPaused ? refusal?.until : window?.until
      if (!isPaused && inFlight > 0) await new Promise<void>((resolve) => onResponse.push(resolve))
      // All responses were without a limit, such as a gateway's errors.
      else if (freeAt === undefined) window = { left: limit, until: undefined }
      else {
        if (!isPaused) limited ??= { since: now, sent: 0 }
        if (freeAt >= end) return false
        await clock.sleep(Math.max(1, freeAt - now), signal)
      }
    }
    if (window !== undefined) window.left -= 1
    if (limited !== undefined) limited.sent += 1
    inFlight += 1
    return true
  }

  /** @param sentAt when the request was sent that got the response */
  function heed(response: HttpResponse, sentAt: number): void {
    const wasOnItsWay = refusal !== undefined && sentAt < refusal.until
    const pauses = (refusal?.pauses ?? 0) + (wasOnItsWay ? 0 : 1)
    const pauseMs = pauseOf(response, pauses, clock.now())
    if (pauseMs === undefined) longRefusals = 0
    // What was sent before the pause says nothing about the time after it.
    if (wasOnItsWay && (pauseMs === undefined || refusal?.isFinal)) return
    if (pauseMs === undefined) {
      hasAccepted = true
      refusal = undefined
      return
    }
    const now = clock.monotonic()
    const since = refusal?.since ?? sentAt
    const isLong = pauseMs > MAX_RETRY_AFTER_MS
    if (isLong) longRefusals += 1
    // It may be for this request alone: others are sent one at a time to find out.
    const isInDoubt = isLong && longRefusals < MAX_LONG_REFUSALS
    const isGivenUp = !isLong && now - since > MAX_WAIT_MS
    const { 'retry-after': _disproved, ...headers } = response.headers
    refusal = {
      response: isGivenUp ? { ...response, headers } : response,
      since,
      pauses: isInDoubt ? Math.max(2, pauses) : pauses,
      until: isInDoubt ? now : Math.max(refusal?.until ?? 0, now + pauseMs),
      isFinal: isGivenUp || (isLong && !isInDoubt),
    }
  }

  function leave(response: HttpResponse | undefined, sentAt: number): void {
    inFlight -= 1
    if (response !== undefined) heed(response, sentAt)
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
    const woken = onResponse
    onResponse = []
    for (const resolve of woken) resolve()
  }

  function noteFailure(what: string | undefined, sentAt: number): void {
    failure = what === undefined ? undefined : { what, since: failure?.since ?? sentAt }
  }

  async function sendNow(request: HttpRequest): Promise<HttpResponse> {
    let response: HttpResponse | undefined
    const sentAt = clock.monotonic()
    try {
      const left = (request.latest?.end ?? Number.POSITIVE_INFINITY) - sentAt
      const answer = await http.send({ ...request, timeoutMs: Math.min(request.timeoutMs, left) })
      response = { ...answer, headers: withRetryAfter(answer, clock.now()) }
      noteFailure(answer.status < 500 ? undefined : unavailable(answer.status), sentAt)
      return response
    } catch (error) {
      if (error instanceof TransportError && error.kind !== 'aborted') noteFailure(error.message, sentAt)
      throw error
    } finally {
      leave(response, sentAt)
    }
  }

  /** Whether requests get through between short pauses: then it's their number that leaves no time. */
  const areLimited = () =>
    hasAccepted &&
    refusal !== undefined &&
    !refusal.isFinal &&
    refusal.until - clock.monotonic() < LONG_PAUSE_MS

  async function sendInTurn(request: HttpRequest): Promise<HttpResponse> {
    const end = request.latest?.start ?? Number.POSITIVE_INFINITY
    const started = clock.monotonic()
    for (;;) {
      if (!(await enter(request))) {
        if (areLimited()) throw tooLimited()
        if (refusal === undefined) throw limited === undefined ? tooLate() : tooLimited()
        return { ...refusal.response, body: Readable.from([]) }
      }
      const response = await sendNow(request)
      if (response.status !== 429) return response
      // Others may get through, if only requests of this kind are refused.
      const isLast = clock.monotonic() - started > MAX_WAIT_MS
      if (refusal?.isFinal) return { ...refusal.response, body: response.body }
      const { 'retry-after': retryAfter } = response.headers
      if ((parseRetryAfter(retryAfter, clock.now()) ?? 0) > MAX_RETRY_AFTER_MS) return response
      const isOver = (refusal?.until ?? 0) >= end
      if (isOver && areLimited()) throw tooLimited()
      if (isLast || isOver) return response
      for await (const _piece of response.body);
    }
  }

  return {
    async send(request) {
      if (request.beforeSend !== undefined) return http.send(request)
      waiting += 1
      try {
        return await inTurn(() => sendInTurn(request), request.goesOn)
      } finally {
        waiting -= 1
        if (waiting === 0) limited = undefined
      }
    },
    close: () => http.close(),
    heldUp() {
      const now = clock.monotonic()
      const told =
        refusal !== undefined && waiting > 0 ? refusalText(refusal) : (failure ?? limitText(limited, now))
      const ms = now - (told?.since ?? 0)
      return told === undefined || ms < MIN_TOLD_MS
        ? undefined
        : `${told.what}, for ${formatDuration(ms / 1000, 'short')}`
    },
  }
}

function refusalText({ response: { status }, since }: Refusal) {
  return { what: status === 429 ? 'too many requests (429)' : unavailable(status), since }
}

/** The limit as it was measured: what the service says of it doesn't always tell for how long. */
function limitText(limited: { readonly since: number; readonly sent: number } | undefined, now: number) {
  if (limited === undefined || now <= limited.since) return undefined
  const { since, sent } = limited
  const aSecond = (sent * 1000) / (now - since)
  const rate = aSecond >= 1 ? `${Math.round(aSecond)} a second` : `${Math.round(aSecond * 60)} a minute`
  return { what: `its rate limit (${rate})`, since }
}

const unavailable = (status: number) => `the service is unavailable (${status})`

/**
 * How long everyone waits after this response, in milliseconds; undefined if it isn't a refusal.
 *
 * @param pauses how many pauses there were since a request was accepted, with this one
 */
function pauseOf({ status, headers }: HttpResponse, pauses: number, now: number): number | undefined {
  if (status !== 429 && status !== 503) return undefined
  const asked = parseRetryAfter(headers['retry-after'], now) ?? readLimit(headers, now)?.resetMs
  const grown = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (pauses - 1))
  // An end that is over already says nothing.
  return asked || (status === 429 ? grown : undefined)
}

/** The headers of a response. One that refuses for the rate limit says in `Retry-After` how long that lasts, if it's known. */
function withRetryAfter({ status, headers }: HttpResponse, now: number): HttpResponse['headers'] {
  const { resetMs = 0 } = (status === 429 && readLimit(headers, now)) || {}
  // A longer time was cut.
  const isKnown = resetMs > 0 && resetMs < MAX_RETRY_AFTER_MS
  return isKnown ? { 'retry-after': String(Math.ceil(resetMs / 1000)), ...headers } : headers
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
