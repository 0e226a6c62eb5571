/** Node fires a timer of more than 2^31 - 1 ms at once; a day is well below. */
const LONGEST_TIMER_MS = 86_400_000

/**
 * The sandbox's time: the real clock plus everything that `advance` added. It only moves forward, so that an expiry of
 * days can be watched in a moment.
 */
export interface VirtualClock {
  /** Milliseconds since 1970, in virtual time. */
  now(): number
  /**
   * Runs `run` when virtual time reaches `due`; it is told `due`, which lies in the past after a jump. The function
   * returned calls it off.
   */
  at(due: number, run: Timer['run']): () => void
  /** Jumps forward, and settles once everything that fell due has run, in order of its due time. */
  advance(ms: number): Promise<void>
  close(): void
}

interface Timer {
  readonly due: number
  readonly run: (due: number) => void | Promise<void>
}

export function createVirtualClock(report: (error: unknown) => void): VirtualClock {
  let offset = 0
  let closed = false
  let armed: NodeJS.Timeout | undefined
  const timers = new Set<Timer>()
  const now = () => Date.now() + offset

  function earliest(): Timer | undefined {
    let first: Timer | undefined
    for (const timer of timers) if (first === undefined || timer.due < first.due) first = timer
    return first
  }

  function takeDue(): Timer | undefined {
    const timer = earliest()
    if (closed || timer === undefined || timer.due > now()) return undefined
    timers.delete(timer)
    return timer
  }

  async function run(timer: Timer): Promise<void> {
    try {
      await timer.run(timer.due)
    } catch (error) {
      report(error)
    }
  }

  function arm(): void {
    clearTimeout(armed)
    const timer = closed ? undefined : earliest()
    if (timer === undefined) return
    armed = setTimeout(
      () => {
        for (let due = takeDue(); due !== undefined; due = takeDue()) void run(due)
        arm()
      },
      Math.min(Math.max(timer.due - now(), 0), LONGEST_TIMER_MS),
    )
  }

  return {
    now,
    at(due, callback) {
      const timer: Timer = { due, run: callback }
      timers.add(timer)
      arm()
      return () => {
        timers.delete(timer)
        arm()
      }
    },
    async advance(ms) {
      clearTimeout(armed)
      offset += ms
      // One after the other, and awaited: a look-up that fell due before an expiry also ends before it.
      for (let due = takeDue(); due !== undefined; due = takeDue()) await run(due)
      arm()
    },
    close() {
      closed = true
      timers.clear()
      clearTimeout(armed)
    },
  }
}

/**
 * A time as the service writes it (interface, introduction): `YYYY-MM-DD HH:MM:SS.ffffff+00`, where trailing zeros of
 * the fraction are left out, so that the number of digits varies.
 */
export function timestamp(ms: number): string {
  const whole = Math.floor(ms)
  const [date = '', time = ''] = new Date(whole).toISOString().slice(0, -1).split('T')
  const micros = String((whole * 7919) % 1000).padStart(3, '0')
  return `${date} ${`${time}${micros}`.replace(/0{1,5}$/, '')}+00`
}
