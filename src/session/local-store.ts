import type { Settings } from '../settings/settings.ts'
import { isThere } from '../storage/durable-file.ts'
import type { LockOptions, STILL_HELD } from '../storage/lock.ts'
import { withLock } from '../storage/lock.ts'
import { readAccessToken } from './access-token.ts'
import { type SessionContext, withGuard } from './guard.ts'
import { LocalSession } from './local-session.ts'
import { lockReplaced, notSignedIn } from './messages.ts'
import { sessionPaths } from './paths.ts'
import { readRecord, type SessionRecord } from './record.ts'
import { secretStorage } from './secret-storage.ts'
import type { OpenSession, SessionStore } from './session-store.ts'

/** The session in the profile's directory, with its secret there or in the keychain. */
export function localStore(
  context: SessionContext,
  settings: Pick<Settings, 'profile' | 'chosen'>,
): SessionStore {
  const paths = sessionPaths(context, settings.profile.value)
  return {
    // The lock can't be deleted more often than that by accident.
    tries: 5,
    // Others wait for the lock.
    refreshLimitMs: Number.POSITIVE_INFINITY,
    overtaken: () => lockReplaced(paths.profile, paths.lock),
    accessToken: () => readAccessToken(paths),
    async open<T>(
      options: LockOptions<T>,
      usable: (record: SessionRecord | undefined) => void,
      work: (session: OpenSession) => Promise<T | typeof STILL_HELD>,
    ): Promise<T> {
      // A profile that never signed in has no directory for a lock.
      if (!isThere(paths.directory)) throw notSignedIn(settings)
      return withLock<T>(paths.lock, context, options, async (lock) => {
        const found = await options.meanwhile?.()
        if (found !== undefined) return found
        const record = await readRecord(paths)
        usable(record)
        if (record?.kind !== 'oauth') throw notSignedIn(settings)
        const storage = secretStorage(paths, record)
        return withGuard(context, storage, lock, options, (guard) =>
          work(new LocalSession(context, paths, record, storage, guard)),
        )
      })
    },
  }
}
