import type { DnsEffects } from '../wire/effects.ts'
import { linkedAbort } from '../wire/linked-abort.ts'

/** A lesser answer is taken when nobody has had a better one for so long. */
const BETTER_ANSWER_MS = 500

/**
 * Starts all at once; the first result of rank 0 wins, a lesser one only where no better one comes soon. Resolvers see
 * different parts of DNS (that of a VPN beside a public one), and who denies or refuses is often the quicker.
 */
export async function bestOf<T>(
  tasks: readonly (() => Promise<T | undefined>)[],
  rank: (result: T) => number,
  { clock, signal }: DnsEffects,
): Promise<T | undefined> {
  const patience = linkedAbort(signal)
  let best: T | undefined
  const running = tasks.map((task) => task())
  const ended = Promise.allSettled(running)
  const ranked = running.map((task) => async () => {
    const result = await task
    if (result === undefined) return undefined
    if (best === undefined || rank(result) < rank(best)) best = result
    if (rank(result) > 0) await Promise.race([ended, clock.sleep(BETTER_ANSWER_MS, patience.signal)])
    return best
  })
  try {
    return await firstUseful(ranked)
  } finally {
    patience.end()
  }
}

/** Starts all at once; the first result that is not undefined wins. Undefined when all have ended without one. */
export async function firstUseful<T>(
  tasks: readonly (() => Promise<T | undefined>)[],
): Promise<T | undefined> {
  if (tasks.length === 0) return undefined
  return await new Promise((resolve, reject) => {
    let left = tasks.length
    for (const task of tasks) {
      task().then((result) => {
        left -= 1
        if (result !== undefined || left === 0) resolve(result)
      }, reject)
    }
  })
}
