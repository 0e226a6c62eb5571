import { backoff, createDeadline, type Deadline } from '../timeout.ts'
import { type CheckRequest, checkDns } from './check.ts'
import type { CheckReport } from './report.ts'
import { type DnsEffects, query } from './wire/ask.ts'
import { decodeValues, readTxt } from './wire/txt-answer.ts'

/** Between checks. */
const DELAYS = { first: 5000, max: 30_000, jitter: 0 } as const
/** Between two checks, one server without the record is asked for it this often, in milliseconds. */
const POLL_INTERVAL_MS = 3000

type WaitRequest = CheckRequest & { readonly deadline: Deadline }

export interface WaitStep {
  readonly report: CheckReport
  /** The delay until the next check, or null after the last one. */
  readonly nextInMs: number | null
}

/**
 * Checks until the record is ready or the time is over, and yields every check. Between two checks it asks one authoritative
 * server that lacks the record for it, and checks at once when its answer changes.
 *
 * @param request its deadline is that of the whole wait, the first check included.
 * @param inTurn runs each check when its turn comes, in a run of many; what it throws passes through.
 */
export async function* waitForRecord(
  request: WaitRequest,
  effects: DnsEffects,
  inTurn: <T>(work: () => Promise<T>) => Promise<T> = (work) => work(),
): AsyncGenerator<WaitStep, CheckReport, void> {
  const { clock } = effects
  // Since when only caches lack the record, and the longest time that they named.
  let caches: { readonly since: number; readonly longestMs: number } | undefined
  for (let checks = 1; ; checks += 1) {
    const report = await inTurn(() => {
      const isOverdue = caches !== undefined && clock.monotonic() - caches.since > caches.longestMs
      return checkDns({ ...request, isOverdue }, effects)
    })
    const remainingMs = Math.max(0, request.deadline.remainingMs())
    const namedMs = (report.retry_after_seconds ?? 0) * 1000
    caches = report.findings.some(({ code }) => code === 'cached')
      ? { since: caches?.since ?? clock.monotonic(), longestMs: Math.max(namedMs, caches?.longestMs ?? 0) }
      : undefined
    const delay = backoff(checks, DELAYS)
    const isOver = report.ready || remainingMs === 0
    // Where only a resolver can be asked: for as long as it keeps that there is no record, it has nothing new.
    const keptMs = report.verdict === 'unknown' ? namedMs : 0
    const nextInMs = isOver ? null : Math.min(Math.max(delay, keptMs), remainingMs)
    yield { report, nextInMs }
    if (nextInMs === null) return report
    await pause(nextInMs, () => hasChanged(report, request, effects), effects)
  }
}

/** Waits for this long, or until there is news. */
async function pause(ms: number, hasChanged: () => Promise<boolean>, effects: DnsEffects): Promise<void> {
  const { clock, signal } = effects
  const { remainingMs } = createDeadline(ms, clock)
  while (remainingMs() > POLL_INTERVAL_MS) {
    await clock.sleep(POLL_INTERVAL_MS, signal)
    if (await hasChanged()) return
  }
  await clock.sleep(Math.max(0, remainingMs()), signal)
}

/** Whether a server of the report that lacks the record has another answer by now. */
async function hasChanged({ name, nameservers }: CheckReport, request: WaitRequest, effects: DnsEffects) {
  const lacking = nameservers.find(({ outcome }) => ['absent', 'mismatch', 'nxdomain'].includes(outcome))
  if (lacking === undefined || lacking.address === null) return false
  const server = { address: lacking.address, port: request.authoritativePort }
  const message = await query(server, { name, type: 'TXT' }, { deadline: request.deadline, effects })
  const seen = message && decodeValues(readTxt(message, name).values).toSorted()
  return seen !== undefined && JSON.stringify(seen) !== JSON.stringify(lacking.values.toSorted())
}
