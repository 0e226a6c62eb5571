/**
 * The resources of sections 2.2 to 2.5, by the dotted names of their fields. Because the interface leaves much open, any field
 * may be null or missing, and unknown fields are kept: objects stay as they were received.
 */

/** Fields of an object of the service. */
type Fields<Name extends string, Value = string> = { readonly [name in Name]?: Value | null }
/** The fields of an object that are no objects themselves: those without a dot. */
type Flat<Name extends string> = Exclude<Name, `${string}.${string}`>
/** The fields of the object in a field. */
type Inside<Parent extends string, Name extends string> = Name extends `${Parent}.${infer Inner}`
  ? Inner
  : never

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
type GrantField = (typeof GRANT_FIELDS)[number]

export interface Grant extends Fields<Exclude<Flat<GrantField>, 'scopes'>> {
  readonly scopes?: readonly string[] | null
  readonly client?: Fields<Inside<'client', GrantField>> | null
}

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
type ImportField = (typeof IMPORT_FIELDS)[number]

/** Its status is one of `IMPORT_STATUSES`, or one that is not known yet. */
export interface ContactImport extends Fields<Flat<ImportField>> {
  readonly counts?: Fields<Inside<'counts', ImportField>, number> | null
}

export const IMPORT_STATUSES = ['queued', 'in_progress', 'completed', 'failed'] as const
export type ImportStatus = (typeof IMPORT_STATUSES)[number]

/** `domain_id` is the placeholder domain, the path parameter of the operations on a claim; `record` is the DNS record to add. */
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
type ClaimField = (typeof CLAIM_FIELDS)[number]

export interface DomainClaim extends Fields<Exclude<Flat<ClaimField>, 'record'>> {
  readonly record?: Fields<Inside<'record', ClaimField>> | null
}

export const REGIONS = ['us-east-1', 'eu-west-1', 'sa-east-1', 'ap-northeast-1'] as const

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
