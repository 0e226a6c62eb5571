import { CliError, Exit } from '../errors.ts'
import { getClaim } from '../service/claims.ts'
import type { RequestOptions, ServiceClient } from '../service/client.ts'
import type { DomainClaim } from '../service/types.ts'
import { type LedgerContext, type LedgerSettings, recordClaim } from './ledger.ts'
import { stateOf } from './lifecycle.ts'
import type { ResolvedClaim } from './resolve.ts'

/** A claim as the service has it now. */
export interface CurrentClaim {
  readonly domainId: string
  readonly claim: DomainClaim
}

/**
 * Gets a claim from the service. A claim that was found by its name may have ended since it was last seen; the name then
 * stands for the domain's next open one, and the ledger learns that the claim has ended.
 *
 * @throws CliError as `getClaim` does
 */
export async function currentClaim(
  { domainId, others = [] }: Pick<ResolvedClaim, 'domainId' | 'others'>,
  client: ServiceClient,
  context: LedgerContext,
  settings: LedgerSettings,
  options?: RequestOptions,
): Promise<CurrentClaim> {
  let current: CurrentClaim | undefined
  let notFound: CliError | undefined
  const ended: CurrentClaim[] = []
  for (const id of [domainId, ...others]) {
    try {
      current = { domainId: id, claim: await getClaim(client, id, options) }
    } catch (error) {
      if (!(error instanceof CliError) || error.exit !== Exit.notFound) throw error
      notFound ??= error
      continue
    }
    if (stateOf(current.claim).phase !== 'ended') break
    ended.push(current)
    current = undefined
  }
  current ??= ended[0]
  if (current === undefined) throw notFound
  for (const past of ended) if (past !== current) await recordClaim(past.claim, context, settings)
  return current
}
