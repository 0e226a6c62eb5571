import { type Context, TransportError } from '../context.ts'
import { CliError, Exit, InterruptedError } from '../errors.ts'
import { formatDuration } from '../terminal/duration.ts'
import type { RequestOptions } from './client.ts'

/** The options of the watch commands, in seconds. */
export interface PollFlags {
  readonly interval?: number
  readonly timeout?: number
}

export interface PollTimes {
  /** A fixed delay between polls, in milliseconds; undefined: growing delays. */
  readonly intervalMs: number | undefined
  /** When to stop, in milliseconds from the start; undefined: when the caller leaves the loop. */
  readonly timeoutMs: number | undefined
  /** The start, on `clock.monotonic()`, which is that of the command; the first poll if absent. */
  readonly since?: number
}

export interface PollOptions extends PollTimes {
  /**
   * The delays between polls, in milliseconds, unless there is an interval: each is 1.5 times the previous one, after as many
   * polls as `steady` says.
   */
  readonly delays: { readonly first: number; readonly max: number; readonly steady?: number }
  /** Whether the service has answered already; then its failures are reported from the first one on. */
  readonly isKnown?: boolean
}

/** After this long without a response, an error is final. */
const MAX_SILENCE_MS = 15 * 60_000
/** After this long a watch asks again, even if the service asked to wait longer: someone is watching. */
const MAX_RETRY_AFTER_MS = 5 * 60_000
/** A request that begins when the time is almost up may still take this long, such as the last poll. */
const LAST_POLL_MS = 2000
/** A request may take until this long after the start, however short the time is. */
const FIRST_ANSWERS_MS = 5000
/** The first value is asked for this often, as any other request. */
const FIRST_POLLS = 4
/** Timers may fire that much early. */
const EARLY_MS = 1

export interface PollFailure {
  readonly kind: 'failure'
  readonly error: CliError
  /** When the next poll follows. */
  readonly retryInMs: number
}

export interface TimedOut {
  readonly kind: 'timeout'
  /** Of the last poll, if that failed. */
  readonly error?: CliError | undefined
  /** What the service asks to wait, if that is longer than what is left; then this comes at once. */
  readonly retryAfterMs?: number
}

export type PollEvent<T> = { readonly kind: 'value'; readonly value: T } | PollFailure | TimedOut

/** The times of a command that begins now. */
export function pollTimes(
  { interval, timeout }: PollFlags,
  clock: Pick<Context['clock'], 'monotonic'>,
): PollTimes & { readonly since: number } {
  return {
    intervalMs: interval === undefined ? undefined : interval * 1000,
    timeoutMs: timeout === undefined ? undefined : timeout * 1000,
    since: clock.monotonic(),
  }
}

/**
 * The deadline of a request that begins now: the end of the time, or a little later if that is almost up. A short time, as
 * of a script that only looks how a claim stands, leaves the first answers time to cross a slow network.
 */
export function deadlineOf(
  { timeoutMs, since: started }: Pick<PollTimes, 'timeoutMs' | 'since'>,
  clock: Pick<Context['clock'], 'monotonic'>,
): number {
  const since = started ?? clock.monotonic()
  const end = since + (timeoutMs ?? Number.POSITIVE_INFINITY)
  const last = Math.min(end + LAST_POLL_MS, Math.max(end, clock.monotonic() + LAST_POLL_MS))
  return Math.max(since + FIRST_ANSWERS_MS, last)
}

/**
 * Polls until the caller leaves the loop or the time is up. Delays grow and have jitter, so that many clients spread
 * out, and `Retry-After` is honored up to five minutes.
 *
 * @param fetch gets the value once, with these options: the time that is left limits the request. A `CliError` with exit 7 is retried; before a first value three times, if the service answered or broke the connection. Any other error is thrown.
 * @throws CliError of the last poll if the time is up before a first value, or after 15 minutes without a response; the reason of the interrupt signal.
 */
export async function* poll<T>(
  fetch: (options: RequestOptions) => Promise<T>,
  { delays, intervalMs, timeoutMs, since, isKnown }: PollOptions,
  { clock, random, interrupts }: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<PollEvent<T>, void, void> {
  const started = since ?? clock.monotonic()
  let lastResponse = isKnown ? clock.monotonic() : undefined
  let delay = intervalMs ?? delays.first
  const timeLeft = () =>
    timeoutMs === undefined ? Number.POSITIVE_INFINITY : started + timeoutMs - clock.monotonic()

  for (let polls = 1; ; polls++) {
    let pauseMs = 0
    let failure: CliError | undefined
    try {
      const value = await fetch({
        maxAttempts: 1,
        deadline: deadlineOf({ timeoutMs, since: started }, clock),
        goesOn: lastResponse !== undefined,
      })
      lastResponse = clock.monotonic()
      yield { kind: 'value', value }
    } catch (error) {
      interrupts.signal.throwIfAborted()
      const isTemporary = error instanceof CliError && error.exit === Exit.unavailable
      if (!isTemporary) throw error
      const { retryAfterMs = 0 } = error
      pauseMs = Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)
      const left = timeLeft()
      const isUp = left <= EARLY_MS
      const isEarly = !isUp && retryAfterMs > left
      if (lastResponse === undefined) {
        if (isUp) throw unanswered(error, timeoutMs)
        if (isEarly || polls >= FIRST_POLLS || !mayPass(error)) throw error
      } else if (isEarly) {
        yield { kind: 'timeout', error, retryAfterMs }
        return
      } else if (clock.monotonic() - lastResponse > MAX_SILENCE_MS) throw error
      failure = error
      // Without a first value there is nothing to report on yet.
      if (!isUp && lastResponse !== undefined)
        yield { kind: 'failure', error, retryInMs: Math.max(delay, pauseMs) }
    }
    const left = timeLeft()
    if (left <= EARLY_MS && lastResponse !== undefined) {
      yield { kind: 'timeout', error: failure }
      return
    }
    // 75 to 100% of the delay: never longer than announced.
    const jittered = delay * (0.75 + 0.25 * random.fraction())
    await clock.sleep(Math.min(Math.max(jittered, pauseMs), left), interrupts.signal)
    if (polls >= (delays.steady ?? 0)) delay = intervalMs ?? Math.min(delay * 1.5, delays.max)
  }
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

/** Throws the error again, and says how to continue what a person has interrupted. */
export function resumable(error: unknown): never {
  if (!(error instanceof InterruptedError)) throw error
  throw new CliError(error.code, error.exit, error.message, {
    hint: 'nothing is lost; to continue, run the same command again',
  })
}

/** "timed out after 10 minutes", or that the service asks to wait for longer than what was left of them */
export function timedOutAfter(ms: number, retryAfterMs?: number): string {
  const time = formatDuration((retryAfterMs ?? ms) / 1000)
  return retryAfterMs === undefined
    ? `timed out after ${time}`
    : `the service asks to wait ${time}, longer than --timeout allows; try again then`
}

/** What to add to the message of a timeout whose last request failed; else nothing. */
export function lastRequestFailed(error: unknown): string {
  return error instanceof CliError && error.exit !== Exit.refused
    ? `; the last request failed: ${error.message}`
    : ''
}

/** The error if the time is up and the service has said nothing useful at all. */
function unanswered({ code, exit, message, hint, status }: CliError, timeoutMs = 0): CliError {
  return new CliError(code, exit, `${timedOutAfter(timeoutMs)}: ${message}`, { hint, status })
}

export function retryMessage({ error, retryInMs }: PollFailure): string {
  return `${error.message}; retrying in ${formatDuration(retryInMs / 1000)}`
}

/** The events of a watch, with a `status` in front unless the first one is that: what is there at the start. */
export async function* statusFirst<Event extends { readonly event: string }, Result>(
  events: AsyncGenerator<Event, Result, void>,
): AsyncGenerator<Event | (Omit<Event, 'event'> & { readonly event: 'status' }), Result, void> {
  let step = await events.next()
  if (!step.done && step.value.event !== 'status') yield { ...step.value, event: 'status' }
  for (; !step.done; step = await events.next()) yield step.value
  return step.value
}

/** Shows each event before asking for the next; returns what the generator returns. */
export async function drain<Event, Result>(
  events: AsyncGenerator<Event, Result, void>,
  show: (event: Event) => Promise<void> | undefined,
): Promise<Result> {
  for (;;) {
    const step = await events.next()
    if (step.done) return step.value
    await show(step.value)
  }
}

/** Whether an error before the first value may be over soon: not if nothing can be reached, or for a long time. */
function mayPass({ status, retryAfterMs = 0, cause }: CliError): boolean {
  if (retryAfterMs > MAX_RETRY_AFTER_MS) return false
  return status !== undefined || (cause instanceof TransportError && cause.kind === 'reset')
}
