import type { DnsEffects } from '../wire/effects.ts'
import { linkedAbort } from '../wire/linked-abort.ts'

/** How long to wait for a better result. */
const BETTER_ANSWER_MS = 500

/**
 * Starts all tasks at once. The first result of rank 0 wins; any other wins only if no better one comes soon. Resolvers see
 * different parts of DNS (a VPN's and a public one), and a denial or refusal often comes first.
 */
export async function bestOf<T>(
  tasks: readonly (() => Promise<T | undefined>)[],
  rank: (result: T) => number,
  { clock, signal }: DnsEffects,
): Promise<T | undefined> {
  const grace = linkedAbort(signal)
  let best: T | undefined
  const running = tasks.map((task) => task())
  const ended = Promise.allSettled(running)
  const ranked = running.map((task) => async () => {
    const result = await task
    if (result === undefined) return undefined
    if (best === undefined || rank(result) < rank(best)) best = result
    if (rank(result) > 0) await Promise.race([ended, clock.sleep(BETTER_ANSWER_MS, grace.signal)])
    return best
  })
  try {
    return await firstDefined(ranked)
  } finally {
    grace.end()
  }
}

/** Starts all tasks at once. The first result that isn't undefined wins; undefined if there is none. */
export async function firstDefined<T>(
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
