/**
 * The resources of sections 2.2 to 2.5. Because the interface leaves much open, any field may be null or missing, and
 * unknown fields are kept: objects stay as they were received.
 */

export interface Grant {
  readonly id?: string | null
  readonly client_id?: string | null
  readonly scopes?: readonly string[] | null
  readonly resource?: string | null
  readonly created_at?: string | null
  readonly revoked_at?: string | null
  readonly revoked_reason?: string | null
  readonly client?: { readonly name?: string | null; readonly logo_uri?: string | null } | null
}

export interface ImportCounts {
  readonly total?: number | null
  readonly created?: number | null
  readonly updated?: number | null
  readonly skipped?: number | null
  readonly failed?: number | null
}

export interface ContactImport {
  readonly object?: string | null
  readonly id?: string | null
  /** One of `IMPORT_STATUSES`, or one that is not known yet. */
  readonly status?: string | null
  readonly created_at?: string | null
  readonly completed_at?: string | null
  readonly counts?: ImportCounts | null
}

export const IMPORT_STATUSES = ['queued', 'in_progress', 'completed', 'failed'] as const
export type ImportStatus = (typeof IMPORT_STATUSES)[number]

/** The DNS record to add for a claim. */
export interface ClaimRecord {
  readonly type?: string | null
  readonly name?: string | null
  /** Shaped `prefix=token`. */
  readonly value?: string | null
  readonly ttl?: string | null
}

export interface DomainClaim {
  readonly object?: string | null
  readonly id?: string | null
  readonly name?: string | null
  readonly status?: string | null
  /** The placeholder domain: the path parameter of the operations on a claim. */
  readonly domain_id?: string | null
  readonly region?: string | null
  readonly record?: ClaimRecord | null
  readonly blocked_reason?: string | null
  readonly failure_reason?: string | null
  readonly created_at?: string | null
  readonly expires_at?: string | null
}

export const REGIONS = ['us-east-1', 'eu-west-1', 'sa-east-1', 'ap-northeast-1'] as const
export type Region = (typeof REGIONS)[number]

/** The body of a request to create a claim (section 4.5). */
export interface ClaimRequest {
  readonly name: string
  readonly region?: string
  readonly custom_return_path?: string
  readonly open_tracking?: boolean
  readonly click_tracking?: boolean
  readonly tracking_subdomain?: string
}

/** Section 2.3. `data` and `has_more` have been checked; everything else is as received. */
export interface ListEnvelope<T> {
  readonly object?: string
  readonly has_more: boolean
  readonly data: readonly T[]
}
