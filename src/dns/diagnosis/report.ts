import type { Outcome } from '../observation/observations.ts'

/** `claims check --json`: shapes and the order of their keys are what scripts rely on. */
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

export type Severity = 'error' | 'warning' | 'info'

export interface Finding {
  code: FindingCode
  severity: Severity
  /** What is the matter, with what was expected and what was seen. */
  message: string
  /** What to do, in plain words. */
  fix: string
  evidence: Record<string, unknown>
}

export type FindingCode =
  | 'invalid_name'
  | 'domain_not_found'
  | 'missing'
  | 'doubled_name'
  | 'other_name'
  | 'wildcard_answer'
  | 'cname_at_name'
  | 'cname_dangling'
  | 'cname_loop'
  | 'quoted'
  | 'whitespace'
  | 'split_strings'
  | 'split_records'
  | 'truncated'
  | 'case_changed'
  | 'stale_token'
  | 'token_only'
  | 'prefix_only'
  | 'pasted_line'
  | 'extra_text'
  | 'partial_propagation'
  | 'lame_nameserver'
  | 'nameserver_unreachable'
  | 'parent_child_mismatch'
  | 'no_nameservers'
  | 'wrong_provider_hint'
  | 'cached_absence'
  | 'cached_old_value'
  | 'dnssec_bogus'
  | 'resolver_broken'
  | 'tcp_blocked'
  | 'dns_intercepted'
  | 'too_many_txt'
