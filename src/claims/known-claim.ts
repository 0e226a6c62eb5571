import type { Context } from '../context.ts'
import { getClaim } from '../service/claims.ts'
import type { DomainClaim } from '../service/types.ts'
import { connect } from '../session/connect.ts'
import type { Settings } from '../settings/settings.ts'
import { type NoticeSettings, warn } from '../terminal/notices.ts'
import { recordClaim } from './ledger.ts'
import { nameOf, stateOf } from './lifecycle.ts'
import type { ResolvedClaim } from './resolve.ts'

/**
 * The claim with its record: from the ledger if possible, without a request, else from the service.
 *
 * @throws CliError as the service's operations do
 */
export async function claimWithRecord(
  { domainId, entry }: ResolvedClaim,
  context: Context,
  settings: Settings,
): Promise<DomainClaim> {
  if (entry?.claim.record?.value) return entry.claim
  const claim = await getClaim(connect(context, settings), domainId)
  await recordClaim(claim, context, settings)
  return claim
}

/** Warns if the claim is completed and no longer needs its record, so that nobody works on DNS for it. */
export async function warnIfCompleted(
  claim: DomainClaim,
  context: Pick<Context, 'stderr' | 'environment'>,
  settings: NoticeSettings,
): Promise<void> {
  if (stateOf(claim).phase === 'completed')
    await warn(`the claim is completed: ${nameOf(claim)} no longer needs this record`, context, settings)
}
