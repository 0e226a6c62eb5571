import { readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import type { Place } from '../credentials/store.ts'
import { CliError } from '../errors.ts'
import { removeDurable, removeLeftovers } from '../settings/files.ts'
import { isProfileName } from '../settings/profiles.ts'
import type { Settings } from '../settings/settings.ts'
import { removeAccessToken } from './access-token.ts'
import { readLeftovers, removeLeftoverSecrets } from './leftovers.ts'
import { profilesDirectory, sessionPaths } from './paths.ts'
import { readRecord, type SessionRecord } from './record.ts'
import { withLockIfAny } from './replace.ts'
import { placesOf } from './secrets.ts'

export interface Forgotten {
  readonly profile: string
  /** What was forgotten; undefined where nobody was signed in, or its record was damaged. */
  readonly record: SessionRecord | undefined
  /** Places that may still hold a secret, with what stood in the way: a locked keychain, mostly. */
  readonly kept: readonly { readonly place: Place; readonly why: string }[]
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
  if ((await namesIn(paths.directory)).length === 0)
    return { profile, record: undefined, kept: [], damaged: undefined }
  return withLockIfAny(paths, context, settings, true, () =>
    context.interrupts.shield(async () => {
      await removeLeftovers(paths.directory, { olderThanMs: 0 })
      let record: SessionRecord | undefined
      let damaged: string | undefined
      try {
        record = await readRecord(paths)
      } catch (error) {
        if (!(error instanceof CliError)) throw error
        damaged = `${paths.session}.damaged-${context.clock.now()}`
        await rename(paths.session, damaged)
      }
      await removeAccessToken(paths)
      const places = new Map<string, Place>()
      for (const place of [
        ...(await readLeftovers(paths)),
        ...(record === undefined ? [] : placesOf(paths, record)),
        // Whatever else looks like a secret of ours in this folder.
        ...(await namesIn(paths.directory))
          .filter((name) => /^secret\..*\.json$/.test(name))
          .map((name) => ({ store: 'file' as const, name: join(paths.directory, name) })),
      ]) {
        places.set(`${place.store} ${place.name}`, place)
      }
      const kept = await removeLeftoverSecrets(context, paths, [...places.values()])
      await removeDurable(paths.session)
      return { profile, record, kept, damaged }
    }),
  )
}

/** The profiles that have, or had, a session on this machine. */
export async function profilesWithSession(context: Pick<Context, 'directories'>): Promise<string[]> {
  const names = await namesIn(profilesDirectory(context))
  const found: string[] = []
  for (const name of names.sort()) {
    if (!isProfileName(name)) continue
    const files = await namesIn(sessionPaths(context, name).directory)
    if (files.includes('session.json') || files.includes('leftovers.json')) found.push(name)
  }
  return found
}

/** What is in a folder; nothing where there is none. */
async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory)
  } catch {
    return []
  }
}
