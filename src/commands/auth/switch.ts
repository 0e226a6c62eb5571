import { CliError, Exit, usageError } from '../../errors.ts'
import { unknownProfile } from '../../session/profiles.ts'
import { updateConfig } from '../../settings/config.ts'
import { parseProfileName } from '../../settings/profiles.ts'
import type { Column } from '../../terminal/columns.ts'
import { note, warn } from '../../terminal/notices.ts'
import { writeOutcome } from '../../terminal/output.ts'
import { defineCommand, ownOutput } from '../definition.ts'

const COLUMNS: readonly Column[] = [{ field: 'profile' }]

export const command = defineCommand({
  description: 'Makes a profile the default for commands that name none.',
  arguments: [{ syntax: '<profile>', description: 'the profile to use from now on', completion: 'profiles' }],
  examples: {
    'mailclaim auth switch work': 'use the profile "work"',
    'mailclaim auth switch default': 'use the first profile again',
  },
  output: ownOutput(COLUMNS, {}),
  exits: [Exit.notFound],
  async run({ arguments: [name = ''] }, io) {
    const [context, settings] = [io, io.settings]
    const profile = parseProfileName(name)
    if (settings.profile.source === 'flag' && settings.profile.value !== profile)
      throw usageError(
        `the argument ${profile} and --profile ${settings.profile.value} are different profiles`,
      )
    const unknown = unknownProfile(profile, context, settings)
    if (unknown !== undefined) {
      throw new CliError('profile_not_found', Exit.notFound, unknown, {
        hint: `create it by signing in: mailclaim login --profile ${profile}; for the existing ones: mailclaim auth list`,
      })
    }
    await updateConfig(context, (config) => {
      config.current_profile = profile
    })
    await writeOutcome(context, settings, { profile }, COLUMNS)
    await note(`Using profile ${profile} from now on.`, context, settings)
    if ((context.environment.settings['profile'] ?? profile) !== profile)
      await warn('MAILCLAIM_PROFILE is set to another profile and overrides this', context, settings)
    if (context.environment.apiKey !== undefined)
      await warn('MAILCLAIM_API_KEY is set, and commands keep using it', context, settings)
  },
})
