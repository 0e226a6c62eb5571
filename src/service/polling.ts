import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'

export interface PollOptions {
  /** The first pause, in milliseconds; later ones grow by half up to `maxMs`. */
  readonly firstMs: number
  readonly maxMs: number
  /** How long to go on at most, in milliseconds; undefined: until the caller stops. */
  readonly timeoutMs: number | undefined
}

export const USUAL_PAUSES = { firstMs: 2_000, maxMs: 30_000 } as const

/** Without any answer for this long, what is asked is taken to be gone rather than late, in milliseconds. */
const SILENCE_MS = 15 * 60_000

/** A longer Retry-After is not waited for while something is followed, in milliseconds: it is asked again sooner. */
const LONGEST_PAUSE_MS = 5 * 60_000

export type PollEvent<T> =
  | { readonly kind: 'value'; readonly value: T }
  /** The answer could not be had this time; the next try comes in `nextMs`. */
  | { readonly kind: 'problem'; readonly error: CliError; readonly nextMs: number }
  /** The time that was allowed is over. */
  | { readonly kind: 'timeout' }

/**
 * Asks again and again: pauses grow and jitter, so that many pollers spread; a Retry-After is heeded up to five minutes; a network
 * that comes and goes is survived. The caller leaves the loop when it has seen enough.
 *
 * @param fetch one question. A `CliError` of exit 7 is survived, except on the first try; all else is passed on.
 * @throws CliError of the last try, after a long silence; the reason of the interrupt signal.
 */
export async function* poll<T>(
  fetch: () => Promise<T>,
  options: PollOptions,
  context: Pick<Context, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<PollEvent<T>, void, void> {
  const { clock, random, interrupts } = context
  const started = clock.monotonic()
  let heard: number | undefined
  let pause = Math.min(options.firstMs, options.maxMs)

  for (;;) {
    let retryAfterMs = 0
    try {
      const value = await fetch()
      heard = clock.monotonic()
      yield { kind: 'value', value }
    } catch (error) {
      interrupts.signal.throwIfAborted()
      const survivable = error instanceof CliError && error.exit === Exit.unavailable
      if (!survivable || heard === undefined || clock.monotonic() - heard > SILENCE_MS) throw error
      retryAfterMs = Math.min(error.retryAfterMs ?? 0, LONGEST_PAUSE_MS)
      yield { kind: 'problem', error, nextMs: Math.max(pause, retryAfterMs) }
    }
    const left =
      options.timeoutMs === undefined
        ? Number.POSITIVE_INFINITY
        : started + options.timeoutMs - clock.monotonic()
    if (left <= 0) {
      yield { kind: 'timeout' }
      return
    }
    // Between three quarters of the pause and all of it: never longer than what was said.
    const jittered = pause * (0.75 + 0.25 * random.fraction())
    await clock.sleep(Math.min(Math.max(jittered, retryAfterMs), left), interrupts.signal)
    pause = Math.min(pause * 1.5, options.maxMs)
  }
}

/** Shows each event of a watch, the next not before this one is shown, and gives what the watch came to. */
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
