import { existsSync } from 'node:fs'
import type { Column } from '../../terminal/columns.ts'
import type { Io } from '../../terminal/io.ts'
import { defineCommand } from '../definition.ts'
import { printLocalList } from '../lists.ts'

const COLUMNS: readonly Column[] = [
  { field: 'profile', kind: 'id' },
  {
    field: 'current',
    title: '',
    text: (value) => (value === true ? 'current' : ' '),
    paint: (_value, { palette }) => palette.good,
  },
  { field: 'credential' },
  { field: 'base_url', title: 'Service' },
  { field: 'store' },
]

export const command = defineCommand({
  description: 'Lists the profiles: what has a session, a setting or remembered claims.',
  examples: {
    'mailclaim auth list': 'all profiles',
    'mailclaim auth list --json': 'for a script',
  },
  output: { columns: COLUMNS },
  async run(_input, io) {
    const { listProfilesWithLocalData } = await import('../../session/profiles.ts')
    const { settings } = io
    const names = [...new Set([settings.profile.value, ...listProfilesWithLocalData(io, settings)])].sort()
    const items = await Promise.all(
      names.map(async (profile) => ({
        profile,
        current: profile === settings.profile.value,
        ...(await describeStoredCredential(io, profile)),
        base_url: settings.config.profiles[profile]?.base_url ?? null,
      })),
    )
    await printLocalList([items], COLUMNS, 'no profiles', io)
  },
})

/**
 * Returns kind and store of a profile's credential as its session file says; the secret isn't read. For a profile with the store
 * `etcd`, the kind is `session` even if nobody is signed in, because etcd isn't queried.
 */
async function describeStoredCredential(io: Io, profile: string) {
  const { profileFiles, tryReadSession, getSecretStoreKind } = await import('../../session/session-file.ts')
  if (io.settings.config.profiles[profile]?.store === 'etcd') return { credential: 'session', store: 'etcd' }
  const files = profileFiles(io, profile)
  const session = tryReadSession(files)
  if (session !== undefined) {
    const { kind, ended } = session
    return { credential: ended === undefined ? kind : 'ended_session', store: getSecretStoreKind(session) }
  }
  return { credential: existsSync(files.session) ? 'damaged' : 'none', store: null }
}
