import { CliError, usageError } from '../../errors.ts'
import { updateConfig, withSetting } from '../../settings/config.ts'
import {
  SETTINGS,
  type Setting,
  type SettingKey,
  settingKey,
  settingName,
  settingText,
} from '../../settings/table.ts'
import type { Column } from '../../terminal/columns.ts'
import { warn } from '../../terminal/notices.ts'
import { writeOutcome } from '../../terminal/output.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { defineCommand, ownOutput } from '../definition.ts'

const COLUMNS: readonly Column[] = [
  { field: 'profile' },
  { field: 'name', title: 'Setting', kind: 'id' },
  { field: 'value' },
]

export const command = defineCommand({
  description: `Changes a setting of the profile. The rest of the file stays as it is, and commands that change settings at
the same time don't lose each other's changes. A secret is not a setting: it belongs in the keychain (login) or in
MAILCLAIM_API_KEY.`,
  arguments: [
    { syntax: '<setting>', description: 'name of the setting, such as base-url', completion: 'settings' },
    {
      syntax: '<value>',
      description: 'new value; separate a list with spaces',
      completion: 'setting_values',
    },
  ],
  examples: {
    'mailclaim config set base-url https://api.example.com': 'set the address of the service',
    'mailclaim config set resolver "9.9.9.9 1.1.1.1"': 'query these DNS resolvers',
    'mailclaim config set store file --profile ci': 'for one profile, on a machine without a keychain',
  },
  output: ownOutput(COLUMNS, {}),
  exits: [],
  toleratesDamagedConfig: 'silently',
  async run({ arguments: [name = '', text = ''] }, io) {
    const [context, settings] = [io, io.settings]
    const key = settingKey(name)
    const value = parse(key, text)
    const profile = settings.profile.value
    await updateConfig(context, (config) => {
      config.profiles[profile] = withSetting(config.profiles[profile], key, value)
    })
    await writeOutcome(context, settings, { profile, name: settingName(key), value }, COLUMNS)
    if (!settings.quiet)
      await context.stderr.write(
        `${profile}: ${settingName(key)} is now ${sanitizeLine(settingText(value))}\n`,
      )
    const { variable }: Setting<unknown> = SETTINGS[key]
    if (context.environment.settings[key] !== undefined)
      await warn(`${variable} is set, and overrides this`, context, settings)
  },
})

function parse(key: SettingKey, text: string) {
  const name = settingName(key)
  if (text.trim() === '')
    throw usageError(`${name}: the value is empty`, `to remove the setting: mailclaim config unset ${name}`)
  try {
    return SETTINGS[key].parse(text, name)
  } catch (error) {
    // An unusable base URL is a typo here, not a program that isn't configured.
    if (error instanceof CliError) throw usageError(error.message, error.hint)
    throw error
  }
}
