import type { Clock, Context } from './context.ts'

/** Time limit of a command or of one of its steps. */
export interface Deadline {
  /** Milliseconds from the start of the command or step to its deadline; Infinity without a limit. */
  readonly timeoutMs: number
  /** Returns the remaining milliseconds; negative after the deadline. */
  remainingMs(): number
  /** Returns the deadline of a step that starts now: in `limitMs` milliseconds, but no later than this deadline. */
  limitedTo(limitMs: number): Deadline
}

/** Minimum timeout of a step in milliseconds, even after the deadline of its command (see `remainingMsOrMin`). */
export const MIN_REMAINING_MS = 2000
/** Milliseconds of waiting after which a notice tells the user what the command waits for. */
export const NOTICE_DELAY_MS = 2000

export function createDeadline(timeoutMs: number, clock: Pick<Clock, 'monotonic'>): Deadline {
  const end = clock.monotonic() + timeoutMs
  const remainingMs = () => end - clock.monotonic()
  return {
    timeoutMs,
    remainingMs,
    limitedTo: (limitMs) => createDeadline(Math.min(limitMs, remainingMs()), clock),
  }
}

/** Creates the deadline of a command that begins now. @param timeout value of `--timeout` in seconds; no limit if undefined */
export function createCommandDeadline(
  { timeout = Number.POSITIVE_INFINITY }: { readonly timeout?: number },
  clock: Pick<Clock, 'monotonic'>,
): Deadline {
  return createDeadline(timeout * 1000, clock)
}

/**
 * Returns the timeout in milliseconds for a step that starts now: the time until the deadline, but at least `MIN_REMAINING_MS`,
 * so that a poll that starts just before the deadline can succeed.
 */
export function remainingMsOrMin({ remainingMs }: Deadline): number {
  return Math.max(MIN_REMAINING_MS, remainingMs())
}

export interface BackoffOptions {
  /** Delay after the first attempt in milliseconds, before jitter. */
  readonly firstMs: number
  /** Maximum delay between attempts in milliseconds, before jitter. */
  readonly maxMs: number
  /** Ratio of each delay to the previous one. Default: 2. */
  readonly factor?: number
  /** Share of each delay that is random, from 0 to 1. Default: 1 ("full jitter"). */
  readonly jitter?: number
}

/** Delays, in milliseconds, between attempts of an HTTP request. */
export const REQUEST_BACKOFF: BackoffOptions = { firstMs: 500, maxMs: 8000 }

/**
 * Returns the delay before the next attempt, in milliseconds: exponential backoff and, with a random source, jitter, so that
 * clients that failed together don't retry together.
 *
 * @param attempts number of attempts so far, from 1
 */
export function backoffMs(
  attempts: number,
  { firstMs, maxMs, factor = 2, jitter = 1 }: BackoffOptions,
  { fraction }: Pick<Context['random'], 'fraction'> = { fraction: () => 1 },
): number {
  return Math.min(maxMs, firstMs * factor ** (attempts - 1)) * (1 - jitter + jitter * fraction())
}
