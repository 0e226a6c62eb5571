import { CliError } from '../../errors.ts'
import { secondsLeft } from '../../session/access-token.ts'
import { renew } from '../../session/refresh.ts'
import { loginCommand } from '../../settings/login-command.ts'
import { SETTINGS } from '../../settings/table.ts'
import type { Column } from '../../terminal/columns.ts'
import { formatDuration } from '../../terminal/duration.ts'
import { warn } from '../../terminal/notices.ts'
import { writeObject } from '../../terminal/output.ts'
import { defineCommand, ownOutput, SERVICE_EXITS } from '../definition.ts'

interface RefreshFlags {
  readonly scope?: readonly (readonly string[])[]
  readonly retryInterrupted?: true
}

const COLUMNS: readonly Column[] = [
  { field: 'profile' },
  { field: 'scope' },
  { field: 'narrowed' },
  { field: 'expires_in', title: 'Valid for', text: (value) => formatDuration(Number(value)) },
]

export const command = defineCommand<RefreshFlags>({
  description: `Renews the session now: a new refresh token and a new access token. --scope narrows the access token to less
than the session was granted; commands use it until it expires or is renewed, which brings back the full scope.`,
  options: [
    {
      flags: '--scope <scope>',
      description: 'narrow the access token to this scope',
      repeatable: true,
      parse: (text) => SETTINGS.scope.parse(text, '--scope'),
    },
    {
      flags: '--retry-interrupted',
      description:
        'send a refresh token whose last use has no known outcome; if it was used, the session ends',
    },
  ],
  examples: {
    'mailclaim auth refresh': 'renew the session',
    'mailclaim auth refresh --scope emails:send && mailclaim auth token':
      'get a token that can only send, for another program',
  },
  output: ownOutput(COLUMNS, {}),
  exits: SERVICE_EXITS,
  account: 'signed_in',
  async run({ options }, io) {
    const [context, settings] = [io, io.settings]
    const hasKey = context.environment.apiKey !== undefined
    const { token } = await renew(context, settings, {
      reason: 'asked',
      ...(options.scope && { scope: options.scope.flat().join(' ') }),
      ...(options.retryInterrupted ? { retryInterrupted: true } : {}),
    }).catch((error: unknown) => {
      if (!hasKey || !(error instanceof CliError) || error.code !== 'not_signed_in') throw error
      const hint = `commands use the API key in MAILCLAIM_API_KEY, which needs no renewal; for a session beside it, run ${loginCommand({ profile: settings.profile.value })}`
      throw new CliError(error.code, error.exit, error.message, { hint })
    })
    if (hasKey) {
      await warn('MAILCLAIM_API_KEY is set, and commands use it instead of this session', context, settings)
    }
    const left = Math.floor(secondsLeft(token, context.clock))
    await writeObject(
      context,
      settings,
      {
        profile: settings.profile.value,
        scope: token.scope,
        narrowed: token.narrowed,
        expires_in: left,
      },
      COLUMNS,
    )
  },
})
