/**
 * Function that starts the given `work` when a slot is free, in the order of the calls. The slot is free again when the work has
 * ended or calls `release`.
 */
export type ConcurrencyLimiter = <T>(work: (release: () => void) => Promise<T>) => Promise<T>

export function createConcurrencyLimiter(limit: number): ConcurrencyLimiter {
  let freeSlots = limit
  const queue: (() => void)[] = []
  let head = 0
  return async (work) => {
    if (freeSlots > 0) freeSlots -= 1
    else await new Promise<void>((resolve) => queue.push(resolve))
    let holdsSlot = true
    const release = () => {
      if (!holdsSlot) return
      holdsSlot = false
      const next = queue[head]
      if (next === undefined) freeSlots += 1
      else {
        head += 1
        // Remove started entries together, once they are over half of the queue: a `shift()` each is too slow for 100,000.
        if (head > queue.length / 2) head -= queue.splice(0, head).length
        next()
      }
    }
    return work(release).finally(release)
  }
}
