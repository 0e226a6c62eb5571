import { encodeIdForPath, type RequestLimits, type ServiceClient } from './client.ts'
import { requireFieldTypes } from './problems.ts'
import { CLAIM_SHAPE, type CreateClaimRequest, type DomainClaim } from './types.ts'

/**
 * Creates a claim of a domain.
 *
 * @returns `claim`: the new claim, or an open one that the service returns with status 200 instead of 201; `created`: whether new
 */
export async function createOrGetClaim(
  client: ServiceClient,
  request: CreateClaimRequest,
): Promise<{ claim: DomainClaim; created: boolean }> {
  const answer = await client.post('/domains/claim', request)
  return { claim: readClaim(answer.body), created: answer.status !== 200 }
}

/**
 * Requests verification of a claim. The service responds before it verifies, so the returned claim may not have the result yet.
 *
 * @param domainId the claim's `domain_id`
 */
export async function requestClaimVerification(
  client: ServiceClient,
  domainId: string,
  options?: RequestLimits,
): Promise<DomainClaim> {
  const { body } = await client.post(`/domains/${encodeIdForPath(domainId)}/claim/verify`, undefined, options)
  return readClaim(body)
}

/** Whether a text is a UUID. The service's ids are UUIDs, but that isn't guaranteed, so a text of another form may be an id too. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
}

/**
 * Fetches the latest claim of a placeholder domain, which the service creates on the claiming team together with a claim.
 *
 * @param domainId the claim's `domain_id`
 * @throws CliError `not_found`, exit 5, if there is no such claim
 */
export async function fetchLatestClaim(
  client: ServiceClient,
  domainId: string,
  options: RequestLimits = {},
): Promise<DomainClaim> {
  const { body } = await client.get(`/domains/${encodeIdForPath(domainId)}/claim`, {}, options)
  return readClaim(body)
}

function readClaim(body: Record<string, unknown>): DomainClaim {
  // The record's `ttl` may be a string ("Auto") or a number, so leave it out of the type check.
  const { ttl: _, ...record } = CLAIM_SHAPE.record
  requireFieldTypes(body, { ...CLAIM_SHAPE, record }, 'the claim', ['name', 'domain_id', 'status', 'record'])
  return body
}
