import type { Context } from '../context.ts'
import { removeGuard } from '../credentials/keychain-guard.ts'
import { type KeptSecret, placesOf, secretFiles } from '../credentials/secret-copies.ts'
import { DEFAULT_PROFILE, isProfileName } from '../settings/profiles.ts'
import type { Settings } from '../settings/settings.ts'
import { removeDurable, removeStaleTemporaries } from '../storage/durable-file.ts'
import { withLockIfAny } from '../storage/lock.ts'
import { ensurePrivateDirectory, namesIn } from '../storage/private-directory.ts'
import { removeAccessToken } from './access-token.ts'
import { removeJournals } from './journal.ts'
import { profilesDirectory, secretHome, sessionPaths } from './paths.ts'
import type { SessionRecord } from './record.ts'
import { lockDeadline } from './refresh.ts'
import { readOrMoveAway } from './replace.ts'
import { readSuperseded, removeSuperseded } from './superseded.ts'

export interface Forgotten {
  readonly profile: string
  /** What was forgotten; undefined where nobody was signed in, or its record was damaged. */
  readonly record: SessionRecord | undefined
  /** Places that may still hold a secret, with what stood in the way: a locked keychain, mostly. */
  readonly kept: readonly KeptSecret[]
  /** Where a damaged record was put. */
  readonly damaged: string | undefined
}

/**
 * Forgets the session of the profile: every copy of its secrets on this machine. The grant at the service is another
 * matter and stays.
 *
 * @throws CliError `session_busy`, exit 7; `cannot_write`, exit 1.
 */
export async function forgetSession(
  context: Context,
  settings: Settings,
  profile: string,
): Promise<Forgotten> {
  const paths = sessionPaths(context, profile)
  if (namesIn(paths.directory).length === 0 && secretFiles(paths).length === 0)
    return { profile, record: undefined, kept: [], damaged: undefined }
  // What another user keeps there is not ours to forget, even where the system would let us.
  await ensurePrivateDirectory(paths.directory)
  return withLockIfAny(paths.lock, context, { deadlineMs: lockDeadline(settings) }, () =>
    context.interrupts.shield(async () => {
      removeStaleTemporaries(paths.directory, { ofAnyAge: true })
      const { record, damaged } = await readOrMoveAway(context, paths)
      removeAccessToken(paths)
      const places = record === undefined ? [] : placesOf(secretHome(paths, record))
      const items = [...(await readSuperseded(paths)), ...places].filter(({ store }) => store === 'keychain')
      const kept = await removeSuperseded(context, paths, items, undefined)
      removeDurable(paths.session)
      for (const item of items) removeGuard(context, item)
      removeJournals(paths.directory)
      return { profile, record, kept, damaged }
    }),
  )
}

/** The profiles that have a session on this machine, or one whose secret could not be removed. */
export function profilesWithSession(context: Pick<Context, 'directories'>): string[] {
  return profilesWith(context, (file) => file === 'session.json' || file === 'superseded.json')
}

/** The profiles of which anything is left that may hold a secret, wherever it was put. */
export function profilesWithSecrets(context: Pick<Context, 'directories'>): string[] {
  const inside = profilesWith(context, (file) => file !== 'lock' && !file.includes('.damaged-'))
  const { elsewhere } = sessionPaths(context, DEFAULT_PROFILE)
  const outside = elsewhere.flatMap((directory) =>
    namesIn(directory).flatMap((name) => /^secret\.(.+)\.[0-9a-f]{12}\.json$/.exec(name)?.[1] ?? []),
  )
  return [...new Set([...inside, ...outside])].filter(isProfileName).sort()
}

function profilesWith(context: Pick<Context, 'directories'>, isTelling: (file: string) => boolean): string[] {
  return namesIn(profilesDirectory(context))
    .filter((name) => isProfileName(name) && namesIn(sessionPaths(context, name).directory).some(isTelling))
    .sort()
}
