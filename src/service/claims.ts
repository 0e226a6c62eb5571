import { pathSegment, type RequestOptions, type ServiceClient } from './client.ts'
import { checkFields } from './problems.ts'
import { type ClaimRequest, DOMAIN_CLAIM, type DomainClaim } from './types.ts'

/**
 * Starts a claim (section 4.5).
 *
 * @returns the claim, and whether it is new. The interface doesn't say what happens if one is open already; a status of 200
 *   instead of 201 is taken to mean that it's the one returned
 */
export async function createClaim(
  client: ServiceClient,
  request: ClaimRequest,
): Promise<{ claim: DomainClaim; created: boolean }> {
  const answer = await client.post('/domains/claim', request)
  return { claim: readClaim(answer.body), created: answer.status !== 200 }
}

/** Asks the service to verify the claim (section 4.6), which it does after it has responded. */
export async function verifyClaim(
  client: ServiceClient,
  domainId: string,
  options?: RequestOptions,
): Promise<DomainClaim> {
  const { body } = await client.post(`/domains/${pathSegment(domainId)}/claim/verify`, undefined, options)
  return readClaim(body)
}

/** What an id of the service looks like; the interface doesn't promise it for placeholder domains. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
}

/** The latest claim of a placeholder domain (section 4.7). @throws CliError exit 5 if there is none, or no longer. */
export async function getClaim(
  client: ServiceClient,
  domainId: string,
  options: RequestOptions = {},
): Promise<DomainClaim> {
  const { body } = await client.get(`/domains/${pathSegment(domainId)}/claim`, {}, options)
  return readClaim(body)
}

function readClaim(body: Record<string, unknown>): DomainClaim {
  // A TTL may as well be a number.
  const { ttl: _, ...record } = DOMAIN_CLAIM.record
  checkFields(body, { ...DOMAIN_CLAIM, record }, 'the claim', ['name', 'domain_id', 'status', 'record'])
  return body
}
