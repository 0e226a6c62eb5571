import { join } from 'node:path'
import type { Context } from '../context.ts'
import { parseProfileName } from '../settings/profiles.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'

/** The files of one profile's session: 0600, in directories of 0700. */
export interface SessionPaths {
  readonly profile: string
  readonly directory: string
  /** The session record. Written by a login, and when the service ends the session. */
  readonly session: string
  /** The access token, for the hot path. */
  readonly accessToken: string
  /** The profile's keychain items, so that those of earlier sign-ins can be removed. */
  readonly superseded: string
  /** Locked while the files of the session change. */
  readonly lock: string
  /** Directories for a new refresh token that can't be stored in the profile's. */
  readonly fallbackDirectories: readonly string[]
}

/** @throws CliError exit 2 if the profile's name, which becomes a directory, is not valid. */
export function sessionPaths(context: Pick<Context, 'directories'>, profile: string): SessionPaths {
  const directory = join(profilesDirectory(context), parseProfileName(profile))
  return {
    profile,
    directory,
    session: join(directory, 'session.json'),
    accessToken: join(directory, 'access-token.json'),
    superseded: join(directory, 'superseded.json'),
    lock: join(directory, 'lock'),
    fallbackDirectories: [context.directories.state, context.directories.config],
  }
}

/** It has a directory for each profile that ever had a session. */
export function profilesDirectory(context: Pick<Context, 'directories'>): string {
  return join(context.directories.state, 'profiles')
}

/** Creates the profile's directory. @throws CliError `directory_unusable`, exit 1. */
export async function ensureProfileDirectory(
  context: Pick<Context, 'directories'>,
  paths: SessionPaths,
): Promise<void> {
  await ensurePrivateDirectory(context.directories.state, 'leave')
  await ensurePrivateDirectory(profilesDirectory(context))
  await ensurePrivateDirectory(paths.directory)
}
