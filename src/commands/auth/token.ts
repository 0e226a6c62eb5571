import { Exit } from '../../errors.ts'
import { currentCredential } from '../../session/authorizer.ts'
import { defineCommand } from '../definition.ts'

export const command = defineCommand({
  description: `Prints a valid access token, or the API key in force, and nothing else. Renews the session where that
is due. Made for scripts: while the token is valid, this reads one file and asks neither keychain nor network.`,
  examples: [
    {
      command: 'curl -H "Authorization: Bearer $(mailclaim auth token)" https://api.example.com/domains',
      says: 'call the API with another program',
    },
    {
      command: 'token=$(mailclaim auth token --profile ci)',
      says: 'keep it for the next 15 minutes at most',
    },
  ],
  exits: [Exit.notSignedIn, Exit.unavailable],
  async run(_input, context, settings) {
    const { kind, value } = await currentCredential(context, settings)
    const json = settings.format === 'json' || settings.format === 'jsonl'
    await context.stdout.write(json ? `${JSON.stringify({ kind, token: value })}\n` : `${value}\n`)
  },
})
