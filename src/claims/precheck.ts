import type { CheckRequest } from '../dns/check.ts'
import type { CheckReport } from '../dns/report.ts'
import { CliError, Exit } from '../errors.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Settings } from '../settings/settings.ts'
import { endOf, stateOf } from './lifecycle.ts'

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
  readonly status: string | null
  readonly error?: CliError
}

/**
 * How far a claim is, if that no longer depends on its record in DNS; undefined while it does.
 *
 * @param now milliseconds since 1970
 */
export function conclusionOf(claim: DomainClaim, now: number): Conclusion | undefined {
  const status = claim.status ?? null
  if (stateOf(claim).phase === 'completed' || status === 'verified') return { status }
  const error = endOf(claim, now)
  return error && { status, error }
}

/** The report on the record of a claim that is over: nothing in DNS makes a difference. */
export function concludedReport(report: CheckReport, { status, error }: Conclusion): CheckReport {
  const ready = error === undefined
  const over = ready ? ({ verdict: 'ready', ready, retry_after_seconds: null, findings: [] } as const) : {}
  return { ...report, ...over, findings: ready ? [] : report.findings, claim: { status } }
}

/** The report on the record of a claim that may still complete. */
export function openReport(report: CheckReport, claim: DomainClaim): CheckReport {
  return { ...report, claim: { status: claim.status ?? null } }
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
