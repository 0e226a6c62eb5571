import type { Clock } from '../../src/context.ts'

/** Milliseconds by which each reading advances the clock: too little to matter for any limit. */
const READING_MS = 1e-6

/** Whether a file is being read or written, which takes real time. */
const isAtFiles = () => process.getActiveResourcesInfo().some((kind) => /^(FSReq|CloseReq)/.test(kind))

/** Creates a clock that, apart from `READING_MS`, advances only when all other work is done: then the earliest sleeper wakes. */
export function createVirtualClock(): Clock {
  const sleepers: { at: number; wake: () => void }[] = []
  let now = 0
  let pumping = false
  const pump = () => {
    if (pumping) return
    pumping = true
    // After two turns of the event loop, everything that the last wake-up started has settled or is sleeping.
    setImmediate(() =>
      setImmediate(() => {
        pumping = false
        if (isAtFiles()) return pump()
        sleepers.sort((a, b) => a.at - b.at)
        const next = sleepers.shift()
        if (next === undefined) return
        now = Math.max(now, next.at)
        next.wake()
        if (sleepers.length > 0) pump()
      }),
    )
  }
  return {
    now: () => now,
    // Two readings always differ, as on a real clock.
    monotonic: () => {
      now += READING_MS
      return now
    },
    alarm: () => () => {},
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const sleeper = { at: now + ms, wake: resolve }
        sleepers.push(sleeper)
        signal?.addEventListener(
          'abort',
          () => {
            const at = sleepers.indexOf(sleeper)
            if (at >= 0) sleepers.splice(at, 1)
            reject(signal.reason)
          },
          { once: true },
        )
        pump()
      }),
  }
}
