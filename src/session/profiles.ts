import { join } from 'node:path'
import type { Context } from '../context.ts'
import { similarWord } from '../settings/parse-value.ts'
import { DEFAULT_PROFILE, isProfileName } from '../settings/profiles.ts'
import type { Settings } from '../settings/settings.ts'
import { namesIn } from '../storage/private-directory.ts'
import { profilesDirectory, sessionPaths } from './paths.ts'

/** The profiles that have a session on this machine, or one whose secret could not be removed. */
export function profilesWithSession(context: Pick<Context, 'directories'>): string[] {
  return profilesWith(context, (file) => file === 'session.json' || file === 'superseded.json')
}

/** The profiles with any file that may hold a secret, the fallback directories included. */
export function profilesWithSecrets(context: Pick<Context, 'directories'>): string[] {
  const inProfiles = profilesWith(context, (file) => !/^lock$|^shared\.|\.damaged-/.test(file))
  const { fallbackDirectories } = sessionPaths(context, DEFAULT_PROFILE)
  const inFallbacks = fallbackDirectories.flatMap((directory) =>
    namesIn(directory).flatMap((name) => /^secret\.(.+)\.[0-9a-f]{12}\.json$/.exec(name)?.[1] ?? []),
  )
  return [...new Set([...inProfiles, ...inFallbacks])].filter(isProfileName).sort()
}

function profilesWith(context: Pick<Context, 'directories'>, counts: (file: string) => boolean): string[] {
  return namesIn(profilesDirectory(context))
    .filter((name) => isProfileName(name) && namesIn(sessionPaths(context, name).directory).some(counts))
    .sort()
}

/**
 * Says that a profile doesn't exist, with one that was probably meant; undefined if it exists. A profile does as soon as
 * something is configured for it, somebody has signed in, or a claim was seen with it.
 */
export function unknownProfile(
  name: string,
  context: Pick<Context, 'directories'>,
  { config }: Pick<Settings, 'config'>,
): string | undefined {
  const known = [
    DEFAULT_PROFILE,
    ...Object.keys(config.profiles),
    ...profilesWithSession(context),
    ...namesIn(join(context.directories.state, 'claims')),
  ]
  if (known.includes(name)) return undefined
  const meant = similarWord(name, known)
  return `there is no profile ${name}${meant === undefined ? '' : `; did you mean ${meant}?`}`
}
