import type { ServiceClient } from './client.ts'
import { listPage } from './lists.ts'
import type { PageFetcher } from './paging.ts'
import type { Grant } from './types.ts'

/** Pages of the grants of the team, revoked ones included (section 4.2). */
export function grantPages(client: ServiceClient): PageFetcher<Grant> {
  return (cursor, signal) => listPage<Grant>(client, '/oauth/grants', { ...cursor }, signal)
}

/** A grant is revoked once either field says so (section 3.2). */
export function isRevoked(grant: Grant): boolean {
  return (grant.revoked_at ?? grant.revoked_reason ?? null) !== null
}
