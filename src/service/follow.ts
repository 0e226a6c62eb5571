import type { Context } from '../context.ts'
import { CliError, type ErrorCode, Exit, InterruptedError } from '../errors.ts'
import { formatDuration } from '../terminal/time.ts'
import { backoff, type Deadline, type Delays, stepTimeout } from '../timeout.ts'
import type { RequestOptions } from './client.ts'
import { OtherAnswerError } from './problems.ts'

/** How a thing at the service is. */
export interface Described {
  readonly status: string
  /** What else counts as news, such as counts. */
  readonly details?: string
  /** For people, as the rest of a sentence. */
  readonly text: string
  /** Nothing follows; with the error that the command ends with, unless that is success. */
  readonly end?: { readonly error?: CliError | undefined }
}

/** What a follower sees: how the thing is at first and after each change; that it is still so; a problem; the end. */
export interface FollowEvent<T> {
  readonly event: 'status' | 'waiting' | 'warning' | 'done'
  readonly value: T
  readonly text: string
  readonly error?: CliError | undefined
}

export interface FollowOptions<T> {
  readonly deadline: Deadline
  /** Gets it once, with these options for its request. */
  readonly fetch: (options: RequestOptions) => Promise<T>
  readonly describe: (value: T) => Described
  /** The delays between requests: each is 1.5 times the previous one, after as many requests as `steady` says. */
  readonly delays: Delays & { readonly steady?: number }
  /** How it was before the first request, if the service has answered already: then already that one may fail. */
  readonly known?: T
  /** The code, the name of the thing and the hint of the error when the time is up: exit 8. */
  readonly timeout: (value: T) => { readonly code: ErrorCode; readonly what: string; readonly hint: string }
}

/** After this long without a response, an error is final. */
const MAX_SILENCE_MS = 15 * 60_000
/** After this long a watch asks again, even if the service asked to wait longer: someone is watching. */
const LONGEST_PAUSE_MS = 5 * 60_000
/** Timers may fire that much early. */
const EARLY_MS = 1

/**
 * Follows a thing at the service until it ends or the time is up. Yields each change and each problem, and once a minute that
 * nothing has changed. Delays grow and have jitter, so that many clients spread out, and `Retry-After` is honored up to five
 * minutes.
 *
 * The first value is asked for as any other request is. After that a `CliError` with exit 7 is a problem that another request
 * follows, unless the answer was about another thing.
 *
 * @returns the thing as last seen, with the error if it didn't end well: its own, or exit 8 when the time is up
 * @throws CliError any other of a request, and one after 15 minutes without a response; the reason of the interrupt signal
 */
export async function* follow<T extends object>(
  { fetch, describe, delays, known, timeout, deadline }: FollowOptions<T>,
  { clock, random, interrupts }: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<FollowEvent<T>, { readonly value: T; readonly error?: CliError | undefined }, void> {
  const news = newsOnly(clock)
  let last = known && { value: known, seen: describe(known), at: clock.monotonic() }

  for (let requests = 1; ; requests++) {
    const once = last === undefined ? {} : { maxAttempts: 1 }
    const answer = await fetch({ ...once, timeoutMs: stepTimeout(deadline) }).catch((error: unknown) => {
      interrupts.signal.throwIfAborted()
      if (mayPass(error)) return error
      throw error
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
    if (left <= EARLY_MS) {
      const { code, what, hint } = timeout(value)
      const failed = failure ? `; the last request failed: ${failure.message}` : ''
      const message = `timed out after ${formatDuration(deadline.timeoutMs / 1000)}: ${what} is still in progress (${seen.text})${failed}`
      return { value, error: new CliError(code, message, { hint, cause: failure }) }
    }
    const pauseMs = Math.min(failure?.retryAfterMs ?? 0, LONGEST_PAUSE_MS)
    const grown = Math.max(1, requests - Math.max(0, (delays.steady ?? 0) - 1))
    const delay = backoff(grown, { factor: 1.5, jitter: 0.25, ...delays }, random)
    const nextInMs = Math.min(Math.max(delay, pauseMs), left)
    if (failure !== undefined) {
      const text = `${failure.message}; retrying in ${formatDuration(nextInMs / 1000)}`
      const message = news(text, text)
      if (message !== undefined) yield { event: 'warning', value, text: message, error: failure }
    }
    await clock.sleep(nextInMs, interrupts.signal)
  }
}

/** Whether another request may get an answer. */
function mayPass(error: unknown): error is CliError {
  return error instanceof CliError && error.exit === Exit.unavailable && !(error instanceof OtherAnswerError)
}

/** A watch without news says after this long that it continues: some CI systems end a job that is silent. */
const HEARTBEAT_MS = 60_000

/**
 * Picks what a log of a watch needs: each change and, while nothing changes, a line every minute.
 *
 * @returns a function of a state and its message: the message if the state is new, with the time since the start if it is
 *   the same after a minute, undefined if there is nothing to say
 */
export function newsOnly(clock: Pick<Context['clock'], 'monotonic'>) {
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
 * Shows each event before asking for the next; returns what the generator returns. What a person interrupts says how to
 * continue.
 */
export async function drain<Event, Result>(
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
