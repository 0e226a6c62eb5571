import type { Context } from '../context.ts'
import { getClaim } from '../service/claims.ts'
import type { DomainClaim } from '../service/types.ts'
import { connect } from '../session/connect.ts'
import type { Settings } from '../settings/settings.ts'
import { warn } from '../terminal/notices.ts'
import { recordClaim } from './ledger.ts'
import { nameOf, stateOf } from './lifecycle.ts'
import { resolveClaim } from './resolve.ts'

/**
 * The claim with its record: from the ledger if possible, without a request, else from the service.
 *
 * @throws CliError as `resolveClaim` and the service's operations do
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

/** Warns if the claim no longer needs its record, so that nobody works on DNS in response to the findings. */
export async function warnIfSettled(
  claim: DomainClaim,
  context: Pick<Context, 'stderr' | 'environment'>,
  settings: Pick<Settings, 'quiet' | 'colorOption'>,
): Promise<void> {
  const state = stateOf(claim)
  if (state.phase === 'completed')
    await warn(`the claim is completed: ${nameOf(claim)} no longer needs this record`, context, settings)
  if (state.phase === 'ended')
    await warn(
      `the claim no longer needs this record: ${state.description}; ${state.next}`,
      context,
      settings,
    )
}
