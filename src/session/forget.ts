import { type KeptSecret, locationsOf, removeSecrets, secretFiles } from '../credentials/secret-copies.ts'
import type { Settings } from '../settings/settings.ts'
import { removeDurable, removeStaleTemporaries } from '../storage/durable-file.ts'
import { withLockIfAny } from '../storage/lock.ts'
import { ensurePrivateDirectory, namesIn } from '../storage/private-directory.ts'
import { note } from '../terminal/notices.ts'
import { lockDeadline, type SessionContext } from './guard.ts'
import { removeJournals } from './journal.ts'
import { sessionPaths } from './paths.ts'
import { readOrMoveAway, type SessionRecord } from './record.ts'
import { secretStorage } from './secret-storage.ts'
import { readSuperseded, removeSuperseded } from './superseded.ts'

export interface Forgotten {
  readonly profile: string
  /** What was forgotten; undefined if nobody was signed in, or the record was damaged. */
  readonly record: SessionRecord | undefined
  /** What may still hold a secret, with the reason: usually a locked keychain. */
  readonly kept: readonly KeptSecret[]
  /** The new path of a damaged record. */
  readonly damaged: string | undefined
}

/**
 * Removes every copy of the profile's secrets from this machine, and its session. The grant at the service stays. What
 * can't be removed keeps nothing else from being removed.
 *
 * @throws CliError `session_busy`, exit 7; `cannot_write` or `directory_unusable`, exit 1.
 */
export async function forgetSession(
  context: SessionContext,
  settings: Pick<Settings, 'httpTimeoutMs' | 'quiet'>,
  profile: string,
): Promise<Forgotten> {
  const paths = sessionPaths(context, profile)
  if (namesIn(paths.directory).length === 0 && secretFiles(paths).length === 0)
    return { profile, record: undefined, kept: [], damaged: undefined }
  // Refuses another user's directory, even if the system would let us remove what is in it.
  await ensurePrivateDirectory(paths.directory)
  const waiting = {
    deadlineMs: lockDeadline(settings),
    onWait: () => note('Waiting for another mailclaim, which is using this session …', context, settings),
  }
  return withLockIfAny(paths.lock, context, waiting, async () => {
    removeStaleTemporaries(paths.directory, { ofAnyAge: true })
    const { record, damaged } = await readOrMoveAway(context, paths)
    const locations = record === undefined ? [] : locationsOf(secretStorage(paths, record))
    const items = [...(await readSuperseded(paths)), ...locations].filter(({ store }) => store === 'keychain')
    const tokens = await removeSecrets(context, [{ store: 'file', name: paths.accessToken }])
    const secrets = await removeSuperseded(context, paths, items, undefined)
    removeDurable(paths.session)
    removeJournals(paths.directory)
    return { profile, record, kept: [...tokens, ...secrets], damaged }
  })
}
