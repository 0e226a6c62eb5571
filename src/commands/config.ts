import { CliError, usageError } from '../errors.ts'
import { maskUrlSecrets, maskUserInfo } from '../settings/addresses.ts'
import {
  formatSetting,
  parseSettingKey,
  SETTING_KEYS,
  SETTINGS,
  type SettingDefinition,
  settingName,
} from '../settings/table.ts'
import type { Column } from '../terminal/columns.ts'
import { type ArgumentDefinition, defineCommand, SINGLE_VALUE_OUTPUT } from './definition.ts'

const SETTING: ArgumentDefinition = {
  syntax: '<setting>',
  description: 'name of the setting, such as base-url',
  completion: 'settings',
}
const NAME: Column = { field: 'name', title: 'Setting', kind: 'id' }
const LIST_COLUMNS: readonly Column[] = [
  NAME,
  { field: 'value' },
  { field: 'source', title: 'From' },
  { field: 'meaning', only: 'people', optional: true },
]

export const configList = defineCommand({
  description: 'Lists the settings that have a value, where each comes from, and where the files are.',
  examples: {
    'mailclaim config list': 'which values are active, and why',
    'mailclaim config list --profile staging': 'of another profile',
    'mailclaim config list --json': 'for a script, with the paths of the files',
  },
  output: { columns: LIST_COLUMNS },
  toleratesDamagedConfig: true,
  async run(_input, io) {
    const { settings, directories } = io
    if (settings.configProblem !== undefined) await io.warn(settings.configProblem.message)
    const items = SETTING_KEYS.flatMap((key) => {
      const { value, source } = settings.chosen[key] ?? {}
      if (value === undefined) return []
      return { name: settingName(key), value: maskValue(value), source, meaning: SETTINGS[key].description }
    })
    const { resolveConfigFileLink } = await import('../settings/config.ts')
    const paths = { config: resolveConfigFileLink(io), state: directories.state }
    const writer = io.list(LIST_COLUMNS)
    await writer.page({ items, envelope: { paths } })
    await writer.end(false)
    await io.say(`Settings are in ${paths.config}, sessions and remembered claims in ${paths.state}`)
  },
})

const GET_COLUMNS: readonly Column[] = [NAME, { field: 'value' }]

export const configGet = defineCommand({
  description: 'Prints a setting of the profile and nothing else, whatever flags and variables say.',
  arguments: [SETTING],
  examples: {
    'mailclaim config get base-url': 'the address of the service',
    'mailclaim config get scope --profile ci': 'of another profile',
  },
  output: { columns: GET_COLUMNS, ...SINGLE_VALUE_OUTPUT },
  errors: ['setting_unset'],
  async run({ arguments: [typed = ''] }, io) {
    const { profile, profileConfig, format } = io.settings
    const key = parseSettingKey(typed)
    const name = settingName(key)
    const value = profileConfig[key]
    if (value === undefined) {
      const message = `the profile ${profile.value} does not set ${name}`
      throw new CliError('setting_unset', message, { hint: `mailclaim config set ${name} …` })
    }
    if (format === 'value') await io.writeValue(value)
    else await io.write({ name, value }, GET_COLUMNS)
  },
})

const SET_COLUMNS: readonly Column[] = [{ field: 'profile' }, NAME, { field: 'value' }]

export const configSet = defineCommand({
  description: 'Changes a setting of the profile.',
  arguments: [
    SETTING,
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
  output: { columns: SET_COLUMNS },
  errors: ['config_busy'],
  async run({ arguments: [typed = '', text = ''] }, io) {
    const key = parseSettingKey(typed)
    const name = settingName(key)
    const profile = io.settings.profile.value
    const setting: SettingDefinition<unknown> = SETTINGS[key]
    if (text.trim() === '')
      throw usageError(`${name}: the value is empty`, `to remove it: mailclaim config unset ${name}`)
    let value: string
    try {
      value = formatSetting(setting.parse(text, name))
    } catch (error) {
      // `parse` throws exit 3 (not configured) for an invalid base URL. Here the user typed the value, so make it a usage error,
      // exit 2.
      throw error instanceof CliError ? usageError(error.message, error.hint) : error
    }
    const { updateConfig, copyProfileWithChangedSetting } = await import('../settings/config.ts')
    await updateConfig(io, (config) => {
      config.profiles[profile] = copyProfileWithChangedSetting(config.profiles[profile], key, value)
    })
    await io.writeOutcome({ profile, name, value: maskValue(value) }, SET_COLUMNS)
    await io.say(`${profile}: ${name} is now ${maskValue(value)}`)
    if (io.environment.settings[key] !== undefined)
      await io.warn(`${setting.variable} is set, and overrides this`)
  },
})

const UNSET_COLUMNS: readonly Column[] = [{ field: 'profile' }, NAME, { field: 'was_set' }]

export const configUnset = defineCommand({
  description: 'Removes a setting from the profile, which brings back its default.',
  arguments: [SETTING],
  examples: {
    'mailclaim config unset resolver': "query the system's DNS resolvers again",
    'mailclaim config unset base-url --profile staging': 'of another profile',
  },
  output: { columns: UNSET_COLUMNS },
  errors: ['config_busy'],
  async run({ arguments: [typed = ''] }, io) {
    const key = parseSettingKey(typed)
    const name = settingName(key)
    const profile = io.settings.profile.value
    const { updateConfig, copyProfileWithChangedSetting } = await import('../settings/config.ts')
    let was = false
    await updateConfig(io, (config) => {
      const before = config.profiles[profile]
      was = before?.[key] !== undefined
      if (was) config.profiles[profile] = copyProfileWithChangedSetting(before, key, undefined)
      // Remove a profile without settings: otherwise completion would keep offering its name.
      if (Object.keys(config.profiles[profile] ?? {}).length === 0) delete config.profiles[profile]
    })
    await io.writeOutcome({ profile, name, was_set: was }, UNSET_COLUMNS)
    await io.say(`${profile}: ${name} is ${was ? 'no longer' : 'not'} set`)
  },
})

/** Masks user names, passwords, queries and fragments of the URLs in a setting's value. */
function maskValue(value: string): string {
  return maskUserInfo(value.includes('://') ? value.split(' ').map(maskUrlSecrets).join(' ') : value)
}
