import { join } from 'node:path'
import type { Context } from '../context.ts'
import { usageError } from '../errors.ts'
import { DEFAULT_PROFILE, isProfileName } from '../settings/profiles.ts'
import type { Settings } from '../settings/settings.ts'
import { listDirectory } from '../storage/private-directory.ts'
import type { Io } from '../terminal/io.ts'
import { notSignedInError } from './messages.ts'
import { type ProfileFiles, profilesDirectory, readSession, type Session } from './session-file.ts'

/**
 * Lists the profiles that have any file except the lock, such as a session or a note file (`next.…`), since each may hold a
 * secret.
 */
export function listProfilesThatMayHoldSecrets(context: Pick<Context, 'directories'>): string[] {
  return profilesWith(context, (name) => name !== 'lock').sort()
}

function profilesWith(context: Pick<Context, 'directories'>, counts: (name: string) => boolean): string[] {
  const directory = profilesDirectory(context)
  return listDirectory(directory).filter(
    (name) => isProfileName(name) && listDirectory(join(directory, name)).some(counts),
  )
}

const isSession = (file: string): boolean => file === 'session.json'

/** Lists the profiles that have a `session.json`, a setting or stored claims, and the default profile. */
export function listProfilesWithLocalData(
  context: Pick<Context, 'directories'>,
  { config }: Pick<Settings, 'config'>,
): string[] {
  const withSetting = Object.entries(config.profiles).flatMap(([name, fields]) =>
    Object.keys(fields).length > 0 ? [name] : [],
  )
  const withSession = profilesWith(context, isSession)
  const withClaims = listDirectory(join(context.directories.state, 'claims')).filter(isProfileName)
  return [...new Set([DEFAULT_PROFILE, ...withSetting, ...withSession, ...withClaims])].sort()
}

/** Rejects a profile not in `listProfilesWithLocalData`, since its name may be mistyped. @throws CliError `usage`, exit 2 */
export function requireKnownProfile(
  profile: string,
  context: Pick<Context, 'directories'>,
  settings: Pick<Settings, 'config'>,
): void {
  const known = listProfilesWithLocalData(context, settings)
  if (!known.includes(profile))
    throw usageError(`there is no profile ${profile}`, `use one of these, or sign in: ${known.join(', ')}`)
}

/**
 * Reads the session of a profile on this machine.
 *
 * @throws CliError `not_signed_in`, exit 4, if there is none; as `requireKnownProfile` and `readSession`
 */
export function requireSession(io: Io, files: ProfileFiles): { session: Session; text: string } {
  const found = readSession(files)
  if (found !== undefined) return found
  requireKnownProfile(files.profile, io, io.settings)
  const why = io.environment.isKeyEmpty ? ', and MAILCLAIM_API_KEY is empty' : ''
  throw notSignedInError(files.profile, profilesWith(io, isSession), why)
}
