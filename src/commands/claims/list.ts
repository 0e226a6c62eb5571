import { CLAIM_LIST_COLUMNS } from '../../claims/columns.ts'
import type { LedgerEntry } from '../../claims/ledger.ts'
import { CliError, Exit, InterruptedError } from '../../errors.ts'
import { createConcurrencyLimiter } from '../../limiter.ts'
import { CLAIM_FIELDS, type DomainClaim } from '../../service/types.ts'
import type { Io } from '../../terminal/io.ts'
import { defineCommand } from '../definition.ts'
import { printLocalList } from '../lists.ts'

/** Maximum number of claims that are refreshed and printed together. */
const PAGE_SIZE = 100
const MAX_PARALLEL_REQUESTS = 6
/** Number of consecutive failures of the service (exit 7) after which `claims list --refresh` fails. */
const MAX_FAILURES_IN_ROW = 3

export const command = defineCommand({
  description: 'Lists the claims that were made or viewed on this machine, as they were last seen.',
  options: [{ flags: '--refresh', description: 'request each claim from the service' }],
  examples: {
    'mailclaim claims list': 'the claims known on this machine, offline',
    'mailclaim claims list --refresh --format jsonl': 'the current state of each, one per line',
  },
  output: {
    schema: 'list',
    lineSchema: 'claim',
    fields: CLAIM_FIELDS,
    columns: CLAIM_LIST_COLUMNS,
  },
  account: 'sometimes',
  async run({ options }, io) {
    const { readAllClaims, describeLedger } = await import('../../claims/ledger.ts')
    const entries = await readAllClaims(io, (error) => io.warn(`${error.message}; it is left out`))
    const refresher = options.refresh ? await createRefresher(io) : undefined
    async function* pages(): AsyncGenerator<DomainClaim[], void, void> {
      for (let at = 0; at < entries.length; at += PAGE_SIZE) {
        const page = entries.slice(at, at + PAGE_SIZE)
        yield refresher === undefined ? page.map(({ claim }) => claim) : await refresher.refresh(page)
      }
    }
    const ifEmpty = `No claims are known ${describeLedger(io)}.`
    await printLocalList(pages(), CLAIM_LIST_COLUMNS, ifEmpty, io)
    if (entries.length === 0 && !io.settings.quiet)
      await io.hint('start one with: mailclaim claims create <domain>')
    if (refresher?.failure() !== undefined) throw refresher.failure()
  },
})

/**
 * Creates two functions. `refresh` requests each claim of a page from the service, and forgets claims that the service no longer
 * has; `failure` returns the last error with exit 7, if any.
 */
async function createRefresher(io: Io) {
  const [{ refreshClaim, toTarget }, { forgetClaim }, lifecycle, { openClient }] = await Promise.all([
    import('../../claims/load.ts'),
    import('../../claims/ledger.ts'),
    import('../../claims/lifecycle.ts'),
    import('../../session/client.ts'),
  ])
  const client = openClient(io)
  const inTurn = createConcurrencyLimiter(MAX_PARALLEL_REQUESTS)
  let failure: CliError | undefined
  let failuresInRow = 0
  const refreshEntry = async (entry: LedgerEntry): Promise<DomainClaim[]> => {
    const { claim } = entry
    try {
      const now = await refreshClaim({ target: toTarget(entry), client, io })
      failuresInRow = 0
      return [now]
    } catch (error) {
      if (!(error instanceof CliError) || error instanceof InterruptedError) throw error
      if (error.exit === Exit.notFound) {
        await forgetClaim(entry, io)
        await io.warn(
          `the service no longer has the claim of ${lifecycle.describeDomain(claim)} (${claim.domain_id}): it is forgotten`,
        )
        return []
      }
      const isFailure = error.exit === Exit.unavailable
      failuresInRow = isFailure ? failuresInRow + 1 : 0
      // Continue after a refusal or a failure of one claim: otherwise a claim that this credential may not read would hide all
      // later ones.
      if ((!isFailure && error.exit !== Exit.refused) || failuresInRow >= MAX_FAILURES_IN_ROW) throw error
      if (isFailure) failure = error
      await io.warn(`${lifecycle.describeDomain(claim)} is shown as it was last seen: ${error.message}`)
      return [claim]
    }
  }
  return {
    failure: () => failure,
    refresh: async (page: readonly LedgerEntry[]): Promise<DomainClaim[]> =>
      (await Promise.all(page.map((entry) => inTurn(() => refreshEntry(entry))))).flat(),
  }
}
