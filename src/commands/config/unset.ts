import { CONFIG_KEYS, configKey, updateConfig, withSetting } from '../../settings/config.ts'
import { defineCommand } from '../definition.ts'

export const command = defineCommand({
  description: `Removes a setting from the profile, so that the default counts again. Removing one that is not there is
no failure.`,
  arguments: [{ syntax: '<setting>', says: 'its name, as in resolver', completion: 'settings' }],
  examples: [
    { command: 'mailclaim config unset resolver', says: "ask the system's own DNS resolvers again" },
    { command: 'mailclaim config unset base-url --profile staging', says: 'of another profile' },
  ],
  exits: [],
  toleratesDamagedConfig: true,
  async run({ arguments: [name = ''] }, context, settings) {
    const key = configKey(name)
    const profile = settings.profile.value
    let was = false
    await updateConfig(context, (config) => {
      const before = config.profiles[profile]
      was = before?.[key] !== undefined
      if (before !== undefined) config.profiles[profile] = withSetting(before, key, undefined)
    })
    if (settings.quiet) return
    const { name: shown } = CONFIG_KEYS[key]
    await context.stderr.write(`${profile}: ${shown} is ${was ? 'no longer' : 'not'} set\n`)
  },
})
