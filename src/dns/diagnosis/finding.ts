export type Severity = 'error' | 'warning' | 'info'

/** One thing that the observations show, with what a person is told about it. */
export interface Finding {
  readonly code: FindingCode
  readonly severity: Severity
  /** What is the matter, with what was expected and what was seen. */
  readonly message: string
  /** What to do, in plain words. */
  readonly fix: string
  /** The wrong TXT values: one, or the parts of `split_records` in their order. */
  readonly seen?: readonly string[]
  /** Seconds until the cache in question forgets the old state. */
  readonly secondsLeft?: number
  /** False for an error that leaves open whether the record is there: it may be the path to the servers alone. */
  readonly certain?: boolean
  /** The facts behind it, by their names in the JSON report. */
  readonly details: Readonly<Record<string, unknown>>
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
  | 'txt_refused'
  | 'edns_dropped'
  | 'udp_dropped'
  | 'stale_delegation'
  | 'split_dns'
  | 'txt_filtered'
  | 'not_validated'
  | 'too_many_txt'
  | 'characters_changed'
  | 'encoded'
  | 'placeholder'
  | 'swapped'
  | 'cname_instead_of_txt'
