import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { type Forgotten, forgetSession } from '../session/forget.ts'
import { profilesWithSecrets } from '../session/profiles.ts'
import { writeJson } from '../terminal/output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { defineCommand } from './definition.ts'

interface LogoutFlags {
  readonly all?: true
}

export const command = defineCommand<LogoutFlags>({
  description: `Forgets the session or the API key of the profile: every copy of its secrets on this machine. The
grant at the service is another matter: it stays active until it is revoked there.`,
  options: [{ flags: '--all', says: 'of every profile' }],
  examples: [
    { command: 'mailclaim logout', says: 'sign out of the current profile' },
    { command: 'mailclaim logout --all', says: 'leave no secret of this program on this machine' },
  ],
  exits: [Exit.notSignedIn, Exit.unavailable],
  async run({ options }, context, settings) {
    const profiles = options.all ? profilesWithSecrets(context) : [settings.profile.value]
    const forgotten: Forgotten[] = []
    for (const profile of profiles) forgotten.push(await forgetSession(context, settings, profile))
    if (settings.format === 'json' || settings.format === 'jsonl') await tellPrograms(context, forgotten)
    if (!settings.quiet) await tellPeople(context, forgotten)
    const kept = forgotten.flatMap((one) => one.kept.map((secret) => ({ profile: one.profile, ...secret })))
    if (kept.length === 0) return
    const first = kept[0]
    throw new CliError(
      'secret_kept',
      Exit.notSignedIn,
      `not everything could be removed: ${kept.map(({ profile, location }) => `the ${location.store} may still hold a secret of profile ${profile} (${location.name})`).join('; ')}: ${first?.why ?? ''}`,
      {
        hint:
          first?.location.store === 'keychain'
            ? 'unlock the keychain and run mailclaim logout once more'
            : 'check the permissions of that file and its directory, and run mailclaim logout once more',
      },
    )
  },
})

async function tellPrograms(context: Context, forgotten: readonly Forgotten[]): Promise<void> {
  await writeJson(context, {
    object: 'list',
    has_more: false,
    data: forgotten.map(({ profile, record, kept }) => ({
      profile,
      was_signed_in: record !== undefined,
      kept: kept.map(({ location, why }) => ({ store: location.store, name: location.name, why })),
    })),
  })
}

async function tellPeople(context: Context, forgotten: readonly Forgotten[]): Promise<void> {
  const say = (text: string) => context.stderr.write(`${sanitizeLine(text)}\n`)
  if (forgotten.length === 0) await say('No profile is signed in.')
  for (const { profile, record, damaged, kept } of forgotten) {
    if (damaged !== undefined)
      await say(`The session file of profile ${profile} could not be used. It was kept as ${damaged}.`)
    if (record === undefined && kept.length > 0) continue
    if (record === undefined && damaged !== undefined)
      await say(`The secrets of profile ${profile} are removed from this machine.`)
    else if (record === undefined) await say(`Profile ${profile} was not signed in.`)
    // The error that follows says what is left.
    else if (kept.length > 0) continue
    else if (record.kind === 'api_key')
      await say(`The API key of profile ${profile} is forgotten. It stays valid.`)
    else await say(`Profile ${profile} is signed out: its tokens are removed from this machine.`)
  }
  if (forgotten.some(({ record }) => record?.kind === 'oauth' && record.ended === null)) {
    await say(
      'The grant itself stays active at the service. Revoke it there, among the connected apps of your account, if it is not to be used again.',
    )
  }
  if (context.environment.apiKey !== undefined) {
    await context.stderr.write('warning: MAILCLAIM_API_KEY is set, and commands go on using it\n')
  }
}
