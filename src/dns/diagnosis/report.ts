import type { Outcome } from '../observation/observations.ts'
import type { Finding, FindingCode, Severity } from './finding.ts'

/** What a check found out. `reportJson` makes of it what scripts read. */
export interface CheckReport {
  name: string
  expected: string
  verdict: Verdict
  ready: boolean
  /** Seconds that caches or slow servers may still hold the old state; null where that says nothing. */
  retry_after_seconds: number | null
  /** The zone that holds the name, or null where it could not be found. */
  zone: string | null
  nameservers: NameserverReport[]
  /** Empty unless the authoritative servers have the record. */
  resolvers: ResolverReport[]
  /** Most likely cause first. */
  findings: Finding[]
}

/** `claims check --json`: shapes and the order of their keys are what scripts rely on. */
export interface CheckReportJson extends Omit<CheckReport, 'findings'> {
  findings: FindingJson[]
}

/** A finding as scripts read it. */
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
  /** Null where the host has no address. */
  address: string | null
  outcome: Outcome
  /** Whether the answer had the AA bit (RFC 1035 section 4.1.1). */
  authoritative: boolean
  /** The TXT values seen, strings joined; bytes that are no UTF-8 appear as latin-1. */
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
