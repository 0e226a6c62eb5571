import type { Context } from '../context.ts'
import { getClaim } from '../service/claims.ts'
import { createServiceClient } from '../service/client.ts'
import { createAuthorizer } from '../session/authorizer.ts'
import type { Settings } from '../settings/settings.ts'
import { recordClaim } from './ledger.ts'
import { recordOf, type TxtRecord } from './record.ts'
import { resolveClaim } from './resolve.ts'

/**
 * The TXT record that a claim waits for: as the ledger knows it, without a question to the service;
 * else as the service has it now.
 *
 * @throws CliError as `resolveClaim`, `recordOf` and the service's operations do.
 */
export async function claimRecord(
  argument: string | undefined,
  context: Context,
  settings: Settings,
): Promise<TxtRecord> {
  const { domainId, entry } = await resolveClaim(argument, context, settings)
  if (entry?.claim.record?.value) return recordOf(entry.claim)
  const authorizer = createAuthorizer(context, settings)
  const claim = await getClaim(createServiceClient({ context, settings, authorizer }), domainId)
  await recordClaim(claim, context, settings)
  return recordOf(claim)
}
