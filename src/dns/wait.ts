import { backoffMs, createDeadline, type Deadline } from '../timeout.ts'
import { checkDns, type DnsCheckRequest } from './check.ts'
import type { CheckReport } from './report.ts'
import { type DnsEffects, queryDns } from './wire/ask.ts'
import { decodeTxtValues, readTxtAnswer } from './wire/txt-answer.ts'

/** Usual delays in milliseconds between two checks: doubled from `firstMs` up to `maxMs`, without random variation. */
const DELAYS = { firstMs: 5000, maxMs: 30_000, jitter: 0 } as const
/** Milliseconds between two polls of one name server, while waiting for the next check. */
const POLL_INTERVAL_MS = 3000

type WaitRequest = DnsCheckRequest & { readonly deadline: Deadline }

/** Result of one check while waiting for a record. */
export interface RepeatedCheckResult {
  readonly report: CheckReport
  /** Milliseconds to pause before the next check, unless a change in DNS ends the pause early; null after the last check. */
  readonly nextInMs: number | null
}

/**
 * Checks DNS repeatedly until a report is `ready` (the record is visible) or the deadline has passed. Yields each report, and
 * returns the last one. Between two checks, polls the first name server that answered without the record and without a CNAME; if
 * the server's TXT values change, checks at once.
 *
 * @param request `deadline` limits the wait
 * @param runWhenSlotIsFree runs a check once few enough checks of other domains are running; by default at once
 * @throws as `checkDns` and `runWhenSlotIsFree`
 */
export async function* waitForRecord(
  request: WaitRequest,
  effects: DnsEffects,
  runWhenSlotIsFree: <T>(work: () => Promise<T>) => Promise<T> = (work) => work(),
): AsyncGenerator<RepeatedCheckResult, CheckReport, void> {
  const { clock } = effects
  // Set while checks have the finding `cached`. `since`: time of the first such check (monotonic clock). `longestMs`: longest
  // wait that these checks have reported.
  let caches: { readonly since: number; readonly longestMs: number } | undefined
  for (let checks = 1; ; checks += 1) {
    const report = await runWhenSlotIsFree(() => {
      const isOverdue = caches !== undefined && clock.monotonic() - caches.since > caches.longestMs
      return checkDns({ ...request, isOverdue }, effects)
    })
    const remainingMs = Math.max(0, request.deadline.remainingMs())
    const namedMs = (report.retry_after_seconds ?? 0) * 1000
    caches = report.findings.some(({ code }) => code === 'cached')
      ? { since: caches?.since ?? clock.monotonic(), longestMs: Math.max(namedMs, caches?.longestMs ?? 0) }
      : undefined
    const delay = backoffMs(checks, DELAYS)
    const isOver = report.ready || remainingMs === 0
    // If the verdict is `unknown` because only resolvers responded, nothing changes before the answers in their caches expire, so
    // wait for at least that time.
    const keptMs = report.verdict === 'unknown' ? namedMs : 0
    const nextInMs = isOver ? null : Math.min(Math.max(delay, keptMs), remainingMs)
    yield { report, nextInMs }
    if (nextInMs === null) return report
    await pause(nextInMs, () => hasChanged(report, request, effects), effects)
  }
}

/** Waits for `ms` milliseconds; ends early when a poll with `hasChanged` returns true. */
async function pause(ms: number, hasChanged: () => Promise<boolean>, effects: DnsEffects): Promise<void> {
  const { clock, signal } = effects
  const { remainingMs } = createDeadline(ms, clock)
  while (remainingMs() > POLL_INTERVAL_MS) {
    await clock.sleep(POLL_INTERVAL_MS, signal)
    if (await hasChanged()) return
  }
  await clock.sleep(Math.max(0, remainingMs()), signal)
}

/**
 * Whether the TXT values of a name server have changed since the report: those of the first server with the outcome `absent`,
 * `mismatch` or `nxdomain` in the report. False without such a server or without its response.
 */
async function hasChanged({ name, nameservers }: CheckReport, request: WaitRequest, effects: DnsEffects) {
  const lacking = nameservers.find(({ outcome }) => ['absent', 'mismatch', 'nxdomain'].includes(outcome))
  if (lacking === undefined || lacking.address === null) return false
  const server = { address: lacking.address, port: request.authoritativePort }
  const message = await queryDns(server, { name, type: 'TXT' }, { deadline: request.deadline, effects })
  const seen = message && decodeTxtValues(readTxtAnswer(message, name).values).toSorted()
  return seen !== undefined && JSON.stringify(seen) !== JSON.stringify(lacking.values.toSorted())
}
