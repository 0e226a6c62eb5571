import type { Context } from '../context.ts'
import { getClaim } from '../service/claims.ts'
import type { DomainClaim } from '../service/types.ts'
import { connect } from '../session/connect.ts'
import type { Settings } from '../settings/settings.ts'
import { warn } from '../terminal/notices.ts'
import { recordClaim } from './ledger.ts'
import { nameOf, standingOf } from './lifecycle.ts'
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

/** What a claim that has come to its end still needs of DNS: nothing. Else the findings would send a person to work for it. */
export async function warnIfSettled(claim: DomainClaim, context: Context, settings: Settings): Promise<void> {
  const standing = standingOf(claim)
  if (standing.phase === 'completed')
    await warn(`the claim is completed: ${nameOf(claim)} needs this record no longer`, context, settings)
  if (standing.phase === 'ended')
    await warn(`no record helps this claim any more: ${standing.says}; ${standing.next}`, context, settings)
}
