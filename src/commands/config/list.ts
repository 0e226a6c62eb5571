import { SETTING_KEYS, SETTINGS, type Setting, settingName } from '../../settings/table.ts'
import type { Column } from '../../terminal/columns.ts'
import { defineCommand, ownOutput } from '../definition.ts'
import { printItems } from '../lists.ts'

const COLUMNS: readonly Column[] = [
  { field: 'name', title: 'Setting', kind: 'id' },
  { field: 'value' },
  { field: 'source', title: 'From' },
  { field: 'says', title: 'Meaning', only: 'people' },
]

export const command = defineCommand({
  description: `Lists every setting with its active value and where that comes from: a flag, the environment, the profile
or the default. A flag overrides the environment, which overrides the profile. An API key is not a setting and is not
shown.`,
  examples: {
    'mailclaim config list': 'which values are active, and why',
    'mailclaim config list --profile staging --json': 'of another profile, for a script',
  },
  output: ownOutput(COLUMNS, {}),
  exits: [],
  async run(_input, io) {
    const [context, settings] = [io, io.settings]
    const items = SETTING_KEYS.map((key) => {
      const { description, unset }: Setting<unknown> = SETTINGS[key]
      const { value = null, source = unset ? 'default' : null } = settings.chosen[key] ?? {}
      const says = unset ? `${description} (default: ${unset})` : description
      return { name: settingName(key), value, source, says }
    })
    await printItems(items, COLUMNS, 'no settings', context, settings)
  },
})
