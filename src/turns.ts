/** Runs work when its turn comes: first come, first served. A turn ends with the work, or before it with `leave`. */
export type Turns = <T>(work: (leave: () => void) => Promise<T>) => Promise<T>

/** Turns of which at most `limit` are taken at once. */
export function createTurns(limit: number): Turns {
  let free = limit
  const queue: (() => void)[] = []
  return async (work) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => queue.push(resolve))
    let isTaken = true
    const leave = () => {
      if (!isTaken) return
      isTaken = false
      const next = queue.shift()
      if (next === undefined) free += 1
      else next()
    }
    return work(leave).finally(leave)
  }
}
