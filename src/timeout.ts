import type { Clock, Context } from './context.ts'

/** Until when something may go on, such as a command with `--timeout`: what starts meanwhile gets what is left of it. */
export interface Deadline {
  /** The whole time, in milliseconds; infinite without `--timeout`. */
  readonly timeoutMs: number
  /** What is left of it, in milliseconds; negative once it is over. */
  leftMs(): number
  /** That of a step that begins now, and takes this long at most. */
  atMost(limitMs: number): Deadline
}

/** What starts when the time is almost up may still take this long, in milliseconds, such as the last poll. */
export const MIN_STEP_MS = 2000
/** How long a person waits before a message says what for, in milliseconds. */
export const NOTICE_DELAY_MS = 2000

/** Begins now. */
export function deadlineIn(timeoutMs: number, clock: Pick<Clock, 'monotonic'>): Deadline {
  const end = clock.monotonic() + timeoutMs
  const leftMs = () => end - clock.monotonic()
  return { timeoutMs, leftMs, atMost: (limitMs) => deadlineIn(Math.min(limitMs, leftMs()), clock) }
}

/** That of a command that begins now. @param timeout in seconds */
export function deadlineOf(
  { timeout = Number.POSITIVE_INFINITY }: { readonly timeout?: number },
  clock: Pick<Clock, 'monotonic'>,
): Deadline {
  return deadlineIn(timeout * 1000, clock)
}

/**
 * How long what starts now may take, in milliseconds, besides its own limit: what is left of `--timeout`, and 2 seconds at the
 * least. Computed once, when it starts.
 */
export function timeFor({ leftMs }: Deadline): number {
  return Math.max(MIN_STEP_MS, leftMs())
}

/** How the delays between tries grow. */
export interface Delays {
  /** In milliseconds: after the first try, and at the most. */
  readonly first: number
  readonly max: number
  /** What each is times the one before: 2 if absent. */
  readonly factor?: number
  /** How much of a delay is left to chance: all of it if absent. */
  readonly jitter?: number
}

/** Between tries of a request. */
export const REQUEST_DELAYS: Delays = { first: 500, max: 8000 }

/**
 * The delay before the next try, in milliseconds: exponential with jitter, so that clients that failed together don't try again
 * together (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 *
 * @param attempts that there were, from 1
 */
export function backoff(
  attempts: number,
  { first, max, factor = 2, jitter = 1 }: Delays,
  { fraction }: Pick<Context['random'], 'fraction'> = { fraction: () => 1 },
): number {
  return Math.min(max, first * factor ** (attempts - 1)) * (1 - jitter + jitter * fraction())
}
