import type { RenderContext } from '../terminal/columns.ts'
import { formatRelativeTime, formatUtcTime } from '../terminal/time.ts'

const SHAPE =
  /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2})?)(?:[.,](\d+))?)?\s?(?:Z|([+-]\d{2})(?::?(\d{2}))?)?$/i

/**
 * Parses a timestamp of the service, such as `2026-11-20 12:34:56.123456+00`, or an ISO 8601 date with or without a time; UTC
 * without an offset. Digits beyond milliseconds are dropped.
 *
 * @returns milliseconds since 1970; undefined for anything else, including impossible dates
 */
export function parseTimestampMs(value: unknown): number | undefined {
  const match = typeof value === 'string' ? SHAPE.exec(value.trim()) : null
  if (match === null) return undefined
  const [, day = '', time = '00:00', fraction = '', hours = '+00', minutes = '00'] = match
  const at = Date.parse(`${day}T${time}${hours}:${minutes}`)
  // Refuse impossible days, which change when parsed and formatted again: `Date.parse` reads 30 February as a day in March.
  if (Number.isNaN(at) || new Date(`${day}T00:00Z`).toJSON().slice(0, 10) !== day) return undefined
  return at + Number(fraction.slice(0, 3).padEnd(3, '0'))
}

/**
 * Formats a timestamp of the service: relative to now on a terminal (finite `width`), otherwise in full; undefined if the value is
 * no timestamp.
 */
export function formatServiceTimestamp(value: unknown, { now, width }: RenderContext): string | undefined {
  const at = parseTimestampMs(value)
  if (at === undefined) return undefined
  return Number.isFinite(width) ? formatRelativeTime(at, now) : formatUtcTime(at)
}

/**
 * Formats a timestamp of the service in full; on a terminal, the time relative to now precedes it. Undefined if the value is no
 * timestamp.
 */
export function formatTimestampWithRelativeTime(value: unknown, context: RenderContext): string | undefined {
  const at = parseTimestampMs(value)
  const readable = formatServiceTimestamp(value, context)
  return at === undefined || !Number.isFinite(context.width) ? readable : `${readable} (${formatUtcTime(at)})`
}
