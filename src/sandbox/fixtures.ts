/** Fixtures are computed from their index on demand, so a list of any size costs nothing. */

/** A well-mixed 32-bit number from an index and a purpose; the same each time. */
export function mix(index: number, salt: number): number {
  let h = Math.imul(index ^ salt, 0x9e3779b1) ^ Math.imul(salt + 1, 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d)
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b)
  return (h ^ (h >>> 16)) >>> 0
}

const INDEX_MASK = 0x5bd1e995

/**
 * A UUID-shaped id that holds its index (scrambled) in its last 48 bits, so a cursor leads straight to its
 * position in the list.
 */
export function seededId(kind: number, index: number): string {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0').slice(-digits)
  const a = mix(index, kind)
  const b = mix(index, kind + 101)
  const high = Math.floor(index / 0x1_0000_0000)
  const low = (index ^ INDEX_MASK) >>> 0
  const variant = (0x8000 | (b & 0x3fff)) >>> 0
  return `${hex(a, 8)}-${hex(b >>> 16, 4)}-4${hex(b >>> 4, 3)}-${hex(variant, 4)}-${hex(high, 4)}${hex(low, 8)}`
}

/** The index inside an id that `seededId` made for this kind, or -1. */
export function seededIndex(kind: number, id: string): number {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return -1
  const high = Number.parseInt(id.slice(24, 28), 16)
  const low = (Number.parseInt(id.slice(28), 16) ^ INDEX_MASK) >>> 0
  const index = high * 0x1_0000_0000 + low
  return seededId(kind, index) === id ? index : -1
}

/** One of `choices`, always the same for the same index and purpose. */
export function pick<T>(choices: readonly [T, ...T[]], index: number, salt: number): T {
  return choices[mix(index, salt) % choices.length] ?? choices[0]
}
