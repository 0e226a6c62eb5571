interface Timer {
  readonly due: number
  readonly run: (due: number) => void | Promise<void>
  timeout?: NodeJS.Timeout
}

export type VirtualClock = ReturnType<typeof createVirtualClock>

/**
 * Creates the sandbox's clock: the real time plus the sum of all `advance` calls, with which tests jump to the expiry of claims
 * and tokens.
 * @param report receives errors that a timer's function throws
 */
export function createVirtualClock(report: (error: unknown) => void) {
  let offset = 0
  let closed = false
  const timers = new Set<Timer>()
  const now = () => Date.now() + offset

  function arm(timer: Timer): void {
    if (closed) return
    // Node's timers can fire a millisecond early, so check the time again and, if it is too early, wait for the rest.
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
    /** Returns the virtual time in milliseconds since 1970. */
    now,
    /**
     * Calls `run` with `due` when virtual time has reached `due`, in milliseconds since 1970; after a jump of the clock, `due` may
     * be long past. @returns a function that cancels the call
     */
    schedule(due: number, run: Timer['run']): () => void {
      const timer: Timer = { due, run }
      timers.add(timer)
      arm(timer)
      return () => cancel(timer)
    },
    /** Moves the clock forward by `ms`, and runs the timers that are then due, in the order of their due times. */
    async advance(ms: number): Promise<void> {
      offset += ms
      for (const { timeout: armed } of timers) clearTimeout(armed)
      // Run the timers one after the other: in parallel, a claim could expire while an earlier DNS lookup for it is still running.
      const firstDue = () => [...timers].sort((a, b) => a.due - b.due).find(({ due }) => due <= now())
      for (let timer = firstDue(); timer !== undefined; timer = firstDue()) await fire(timer)
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
 * Formats a time as the service and PostgreSQL do, `YYYY-MM-DD HH:MM:SS.ffffff+00`, without up to five zeros at the end of the
 * fraction. The microseconds are made up.
 */
export function formatPostgresTimestamp(epochMs: number): string {
  const whole = Math.floor(epochMs)
  const [date = '', time = ''] = new Date(whole).toISOString().slice(0, -1).split('T')
  const micros = String((whole * 7919) % 1000).padStart(3, '0')
  return `${date} ${`${time}${micros}`.replace(/0{1,5}$/, '')}+00`
}
