import { CliError, Exit } from '../../errors.ts'
import { CONFIG_KEYS, configKey, settingText } from '../../settings/config.ts'
import { escapeTsv, sanitizeLine } from '../../terminal/sanitize.ts'
import { defineCommand } from '../definition.ts'

export const command = defineCommand({
  description: `Prints the value of one setting of the profile, and nothing else. What a flag or the environment says
instead is shown by config list.`,
  arguments: [{ syntax: '<setting>', says: 'its name, as in base-url', completion: 'settings' }],
  examples: [
    { command: 'mailclaim config get base-url', says: 'where the commands go' },
    { command: 'mailclaim config get scope --profile ci', says: 'of another profile' },
  ],
  exits: [Exit.notFound],
  async run({ arguments: [name = ''] }, context, settings) {
    const key = configKey(name)
    const value = settings.profileConfig[key]
    if (value === undefined) {
      const { name } = CONFIG_KEYS[key]
      throw new CliError(
        'setting_unset',
        Exit.notFound,
        `the profile ${settings.profile.value} does not set ${name}`,
        { hint: `mailclaim config set ${name} …` },
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
