import { SETTING_KEYS, SETTINGS, type Setting, settingName } from '../../settings/table.ts'
import type { Column } from '../../terminal/columns.ts'
import { createListWriter } from '../../terminal/list-writer.ts'
import { defineCommand } from '../definition.ts'

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
  examples: [
    { command: 'mailclaim config list', description: 'which values are active, and why' },
    {
      command: 'mailclaim config list --profile staging --json',
      description: 'of another profile, for a script',
    },
  ],
  exits: [],
  async run(_input, context, settings) {
    const items = SETTING_KEYS.map((key) => {
      const { description, unset }: Setting<unknown> = SETTINGS[key]
      const { value = null, source = unset ? 'default' : null } = settings.chosen[key] ?? {}
      const says = unset ? `${description} (default: ${unset})` : description
      return { name: settingName(key), value, source, says }
    })
    const writer = createListWriter({ context, settings, columns: COLUMNS, nothing: 'no settings' })
    const envelope = { object: 'list', has_more: false, data: items }
    await writer.page({ items, envelope, finalHasMore: false })
    await writer.end(false)
  },
})
