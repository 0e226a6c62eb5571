import { type CheckRequest, checkDns } from '../dns/check.ts'
import { type CheckReport, exitErrorOf } from '../dns/report.ts'
import type { Share } from '../dns/share.ts'
import { waitForRecord } from '../dns/wait.ts'
import { dnsEffects } from '../dns/wire/ask.ts'
import { CliError, Exit } from '../errors.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Io } from '../terminal/io.ts'
import { formatDuration } from '../terminal/time.ts'
import { judge, nameOf } from './lifecycle.ts'
import { recordOf } from './record.ts'

/** What a check of DNS looks for. */
export interface CheckTarget {
  readonly name: string
  /** Null: whatever is there. */
  readonly value: string | null
}

/** How the checks of one run go: each takes its turn if there are many. */
export interface CheckOptions {
  readonly publicResolvers?: boolean | undefined
  readonly inTurn?: (<T>(check: () => Promise<T>) => Promise<T>) | undefined
  readonly share?: Share | undefined
}

/** The time limit of a check, in milliseconds. */
const CHECK_MS = 10_000
/** A check that starts when the time is almost up may still take this long. */
const SHORTEST_MS = 2000
/** The code of the error of work that didn't begin before the time was up. */
export const TIMED_OUT = 'timed_out'
/** While it waits for DNS, the service is asked about the claim this often. */
const ASK_EVERY_MS = 60_000

function requestOf(
  { name, value }: CheckTarget,
  { publicResolvers = false, share }: CheckOptions,
  { settings }: Io,
): CheckRequest {
  const { resolvers = 'system', authoritativePort } = settings
  return { name, expected: value, resolvers, authoritativePort, publicResolvers, ...(share && { share }) }
}

/** @param leftMs what is left of the time, if there is an end */
export async function checkOnce(
  target: CheckTarget,
  options: CheckOptions,
  io: Io,
  leftMs = CHECK_MS,
): Promise<CheckReport> {
  const deadlineMs = Math.min(CHECK_MS, Math.max(SHORTEST_MS, leftMs))
  const check = () => checkDns({ ...requestOf(target, options, io), deadlineMs }, dnsEffects(io))
  return (options.inTurn ?? ((work) => work()))(check)
}

/** One check of a wait. */
export interface DnsStep {
  readonly report: CheckReport
  /** The claim as the service last had it, if the record is that of one. */
  readonly claim: DomainClaim | undefined
  /** The delay until the next check; null after the last one. */
  readonly nextInMs: number | null
  /** What is left of the wait, in milliseconds. */
  readonly leftMs: number
}

/**
 * Checks until the record is ready or the time is up, and yields each check. Once a minute it asks the service about the claim,
 * and ends with the claim if that no longer needs its record; a record that has changed is waited for instead.
 *
 * @param claim the claim of the record, if it has one
 * @param ask asks the service about it; undefined if it can't answer now
 */
export async function* watchDns(
  target: CheckTarget,
  claim: DomainClaim | undefined,
  timeoutMs: number,
  ask: (() => Promise<DomainClaim | undefined>) | undefined,
  options: CheckOptions,
  io: Io,
): AsyncGenerator<DnsStep, { readonly claim: DomainClaim | undefined }, void> {
  const { clock } = io
  const end = clock.monotonic() + timeoutMs
  let askedAt = clock.monotonic()
  let hasLooked = false
  for (let [now, wanted] = [claim, target]; ; ) {
    const left = Math.max(0, end - clock.monotonic())
    const checks = waitForRecord(requestOf(wanted, options, io), left, dnsEffects(io), options.inTurn)
    let changed: CheckTarget | undefined
    for (;;) {
      const step = await checks.next().catch((error: unknown) => {
        // Its turn among many didn't come again in time: what was found last counts.
        if (hasLooked && error instanceof CliError && error.code === TIMED_OUT) return { done: true } as const
        throw error
      })
      if (step.done) return { claim: now }
      hasLooked = true
      const { report, nextInMs, leftMs } = step.value
      if (ask !== undefined && !report.ready && clock.monotonic() - askedAt >= ASK_EVERY_MS) {
        askedAt = clock.monotonic()
        now = (await ask()) ?? now
      }
      yield { report, claim: now, nextInMs, leftMs }
      if (now === undefined || now === claim) continue
      if (!judge(now, clock.now()).needsRecord) return { claim: now }
      const { name, value } = recordOf(now)
      if (name !== wanted.name || value !== wanted.value) changed = { name, value }
      if (changed !== undefined) break
    }
    wanted = changed
  }
}

/**
 * The report with what the claim makes of it: a claim that the service has accepted or completed no longer needs the record.
 *
 * @returns with the error of a claim that has ended
 */
export function withClaim(
  report: CheckReport,
  claim: DomainClaim,
  now: number,
): { readonly report: CheckReport; readonly error?: CliError | undefined; readonly note?: string } {
  const { phase, text, error, needsRecord } = judge(claim, now)
  const own = { ...report, claim: { status: claim.status ?? 'unknown' } }
  if (phase === 'ended') return { report: own, error }
  if (needsRecord || phase === 'blocked') return { report: own }
  return {
    report: { ...own, verdict: 'ready', ready: true, retry_after_seconds: null, findings: [] },
    note: `${nameOf(claim)} no longer needs its record: ${text}`,
  }
}

/**
 * Whether the service may see a record that isn't visible everywhere from here: a cache affects this machine's resolvers
 * only, and the service may query a name server that isn't lagging.
 *
 * @param isLongLag whether lagging name servers have had enough time
 */
export function isWorthVerifying({ verdict, findings }: CheckReport, isLongLag: boolean): boolean {
  return verdict === 'wait' && (isLongLag || findings.every(({ code }) => code !== 'partial_propagation'))
}

/** The error of a wait whose time is up. */
export function notInTime(report: CheckReport, timeoutMs: number): CliError {
  const failure = exitErrorOf(report)
  const { code, exit, hint } = failure ?? new CliError('record_not_visible', Exit.notYet, '')
  const why = failure?.message ?? `the record isn't ready at ${report.name}`
  return new CliError(code, exit, `timed out after ${formatDuration(timeoutMs / 1000)}: ${why}`, { hint })
}
