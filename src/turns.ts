/** Runs work when its turn comes: first come, first served. A turn ends with the work, or before it with `leave`. */
export type Turns = <T>(work: (release: () => void) => Promise<T>) => Promise<T>

/** Turns of which at most `limit` are taken at once. */
export function createTurns(limit: number): Turns {
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
