import { CliError } from '../../errors.ts'
import { formatServiceTimestamp } from '../../service/timestamps.ts'
import type { CredentialState, CredentialStatus } from '../../session/describe.ts'
import { getSetting } from '../../settings/settings.ts'
import { STORE_DESCRIPTIONS, type StoreKind } from '../../settings/table.ts'
import type { Column } from '../../terminal/columns.ts'
import type { Io } from '../../terminal/io.ts'
import { formatDuration } from '../../terminal/time.ts'
import { defineCommand } from '../definition.ts'

/** Lifetime of an unused refresh token at the service in milliseconds. */
const REFRESH_TOKEN_LIFETIME_MS = 60 * 24 * 3600 * 1000

const STATE_LABELS: Readonly<Record<CredentialState, string>> = {
  none: 'not signed in',
  active: 'active',
  needs_refresh: 'active; the next command renews the access token',
  refreshing: 'active; another command renews the access token, or ended while it did',
  interrupted: 'interrupted: the refresh token may have been sent',
  ended: 'ended by the service',
  elsewhere: 'not used: it belongs to another profile, service or client',
  store_unavailable: "the secret can't be read from its store",
  unusable: "can't be used",
}

const FIELDS: readonly Column[] = [
  { field: 'profile' },
  {
    field: 'state',
    text: (value) => STATE_LABELS[value as CredentialState],
    paint: (value, { palette }) =>
      /^(active|needs_refresh|refreshing)$/.test(String(value)) ? palette.good : palette.bad,
  },
  { field: 'in_force', title: 'Using' },
  { field: 'base_url', title: 'Service' },
  { field: 'client_id' },
  { field: 'scope' },
  { field: 'resource' },
  { field: 'store', text: (value) => STORE_DESCRIPTIONS[value as StoreKind] },
  {
    field: 'expires_in',
    title: 'Access token',
    text: (value) => `valid for ${formatDuration(Number(value))}`,
  },
  { field: 'refresh_by', title: 'Expires if unused', text: formatServiceTimestamp },
  { field: 'online', text: (value) => (value === 'accepted' ? 'the service accepts it' : String(value)) },
  { field: 'signed_in_at', title: 'Signed in', text: formatServiceTimestamp },
  { field: 'refreshed_at', only: 'programs' },
  { field: 'message', only: 'programs' },
]
/** Columns of `auth status`. All are optional, so that the detail view leaves out fields that are null. */
const COLUMNS = FIELDS.map((column): Column => ({ ...column, optional: true }))

export const command = defineCommand({
  description: 'Shows who is signed in, how, until when, and where the secret is stored.',
  options: [{ flags: '--online', description: 'try the credential with the service' }],
  examples: {
    'mailclaim auth status': 'of the current profile',
    'mailclaim auth status --online': 'ask the service whether it accepts the credential',
  },
  output: { columns: COLUMNS, schema: 'auth-status' },
  account: 'sometimes',
  async run({ options }, io) {
    const { readCredentialStatus } = await import('../../session/describe.ts')
    const online = options.online ? await tryOnline(io) : undefined
    const description = await readCredentialStatus(io)
    const status = await buildStatus(description, online, io)
    await io.write(status, COLUMNS)
    if (online !== undefined && online !== 'accepted') throw online
    if (description.problem !== undefined) throw description.problem
  },
})

async function tryOnline(io: Io): Promise<'accepted' | CliError> {
  const { openClient } = await import('../../session/client.ts')
  const { verifyCredential } = await import('../../service/lists.ts')
  try {
    await verifyCredential(openClient(io))
    return 'accepted'
  } catch (error) {
    if (error instanceof CliError && !io.interrupts.signal.aborted) return error
    throw error
  }
}

async function buildStatus(
  { state, inForce, problem, session }: CredentialStatus,
  online: 'accepted' | CliError | undefined,
  io: Io,
) {
  const { getSecretStoreKind } = await import('../../session/session-file.ts')
  const time = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())
  const left = Math.floor(((session?.access?.expiresAt ?? 0) - io.clock.now()) / 1000)
  const renewable = session?.kind === 'session' && session.ended === undefined ? session : undefined
  return {
    profile: io.settings.profile.value,
    state,
    message: problem?.message ?? null,
    in_force: inForce,
    // An API key from the environment belongs to no stored session, so show the base URL of the settings, where requests go.
    base_url: session?.service ?? (inForce === null ? null : readBaseUrl(io)),
    client_id: session?.client ?? null,
    scope: session?.scope ?? null,
    resource: session?.resource ?? null,
    store: session === undefined ? null : getSecretStoreKind(session),
    signed_in_at: time(session?.signedInAt),
    refreshed_at: time(session?.issuedAt),
    refresh_by: time(renewable && renewable.issuedAt + REFRESH_TOKEN_LIFETIME_MS),
    expires_in: left > 0 ? left : null,
    online: online === undefined ? null : online === 'accepted' ? 'accepted' : online.shownCode,
  }
}

/** Returns the base URL of the settings; null if there is none, or if it is invalid, because it may then contain a password. */
function readBaseUrl({ settings }: Io): string | null {
  try {
    return getSetting('base_url', settings) ?? null
  } catch {
    return null
  }
}
