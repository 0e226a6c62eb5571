import type { Context } from '../context.ts'
import { getClaim } from '../service/claims.ts'
import type { DomainClaim } from '../service/types.ts'
import { connect } from '../session/connect.ts'
import type { Settings } from '../settings/settings.ts'
import { recordClaim } from './ledger.ts'
import { resolveClaim } from './resolve.ts'

/**
 * The claim that is meant, with its record: as the ledger knows it, without a question to the service;
 * else as the service has it now.
 *
 * @throws CliError as `resolveClaim` and the service's operations do.
 */
export async function knownClaim(
  argument: string | undefined,
  context: Context,
  settings: Settings,
): Promise<DomainClaim> {
  const { domainId, entry } = await resolveClaim(argument, context, settings)
  if (entry?.claim.record?.value) return entry.claim
  const claim = await getClaim(connect(context, settings), domainId)
  await recordClaim(claim, context, settings)
  return claim
}
