import { CliError } from '../errors.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import type { Delegation, TxtOutcome } from './observations.ts'
import type { CheckVerdict, Evidence, FindingCode, FindingSeverity } from './words.ts'

/** Report of a check as `--json` prints it, on which scripts rely. */
export interface CheckReportJson {
  name: string
  /** Expected TXT value, untruncated; null if none is expected. */
  expected: string | null
  /** Verdict of the check; `ready` if the service has accepted or completed the claim, else `unknown` if no value is expected. */
  verdict: CheckVerdict
  ready: boolean
  /** Seconds after the check during which caches and lagging name servers may give old answers; null if unknown or irrelevant. */
  retry_after_seconds: number | null
  /** Status of the claim that `claims check` has read; null if it has read none, such as with a given value. */
  claim: { status: string } | null
  /** Zone that contains the name; null if it wasn't found. */
  zone: string | null
  nameservers: NameserverAnswerJson[]
  /** Answers of recursive resolvers. Empty unless all name servers that answer have the record, or none gives a usable answer. */
  resolvers: ResolverAnswerJson[]
  /**
   * Findings sorted by the verdict that they cause, `fix` first: if a value is expected, the first one explains the report's
   * verdict.
   */
  findings: Finding[]
}

/** Result of a check: the JSON report, and more for the formats that users read. */
export interface CheckReport extends CheckReportJson {
  /** Delegations found in the search for the zone, from the top down. Left out of the JSON. */
  path: readonly Delegation[]
  /** Sentence for users that the claim, which the service has accepted or completed, needs no record. Left out of the JSON. */
  remark?: string
}

/** A problem that a check has found: its message and fix, and the facts (`evidence`) with which both texts are filled. */
export interface Finding {
  code: FindingCode
  severity: FindingSeverity
  message: string
  fix: string
  evidence: Evidence
}

/**
 * Answer of one resolver in the JSON report. `ms`: milliseconds, null if no query was sent; `ttl`: seconds, null without a TXT or
 * CNAME record.
 */
export interface ResolverAnswerJson {
  /**
   * IP address, with the port if a resolver's isn't 53, or URL of a resolver over HTTPS; null if a name server's host has no
   * address.
   */
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
  /** Whether the name server's answer had the AA bit (RFC 1035 section 4.1.1). */
  authoritative: boolean
  /** Serial of the zone's SOA record at this server; null without an authoritative answer with that record. */
  serial: number | null
}

/** Dotted paths of the JSON report's fields, for `--fields` and the commands' help. */
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

/** Time, version, resolvers and command line of a check, which Markdown and HTML reports show. */
export interface ReportMetadata {
  /** Time of the check in milliseconds since 1970. */
  readonly at: number
  readonly version: string
  /** Configured resolvers, else the system's, as `--resolver` takes them; without those that `--public-resolvers` adds. */
  readonly resolvers: readonly string[]
  /** Command line that repeats the check. */
  readonly command: string
}

/**
 * Returns the error for a record that isn't ready: `dns_unavailable` (exit 7) if the state of DNS is unknown, otherwise
 * `record_not_visible` (exit 8). Undefined if the record is ready or no value is expected.
 *
 * @param omitsFinding whether the error leaves out the first finding, because the findings are printed as well
 */
export function exitErrorOf(report: CheckReport, omitsFinding = false): CliError | undefined {
  const [first] = report.findings
  if (report.ready || report.expected === null) return undefined
  const isUnknown = report.verdict === 'unknown'
  const code = isUnknown ? 'dns_unavailable' : 'record_not_visible'
  const summary = `${isUnknown ? "can't tell what is" : "the record isn't ready"} at ${report.name}`
  if (first === undefined || omitsFinding) return new CliError(code, summary)
  return new CliError(code, first.message, { hint: sanitizeLine(first.fix) })
}
