import { type CheckRequest, checkDns } from './check.ts'
import type { CheckReport } from './diagnosis/report.ts'
import type { DnsEffects } from './wire/effects.ts'

/** Pauses between two checks, in milliseconds; the last one repeats. */
const PAUSES_MS = [5_000, 10_000, 20_000, 30_000] as const
/** How long a wait lasts where nothing else is said, in milliseconds. */
export const WAIT_MS = 60 * 60 * 1000

export interface Waited {
  readonly report: CheckReport
  /** The pause until the next check, or null after the last one. */
  readonly nextInMs: number | null
  /** What is left of the wait. */
  readonly leftMs: number
}

/**
 * Checks until the record is ready or the time is over. Yields every check; the last one has no next. Caches are not
 * harmed by it: resolvers are only asked about a record that the authoritative servers have.
 *
 * @param timeoutMs the whole wait, the first check included.
 */
export async function* waitForRecord(
  request: CheckRequest,
  timeoutMs: number,
  effects: DnsEffects,
): AsyncGenerator<Waited, CheckReport, void> {
  const { clock, signal } = effects
  const end = clock.monotonic() + timeoutMs
  for (let turn = 0; ; turn += 1) {
    const report = await checkDns(request, effects)
    const leftMs = Math.max(0, end - clock.monotonic())
    const pause = PAUSES_MS[Math.min(turn, PAUSES_MS.length - 1)] ?? 30_000
    const isOver = report.ready || leftMs === 0 || report.findings.some((f) => f.code === 'invalid_name')
    const nextInMs = isOver ? null : Math.min(pause, leftMs)
    yield { report, nextInMs, leftMs }
    if (nextInMs === null) return report
    await clock.sleep(nextInMs, signal)
  }
}
