import type { Context } from '../context.ts'
import { Exit } from '../errors.ts'
import { connect } from '../session/connect.ts'
import type { Settings } from '../settings/settings.ts'
import { type ClaimReader, currentClaim, type SeenClaim } from './current-claim.ts'
import { recordClaim } from './ledger.ts'
import { asArgument, endOf, goneError, lastSeen, nameOf } from './lifecycle.ts'
import { type ResolvedClaim, resolveClaim } from './resolve.ts'

/**
 * The claim with its record: from the ledger if possible, without a request, else from the service.
 *
 * @throws CliError as the service's operations do
 */
export async function claimWithRecord(
  { domainId, entry, others = [], notFoundHint }: ResolvedClaim,
  context: Context,
  settings: Settings,
): Promise<SeenClaim> {
  if (entry?.claim.record?.value) {
    const { claim, seen_at, gone_at } = entry
    const gone = gone_at === null ? {} : { unasked: goneError(claim) }
    return { domainId, others, claim, seenAt: Date.parse(seen_at), ...gone }
  }
  const asked = { domainId, ...(notFoundHint && { notFoundHint }) }
  const { claim } = await currentClaim(asked, connect(context, settings), context, settings)
  await recordClaim(claim, context, settings)
  return { domainId, claim, seenAt: context.clock.now() }
}

/**
 * The claim whose record is about to be used, as the service has it now; as it was last seen if the service can't be asked.
 *
 * @throws CliError exit 9 if nobody checks that record anymore; exit 5 if the service doesn't have the claim
 */
export async function claimToUse(
  argument: string | undefined,
  latest: ClaimReader,
  context: Context,
  settings: Settings,
): Promise<SeenClaim> {
  const resolved = await resolveClaim(argument, context, settings)
  const seen = await latest(await claimWithRecord(resolved, context, settings))
  if (seen.unasked?.exit === Exit.notFound) throw seen.unasked
  const end = endOf(seen.claim, context.clock.now())
  if (end !== undefined) throw end
  return seen
}

/** Says that a claim may have ended since it was last seen; undefined if the service was asked. */
export function outdatedWarning(
  { claim, seenAt, unasked }: SeenClaim,
  { clock }: Pick<Context, 'clock'>,
): string | undefined {
  if (unasked === undefined) return undefined
  return `couldn't ask the service whether the claim of ${nameOf(claim)} is still open (${unasked.message}); its record was last seen ${lastSeen(seenAt, clock.now())}; to ask: mailclaim claims get${asArgument(claim)}`
}
