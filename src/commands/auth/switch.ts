import { usageError } from '../../errors.ts'
import { validateProfileName } from '../../settings/profiles.ts'
import { plainColumns } from '../../terminal/columns.ts'
import { defineCommand } from '../definition.ts'

const COLUMNS = plainColumns('profile')

export const command = defineCommand({
  description: 'Makes a profile the default for commands that name none.',
  arguments: [{ syntax: '<profile>', description: 'the profile to use from now on', completion: 'profiles' }],
  examples: {
    'mailclaim auth switch work': 'use the profile "work"',
    'mailclaim auth switch default': 'use the first profile again',
  },
  output: { columns: COLUMNS },
  errors: ['config_busy'],
  async run({ arguments: [name = ''] }, io) {
    const { settings, environment } = io
    const { requireKnownProfile } = await import('../../session/profiles.ts')
    const { updateConfig } = await import('../../settings/config.ts')
    const profile = validateProfileName(name)
    if (settings.profile.source === 'flag' && settings.profile.value !== profile)
      throw usageError(
        `the argument ${profile} and --profile ${settings.profile.value} are different profiles`,
      )
    requireKnownProfile(profile, io, settings)
    await updateConfig(io, (config) => {
      config.current_profile = profile
    })
    await io.writeOutcome({ profile }, COLUMNS)
    await io.say(`Using profile ${profile} from now on.`)
    if ((environment.settings['profile'] ?? profile) !== profile)
      await io.warn('MAILCLAIM_PROFILE is set to another profile and overrides this')
    if (environment.apiKey !== undefined)
      await io.warn('MAILCLAIM_API_KEY is set, and commands keep using it')
  },
})
