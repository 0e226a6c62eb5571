import { randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'

/** Seed of the random delays, kills and samples; the scheduling of processes still differs between runs. */
export const seed = Number(process.env['MAILCLAIM_CHAOS_SEED'] ?? randomInt(2 ** 31))

/** Number of clients (homes) that run at the same time. */
export const clientCount = Number(process.env['MAILCLAIM_CHAOS_CLIENTS'] ?? availableParallelism())

/** Number of items that `sample` takes from each list; undefined for all. */
const sampleSize =
  process.env['MAILCLAIM_CHAOS_SAMPLE'] === undefined
    ? undefined
    : Number(process.env['MAILCLAIM_CHAOS_SAMPLE'])

/** Returns the requested number of items, evenly spread from a position that depends on the seed. */
export function sample<T>(items: readonly T[]): readonly T[] {
  if (sampleSize === undefined || sampleSize >= items.length) return items
  const step = items.length / sampleSize
  const offset = ((seed % 997) / 997) * step
  return Array.from({ length: sampleSize }, (_, index) => items[Math.floor(offset + index * step)] as T)
}
