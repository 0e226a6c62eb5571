import type { RenderContext } from '../terminal/columns.ts'
import { formatTime, relativeTime } from '../terminal/time.ts'

const SHAPE =
  /^(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?)?\s?(?:(Z)|([+-])(\d{2})(?::?(\d{2}))?)?$/i

/**
 * Parses a timestamp of the service, shaped like `YYYY-MM-DD HH:MM:SS.ffffff+00` with any number of fraction digits, or
 * one in ISO 8601. Without an offset it is UTC. Digits beyond milliseconds are dropped.
 *
 * @returns milliseconds since 1970, or undefined for anything else, including impossible dates.
 */
export function parseTimestamp(value: unknown): number | undefined {
  const match = typeof value === 'string' ? SHAPE.exec(value.trim()) : null
  if (match === null) return undefined
  const number = (index: number) => Number(match[index] ?? 0)
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = [1, 2, 3, 4, 5, 6].map(number)
  const offset = (match[9] === '-' ? -1 : 1) * (number(10) * 60 + number(11))
  const milliseconds = Number((match[7] ?? '').slice(0, 3).padEnd(3, '0'))
  // A second of 60 is a leap second (RFC 3339 section 5.6).
  if (hour > 23 || minute > 59 || second > 60 || number(10) > 23 || number(11) > 59) return undefined
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined
  return date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1000 + milliseconds
}

/** A timestamp as people read it: relative to now on a terminal, else in full; undefined if it can't be parsed. */
export function readableTimestamp(
  value: unknown,
  { now, hasRelativeTimes }: RenderContext,
): string | undefined {
  const at = parseTimestamp(value)
  if (at === undefined) return undefined
  return hasRelativeTimes ? relativeTime(at, now) : formatTime(at)
}

/** The same, with the time in full beside the relative one. */
export function readableTimestampInFull(value: unknown, context: RenderContext): string | undefined {
  const at = parseTimestamp(value)
  const readable = readableTimestamp(value, context)
  return at === undefined || !context.hasRelativeTimes ? readable : `${readable} (${formatTime(at)})`
}
