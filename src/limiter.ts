/**
 * Function that runs each given `work` as soon as a slot is free, in order of the calls. The slot is free again when the work ends
 * or calls `release`.
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
        // Remove the started half in one go: `queue.shift()` moves all others each time, far too slow for a queue of 100,000.
        if (head > queue.length / 2) head -= queue.splice(0, head).length
        next()
      }
    }
    return work(release).finally(release)
  }
}
