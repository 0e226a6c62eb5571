import { CliError, usageError } from '../../errors.ts'
import {
  CONFIG_KEYS,
  configKey,
  type SettingKey,
  settingText,
  updateConfig,
  withSetting,
} from '../../settings/config.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { defineCommand } from '../definition.ts'

export const command = defineCommand({
  description: `Changes a setting of the profile. Everything else in the file stays as it is, and commands that change
settings at the same time do not lose each other's changes. A secret is no setting: it belongs in the keychain
(login) or in MAILCLAIM_API_KEY.`,
  arguments: [
    { syntax: '<setting>', says: 'its name, as in base-url', completion: 'settings' },
    { syntax: '<value>', says: 'its value; a list is separated by spaces', completion: 'setting_values' },
  ],
  examples: [
    { command: 'mailclaim config set base-url https://api.example.com', says: 'where the commands go' },
    { command: 'mailclaim config set resolver "9.9.9.9 1.1.1.1"', says: 'which DNS resolvers to ask' },
    {
      command: 'mailclaim config set store file --profile ci',
      says: 'on a machine without a keychain, for one profile',
    },
  ],
  exits: [],
  toleratesDamagedConfig: true,
  async run({ arguments: [name = '', text = ''] }, context, settings) {
    const key = configKey(name)
    const value = parse(key, text)
    const profile = settings.profile.value
    await updateConfig(context, (config) => {
      config.profiles[profile] = withSetting(config.profiles[profile], key, value)
    })
    if (settings.quiet) return
    await context.stderr.write(
      `${profile}: ${CONFIG_KEYS[key].name} is now ${sanitizeLine(settingText(value))}\n`,
    )
  },
})

function parse(key: SettingKey, text: string) {
  if (text.trim() === '') {
    throw usageError(
      `${CONFIG_KEYS[key].name}: the value is empty`,
      `to remove the setting: mailclaim config unset ${CONFIG_KEYS[key].name}`,
    )
  }
  try {
    return CONFIG_KEYS[key].parse(text)
  } catch (error) {
    // An address that nobody can use is a slip of the pen here, not a program that is not configured.
    if (error instanceof CliError) throw usageError(error.message, error.hint)
    throw error
  }
}
