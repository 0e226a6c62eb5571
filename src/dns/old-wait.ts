import type { CheckReport } from './diagnosis/report.ts'
import { type CheckRequest, checkDns } from './old-check.ts'
import type { DnsEffects } from './wire/effects.ts'
import { ask } from './wire/exchange.ts'
import { checkName } from './wire/name.ts'
import { decodeValues, readTxt } from './wire/txt-answer.ts'

/** Delays between checks, in milliseconds; the last one repeats. */
const DELAYS_MS = [5_000, 10_000, 20_000, 30_000] as const
/** Between two checks, one server without the record is asked for it this often, in milliseconds. */
const GLANCE_MS = 3000
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
 * Checks until the record is ready or the time is over, and yields every check. Between two checks it asks one
 * authoritative server that lacks the record for it, and checks at once when its answer changes. It won't poison caches
 * with a negative answer: resolvers are only asked about a record that the authoritative servers have.
 *
 * @param timeoutMs the whole wait, the first check included.
 * @param intervalMs a fixed delay between checks, with no questions in between; growing delays if absent.
 */
export async function* waitForRecord(
  request: CheckRequest,
  timeoutMs: number,
  effects: DnsEffects,
  intervalMs?: number,
): AsyncGenerator<WaitStep, CheckReport, void> {
  const { clock, signal } = effects
  const end = clock.monotonic() + timeoutMs
  const glance = createGlance(request, effects)
  for (let check = 0; ; check += 1) {
    const report = await checkDns(request, effects)
    const leftMs = Math.max(0, end - clock.monotonic())
    const delay = intervalMs ?? DELAYS_MS[Math.min(check, DELAYS_MS.length - 1)] ?? 30_000
    const isOver = report.ready || leftMs === 0 || report.findings.some((f) => f.code === 'invalid_name')
    const nextInMs = isOver ? null : Math.min(delay, leftMs)
    yield { report, nextInMs, leftMs }
    if (nextInMs === null) return report
    if (intervalMs === undefined) await pause(nextInMs, () => glance(report), effects)
    else await clock.sleep(nextInMs, signal)
  }
}

/** Waits for this long, or until there is news. */
async function pause(
  ms: number,
  hasNews: () => Promise<boolean>,
  { clock, signal }: DnsEffects,
): Promise<void> {
  const end = clock.monotonic() + ms
  const left = () => Math.max(0, end - clock.monotonic())
  while (left() > GLANCE_MS) {
    await clock.sleep(GLANCE_MS, signal)
    if (await hasNews()) return
  }
  await clock.sleep(left(), signal)
}

/** How long one server may take to answer, in milliseconds: only servers that answered are asked. */
const GLANCE_TIMEOUT_MS = 2000

/** @returns asks a server of a report that lacks the record, and says whether its answer has changed. */
function createGlance({ name, authoritativePort }: CheckRequest, effects: DnsEffects) {
  const checked = checkName(name)
  let last: string | undefined
  return async ({ nameservers }: CheckReport): Promise<boolean> => {
    const lacking = nameservers.find(
      ({ address, outcome }) => address !== null && ['absent', 'mismatch', 'nxdomain'].includes(outcome),
    )
    if (lacking === undefined || lacking.address === null || !checked.ok) return false
    const server = { address: lacking.address, port: authoritativePort }
    const deadline = effects.clock.monotonic() + GLANCE_TIMEOUT_MS
    const question = { name: checked.ascii, type: 'TXT' } as const
    const reply = await ask(server, question, { deadline, retryAfterMs: GLANCE_TIMEOUT_MS }, effects)
    if (reply.kind !== 'answer') return false
    const seen = JSON.stringify(decodeValues(readTxt(reply.message, checked.ascii).values).toSorted())
    // An alias leads elsewhere: its answer differs from the report, but not from itself.
    const isNews = seen !== last && seen !== JSON.stringify(lacking.values.toSorted())
    last = seen
    return isNews
  }
}
