import type { Outcome } from '../observation/observations.ts'
import type { PathStep } from '../resolution/delegation-walk.ts'
import type { Finding, FindingCode, Severity } from './finding.ts'

/** What a check found out; `reportJson` turns it into the JSON for scripts. */
export interface CheckReport {
  name: string
  /** The whole TXT value; null in a check that only looks. */
  expected: string | null
  verdict: Verdict
  ready: boolean
  /** Seconds for which caches or slow servers may keep the old state; null if unknown or irrelevant. */
  retry_after_seconds: number | null
  /** The zone that holds the name, or null if it wasn't found. */
  zone: string | null
  nameservers: NameserverReport[]
  /** Empty unless the authoritative servers have the record. */
  resolvers: ResolverReport[]
  /** Most likely cause first. */
  findings: Finding[]
  /** How the zone was found, the topmost zone first; not in the JSON. Absent if the search had no result. */
  path?: readonly PathStep[] | undefined
}

/** The output of `claims check --json`; scripts rely on it. */
export interface CheckReportJson extends Omit<CheckReport, 'findings' | 'path'> {
  findings: FindingJson[]
}

/** The fields of the JSON report, dotted. */
export const REPORT_FIELDS = [
  'name',
  'expected',
  'verdict',
  'ready',
  'retry_after_seconds',
  'zone',
  ...['host', 'address', 'outcome', 'authoritative', 'values', 'ttl', 'serial', 'ms'].map(
    (field) => `nameservers.${field}`,
  ),
  ...['address', 'outcome', 'values', 'ttl', 'ms'].map((field) => `resolvers.${field}`),
  ...['code', 'severity', 'message', 'fix', 'evidence'].map((field) => `findings.${field}`),
]

/** A finding in the JSON report. */
export interface FindingJson {
  code: FindingCode
  severity: Severity
  message: string
  fix: string
  evidence: Record<string, unknown>
}

export type Verdict = 'ready' | 'ready_with_warning' | 'wait' | 'fix' | 'unknown'

export interface NameserverReport {
  host: string
  /** Null if the host has no address. */
  address: string | null
  outcome: Outcome
  /** Whether the answer had the AA bit (RFC 1035 section 4.1.1). */
  authoritative: boolean
  /** The TXT values seen, each with its strings joined; as Latin-1 if not valid UTF-8. */
  values: string[]
  ttl: number | null
  /** The zone's SOA serial at this server. */
  serial: number | null
  ms: number | null
}

export interface ResolverReport {
  address: string
  outcome: Outcome
  values: string[]
  ttl: number | null
  ms: number | null
}
