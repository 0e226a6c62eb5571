import { CliError, Exit } from '../../errors.ts'
import { settingKey, settingName, settingText } from '../../settings/table.ts'
import type { Column } from '../../terminal/columns.ts'
import { writeObject, writeValue } from '../../terminal/output.ts'
import { defineCommand, ownOutput, VALUE } from '../definition.ts'

const COLUMNS: readonly Column[] = [{ field: 'name', title: 'Setting', kind: 'id' }, { field: 'value' }]

export const command = defineCommand({
  description: `Prints one setting of the profile, and nothing else. It ignores flags, the environment and defaults, which
config list shows.`,
  arguments: [
    { syntax: '<setting>', description: 'name of the setting, such as base-url', completion: 'settings' },
  ],
  examples: {
    'mailclaim config get base-url': 'the address of the service',
    'mailclaim config get scope --profile ci': 'of another profile',
  },
  output: ownOutput(COLUMNS, { ...VALUE }),
  exits: [Exit.notFound],
  async run({ arguments: [name = ''] }, io) {
    const [context, settings] = [io, io.settings]
    const key = settingKey(name)
    const value = settings.profileConfig[key]
    if (value === undefined) {
      const shown = settingName(key)
      throw new CliError(
        'setting_unset',
        Exit.notFound,
        `the profile ${settings.profile.value} does not set ${shown}`,
        { hint: `mailclaim config set ${shown} …` },
      )
    }
    if (settings.format === 'value') return writeValue(context, settingText(value))
    await writeObject(context, settings, { name: settingName(key), value }, COLUMNS)
  },
})
