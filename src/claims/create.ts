import { showEvents } from '../service/follow.ts'
import type { CreateClaimRequest } from '../service/types.ts'
import { openClient } from '../session/client.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'
import { type BatchDefinition, resultIfCompleted, runBatchCommand } from './batch.ts'
import { BATCH_CLAIM_COLUMNS, SINGLE_CLAIM_COLUMNS } from './columns.ts'
import type { BatchOptions } from './definition.ts'
import { findClaimsByDomain } from './ledger.ts'
import { getClaimState } from './lifecycle.ts'
import { claimDomain, parseDomain } from './load.ts'
import { describeIgnoredOptions, requestNewClaim } from './workflow.ts'
import { printClaim, printEventText } from './write.ts'

/**
 * Creates the request for a new claim of a domain from the command's options.
 *
 * @param region from the domain's line in a list, instead of `--region`
 */
type RequestFactory = (name: string, region?: string) => CreateClaimRequest

/** Requests a claim of one domain, and prints the claim and a hint at the next step. */
export async function createAndPrintClaim(domain: string, toRequest: RequestFactory, io: Io): Promise<void> {
  const request = toRequest(parseDomain(domain))
  const { name } = request
  const events = requestNewClaim(request, { client: openClient(io), io })
  const claim = await showEvents(events, (event) => printEventText(event, io))
  await printClaim(claim, io)
  if (io.settings.quiet) return
  if (getClaimState(claim, io.clock.now()).needsRecord)
    await io.hint(`add the TXT record, then run: mailclaim claim ${name}`)
  else await io.hint(`to follow it: mailclaim claims watch ${name}`)
}

/**
 * Requests claims of several domains. Requests none for a domain whose newest claim in the ledger is completed, or is open or
 * superseded: a new claim would end the open one or the one that superseded it.
 */
export async function createSeveralClaims(
  domains: readonly string[],
  flags: BatchOptions,
  toRequest: RequestFactory,
  io: Io,
): Promise<void> {
  // Users have to add the TXT record next, so show its name and value in a terminal too, not only in TSV.
  const columns = [
    ...SINGLE_CLAIM_COLUMNS.slice(0, 2),
    ...['record.name', 'record.value'].map((field): Column => ({ field, kind: 'id', only: 'people' })),
    ...BATCH_CLAIM_COLUMNS.slice(2),
  ]
  const work: BatchDefinition = {
    columns,
    takesIds: false,
    async perform({ domain, region }, { io, client, warn }) {
      const now = io.clock.now()
      const [newest] = await findClaimsByDomain(domain, io)
      const done = resultIfCompleted(newest, now)
      if (done !== undefined) return done
      const before = newest && getClaimState(newest.claim, now)
      if (newest !== undefined && before?.isOpen) {
        const why = describeIgnoredOptions(toRequest(domain, region), newest.claim)
        if (why !== undefined) await warn(`${domain}: ${why}`)
        return { label: 'open before', item: { ...newest.claim, seen_at: newest.seen_at } }
      }
      // `superseded` means that a newer claim exists, maybe another team's, which one more claim would end. So with
      // several domains, only report this one; `claims create` with this domain alone starts a claim.
      if (newest !== undefined && before?.phase === 'superseded')
        return { label: 'superseded', item: newest.claim, error: before.error }
      const { claim, created } = await claimDomain(toRequest(domain, region), { client: client(), io })
      return { label: created ? 'created' : 'open before', item: claim }
    },
  }
  await runBatchCommand(domains, flags, work, io)
}
