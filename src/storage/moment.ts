import type { Clock } from '../context.ts'

/** A moment that is kept in a file, on both clocks: the wall clock, which can jump, and the one that counts since the machine's start. */
export interface Moment {
  /** Wall-clock milliseconds. */
  readonly wall: number
  /** Seconds since the start of the machine. */
  readonly sinceBoot: number
  /** Names that start, where the system has a name for it. */
  readonly boot: string | null
}

/** Now, on both clocks. */
export function moment(clock: Clock): Moment {
  const { seconds, boot } = clock.sinceBoot()
  return { wall: clock.now(), sinceBoot: seconds, boot: boot ?? null }
}

/**
 * Seconds that have passed since a moment. On the same start of the machine the wall clock is not asked, so moving it
 * changes nothing. Otherwise at least the machine's running time has passed; a wall clock behind the moment says nothing
 * at all, which is as if everything had expired.
 */
export function secondsSince(then: Moment, clock: Clock): number {
  const now = moment(clock)
  const running = now.sinceBoot - then.sinceBoot
  const wall = (now.wall - then.wall) / 1000
  if (then.boot !== null && then.boot === now.boot) return running < 0 ? Number.POSITIVE_INFINITY : running
  if (wall < 0) return Number.POSITIVE_INFINITY
  // Another start of the machine, or a system that does not name its starts.
  const restarted = then.boot !== null || running < 0
  return Math.max(wall, restarted ? now.sinceBoot : running)
}
