import { ERROR_FIELDS, SINGLE_CLAIM_COLUMNS } from '../../claims/columns.ts'
import { BATCH_OPTIONS, isBatch } from '../../claims/definition.ts'
import { CLAIM_FIELDS } from '../../service/types.ts'
import { defineCommand } from '../definition.ts'
import { askForDomain, createClaimRequest, NEW_CLAIM_OPTIONS } from './create-options.ts'

export const command = defineCommand({
  description: 'Starts a claim to a domain that another team has verified, and prints the TXT record.',
  arguments: [{ syntax: '[domain...]', description: 'the domain to claim, or several', asked: true }],
  options: [...NEW_CLAIM_OPTIONS, ...BATCH_OPTIONS.filter((option) => option.flags !== '--all')],
  examples: {
    'mailclaim claims create example.com': 'start a claim',
    'mailclaim claims create example.com --region eu-west-1 --json': 'in another region, for a script',
    'mailclaim claims create --from domains.csv --format jsonl': 'for every domain of a list',
  },
  output: { schema: 'claim', fields: [...CLAIM_FIELDS, ...ERROR_FIELDS], columns: SINGLE_CLAIM_COLUMNS },
  errors: ['record_missing', 'claim_superseded', 'several'],
  account: 'signed_in',
  toleratesClosedPipe: true,
  async run({ arguments: domains, options }, io) {
    const { createAndPrintClaim, createSeveralClaims } = await import('../../claims/create.ts')
    const toRequest = (name: string, region?: string) => createClaimRequest(name, options, region)
    if (isBatch(domains, options)) return createSeveralClaims(domains, options, toRequest, io)
    await createAndPrintClaim(domains[0] ?? (await askForDomain(io)), toRequest, io)
  },
})
