import { Exit } from '../../errors.ts'
import { currentCredential } from '../../session/authorizer.ts'
import { defineCommand } from '../definition.ts'

export const command = defineCommand({
  description: `Prints a valid access token, or the active API key, and nothing else. Renews the session if needed. Made for
scripts: while the token is valid, this reads one file and uses neither keychain nor network.`,
  examples: {
    'printf "Authorization: Bearer %s" "$(mailclaim auth token)" | curl -H @- https://api.example.com/domains':
      'call the API from another program, without the token in its arguments, which others can read',
    'token=$(mailclaim auth token --profile ci)': 'keep it, for 15 minutes at most',
  },
  exits: [Exit.notSignedIn, Exit.unavailable],
  async run(_input, context, settings) {
    const { kind, value } = await currentCredential(context, settings)
    const json = settings.format === 'json' || settings.format === 'jsonl'
    await context.stdout.write(json ? `${JSON.stringify({ kind, token: value })}\n` : `${value}\n`)
  },
})
