import type { Context } from '../context.ts'
import { CliError, Exit, InterruptedError } from '../errors.ts'
import { formatDuration } from '../terminal/time.ts'
import { type Timeout, timeFor } from '../timeout.ts'
import type { RequestOptions } from './client.ts'
import { OtherAnswerError } from './problems.ts'

export interface PollOptions extends Timeout {
  /** The delays between polls, in milliseconds: each is 1.5 times the previous one, after as many polls as `steady` says. */
  readonly delays: { readonly first: number; readonly max: number; readonly steady?: number }
  /** Whether the service has answered already; then its failures are reported from the first one on. */
  readonly isKnown?: boolean
}

/** After this long without a response, an error is final. */
const MAX_SILENCE_MS = 15 * 60_000
/** After this long a watch asks again, even if the service asked to wait longer: someone is watching. */
const LONGEST_PAUSE_MS = 5 * 60_000
/** Timers may fire that much early. */
const EARLY_MS = 1

export type PollEvent<T> =
  | { readonly kind: 'value'; readonly value: T }
  /** `text` says what failed, and when the next poll follows. */
  | { readonly kind: 'failure'; readonly error: CliError; readonly text: string }
  /** `text` says so; `error` is that of the last poll, if it failed. */
  | { readonly kind: 'timeout'; readonly error: CliError | undefined; readonly text: string }

/**
 * Polls until the caller leaves the loop or the time is up. Delays grow and have jitter, so that many clients spread
 * out, and `Retry-After` is honored up to five minutes.
 *
 * @param fetch gets the value once, with these options. The first value is asked for as any other request is; after that, a
 *   `CliError` with exit 7 is reported and followed by another poll, unless the answer was about another thing. Any other error is thrown.
 * @throws CliError of the first request, or of the last one after 15 minutes without a response; the reason of the interrupt
 *   signal
 */
export async function* poll<T>(
  fetch: (options: RequestOptions) => Promise<T>,
  { delays, timeoutMs, since, isKnown }: PollOptions,
  { clock, random, interrupts }: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<PollEvent<T>, void, void> {
  const end = since + timeoutMs
  let lastResponse = isKnown ? clock.monotonic() : undefined
  let delay = delays.first

  for (let polls = 1; ; polls++) {
    const once = lastResponse === undefined ? {} : { maxAttempts: 1 }
    let pauseMs = 0
    let failure: CliError | undefined
    try {
      const value = await fetch({ ...once, timeoutMs: timeFor({ timeoutMs, since }, clock) })
      lastResponse = clock.monotonic()
      yield { kind: 'value', value }
    } catch (error) {
      interrupts.signal.throwIfAborted()
      const mayPass =
        error instanceof CliError && error.exit === Exit.unavailable && !(error instanceof OtherAnswerError)
      const isSilent = clock.monotonic() - (lastResponse ?? Number.NEGATIVE_INFINITY) > MAX_SILENCE_MS
      if (!mayPass || isSilent) throw error
      failure = error
      pauseMs = Math.min(error.retryAfterMs ?? 0, LONGEST_PAUSE_MS)
    }
    const left = end - clock.monotonic()
    if (left <= EARLY_MS) {
      const text = `timed out after ${formatDuration(timeoutMs / 1000)}`
      yield { kind: 'timeout', error: failure, text }
      return
    }
    if (failure !== undefined) {
      const retryInMs = Math.min(Math.max(delay, pauseMs), left)
      const text = `${failure.message}; retrying in ${formatDuration(retryInMs / 1000)}`
      yield { kind: 'failure', error: failure, text }
    }
    // 75 to 100% of the delay: never longer than announced.
    const jittered = delay * (0.75 + 0.25 * random.fraction())
    await clock.sleep(Math.min(Math.max(jittered, pauseMs), left), interrupts.signal)
    if (polls >= (delays.steady ?? 0)) delay = Math.min(delay * 1.5, delays.max)
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
