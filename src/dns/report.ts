import { CliError } from '../errors.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import type { Delegation, TxtOutcome } from './observations.ts'
import type { Evidence, FindingCode, Severity, Verdict } from './words.ts'

/** Output of `claims check --json`, which scripts rely on. */
export interface CheckReportJson {
  name: string
  /** Expected TXT value, untruncated; null if none is expected. */
  expected: string | null
  verdict: Verdict
  ready: boolean
  /** Seconds for which caches or slow servers may keep the old state; null if unknown or irrelevant. */
  retry_after_seconds: number | null
  /** Claim that the record belongs to; null if this machine knows none. */
  claim: { status: string } | null
  /** Zone that holds the name; null if it wasn't found. */
  zone: string | null
  nameservers: NameserverAnswerJson[]
  /** Answers of recursive resolvers. Empty unless the authoritative servers have the record, or none of them can be reached. */
  resolvers: ResolverAnswerJson[]
  /**
   * Findings in the order of the verdicts that they cause, `fix` first, so the first one explains the report's verdict. With the
   * same verdict, the most likely cause is first.
   */
  findings: Finding[]
}

/** Result of a check: the fields of the JSON report, and more for the formats that users read. */
export interface CheckReport extends CheckReportJson {
  /** Delegations that led to the zone, from the top down. Left out of the JSON. */
  path: readonly Delegation[]
  /** Why the state of DNS no longer matters, such as a completed claim. Left out of the JSON. */
  remark?: string
}

/** A conclusion from the answers, with its message and fix for users, and the facts behind it. */
export interface Finding {
  code: FindingCode
  severity: Severity
  message: string
  fix: string
  evidence: Evidence
}

/** Answer of one resolver in the JSON report; times are in milliseconds, TTLs in seconds. */
export interface ResolverAnswerJson {
  /** IP address, or URL of a resolver over HTTPS; null if a name server's host has no address. */
  address: string | null
  outcome: TxtOutcome
  /** TXT values with their character-strings joined, decoded as UTF-8, or as Windows-1252 if that fails. */
  values: string[]
  ttl: number | null
  ms: number | null
}

/** Answer of one name server, at one of its addresses, in the JSON report. */
export interface NameserverAnswerJson extends ResolverAnswerJson {
  host: string
  /** Whether the answer had the AA bit (RFC 1035 section 4.1.1). */
  authoritative: boolean
  /** Serial of the zone's SOA record at this server; null without one. */
  serial: number | null
}

/** Dotted paths of the fields of the JSON report, as the help of the commands lists them. */
export const CHECK_REPORT_FIELDS = [
  ...['name', 'expected', 'verdict', 'ready', 'retry_after_seconds', 'claim.status', 'zone'],
  ...'host address outcome authoritative values ttl serial ms'.split(' ').map((key) => `nameservers.${key}`),
  ...'address outcome values ttl ms'.split(' ').map((key) => `resolvers.${key}`),
  ...'code severity message fix evidence'.split(' ').map((key) => `findings.${key}`),
]

/** Returns the part of a report that `--json` prints. */
export function toReportJson({ path: _path, remark: _remark, ...report }: CheckReport): CheckReportJson {
  return report
}

/** Circumstances of a check, which Markdown and HTML reports show. */
export interface ReportContext {
  /** Time of the check in milliseconds since 1970. */
  readonly at: number
  readonly version: string
  /** The configured resolvers, else the system's, in the form that `--resolver` takes, without those of `--public-resolvers`. */
  readonly resolvers: readonly string[]
  /** Command line that repeats the check. */
  readonly command: string
}

/**
 * Returns the error that ends a command after this report; undefined if the record is ready or no value was expected. The error is
 * `record_not_visible`, exit 8, if the record needs a fix or more time, and `dns_unavailable`, exit 7, if DNS couldn't be queried.
 *
 * @param findingsShown whether the findings have just been printed, so that the error doesn't repeat them
 */
export function exitErrorOf(report: CheckReport, findingsShown = false): CliError | undefined {
  const [first] = report.findings
  if (report.ready || report.expected === null) return undefined
  const isUnknown = report.verdict === 'unknown'
  const code = isUnknown ? 'dns_unavailable' : 'record_not_visible'
  const summary = `${isUnknown ? "can't tell what is" : "the record isn't ready"} at ${report.name}`
  if (first === undefined || findingsShown) return new CliError(code, summary)
  return new CliError(code, first.message, { hint: sanitizeLine(first.fix) })
}
