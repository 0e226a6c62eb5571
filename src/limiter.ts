/**
 * A concurrency limiter: runs each `work` when a slot is free, in order of arrival. The slot is free again when the work ends or
 * calls `release`.
 */
export type ConcurrencyLimiter = <T>(work: (release: () => void) => Promise<T>) => Promise<T>

/** Creates a limiter that runs at most `limit` pieces of work at once. */
export function limitConcurrency(limit: number): ConcurrencyLimiter {
  let freeSlots = limit
  const queue: (() => void)[] = []
  return async (work) => {
    if (freeSlots > 0) freeSlots -= 1
    else await new Promise<void>((resolve) => queue.push(resolve))
    let holdsSlot = true
    const release = () => {
      if (!holdsSlot) return
      holdsSlot = false
      const next = queue.shift()
      if (next === undefined) freeSlots += 1
      else next()
    }
    return work(release).finally(release)
  }
}
