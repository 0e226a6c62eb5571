import type { Context } from '../context.ts'
import { CliError, type ErrorCode, Exit, InterruptedError } from '../errors.ts'
import { formatDuration } from '../terminal/time.ts'
import { type BackoffOptions, backoffMs, type Deadline, stepTimeoutMs } from '../timeout.ts'
import type { RequestOptions } from './client.ts'
import { WrongResourceError } from './problems.ts'

/** State of a followed resource (a claim or an import) in one response. */
export interface ResourceState {
  readonly status: string
  /** Further text whose change is reported, such as counts of contacts. */
  readonly details?: string
  /** State for the user, as the rest of a sentence. */
  readonly text: string
  /** Present if the state is final; `error` is the command's error, undefined on success. */
  readonly end?: { readonly error?: CliError | undefined }
}

/** An event: `status` (first or changed status), `waiting` (other news or a reminder), `warning` (failed request) or `done`. */
export interface FollowEvent<T> {
  readonly event: 'status' | 'waiting' | 'warning' | 'done'
  readonly value: T
  readonly text: string
  readonly error?: CliError | undefined
}

/** The resource to follow, and how often and how long. */
export interface FollowOptions<T> {
  readonly deadline: Deadline
  /** Requests the resource once. */
  readonly fetch: (options: RequestOptions) => Promise<T>
  readonly describe: (value: T) => ResourceState
  /** Delays between requests, each 1.5 times the previous one; the first `steady` delays are equal. */
  readonly delays: BackoffOptions & { readonly steady?: number }
  /** Resource from an earlier response. With a known resource, even the first request may fail without ending the watch. */
  readonly known?: T
  /** Returns code, resource name and hint for the error after the deadline, exit 8. */
  readonly timeout: (value: T) => { readonly code: ErrorCode; readonly what: string; readonly hint: string }
}

/** Maximum milliseconds without a successful response before a failed request ends the watch. */
const MAX_SILENCE_MS = 15 * 60_000
/** Maximum milliseconds for which `Retry-After` is honored, because a user watches the output. */
const MAX_PAUSE_MS = 5 * 60_000
/** Milliseconds by which a timer may fire early, so a deadline this close is treated as reached. */
const TIMER_TOLERANCE_MS = 1

/**
 * Polls a resource until its state is final or the deadline passes. Yields each change, each failed request, and once a minute a
 * reminder while nothing changes. Delays grow and have jitter, so that many clients spread out; `Retry-After` is honored up to five
 * minutes.
 *
 * The first request has the client's usual retries. After the first response a `CliError` with exit 7 is reported, and polling
 * continues, unless the response was about another resource.
 *
 * @returns the resource as last received, with the error of its final state, or an error with exit 8 after the deadline
 * @throws CliError any other failure of a request, and every failure after 15 minutes without a response; the interrupt's reason
 */
export async function* followResource<T extends object>(
  { fetch, describe, delays, known, timeout, deadline }: FollowOptions<T>,
  { clock, random, interrupts }: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<FollowEvent<T>, { readonly value: T; readonly error?: CliError | undefined }, void> {
  const news = createMessageThrottle(clock)
  let last = known && { value: known, seen: describe(known), at: clock.monotonic() }

  for (let requests = 1; ; requests++) {
    const once = last === undefined ? {} : { maxAttempts: 1 }
    const answer = await fetch({ ...once, timeoutMs: stepTimeoutMs(deadline) }).catch((error: unknown) => {
      interrupts.signal.throwIfAborted()
      if (!(error instanceof CliError) || error instanceof WrongResourceError) throw error
      if (error.exit !== Exit.unavailable) throw error
      return error
    })
    const failure = answer instanceof CliError ? answer : undefined
    if (answer instanceof CliError) {
      if (last === undefined || clock.monotonic() - last.at > MAX_SILENCE_MS) throw answer
    } else {
      const seen = describe(answer)
      const { status, details = '', text } = seen
      const isFirst = last === undefined
      const isChanged = last?.seen.status !== status
      last = { value: answer, seen, at: clock.monotonic() }
      const message = news(`${status} ${details}`, text)
      if (message !== undefined && (isFirst || seen.end === undefined))
        yield { event: isChanged ? 'status' : 'waiting', value: answer, text: message }
      if (seen.end !== undefined) {
        const { error } = seen.end
        yield { event: 'done', value: answer, text, error }
        return { value: answer, error }
      }
    }
    const { value, seen } = last
    const left = deadline.remainingMs()
    if (left <= TIMER_TOLERANCE_MS) {
      const { code, what, hint } = timeout(value)
      const failed = failure ? `; the last request failed: ${failure.message}` : ''
      const message = `timed out after ${formatDuration(deadline.timeoutMs / 1000)}: ${what} is still in progress (${seen.text})${failed}`
      return { value, error: new CliError(code, message, { hint, cause: failure }) }
    }
    const pauseMs = Math.min(failure?.retryAfterMs ?? 0, MAX_PAUSE_MS)
    const grown = Math.max(1, requests - Math.max(0, (delays.steady ?? 0) - 1))
    const delay = backoffMs(grown, { factor: 1.5, jitter: 0.25, ...delays }, random)
    const nextInMs = Math.min(Math.max(delay, pauseMs), left)
    if (failure !== undefined) {
      const text = `${failure.message}; retrying in ${formatDuration(nextInMs / 1000)}`
      const message = news(text, text)
      if (message !== undefined) yield { event: 'warning', value, text: message, error: failure }
    }
    await clock.sleep(nextInMs, interrupts.signal)
  }
}

/** Milliseconds between reminders while nothing changes; some CI systems end a job that prints nothing. */
const HEARTBEAT_MS = 60_000

/**
 * Creates a filter for the messages of a watch: passes each change and, while nothing changes, one message a minute.
 *
 * @returns a function that takes the state and a message, and returns the message if the state is new, or the message with the
 *   elapsed time if the state hasn't changed for a minute, else undefined
 */
export function createMessageThrottle(clock: Pick<Context['clock'], 'monotonic'>) {
  const started = clock.monotonic()
  let last: { state: string; at: number } | undefined
  return (state: string, message: string): string | undefined => {
    const now = clock.monotonic()
    const isNew = state !== last?.state
    if (!isNew && now - (last?.at ?? now) < HEARTBEAT_MS) return undefined
    last = { state, at: now }
    return isNew ? message : `${message} (${formatDuration((now - started) / 1000)} so far)`
  }
}

/**
 * Passes each event of a generator to `show`, one at a time, and returns the generator's return value. If an interrupt ends the
 * generator, adds the hint how to continue to the error.
 */
export async function showEvents<Event, Result>(
  events: AsyncGenerator<Event, Result, void>,
  show: (event: Event) => Promise<void> | undefined,
): Promise<Result> {
  try {
    for (;;) {
      const step = await events.next()
      if (step.done) return step.value
      await show(step.value)
    }
  } catch (error) {
    if (!(error instanceof InterruptedError)) throw error
    throw error.with({ hint: 'nothing is lost; to continue, run the same command again' })
  }
}
