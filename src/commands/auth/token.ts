import { currentCredential } from '../../session/authorizer.ts'
import type { Column } from '../../terminal/columns.ts'
import { writeObject, writeValue } from '../../terminal/output.ts'
import { defineCommand, ownOutput, SERVICE_EXITS, VALUE } from '../definition.ts'

const COLUMNS: readonly Column[] = [{ field: 'kind' }, { field: 'token', kind: 'id' }]

export const command = defineCommand({
  description: `Prints a valid access token, or the active API key, and nothing else. Renews the session if needed. Made for
scripts: while the token is valid, this reads one file and uses neither keychain nor network.`,
  examples: {
    'printf "Authorization: Bearer %s" "$(mailclaim auth token)" | curl -H @- https://api.example.com/domains':
      'call the API from another program, without the token in its arguments, which others can read',
    'token=$(mailclaim auth token --profile ci)': 'keep it, for 15 minutes at most',
  },
  output: ownOutput(COLUMNS, { ...VALUE }),
  exits: SERVICE_EXITS,
  account: 'signed_in',
  async run(_input, io) {
    const [context, settings] = [io, io.settings]
    const { kind, value } = await currentCredential(context, settings)
    if (settings.format === 'value') return writeValue(context, value)
    await writeObject(context, settings, { kind, token: value }, COLUMNS)
  },
})
