import { encodeSegment, type RequestOptions, type ServiceClient } from './client.ts'
import { checkFieldTypes } from './problems.ts'
import { CLAIM_EXAMPLE, type ClaimRequest, type DomainClaim } from './types.ts'

/**
 * Starts a claim (service interface, section 4.5).
 *
 * @returns the claim, and whether the claim is new. The interface doesn't say how the service answers if a claim is already open,
 *   so a status of 200 instead of 201 is taken as an existing claim
 */
export async function createClaim(
  client: ServiceClient,
  request: ClaimRequest,
): Promise<{ claim: DomainClaim; created: boolean }> {
  const answer = await client.post('/domains/claim', request)
  return { claim: readClaim(answer.body), created: answer.status !== 200 }
}

/** Requests verification of a claim (service interface, section 4.6). The service responds first and verifies afterward. */
export async function verifyClaim(
  client: ServiceClient,
  domainId: string,
  options?: RequestOptions,
): Promise<DomainClaim> {
  const { body } = await client.post(`/domains/${encodeSegment(domainId)}/claim/verify`, undefined, options)
  return readClaim(body)
}

/** Whether a text is a UUID, as ids of the service are; the interface doesn't promise that a claim's `domain_id` has that form. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
}

/**
 * Fetches the latest claim of a placeholder domain (service interface, section 4.7).
 *
 * @throws CliError `not_found`, exit 5, without such a claim
 */
export async function getClaim(
  client: ServiceClient,
  domainId: string,
  options: RequestOptions = {},
): Promise<DomainClaim> {
  const { body } = await client.get(`/domains/${encodeSegment(domainId)}/claim`, {}, options)
  return readClaim(body)
}

function readClaim(body: Record<string, unknown>): DomainClaim {
  // The record's TTL may be a string or a number, so `ttl` is left out of the type check.
  const { ttl: _, ...record } = CLAIM_EXAMPLE.record
  checkFieldTypes(body, { ...CLAIM_EXAMPLE, record }, 'the claim', ['name', 'domain_id', 'status', 'record'])
  return body
}
