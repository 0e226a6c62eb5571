import type { Clock } from './context.ts'

/** What `--timeout` gives a command: what starts meanwhile gets what is left of it. */
export interface Timeout {
  /** Milliseconds from the start; infinite without `--timeout`. */
  readonly timeoutMs: number
  /** The start, on `clock.monotonic()`, which is that of the command. */
  readonly since: number
}

/** What starts when the time is almost up may still take this long, in milliseconds, such as the last poll. */
export const SHORTEST_MS = 2000
/** How long a person waits before a message says what for, in milliseconds. */
export const SILENT_MS = 2000

/** The timeout of a command that begins now. @param timeout in seconds */
export function timeoutOf(
  { timeout = Number.POSITIVE_INFINITY }: { readonly timeout?: number },
  clock: Pick<Clock, 'monotonic'>,
): Timeout {
  return { timeoutMs: timeout * 1000, since: clock.monotonic() }
}

/**
 * How long what starts now may take, in milliseconds, besides its own limit: what is left of `--timeout`, and 2 seconds at the
 * least. Computed once, when it starts.
 */
export function timeFor({ timeoutMs, since }: Timeout, clock: Pick<Clock, 'monotonic'>): number {
  return Math.max(SHORTEST_MS, since + timeoutMs - clock.monotonic())
}
