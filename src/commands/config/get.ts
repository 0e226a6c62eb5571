import { CliError, Exit } from '../../errors.ts'
import { settingKey, settingName, settingText } from '../../settings/table.ts'
import { escapeTsv, sanitizeLine } from '../../terminal/sanitize.ts'
import { defineCommand } from '../definition.ts'

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
  exits: [Exit.notFound],
  async run({ arguments: [name = ''] }, context, settings) {
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
    if (settings.format === 'json' || settings.format === 'jsonl') {
      const { jsonOf } = await import('../../terminal/columns.ts')
      await context.stdout.write(`${jsonOf(value)}\n`)
      return
    }
    const text = settingText(value)
    await context.stdout.write(`${context.stdout.isTTY ? sanitizeLine(text) : escapeTsv(text)}\n`)
  },
})
