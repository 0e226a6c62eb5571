import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { sessionPaths } from '../../session/paths.ts'
import { profilesWithSession } from '../../session/profiles.ts'
import { readRecord, type SessionRecord } from '../../session/record.ts'
import type { Column } from '../../terminal/columns.ts'
import { defineCommand, ownOutput } from '../definition.ts'
import { printItems } from '../lists.ts'

const COLUMNS: readonly Column[] = [
  { field: 'profile', kind: 'id' },
  {
    field: 'current',
    title: '',
    text: (value) => (value === true ? 'current' : ' '),
    paint: (_value, palette) => palette.good,
  },
  { field: 'credential' },
  { field: 'base_url', title: 'Service' },
  { field: 'store' },
]

export const command = defineCommand({
  description: 'Lists the profiles that are configured or signed in.',
  examples: {
    'mailclaim auth list': 'all profiles',
    'mailclaim auth list --json': 'for a script',
  },
  output: ownOutput(COLUMNS, {}),
  exits: [],
  async run(_input, io) {
    const [context, settings] = [io, io.settings]
    const names = new Set([
      settings.profile.value,
      ...Object.keys(settings.config.profiles),
      ...profilesWithSession(context),
    ])
    const items = await Promise.all(
      [...names].sort().map(async (profile) => ({
        profile,
        current: profile === settings.profile.value,
        ...(settings.config.profiles[profile]?.store === 'etcd'
          ? { credential: 'session', store: 'etcd' }
          : await credentialOf(context, profile)),
        base_url: settings.config.profiles[profile]?.base_url ?? null,
      })),
    )
    await printItems(items, COLUMNS, 'no profiles', io)
  },
})

/** What a profile's session record says of its credential; the store isn't read. */
async function credentialOf(
  context: Context,
  profile: string,
): Promise<{ credential: string; store: string | null }> {
  let record: SessionRecord | undefined
  try {
    record = await readRecord(sessionPaths(context, profile))
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { credential: 'damaged', store: null }
  }
  if (record === undefined) return { credential: 'none', store: null }
  if (record.kind === 'api_key') return { credential: 'api_key', store: record.store }
  return { credential: record.ended === null ? 'session' : 'ended_session', store: record.store }
}
