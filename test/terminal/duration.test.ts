import { describe, expect, test } from 'vitest'
import { formatDuration, formatRelativeTime, formatUtcTime } from '../../src/terminal/time.ts'

const MINUTE = 60
const HOUR = 3600
const DAY = 86_400

test.each([
  [0.2, '1 second', '1 s'],
  [119, '119 seconds', '119 s'],
  [119.5, '2 minutes', '2 min'],
  [90 * MINUTE - 1, '90 minutes', '90 min'],
  [90 * MINUTE, '1 h 30 min', '1 h 30 min'],
  [2 * HOUR - 1, '1 h 59 min', '1 h 59 min'],
  [2 * HOUR, '2 hours', '2 h'],
  [2 * DAY, '2 days', '2 days'],
  [800 * DAY, '2 years', '2 years'],
  [Number.POSITIVE_INFINITY, 'more than a year', 'more than a year'],
])('a duration of %d seconds is formatted as "%s", in short form "%s"', (seconds, long, short) => {
  expect(formatDuration(seconds)).toBe(long)
  expect(formatDuration(seconds, 'short')).toBe(short)
})

describe('a time relative to now', () => {
  const now = Date.parse('2026-11-20T12:00:00Z')

  test.each([
    [0, 'just now'],
    [-60_000, '60 s ago'],
    [-101 * 60_000, '1 h 41 min ago'],
    [-86_400_000, '24 h ago'],
    [-400 * 86_400_000, '13 months ago'],
    [-800 * 86_400_000, '2 years ago'],
    [60 * 86_400_000 - 1, 'in 60 days'],
    [30_000, 'in a moment'],
    [7 * 86_400_000 - 1, 'in 7 days'],
    [6 * 86_400_000 + 3 * 3600_000, 'in 6 days'],
    [48 * 3600_000 - 1, 'in 2 days'],
  ])('a time %d milliseconds from now is formatted as "%s"', (offset, text) => {
    expect(formatRelativeTime(now + offset, now)).toBe(text)
  })
})

test('formatUtcTime formats a time in UTC, without fractions of a second', () => {
  expect(formatUtcTime(Date.parse('2026-11-21T16:29:28.501Z'))).toBe('2026-11-21 16:29:28 UTC')
})
