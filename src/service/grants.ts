import type { ServiceClient } from './client.ts'
import { listPage } from './lists.ts'
import type { PageFetcher } from './paging.ts'
import type { Grant } from './types.ts'

/** Pages of the team's grants, including revoked ones (section 4.2). */
export function grantPages(client: ServiceClient): PageFetcher<Grant> {
  return (cursor, signal) => listPage<Grant>(client, '/oauth/grants', { ...cursor }, signal)
}

/** Sends the cheapest request that needs a credential and changes nothing: it lists one grant. */
export async function tryCredential(client: ServiceClient): Promise<void> {
  await client.get('/oauth/grants', { limit: 1 })
}

/** A grant is revoked if either field is set (section 3.2). */
export function isRevoked(grant: Grant): boolean {
  return (grant.revoked_at ?? grant.revoked_reason ?? null) !== null
}
