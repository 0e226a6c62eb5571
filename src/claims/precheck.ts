import type { CheckRequest } from '../dns/old-check.ts'
import type { Finding } from '../dns/diagnosis/finding.ts'
import type { CheckReport } from '../dns/diagnosis/report.ts'
import { capitalize, text } from '../dns/diagnosis/text.ts'
import { CliError, Exit } from '../errors.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Settings } from '../settings/settings.ts'
import type { SeenClaim } from './current-claim.ts'
import { asArgument, completedText, endedError, endOf, lastSeen, nameOf, stateOf } from './lifecycle.ts'

export type DnsSettings = Pick<Settings, 'resolvers' | 'authoritativePort'>

/** The DNS check for a record. */
export function checkRequest(
  record: { name: string; value: string | null },
  settings: DnsSettings,
  publicResolvers = false,
): CheckRequest {
  return {
    name: record.name,
    expected: record.value,
    resolvers: settings.resolvers ?? 'system',
    authoritativePort: settings.authoritativePort,
    publicResolvers,
  }
}

/** Why it no longer matters what is in DNS, with the error if the claim ended unsuccessfully. */
interface Conclusion {
  readonly finding: Finding
  readonly error?: CliError
}

/**
 * How far a claim is, if that no longer depends on its record in DNS; undefined while it does.
 *
 * @param now milliseconds since 1970
 */
export function conclusionOf(claim: DomainClaim, now: number): Conclusion | undefined {
  if (stateOf(claim).phase === 'completed') {
    const fix = 'Nothing to do; if the record is still in DNS, it can be removed'
    const message = completedText(claim)
    return { finding: { code: 'claim_completed', severity: 'info', message, fix, details: {} } }
  }
  if (claim.status === 'verified') {
    const message = `the service has accepted the record of ${nameOf(claim)}, and the transfer is in progress`
    const fix = `Keep the record until the claim is completed; to see when: mailclaim claims watch${asArgument(claim)}`
    return { finding: { code: 'claim_verified', severity: 'info', message, fix, details: {} } }
  }
  const error = endOf(claim, now)
  return error && endOfClaim(error, claim.failure_reason)
}

/** How a claim has ended without success: as this error says. @param reason the service's, if it gave one */
export function endOfClaim(error: CliError, reason?: string | null): Conclusion {
  const { code, message, hint = '' } = error
  const details = { error: code, ...(reason && { failure_reason: reason }) }
  const finding = { code: 'claim_ended', severity: 'error', message, fix: capitalize(hint), details } as const
  return { finding, error }
}

/** The report on the record of a claim that is over: nothing in DNS makes a difference. */
export function concludedReport(report: CheckReport, { finding, error }: Conclusion): CheckReport {
  const ready = error === undefined
  return {
    ...report,
    verdict: ready ? 'ready' : 'fix',
    ready,
    retry_after_seconds: null,
    findings: [finding],
  }
}

/** The report on the record of a claim that may still complete: a block stops it whatever is in DNS. */
export function openReport(report: CheckReport, claim: DomainClaim): CheckReport {
  const state = stateOf(claim)
  if (state.phase !== 'blocked') return report
  const { message, hint = '' } = endedError(claim, state)
  const details = { blocked_reason: claim.blocked_reason ?? null }
  const block = {
    code: 'claim_blocked',
    severity: 'warning',
    message,
    fix: capitalize(hint),
    details,
  } as const
  // What is wrong in DNS is the cause of the verdict.
  return { ...report, findings: report.ready ? [block, ...report.findings] : [...report.findings, block] }
}

/** Whether the claim of this error may still complete, for which it needs its record in DNS. */
export const mayComplete = ({ exit, code }: CliError): boolean =>
  exit !== Exit.negativeEnd || code === 'claim_blocked'

/** The error of a claim, with what is wrong in DNS if the claim may still complete. @param failure what a check ended with */
export function withDnsHint(error: CliError, failure: CliError | undefined): CliError {
  if (failure === undefined || !mayComplete(error)) return error
  const { code, exit, message, retryAfterMs, cause } = error
  const hint = [error.hint, `DNS: ${failure.message}`, failure.hint].filter(Boolean).join('\n')
  return new CliError(code, exit, message, { hint, retryAfterMs, cause })
}

/**
 * The report on the record of a claim about which the service couldn't be asked: it may have ended, and another token in DNS
 * may be the right one.
 *
 * @param now milliseconds since 1970
 */
export function outdatedReport(
  report: CheckReport,
  { claim, seenAt, unasked }: SeenClaim & { readonly unasked: CliError },
  now: number,
): CheckReport {
  const doubt = {
    code: 'claim_not_asked',
    severity: 'warning',
    message: `The service couldn't be asked about the claim of ${nameOf(claim)} now (${unasked.message}). It was last seen ${lastSeen(seenAt, now)}, and may have ended since`,
    fix: `Make sure that the claim is still open: mailclaim claims get${asArgument(claim)}`,
    details: { last_seen_at: new Date(seenAt).toISOString() },
  } as const
  const findings = report.findings.map((finding) =>
    finding.code === 'stale_token'
      ? {
          ...finding,
          message: text`${finding.message}, or belong to a newer one that was started elsewhere: this claim was last seen ${lastSeen(seenAt, now)}, and the service couldn't be asked about it now`,
          fix: text`First make sure that this claim is still open: mailclaim claims get${asArgument(claim)}. If it is: ${finding.fix}`,
        }
      : finding,
  )
  return { ...report, findings: report.ready ? [doubt, ...findings] : [...findings, doubt] }
}

/**
 * Whether the service may see a record that isn't visible everywhere from here: a cache affects this machine's resolvers
 * only, and the service may query a name server that isn't lagging.
 *
 * @param isLongLag whether lagging name servers have had enough time
 */
export function isWorthVerifying(
  { verdict, findings }: Pick<CheckReport, 'verdict' | 'findings'>,
  isLongLag: boolean,
): boolean {
  return verdict === 'wait' && (isLongLag || findings.every(({ code }) => code !== 'partial_propagation'))
}
