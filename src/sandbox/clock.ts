interface Timer {
  readonly due: number
  readonly run: (due: number) => void | Promise<void>
  timeout?: NodeJS.Timeout
}

export type VirtualClock = ReturnType<typeof createVirtualClock>

/**
 * The sandbox's time: the real clock plus everything that `advance` added. It only moves forward, so that an expiry of
 * days can be watched in a moment.
 */
export function createVirtualClock(report: (error: unknown) => void) {
  let offset = 0
  let closed = false
  const timers = new Set<Timer>()
  const now = () => Date.now() + offset

  function arm(timer: Timer): void {
    if (closed) return
    // Nothing is due in more than the 24 days that Node's timers take; they may end a millisecond early.
    const end = () => (timer.due > now() ? arm(timer) : void fire(timer))
    timer.timeout = setTimeout(end, Math.max(timer.due - now(), 0))
  }

  function cancel(timer: Timer): void {
    clearTimeout(timer.timeout)
    timers.delete(timer)
  }

  async function fire(timer: Timer): Promise<void> {
    cancel(timer)
    try {
      await timer.run(timer.due)
    } catch (error) {
      report(error)
    }
  }

  return {
    /** Milliseconds since 1970, in virtual time. */
    now,
    /**
     * Runs `run` when virtual time reaches `due`; it is told `due`, which lies in the past after a jump. The function returned
     * calls it off.
     */
    schedule(due: number, run: Timer['run']): () => void {
      const timer: Timer = { due, run }
      timers.add(timer)
      arm(timer)
      return () => cancel(timer)
    },
    /** Jumps forward, and settles once everything that fell due has run, in order of its due time. */
    async advance(ms: number): Promise<void> {
      offset += ms
      for (const { timeout: armed } of timers) clearTimeout(armed)
      // One after the other, and awaited: a look-up that fell due before an expiry also ends before it.
      for (;;) {
        const [first] = [...timers].sort((one, other) => one.due - other.due)
        if (first === undefined || first.due > now()) break
        await fire(first)
      }
      for (const timer of timers) {
        clearTimeout(timer.timeout)
        arm(timer)
      }
    },
    close(): void {
      closed = true
      for (const timer of timers) cancel(timer)
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
