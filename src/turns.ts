/** Runs work when its turn comes: first come, first served. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>

/** Turns of which at most `limit` are taken at once. */
export function createTurns(limit: number): Turns {
  let free = limit
  const queue: (() => void)[] = []
  return async (work) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => queue.push(resolve))
    try {
      return await work()
    } finally {
      const next = queue.shift()
      if (next === undefined) free += 1
      else next()
    }
  }
}
