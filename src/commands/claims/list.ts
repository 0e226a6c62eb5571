import { CLAIM_LIST_COLUMNS } from '../../claims/columns.ts'
import { type LedgerEntry, readLedger, recordClaim } from '../../claims/ledger.ts'
import { nameOf } from '../../claims/lifecycle.ts'
import { CliError, Exit } from '../../errors.ts'
import { getClaim } from '../../service/claims.ts'
import { CLAIM_FIELDS } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import { hint, warn } from '../../terminal/notices.ts'
import { defineCommand, SERVICE_EXITS } from '../definition.ts'
import { printItems } from '../lists.ts'

/** Concurrent requests to the service. */
const PARALLEL = 6

export const command = defineCommand<{ refresh?: true }>({
  description: `Lists the claims that were made or viewed on this machine, as they were last seen. The service has no list of
claims; --refresh requests each one.`,
  options: [{ flags: '--refresh', description: 'request each claim from the service' }],
  examples: {
    'mailclaim claims list': 'the claims known on this machine, offline',
    'mailclaim claims list --refresh --format jsonl': 'the current state of each, one per line',
  },
  output: {
    schema: 'claim-list',
    lineSchema: 'claim',
    fields: CLAIM_FIELDS,
    columns: CLAIM_LIST_COLUMNS,
    open: true,
  },
  exits: SERVICE_EXITS,
  account: 'sometimes',
  async run({ options }, context, settings) {
    const entries = await readLedger(context, settings, (error) =>
      warn(`${error.message}; it is left out`, context, settings),
    )
    const claims = options.refresh ? await refreshed(entries) : entries.map((entry) => entry.claim)
    await printItems(claims, CLAIM_LIST_COLUMNS, 'No claims are known on this machine.', context, settings)
    if (entries.length === 0)
      await hint('start one with: mailclaim claims create <domain>', context, settings)

    async function refreshed(known: readonly LedgerEntry[]) {
      const client = connect(context, settings)
      const claims = known.map((entry) => entry.claim)
      let next = 0
      const worker = async () => {
        for (let at = next++; at < known.length; at = next++) {
          const { claim } = known[at] ?? {}
          if (claim === undefined) continue
          try {
            const latest = await getClaim(client, claim.domain_id ?? '')
            await recordClaim(latest, context, settings)
            claims[at] = latest
          } catch (error) {
            // A claim that is gone or belongs to another team must not hide the others.
            if (!(error instanceof CliError) || (error.exit !== Exit.notFound && error.exit !== Exit.refused))
              throw error
            await warn(`${nameOf(claim)} is shown as it was last seen: ${error.message}`, context, settings)
          }
        }
      }
      await Promise.all(Array.from({ length: Math.min(PARALLEL, known.length) }, worker))
      return claims
    }
  },
})
