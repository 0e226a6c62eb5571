import { type CheckRequest, checkDns } from './check.ts'
import type { CheckReport } from './diagnosis/report.ts'
import type { DnsEffects } from './wire/effects.ts'

/** Delays between checks, in milliseconds; the last one repeats. */
const DELAYS_MS = [5_000, 10_000, 20_000, 30_000] as const
/** How long to wait by default, in milliseconds. */
export const WAIT_MS = 60 * 60 * 1000

export interface WaitStep {
  readonly report: CheckReport
  /** The delay until the next check, or null after the last one. */
  readonly nextInMs: number | null
  /** What is left of the wait. */
  readonly leftMs: number
}

/**
 * Checks until the record is ready or the time is over, and yields every check. It won't poison caches with a negative
 * answer: resolvers are only asked about a record that the authoritative servers have.
 *
 * @param timeoutMs the whole wait, the first check included.
 * @param intervalMs a fixed delay between checks; growing delays if absent.
 */
export async function* waitForRecord(
  request: CheckRequest,
  timeoutMs: number,
  effects: DnsEffects,
  intervalMs?: number,
): AsyncGenerator<WaitStep, CheckReport, void> {
  const { clock, signal } = effects
  const end = clock.monotonic() + timeoutMs
  for (let check = 0; ; check += 1) {
    const report = await checkDns(request, effects)
    const leftMs = Math.max(0, end - clock.monotonic())
    const delay = intervalMs ?? DELAYS_MS[Math.min(check, DELAYS_MS.length - 1)] ?? 30_000
    const isOver = report.ready || leftMs === 0 || report.findings.some((f) => f.code === 'invalid_name')
    const nextInMs = isOver ? null : Math.min(delay, leftMs)
    yield { report, nextInMs, leftMs }
    if (nextInMs === null) return report
    await clock.sleep(nextInMs, signal)
  }
}
