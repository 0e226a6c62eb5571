import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { sessionPaths } from '../../session/paths.ts'
import { profilesWithSession } from '../../session/profiles.ts'
import { readRecord, type SessionRecord } from '../../session/record.ts'
import { createListWriter } from '../../terminal/list-writer.ts'
import { defineCommand } from '../definition.ts'

export const command = defineCommand({
  description: 'Lists the profiles: those that are configured and those that are signed in.',
  examples: [
    { command: 'mailclaim auth list', says: 'which profiles are there' },
    { command: 'mailclaim auth list --json', says: 'the same for a script' },
  ],
  exits: [],
  async run(_input, context, settings) {
    const names = new Set([
      settings.profile.value,
      ...Object.keys(settings.config.profiles),
      ...profilesWithSession(context),
    ])
    const items = await Promise.all(
      [...names].sort().map(async (profile) => ({
        profile,
        current: profile === settings.profile.value,
        ...(await credentialOf(context, profile)),
        base_url: settings.config.profiles[profile]?.base_url ?? null,
      })),
    )
    const writer = createListWriter({
      context,
      settings,
      columns: [
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
      ],
      nothing: 'no profiles',
    })
    await writer.page({
      items,
      envelope: { object: 'list', has_more: false, data: items },
      finalHasMore: false,
    })
    await writer.end(false)
  },
})

/** What is known of a profile's credential from its record alone: the store is not asked. */
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
