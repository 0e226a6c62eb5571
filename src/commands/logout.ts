import type { SignOutResult } from '../session/sign-in.ts'
import { addProfileFlag } from '../settings/profiles.ts'
import { plainColumns } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'
import { hasOwnLayout } from '../terminal/output.ts'
import { defineCommand } from './definition.ts'
import { printLocalList } from './lists.ts'

const COLUMNS = plainColumns('profile', 'was_signed_in')

export const command = defineCommand({
  description: 'Forgets the session or the API key of the profile; the grant at the service stays active.',
  options: [{ flags: '--all', description: 'for all profiles', conflicts: ['--profile'] }],
  examples: {
    'mailclaim logout': 'sign out of the current profile',
    'mailclaim logout --all': 'remove all secrets of this program from this machine',
  },
  output: { columns: COLUMNS },
  errors: ['session'],
  async run({ options }, io) {
    const { listProfilesThatMayHoldSecrets, requireKnownProfile } = await import('../session/profiles.ts')
    const { value: current, source } = io.settings.profile
    const profiles = options.all ? listProfilesThatMayHoldSecrets(io) : [current]
    const forgotten: SignOutResult[] = []
    for (const profile of profiles) forgotten.push(await forgetProfile(io, profile))
    // Reject an unknown profile only after removing its secret: a keychain item may remain although the profile's files are gone.
    if (!options.all && source !== 'default' && forgotten.every(hadNoSession))
      requireKnownProfile(current, io, io.settings)
    if (!hasOwnLayout(io.settings)) {
      const items = forgotten.map(({ profile, wasSignedIn }) => ({ profile, was_signed_in: wasSignedIn }))
      await printLocalList([items], COLUMNS, 'No profile is signed in.', io)
    }
    await reportForgotten(forgotten, io)
    if (io.environment.apiKey !== undefined)
      await io.warn('MAILCLAIM_API_KEY is set, and commands keep using it')
    io.interrupts.signal.throwIfAborted()
    const failed = forgotten.find(({ problem }) => problem !== undefined)
    if (failed?.problem === undefined) return
    const again = addProfileFlag('mailclaim logout', failed.profile)
    throw failed.problem.with({ hint: `once the keychain answers, this removes it: ${again}` })
  },
})

/** Whether the profile had no session, and deleting its keychain item caused no problem. */
const hadNoSession = ({ wasSignedIn, problem }: SignOutResult): boolean =>
  !wasSignedIn && problem === undefined

/**
 * Signs a profile out on this machine, and also in etcd if it is the current profile and has the store `etcd`: `io` has no
 * settings of other profiles with which to reach etcd.
 */
async function forgetProfile(io: Io, profile: string): Promise<SignOutResult> {
  const { usesEtcdStore } = await import('../settings/settings.ts')
  const { signOutLocally } = await import('../session/sign-in.ts')
  if (profile === io.settings.profile.value && usesEtcdStore(io.settings)) {
    const { endEtcdSession } = await import('../session/shared/sign-in.ts')
    const local = await signOutLocally(io, profile)
    const { wasSignedIn, session = local.session } = await endEtcdSession(io, profile)
    return { ...local, session, wasSignedIn: wasSignedIn || local.wasSignedIn }
  }
  const { profileFiles } = await import('../session/session-file.ts')
  const { removeLocalEtcdFiles } = await import('../session/shared/local.ts')
  removeLocalEtcdFiles(profileFiles(io, profile))
  return signOutLocally(io, profile)
}

async function reportForgotten(forgotten: readonly SignOutResult[], io: Io): Promise<void> {
  if (forgotten.length === 0) await io.say('No profile is signed in.')
  for (const { profile, wasSignedIn, session, problem } of forgotten) {
    if (problem !== undefined) await io.warn(`the keychain may still hold a secret of profile ${profile}`)
    else if (!wasSignedIn) await io.say(`Profile ${profile} was not signed in.`)
    else if (session?.kind === 'api_key')
      await io.say(`The API key of profile ${profile} was removed. It stays valid.`)
    else if (session?.store === 'etcd')
      await io.say(`Profile ${profile} is signed out on every machine that shares it.`)
    else await io.say(`Profile ${profile} is signed out: its tokens were removed from this machine.`)
  }
  if (forgotten.some(({ session }) => session?.kind === 'session' && session.ended === undefined))
    await io.say('The grant at the service stays active until it is revoked there.')
}
