import { configPath } from '../../settings/config.ts'
import { escapeTsv, sanitizeLine } from '../../terminal/sanitize.ts'
import { defineCommand } from '../definition.ts'

export const command = defineCommand({
  description: `Prints the path of the file with the settings of every profile, whether it exists or not; with --json also
the directory of sessions and remembered claims. MAILCLAIM_CONFIG_DIR and MAILCLAIM_STATE_DIR move them.`,
  examples: {
    'mailclaim config path': 'the file',
    'mailclaim config path --json': 'the file, and the directory of sessions',
  },
  exits: [],
  toleratesDamagedConfig: 'silently',
  async run(_input, context, settings) {
    const path = configPath(context)
    if (settings.format === 'json' || settings.format === 'jsonl') {
      const { jsonOf } = await import('../../terminal/columns.ts')
      await context.stdout.write(`${jsonOf({ config: path, state: context.directories.state })}\n`)
      return
    }
    await context.stdout.write(`${context.stdout.isTTY ? sanitizeLine(path) : escapeTsv(path)}\n`)
  },
})
