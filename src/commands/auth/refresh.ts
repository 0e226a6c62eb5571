import type { Column } from '../../terminal/columns.ts'
import { formatDuration } from '../../terminal/time.ts'
import { defineCommand } from '../definition.ts'

const COLUMNS: readonly Column[] = [
  { field: 'profile' },
  { field: 'scope' },
  { field: 'expires_in', title: 'Valid for', text: (value) => formatDuration(Number(value)) },
]

export const command = defineCommand({
  description: 'Renews the session now: a new refresh token and a new access token.',
  options: [
    {
      flags: '--retry-interrupted',
      description:
        'send a refresh token whose last use has no known outcome; if it was used, the session ends',
    },
  ],
  examples: { 'mailclaim auth refresh': 'renew the session' },
  output: { columns: COLUMNS },
  account: 'signed_in',
  async run({ options }, io) {
    const { renewAccessToken } = await import('../../session/credential.ts')
    const retryInterrupted = options.retryInterrupted === true
    const { scope, expiresAt } = await renewAccessToken(io, { always: true, retryInterrupted })
    if (io.environment.apiKey !== undefined)
      await io.warn('MAILCLAIM_API_KEY is set, and commands use it instead of this session')
    const left = Math.floor((expiresAt - io.clock.now()) / 1000)
    await io.write({ profile: io.settings.profile.value, scope, expires_in: left }, COLUMNS)
  },
})
