/** Type of a resource as received: any field of its shape may be null or missing, because the service doesn't promise otherwise. */
type Received<Shape> = {
  readonly [Field in keyof Shape]?:
    | (Shape[Field] extends Readonly<Record<string, unknown>> ? Received<Shape[Field]> : Shape[Field])
    | null
}

/** Example of an OAuth grant, from which the type `OAuthGrant` and the field names `OAUTH_GRANT_FIELDS` are derived. */
export const OAUTH_GRANT_SHAPE = {
  id: '9b2f6a51-0d4e-4c37-8f0e-3a1d5c7b9e21',
  client_id: '430eed87-632a-4ea6-90db-0aace67ec228',
  client: { name: 'Mail editor', logo_uri: 'https://editor.example/logo.png' },
  scopes: ['emails:send'],
  resource: 'https://api.example.com',
  created_at: '2026-05-12 09:14:03.120481+00',
  revoked_at: '2026-06-01 10:00:00.000000+00',
  revoked_reason: 'revoked_from_api',
}
export type OAuthGrant = Received<typeof OAUTH_GRANT_SHAPE>
export const OAUTH_GRANT_FIELDS = fieldNamesOf(OAUTH_GRANT_SHAPE)

export const CONTACT_IMPORT_STATUSES = ['queued', 'in_progress', 'completed', 'failed'] as const
export type ContactImportStatus = (typeof CONTACT_IMPORT_STATUSES)[number]

/** Example of a contact import, from which its type, its field names and the type check of responses are derived. */
export const CONTACT_IMPORT_SHAPE = {
  object: 'contact_import',
  id: '479e3145-dd38-4932-8c0c-e58b548c9e76',
  /** Status of the import: one of `CONTACT_IMPORT_STATUSES`, or one that the service has added since. */
  status: 'completed',
  created_at: '2026-05-12 09:14:03.120481+00',
  completed_at: '2026-05-12 09:15:41.002913+00',
  counts: { total: 1200, created: 1000, updated: 150, skipped: 40, failed: 10 },
}
export type ContactImport = Received<typeof CONTACT_IMPORT_SHAPE>
export const CONTACT_IMPORT_FIELDS = fieldNamesOf(CONTACT_IMPORT_SHAPE)

/**
 * Example of a domain claim, from which `DomainClaim`, the field names and the type check of responses are derived. The check skips
 * the record's `ttl`, which may be a string or a number.
 */
export const CLAIM_SHAPE = {
  object: 'domain_claim',
  id: '0f3c2a8e-5b1d-4e6f-9a7c-8d2b4c6e1f30',
  name: 'example.com',
  status: 'pending',
  /**
   * Id of the placeholder domain: a domain object that the service creates on the claiming team together with the claim. Paths of
   * requests about the claim contain this id, not the claim's `id`.
   */
  domain_id: 'd5f1a5a0-7c39-4a8e-9c1a-2f6b1f6f0c11',
  region: 'us-east-1',
  record: { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' },
  blocked_reason: 'grace_period',
  failure_reason: 'verification_failed',
  created_at: '2026-05-12 09:14:03.120481+00',
  expires_at: '2026-05-19 09:14:03.120481+00',
}
export type DomainClaim = Received<typeof CLAIM_SHAPE>
export const CLAIM_FIELDS = fieldNamesOf(CLAIM_SHAPE)

/** Returns the names of a shape's fields for `--fields`; a nested field's name has a dot, such as `record.value`. */
function fieldNamesOf(shape: object): string[] {
  return Object.entries(shape).flatMap(([name, value]) =>
    typeof value === 'object' && !Array.isArray(value)
      ? fieldNamesOf(value).map((inner) => `${name}.${inner}`)
      : [name],
  )
}

export const CLAIM_REGIONS = ['us-east-1', 'eu-west-1', 'sa-east-1', 'ap-northeast-1'] as const

/** Body of a request that creates a claim. */
export interface CreateClaimRequest {
  readonly name: string
  readonly region?: string | undefined
  readonly custom_return_path?: string
  readonly open_tracking?: boolean
  readonly click_tracking?: boolean
  readonly tracking_subdomain?: string
}

/** Response with one page of a list. The types of `data` and `has_more` have been checked; other fields are as received. */
export interface ListEnvelope<T> {
  readonly object?: string
  readonly has_more: boolean
  readonly data: readonly T[]
}

/** Credential for the `Authorization: Bearer` header: an API key or an OAuth access token. */
export interface Credential {
  readonly kind: 'api_key' | 'access_token'
  readonly value: string
  /** Name of the credential for messages, usually with its source, such as "the API key in MAILCLAIM_API_KEY". */
  readonly description: string
  /** Expiry of an access token in milliseconds since 1970; undefined for an API key. */
  readonly expiresAt?: number
}
