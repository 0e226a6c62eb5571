import { checkDns, type DnsCheckRequest, type ExpectedTxt } from '../dns/check.ts'
import type { CheckReport } from '../dns/report.ts'
import { type RepeatedCheckResult, waitForRecord } from '../dns/wait.ts'
import { createDnsEffects } from '../dns/wire/ask.ts'
import { CliError } from '../errors.ts'
import type { ConcurrencyLimiter } from '../limiter.ts'
import { createThrottledProgressFormatter } from '../service/follow.ts'
import type { DomainClaim } from '../service/types.ts'
import { getDnsSettings } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { formatDuration } from '../terminal/time.ts'
import type { Deadline } from '../timeout.ts'
import { getClaimState } from './lifecycle.ts'
import { requireExpectedTxt } from './record.ts'

/** Options of the DNS checks of one domain, alone or in a run over several domains. */
export interface DnsCheckOptions extends Pick<DnsCheckRequest, 'publicResolvers' | 'cache'> {
  readonly deadline: Deadline
  /** Value of `--wait`: whether `claims check` repeats the check, or `claims verify` follows the claim until it ends. */
  readonly wait?: boolean
  /** In a run over several domains, lets the work on the next domain begin; called when this domain starts to wait. */
  readonly releaseSlot?: () => void
  /** In a run over several domains, limits how many DNS checks and `--publish` commands run at once. */
  readonly inTurn?: ConcurrencyLimiter
  /** In a run over several domains, prints why DNS lacks the expected record. Default: a function from `createDnsWaitPrinter`. */
  readonly reportWait?: (report: CheckReport) => Promise<void>
}

/** Minimum milliseconds between requests for the claim while waiting for DNS. */
const CLAIM_POLL_MS = 60_000

/** Checks DNS once, with the resolvers of the settings. */
export function checkDnsOnce(wanted: ExpectedTxt, options: DnsCheckOptions, io: Io): Promise<CheckReport> {
  const run = () => checkDns({ ...options, ...getDnsSettings(io.settings), ...wanted }, createDnsEffects(io))
  return options.inTurn === undefined ? run() : options.inTurn(run)
}

/** A claim whose record is checked in DNS, and how to get the claim again. */
export interface RefetchableClaim {
  readonly claim: DomainClaim
  /** Gets the claim again; after a failed request, may return undefined or the copy in the ledger. */
  readonly read: () => Promise<DomainClaim | undefined>
}

/** One DNS check of a wait, with the claim as last seen. */
export interface RepeatedCheckWithClaim extends RepeatedCheckResult {
  /**
   * Message of the report's first finding, for the user. Set after the first check, after each change in DNS and, with the elapsed
   * time, once a minute without a change; undefined after other checks.
   */
  readonly news: string | undefined
  /** The claim as last seen; undefined if the check isn't for a claim. */
  readonly claim: DomainClaim | undefined
}

/**
 * Repeats the DNS check until its report is `ready` or the deadline has passed, and yields each result. With `watched`, requests
 * that claim again at most once a minute: ends if the claim no longer needs its record, and waits for the new record if the
 * service has changed it.
 */
export async function* watchDns(
  wanted: ExpectedTxt,
  watched: RefetchableClaim | undefined,
  options: DnsCheckOptions,
  io: Io,
): AsyncGenerator<RepeatedCheckWithClaim, void, void> {
  const { clock } = io
  let polledAt = clock.monotonic()
  const news = createThrottledProgressFormatter(clock)
  let hasResult = false
  let claim = watched?.claim
  try {
    const request = { ...options, ...getDnsSettings(io.settings), ...wanted }
    for await (const step of waitForRecord(request, createDnsEffects(io), options.inTurn)) {
      hasResult = true
      if (watched !== undefined && !step.report.ready && clock.monotonic() - polledAt >= CLAIM_POLL_MS) {
        polledAt = clock.monotonic()
        claim = (await watched.read()) ?? claim
      }
      const { findings } = step.report
      yield { ...step, claim, news: news(dnsStateOf(step.report), findings[0]?.message ?? '') }
      if (watched === undefined || claim === undefined || claim === watched.claim) continue
      if (!getClaimState(claim, clock.now()).needsRecord) return
      // A response without record or name doesn't mean that the record has changed, so keep waiting for the same record.
      const next = claim.record == null || !claim.name ? wanted : requireExpectedTxt(claim)
      if (next.name !== wanted.name || next.expected !== wanted.expected)
        return yield* watchDns(next, { ...watched, claim }, options, io)
    }
  } catch (error) {
    // The deadline can pass while the next check waits in `options.inTurn` for checks of other domains. If this domain has been
    // checked before, ignore the error `timed_out`: the caller has got the result of the last check.
    if (!hasResult || !(error instanceof CliError) || error.code !== 'timed_out') throw error
  }
}

/** Returns a check's result as text, to detect changes: verdict, finding codes, and each name server's outcome and TXT values. */
function dnsStateOf({ verdict, findings, nameservers }: CheckReport): string {
  const servers = nameservers.map(({ host, address, outcome, values }) => [host, address, outcome, values])
  return JSON.stringify([verdict, findings.map(({ code }) => code), servers])
}

/**
 * Creates a function that prints message and fix of the first finding of a DNS check whenever the message has changed, and in
 * between shows that the wait for the record continues. Prints nothing with `--quiet`, nor in JSON formats.
 */
export function createDnsWaitPrinter(io: Io) {
  let printed: string | undefined
  return async ({ findings: [first] }: CheckReport, news: string | undefined, nextInMs = 0) => {
    if (io.settings.quiet) return
    if (first !== undefined && first.message === news && news !== printed) {
      printed = news
      await io.say(news)
      await io.hint(first.fix)
    } else if (news !== undefined && news !== printed && !io.stderr.isTTY) await io.say(news)
    const next = formatDuration(nextInMs / 1000)
    if (io.stderr.isTTY) await io.progress.update(`waiting for the TXT record; checking every ${next}`)
  }
}

/**
 * Whether to request verification although the verdict is `wait`: the service doesn't use this machine's resolvers and their
 * caches, and may query a name server that isn't lagging.
 *
 * @param isLagOver whether the command has waited long enough for lagging name servers; until then, lagging name servers make the
 *   result false
 */
export function mayVerifyInWait({ verdict, findings }: CheckReport, isLagOver: boolean): boolean {
  return verdict === 'wait' && (isLagOver || findings.every(({ code }) => code !== 'partial_propagation'))
}

/** Returns `failure`, the error of the last DNS check, with `timed out after …` before its message. */
export const toTimeoutError = (failure: CliError, { timeoutMs }: Deadline): CliError =>
  failure.with({ message: `timed out after ${formatDuration(timeoutMs / 1000)}: ${failure.message}` })
