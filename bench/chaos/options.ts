import { randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'

/** The same seed gives the same delays, kills and samples; the machine does the rest. */
export const seed = Number(process.env['MAILCLAIM_CHAOS_SEED'] ?? randomInt(2 ** 31))

/** How many homes are worked on at once. */
export const clientCount = Number(process.env['MAILCLAIM_CHAOS_CLIENTS'] ?? availableParallelism())

/** Of a list that a whole run works through, how many; undefined: all. */
const sampleSize =
  process.env['MAILCLAIM_CHAOS_SAMPLE'] === undefined
    ? undefined
    : Number(process.env['MAILCLAIM_CHAOS_SAMPLE'])

/** As many items as requested, evenly spread, starting at a position that depends on the seed. */
export function sample<T>(items: readonly T[]): readonly T[] {
  if (sampleSize === undefined || sampleSize >= items.length) return items
  const step = items.length / sampleSize
  const offset = ((seed % 997) / 997) * step
  return Array.from({ length: sampleSize }, (_, index) => items[Math.floor(offset + index * step)] as T)
}
