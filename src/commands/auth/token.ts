import { getFreshCredential, requestNarrowedCredential } from '../../session/credential.ts'
import { parseSeconds } from '../../settings/parse-value.ts'
import { SETTINGS } from '../../settings/table.ts'
import type { Column } from '../../terminal/columns.ts'
import { defineCommand, SINGLE_VALUE_OUTPUT } from '../definition.ts'

const COLUMNS: readonly Column[] = [
  { field: 'kind' },
  { field: 'token', kind: 'id' },
  { field: 'expires_at' },
]
/** Maximum of `--min-lifetime` in seconds: one day, which is longer than access tokens are usually valid. */
const MAX_MIN_LIFETIME_SECONDS = 86_400

export const command = defineCommand({
  description: 'Prints a valid access token, or the API key in force, and nothing else.',
  options: [
    {
      flags: '--scope <scope>',
      description: 'print a narrower token, which no other command uses',
      repeatable: true,
      parse: SETTINGS.scope.parse,
    },
    {
      flags: '--min-lifetime <seconds>',
      description: 'renew it first if it is valid for less than this, instead of 60',
      parse: (text, name) => parseSeconds(text, name, MAX_MIN_LIFETIME_SECONDS),
    },
  ],
  examples: {
    'printf "Authorization: Bearer %s" "$(mailclaim auth token)" | curl -H @- https://api.example.com/domains':
      'call the API from another program, without the token in its arguments, which others can read',
    'mailclaim auth token --scope emails:send': 'a token that can only send, for another program',
  },
  output: { columns: COLUMNS, ...SINGLE_VALUE_OUTPUT },
  account: 'signed_in',
  async run({ options }, io) {
    const scope = options.scope?.flat().join(' ')
    const { minLifetime = 0 } = options
    const credential = await (scope === undefined
      ? getFreshCredential(io, minLifetime)
      : requestNarrowedCredential(io, scope))
    const { kind, value, expiresAt = await readExpiry(value) } = credential
    const left = expiresAt === undefined ? undefined : Math.round((expiresAt - io.clock.now()) / 1000)
    if (left !== undefined && left <= 0) await io.warn('the access token has expired')
    else if (left !== undefined && left < minLifetime)
      await io.warn(`the access token is valid for ${left} seconds: the service gives no more`)
    if (io.settings.format === 'value') return io.writeValue(value)
    const expires_at = expiresAt === undefined ? null : new Date(expiresAt).toISOString()
    await io.write({ kind, token: value, expires_at }, COLUMNS)
  },
})

/** Returns the expiry of a JWT (claim `exp`) in milliseconds since 1970; undefined without one, such as for an opaque API key. */
async function readExpiry(value: string): Promise<number | undefined> {
  return (await import('../../service/problems.ts')).readJwtExpiryMs(value)
}
