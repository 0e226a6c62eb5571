interface Unit {
  readonly seconds: number
  readonly name: string
  readonly symbol: string
  /** From how many on the unit is used: "2 days" would hide whether it is 25 hours or 47, so those stay hours. */
  readonly from: number
}

const SECOND: Unit = { seconds: 1, name: 'second', symbol: 's', from: 0 }
const UNITS: readonly Unit[] = [
  { seconds: 365 * 86_400, name: 'year', symbol: 'years', from: 2 },
  { seconds: 30 * 86_400, name: 'month', symbol: 'months', from: 3 },
  { seconds: 86_400, name: 'day', symbol: 'days', from: 2 },
  { seconds: 3600, name: 'hour', symbol: 'h', from: 2 },
  { seconds: 60, name: 'minute', symbol: 'min', from: 2 },
]

/**
 * A duration: "45 seconds", "3 minutes", "2 hours", "9 days". Seconds are rounded up, so that a wait is never "0 seconds";
 * any other unit is rounded to the nearest, and used from two on (a month from three), so that rounding changes the duration
 * by a quarter at most.
 *
 * @param style `short` for narrow places: "45 s", "3 min", "2 h", "9 days"
 */
export function formatDuration(seconds: number, style: 'long' | 'short' = 'long'): string {
  if (!Number.isFinite(seconds)) return 'more than a year'
  const whole = Math.ceil(seconds)
  const unit = UNITS.find((candidate) => whole >= candidate.seconds * candidate.from) ?? SECOND
  const amount = Math.round(whole / unit.seconds)
  return `${amount} ${style === 'short' ? unit.symbol : `${unit.name}${amount === 1 ? '' : 's'}`}`
}
