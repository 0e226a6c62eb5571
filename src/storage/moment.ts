import type { Clock } from '../context.ts'

/** A moment on two clocks: the wall clock, which can jump, and the time since boot. */
export interface Moment {
  /** Wall-clock milliseconds. */
  readonly wall: number
  /** Seconds since boot. */
  readonly sinceBoot: number
  /** Identifies the boot, if the system has an id for it. */
  readonly boot: string | null
}

/** Now, on both clocks. */
export function moment(clock: Clock): Moment {
  const { seconds, boot } = clock.sinceBoot()
  return { wall: clock.now(), sinceBoot: seconds, boot: boot ?? null }
}

/**
 * Seconds that have passed since a moment. Within the same boot, the wall clock isn't used, so moving it changes nothing.
 * After another boot, at least the time since boot has passed; infinite if the wall clock is behind the moment.
 */
export function secondsSince(then: Moment, clock: Clock): number {
  const now = moment(clock)
  const running = now.sinceBoot - then.sinceBoot
  const wall = (now.wall - then.wall) / 1000
  if (then.boot !== null && then.boot === now.boot) return running < 0 ? Number.POSITIVE_INFINITY : running
  return wall < 0 ? Number.POSITIVE_INFINITY : Math.max(wall, leastSecondsSince(then, clock))
}

/** Seconds that have passed at least, whatever the wall clock says: since the moment, or since a boot that was later. */
export function leastSecondsSince(then: Moment, clock: Clock): number {
  const now = moment(clock)
  const running = now.sinceBoot - then.sinceBoot
  // Not every system has ids for boots.
  return then.boot === now.boot && running >= 0 ? running : now.sinceBoot
}
