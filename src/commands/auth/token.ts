import { currentCredential, narrowedCredential } from '../../session/credential.ts'
import { SETTINGS } from '../../settings/table.ts'
import type { Column } from '../../terminal/columns.ts'
import { defineCommand, ownOutput, VALUE } from '../definition.ts'

const COLUMNS: readonly Column[] = [{ field: 'kind' }, { field: 'token', kind: 'id' }]

export const command = defineCommand({
  description: 'Prints a valid access token, or the API key in force, and nothing else.',
  options: [
    {
      flags: '--scope <scope>',
      description: 'print a narrower token, which no other command uses',
      repeatable: true,
      parse: SETTINGS.scope.parse,
    },
  ],
  examples: {
    'printf "Authorization: Bearer %s" "$(mailclaim auth token)" | curl -H @- https://api.example.com/domains':
      'call the API from another program, without the token in its arguments, which others can read',
    'mailclaim auth token --scope emails:send': 'a token that can only send, for another program',
  },
  output: ownOutput(COLUMNS, { ...VALUE }),
  account: 'signed_in',
  async run({ options }, io) {
    const scope = options.scope?.flat().join(' ')
    const { kind, value } =
      scope === undefined ? await currentCredential(io) : await narrowedCredential(io, scope)
    if (io.settings.format === 'value') return io.writeValue(value)
    await io.write({ kind, token: value }, COLUMNS)
  },
})
