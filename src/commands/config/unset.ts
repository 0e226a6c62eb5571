import { updateConfig, withSetting } from '../../settings/config.ts'
import { settingKey, settingName } from '../../settings/table.ts'
import type { Column } from '../../terminal/columns.ts'
import { writeOutcome } from '../../terminal/output.ts'
import { defineCommand, ownOutput } from '../definition.ts'

const COLUMNS: readonly Column[] = [
  { field: 'profile' },
  { field: 'name', title: 'Setting', kind: 'id' },
  { field: 'was_set' },
]

export const command = defineCommand({
  description: `Removes a setting from the profile, which brings back its default. Removing one that isn't set is not an
error.`,
  arguments: [
    { syntax: '<setting>', description: 'name of the setting, such as resolver', completion: 'settings' },
  ],
  examples: {
    'mailclaim config unset resolver': "query the system's DNS resolvers again",
    'mailclaim config unset base-url --profile staging': 'of another profile',
  },
  output: ownOutput(COLUMNS, {}),
  exits: [],
  toleratesDamagedConfig: 'silently',
  async run({ arguments: [name = ''] }, io) {
    const [context, settings] = [io, io.settings]
    const key = settingKey(name)
    const profile = settings.profile.value
    let was = false
    await updateConfig(context, (config) => {
      const before = config.profiles[profile]
      was = before?.[key] !== undefined
      if (before !== undefined) config.profiles[profile] = withSetting(before, key, undefined)
    })
    await writeOutcome(context, settings, { profile, name: settingName(key), was_set: was }, COLUMNS)
    if (settings.quiet) return
    await context.stderr.write(`${profile}: ${settingName(key)} is ${was ? 'no longer' : 'not'} set\n`)
  },
})
