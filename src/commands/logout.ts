import type { Context } from '../context.ts'
import { limitKeychain } from '../credentials/keychain.ts'
import { CliError, Exit } from '../errors.ts'
import { type Forgotten, forgetSession } from '../session/forget.ts'
import { maybeElsewhere } from '../session/messages.ts'
import { profilesWithSecrets } from '../session/profiles.ts'
import type { Settings } from '../settings/settings.ts'
import { isShared } from '../settings/shared-store.ts'
import type { Column } from '../terminal/columns.ts'
import { note, warn } from '../terminal/notices.ts'
import { isToldOnStderr } from '../terminal/output.ts'
import { defineCommand } from './definition.ts'
import { printItems } from './lists.ts'

interface LogoutFlags {
  readonly all?: true
  readonly yes?: true
}

const COLUMNS: readonly Column[] = [{ field: 'profile' }, { field: 'was_signed_in' }, { field: 'kept' }]

export const command = defineCommand<LogoutFlags>({
  description: `Forgets the session or the API key of the profile: every copy of its secrets on this machine. The grant at
the service stays active until it is revoked there.`,
  options: [
    { flags: '--all', description: 'for all profiles', conflicts: ['--profile'] },
    { flags: '--yes', description: 'sign every machine out without asking, if the session is in etcd' },
  ],
  examples: {
    'mailclaim logout': 'sign out of the current profile',
    'mailclaim logout --all': 'remove all secrets of this program from this machine',
  },
  output: {
    fields: ['profile', 'was_signed_in', 'kept.store', 'kept.name', 'kept.why'],
    columns: COLUMNS,
  },
  exits: [Exit.notSignedIn, Exit.unavailable],
  async run({ options }, io) {
    const [context, settings] = [io, io.settings]
    const isFleet = isShared(settings) && !options.all
    const wasShared = isFleet && (await signFleetOut(options.yes === true, context, settings))
    const profiles = options.all ? profilesWithSecrets(context) : [settings.profile.value]
    const forgotten: Forgotten[] = []
    const limited = { ...context, keychain: limitKeychain(context, settings) }
    for (const profile of profiles) forgotten.push(await forgetSession(limited, settings, profile))
    if (!isToldOnStderr(settings))
      await printItems(
        forgotten.map((one) => outcomeOf(one, wasShared)),
        COLUMNS,
        'No profile is signed in.',
        io,
      )
    if (!isFleet || forgotten.some(({ record }) => record !== undefined))
      await announce(forgotten, context, settings)
    if (wasShared || forgotten.some(({ record }) => record?.kind === 'oauth' && record.ended === null))
      await note(GRANT_STAYS, context, settings)
    await tellPending(options.all ? undefined : settings.profile.value, context, settings)
    if (context.environment.apiKey !== undefined)
      await warn('MAILCLAIM_API_KEY is set, and commands keep using it', context, settings)
    const kept = forgotten.flatMap((one) => one.kept.map((secret) => ({ profile: one.profile, ...secret })))
    if (kept.length === 0) return
    throw new CliError(
      'secret_kept',
      context.interrupts.signal.aborted ? Exit.interrupted : Exit.notSignedIn,
      `not everything could be removed: ${kept.map(({ profile, location, why }) => `the ${location.store} may still hold a secret of profile ${profile} (${location.name}): ${why}`).join('; ')}`,
      {
        hint: kept.some(({ location }) => location.store === 'keychain')
          ? 'unlock the keychain and run mailclaim logout again'
          : 'remove it by hand, or check the permissions of its directory, and run mailclaim logout again',
      },
    )
  },
})

/** Also true if the service has ended the session: that of a fleet says so only to whoever has the key. */
const GRANT_STAYS =
  'Signing out does not revoke the grant at the service. If it is still active, revoke it there, among the connected apps of your account.'

/** The session in etcd is that of every machine, so somebody has to say that all of them are meant. */
async function signFleetOut(isConfirmed: boolean, context: Context, settings: Settings): Promise<boolean> {
  const { forgetShared, needsConsent } = await import('../session/shared/forget.ts')
  const { SharedVault } = await import('../session/shared/vault.ts')
  const profile = settings.profile.value
  if (!isConfirmed) {
    if (!settings.interactive) throw needsConsent(profile)
    const message = `Sign out every machine that uses the session of profile ${profile} in etcd?`
    if (!(await context.prompts.confirm({ message, default: false }))) throw needsConsent(profile)
  }
  const vault = new SharedVault(context, settings)
  const wasThere = await forgetShared(context, vault)
  const { silent } = vault.client
  const removed = silent.length === 0 ? 'was removed from etcd, for every machine' : 'was removed from etcd'
  const done = wasThere ? removed : 'was not in etcd'
  await note(`The session of profile ${profile} ${done}.`, context, settings)
  if (silent.length > 0) await warn(maybeElsewhere(silent), context, settings)
  return wasThere
}

/** What is kept for another cluster or prefix may be the only good refresh token of a session that goes on. */
async function tellPending(profile: string | undefined, context: Context, settings: Settings): Promise<void> {
  const { pendingPaths } = await import('../session/shared/pending.ts')
  const paths = pendingPaths(context, profile)
  if (paths.length === 0) return
  const what = `still on this machine: ${paths.join(', ')}. It may hold the only good refresh token of a session in etcd; if that session or its cluster is gone for good, delete the file`
  await warn(what, context, settings)
}

function outcomeOf({ profile, record, kept }: Forgotten, wasShared: boolean) {
  return {
    profile,
    was_signed_in: wasShared || record !== undefined,
    kept: kept.map(({ location, why }) => ({ store: location.store, name: location.name, why })),
  }
}

async function announce(
  forgotten: readonly Forgotten[],
  context: Context,
  settings: Settings,
): Promise<void> {
  const say = (text: string) => note(text, context, settings)
  if (forgotten.length === 0) await say('No profile is signed in.')
  for (const { profile, record, damaged, kept } of forgotten) {
    if (damaged !== undefined)
      await say(`The session file of profile ${profile} was damaged; it was kept as ${damaged}.`)
    if (record === undefined && kept.length > 0) continue
    if (record === undefined && damaged !== undefined)
      await say(`The secrets of profile ${profile} were removed from this machine.`)
    else if (record === undefined) await say(`Profile ${profile} was not signed in.`)
    // The error that follows says what remains.
    else if (kept.length > 0) continue
    else if (record.kind === 'api_key')
      await say(`The API key of profile ${profile} was removed. It stays valid.`)
    else await say(`Profile ${profile} is signed out: its tokens were removed from this machine.`)
  }
}
