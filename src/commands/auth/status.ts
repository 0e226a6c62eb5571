import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { tryCredential } from '../../service/lists.ts'
import { readableTimestamp } from '../../service/timestamps.ts'
import { connect } from '../../session/connect.ts'
import { describeSession } from '../../session/describe.ts'
import type { SessionDescription, SessionState, SharedDescription } from '../../session/description.ts'
import { issuerOf } from '../../settings/addresses.ts'
import { requireBaseUrl, type Settings } from '../../settings/settings.ts'
import type { StoreKind } from '../../settings/table.ts'
import { type Column, valueAt } from '../../terminal/columns.ts'
import { formatDuration } from '../../terminal/duration.ts'
import { warn } from '../../terminal/notices.ts'
import { writeObject } from '../../terminal/output.ts'
import { defineCommand, SERVICE_EXITS } from '../definition.ts'

interface StatusFlags {
  readonly online?: true
}

export const command = defineCommand<StatusFlags>({
  description: `Shows who is signed in, how, until when, and where the secret is stored. It works offline, unless --online
tries the credential with the service. Exit code 0 means that commands have a credential to use.`,
  options: [{ flags: '--online', description: 'try the credential with the service' }],
  examples: {
    'mailclaim auth status': 'of the current profile',
    'mailclaim auth status --json --fields state': 'only the state, for a script',
  },
  output: {
    schema: 'auth-status',
    fields: [
      'profile',
      'state',
      'message',
      'in_force',
      'base_url',
      'client_id',
      'scope',
      'resource',
      'store',
      'secret_at',
      'signed_in_at',
      'refreshed_at',
      'refresh_by',
      'interrupted_at',
      'access_token.expires_in',
      'access_token.scope',
      'access_token.narrowed',
      'online',
      'etcd.revision',
      'etcd.written_by',
      'etcd.written_at',
      'etcd.pending',
      'etcd.pending_elsewhere',
      'etcd.members.url',
      'etcd.members.version',
      'etcd.members.leader',
      'etcd.members.problem',
    ],
  },
  exits: SERVICE_EXITS,
  account: 'sometimes',
  async run({ options }, io) {
    const [context, settings] = [io, io.settings]
    const online = options.online ? await tryOnline(context, settings) : undefined
    const description = await describeSession(context, settings)
    const status = statusOf(description, online, settings)
    await writeObject(context, settings, status, columnsFor(status))
    if (online !== undefined && online !== 'accepted') throw online
    const problem = description.apiKeyActive ? description.apiKeyProblem : description.problem
    if (problem !== undefined) throw problem
    if (description.doubt !== undefined) await warn(description.doubt, context, settings)
  },
})

async function tryOnline(context: Context, settings: Settings): Promise<'accepted' | CliError> {
  try {
    await tryCredential(connect(context, settings))
    return 'accepted'
  } catch (error) {
    if (error instanceof CliError && !context.interrupts.signal.aborted) return error
    throw error
  }
}

const STATE_LABELS: Readonly<Record<SessionState, string>> = {
  none: 'not signed in',
  fine: 'active',
  needs_refresh: 'active; the next command renews the access token',
  refreshing: 'active; another command is renewing the access token',
  interrupted: 'interrupted: the last refresh has no known outcome',
  expired: 'expired: the refresh token was not renewed for 60 days',
  ended: 'ended by the service',
  other_service: 'not used: it belongs to another service',
  other_client: 'not used: it belongs to another client',
  store_unavailable: 'the secret cannot be read from its store',
  unusable: 'the session file is damaged',
}

const STORE_LABELS: Readonly<Record<StoreKind, string>> = {
  keychain: "the system's keychain",
  file: 'a file',
  etcd: 'etcd, for every machine with the key',
}

function statusOf(
  description: SessionDescription,
  online: 'accepted' | CliError | undefined,
  settings: Settings,
) {
  const { record, accessToken, location, shared } = description
  const session = record?.kind === 'oauth' ? record : undefined
  const time = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())
  return {
    profile: description.profile,
    state: description.state,
    message: (description.apiKeyProblem ?? description.problem)?.message ?? description.doubt ?? null,
    in_force: description.apiKeyActive
      ? 'MAILCLAIM_API_KEY'
      : record === undefined
        ? null
        : record.kind === 'api_key'
          ? 'stored API key'
          : 'session',
    // An API key is not bound to a service: requests go where the settings say.
    base_url: record?.issuer ?? (description.apiKeyActive ? usableBase(settings) : null),
    client_id: session?.clientId ?? null,
    scope: session?.scope ?? null,
    resource: session?.resource ?? null,
    store: record?.store ?? null,
    secret_at: location?.name ?? null,
    signed_in_at: time(record?.signedInAt),
    refreshed_at: time(description.renewedAt),
    // Nothing renews a session that the service has ended.
    refresh_by: description.state === 'ended' ? null : time(description.refreshTokenExpiresAt),
    interrupted_at: time(description.interruptedAt),
    access_token:
      accessToken === undefined
        ? null
        : {
            expires_in: Math.max(0, Math.floor(accessToken.secondsLeft)),
            scope: accessToken.scope,
            narrowed: accessToken.narrowed,
          },
    etcd: shared === undefined ? null : etcdOf(shared, time),
    online: online === undefined ? null : online === 'accepted' ? 'accepted' : online.code,
  }
}

/** What is known about a session that machines share. */
function etcdOf(shared: SharedDescription, time: (ms: number | undefined) => string | null) {
  return {
    revision: shared.revision ?? null,
    written_by: shared.writtenBy ?? null,
    written_at: time(shared.writtenAt),
    pending: shared.pending,
    pending_elsewhere: shared.pendingElsewhere,
    members: shared.members.map(({ url, version, isLeader, problem }) => ({
      url,
      version: version ?? null,
      leader: isLeader,
      problem: problem ?? null,
    })),
  }
}

/** An unusable base URL is not shown: there may be a password in it. */
function usableBase(settings: Settings): string | null {
  try {
    return issuerOf(requireBaseUrl(settings))
  } catch {
    return null
  }
}

/** The columns of a status. A null value is left out for people, and an empty cell for programs. */
function columnsFor(status: ReturnType<typeof statusOf>): Column[] {
  return columns().map((column) =>
    valueAt(status, column.field) === null ? { ...column, only: 'programs' } : column,
  )
}

function columns(): Column[] {
  return [
    { field: 'profile' },
    {
      field: 'state',
      text: (value) => STATE_LABELS[value as SessionState],
      paint: (value, palette) =>
        /^(fine|needs_refresh|refreshing)$/.test(String(value)) ? palette.good : palette.bad,
    },
    { field: 'in_force', title: 'Using' },
    { field: 'base_url', title: 'Service' },
    { field: 'client_id', title: 'Client', kind: 'id' },
    { field: 'scope' },
    { field: 'resource' },
    { field: 'store', text: (value) => STORE_LABELS[value as StoreKind] },
    { field: 'secret_at', title: 'Secret at', kind: 'id' },
    { field: 'signed_in_at', title: 'Signed in', text: readableTimestamp },
    { field: 'refreshed_at', title: 'Renewed', text: readableTimestamp },
    { field: 'refresh_by', title: 'Expires if unused', text: readableTimestamp },
    {
      field: 'access_token',
      title: 'Access token',
      text: (value) => {
        const token = value as { expires_in: number; narrowed: boolean; scope: string | null }
        if (token.expires_in <= 0) return 'expired'
        return `valid for ${formatDuration(token.expires_in)}${token.narrowed ? `, narrowed to ${token.scope}` : ''}`
      },
    },
    {
      field: 'etcd',
      text: (value) => {
        const { members, revision, written_by, ...kept } = value as ReturnType<typeof etcdOf>
        const answering = members.filter(({ version }) => version !== null).length
        const silent = members.flatMap(({ url, problem }) => (problem === null ? [] : [`${url}: ${problem}`]))
        return [
          `${answering} of ${members.length} members answer`,
          ...silent,
          ...(revision === null ? [] : [`revision ${revision}, written by ${written_by}`]),
          ...kept.pending.map((path) => `not put into etcd yet: ${path}`),
          ...kept.pending_elsewhere.map(
            (path) => `kept for another cluster of etcd (if that is gone for good, delete the file): ${path}`,
          ),
        ].join('; ')
      },
    },
    { field: 'message', only: 'programs' },
    { field: 'interrupted_at', only: 'programs' },
    { field: 'online', text: (value) => (value === 'accepted' ? 'the service accepts it' : String(value)) },
  ]
}
