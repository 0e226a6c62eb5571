/** Runs work when its turn comes: preferred work before other work, and else first come, first served. */
export type Turns = <T>(work: () => Promise<T>, isPreferred?: boolean) => Promise<T>

/** After so many turns of preferred work, other work gets one. */
const MAX_PREFERRED = 3

/** Turns of which at most `limit` are taken at once. */
export function createTurns(limit: number): Turns {
  let free = limit
  const queue: (() => void)[] = []
  const preferred: (() => void)[] = []
  let inRow = 0
  const takeNext = () => {
    const isPreferred = preferred.length > 0 && (queue.length === 0 || inRow < MAX_PREFERRED)
    inRow = isPreferred ? inRow + 1 : 0
    return (isPreferred ? preferred : queue).shift()
  }
  return async (work, isPreferred = false) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => (isPreferred ? preferred : queue).push(resolve))
    try {
      return await work()
    } finally {
      const next = takeNext()
      if (next === undefined) free += 1
      else next()
    }
  }
}
