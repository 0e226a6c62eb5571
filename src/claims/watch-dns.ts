import { type CheckRequest, checkDns, type Wanted } from '../dns/check.ts'
import type { CheckReport } from '../dns/report.ts'
import { type WaitStep, waitForRecord } from '../dns/wait.ts'
import { dnsEffects } from '../dns/wire/ask.ts'
import { CliError } from '../errors.ts'
import { createNewsFilter } from '../service/follow.ts'
import type { DomainClaim } from '../service/types.ts'
import { dnsSettings } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { formatDuration } from '../terminal/time.ts'
import type { Deadline } from '../timeout.ts'
import type { Turns } from '../turns.ts'
import { judge } from './lifecycle.ts'
import { wantedBy } from './record.ts'

/** How the checks of one run go: until its time is up, and each in its turn if there are many. */
export interface CheckOptions extends Pick<CheckRequest, 'publicResolvers' | 'share'> {
  readonly deadline: Deadline
  /** Whether to go on until the record is ready, or the claim has ended. */
  readonly wait?: boolean
  /** Says that it mostly waits from now on: the next one may begin. */
  readonly letNext?: () => void
  readonly inTurn?: Turns
  /** Tells what the wait is for, instead of `createWaitTeller`, in a run of many. */
  readonly tell?: (report: CheckReport) => Promise<void>
}

/** While it waits for DNS, the service is asked about the claim this often. */
const ASK_EVERY_MS = 60_000

export function checkOnce(wanted: Wanted, options: CheckOptions, io: Io): Promise<CheckReport> {
  const check = () => checkDns({ ...options, ...dnsSettings(io.settings), ...wanted }, dnsEffects(io))
  return options.inTurn === undefined ? check() : options.inTurn(check)
}

/** The claim whose record is waited for. */
export interface WatchedClaim {
  readonly claim: DomainClaim
  /** Asks the service about it; undefined if it can't answer now. */
  readonly read: () => Promise<DomainClaim | undefined>
}

/** One check of a wait. */
export interface DnsStep extends WaitStep {
  /** The first finding's message if the state in DNS has changed, or with the time so far after a minute without a change. */
  readonly news: string | undefined
  /** The claim as the service last had it, if the record is that of one. */
  readonly claim: DomainClaim | undefined
}

/**
 * Checks until the record is ready or the time is up, and yields each check. Once a minute it asks the service about the claim,
 * and ends if that no longer needs its record; a record that has changed is waited for instead.
 */
export async function* watchDns(
  wanted: Wanted,
  of: WatchedClaim | undefined,
  options: CheckOptions,
  io: Io,
): AsyncGenerator<DnsStep, void, void> {
  const { clock } = io
  let askedAt = clock.monotonic()
  const news = createNewsFilter(clock)
  let hasLooked = false
  let now = of?.claim
  try {
    const request = { ...options, ...dnsSettings(io.settings), ...wanted }
    for await (const step of waitForRecord(request, dnsEffects(io), options.inTurn)) {
      hasLooked = true
      if (of !== undefined && !step.report.ready && clock.monotonic() - askedAt >= ASK_EVERY_MS) {
        askedAt = clock.monotonic()
        now = (await of.read()) ?? now
      }
      const { findings } = step.report
      yield { ...step, claim: now, news: news(stateInDns(step.report), findings[0]?.message ?? '') }
      if (of === undefined || now === undefined || now === of.claim) continue
      if (!judge(now, clock.now()).needsRecord) return
      // What the service doesn't send can't differ.
      const next = now.record == null || !now.name ? wanted : wantedBy(now)
      if (next.name !== wanted.name || next.expected !== wanted.expected)
        return yield* watchDns(next, { ...of, claim: now }, options, io)
    }
  } catch (error) {
    // Its turn among many didn't come again in time: what was found last counts.
    if (!hasLooked || !(error instanceof CliError) || error.code !== 'timed_out') throw error
  }
}

/** What of a check counts as a change: neither counters nor times. */
function stateInDns({ verdict, findings, nameservers }: CheckReport): string {
  const servers = nameservers.map(({ host, address, outcome, values }) => [host, address, outcome, values])
  return JSON.stringify([verdict, findings.map(({ code }) => code), servers])
}

/**
 * Returns a function that tells a user who waits for DNS what is wrong and, below, what to do: once for each change. What shows that
 * the wait continues is a line without the fix, or on a terminal the moving one.
 */
export function createWaitTeller(io: Io) {
  let told: string | undefined
  return async ({ findings: [first] }: CheckReport, news: string | undefined, nextInMs = 0) => {
    if (io.settings.quiet) return
    if (first !== undefined && first.message === news && news !== told) {
      told = news
      await io.say(news)
      await io.hint(first.fix)
    } else if (news !== undefined && news !== told && !io.stderr.isTTY) await io.say(news)
    const next = formatDuration(nextInMs / 1000)
    if (io.stderr.isTTY) await io.progress.update(`waiting for the TXT record; next check in ${next}`)
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

/** The error of a wait whose time is up. @param failure the error of the last check */
export const notInTime = (failure: CliError, { timeoutMs }: Deadline): CliError =>
  failure.with({ message: `timed out after ${formatDuration(timeoutMs / 1000)}: ${failure.message}` })
