import { CliError } from '../errors.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import type { Delegation, Outcome } from './observations.ts'
import type { Code, Facts, Severity, Verdict } from './words.ts'

/** The output of `claims check --json`; scripts rely on it. */
export interface CheckReportJson {
  name: string
  /** The whole TXT value; null in a check that only looks. */
  expected: string | null
  verdict: Verdict
  ready: boolean
  /** Seconds for which caches or slow servers may keep the old state; null if unknown or irrelevant. */
  retry_after_seconds: number | null
  /** The claim that the record is for, if the caller knows one. */
  claim: { status: string } | null
  /** The zone that holds the name, or null if it wasn't found. */
  zone: string | null
  nameservers: NameserverReport[]
  /** Empty unless the authoritative servers have the record, or none of them can be reached. */
  resolvers: ResolverReport[]
  /** The reason of the verdict first; of those that make the same of it, the most likely cause. */
  findings: Finding[]
}

/** What a check found out. */
export interface CheckReport extends CheckReportJson {
  /** How the zone was found, the topmost zone first; not in the JSON. */
  path: readonly Delegation[]
  /** Why it no longer matters what is in DNS; not in the JSON. */
  remark?: string
}

/** One thing that the observations show, and what to tell a person about it. */
export interface Finding {
  code: Code
  severity: Severity
  message: string
  fix: string
  evidence: Facts
}

export interface ResolverReport {
  /** Null if the host has no address. */
  address: string | null
  outcome: Outcome
  /** The TXT values seen, each with its strings joined; as Windows-1252 if not valid UTF-8. */
  values: string[]
  ttl: number | null
  ms: number | null
}

export interface NameserverReport extends ResolverReport {
  host: string
  /** Whether the answer had the AA bit (RFC 1035 section 4.1.1). */
  authoritative: boolean
  /** The zone's SOA serial at this server. */
  serial: number | null
}

/** The fields of the JSON report, dotted. */
export const REPORT_FIELDS = [
  ...['name', 'expected', 'verdict', 'ready', 'retry_after_seconds', 'claim.status', 'zone'],
  ...['host', 'address', 'outcome', 'authoritative', 'values', 'ttl', 'serial', 'ms'].map(
    (field) => `nameservers.${field}`,
  ),
  ...['address', 'outcome', 'values', 'ttl', 'ms'].map((field) => `resolvers.${field}`),
  ...['code', 'severity', 'message', 'fix', 'evidence'].map((field) => `findings.${field}`),
]

/** The report for scripts. */
export function reportJson({ path: _path, remark: _remark, ...report }: CheckReport): CheckReportJson {
  return report
}

/** How a report was made. */
export interface ReportContext {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly version: string
  /** Where the search for the name servers started. */
  readonly resolvers: readonly string[]
  /** The command that makes it again. */
  readonly command: string
}

/**
 * The error with which a command ends after this report; undefined if the record is ready, or if no value was expected:
 * `record_not_visible` (exit 8) if something needs fixing or waiting for, `dns_unavailable` (exit 7) if DNS couldn't be queried.
 *
 * @param findingsShown whether the findings have just been printed, so the error doesn't repeat them
 */
export function exitErrorOf(report: CheckReport, findingsShown = false): CliError | undefined {
  const [first] = report.findings
  if (report.ready || report.expected === null) return undefined
  const [code, summary] =
    report.verdict === 'unknown'
      ? (['dns_unavailable', `can't tell what is at ${report.name}`] as const)
      : (['record_not_visible', `the record isn't ready at ${report.name}`] as const)
  if (first === undefined || findingsShown) return new CliError(code, summary)
  return new CliError(code, first.message, { hint: sanitizeLine(first.fix) })
}
