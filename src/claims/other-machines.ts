import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { createClaim } from '../service/claims.ts'
import type { ServiceClient } from '../service/client.ts'
import type { ClaimRequest, DomainClaim } from '../service/types.ts'
import { shellQuote } from '../shell-quote.ts'
import { stateOf } from './lifecycle.ts'

/**
 * Starts a claim, as `createClaim` does. The hint of a conflict (409) says how to find the claim of an earlier run. A conflict
 * is never taken for success: the interface doesn't say which conflicts there are.
 *
 * @param known the claims of the domain that this machine knows
 * @throws CliError what `createClaim` throws
 */
export async function startClaim(
  client: ServiceClient,
  request: ClaimRequest,
  known: readonly DomainClaim[],
): Promise<{ claim: DomainClaim; created: boolean }> {
  try {
    return await createClaim(client, request)
  } catch (error) {
    if (!(error instanceof CliError) || error.status !== 409) throw error
    const { code, exit, message, status } = error
    const completed = known.find((claim) => stateOf(claim).phase === 'completed')
    const hint = completed?.domain_id
      ? `its claim is completed, so nothing is left to do: mailclaim claims get ${idArgument(completed)}`
      : 'if an earlier run on another machine claimed it, go on with that claim, by the domain_id that it printed: mailclaim claims get DOMAIN_ID'
    throw new CliError(code, exit, message, { status, hint, cause: error })
  }
}

/**
 * How to continue a claim where this machine's state isn't, such as in a later CI job. People at a terminal stay on this
 * machine and don't need it.
 *
 * @param command the command, with `ID` for the claim's placeholder domain id
 */
export function laterJobHint(
  claim: DomainClaim,
  command: string,
  { stderr }: Pick<Context, 'stderr'>,
): string | undefined {
  if (stderr.isTTY || !claim.domain_id) return undefined
  return `in a job on another machine: ${command.replace('ID', () => idArgument(claim))}`
}

function idArgument({ domain_id: id }: DomainClaim): string {
  return shellQuote(id ?? '', process.platform)
}
