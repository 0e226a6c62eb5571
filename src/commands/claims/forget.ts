import type { Column } from '../../terminal/columns.ts'
import { defineCommand, OPTIONAL_CLAIM_ARGUMENT } from '../definition.ts'

const COLUMNS: readonly Column[] = [{ field: 'name' }, { field: 'domain_id', kind: 'id' }]

export const command = defineCommand({
  description: "Removes a claim from this machine's list; its placeholder at the service stays.",
  arguments: [OPTIONAL_CLAIM_ARGUMENT],
  examples: { 'mailclaim claims forget exmaple.com': 'the domain was mistyped' },
  output: { columns: COLUMNS },
  errors: ['claim_unknown'],
  async run({ arguments: [argument] }, io) {
    const [{ unknownClaimError, findClaim }, { findClaimsByDomain, forgetClaim }, { describeDomain }] =
      await Promise.all([
        import('../../claims/load.ts'),
        import('../../claims/ledger.ts'),
        import('../../claims/lifecycle.ts'),
      ])
    const { entry, domainId, name: ascii = '' } = await findClaim(argument, io)
    if (entry === undefined)
      throw await unknownClaimError(domainId, 'to list known claims: mailclaim claims list', io)
    await forgetClaim(entry, io)
    const { name = null } = entry.claim
    await io.writeOutcome({ name, domain_id: domainId }, COLUMNS)
    const [earlier] = await findClaimsByDomain(ascii, io)
    await io.say(
      `The claim ${domainId} of ${describeDomain(entry.claim)} is forgotten here; at the service, its placeholder domain stays until it is deleted there.${earlier ? ` An earlier claim of it is still listed: ${earlier.claim.domain_id}.` : ''}`,
    )
  },
})
