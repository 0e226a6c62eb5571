import { CliError, Exit } from '../../errors.ts'
import { profilesWithSession } from '../../session/profiles.ts'
import { updateConfig } from '../../settings/config.ts'
import { DEFAULT_PROFILE, parseProfileName } from '../../settings/profiles.ts'
import { warn } from '../../terminal/notices.ts'
import { defineCommand } from '../definition.ts'

export const command = defineCommand({
  description: 'Makes a profile the one that commands use where nothing names another.',
  arguments: [{ syntax: '<profile>', says: 'the profile to use from now on', completion: 'profiles' }],
  examples: [
    { command: 'mailclaim auth switch work', says: 'use the profile "work"' },
    { command: 'mailclaim auth switch default', says: 'back to the first one' },
  ],
  exits: [Exit.notFound],
  async run({ arguments: [name = ''] }, context, settings) {
    const profile = parseProfileName(name)
    const known = [DEFAULT_PROFILE, ...Object.keys(settings.config.profiles), ...profilesWithSession(context)]
    if (!known.includes(profile)) {
      throw new CliError('profile_not_found', Exit.notFound, `there is no profile ${profile}`, {
        hint: `make it by signing in: mailclaim login --profile ${profile}; mailclaim auth list shows those there are`,
      })
    }
    await updateConfig(context, (config) => {
      config.current_profile = profile
    })
    if (settings.quiet) return
    await context.stderr.write(`Commands use profile ${profile} from now on.\n`)
    if (context.environment.profile !== undefined && context.environment.profile !== profile) {
      await warn('MAILCLAIM_PROFILE is set to another profile and beats this', context, settings)
    }
  },
})
