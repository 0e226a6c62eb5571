import type { Context } from '../../context.ts'
import { CliError, Exit } from '../../errors.ts'
import { spokenSpan } from '../../service/retry.ts'
import { connect } from '../../session/connect.ts'
import { describeSession, type SessionDescription, type SessionState } from '../../session/describe.ts'
import { issuerOf } from '../../settings/addresses.ts'
import { requireBaseUrl, type Settings } from '../../settings/settings.ts'
import { type Column, valueAt } from '../../terminal/columns.ts'
import { writeObject } from '../../terminal/output.ts'
import { relativeTime } from '../../terminal/relative-time.ts'
import { defineCommand } from '../definition.ts'

interface StatusFlags {
  readonly online?: true
}

export const command = defineCommand<StatusFlags>({
  description: `Shows who is signed in, how, until when, and where the secret lives. Asks only this machine, unless
--online also lets the service try the credential. Exit code 0 means that commands can sign their requests.`,
  options: [{ flags: '--online', says: 'let the service try the credential' }],
  examples: [
    { command: 'mailclaim auth status', says: 'look at the current profile' },
    { command: 'mailclaim auth status --json --fields state', says: 'only the state, for a script' },
  ],
  exits: [Exit.notSignedIn, Exit.unavailable],
  async run({ options }, context, settings) {
    const online = options.online ? await tryOnline(context, settings) : undefined
    const description = await describeSession(context, settings)
    const status = statusOf(description, online, settings)
    await writeObject(context, settings, status, columnsFor(status))
    if (online !== undefined && online !== 'accepted') throw online
    if (description.problem !== undefined && !description.apiKeyActive) throw description.problem
  },
})

/** Lists one grant: the cheapest request that needs a credential and changes nothing. */
async function tryOnline(context: Context, settings: Settings): Promise<'accepted' | CliError> {
  try {
    await connect(context, settings).get('/oauth/grants', { limit: 1 })
    return 'accepted'
  } catch (error) {
    if (error instanceof CliError && !context.interrupts.signal.aborted) return error
    throw error
  }
}

const WORDS: Readonly<Record<SessionState, string>> = {
  none: 'not signed in',
  fine: 'fine',
  needs_refresh: 'fine; the next command renews the access token',
  refreshing: 'another command is renewing it now',
  interrupted: 'interrupted: the last refresh has no known outcome',
  expired: 'over: the refresh token was not renewed for 60 days',
  ended: 'over: ended by the service',
  store_unavailable: 'the secret cannot be had from its store',
  unusable: 'the file of the session is damaged',
}

function statusOf(
  description: SessionDescription,
  online: 'accepted' | CliError | undefined,
  settings: Settings,
) {
  const { record, accessToken, location } = description
  const session = record?.kind === 'oauth' ? record : undefined
  const time = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())
  return {
    profile: description.profile,
    state: description.state,
    message: description.problem?.message ?? null,
    in_force: description.apiKeyActive
      ? 'MAILCLAIM_API_KEY'
      : record === undefined
        ? null
        : record.kind === 'api_key'
          ? 'stored API key'
          : 'session',
    // An API key is bound to no service: it goes where the settings say.
    base_url: record?.issuer ?? (description.apiKeyActive ? usableBase(settings) : null),
    client_id: session?.clientId ?? null,
    scope: session?.scope ?? null,
    resource: session?.resource ?? null,
    store: record?.store ?? null,
    secret_at: location?.name ?? null,
    signed_in_at: time(record?.signedInAt),
    refreshed_at: time(description.renewedAt),
    refresh_by: time(description.refreshTokenExpiresAt),
    interrupted_at: time(description.interruptedAt),
    access_token:
      accessToken === undefined
        ? null
        : {
            expires_in: Math.max(0, Math.floor(accessToken.secondsLeft)),
            scope: accessToken.scope,
            narrowed: accessToken.narrowed,
          },
    online: online === undefined ? null : online === 'accepted' ? 'accepted' : online.code,
  }
}

/** One that cannot be used is not shown either: there may be a password in it. */
function usableBase(settings: Settings): string | null {
  try {
    return issuerOf(requireBaseUrl(settings))
  } catch {
    return null
  }
}

/** The columns of a status. What does not apply is no line of a card, and an empty cell for programs. */
function columnsFor(status: ReturnType<typeof statusOf>): Column[] {
  return columns().map((column) =>
    valueAt(status, column.field) === null ? { ...column, only: 'programs' } : column,
  )
}

function columns(): Column[] {
  const when: NonNullable<Column['text']> = (value, look) =>
    look.now === undefined ? undefined : relativeTime(Date.parse(String(value)), look.now)
  return [
    { field: 'profile' },
    {
      field: 'state',
      text: (value) => WORDS[value as SessionState],
      paint: (value, palette) => (value === 'fine' || value === 'needs_refresh' ? palette.good : palette.bad),
    },
    { field: 'in_force', title: 'Commands use' },
    { field: 'base_url', title: 'Service' },
    { field: 'client_id', title: 'Client', kind: 'id' },
    { field: 'scope' },
    { field: 'resource' },
    { field: 'store', text: (value) => (value === 'keychain' ? "the system's keychain" : 'a file') },
    { field: 'secret_at', title: 'Secret at', kind: 'id' },
    { field: 'signed_in_at', title: 'Signed in', text: when },
    { field: 'refreshed_at', title: 'Renewed', text: when },
    { field: 'refresh_by', title: 'Ends unless used', text: when },
    {
      field: 'access_token',
      title: 'Access token',
      text: (value) => {
        const token = value as { expires_in: number; narrowed: boolean; scope: string | null }
        if (token.expires_in <= 0) return 'has ended'
        return `valid for ${spokenSpan(token.expires_in * 1000)}${token.narrowed ? `, narrowed to ${token.scope}` : ''}`
      },
    },
    { field: 'message', only: 'programs' },
    { field: 'interrupted_at', only: 'programs' },
    { field: 'online', text: (value) => (value === 'accepted' ? 'the service accepts it' : String(value)) },
  ]
}
