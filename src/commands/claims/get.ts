import { SINGLE_CLAIM_COLUMNS } from '../../claims/columns.ts'
import { CLAIM_FIELDS } from '../../service/types.ts'
import { defineCommand, OPTIONAL_CLAIM_ARGUMENT } from '../definition.ts'

export const command = defineCommand({
  description: 'Shows the latest claim of a placeholder domain, as the service has it now.',
  arguments: [OPTIONAL_CLAIM_ARGUMENT],
  examples: {
    'mailclaim claims get example.com': 'a claim made on this machine',
    'mailclaim claims get d5f1a5a0-7c39-4a8e-9c1a-2f6b1f6f0c11 --json': 'any claim, by its domain_id',
    'mailclaim claims get example.com --format tsv --fields status | tail -1': 'only the status',
  },
  output: { schema: 'claim', fields: CLAIM_FIELDS, columns: SINGLE_CLAIM_COLUMNS },
  errors: ['claim'],
  account: 'signed_in',
  async run({ arguments: [argument] }, io) {
    const [{ refreshClaim, findClaim }, { printClaim }, { openClient }] = await Promise.all([
      import('../../claims/load.ts'),
      import('../../claims/write.ts'),
      import('../../session/client.ts'),
    ])
    const target = await findClaim(argument, io)
    await printClaim(await refreshClaim({ target, client: openClient(io), io }), io)
  },
})
