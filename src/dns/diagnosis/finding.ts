import type { Text } from './text.ts'
import type { ValueFault } from './value-comparison.ts'

export type Severity = 'error' | 'warning' | 'info'

/** One thing that the observations show, and what to tell a person about it. */
export interface Finding {
  readonly code: FindingCode
  readonly severity: Severity
  /** What is wrong, with what was expected and what was found. */
  readonly message: Text
  /** What to do. */
  readonly fix: Text
  /** The wrong TXT values: one, or the parts of `split_records` in order. */
  readonly seen?: readonly string[]
  /** The value that they are compared with, if it isn't the one that the report expects. */
  readonly expected?: string
  /** The bytes of the first of them, if they are known: not all values are UTF-8. */
  readonly stored?: Uint8Array | undefined
  /** Seconds until the cache drops the old state. */
  readonly secondsLeft?: number
  /** False for an error that leaves open whether the record is there: the path to the servers may be the problem. */
  readonly certain?: boolean
  /** The evidence, by its names in the JSON report. */
  readonly details: Readonly<Record<string, unknown>>
}

export type FindingCode =
  | ValueFault
  | 'invalid_name'
  | 'claim_completed'
  | 'claim_verified'
  | 'claim_ended'
  | 'claim_blocked'
  | 'claim_not_asked'
  | 'doubtful_value'
  | 'domain_not_found'
  | 'missing'
  | 'doubled_name'
  | 'other_name'
  | 'wildcard_answer'
  | 'cname_at_name'
  | 'cname_dangling'
  | 'cname_loop'
  | 'split_strings'
  | 'partial_propagation'
  | 'lame_nameserver'
  | 'not_authoritative'
  | 'nameserver_unreachable'
  | 'nameserver_alias'
  | 'parent_child_mismatch'
  | 'delegation_not_checked'
  | 'zone_not_delegated'
  | 'no_nameservers'
  | 'wrong_provider_hint'
  | 'cached_absence'
  | 'cached_old_value'
  | 'dnssec_bogus'
  | 'resolver_broken'
  | 'tcp_blocked'
  | 'dns_intercepted'
  | 'txt_refused'
  | 'edns_dropped'
  | 'edns_rejected'
  | 'udp_dropped'
  | 'queries_filtered'
  | 'stale_delegation'
  | 'split_dns'
  | 'txt_filtered'
  | 'not_validated'
  | 'too_many_txt'
  | 'cname_instead_of_txt'
