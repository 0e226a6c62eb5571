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

/** The fields of a grant, dotted. */
export const GRANT_FIELDS = [
  'id',
  'client_id',
  'client.name',
  'client.logo_uri',
  'scopes',
  'resource',
  'created_at',
  'revoked_at',
  'revoked_reason',
] as const

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

/** The fields of an import, dotted. */
export const IMPORT_FIELDS = [
  'object',
  'id',
  'status',
  'created_at',
  'completed_at',
  'counts.total',
  'counts.created',
  'counts.updated',
  'counts.skipped',
  'counts.failed',
] as const

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

/** The fields of a claim, dotted. */
export const CLAIM_FIELDS = [
  'object',
  'id',
  'name',
  'status',
  'domain_id',
  'region',
  'record',
  'record.type',
  'record.name',
  'record.value',
  'record.ttl',
  'blocked_reason',
  'failure_reason',
  'created_at',
  'expires_at',
] as const

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

/** The value of `Authorization: Bearer` (section 5). Services of this shape accept either kind. */
export interface Credential {
  readonly kind: 'api_key' | 'access_token'
  readonly value: string
  /** Its source, for messages: "the API key in MAILCLAIM_API_KEY", "the access token of profile default". */
  readonly description: string
}

/** Whether a text can be the token of an Authorization header (RFC 6750 section 2.1): visible ASCII, no line break. */
export function isBearerToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
