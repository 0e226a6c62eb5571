import { join } from 'node:path'
import type { Context } from '../context.ts'
import { parseProfileName } from '../settings/profiles.ts'

/** The files of one profile's session; all are 0600, in a folder of 0700. */
export interface SessionPaths {
  readonly directory: string
  /** What is known about the session; no secret. */
  readonly session: string
  /** The access token, for the hot path. */
  readonly accessToken: string
  /** Secrets that are to be removed from where they are. */
  readonly leftovers: string
  /** Locked while a refresh token is read, sent and stored. Never deleted: a new file would be another lock. */
  readonly lock: string
}

/** @throws CliError exit 2 where the name is none: it becomes a folder. */
export function sessionPaths(context: Pick<Context, 'directories'>, profile: string): SessionPaths {
  const directory = join(profilesDirectory(context), parseProfileName(profile))
  return {
    directory,
    session: join(directory, 'session.json'),
    accessToken: join(directory, 'access-token.json'),
    leftovers: join(directory, 'leftovers.json'),
    lock: join(directory, 'lock'),
  }
}

/** The folder that has one folder for each profile that ever had a session. */
export function profilesDirectory(context: Pick<Context, 'directories'>): string {
  return join(context.directories.state, 'profiles')
}
