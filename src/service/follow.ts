import type { Context } from '../context.ts'
import { CliError, type ErrorCode, Exit, InterruptedError } from '../errors.ts'
import { formatDuration } from '../terminal/time.ts'
import { type BackoffOptions, backoffMs, type Deadline, remainingMsOrMin } from '../timeout.ts'
import type { RequestLimits } from './client.ts'
import { WrongResourceError } from './problems.ts'

/** State of a followed resource (a claim or an import) in one response. */
export interface PolledResourceStatus {
  readonly status: string
  /** Further state besides `status` whose change is reported, such as counts of contacts. */
  readonly details?: string
  /** The resource's state in words, for messages to the user. */
  readonly text: string
  /** Present only in a final state; `error` is undefined on success. */
  readonly end?: { readonly error?: CliError | undefined }
}

/**
 * Event of `followResource`: `status` for a new status, `waiting` while the status stays the same, `warning` for a failed request,
 * `done` for a final state.
 */
export interface FollowEvent<Resource> {
  readonly event: 'status' | 'waiting' | 'warning' | 'done'
  readonly value: Resource
  readonly text: string
  readonly error?: CliError | undefined
}

export interface FollowOptions<T> {
  readonly deadline: Deadline
  readonly fetch: (options: RequestLimits) => Promise<T>
  readonly describe: (value: T) => PolledResourceStatus
  /** Delays between requests, before jitter: the first `steady` delays are equal, then each grows by `factor` (default: 1.5). */
  readonly delays: BackoffOptions & { readonly steady?: number }
  /** Resource from an earlier response. With `known`, a temporary failure (exit 7) of the first request doesn't end the watch. */
  readonly known?: T
  /** Returns parts of the error for a passed deadline (exit 8): its code, the name of the resource, and its hint. */
  readonly timeout: (value: T) => { readonly code: ErrorCode; readonly what: string; readonly hint: string }
}

/**
 * Maximum milliseconds since the last successful response (or the start of the watch); after that, a failed request ends the watch.
 */
const MAX_SILENCE_MS = 15 * 60_000
/** Maximum milliseconds to wait for `Retry-After`, even if it asks for more: a user may be watching and expects news. */
const MAX_PAUSE_MS = 5 * 60_000
/**
 * Milliseconds by which a timer may fire early. A deadline this close counts as passed; otherwise one more request would follow.
 */
const TIMER_TOLERANCE_MS = 1

/**
 * Polls a resource until its state is final or the deadline passes. Yields changes, failed requests, and reminders while nothing
 * changes.
 *
 * Without `known` (the resource from an earlier response), the first request has the client's usual retries, and its failure ends
 * the watch. Any other request has one attempt, because the next poll is its retry.
 *
 * @returns the resource as last received; `error`: reason for a failed final state, or an error with exit 8 after the deadline
 * @throws CliError a failure with an exit other than 7; a `WrongResourceError`; any failure of the first request without `known`,
 *   or after 15 minutes without a successful response; the interrupt's reason
 */
export async function* followResource<T extends object>(
  { fetch, describe, delays, known, timeout, deadline }: FollowOptions<T>,
  { clock, random, interrupts }: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<FollowEvent<T>, { readonly value: T; readonly error?: CliError | undefined }, void> {
  const throttle = createThrottledProgressFormatter(clock)
  let last = known && { value: known, seen: describe(known), at: clock.monotonic() }

  for (let requests = 1; ; requests++) {
    const once = last === undefined ? {} : { maxAttempts: 1 }
    const answer = await fetch({ ...once, timeoutMs: remainingMsOrMin(deadline) }).catch((error: unknown) => {
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
      const message = throttle(`${status} ${details}`, text)
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
      const message = throttle(text, text)
      if (message !== undefined) yield { event: 'warning', value, text: message, error: failure }
    }
    await clock.sleep(nextInMs, interrupts.signal)
  }
}

/** Minimum milliseconds between reminders while nothing changes; without output, some CI systems end a job. */
const HEARTBEAT_MS = 60_000

/**
 * Creates a throttle for the messages of a watch: a message with a new state passes at once, others at most once a minute.
 *
 * @returns a function that returns the message to show, or undefined to show nothing; adds the elapsed time, such as "(5 min so
 *   far)", to the message of an unchanged state
 */
export function createThrottledProgressFormatter(clock: Pick<Context['clock'], 'monotonic'>) {
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
 * Passes the events of a generator to `show`, waits for each, and returns the generator's return value. If an interrupt ends the
 * generator or `show`, adds the hint to run the same command again.
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
