import { configPath } from '../../settings/config.ts'
import type { Column } from '../../terminal/columns.ts'
import { writeObject, writeValue } from '../../terminal/output.ts'
import { defineCommand, ownOutput, VALUE } from '../definition.ts'

const COLUMNS: readonly Column[] = [
  { field: 'config', kind: 'id' },
  { field: 'state', kind: 'id' },
]

export const command = defineCommand({
  description: `Prints the path of the file with the settings of every profile, whether it exists or not; with --json also
the directory of sessions and remembered claims. MAILCLAIM_CONFIG_DIR and MAILCLAIM_STATE_DIR move them.`,
  examples: {
    'mailclaim config path': 'the file',
    'mailclaim config path --json': 'the file, and the directory of sessions',
  },
  output: ownOutput(COLUMNS, { ...VALUE }),
  exits: [],
  toleratesDamagedConfig: 'silently',
  async run(_input, io) {
    const [context, settings] = [io, io.settings]
    const config = configPath(context)
    if (settings.format === 'value') return writeValue(context, config)
    await writeObject(context, settings, { config, state: context.directories.state }, COLUMNS)
  },
})
